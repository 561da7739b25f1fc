"""Measures what each ns-3 scenario does (losses, drops, times, addresses, flows); part of `make bench-link`."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path

from bench.result_rows import Figure, exactly, figure, lag, share_of
from bench.testbed_traffic import (
    ETHERNET_HEADER,
    PER_SECOND,
    SMALL_BITS,
    Bench,
    Flow,
    Seen,
    rate_in_trace,
    stream_both_ways,
)
from quicsat.links.addresses import CLIENT, SERVER
from quicsat.links.simulator_arguments import CROSS_PORT
from quicsat.model.emulated_link import (
    Blackhole,
    Corruption,
    CorruptionMode,
    CrossTraffic,
    Direction,
    EmulatedLink,
    LinkDirection,
    Rebind,
    UniformLoss,
)
from quicsat.model.implementation import Protocol
from quicsat.model.units import MBPS, MS, PERCENT
from quicsat.traces.records import NANOSECONDS, records

TEN = EmulatedLink.symmetric("simple-p2p", Direction(15 * MS, 10 * MBPS, 25))
"""The link of the QUIC Interop Runner's test cases."""
WIDE = TEN.with_both(rate=50 * MBPS, queue=1000)
N = 20_000
"""Packets per direction."""
BURST = 3
TIMING_BAR = 5.0
"""ms."""
PING_GAP = 20.0
"""ms between two pings."""
UDP, TCP = 17, 6


# ---- traces ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Packet:
    """A packet of a trace."""

    time: float
    """Seconds since 1970."""
    protocol: int
    source: tuple[str, int]
    destination: tuple[str, int]
    mark: bytes
    """Distinguishes it from all others of its flow (IPv4 only)."""


def packets(path: Path) -> Iterator[Packet]:
    """The UDP and TCP packets of a trace."""
    for record in records(path):
        head = record.data[ETHERNET_HEADER:]
        four = head[0] >> 4 == 4
        protocol = head[9] if four else head[6]
        if head[0] >> 4 not in (4, 6) or protocol not in (UDP, TCP):
            continue
        first, length, ports = (12, 4, 20) if four else (8, 16, 40)
        addresses = [str(ip_address(head[first + length * which :][:length])) for which in (0, 1)]
        numbers = [int.from_bytes(head[ports + 2 * which :][:2], "big") for which in (0, 1)]
        source, destination = zip(addresses, numbers, strict=True)
        yield Packet(record.time / NANOSECONDS, protocol, source, destination, head[4:6] + head[ports : ports + 20])


# ---- loss, corruption, lists ----------------------------------------------------------------


def capped(rate: float, burst: int) -> float:
    """Share that is hit if ``rate`` would be, and after ``burst`` in a row one is spared."""
    hits = sum(rate**length for length in range(1, burst + 1))
    return hits / (1 + hits)


def longest_row(numbers: tuple[int, ...]) -> int:
    """How many consecutive numbers there are at most."""
    longest = row = 1 if numbers else 0
    for before, after in pairwise(numbers):
        row = row + 1 if after == before + 1 else 1
        longest = max(longest, row)
    return longest


def drop_rate(bench: Bench, rate: float, n: int = N) -> list[Figure]:
    """Loss at a rate, at most three in a row."""
    case = f"drop-rate {rate:.0%}"
    loss = UniformLoss(rate, BURST)
    seen = stream_both_ways(bench, replace(WIDE.with_both(loss=loss), scenario="drop-rate"), n)
    figures = []
    for way, flow in seen.flows.items():
        share = 1 - flow.received / flow.sent
        figures.append(share_of(case, f"{way}, {flow.sent} packets", share, capped(rate, BURST), flow.sent))
        row = longest_row(flow.missing)
        figures.append(figure(case, f"{way}: most in a row", [row], "packets", f"<= {BURST}", row <= BURST))
    return [*figures, *lag(case, seen)]


def corrupt_rate(bench: Bench, rate: float, mode: CorruptionMode, n: int = N) -> list[Figure]:
    """Packets that are hit arrive with another byte, or do not arrive."""
    case = f"corrupt-rate {rate:.0%} {mode}"
    hits = Corruption(rate, BURST, mode)
    link = replace(WIDE.with_both(corruption=hits), scenario="corrupt-rate")
    seen = stream_both_ways(bench, link, n)
    figures = []
    for (way, flow), counters in zip(seen.flows.items(), (seen.report.forward, seen.report.back), strict=True):
        lost = flow.sent - flow.received
        hit, other = (flow.corrupted, lost) if mode is CorruptionMode.BYTE else (lost, flow.corrupted)
        counted = counters.corrupted if mode is CorruptionMode.BYTE else counters.loss_drops
        figures.append(share_of(case, f"{way}, {flow.sent} packets", hit / flow.sent, capped(rate, BURST), flow.sent))
        name = "lost" if mode is CorruptionMode.BYTE else "corrupted"
        figures.append(exactly(case, f"{way}: {name}", other))
        figures.append(exactly(case, f"{way}: in the report", counted, hit))
    return [*figures, *lag(case, seen)]


def droplist(bench: Bench) -> list[Figure]:
    """Exactly the packets of the list are dropped."""
    forward, back = (1, 2, 5, 40), (2, 3, 4, 5, 6, 7)
    seen = stream_both_ways(
        bench, replace(WIDE.with_forward(drops=forward).with_back(drops=back), scenario="droplist"), 500
    )
    figures = []
    for way, drops, counters in (("forward", forward, seen.report.forward), ("return", back, seen.report.back)):
        missing = tuple(number + 1 for number in seen.flows[way].missing)
        exact = missing == drops and counters.listed_drops == len(drops)
        figures.append(figure("droplist", f"{way}: {missing}"[:44], [len(missing)], "packets", f"{drops}", exact))
    return [*figures, *lag("droplist", seen)]


def tcp_losses(bench: Bench, duration: float = 4.0) -> list[Figure]:
    """In a run over TCP the same TCP packets are lost as UDP packets in others, and no TCP packets in those."""
    case, rate = "TCP loss 1 %", 1 * PERCENT
    link = WIDE.with_both(loss=UniformLoss(rate))
    over_tcp = bench.tcp(link, duration, Protocol.TCP)
    counters = over_tcp.report.forward
    n = counters.loss_drops + counters.delivered
    arrived = {packet.mark for packet in packets(over_tcp.left) if packet.source[0] == SERVER[0]}
    sent = [packet.mark for packet in packets(over_tcp.right) if packet.source[0] == SERVER[0]][:n]
    lost = {number for number, mark in enumerate(sent) if mark not in arrived}
    wanted = {number for number in stream_both_ways(bench, link, n, seed=1).flows["forward"].missing if number < n}
    untouched = bench.tcp(link, 1.0, Protocol.HQ).report.forward
    return [
        share_of(case, f"of {n} packets, run over TCP", counters.loss_drops / n, rate, n),
        exactly(case, "not lost in both, TCP and UDP, same seed", len(lost ^ wanted)),
        exactly(case, "run over QUIC", untouched.loss_drops),
        *lag(case, over_tcp),
    ]


# ---- times ----------------------------------------------------------------------------------


def _arrivals(seen: Seen, link: EmulatedLink, way: str) -> Iterator[tuple[float, bool]]:
    """When each packet of a stream was due at the end of the link, seconds since 1970, and whether it came."""
    forward = way == "forward"
    source = SERVER[0] if forward else CLIENT[0]
    sent, arrived = seen.traces(way)
    came = {packet.mark: packet.time for packet in packets(arrived) if packet.source[0] == source}
    direction = link.forward if forward else link.back
    takes = direction.delay + SMALL_BITS / direction.rate
    # what is later than the last one that came may have been on its way when the simulator was stopped, unless a
    # blackhole has ended since: a stream that is sent late on a busy machine may end in the dark
    last = max(*came.values(), *(interval.end for interval in seen.report.blackholes), 0.0)
    for packet in packets(sent):
        if packet.source[0] == source and packet.time + takes <= last:
            yield packet.time + takes, packet.mark in came


def _misplaced(arrivals: list[tuple[float, bool]], dark: list[tuple[float, float]]) -> list[float]:
    """By how much packets came in the dark, or were dropped beyond it, ms."""
    errors = [0.0]
    for time, came in arrivals:
        inside = max((min(time - begin, end - time) for begin, end in dark), default=-float("inf"))
        if came == (inside > 0):
            errors.append(abs(inside) / MS)
    return errors


def blackhole(bench: Bench, hole: Blackhole) -> list[Figure]:
    """Packets that are dropped, against the times that were asked for and those that the report tells."""
    case = f"blackhole {hole.direction}"
    link = replace(WIDE, scenario="blackhole", blackhole=hole)
    seen = stream_both_ways(bench, link, round(PER_SECOND * 2.5))
    # a TCP connection of the case before may still say goodbye
    at_client = (packet for packet in packets(seen.left) if packet.source[0] == CLIENT[0])
    first = next(packet.time for packet in at_client if packet.protocol == UDP)
    at_server = (packet for packet in packets(seen.right) if packet.source[0] == SERVER[0])
    apart = abs(first - next(packet.time for packet in at_server if packet.protocol == UDP))
    cycle = hole.on + hole.off
    asked = [(first + hole.on + cycle * turn, first + cycle * (turn + 1)) for turn in range(hole.repeat)]
    told = [(interval.begin, interval.end) for interval in seen.report.blackholes]
    figures = []
    for way, counters, lit in (
        ("forward", seen.report.forward, LinkDirection.SERVER),
        ("return", seen.report.back, LinkDirection.CLIENT),
    ):
        arrivals = list(_arrivals(seen, link, way))
        dropped = sum(not came for _, came in arrivals)
        dark = hole.direction is not lit
        passed = dropped == counters.blackhole_drops and bool(dropped) == dark
        figures.append(figure(case, f"{way}: dropped", [dropped], "packets", "as told" if dark else "0", passed))
        for name, times in (("asked", asked), ("told", told)) if dark else ():
            errors = _misplaced(arrivals, times)
            worst = max(errors)
            bar = f"<= {TIMING_BAR:.0f}"
            figures.append(figure(case, f"{way}: beyond the times {name}", [worst], "ms", bar, worst <= TIMING_BAR))
    figures.append(figure(case, "lag between the streams", [apart], "s", f"<= {hole.on + hole.off}", apart <= cycle))
    return [*figures, *lag(case, seen)]


def rebind(bench: Bench, version: int, *, address: bool, n: int = 200) -> list[Figure]:
    """Source addresses and ports that the server sees, and answers that come back."""
    case = f"rebind IPv{version} {'address' if address else 'port'}"
    asked = Rebind(0.5, 1.0, address=address)
    seen = bench.ping(replace(TEN, scenario="rebind", rebind=asked), version, n)
    client, server = CLIENT[version == 6], SERVER[version == 6]
    at_client = [packet for packet in packets(seen.left) if packet.source[0] == client]
    at_server = [packet for packet in packets(seen.right) if packet.destination[0] == server]
    changes = [after.time for before, after in pairwise(at_server) if before.source != after.source]
    expected = int((at_client[-1].time - at_client[0].time - asked.first) / 1.0) + 1
    due = [at_client[0].time + asked.first + turn for turn in range(len(changes))]
    # The first packet of the client that can show a change: on a busy machine, the client pauses.
    shown = [next((packet.time for packet in at_client if packet.time >= time), time) for time in due]
    late = [(change - time - TEN.back.delay) / MS for change, time in zip(changes, shown, strict=True)]
    addresses = {packet.source[0] for packet in at_server}
    inside = {packet.source for packet in at_client} | {
        packet.destination for packet in packets(seen.left) if packet.source[0] == server
    }
    told = [one.outside for rebinding in seen.report.rebinds[:expected] for one in rebinding.mappings]
    unseen = {*told} - {_text(packet.source) for packet in at_server}
    lost = n - len(seen.round_trips)
    answers = [packet for packet in packets(seen.right) if packet.source[0] == server]
    fewest, most = (_late_answers(at_server, answers, due, share * TIMING_BAR * MS) for share in (1, -1))
    bar = f"{-1 - PING_GAP:.0f} to {PING_GAP + TIMING_BAR:.0f}"
    return [
        exactly(case, "changes at the server", len(changes), expected, "times"),
        figure(case, "seen after", late, "ms", bar, all(-1 - PING_GAP <= one <= PING_GAP + TIMING_BAR for one in late)),
        exactly(case, "addresses at the server", len(addresses), expected + 1 if address else 1, ""),
        exactly(case, "addresses and ports at the client", len(inside), 1, ""),
        exactly(case, "told and not seen", len(unseen), 0, ""),
        figure(case, f"answers lost of {n}", [lost], "packets", f"{fewest} to {most}", fewest <= lost <= most),
        *lag(case, seen),
    ]


def _late_answers(at_server: Sequence[Packet], answers: Sequence[Packet], due: Sequence[float], margin: float) -> int:
    """Number of answers that come to the NAT ``margin`` or more after it has replaced the address that they go to.

    A busy server sends several at once, so that more are under way at a change than on an idle machine.
    """
    until = dict(zip(dict.fromkeys(packet.source for packet in at_server), due, strict=False))
    return sum(answer.time + TEN.back.delay - margin > until.get(answer.destination, math.inf) for answer in answers)


def _text(endpoint: tuple[str, int]) -> str:
    host, port = endpoint
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


# ---- a competing flow -----------------------------------------------------------------------


def _rate_beside(path: Path) -> float:
    """Rate of the TCP payload from the server while a UDP stream flows, in the client's trace, bit/s.

    The flow has the link for itself before and after the stream, for longer on a busy machine.
    """
    headers = ETHERNET_HEADER + 20 + 32  # TCP with its timestamps
    stream, flow = list[int](), list[tuple[int, int]]()
    for record in records(path):
        head = record.data[ETHERNET_HEADER:]
        if head[0] >> 4 == 4 and ip_address(head[12:16]) == ip_address(SERVER[0]):
            if head[9] == UDP:
                stream.append(record.time)
            elif head[9] == TCP:
                flow.append((record.time, record.length - headers))
    begin, end = min(stream), max(stream)
    return 8 * sum(size for time, size in flow if begin <= time <= end) * NANOSECONDS / (end - begin)


def _beside_tcp(bench: Bench, duration: float) -> Seen:
    """A stream of half the rate beside the kernel's TCP."""
    link = replace(TEN, scenario="tcp-cross-traffic", cross_traffic=CrossTraffic())
    return bench.stream(link, [Flow("forward", 0.5 * TEN.forward.rate, duration)])


def cross_traffic(bench: Bench, duration: float = 6.0) -> list[Figure]:
    """Both share the link, and fill it."""
    case = "tcp-cross-traffic"
    seen = _beside_tcp(bench, duration)
    flow, report = seen.flows["forward"], seen.report.cross_traffic
    wire = rate_in_trace(seen.left) / MBPS
    beside = _rate_beside(seen.left) / MBPS
    steady = [8 * count / MBPS for count in report.per_second[2:-2]] if report else []
    delivered = flow.received / flow.sent / PERCENT
    ended = report is not None and report.end - report.begin >= duration
    return [
        figure(case, "both on the link", [wire], "Mbit/s", "9.5 to 10.1", 9.5 <= wire <= 10.1),
        figure(case, "TCP beside the stream", [beside], "Mbit/s", "3.5 to 6.5", 3.5 <= beside <= 6.5 and ended),
        figure(case, "TCP goodput by second", steady, "Mbit/s"),
        figure(case, "stream of 5 Mbit/s: delivered", [delivered], "%", ">= 80", delivered >= 80),
        *lag(case, seen),
    ]


def cross_traffic_again(bench: Bench, duration: float = 3.0) -> list[Figure]:
    """Nothing of the flow of one run comes to the next one of the same testbed: one connection, with one beginning."""
    cross_traffic(bench, 1.0)
    case = "tcp-cross-traffic, again"
    seen = _beside_tcp(bench, duration)
    senders = {packet.destination for packet in packets(seen.left) if packet.source == (CLIENT[0], CROSS_PORT)}
    report = seen.report.cross_traffic
    goodput = report.goodput / MBPS if report else 0.0
    rate = TEN.forward.rate / MBPS
    return [
        exactly(case, "TCP connections in the trace", len(senders), 1, ""),
        figure(case, "TCP goodput", [goodput], "Mbit/s", f"0 to {rate:.0f}", 0 < goodput <= rate),
        *lag(case, seen),
    ]


def scenarios(bench: Bench) -> Iterator[list[Figure]]:
    """All of them."""
    for rate in (30 * PERCENT, 2 * PERCENT):
        yield drop_rate(bench, rate)
        yield corrupt_rate(bench, rate, CorruptionMode.BYTE)
    yield corrupt_rate(bench, 2 * PERCENT, CorruptionMode.LOSS)
    yield droplist(bench)
    yield tcp_losses(bench)
    for direction in LinkDirection:
        yield blackhole(bench, Blackhole(0.5, 0.3, 2, direction))
    for version in (4, 6):
        for address in (False, True):
            yield rebind(bench, version, address=address)
    yield cross_traffic(bench)
    yield cross_traffic_again(bench)
