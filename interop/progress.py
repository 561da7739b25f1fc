"""A line per finished run: what became of it, and how long the rest takes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from interop import tables
from interop.access import CLOCKS
from interop.estimate import Durations, Span
from interop.model import Outcome, ResultSet, Run, RunResult
from interop.units import mbit_per_s, percent


class Progress:
    """What is known of the speed of a campaign."""

    def __init__(self, runs: Sequence[Run], past: Iterable[ResultSet] = ()) -> None:
        """``runs``: all that are to be made; ``past``: campaigns that tell how long such runs take."""
        self._left = {_key(run.server.name, run.client.name, run.test_case.name, run.repetition): run for run in runs}
        self._total = len(runs)
        self._durations = Durations(past)
        self._spent = 0.0
        self._begin = time.monotonic()
        self._warned: set[str] = set()

    def line(self, result: RunResult, finished: int) -> str:
        """What to say of a result when ``finished`` runs are."""
        run = self._left.pop(_key(result.server, result.client, result.test_case, result.repetition), None)
        if run is not None:
            self._durations.learn(run.test_case, result)
        self._spent += sum(result.evidence.phases.values())
        name = f"{result.server}_{result.client}/{result.test_case}/{result.repetition}"
        return f"[{finished}/{self._total}] {name}: {_in_words(result)}{self._rest()}{self._warning(result)}"

    def _warning(self, result: RunResult) -> str:
        """What is wrong with the clocks of hosts, once for each test case."""
        found = [note for note in (result.measurement.notes if result.measurement else ()) if note.startswith(CLOCKS)]
        if not found or result.test_case in self._warned:
            return ""
        self._warned.add(result.test_case)
        return f"\nwarning: {found[0]}"

    def _rest(self) -> str:
        """How long the rest takes if it goes on like this, side by side or one after another."""
        if not self._left:
            return ""
        total = self._durations.total(list(self._left.values()))
        pace = min((time.monotonic() - self._begin) / self._spent, 1.0) if self._spent else 1.0
        return f"  about {Span(total.low * pace, total.high * pace)} left"


def _key(server: str, client: str, test_case: str, repetition: int) -> tuple[str, str, str, int]:
    return server, client, test_case, repetition


def _in_words(result: RunResult) -> str:
    verdict, measurement = result.verdict, result.measurement
    if verdict.outcome is Outcome.SUCCEEDED and measurement is not None and "goodput" in measurement.values:
        return f"{mbit_per_s(measurement.values['goodput'])} ({percent(measurement.values['efficiency'])})"
    return tables.printable(": ".join(filter(None, (verdict.outcome, verdict.reason))))
