"""Estimates how long runs take, as a range; pure.

The estimate uses earlier runs of the same pair over the same link with the same files. Without any, it uses runs of
other pairs over that link, and without those the rate of the link and the timeout.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quicsat.model.emulated_link import loss_share
from quicsat.model.flow import Flow
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.run import Run
from quicsat.model.test_case import Link, TestCase, path_rate
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

LONG_ROUND_TRIP = 0.3
"""Seconds from which on a link is that of a geostationary satellite."""
SLOW_SHARE = {True: 0.05, False: 0.2}
"""Of the link's rate, over such links and others: what slow implementations reach without loss."""
FIRST_WINDOW = 12_000
"""Bytes, doubled in each round trip at first (RFC 9002, section 7.2)."""
PACKET = 1200
"""Bytes of a packet's data."""

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


def slow_transfer(case: TestCase) -> float:
    """Seconds that the transfer of a slow implementation takes over an emulated link.

    Slow start, then a share of the rate or, if it is less, the rate of CUBIC under random loss (RFC 9438, equation 4).
    """
    link, round_trip = case.emulated, case.emulated.round_trip_delay
    rate = SLOW_SHARE[round_trip >= LONG_ROUND_TRIP] * path_rate(link)
    if (loss := loss_share(link.forward.loss)) and round_trip:
        rate = min(rate, 1.054 * (round_trip / loss) ** 0.75 * PACKET * 8 / round_trip)
    starting = round_trip * (2 + math.log2(max(case.total_size / FIRST_WINDOW, 1)))
    return starting + 8 * case.flow_count * case.total_size / rate


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
    ideal = 3 * case.link.round_trip_delay + 8 * case.flow_count * case.total_size / path_rate(case.link)
    return Span(min(ideal, case.timeout) + OVERHEAD, case.timeout + MOST_OVERHEAD)
