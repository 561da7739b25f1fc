"""Progress of a campaign: a line per finished run with its outcome and the estimated time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from interop.cli import console
from interop.model.clock import Clock
from interop.model.outcomes import Outcome
from interop.model.real_link import CLOCKS
from interop.model.results import ResultSet, RunResult
from interop.model.run import Run
from interop.model.text import printable
from interop.model.units import mbit_per_s, percent
from interop.plan.duration_estimate import Durations, Span

PAST = 3
"""Newest campaigns from which durations are estimated."""


def earlier_campaigns(root: Path, clock: Clock) -> tuple[ResultSet, ...]:
    """The newest campaigns of the checkout at ``root`` with that clock."""
    from interop.results import store

    return tuple(each for each in store.newest(root / "results", PAST) if each.manifest.clock is clock)


def reporter(runs: Sequence[Run], past: Sequence[ResultSet] = ()) -> Callable[[RunResult, int], None]:
    """A function that prints the progress line of each result of ``runs``."""
    progress = Progress(runs, past)
    return lambda result, finished: console.message(progress.line(result, finished))


class Progress:
    """Estimates how long the runs that are left take."""

    def __init__(self, runs: Sequence[Run], past: Iterable[ResultSet] = ()) -> None:
        """``runs``: all runs of the campaign; ``past``: earlier campaigns, from which durations are estimated."""
        self._left = {run.key: run for run in runs}
        self._total = len(runs)
        self._durations = Durations(past)
        self._spent = 0.0
        self._begin = time.monotonic()
        self._warned: set[str] = set()

    def line(self, result: RunResult, finished: int) -> str:
        """The line for a result; ``finished`` counts the runs that are done, this one included."""
        run = self._left.pop(result.key, None)
        if run is not None:
            self._durations.learn(run.test_case, result)
        self._spent += sum(result.evidence.phases.values())
        return f"[{finished}/{self._total}] {result.key}: {_in_words(result)}{self._rest()}{self._warning(result)}"

    def _warning(self, result: RunResult) -> str:
        """A warning about the clocks of hosts, once per test case."""
        found = [note for note in (result.measurement.notes if result.measurement else ()) if note.startswith(CLOCKS)]
        if not found or result.test_case in self._warned:
            return ""
        self._warned.add(result.test_case)
        return f"\nwarning: {found[0]}"

    def _rest(self) -> str:
        """The estimated time left at the present rate, with as many runs at a time as now."""
        if not self._left:
            return ""
        total = self._durations.total(list(self._left.values()))
        pace = min((time.monotonic() - self._begin) / self._spent, 1.0) if self._spent else 1.0
        return f"  about {Span(total.low * pace, total.high * pace)} left"


def _in_words(result: RunResult) -> str:
    verdict, measurement = result.verdict, result.measurement
    if verdict.outcome is Outcome.SUCCEEDED and measurement is not None and "goodput" in measurement.values:
        return f"{mbit_per_s(measurement.values['goodput'])} ({percent(measurement.values['efficiency'])})"
    return printable(": ".join(filter(None, (verdict.outcome, verdict.reason))))
