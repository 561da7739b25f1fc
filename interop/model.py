"""The nouns of the project: frozen values, in SI base units, without behaviour of their own.

Seconds, bit/s, bytes and shares (0..1) throughout. Verbs live in the modules named after them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import PurePosixPath

from interop.access import Baseline as Baseline
from interop.access import CaptureReport as CaptureReport
from interop.access import Host as Host
from interop.access import RealLink as RealLink
from interop.access import RealLinkReport as RealLinkReport
from interop.access import Scheduler as Scheduler
from interop.access import Tls as Tls
from interop.emulation import Blackhole as Blackhole
from interop.emulation import Corruption as Corruption
from interop.emulation import CorruptionMode as CorruptionMode
from interop.emulation import CrossTraffic as CrossTraffic
from interop.emulation import CrossTrafficReport as CrossTrafficReport
from interop.emulation import DirectionLateness as DirectionLateness
from interop.emulation import EmulatedLink as EmulatedLink
from interop.emulation import GilbertElliottLoss as GilbertElliottLoss
from interop.emulation import Interval as Interval
from interop.emulation import Lateness as Lateness
from interop.emulation import LinkCounters as LinkCounters
from interop.emulation import Loss as Loss
from interop.emulation import Mapping as Mapping
from interop.emulation import QueueMode as QueueMode
from interop.emulation import Rebind as Rebind
from interop.emulation import Rebinding as Rebinding
from interop.emulation import SimulatorReport as SimulatorReport
from interop.emulation import TimersFrom as TimersFrom
from interop.emulation import Towards as Towards
from interop.emulation import UniformLoss as UniformLoss
from interop.rules import Check as Check
from interop.rules import Rules as Rules
from interop.stack import CongestionControl as CongestionControl
from interop.stack import Contract as Contract
from interop.stack import Implementation as Implementation
from interop.stack import Protocol as Protocol
from interop.stack import Role as Role
from interop.stack import Variant as Variant
from interop.verdicts import Cause as Cause
from interop.verdicts import ErrorCode as ErrorCode
from interop.verdicts import Outcome as Outcome
from interop.verdicts import Verdict as Verdict

Link = EmulatedLink | RealLink
"""What carries the packets of a test case."""

# ---- what can be measured -------------------------------------------------------------------


@dataclass(frozen=True)
class TestCase:
    """What is transferred over which link, how often, and what must hold."""

    __test__ = False  # pytest: not a class of tests

    name: str
    abbreviation: str
    description: str
    link: Link
    file_sizes: tuple[int, ...]
    """Bytes of each file that the client has to fetch."""
    repetitions: int
    timeout: float
    """Deadline of the transfer, from the start of the client, seconds."""
    client_test: str = "transfer"
    server_test: str = "transfer"
    """What the endpoints see as TESTCASE."""
    server_name: str = "server4"
    """Host part of the URLs: server4, server6 or server46."""
    source: str = ""
    """File that the test case was read from."""
    check: Check | None = None
    """What a functional test must pass; None for a measurement."""
    rules: Rules = Rules.STANDARD
    chain_length: int = 1
    """Certificates that the server sends: the leaf and those between it and the root."""
    name_length: int = 16
    """Characters of each file's name."""

    @property
    def emulated(self) -> EmulatedLink:
        """Its link, which must be emulated; raises TypeError if it is real."""
        if isinstance(self.link, EmulatedLink):
            return self.link
        raise TypeError(f"{self.name} has a real link")

    @property
    def real(self) -> bool:
        """Whether its link is a real one."""
        return isinstance(self.link, RealLink)

    @property
    def functional(self) -> bool:
        """Whether runs of it only pass or fail."""
        return self.check is not None

    @property
    def total_size(self) -> int:
        """Bytes of all files together."""
        return sum(self.file_sizes)


# ---- what is to be done ---------------------------------------------------------------------

TRANSFER = "transfer"
PROTOCOL_TESTS = {Protocol.HQ: TRANSFER, Protocol.H3: "http3", Protocol.TCP: "tcp"}
"""The TESTCASE in which endpoints transfer files over a protocol."""


@dataclass(frozen=True)
class Run:
    """One transfer of the plan."""

    server: Implementation
    client: Implementation
    test_case: TestCase
    repetition: int
    """Counted from 1."""
    seed: int
    """Seed of the simulator's random numbers; the same for all pairs of a test case's repetition."""
    protocol: Protocol = Protocol.HQ

    @property
    def path(self) -> PurePosixPath:
        """Directory of the run below the campaign directory: ``quic-go_picoquic+bbr/sat/1``."""
        pair = f"{self.server.folder}_{self.client.folder}"
        return PurePosixPath(pair, self.test_case.name, str(self.repetition))

    @property
    def as_told(self) -> TestCase:
        """The test case as the endpoints hear of it: a transfer over another protocol than hq has another name."""
        test = PROTOCOL_TESTS[self.protocol]
        client, server = self.test_case.client_test, self.test_case.server_test
        return replace(
            self.test_case,
            client_test=test if client == TRANSFER else client,
            server_test=test if server == TRANSFER else server,
        )


# ---- what happened --------------------------------------------------------------------------


@dataclass(frozen=True)
class File:
    """A file that was offered by the server, or found at the client."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Exit:
    """How a container ended, as its daemon's ``inspect`` tells it."""

    status: int | None
    """Exit status; None if it never started."""
    out_of_memory: bool = False
    killed: bool = False
    """We ended it; its status says nothing about the endpoint."""
    life: Interval | None = None
    """From its start to its end by the clock of its daemon's host; None if the daemon does not tell."""


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
    """Share of the run in which a task waited for a CPU (/proc/pressure/cpu); None if not told."""
    cpu_busy: float | None = None
    """Largest share of all CPU time in use over two seconds of the run, 0..1; None if not told."""
    cpu_crowded: float | None = None
    """Share of the windows of two seconds in which more than CROWDED of the CPU time was in use, 0..1; None if not
    told, and in results of versions that did not record it."""
    neighbours: int = 0
    """Most runs of the same campaign that were under way beside this one at the same time."""
    processor: str = ""
    """What the machine's first CPU is called; empty if not told."""


class Deadline(StrEnum):
    """Phases of a run that have a deadline of their own."""

    CREATE = "create"
    READY = "ready"
    TRANSFER = "transfer"
    COLLECT = "collect"
    REMOVE = "remove"


@dataclass(frozen=True)
class Evidence:
    """What a run left, without judgement. Its traces and logs lie in the run's directory."""

    started: str
    """UTC, RFC 3339."""
    seed: int
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds spent per phase, on a monotonic clock."""
    client: Exit | None = None
    server: Exit | None = None
    timed_out: Deadline | None = None
    fault_code: str = ""
    fault: str = ""
    """Our own fault, if any: the run says nothing about the pair."""
    offered: tuple[File, ...] = ()
    downloaded: tuple[File, ...] = ()
    images: dict[str, str] = field(default_factory=dict)
    """Image id of client, server, and simulator or link tools."""
    simulator: SimulatorReport | None = None
    real_link: RealLinkReport | None = None
    host: HostFacts | None = None
    cpu_peak: float | None = None
    """CPUs that both endpoints and the link used together, at most, over two seconds; None if that was not seen."""
    notes: tuple[str, ...] = ()
    """What a reader should know, e.g. that a log was cut."""

    @property
    def overhead(self) -> float:
        """Seconds that the runner added to the endpoints' own time."""
        return sum(duration for phase, duration in self.phases.items() if phase != "transfer")


# ---- what it means --------------------------------------------------------------------------


@dataclass(frozen=True)
class Measurement:
    """The numbers of one run; units and labels are in ``interop.analysis.metrics.METRICS``."""

    values: dict[str, float]
    notes: tuple[str, ...] = ()
    """Restrictions of these numbers, e.g. that no key log allowed to check the stream."""


@dataclass(frozen=True)
class RunResult:
    """One line of the journal: what was run, what became of it, and its evidence."""

    server: str
    client: str
    test_case: str
    repetition: int
    attempt: int
    """Counted from 1; more than 1 after attempts that were excluded, or that somebody had repeated."""
    verdict: Verdict
    evidence: Evidence
    measurement: Measurement | None = None
    protocol: Protocol = Protocol.HQ


@dataclass(frozen=True)
class Compliance:
    """Whether an image answers an unknown test name with exit status 127, in one role."""

    implementation: str
    role: Role
    compliant: bool
    reason: str
    image: str
    """Image id."""


@dataclass(frozen=True)
class Provenance:
    """What an image is made from, as its labels tell it; fields of an image that does not tell are empty."""

    source: str = ""
    """Package and version that it is built from; from the label org.quicsat.source, as the names of the others."""
    repository: str = ""
    """Address of the stack's sources, from org.opencontainers.image.source."""
    revision: str = ""
    """Commit of the sources, from org.opencontainers.image.revision; empty if the package does not tell it."""
    patches: tuple[str, ...] | None = None
    """Names of the package's patches that the build applied; None if not told."""
    changes: str = ""
    """What our Dockerfile changes in the sources beyond that."""
    build_type: str = ""
    gso: str = ""
    """``yes`` or ``no``: whether the program sends several UDP datagrams with one call (UDP_SEGMENT)."""


@dataclass(frozen=True)
class ImageFacts:
    """An image as it was used in a campaign."""

    reference: str
    id: str
    digests: tuple[str, ...] = ()
    created: str = ""
    size: int = 0
    version: str = ""
    """Of the implementation, from the image's label org.opencontainers.image.version; empty if not told."""
    source: str = ""
    """local, pulled or built."""
    provenance: Provenance = Provenance()


@dataclass(frozen=True)
class Schedule:
    """How a campaign was asked to spread its runs, for whoever continues it."""

    testbeds: int | None = 1
    """Most runs at the same time; None for as many as the machine has time for."""
    breaker: int | None = None
    """As in :class:`interop.limits.Limits`."""
    budget: float | None = None
    """The same."""


@dataclass(frozen=True)
class Manifest:
    """What a campaign set out to do, known before its first run."""

    id: str
    started: str
    """UTC, RFC 3339."""
    command: tuple[str, ...]
    tool_version: str
    seed: int
    servers: tuple[str, ...]
    clients: tuple[str, ...]
    implementations: tuple[Implementation, ...]
    test_cases: tuple[TestCase, ...]
    images: dict[str, ImageFacts]
    """By implementation name, ``simulator`` and ``link-tools``."""
    planned_runs: int
    options: dict[str, bool] = field(default_factory=dict)
    """``check_compliance``, ``qlog``, ``keep_files``, ``shuffle``: how the campaign was asked to run, for whoever
    continues it."""
    shard: str = ""
    """``2/4``: this campaign is the second part of four; empty if it is the whole plan."""
    schedule: Schedule = Schedule()
    parameters: dict[str, str] | None = None
    """CLIENT_PARAMS, SERVER_PARAMS, CRON and the like with which the campaign began; ``resume`` uses them. None in
    campaigns of versions that did not store them."""


@dataclass(frozen=True)
class ResultSet:
    """All that a campaign has found so far."""

    manifest: Manifest
    compliance: tuple[Compliance, ...]
    results: tuple[RunResult, ...]
    finished: str | None
    """UTC, RFC 3339; None while the campaign runs or after it was cut short."""
    earlier: tuple[RunResult, ...] = ()
    """All other attempts at the runs in ``results``: those that were excluded, and those that somebody had repeated."""
