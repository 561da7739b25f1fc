"""Which run may begin beside those under way: a budget of CPU time, and what runs like it were measured to need."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from interop.execution.load import Meter
from interop.model import Run, RunResult

UNKNOWN_NEED = 0.7
"""CPUs that a run is thought to need before one like it was measured."""
BUDGET = 0.9
"""Share of the CPUs that the peaks of runs may need together, which seldom coincide."""
SETTLED = 2.0
"""Seconds between two runs that begin side by side: making containers is work of its own."""
SLOW_START = 3
"""Round trips, besides, of the run that began before: a few milliseconds then decide how far its sender overshoots."""
RAMP = 20.0
"""Seconds after which a run like which none was measured shows in the load what it needs."""
PATIENCE = 0.2
"""Seconds between two looks at whether a run may begin."""
CAUTION = 1.15
"""By how much runs are thought to need more than was measured, each time that neighbours were disturbed."""


@dataclass
class _Turn:
    """A run under way."""

    need: float
    known: bool
    """Its need was measured."""
    begin: float
    """On the monotonic clock."""
    most_neighbours: int = 0

    def promised(self, now: float) -> float:
        """CPUs to be kept for it beside those that are in use now."""
        return self.need if self.known or now - self.begin < RAMP else 0.0


class Admission:
    """Admits runs to testbeds that stand side by side; safe to use from several threads."""

    def __init__(self, cpus: int, meter: Meter, stop: threading.Event, *, measured: bool) -> None:
        """``cpus`` of the machine; not ``measured``: the CPUs are not asked."""
        self._cpus = cpus
        self._meter = meter
        self._stop = stop
        self._measured = measured
        self._caution = 1.0
        self._lock = threading.Lock()
        self._turns: list[_Turn] = []
        self._settled = 0.0
        """When the run that began last will have."""
        self._needs: dict[tuple[str, str, str], float] = {}

    @contextmanager
    def turn(self, run: Run) -> Iterator[_Turn]:
        """Wait until ``run`` may begin; its time is over when the block is left."""
        turn = self._enter(run)
        try:
            yield turn
        finally:
            with self._lock:
                self._turns.remove(turn)

    def learn(self, result: RunResult) -> None:
        """Remember what a run needed."""
        needed = result.evidence.cpu_peak
        if needed is not None:
            key = (result.server, result.client, result.test_case)
            with self._lock:
                self._needs[key] = max(needed, self._needs.get(key, 0.0))

    def disturbed(self) -> None:
        """Be more careful from now on: a run was disturbed by its neighbours."""
        with self._lock:
            self._caution *= CAUTION

    def need(self, run: Run) -> float | None:
        """CPUs that ``run`` needs: as measured, else as the hungriest with one of its endpoints; None if unknown."""
        key = (run.server.name, run.client.name, run.test_case.name)
        if key in self._needs:
            return self._needs[key]
        alike = [
            need
            for (server, client, case), need in self._needs.items()
            if case == key[2] and (server == key[0] or client == key[1])
        ]
        return max(alike, default=None)

    def _enter(self, run: Run) -> _Turn:
        while True:
            with self._lock:
                need = self.need(run)
                turn = _Turn(UNKNOWN_NEED if need is None else need, need is not None, time.monotonic())
                if self._stop.is_set() or self._fits(turn):
                    self._turns.append(turn)
                    self._settled = turn.begin + SETTLED + SLOW_START * run.test_case.link.round_trip_delay
                    for each in self._turns:
                        each.most_neighbours = max(each.most_neighbours, len(self._turns) - 1)
                    return turn
            self._stop.wait(PATIENCE)

    def _fits(self, turn: _Turn) -> bool:
        if not self._turns:
            return True
        if turn.begin < self._settled:
            return False
        if not self._measured:
            return True
        promised = self._caution * sum(each.promised(turn.begin) for each in self._turns)
        used = self._cpus * (self._meter.now() or 0.0)
        return max(promised, used) + self._caution * turn.need <= BUDGET * self._cpus
