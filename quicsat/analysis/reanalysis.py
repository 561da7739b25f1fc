"""Analyses the stored runs of a campaign again: ``run.py analyse``. Needs neither Docker nor a link."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from quicsat.analysis.analyse import analyse
from quicsat.model.outcomes import Verdict
from quicsat.model.processes import process_pool
from quicsat.model.results import Manifest, Measurement, RunResult
from quicsat.model.run import Run
from quicsat.model.stored_files import status
from quicsat.model.text import counted, escaped, first_few
from quicsat.results.store import Journal, attempt_directory, write_result_json
from quicsat.traces.run_traces import CLIENT_TRACE

NAMED = 5
"""Runs without traces that are named."""


@dataclass(frozen=True)
class Again:
    """What analysing a campaign again came to."""

    analysed: int
    changed: tuple[str, ...]
    """One line per run that has another verdict or other numbers now."""
    without_traces: tuple[str, ...]
    """Runs that were left as they are, since their traces are no longer there."""
    spoiled: bool
    """A run that had a result cannot be judged any more."""


def carry_out(directories: Sequence[Path]) -> tuple[str, bool]:
    """What ``run.py analyse`` does and says, and whether a run is spoiled now; raises like ``analyse_again``."""
    lines: list[str] = []
    spoiled = False
    for directory in directories:
        again = analyse_again(directory)
        lines += [
            *again.changed,
            f"{escaped(str(directory))}: {counted(again.analysed, 'run')} analysed, {len(again.changed)} changed"
            + _left(again),
        ]
        spoiled |= again.spoiled
    return "\n".join(lines), spoiled


def _left(again: Again) -> str:
    """``; 3 without traces were left as they are: a_b/sat/1, …``."""
    if not again.without_traces:
        return ""
    named = first_few(again.without_traces, NAMED)
    return f"; {len(again.without_traces)} without traces were left as they are: {named}"


def analyse_again(directory: Path) -> Again:
    """Analyse every stored run of a campaign again, write its series, and append changes to its journal.

    As many runs at a time as there are CPUs. Earlier attempts with traces are judged again, too, so the same rule
    excludes all attempts; which attempt counts does not change. Raises InputError if there is
    no journal, LockedError if a campaign writes to it.
    """
    changed: list[str] = []
    spoiled = False
    with Journal.open(directory) as journal, process_pool(os.cpu_count() or 1) as pool:
        record = journal.record().result_set
        jobs = list(_submitted(pool, record.manifest, record.results, journal.place))
        others = list(_submitted(pool, record.manifest, record.earlier, journal.place, earlier=True))
        for number, (before, job) in enumerate(jobs + others):
            verdict, measurement = job.result()
            after = replace(before, verdict=verdict, measurement=measurement)
            if after != before:
                journal.append_result(after)
                counts = number < len(jobs)
                changed.append(f"{'' if counts else f'attempt {after.attempt} at '}{_difference(before, after)}")
                spoiled |= counts and after.verdict.excluded
        if record.finished and changed:
            journal.finish()
        write_result_json(directory, journal.record().result_set)
    judged = {id(before) for before, _ in jobs}
    return Again(
        len(jobs), tuple(changed), tuple(str(each.key) for each in record.results if id(each) not in judged), spoiled
    )


def _submitted(
    pool: ProcessPoolExecutor,
    manifest: Manifest,
    results: tuple[RunResult, ...],
    directory: Path,
    *,
    earlier: bool = False,
) -> Iterator[tuple[RunResult, Future[tuple[Verdict, Measurement | None]]]]:
    """The runs whose traces are there, each under way; ``earlier``: attempts whose directories have other names."""
    for result in results:
        run = planned(manifest, result)
        place = attempt_directory(directory / run.path, result.attempt) if earlier else directory / run.path
        if status(place / CLIENT_TRACE) is not None:
            yield result, pool.submit(analyse, run, result.evidence, place)


def planned(manifest: Manifest, result: RunResult) -> Run:
    """The run of the plan that a result is of."""
    implementations = {each.name: each for each in manifest.implementations}
    test_cases = {each.name: each for each in manifest.test_cases}
    return Run(
        implementations[result.server],
        implementations[result.client],
        test_cases[result.test_case],
        result.repetition,
        result.evidence.seed,
        result.protocol,
    )


def _difference(before: RunResult, after: RunResult) -> str:
    name = str(after.key)
    if after.verdict.excluded and before.verdict.code is after.verdict.code and after.verdict.if_valid is not None:
        return f"{name}: {after.verdict.code}; valid, it would be {_short(after.verdict.if_valid)}"
    if before.verdict != after.verdict:
        was, now = _short(before.verdict), _short(after.verdict)
        return f"{name}: {was} -> {now}. {after.verdict.reason}".rstrip()
    return f"{name}: other numbers"


def _short(verdict: Verdict) -> str:
    """Its code, or its outcome if it has none."""
    return verdict.code or verdict.outcome
