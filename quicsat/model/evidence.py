"""Evidence of a run, before any analysis: exit statuses, times, facts about the host, the report of the link."""

from dataclasses import dataclass, field
from enum import StrEnum
from signal import SIGXCPU

from quicsat.model.clock import Clock
from quicsat.model.emulated_link import Interval, SimulatorReport
from quicsat.model.perturbation import NOMINAL, Perturbation
from quicsat.model.real_link import RealLinkReport
from quicsat.model.run_key import File


@dataclass(frozen=True)
class Exit:
    """How a container ended, from the daemon's ``inspect``."""

    status: int | None
    """Exit status; None if it never started."""
    out_of_memory: bool = False
    killed: bool = False
    """The runner ended it; its status says nothing about the endpoint."""
    life: Interval | None = None
    """From its start to its end by the clock of the run: of its daemon's host, or simulated; None if unknown."""


COMPUTED_STATUS = 128 + SIGXCPU
"""Exit status, with ``killed``, of a program that the runner ended because it computed without end in virtual time."""
LINK_END = 5.0
"""Seconds that the link of a run in virtual time may need to end after both endpoints."""
CROWDED = 0.9
"""Share of the CPU time in use over two seconds above which the endpoints of a run may have waited for a CPU."""


@dataclass(frozen=True)
class HostFacts:
    """The machine on which a run took place."""

    kernel: str
    architecture: str
    cpus: int
    memory: int
    engine: str
    load_before: float
    """Load average of one minute before the run."""
    cpu_pressure: float | None = None
    """Share of the run in which a task waited for a CPU (/proc/pressure/cpu); None if unknown."""
    cpu_busy: float | None = None
    """Largest share of all CPU time in use over two seconds of the run, 0..1; None if unknown."""
    cpu_crowded: float | None = None
    """Share of the windows of two seconds in which more than CROWDED of the CPU time was in use, 0..1; None if
    unknown, and in results of versions that did not record it."""
    neighbours: int = 0
    """Largest number of other runs of the same campaign at the same time."""
    processor: str = ""
    """Name of the first CPU, in newer results also its model and a digest of its instruction sets; empty if unknown."""


class Deadline(StrEnum):
    """Phases of a run that have a deadline of their own."""

    READY = "ready"
    TRANSFER = "transfer"


@dataclass(frozen=True)
class ResourceUse:
    """What the container of an endpoint used."""

    cpu_user: float
    cpu_system: float
    """CPU seconds in the program itself, and in the kernel on its behalf."""
    memory_peak: int
    """Largest memory without the page cache, bytes."""
    system_calls: int | None = None
    """None if the kernel does not let quicsat count them."""
    sends: int | None = None
    receives: int | None = None
    waits: int | None = None
    """Those among ``system_calls`` that send or receive packets, or wait for one, for a time or for another thread;
    None also in results of versions that did not count them apart."""


@dataclass(frozen=True)
class FlowEvidence:
    """What is known of a further flow beside its traces; see ``Evidence``."""

    client: Exit | None = None
    server: Exit | None = None
    downloaded: tuple[File, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """Evidence of a run. Its traces and logs are in the run's directory."""

    started: str
    """UTC, RFC 3339."""
    seed: int
    """Of its random numbers, 1 or more; 0 if unknown."""
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds spent per phase, on a monotonic clock."""
    client: Exit | None = None
    server: Exit | None = None
    timed_out: Deadline | None = None
    fault_code: str = ""
    fault: str = ""
    """A fault of the runner or the machine, if any: the run says nothing about the pair."""
    offered: tuple[File, ...] = ()
    downloaded: tuple[File, ...] = ()
    images: dict[str, str] = field(default_factory=dict)
    """Image id of client, server, and simulator or link tools."""
    simulator: SimulatorReport | None = None
    real_link: RealLinkReport | None = None
    host: HostFacts | None = None
    cpu_peak: float | None = None
    """CPUs that both endpoints and the link used together, at most, over two seconds; None if unknown."""
    use: dict[str, ResourceUse] = field(default_factory=dict)
    """Of ``client``, ``server``, and in further flows ``client-2`` and so on; empty in virtual time, at daemons of
    other machines, and in results of versions that did not record it."""
    notes: tuple[str, ...] = ()
    """Remarks for the reader, for example that a log was cut."""
    flows: tuple[FlowEvidence, ...] = ()
    """Further flows, in the order of the test case; all clients fetch the files that are ``offered``."""
    clock: Clock = Clock.REAL
    """The clock of exits, traces and deadlines; ``started`` and ``phases`` are always real time."""
    perturbation: Perturbation = NOMINAL
    """How the run differed from the nominal one beside its losses."""

    @property
    def span(self) -> float | None:
        """Longest time that traces of the run can cover, seconds by its clock; None if unknown.

        An endpoint may end long before the others, which go on.
        """
        if self.clock is Clock.REAL:
            return sum(self.phases.values()) if self.phases else None
        ends = (self.client, self.server, *(end for flow in self.flows for end in (flow.client, flow.server)))
        lives = [end.life for end in ends if end is not None and end.life is not None]
        return max(life.end for life in lives) - min(life.begin for life in lives) + LINK_END if lives else None

    @property
    def transfer_time(self) -> float:
        """Seconds from the start of the client to the end of the transfer by the clock of the run; 0 if unknown."""
        if self.clock is Clock.VIRTUAL:
            return self.client.life.end - self.client.life.begin if self.client and self.client.life else 0.0
        return self.phases.get("transfer", 0.0)

    @property
    def overhead(self) -> float:
        """Seconds that the run took beyond the transfer."""
        return sum(duration for phase, duration in self.phases.items() if phase != "transfer")
