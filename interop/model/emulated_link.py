"""Emulated links: what the simulator is configured with and what it reports; frozen values in SI base units.

Forward is server to client, return is client to server. "Packets" are those of the transfer: UDP, or TCP in a run over
TCP; losses, corruption and counters concern only them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# ---- configuration ----------------------------------------------------------------------


class QueueMode(StrEnum):
    """How a configured queue length becomes a buffer."""

    EXACT = "exact"
    """Exactly the configured number of packets."""
    PAPER = "paper"
    """As in QIR-SE: asymmetric-p2p 100 packets more, all others 1 packet more."""


@dataclass(frozen=True)
class UniformLoss:
    """Independent loss of packets."""

    rate: float
    """Share of packets lost, 0..1."""
    longest_burst: int | None = None
    """Most packets lost in a row; the next one passes, so the loss is less than ``rate``. None: no limit."""


@dataclass(frozen=True)
class GilbertElliottLoss:
    """Bursty loss: two states, a packet in the bad one is lost (Gilbert 1960, Elliott 1963)."""

    good_to_bad: float
    bad_to_good: float


Loss = UniformLoss | GilbertElliottLoss


def loss_share(loss: Loss | None) -> float:
    """Packets that are lost on average, 0..1."""
    match loss:
        case UniformLoss(rate=rate):
            return rate
        case GilbertElliottLoss(good_to_bad=start, bad_to_good=end) if start + end > 0:
            return start / (start + end)
    return 0.0


class CorruptionMode(StrEnum):
    """Effect on a corrupted packet."""

    BYTE = "byte"
    """One of the first 50 bytes of its payload has another value; UDP's checksum fits, so that QUIC has to notice."""
    LOSS = "loss"
    """It is lost, as in the QUIC Interop Runner since September 2024."""


@dataclass(frozen=True)
class Corruption:
    """Independent corruption of packets (scenario corrupt-rate)."""

    rate: float
    """Share of packets corrupted, 0..1."""
    longest_burst: int | None = None
    """As in :class:`UniformLoss`."""
    mode: CorruptionMode = CorruptionMode.BYTE


class TimersFrom(StrEnum):
    """Origin of the times of a scenario."""

    FIRST_PACKET = "first packet"
    """The client's first packet."""
    START = "start"
    """The start of the simulation, before the client's, as in the QUIC Interop Runner."""


class LinkDirection(StrEnum):
    """Directions, in the words of the QUIC Interop Runner."""

    BOTH = "both"
    CLIENT = "toclient"
    SERVER = "toserver"


@dataclass(frozen=True)
class Blackhole:
    """Periods in which no packet of any protocol arrives (scenario blackhole)."""

    on: float
    """Seconds for which the link works."""
    off: float
    """Seconds for which it then does not."""
    repeat: int = 1
    """Number of such periods; afterwards the link works."""
    direction: LinkDirection = LinkDirection.BOTH
    timers_from: TimersFrom = TimersFrom.FIRST_PACKET


@dataclass(frozen=True)
class Rebind:
    """A NAT in front of the client that gives all its flows new ports, IPv4 and IPv6 (scenario rebind)."""

    first: float
    """Seconds until the first change."""
    period: float | None = None
    """Seconds between changes; None for a single change."""
    address: bool = False
    """The address changes, too."""
    timers_from: TimersFrom = TimersFrom.FIRST_PACKET


@dataclass(frozen=True)
class CrossTraffic:
    """A TCP flow of the host's kernel, server to client, on the same link (scenario tcp-cross-traffic)."""

    congestion_control: str = "cubic"


@dataclass(frozen=True)
class EmulatedLink:
    """A link emulated by the simulator."""

    scenario: str
    """Name of the ns-3 program, a folder of ns3-scenarios/."""
    forward_delay: float
    return_delay: float
    """One-way propagation delay, seconds."""
    forward_rate: float
    return_rate: float
    """Link rate, bit/s."""
    forward_queue: int
    return_queue: int
    """Packets that fit into the buffer in front of the link."""
    forward_loss: Loss | None = None
    return_loss: Loss | None = None
    queue_mode: QueueMode = QueueMode.EXACT
    # each of the following only in its own scenario
    forward_corruption: Corruption | None = None
    return_corruption: Corruption | None = None
    forward_drops: tuple[int, ...] = ()
    return_drops: tuple[int, ...] = ()
    """Packets that are dropped, counted from 1 per direction where they arrive (scenario droplist)."""
    blackhole: Blackhole | None = None
    rebind: Rebind | None = None
    cross_traffic: CrossTraffic | None = None

    @property
    def round_trip_delay(self) -> float:
        """Both propagation delays together, seconds."""
        return self.forward_delay + self.return_delay


# ---- report -----------------------------------------------------------------------


@dataclass(frozen=True)
class LinkCounters:
    """Counters of the simulator in one direction."""

    received: int
    """Packets that came from the sender."""
    delivered: int
    """Packets handed to the receiver, corrupted ones too."""
    queue_drops: int
    loss_drops: int
    corrupted: int = 0
    listed_drops: int = 0
    """Packets dropped by the list of the link."""
    blackhole_drops: int = 0
    nat_drops: int = 0
    """Packets to an address and port that the NAT in front of the client does not, or no longer, know."""


@dataclass(frozen=True)
class NatMapping:
    """What a NAT made of a flow's address and port, each as ``193.167.0.100:4433`` or ``[fd00::1]:4433``."""

    inside: str
    outside: str


@dataclass(frozen=True)
class Rebinding:
    """A change of the mappings of the NAT in front of the client."""

    time: float
    """Seconds since 1970."""
    mappings: tuple[NatMapping, ...]
    """The mappings from then on."""


@dataclass(frozen=True)
class Interval:
    """From one time to another, seconds since 1970."""

    begin: float
    end: float


@dataclass(frozen=True)
class CrossTrafficReport:
    """What a competing TCP flow achieved."""

    begin: float
    """Time of its first acknowledged byte, seconds since 1970."""
    end: float
    """Time of its last one."""
    acknowledged: int
    """Bytes of payload that its receiver had acknowledged by then."""
    goodput: float
    """Bytes acknowledged after the first acknowledgement, over the time from then until the simulator stopped, bit/s; 0
    if there was one acknowledgement or none. Older simulators count the first one, too, and stop at the last."""
    per_second: tuple[int, ...]
    """Bytes acknowledged in each second since ``begin``."""
    delivered: int
    """Packets with payload that arrived at its receiver."""
    queue_drops: int
    """Packets that did not fit into the queue."""


@dataclass(frozen=True)
class DirectionLateness:
    """How late the frames of one direction left the simulator."""

    frames: int
    """Frames that were due between the client's start and end."""
    late: int
    """Those of them that left later than :attr:`Lateness.bound`."""
    maximum: float
    """Largest lateness between the client's start and end, seconds, to a tenth of a second at both ends of it."""
    p50: float
    p99: float
    p999: float
    """Percentiles of the whole run of the simulator, seconds, at most 12 % too large."""


@dataclass(frozen=True)
class Lateness:
    """The difference between the time at which a frame was due and the time at which it was sent, for every frame."""

    bound: float
    """Seconds beyond which a frame counts as late: it depends on the link."""
    life: float
    """Seconds from the client's start to its end; the whole run of the simulator if these are not known."""
    stalled: float
    """Seconds of it during which a late frame waited to be sent."""
    stalls: int
    """Number of such intervals."""
    longest_stall: float
    """Longest such interval, seconds."""
    forward: DirectionLateness
    back: DirectionLateness

    @property
    def late_share(self) -> float:
        """Late frames of all frames of both directions, 0..1; 0 without frames."""
        frames = self.forward.frames + self.back.frames
        return min((self.forward.late + self.back.late) / frames, 1.0) if frames else 0.0

    @property
    def stalled_share(self) -> float:
        """Share of that time during which a late frame waited, 0..1."""
        return min(self.stalled / self.life, 1.0) if self.life > 0 else 0.0

    @property
    def maximum(self) -> float:
        """Largest lateness in either direction, seconds."""
        return max(self.forward.maximum, self.back.maximum)


@dataclass(frozen=True)
class SimulatorReport:
    """The simulator's report after a run."""

    started: float
    """Wall clock at which forwarding began, seconds since 1970."""
    realtime_priority: bool
    lag_mean: float
    lag_max: float
    """How far the simulation fell behind the wall clock, seconds, looked at 100 times per second from its start to its
    end. Only reports without ``lateness`` are judged by it."""
    receive_overflows: int
    """Frames that the kernel dropped because the simulator did not read them in time."""
    forward: LinkCounters
    back: LinkCounters
    """The return direction (``return`` is no name in Python)."""
    blackholes: tuple[Interval, ...] = ()
    rebinds: tuple[Rebinding, ...] = ()
    cross_traffic: CrossTrafficReport | None = None
    lateness: Lateness | None = None
    """None in reports of simulators that did not record it (before version 2 of the simulator's image)."""

    @property
    def largest_lag(self) -> float:
        """Largest lateness of a frame between the client's start and end, seconds; the largest lag in old reports."""
        return self.lateness.maximum if self.lateness else self.lag_max
