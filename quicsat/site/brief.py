"""What a site needs of a campaign that has not changed: manifest, totals, goodput and outcomes of tests; one file.

Reading it takes a hundredth of the time and memory that all results take. A site keeps the file beside the pages of the
campaign, and a later build takes it instead of the results. A second file has what comparisons need, functional tests
too.
"""

import json
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from quicsat.model.errors import InputError
from quicsat.model.evidence import Evidence, HostFacts
from quicsat.model.implementation import Protocol
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import Manifest, Measurement, ResultSet, RunResult
from quicsat.model.stored_files import read_file
from quicsat.model.units import MIB
from quicsat.results.document import document, parse_document
from quicsat.statistics.comparison import Goodputs
from quicsat.statistics.samples import CONCLUSIVE, CONCLUSIVE_RUNS, GOODPUT, PairOutcome, Sample, SampledRun, samples

T = TypeVar("T")

FILE_NAME = "brief.bin"
"""In the folder of the campaign."""
GOODPUTS_NAME = "goodputs.bin"
"""Beside it."""
LARGEST = 32 * MIB
"""Bytes of either, before and after they are unpacked; a run takes about 60."""
DAMAGED = (
    OSError, zlib.error, ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError,
    InputError,
)  # fmt: skip
"""Errors when the next build reads what a build has stored, and something has changed it."""


@dataclass(frozen=True, eq=False)
class Brief:
    """What lists, trends and comparisons tell of a campaign."""

    manifest: Manifest
    finished: str | None
    outcomes: Counter[Outcome]
    """Runs by outcome."""
    hosts: tuple[HostFacts, ...]
    """The machines that the runs took place on, without what differs from run to run."""
    rows: tuple[tuple[int, int, int, int, Outcome, int, float | None], ...]
    """Of each run of a measurement: numbers of server, client and test case in the manifest, repetition, outcome, seed,
    and goodput in bit/s."""
    tested: tuple[tuple[int, int, int, PairOutcome], ...] = ()
    """Of each pair in a functional test: numbers of server, client and test case in the manifest, and the outcome."""
    warnings: tuple[str, ...] = ()

    @property
    def runs(self) -> int:
        """Runs with a result."""
        return self.outcomes.total()

    @cached_property
    def keys(self) -> frozenset[tuple[str, str, str]]:
        """Server, client and test case of each cell of a measurement."""
        return frozenset(self._names(*numbers) for numbers in {row[:3] for row in self.rows})

    @cached_property
    def conclusive(self) -> frozenset[tuple[str, str, str]]:
        """Server, client and test case of each cell in which a run succeeded, failed or timed out."""
        found = {row[:3] for row in self.rows if row[4] in CONCLUSIVE_RUNS}
        found |= {row[:3] for row in self.tested if row[3] in CONCLUSIVE}
        return frozenset(self._names(*numbers) for numbers in found)

    @cached_property
    def tests(self) -> dict[str, dict[tuple[str, str], PairOutcome]]:
        """Of each functional test, the outcome of each pair (server, client)."""
        found: dict[str, dict[tuple[str, str], PairOutcome]] = {}
        for *numbers, outcome in self.tested:
            server, client, case = self._names(*numbers)
            found.setdefault(case, {})[server, client] = outcome
        return found

    def _names(self, server: int, client: int, case: int) -> tuple[str, str, str]:
        manifest = self.manifest
        return manifest.servers[server], manifest.clients[client], manifest.test_cases[case].name

    def measured(self) -> ResultSet:
        """The results of the measurements, with their outcomes, seeds and goodput."""
        return ResultSet(self.manifest, (), tuple(map(self._result, self.rows)), self.finished)

    def _result(self, row: tuple[int, int, int, int, Outcome, int, float | None]) -> RunResult:
        *numbers, repetition, outcome, seed, goodput = row
        return RunResult(
            *self._names(*numbers),
            repetition,
            attempt=1,
            verdict=Verdict(outcome, ErrorCode.NONE),
            evidence=Evidence(self.manifest.started, seed),
            measurement=None if goodput is None else Measurement({GOODPUT: goodput}),
        )


def brief(results: ResultSet, warnings: tuple[str, ...] = ()) -> Brief:
    """Of a campaign that was read as a whole."""
    manifest = results.manifest
    servers, clients = ({name: at for at, name in enumerate(names)} for names in (manifest.servers, manifest.clients))
    cases = {case.name: at for at, case in enumerate(manifest.test_cases) if not case.functional}
    hosts: dict[tuple[object, ...], HostFacts] = {}
    for result in results.results:
        if host := result.evidence.host:
            hosts.setdefault((host.kernel, host.processor, host.cpus, host.memory, host.engine), host)
    return Brief(
        manifest,
        results.finished,
        Counter(result.verdict.outcome for result in results.results),
        tuple(hosts.values()),
        tuple(
            (
                *(servers[each.server], clients[each.client], cases[each.test_case], each.repetition),
                *(each.verdict.outcome, each.evidence.seed),
                each.measurement.values.get(GOODPUT) if each.measurement else None,
            )
            for each in results.results
            if each.test_case in cases
        ),
        tuple(
            (servers[each.server], clients[each.client], number, each.pair_outcome)
            for number, case in enumerate(manifest.test_cases)
            if case.functional
            for each in samples(results, case.name, GOODPUT)
            if each.outcomes
        ),
        warnings,
    )


def encode(of: Brief) -> bytes:
    """The file."""
    plain = {
        "manifest": json.loads(document(replace(of.measured(), results=()))),
        "outcomes": of.outcomes,
        "hosts": [asdict(host) for host in of.hosts],
        "rows": of.rows,
        "tested": of.tested,
        "warnings": of.warnings,
    }
    return zlib.compress(json.dumps(plain, separators=(",", ":")).encode("utf-8", "surrogatepass"))


def _plain(path: Path) -> dict[str, Any]:
    """What a file holds. Raises ``DAMAGED``."""
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(read_file(path, LARGEST), LARGEST)
    if unpacker.unconsumed_tail:
        raise ValueError(f"it has more than {LARGEST} bytes")
    return dict(json.loads(text))


def read(path: Path) -> Brief | None:
    """What a file tells; None if there is none, or it is damaged."""
    try:
        plain = _plain(path)
        known = parse_document(path, json.dumps(plain["manifest"]).encode()).result_set
        rows = tuple(
            (int(server), int(client), int(case), int(repetition), Outcome(outcome), int(seed), goodput)
            for server, client, case, repetition, outcome, seed, goodput in plain["rows"]
        )
        return Brief(
            known.manifest,
            known.finished,
            Counter({Outcome(name): int(count) for name, count in plain["outcomes"].items()}),
            tuple(HostFacts(**host) for host in plain["hosts"]),
            rows,
            tuple(
                (int(server), int(client), int(case), PairOutcome(outcome))
                for server, client, case, outcome in plain["tested"]
            ),
            tuple(map(str, plain["warnings"])),
        )
    except DAMAGED:
        return None


# ---- goodput and outcomes of all test cases -------------------------------------------------


def encode_goodputs(of: Goodputs) -> bytes:
    """The second file: by test case, for each pair the numbers of server and client, and the fields of its sample."""
    names = (of.manifest.servers, of.manifest.clients)
    servers, clients = ({name: at for at, name in enumerate(each)} for each in names)
    plain = {
        "samples": {
            case: [
                (
                    *(servers[each.server], clients[each.client]),
                    [(run.number, run.outcome, run.value, run.seed) for run in each.repetitions],
                    sorted(each.protocols),
                )
                for each in many
                if each.outcomes
            ]
            for case, many in of.samples.items()
        },
        "unfinished": of.unfinished,
        "skipped": sorted(of.skipped),
    }
    return zlib.compress(json.dumps(plain, separators=(",", ":")).encode())


def _optional(kind: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else kind(value)


def read_goodputs(path: Path, manifest: Manifest) -> Goodputs | None:
    """What the second file tells of the campaign with this manifest; None if there is none, or it is damaged."""
    servers, clients = manifest.servers, manifest.clients
    try:
        plain = _plain(path)
        found = {
            case.name: tuple(
                Sample(
                    servers[server],
                    clients[client],
                    case.name,
                    tuple(
                        SampledRun(int(number), Outcome(outcome), _optional(float, value), _optional(int, seed))
                        for number, outcome, value, seed in repetitions
                    ),
                    frozenset(map(Protocol, protocols)),
                )
                for server, client, repetitions, protocols in plain["samples"][case.name]
            )
            for case in manifest.test_cases
        }
        skipped = frozenset((str(server), str(client), str(case)) for server, client, case in plain["skipped"])
        return Goodputs(manifest, found, str(plain["unfinished"]), skipped)
    except DAMAGED:
        return None
