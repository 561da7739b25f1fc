"""Goodput of runs, also of those that did not succeed."""

from __future__ import annotations

import re
import statistics
from collections.abc import Collection, Iterable
from dataclasses import replace

from interop.model.outcomes import Outcome
from interop.model.results import Measurement, ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.model.units import KIB, MIB
from interop.statistics.samples import EFFICIENCY, GOODPUT, value_of

STREAM_GOODPUT = "stream_goodput"
"""From the first to the last new byte of the file (docs/reference/metrics.md)."""


ARRIVED = re.compile(r"([\d.]+) (B|KiB|MiB) of [\d.]+ \w+ arrived")
"""In the reason of a run whose trace shows how much of the file the client received."""
BYTES = {"B": 1, "KiB": KIB, "MiB": MIB}


def goodput_so_far(run: RunResult) -> float | None:
    """Goodput, bit/s; of a run without success, what had arrived over the time that the client ran.

    None if it is not known what had arrived.
    """
    if run.verdict.outcome is Outcome.SUCCEEDED:
        return value_of(run, GOODPUT)
    size = arrived(run)
    if size is None or not run.evidence.transfer_time:
        return None
    return 8 * size / run.evidence.transfer_time


def arrived(run: RunResult) -> float | None:
    """Bytes of the file that the client's trace shows, or else that the client had written when it ended.

    None without both: some clients write files only when they are complete.
    """
    if found := ARRIVED.search(run.verdict.reason):
        return float(found[1]) * BYTES[found[2]]
    files = run.evidence.downloaded
    return float(sum(file.size for file in files)) if files else None


def known(runs: Iterable[RunResult]) -> list[float]:
    """Goodput of runs, of those without success so far, where it is known."""
    return [value for run in runs if (value := goodput_so_far(run)) is not None]


def with_timeouts(results: ResultSet) -> ResultSet:
    """The same results in which a run that timed out counts with its goodput so far, where that is known."""
    rates = {case.name: case.emulated.forward_rate for case in results.manifest.test_cases}
    return replace(results, results=tuple(_counted(run, rates[run.test_case]) for run in results.results))


def _counted(run: RunResult, rate: float) -> RunResult:
    value = goodput_so_far(run)
    if run.verdict.outcome is not Outcome.TIMEOUT or value is None:
        return run
    verdict = replace(run.verdict, outcome=Outcome.SUCCEEDED)
    return replace(run, verdict=verdict, measurement=Measurement({GOODPUT: value, EFFICIENCY: value / rate}))


def mean_of(results: ResultSet, case: TestCase, servers: Collection[str], client: str = "") -> float | None:
    """Mean goodput of the successful runs of servers, with one client or all, in a test case, bit/s."""
    found = [
        value
        for each in results.results
        if each.test_case == case.name
        and each.server in servers
        and (each.client == client or not client)
        and (value := value_of(each, GOODPUT)) is not None
    ]
    return statistics.fmean(found) if found else None


def of_case(results: ResultSet, case: TestCase) -> list[RunResult]:
    """The runs of a test case."""
    return [each for each in results.results if each.test_case == case.name]
