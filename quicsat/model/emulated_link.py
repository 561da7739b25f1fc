"""Emulated links: what the simulator is configured with and what it reports; frozen values in SI base units.

Forward is server to client, return is client to server. "Packets" are those of the transfer: UDP, or TCP in a run over
TCP; through a VPN those of the tunnel. Losses, corruption and counters concern only them.
"""

from __future__ import annotations

import hashlib
import math
import random
from bisect import bisect_right
from dataclasses import astuple, dataclass, replace
from enum import StrEnum
from functools import cached_property
from operator import mul, sub
from typing import Any

from quicsat.model.gateways import EndpointTcp, Pep, Vpn

# ---- configuration ----------------------------------------------------------------------


REAL_TIME_RATE = 150e6
"""The highest rate that the simulator sustains in real time, bit/s (docs/measurements/link.md)."""


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
    """Bursty loss: each packet may change the state, and meets the loss of the new one (Gilbert 1960, Elliott 1963)."""

    good_to_bad: float
    bad_to_good: float
    """Probability of the change with each packet, 0..1. The first packet meets the good state with 1 - good_to_bad."""
    loss_in_good: float = 0.0
    loss_in_bad: float = 1.0
    """Probability that a packet is lost, 0..1."""

    @property
    def bad_share(self) -> float:
        """Share of packets that meet the bad state, 0..1; 0 if the state never changes."""
        changes = self.good_to_bad + self.bad_to_good
        return self.good_to_bad / changes if changes > 0 else 0.0

    @property
    def mean_burst(self) -> float:
        """Mean number of packets lost in a row; infinite if no lost packet is ever followed by one that arrives."""
        lost_in_good, lost_in_bad = (1 - self.bad_share) * self.loss_in_good, self.bad_share * self.loss_in_bad
        in_good, in_bad = 1 - self.loss_in_good, 1 - self.loss_in_bad
        after_good = (1 - self.good_to_bad) * in_good + self.good_to_bad * in_bad
        after_bad = self.bad_to_good * in_good + (1 - self.bad_to_good) * in_bad
        ends = lost_in_good * after_good + lost_in_bad * after_bad
        return (lost_in_good + lost_in_bad) / ends if ends > 0 else math.inf


Loss = UniformLoss | GilbertElliottLoss


def loss_share(loss: Loss | None) -> float:
    """Packets that are lost on average, 0..1."""
    match loss:
        case UniformLoss(rate=rate):
            return rate
        case GilbertElliottLoss(loss_in_good=good, loss_in_bad=bad):
            return (1 - loss.bad_share) * good + loss.bad_share * bad
    return 0.0


class JitterShape(StrEnum):
    """Distribution of an additional delay, by its size s."""

    UNIFORM = "uniform"
    """From 0 to s."""
    EXPONENTIAL = "exponential"
    """With the mean s."""
    NORMAL = "normal"
    """With the mean 3 s and the standard deviation s, cut off at 0 and 6 s."""


@dataclass(frozen=True)
class Jitter:
    """An additional delay of each packet, independent of the others'."""

    size: float
    """Seconds; what it is the size of depends on the shape."""
    shape: JitterShape = JitterShape.UNIFORM
    overtake: bool = False
    """A packet arrives when its delay is over, even before earlier ones. If not, it waits for them."""


@dataclass(frozen=True)
class Reordering:
    """Independently chosen packets are held back while later ones pass."""

    rate: float
    """Share of packets, 0..1."""
    delay: float
    """Seconds for which a packet is held back; with ``gap`` at most."""
    gap: int | None = None
    """A packet arrives behind this many later ones."""


class QueueDiscipline(StrEnum):
    """What a queue drops, marks and sends next."""

    DROP_TAIL = "drop-tail"
    CODEL = "codel"
    FQ_CODEL = "fq-codel"
    PIE = "pie"
    RED = "red"


class QueueUnit(StrEnum):
    """What a queue's limit counts."""

    PACKETS = "packets"
    BYTES = "bytes"
    """IP packets with 2 bytes of PPP."""


@dataclass(frozen=True)
class Queue:
    """A queue other than drop-tail of some packets. None: the discipline's default, or not used by it."""

    discipline: QueueDiscipline
    limit: int
    unit: QueueUnit = QueueUnit.PACKETS
    target: float | None = None
    """Queueing delay that CoDel, FQ-CoDel and PIE aim at, seconds."""
    interval: float | None = None
    """Interval of CoDel and FQ-CoDel, update period of PIE, seconds."""
    ecn: bool = False
    """Packets that support ECN are marked where they would be dropped."""
    mark_above: float | None = None
    """Queueing delay beyond which every packet that supports ECN is marked, seconds."""
    minimum: int | None = None
    maximum: int | None = None
    """Average lengths at which RED's probability is 0 and ``probability``, in ``unit``."""
    probability: float | None = None
    weight: float | None = None
    """Weight of the newest length in RED's average, 0..1."""


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
class UdpCrossTraffic:
    """UDP packets of others at a constant rate, which share the queue and the link with those of the transfer.

    The link neither loses nor delays them otherwise, and they are in no trace.
    """

    rate: float
    """bit/s of its IP packets."""
    packet_size: int = 540
    """Bytes of an IP packet; 512 of payload, as in the QUIC Interop Runner."""
    start: float = 0.0
    """Seconds from the client's first packet to the first one."""


@dataclass(frozen=True)
class Profile:
    """Rate, delay and loss of one direction over time: steps, each of which holds until the next.

    Its time begins at the client's first packet, with ``start``.
    """

    source: str
    """File or generator that it was read or made from."""
    length: float
    """Seconds until its end."""
    times: tuple[float, ...]
    """When each step begins, seconds; the first at 0."""
    rates: tuple[float, ...] = ()
    """bit/s, one for each step, 0 if nothing is sent; empty: the link's own, as for the others."""
    delays: tuple[float, ...] = ()
    """Propagation delay, seconds."""
    losses: tuple[float, ...] = ()
    """Share of packets lost in addition to the link's own loss, 0..1."""
    loop: bool = True
    """Whether it begins again at its end; otherwise the last step holds."""
    start: float | None = 0.0
    """Time of the profile at the client's first packet, seconds; None: random, by the seed of the run."""

    def mean(self, values: tuple[float, ...]) -> float:
        """Mean of one of its columns over its length."""
        lengths = map(sub, (*self.times[1:], self.length), self.times)
        return math.fsum(map(mul, values, lengths)) / self.length

    def mean_between(self, values: tuple[float, ...], begin: float, end: float) -> float:
        """Mean of one of its columns from ``begin`` to a later ``end``, times of the profile in seconds, 0 or more."""
        steps = self.steps_between(values, begin, end)
        ends = [*(time for time, _ in steps[1:]), end]
        return math.fsum(value * (after - time) for (time, value), after in zip(steps, ends, strict=True)) / (
            end - begin
        )

    def steps_between(self, values: tuple[float, ...], begin: float, end: float) -> list[tuple[float, float]]:
        """The steps of one of its columns from ``begin`` to ``end``, times of the profile in seconds, 0 or more.

        When each begins, the first at ``begin``, and its value.
        """
        found = [(begin, self.at(values, begin))]
        turns = range(int(begin // self.length), math.ceil(end / self.length)) if self.loop else range(1)
        for turn in turns:
            times = (turn * self.length + time for time in self.times)
            found += [(time, value) for time, value in zip(times, values, strict=True) if begin < time < end]
        return found

    def at(self, values: tuple[float, ...], time: float) -> float:
        """Value of one of its columns at a time of the profile, seconds, 0 or more."""
        return values[bisect_right(self.times, time % self.length if self.loop else time) - 1]

    def begin(self, seed: int) -> float:
        """Time of the profile at the client's first packet in a run with this seed, whole milliseconds in seconds.

        Random starts of both directions are the same share of their lengths.
        """
        if self.start is not None:
            return self.start
        return int(random.Random(f"start of a profile {seed}").random() * self.length * 1000) / 1000

    @cached_property
    def digest(self) -> str:
        """Identifies its values: 12 hexadecimal digits."""
        return hashlib.sha256(repr(astuple(self)[1:6]).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Demand:
    """Return capacity on demand, a simplification of DVB-RCS2: a terminal requests what it has to send.

    In each frame, it has the slots of the constant rate, and those for requests that are old enough.
    """

    frame: float
    """Seconds."""
    delay: float
    """From a request to the first frame that it can give, seconds."""
    slot: int
    """Bytes of a slot, the unit of assignments."""
    constant_rate: float = 0.0
    """Capacity without requests, bit/s."""


@dataclass(frozen=True)
class Direction:
    """One direction of an emulated link."""

    delay: float
    """Propagation delay, seconds; with a profile that has delays, their mean."""
    rate: float
    """Link rate, bit/s; with a profile that has rates, their mean."""
    queue: int | Queue
    """The buffer in front of the link; a number is that of packets in a drop-tail queue."""
    loss: Loss | None = None
    jitter: Jitter | None = None
    reordering: Reordering | None = None
    duplication: float = 0.0
    """Share of packets that arrive twice, 0..1."""
    profile: Profile | None = None
    udp_cross_traffic: UdpCrossTraffic | None = None
    corruption: Corruption | None = None
    """Only in the scenario corrupt-rate."""
    drops: tuple[int, ...] = ()
    """Packets that are dropped, counted from 1 where they arrive; only in the scenario droplist."""

    @property
    def highest_rate(self) -> float:
        """The highest rate at any time, bit/s."""
        return max((self.rate, *(self.profile.rates if self.profile else ())))

    def scaled(self, delay: float, rate: float) -> Direction:
        """With all propagation delays and rates, also those of its profile, times these factors."""
        profile = self.profile and replace(
            self.profile,
            rates=tuple(each * rate for each in self.profile.rates),
            delays=tuple(each * delay for each in self.profile.delays),
        )
        return replace(self, delay=self.delay * delay, rate=self.rate * rate, profile=profile)


@dataclass(frozen=True)
class ClientSideDirection:
    """One direction of the link at the client's side."""

    delay: float = 0.0
    """Propagation delay, seconds."""
    loss: Loss | None = None
    rate: float | None = None
    """Link rate, bit/s; None if packets neither wait nor take time to be sent."""
    queue: int | Queue | None = None
    """The buffer in front of it, as of :class:`Direction`; None without a rate."""
    jitter: Jitter | None = None

    def scaled(self, delay: float, rate: float) -> ClientSideDirection:
        """With the propagation delay and the rate times these factors."""
        return replace(self, delay=self.delay * delay, rate=self.rate and self.rate * rate)


@dataclass(frozen=True)
class ClientSide:
    """Another link, between the client and its end of the emulated link; with proxies, behind the second one."""

    forward: ClientSideDirection = ClientSideDirection()
    back: ClientSideDirection = ClientSideDirection()

    def scaled(self, delay: float, rate: float) -> ClientSide:
        """With all propagation delays and rates times these factors."""
        return ClientSide(self.forward.scaled(delay, rate), self.back.scaled(delay, rate))


UNKNOWN = "unknown"
"""Scenario of a link whose other values are not known, except perhaps its forward rate: zeros take their places."""


@dataclass(frozen=True)
class EmulatedLink:
    """A link emulated by the simulator."""

    scenario: str
    """Name of the ns-3 program, a folder of ns3-scenarios/."""
    forward: Direction
    back: Direction
    """The return direction (``return`` is no name in Python)."""
    queue_mode: QueueMode = QueueMode.EXACT
    demand: Demand | None = None
    """Of the return direction; None if its whole rate is always there."""
    # each of the following only in its own scenario
    blackhole: Blackhole | None = None
    rebind: Rebind | None = None
    cross_traffic: CrossTraffic | None = None
    # in every scenario
    pep: Pep | None = None
    """Proxies on both sides of the link."""
    endpoint_tcp: EndpointTcp | None = None
    """Of the endpoints; None: as their machine has them."""
    vpn: Vpn | None = None
    """A tunnel between both sides of the link; then the link's packets are those of the tunnel."""
    client_side: ClientSide | None = None
    """A second link next to the client; then the client's trace is taken behind it."""

    @classmethod
    def symmetric(cls, scenario: str, direction: Direction) -> EmulatedLink:
        """A link with the same values in both directions."""
        return cls(scenario, direction, direction)

    def with_forward(self, **values: Any) -> EmulatedLink:
        """The link with other values of its forward direction."""
        return replace(self, forward=replace(self.forward, **values))

    def with_back(self, **values: Any) -> EmulatedLink:
        """The link with other values of its return direction."""
        return replace(self, back=replace(self.back, **values))

    def with_both(self, **values: Any) -> EmulatedLink:
        """The link with other values of both directions."""
        return self.with_forward(**values).with_back(**values)

    def scaled(self, delay: float, rate: float) -> EmulatedLink:
        """The link with all propagation delays and rates times these factors; all else stays.

        A return direction with capacity on demand keeps its rate, which is a number of slots.
        """
        return replace(
            self,
            forward=self.forward.scaled(delay, rate),
            back=self.back.scaled(delay, rate if self.demand is None else 1.0),
            client_side=self.client_side and self.client_side.scaled(delay, rate),
        )

    @property
    def has_gateways(self) -> bool:
        """Whether something stands between the endpoints and the link."""
        return self.pep is not None or self.vpn is not None or self.client_side is not None

    @property
    def round_trip_delay(self) -> float:
        """All propagation delays from client to server and back, seconds."""
        beside = self.client_side or ClientSide()
        return self.forward.delay + self.back.delay + beside.forward.delay + beside.back.delay

    @property
    def highest_rate(self) -> float:
        """The highest rate of either direction at any time, bit/s."""
        return max(self.forward.highest_rate, self.back.highest_rate)

    def on_path(self, rate: float) -> float:
        """What is left of a forward rate of the link behind the one at the client's side, bit/s."""
        beside = self.client_side.forward.rate if self.client_side else None
        return rate if beside is None else min(rate, beside)


def unknown_link(forward_rate: float = 0.0) -> EmulatedLink:
    """A link of which at most the forward rate is known, bit/s; 0 if it is not."""
    return EmulatedLink(UNKNOWN, Direction(0.0, forward_rate, 0), Direction(0.0, 0.0, 0))


# ---- report -----------------------------------------------------------------------


@dataclass(frozen=True)
class DirectionReport:
    """What the simulator counted in one direction, and what it did there."""

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
    ecn_marks: int = 0
    """Packets that the queue marked (CE, congestion experienced)."""
    duplicated: int = 0
    """Packets that were delivered twice."""
    reordered: int = 0
    """Packets that were held back."""
    out_of_order: int = 0
    """Packets that the link delivered behind a later one."""
    profile: ProfileReport | None = None
    udp_cross_traffic: UdpCrossTrafficReport | None = None

    @property
    def own_drops(self) -> int:
        """Packets that the link itself lost, after the queue."""
        return self.loss_drops + self.listed_drops + self.blackhole_drops


@dataclass(frozen=True)
class ClientSideReport:
    """What the link at the client's side did."""

    forward: DirectionReport
    back: DirectionReport


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
class ProfileReport:
    """What the simulator did with a profile."""

    began: float | None
    """Time of the client's first packet, seconds since 1970; None if there was none."""
    changes: int
    """Steps that began after that."""


@dataclass(frozen=True)
class DemandReport:
    """What a terminal with capacity on demand requested and got, whole run of the simulator."""

    frames: int
    requests: int
    requested: int
    """Bytes, as the next."""
    assigned: int
    """In slots for requests."""
    constant: int
    """In slots of the constant rate."""


@dataclass(frozen=True)
class UdpCrossTrafficReport:
    """Packets of UDP cross traffic in one direction, whole run of the simulator."""

    begin: float
    """Time of the first packet, seconds since 1970; 0 if there was none."""
    end: float
    """Time of the last one."""
    sent: int
    """Packets that were offered to the queue."""
    queue_drops: int
    delivered: int
    """Packets that arrived at the other end of the link."""


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
    forward: DirectionReport
    back: DirectionReport
    blackholes: tuple[Interval, ...] = ()
    rebinds: tuple[Rebinding, ...] = ()
    cross_traffic: CrossTrafficReport | None = None
    lateness: Lateness | None = None
    """None in reports of simulators that did not record it (before version 2 of the simulator's image)."""
    demand: DemandReport | None = None
    client_side: ClientSideReport | None = None
    """None without such a link."""

    @property
    def largest_lag(self) -> float:
        """Largest lateness of a frame between the client's start and end, seconds; the largest lag in old reports."""
        return self.lateness.maximum if self.lateness else self.lag_max
