"""Estimates how long runs take, as a range; pure.

The estimate uses earlier runs of the same pair over the same link with the same files. Without any, it uses runs of
other pairs over that link, and without those the rate of the link and the timeout.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quicsat.model.flow import Flow
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.run import Run
from quicsat.model.test_case import Link, TestCase
from quicsat.model.units import seconds
from quicsat.model.workload import Workload

OVERHEAD = 4.0
"""Least seconds for preparation, removal and analysis, without earlier runs."""
MOST_OVERHEAD = 20.0
"""Most seconds for the same; a server may be slow to become ready."""
NINE_TENTHS = 0.9
FEW = 3
"""Durations needed to estimate their spread."""
SPREAD = (0.9, 1.25)
"""Factors between a known and the next duration, where fewer than FEW are known."""

_Kind = tuple[Link, tuple[int, ...], Workload | None, tuple[Flow, ...]]


class Span(NamedTuple):
    """A duration that lies between two, seconds."""

    low: float
    high: float

    def __str__(self) -> str:
        low, high = seconds(self.low), seconds(self.high)
        return low if low == high else f"{low} to {high}"


class Durations:
    """Durations of earlier runs; grows with each result."""

    def __init__(self, campaigns: Iterable[ResultSet] = ()) -> None:
        self._of_pair: dict[tuple[_Kind, str, str], list[float]] = {}
        self._of_kind: dict[_Kind, list[float]] = {}
        for each in campaigns:
            cases = {case.name: case for case in each.manifest.test_cases}
            for result in each.results:
                if result.test_case in cases:
                    self.learn(cases[result.test_case], result)

    def learn(self, case: TestCase, result: RunResult) -> None:
        """Record how long a run of ``case`` took, unless it was skipped."""
        if result.verdict.outcome is Outcome.SKIPPED or not result.evidence.phases:
            return
        kind, spent = _kind(case), sum(result.evidence.phases.values())
        self._of_pair.setdefault((kind, result.server, result.client), []).append(spent)
        self._of_kind.setdefault(kind, []).append(spent)

    def of(self, run: Run) -> Span:
        """Half of such runs take less than the lower bound, nine of ten less than the upper one, if many are known."""
        kind = _kind(run.test_case)
        known = self._of_pair.get((kind, run.server.name, run.client.name)) or self._of_kind.get(kind)
        return _span(known) if known else _possible(run.test_case)

    def known(self, run: Run) -> bool:
        """Whether a run over the same link with the same files has been made."""
        return _kind(run.test_case) in self._of_kind

    def total(self, runs: Sequence[Run]) -> Span:
        """All ``runs``, one after another."""
        alike = dict[tuple[str, str, str], list[Run]]()
        for run in runs:
            alike.setdefault((run.test_case.name, run.server.name, run.client.name), []).append(run)
        spans = [(self.of(group[0]), len(group)) for group in alike.values()]
        return Span(sum(span.low * count for span, count in spans), sum(span.high * count for span, count in spans))


def _kind(case: TestCase) -> _Kind:
    return case.link, case.file_sizes, case.workload, case.flows


def _span(durations: list[float]) -> Span:
    ordered = sorted(durations)
    if len(ordered) < FEW:
        return Span(SPREAD[0] * ordered[0], SPREAD[1] * ordered[-1])
    high = ordered[min(len(ordered) - 1, math.ceil(NINE_TENTHS * len(ordered)) - 1)]
    return Span(statistics.median(ordered), max(high, statistics.median(ordered)))


def _possible(case: TestCase) -> Span:
    """From files at the rate of the link after three round trips, to the timeout."""
    ideal = 3 * case.link.round_trip_delay + 8 * case.flow_count * case.total_size / case.link.forward.rate
    return Span(min(ideal, case.timeout) + OVERHEAD, case.timeout + MOST_OVERHEAD)
