"""Admission: how many testbeds stand side by side, and when a run may start, by link rates, CPU time and slow starts.

A sender that waits some milliseconds for a CPU during slow start overshoots by more, or by less, than it would alone.
Creating containers and fetching their files costs the engine much CPU time; so during a slow start no containers are
created, and files are fetched slowly.
"""

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from quicsat.execution.cpu_monitor import CpuMonitor
from quicsat.model.clock import Clock
from quicsat.model.results import RunResult
from quicsat.model.run import Run
from quicsat.model.test_case import Link

SERVED_RATE = 100e6
"""Bit/s of all parallel links together; their simulators need one CPU at most, a fifth of a CPU per 20 Mbit/s."""
AUTO_TESTBEDS = 9
"""Maximum number of testbeds if the CPUs decide how many runs are parallel; about half wait for their analysis."""
UNKNOWN_NEED = 0.7
"""CPUs that a run is assumed to need before a similar one was measured."""
BUDGET = 0.9
"""Share of the CPUs that the peaks of parallel runs may need together; peaks seldom coincide."""
INITIAL_WINDOW = 14_720
"""Bytes of the initial congestion window (RFC 9002, section 7.2)."""
HANDSHAKE = 1
"""Round trips from the start of a client until the server begins to send."""
SETTLED = 2.0
"""Seconds between the starts of two parallel runs; the load is averaged over the same time."""
RAMP = 20.0
"""Seconds after which the load reflects what a run without history needs."""
PATIENCE = 0.1
"""Seconds between two checks of whether a run may start."""
REST = 0.004
"""Seconds between two chunks of files that are fetched during a slow start."""
CAUTION = 1.15
"""Factor on the measured needs of runs, applied again each time that a parallel run was disturbed."""
AGAIN = 20.0
"""Seconds within which disturbed runs count as one event."""


def fitting_testbeds(runs: Sequence[Run], clock: Clock, cpus: int) -> int:
    """Number of testbeds to use on a machine with ``cpus`` CPUs.

    In real time one if a link of ``runs`` is too fast for two parallel runs, else ``AUTO_TESTBEDS``: there are more
    testbeds than parallel transfers, which admission limits, since collecting files takes time as well. In virtual time
    one for each CPU.
    """
    if clock is Clock.VIRTUAL:
        return cpus
    fastest = max((run.test_case.link.forward.rate for run in runs), default=SERVED_RATE)
    return AUTO_TESTBEDS if 2 * fastest <= SERVED_RATE else 1


def slow_start(link: Link) -> float:
    """Seconds from the start of a client until its server, doubling its window every round trip, fills the link."""
    window = link.forward.rate * link.round_trip_delay / 8
    return (HANDSHAKE + math.log2(1 + window / INITIAL_WINDOW)) * link.round_trip_delay


@dataclass
class AdmissionTicket:
    """A run under way, from the creation of its containers to their removal."""

    need: float
    """CPUs that it needs."""
    known: bool
    """Whether ``need`` was measured."""
    rate: float
    """Bit/s of its link."""
    slow_start: float
    """Duration of its slow start, seconds."""
    admitted: float
    """When it was admitted, on the monotonic clock."""
    most_neighbours: int = 0
    """Largest number of other transfers under way during its own."""
    starting: bool = True
    """Whether its client has not been started yet."""
    slow_start_until: float = 0.0
    """End of its slow start, on the monotonic clock."""
    over: bool = False
    """Whether its client has ended."""

    def promised(self, now: float) -> float:
        """CPUs to reserve for it besides those in use now."""
        return self.need if self.known or now - self.admitted < RAMP else 0.0

    def client_started(self) -> None:
        """Call this when its client has been started."""
        self.starting, self.slow_start_until = False, time.monotonic() + self.slow_start

    def client_ended(self) -> None:
        """Call this when its client has ended: it needs next to no CPU time then, and its link is idle."""
        self.starting, self.slow_start_until, self.need, self.rate, self.over = False, 0.0, 0.0, 0.0, True


class Admission:
    """Admits runs to parallel testbeds; safe to use from several threads."""

    def __init__(
        self, cpus: int, monitor: CpuMonitor, stop: threading.Event, *, measured: bool, independent: bool = False
    ) -> None:
        """``cpus``: number of CPUs of the machine; without ``measured``, CPUs and link rates do not limit runs.

        ``independent``: parallel runs do not change each other's results, so that nothing limits them.
        """
        self._independent = independent
        self._cpus = cpus
        self._monitor = monitor
        self._stop = stop
        self._measured = measured
        self._caution = 1.0
        self._warned = -math.inf
        """When a disturbed run last raised the caution, on the monotonic clock."""
        self._lock = threading.Lock()
        self._moving = threading.Lock()
        """Held while a thread that fetches files pauses, so that all together are no faster than one."""
        self._tickets: list[AdmissionTicket] = []
        self._needs: dict[tuple[str, str, str], float] = {}

    @contextmanager
    def admit(self, run: Run) -> Iterator[AdmissionTicket]:
        """Wait until ``run`` may start; its ticket is returned when the block is left."""
        ticket = self._wait(run)
        try:
            yield ticket
        finally:
            with self._lock:
                self._tickets.remove(ticket)

    def record(self, result: RunResult) -> None:
        """Remember how many CPUs a run needed."""
        needed = result.evidence.cpu_peak
        if needed is not None:
            key = result.key[:3]
            with self._lock:
                self._needs[key] = max(needed, self._needs.get(key, 0.0))

    def disturbed(self) -> None:
        """Raise the caution, because a run was disturbed by parallel ones; at most once per ``AGAIN`` seconds."""
        with self._lock:
            now = time.monotonic()
            if now - self._warned > AGAIN:
                self._warned, self._caution = now, self._caution * CAUTION

    def need(self, run: Run) -> float | None:
        """CPUs that ``run`` needs: as measured, else the most of those that share an endpoint; None if unknown."""
        key = run.key[:3]
        if key in self._needs:
            return self._needs[key]
        alike = [
            need
            for (server, client, case), need in self._needs.items()
            if case == key[2] and (server == key[0] or client == key[1])
        ]
        return max(alike, default=None)

    def throttle(self) -> None:
        """Pause for a moment if a run is in its slow start; called before each chunk of a file that is fetched."""
        if self._independent:
            return
        with self._lock:
            calm = self._calm()
        if not calm:
            with self._moving:
                self._stop.wait(REST)

    def _calm(self) -> bool:
        now = time.monotonic()
        return all(each.slow_start_until <= now for each in self._tickets)

    def _wait(self, run: Run) -> AdmissionTicket:
        while True:
            with self._lock:
                need, now = self.need(run), time.monotonic()
                known, link = need is not None, run.test_case.link
                ticket = AdmissionTicket(
                    UNKNOWN_NEED if need is None else need, known, link.forward.rate, slow_start(link), now
                )
                if self._stop.is_set() or self._fits(ticket):
                    self._tickets.append(ticket)
                    under_way = [each for each in self._tickets if not each.over]
                    for each in under_way:
                        each.most_neighbours = max(each.most_neighbours, len(under_way) - 1)
                    return ticket
            self._stop.wait(PATIENCE)

    def _fits(self, ticket: AdmissionTicket) -> bool:
        if not self._tickets or self._independent:
            return True
        if (
            any(each.starting or ticket.admitted < each.admitted + SETTLED for each in self._tickets)
            or not self._calm()
        ):
            return False
        if not self._measured:
            return True
        if sum(each.rate for each in (ticket, *self._tickets)) > SERVED_RATE:
            return False
        promised = self._caution * sum(each.promised(ticket.admitted) for each in self._tickets)
        used = self._cpus * (self._monitor.now() or 0.0)
        return max(promised, used) + self._caution * ticket.need <= BUDGET * self._cpus
