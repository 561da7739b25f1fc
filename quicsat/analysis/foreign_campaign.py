"""The runs of another runner as a campaign: results and packet series, the input of figures and tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quicsat.analysis import metrics
from quicsat.analysis.foreign_runs import Findings, examine
from quicsat.model.emulated_link import unknown_link
from quicsat.model.endpoint_contract import UNSUPPORTED_STATUS
from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Implementation, Role
from quicsat.model.names import is_test_case
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.processes import process_pool
from quicsat.model.results import Manifest, Measurement, ResultSet, RunResult
from quicsat.model.run import RunKey
from quicsat.model.test_case import TestCase
from quicsat.results.document import StoredResults
from quicsat.results.qir_import import shown_name
from quicsat.results.qir_logs import ForeignRun, escaped_name

UNKNOWN_END = "unknown"
"""Name of an implementation that is not known."""


@dataclass(frozen=True)
class Given:
    """Facts about the runs that the user gives; None if the runs state them, or if they are unknown."""

    size: int | None = None
    """Bytes of all files of a run."""
    rate: float | None = None
    """Of the forward link, bit/s."""


def read_campaign(
    name: str,
    runs: Sequence[ForeignRun],
    place: Path,
    given: Given,
    known: Mapping[str, Implementation],
    wanted: Callable[[RunKey], bool],
    listed: Sequence[TestCase] = (),
) -> StoredResults:
    """The results of all ``wanted`` runs; their series are stored in ``place``, by the paths of their keys.

    ``listed``: test cases of the runner's own result file, which tell abbreviations and rates.
    """
    keys = dict(_keys(runs))
    chosen = {key: run for key, run in keys.items() if wanted(key)}
    left_out = len(runs) - len(keys)
    warnings = [f"{name}: runs that are left out because their names cannot be shown: {left_out}."] if left_out else []
    with process_pool(min(len(chosen) or 1, os.cpu_count() or 1)) as pool:
        sizes, places = [given.size] * len(chosen), [place / key.path for key in chosen]
        found = dict(zip(chosen, pool.map(examine, chosen.values(), sizes, places), strict=True))
    cases = {case.name: case for case in _cases(keys, found, given, {case.name: case for case in listed})}
    results = [_result(key, chosen[key], each, cases[key.test_case].link.forward.rate) for key, each in found.items()]
    warnings += [f"{chosen[key].name}: {note}" for key, each in found.items() for note in each.notes]
    servers, clients = ({getattr(key, role): None for key in keys} for role in ("server", "client"))
    manifest = Manifest(
        id=name,
        started="",
        command=(),
        tool_version="",
        seed=0,
        servers=tuple(servers),
        clients=tuple(clients),
        implementations=tuple(_implementation(each, servers, clients, known) for each in {**servers, **clients}),
        test_cases=tuple(cases.values()),
        images={},
        planned_runs=len(keys),
    )
    return StoredResults(ResultSet(manifest, (), tuple(results), None), tuple(results), tuple(warnings))


def _keys(runs: Sequence[ForeignRun]) -> Iterator[tuple[RunKey, ForeignRun]]:
    """The runs whose names can be parts of paths; those that several trees share get the next free repetition."""
    taken = set[RunKey]()
    for run in runs:
        server = shown_name(run.server or run.pair) or (None if run.pair else UNKNOWN_END)
        client = shown_name(run.client) or UNKNOWN_END
        test_case = run.test_case.casefold()
        if server is None or not is_test_case(test_case):
            continue
        number = run.repetition or 1
        while (key := RunKey(server, client, test_case, number)) in taken:
            number += 1
        taken.add(key)
        yield key, run


def _implementation(
    name: str, servers: Mapping[str, None], clients: Mapping[str, None], known: Mapping[str, Implementation]
) -> Implementation:
    roles = frozenset(role for role, names in ((Role.SERVER, servers), (Role.CLIENT, clients)) if name in names)
    control = known[name].congestion_control if name in known else None
    return Implementation(name, "", "", roles, congestion_control=control)


def _cases(
    keys: Mapping[RunKey, ForeignRun], found: Mapping[RunKey, Findings], given: Given, listed: Mapping[str, TestCase]
) -> Iterator[TestCase]:
    for name in dict.fromkeys(key.test_case for key in keys):
        mine = [key for key in keys if key.test_case == name]
        rates = [given.rate, *(keys[key].runner_output.forward_rate for key in mine)]
        rates += [found[key].rate for key in mine if key in found]
        rates += [listed[name].link.forward.rate] if name in listed else []
        sizes = [found[key].size for key in mine if key in found]
        yield TestCase(
            name=name,
            abbreviation=listed[name].abbreviation if name in listed else name,
            description="",
            link=unknown_link(next(filter(None, rates), 0.0)),
            file_sizes=tuple(size for size in sizes[:1] if size),
            repetitions=max(key.repetition for key in mine),
            timeout=0.0,
        )


def _result(key: RunKey, run: ForeignRun, found: Findings, rate: float) -> RunResult:
    values = dict(found.values)
    if rate and "goodput" in values:
        values["efficiency"] = metrics.efficiency(values["goodput"], rate)
    return RunResult(
        server=key.server,
        client=key.client,
        test_case=key.test_case,
        repetition=key.repetition,
        attempt=1,
        verdict=_verdict(run, found),
        evidence=Evidence("", 0),
        measurement=Measurement(values, found.notes) if values else None,
    )


def _verdict(run: ForeignRun, found: Findings) -> Verdict:
    """What the runner says, else what the streams show; without either, nothing counts against the pair."""
    output, reason = run.runner_output, " ".join(found.notes)
    if UNSUPPORTED_STATUS in dict(output.exits).values():
        return Verdict(Outcome.UNSUPPORTED, ErrorCode.UNSUPPORTED)
    if output.timeout is not None:
        return Verdict(Outcome.TIMEOUT, ErrorCode.TIMEOUT, reason)
    if found.complete:
        return Verdict(Outcome.SUCCEEDED)
    if found.complete is False:
        return Verdict(Outcome.FAILED, ErrorCode.CLIENT_FAILED, reason)
    if found.values:
        return Verdict(Outcome.SUCCEEDED)
    return Verdict(Outcome.ERROR, ErrorCode.ANALYSIS_FAILED, reason or f"{escaped_name(run.name)}: nothing is known.")
