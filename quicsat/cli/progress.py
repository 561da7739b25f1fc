"""Progress of a campaign: a live view on a terminal, else a line per finished run with the estimated time left."""

import time
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from quicsat.cli import console
from quicsat.execution.observer import Observer
from quicsat.model.clock import Clock
from quicsat.model.outcomes import Outcome
from quicsat.model.real_link import CLOCKS
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.run import Run, RunKey
from quicsat.model.text import printable
from quicsat.model.units import mbit_per_s, percent
from quicsat.plan.duration_estimate import Durations, Span

PAST = 3
"""Newest campaigns from which durations are estimated."""


def earlier_campaigns(root: Path, clock: Clock, resumed: ResultSet | None = None) -> tuple[ResultSet, ...]:
    """The newest campaigns in the folder ``root`` with that clock, after the one that is ``resumed``, if any."""
    from quicsat.results import store

    others = [each for each in store.newest(root / "results", PAST) if each.manifest.clock is clock]
    if resumed is None:
        return tuple(others)
    return resumed, *(each for each in others if each.manifest.id != resumed.manifest.id)


def lines(past: Sequence[ResultSet] = ()) -> Observer:
    """Prints messages, and a line per finished run; ``past``: earlier campaigns, for estimates of durations."""
    progress = Progress(past)

    def done(result: RunResult) -> None:
        line = progress.line(result)
        if result.verdict.outcome is not Outcome.SKIPPED:  # one message announces all skipped runs of a pair
            console.message(line)

    return Observer(console.message, done=done, planned=progress.begin)


class Progress:
    """Estimates how long the runs that are left take."""

    def __init__(self, past: Iterable[ResultSet] = ()) -> None:
        """``past``: earlier campaigns, from which durations are estimated."""
        self._left: dict[RunKey, list[Run]] = {}
        """Several builds of an implementation may have runs with one key."""
        self.planned = self.finished = 0
        """Numbers of runs."""
        self._durations = Durations(past)
        self._spent = 0.0
        self._begin = time.monotonic()
        self._warned: set[str] = set()

    def begin(self, runs: Sequence[Run]) -> None:
        """Take note of the runs that are to be made."""
        self._left = {}
        for run in runs:
            self._left.setdefault(run.key, []).append(run)
        self.planned = len(runs)
        self._begin = time.monotonic()

    def line(self, result: RunResult) -> str:
        """The line for a result."""
        self.learn(result)
        left, warning = self.left(), self.warning(result)
        rest = f"  about {left} left" if left is not None else ""
        return f"[{self.finished}/{self.planned}] {result.key}: {in_words(result)}{rest}" + (
            f"\n{warning}" if warning else ""
        )

    def learn(self, result: RunResult) -> None:
        """Take note of how long a run took, which is not left any more."""
        self.finished += 1
        runs = self._left.get(result.key)
        if runs:
            self._durations.learn(runs.pop().test_case, result)
        self._spent += sum(result.evidence.phases.values())

    def warning(self, result: RunResult) -> str:
        """A warning about the clocks of hosts, once per test case; else empty."""
        found = [note for note in (result.measurement.notes if result.measurement else ()) if note.startswith(CLOCKS)]
        if not found or result.test_case in self._warned:
            return ""
        self._warned.add(result.test_case)
        return f"warning: {found[0]}"

    def left(self) -> Span | None:
        """The estimated time left at the present rate, with as many runs at a time as now; None at the end."""
        left = list(chain.from_iterable(self._left.values()))
        if not left:
            return None
        total = self._durations.total(left)
        pace = min((time.monotonic() - self._begin) / self._spent, 1.0) if self._spent else 1.0
        return Span(total.low * pace, total.high * pace)


def in_words(result: RunResult) -> str:
    """Goodput and efficiency of a run that succeeded, else its outcome and the reason."""
    verdict, measurement = result.verdict, result.measurement
    if verdict.outcome is Outcome.SUCCEEDED and measurement is not None and "goodput" in measurement.values:
        return f"{mbit_per_s(measurement.values['goodput'])} ({percent(measurement.values['efficiency'])})"
    return printable(": ".join(filter(None, (verdict.outcome, verdict.reason))))
