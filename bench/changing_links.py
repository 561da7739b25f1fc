"""Measures links that change over time, and return capacity on demand, against the request; part of bench-link."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, inf
from pathlib import Path

from bench.result_rows import NAN, Figure, errors_of, exactly, figure, lag, share_of
from bench.scenarios import UDP, packets
from bench.testbed_traffic import ETHERNET_HEADER, PPP, SMALL, SMALL_BITS, STREAM_SIZE, WAYS, Flow, Seen, Traffic
from quicsat.links.addresses import CLIENT, SERVER
from quicsat.model.emulated_link import Demand, Direction, EmulatedLink, Profile
from quicsat.model.units import MBPS, MS, PERCENT
from quicsat.traces.records import NANOSECONDS, records

LINK = EmulatedLink.symmetric("asymmetric-p2p", Direction(50 * MS, 50 * MBPS, 50))
RATE_BAR, APART_BAR = 1 * PERCENT, 1.0
"""Share; ms between the first packet and the profile."""
EDGE = 50 * MS
"""Seconds around a change of the rate in which it is not measured."""

RATES = (20 * MBPS, 5 * MBPS, 0.0, 10 * MBPS, 1 * MBPS, 30 * MBPS)
DELAYS = (20 * MS, 60 * MS, 10 * MS, 30 * MS, 30 * MS, 5 * MS)
LOSSES = (0.0, 10 * PERCENT, 0.0, 100 * PERCENT, 0.0, 1 * PERCENT)
SECONDS = tuple(float(second) for second in range(len(RATES)))
LENGTH = float(len(RATES))


@dataclass(frozen=True)
class Carried:
    """A packet of a stream: when it came to the link and when it left it, seconds since 1970; None if it was lost."""

    sent: float
    arrived: float | None


def carried(seen: Seen, way: str) -> list[Carried]:
    """The UDP packets of a direction in the order in which they were sent, until the last one that arrived."""
    source = SERVER[0] if way == "forward" else CLIENT[0]
    before, behind = seen.traces(way)
    came = {packet.mark: packet.time for packet in packets(behind) if packet.source[0] == source}
    all_sent = (packet for packet in packets(before) if packet.source[0] == source and packet.protocol == UDP)
    found = [Carried(packet.time, came.get(packet.mark)) for packet in all_sent]
    last = max((index for index, each in enumerate(found) if each.arrived is not None), default=-1)
    return found[: last + 1]


def moment_of(profile: Profile, began: float, time: float) -> float:
    """Seconds from the beginning of the profile to ``time``; before the profile begins, its start.

    A moment that is less than a nanosecond before a step is the step: differences of floats fall short of it.
    """
    moment = max(time - began, 0.0) + profile.begin(1)
    if profile.loop:
        moment %= profile.length
    for begin in profile.times:
        if 0 < begin - moment < 1 / NANOSECONDS:
            return begin
    return 0.0 if profile.loop and profile.length - moment < 1 / NANOSECONDS else moment


def step_at(profile: Profile, began: float, time: float) -> int:
    """Index of the step that holds at ``time``; before the profile begins, that of its start."""
    moment = moment_of(profile, began, time)
    return max(index for index, begin in enumerate(profile.times) if begin <= moment)


@dataclass(frozen=True)
class Due:
    """What is to become of a packet; times in seconds, on the clock of what :func:`replay` was given."""

    begins: float
    """Its first bit leaves."""
    leaves: float
    """Its last bit leaves."""
    arrives: float


def replay(sent: list[float], bits: int, link: EmulatedLink, profile: Profile, began: float) -> list[Due | None]:
    """What is to become of each packet of the forward direction, None if the queue is full: computed step by step."""

    def rate(time: float) -> float:
        return profile.rates[step_at(profile, began, time)] if profile.rates else link.forward.rate

    def next_step(time: float) -> float:
        moment = moment_of(profile, began, time)
        later = min(begin for begin in (*profile.times, profile.length) if begin > moment)
        return max(time, began) + later - moment

    assert isinstance(link.forward.queue, int)
    dues: list[Due | None] = []
    waiting = deque[float]()
    free = latest = -inf
    for time in sent:
        while waiting and waiting[0] <= time:
            waiting.popleft()
        if len(waiting) >= link.forward.queue:
            dues.append(None)
            continue
        now = max(time, free)
        while rate(now) == 0:
            now = next_step(now)
        begins, rest = now, float(bits)
        while rest > rate(now) * (next_step(now) - now):
            rest -= rate(now) * (next_step(now) - now)
            now = next_step(now)
        free = now + rest / rate(now)
        delay = profile.delays[step_at(profile, began, free)] if profile.delays else link.forward.delay
        latest = max(latest, free + delay)
        waiting.append(begins)
        dues.append(Due(begins, free, latest))
    return dues


def other_fates(passed: list[bool], due: list[bool]) -> int:
    """How many packets passed that were not due, or the other way round.

    Two neighbours that swap their fates do not count: the first came when another packet left a full queue, and a
    microsecond decides which of them gets its place.
    """
    errors = [one - other for one, other in zip(passed, due, strict=True)]
    swaps = index = 0
    while index + 1 < len(errors):
        swapped = errors[index] * errors[index + 1] == -1
        swaps += swapped
        index += 1 + swapped
    return sum(map(abs, errors)) - 2 * swaps


# ---- rate, delay, loss over time ------------------------------------------------------------


def profile_rate(bench: Traffic) -> list[Figure]:
    """A stream that is faster than the link gets the rate of each second, in two turns of the profile.

    Seconds in which the link ran dry, because the sender did not get a CPU, are not judged.
    """
    case = "profile, rate"
    profile = Profile("rates", LENGTH, SECONDS, RATES, start=1.0)
    link = LINK.with_forward(profile=profile)
    # no multiple of a rate of the link, else packets come just when others leave
    flows = [Flow("forward", 37 * MBPS, 2 * LENGTH, catch_up=1.0), Flow("return", 50 * SMALL_BITS, 2 * LENGTH, SMALL)]
    seen = bench.stream(link, flows)
    report = seen.report.forward.profile
    began = report.began if report else None
    if began is None:
        return [figure(case, "the profile did not begin", [1], "", "0", False)]
    at_client = (packet for packet in packets(seen.left) if packet.source[0] == CLIENT[0] and packet.protocol == UDP)
    apart = (began - next(at_client).time) / MS
    stream = carried(seen, "forward")
    bits = flows[0].wire_bits
    # times since the beginning: sums of seconds since 1970 lose a fraction of a microsecond each
    dues = replay([packet.sent - began for packet in stream], bits, link, profile, 0.0)
    pairs = [
        (packet.arrived - began, due.arrives)
        for packet, due in zip(stream, dues, strict=True)
        if packet.arrived is not None and due is not None
    ]
    errors = [(arrived - due) / MS for arrived, due in pairs]
    differ = other_fates([packet.arrived is not None for packet in stream], [due is not None for due in dues])
    figures = [
        figure(case, "begins after the first packet", [apart], "ms", "+-1", abs(apart) <= APART_BAR),
        errors_of(case, f"error of {len(errors)} packets", errors),
        figure(case, f"other fate, swaps aside, of {len(stream)}", [differ], "packets", "<= 0.1 %",
               differ <= len(stream) / 1000),
    ]  # fmt: skip
    for rate in RATES:
        values = [value for value in rates_of_seconds(stream, dues, bits, began, rate) if value is not None]
        if rate == 0:
            figures.append(figure(case, "packets in a second without a rate", values, "packets", "0", not any(values)))
        elif values:
            fine = all(abs(value) <= RATE_BAR / PERCENT for value in values)
            figures.append(figure(case, f"error of a second at {rate / MBPS:.0f} Mbit/s", values, "%", "+-1", fine))
    return [*figures, *lag(case, seen)]


def rates_of_seconds(
    stream: list[Carried], dues: list[Due | None], bits: int, began: float, rate: float
) -> Iterator[float | None]:
    """Error of the rate of each second of ``rate``, per cent, or packets if it is 0; None for one with a gap."""
    busy = [(began + due.begins, began + due.leaves) for due in dues if due is not None]
    for second in range(1, int(2 * LENGTH) - 1):
        begin, end = began + second + EDGE, began + second + 1 - EDGE
        if RATES[(second + 1) % len(RATES)] != rate:
            continue
        arrivals = [packet.arrived - LINK.forward.delay for packet in stream if packet.arrived is not None]
        inside = [time for time in arrivals if begin < time < end]
        if rate == 0:
            yield float(len(inside))
            continue
        within = [each for each in busy if begin < each[1] < end]
        gap = sum(after[0] - before[1] for before, after in pairwise(within))
        whole = len(within) > 1 and within[-1][1] - within[0][0] > 1 - 3 * EDGE and gap < 1 * MS and len(inside) > 1
        yield ((len(inside) - 1) * bits / (inside[-1] - inside[0]) / rate - 1) / PERCENT if whole else None


def large_packets(path: Path) -> list[tuple[float, int]]:
    """Times and bits, as the link carries them, of the packets of a stream of ``STREAM_SIZE``."""
    return [
        (record.time / NANOSECONDS, (record.length - ETHERNET_HEADER + PPP) * 8)
        for record in records(path)
        if record.length >= STREAM_SIZE
    ]


def profile_delay(bench: Traffic) -> list[Figure]:
    """Each packet has the delay of the moment at which it left, but none overtakes the one before it."""
    case = "profile, delay"
    forward = Profile("delays", LENGTH, SECONDS, delays=DELAYS)
    back = Profile("delays", LENGTH, SECONDS, delays=tuple(reversed(DELAYS)), loop=False)
    link = LINK.with_forward(profile=forward).with_back(profile=back)
    seen = bench.stream(link, [Flow(way, 200 * SMALL_BITS, 1.5 * LENGTH, SMALL) for way in WAYS])
    figures: list[Figure] = []
    for way, profile, report in (
        ("forward", forward, seen.report.forward.profile),
        ("return", back, seen.report.back.profile),
    ):
        began = (report.began if report else None) or 0.0
        errors, latest = list[float](), 0.0
        for packet in carried(seen, way):
            leaves = packet.sent + SMALL_BITS / LINK.forward.rate
            latest = max(latest, leaves + profile.delays[step_at(profile, began, leaves)])
            if packet.arrived is not None:
                errors.append((packet.arrived - latest) / MS)
        figures.append(errors_of(case, f"{way}: error of {len(errors)} packets", errors))
    return [*figures, *lag(case, seen)]


def profile_loss(bench: Traffic, per_second: int = 4000) -> list[Figure]:
    """Packets that arrive in a second are lost with its probability."""
    case = "profile, loss"
    profile = Profile("losses", LENGTH, SECONDS, losses=LOSSES)
    link = LINK.with_back(profile=profile)
    seen = bench.stream(link, [Flow("return", per_second * SMALL_BITS, LENGTH - 0.1, SMALL)])
    report = seen.report.back.profile
    began = (report.began if report else None) or 0.0
    counts = [[0, 0] for _ in LOSSES]
    for packet in carried(seen, "return"):
        due = packet.sent + SMALL_BITS / LINK.back.rate + LINK.back.delay
        step = step_at(profile, began, due)
        if step == step_at(profile, began, due - 2 * MS) == step_at(profile, began, due + 2 * MS):
            counts[step][0] += 1
            counts[step][1] += packet.arrived is None
    shares = [
        share_of(case, f"of {n} packets", lost / n if n else NAN, loss, n)
        for loss, (n, lost) in zip(LOSSES, counts, strict=True)
    ]
    return [*shares, *lag(case, seen)]


# ---- capacity on demand ---------------------------------------------------------------------


def demand_delay(bench: Traffic, demand: Demand) -> list[Figure]:
    """A packet that finds nothing else waits for the next frame, for the assignment, and for nothing more."""
    case = f"demand, {demand.constant_rate / 1000:.0f} kbit/s constant"
    link = replace(LINK.with_back(rate=2 * MBPS), demand=demand)
    apart = demand.delay + 8.6 * demand.frame
    seen = bench.stream(link, [Flow("return", SMALL_BITS / apart, 20 * apart, SMALL)])
    errors, waits = list[float](), list[float]()
    for packet in carried(seen, "return"):
        if packet.arrived is None:
            continue
        request = ceil((packet.sent - seen.report.started) / demand.frame)
        later = 0 if demand.constant_rate else ceil(demand.delay / demand.frame - 1e-9)
        begin = seen.report.started + (request + later) * demand.frame
        due = begin + SMALL_BITS / link.back.rate + link.back.delay
        errors.append((packet.arrived - due) / MS)
        waits.append((packet.arrived - packet.sent - link.back.delay) / MS)
    report = seen.report.demand
    requested = report.requested if report else -1
    asked = 0 if demand.constant_rate else len(errors) * SMALL_BITS // 8
    bar = f"{asked} +-5 %"
    return [
        errors_of(case, "error of the arrival", errors, 10),
        figure(case, "wait for a frame", waits, "ms"),
        figure(case, "requested", [requested], "bytes", bar, abs(requested - asked) <= 0.05 * asked),
        *lag(case, seen),
    ]


def demand_rate(bench: Traffic, demand: Demand) -> list[Figure]:
    """A stream that is faster than the return link gets all of its slots, and one of half the rate loses nothing."""
    case = "demand, rate"
    link = replace(LINK.with_back(rate=2 * MBPS, queue=400), demand=demand)
    slots = int(link.back.rate * demand.frame / 8 / demand.slot)
    expected = slots * demand.slot * 8 / demand.frame / MBPS
    full = bench.stream(link, [Flow("return", 1.3 * link.back.rate, 6.0, catch_up=1.0)])
    arrivals = large_packets(full.right)
    frames = [time for time, _ in arrivals]
    steady = [each for each in arrivals if each[0] > frames[0] + 2.0]
    whole = int((steady[-1][0] - steady[0][0]) / demand.frame) * demand.frame
    bits = sum(bits for time, bits in steady if time - steady[0][0] < whole)
    rate = bits / whole / MBPS
    half = bench.stream(link, [Flow("return", 0.5 * link.back.rate, 4.0)])
    flow = half.flows["return"]
    close = abs(rate / expected - 1) <= RATE_BAR
    return [
        figure(case, "rate at 130 % load", [rate], "Mbit/s", f"{expected:.3f} +-1 %", close),
        exactly(case, f"lost of {flow.sent} at 50 %", flow.sent - flow.received),
        *lag(case, full),
    ]


def changing_links(bench: Traffic) -> Iterator[list[Figure]]:
    """All of them."""
    yield profile_rate(bench)
    yield profile_delay(bench)
    yield profile_loss(bench)
    for constant_rate in (0.0, 64e3):
        yield demand_delay(bench, Demand(26.5 * MS, 560 * MS, 100, constant_rate))
    yield demand_rate(bench, Demand(26.5 * MS, 560 * MS, 100))
