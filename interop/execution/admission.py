"""When a run may begin beside those under way: by the rates of their links, CPU time, and their slow starts.

A sender that waits some milliseconds for a CPU while it looks for the rate of the link overshoots by more, or by less,
than it would alone. Making containers, and fetching what they left, is much work for an engine; so nothing is made
meanwhile, and files are fetched slowly.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from interop.execution.load import Meter
from interop.model import Link, Run, RunResult

SERVED_RATE = 100e6
"""Bit/s of links side by side whose simulators, a fifth of a CPU for 20 Mbit/s each, want one CPU together at most."""
UNKNOWN_NEED = 0.7
"""CPUs that a run is thought to need before one like it was measured."""
BUDGET = 0.9
"""Share of the CPUs that the peaks of runs may need together, which seldom coincide."""
INITIAL_WINDOW = 14_720
"""Bytes that a sender may send before it hears of any (RFC 9002, section 7.2)."""
HANDSHAKE = 1
"""Round trips from the start of a client until the server begins to send."""
SETTLED = 2.0
"""Seconds between two runs that begin side by side: the load is looked at over as many."""
RAMP = 20.0
"""Seconds after which a run like which none was measured shows in the load what it needs."""
PATIENCE = 0.1
"""Seconds between two looks at whether a run may begin."""
REST = 0.004
"""Seconds between two pieces of files that are moved during a slow start."""
CAUTION = 1.15
"""By how much runs are thought to need more than was measured, each time that neighbours were disturbed."""
AGAIN = 20.0
"""Seconds within which neighbours were disturbed by the same."""


def slow_start(link: Link) -> float:
    """Seconds from the start of a client until its server, doubling its window, has filled the link."""
    window = link.forward_rate * link.round_trip_delay / 8
    return (HANDSHAKE + math.log2(1 + window / INITIAL_WINDOW)) * link.round_trip_delay


@dataclass
class Turn:
    """A run under way, from the making of its containers to their removal."""

    need: float
    """CPUs."""
    known: bool
    """Its need was measured."""
    rate: float
    """Bit/s of its link."""
    slow_start: float
    """Seconds that it lasts."""
    admitted: float
    """On the monotonic clock."""
    most_neighbours: int = 0
    """Runs that were under way beside it, until their clients ended."""
    making: bool = True
    """Its client has not been started."""
    delicate_until: float = 0.0
    """End of its slow start, on the monotonic clock."""
    over: bool = False
    """Its client has ended."""

    def promised(self, now: float) -> float:
        """CPUs to be kept for it beside those that are in use now."""
        return self.need if self.known or now - self.admitted < RAMP else 0.0

    def begun(self) -> None:
        """Its client has been started."""
        self.making, self.delicate_until = False, time.monotonic() + self.slow_start

    def ended(self) -> None:
        """Its client has ended: from now on it needs next to no CPU time, and its link is idle."""
        self.making, self.delicate_until, self.need, self.rate, self.over = False, 0.0, 0.0, 0.0, True


class Admission:
    """Admits runs to testbeds that stand side by side; safe to use from several threads."""

    def __init__(self, cpus: int, meter: Meter, stop: threading.Event, *, measured: bool) -> None:
        """``cpus`` of the machine; not ``measured``: neither they nor the rates of links are asked."""
        self._cpus = cpus
        self._meter = meter
        self._stop = stop
        self._measured = measured
        self._caution = 1.0
        self._warned = -math.inf
        """When a run was disturbed that made it more careful, on the monotonic clock."""
        self._lock = threading.Lock()
        self._moving = threading.Lock()
        """Held while one of those who move files rests, so that all together are no faster than one."""
        self._turns: list[Turn] = []
        self._needs: dict[tuple[str, str, str], float] = {}

    @contextmanager
    def turn(self, run: Run) -> Iterator[Turn]:
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
        """Be more careful from now on: a run was disturbed by its neighbours; all by the same count once."""
        with self._lock:
            now = time.monotonic()
            if now - self._warned > AGAIN:
                self._warned, self._caution = now, self._caution * CAUTION

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

    def give_way(self) -> None:
        """Rest for a moment if a run is in its slow start; who moves files calls it before each piece."""
        with self._lock:
            calm = self._calm()
        if not calm:
            with self._moving:
                self._stop.wait(REST)

    def _calm(self) -> bool:
        now = time.monotonic()
        return all(each.delicate_until <= now for each in self._turns)

    def _enter(self, run: Run) -> Turn:
        while True:
            with self._lock:
                need, now = self.need(run), time.monotonic()
                known, link = need is not None, run.test_case.link
                turn = Turn(UNKNOWN_NEED if need is None else need, known, link.forward_rate, slow_start(link), now)
                if self._stop.is_set() or self._fits(turn):
                    self._turns.append(turn)
                    under_way = [each for each in self._turns if not each.over]
                    for each in under_way:
                        each.most_neighbours = max(each.most_neighbours, len(under_way) - 1)
                    return turn
            self._stop.wait(PATIENCE)

    def _fits(self, turn: Turn) -> bool:
        if not self._turns:
            return True
        if any(each.making or turn.admitted < each.admitted + SETTLED for each in self._turns) or not self._calm():
            return False
        if not self._measured:
            return True
        if sum(each.rate for each in (turn, *self._turns)) > SERVED_RATE:
            return False
        promised = self._caution * sum(each.promised(turn.admitted) for each in self._turns)
        used = self._cpus * (self._meter.now() or 0.0)
        return max(promised, used) + self._caution * turn.need <= BUDGET * self._cpus
