"""Measures each hop of a path, the link itself and the one at the client's side; part of `make bench-link`."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from bench.disturbances import CE, ECT0, Passed, near, passed_between, unordered
from bench.result_rows import Figure, errors_of, exactly, figure, lag
from bench.testbed_traffic import SMALL_BITS, STREAM_SIZE, WAYS, Flow, Seen, Traffic, rate_in_trace, stream_both_ways
from quicsat.model.emulated_link import (
    ClientSide,
    ClientSideDirection,
    Direction,
    DirectionReport,
    EmulatedLink,
    Jitter,
    Loss,
    Queue,
    QueueDiscipline,
    UniformLoss,
)
from quicsat.model.units import MBPS, MS, PERCENT

LINK, BESIDE = "link", "client's side"
HOPS = (LINK, BESIDE)
RATES = {LINK: {"forward": 40.0, "return": 10.0}, BESIDE: {"forward": 20.0, "return": 5.0}}
"""Mbit/s: the client's side is the slower one."""
DELAYS = {LINK: 100 * MS, BESIDE: 5 * MS}
QUEUE = 100
FAST = 100.0
"""Mbit/s of a link that is to be no limit."""
RATE_BAR, LOSS_BAR = 1 * PERCENT, 0.1 * PERCENT
LOSSES: dict[str, dict[str, Loss]] = {
    LINK: {"forward": UniformLoss(0.01), "return": UniformLoss(0.002)},
    BESIDE: {"forward": UniformLoss(0.005), "return": UniformLoss(0.02)},
}
LOSSY_PACKETS, LOSSY_RATE = 100_000, 10_000
"""Packets per direction and per second."""
OVERLOAD = 1.3


def path_of(rates: dict[str, dict[str, float]]) -> EmulatedLink:
    """A path of both hops; ``rates``: Mbit/s by hop and direction."""
    link, beside = rates[LINK], rates[BESIDE]
    forward, back = (Direction(DELAYS[LINK], link[way] * MBPS, QUEUE) for way in WAYS)
    sides = (ClientSideDirection(DELAYS[BESIDE], None, beside[way] * MBPS, QUEUE) for way in WAYS)
    return EmulatedLink("asymmetric-p2p", forward, back, client_side=ClientSide(*sides))


PATH = path_of(RATES)
WIDE = path_of({hop: dict.fromkeys(WAYS, FAST) for hop in HOPS})


@dataclass(frozen=True)
class Hop:
    """One hop in one direction, as a run showed it."""

    name: str
    before: Path
    behind: Path
    """Traces at both ends."""
    stream: Passed
    report: DirectionReport


def hops_of(seen: Seen, way: str) -> Iterator[Hop]:
    """Both hops of a direction."""
    between = seen.left.with_name("link_left.pcap")
    order = (seen.right, between, seen.left) if way == "forward" else (seen.left, between, seen.right)
    names = HOPS if way == "forward" else HOPS[::-1]
    beside = seen.report.client_side
    assert beside is not None
    counted = {LINK: (seen.report.forward, seen.report.back), BESIDE: (beside.forward, beside.back)}
    for name, before, behind in zip(names, order, order[1:], strict=False):
        stream = passed_between(before, behind, way)
        yield Hop(name, before, behind, stream, counted[name][way != "forward"])


def hop_rate(bench: Traffic, slow: str, way: str, duration: float = 4.0) -> list[Figure]:
    """Rate of a hop at 130 % load, while the other one is faster, from the trace behind it."""
    case = f"rate of the {slow}"
    link = path_of(RATES | ({BESIDE: dict.fromkeys(WAYS, FAST)} if slow == LINK else {}))
    rate = RATES[slow][way]
    seen = bench.stream(link, [Flow(way, OVERLOAD * rate * MBPS, duration, catch_up=1.0)])
    [hop] = [hop for hop in hops_of(seen, way) if hop.name == slow]
    found = rate_in_trace(hop.behind) / MBPS
    return [near(case, way, found, rate, RATE_BAR * rate, "Mbit/s"), _pauses(case, hop, rate), *lag(case, seen)]


def _pauses(case: str, hop: Hop, rate: float) -> Figure:
    """The longest pause of the sender: while it lasts longer than a full queue at this rate (Mbit/s), the hop idles."""
    sent = sorted(hop.stream.sent.values())
    longest = max(after - before for before, after in pairwise(sent))
    full = QUEUE * STREAM_SIZE * 8 / (rate * MBPS)
    pauses = figure(case, "lag of the sender", [longest / MS], "ms")
    return replace(pauses, bar=f"max <= {full / MS:.0f}", passed=longest <= full)


def hop_delays(bench: Traffic, n: int = 400) -> list[Figure]:
    """Delay of each hop on an idle path, from the traces before and behind it."""
    case = "delay of each hop"
    seen = stream_both_ways(bench, PATH, n, per_second=200)
    figures = []
    for way in WAYS:
        for hop in hops_of(seen, way):
            expected = DELAYS[hop.name] + SMALL_BITS / (RATES[hop.name][way] * MBPS)
            errors = [(delay - expected) / MS for delay in hop.stream.delays()]
            figures.append(errors_of(case, f"{way}, {hop.name}", errors, n))
    return [*figures, *lag(case, seen)]


def hop_losses(bench: Traffic, n: int = LOSSY_PACKETS) -> list[Figure]:
    """Loss of each hop, both directions at once."""
    case = "loss of each hop"
    lossy = WIDE.with_forward(loss=LOSSES[LINK]["forward"]).with_back(loss=LOSSES[LINK]["return"])
    assert WIDE.client_side is not None
    sides = zip((WIDE.client_side.forward, WIDE.client_side.back), LOSSES[BESIDE].values(), strict=True)
    lossy = replace(lossy, client_side=ClientSide(*(replace(side, loss=loss) for side, loss in sides)))
    seen = stream_both_ways(bench, lossy, n, seed=7, per_second=LOSSY_RATE)
    figures = []
    for way in WAYS:
        for hop in hops_of(seen, way):
            loss = LOSSES[hop.name][way]
            assert isinstance(loss, UniformLoss)
            sent, came = len(hop.stream.sent), len(hop.stream.arrived)
            share = 1 - came / sent
            bar = f"{loss.rate / PERCENT:g} +-{LOSS_BAR / PERCENT:g}" if n >= LOSSY_PACKETS else ""
            kept = abs(share - loss.rate) <= LOSS_BAR if bar else None
            figures.append(figure(case, f"{way}, {hop.name}, {sent} packets", [share / PERCENT], "%", bar, kept))
            figures.append(exactly(case, f"{way}, {hop.name}, in the report", hop.report.loss_drops, sent - came))
    return [*figures, *lag(case, seen)]


def hop_queue(bench: Traffic, size: int = 25, duration: float = 3.0) -> list[Figure]:
    """Packets that the queue at the client's side holds and drops, and those that it marks, at 130 % load."""
    case = "queue at the client's side"
    above = 2 * MS
    figures = []
    for queue in (size, Queue(QueueDiscipline.DROP_TAIL, size, mark_above=above)):
        assert PATH.client_side is not None
        beside = replace(PATH.client_side, forward=replace(PATH.client_side.forward, queue=queue))
        rate = RATES[BESIDE]["forward"] * MBPS
        flow = Flow("forward", OVERLOAD * rate, duration, catch_up=1.0, ecn=ECT0)
        seen = bench.stream(replace(PATH, client_side=beside), [flow])
        _, hop = hops_of(seen, "forward")
        serialisation = flow.wire_bits / rate
        waits = sorted(delay - DELAYS[BESIDE] - serialisation for delay in hop.stream.delays())
        held = waits[round(0.95 * (len(waits) - 1))] / serialisation
        kind = "plain" if isinstance(queue, int) else "marking"
        figures.append(
            figure(case, f"{kind}: packets held, p95", [held], "packets", f"{size} -0.5 +1", -0.5 <= held - size <= 1)
        )
        dropped = len(hop.stream.sent) - len(hop.stream.arrived)
        figures.append(exactly(case, f"{kind}: drops in the report", hop.report.queue_drops, dropped))
        marks = sum(ecn == CE for *_, ecn in hop.stream.arrived)
        figures.append(exactly(case, f"{kind}: marks in the report", hop.report.ecn_marks, marks))
        late = sum(wait > above for wait in waits) if kind == "marking" else 0
        figures.append(
            near(case, f"{kind}: marks, of packets that waited so long", marks, late, 0.01 * late, "packets")
        )
        figures += lag(case, seen)
    return figures


def hop_jitter(bench: Traffic, size: float = 10 * MS, n: int = 2000) -> list[Figure]:
    """Additional delay at the client's side: forward with overtaking, return half of it and in order."""
    case = f"jitter at the client's side, {size / MS:g} ms"
    assert WIDE.client_side is not None
    sides = WIDE.client_side.forward, WIDE.client_side.back
    asked = Jitter(size, overtake=True), Jitter(size / 2)
    beside = ClientSide(*(replace(side, jitter=each) for side, each in zip(sides, asked, strict=True)))
    seen = stream_both_ways(bench, replace(WIDE, client_side=beside), n)
    least = DELAYS[BESIDE] + SMALL_BITS / (FAST * MBPS)
    added: dict[str, list[float]] = {}
    for way in WAYS:
        [hop] = [hop for hop in hops_of(seen, way) if hop.name == BESIDE]
        added[way] = sorted((delay - least) / MS for delay in hop.stream.delays())
    forward, back = added.values()
    figures = []
    for share, bar in ((0.5, 0.05), (0.95, 0.02)):
        value = forward[round(share * (len(forward) - 1))]
        name = f"with overtaking: additional delay, {share:.0%} of {len(forward)}"
        figures.append(near(case, name, value, share * size / MS, bar * size / MS, "ms"))
    report = seen.report.client_side
    assert report is not None
    wild, most = report.forward.out_of_order, size / 2 / MS
    figures += [
        figure(case, "with overtaking: overtaken", [wild], "packets", "> 0", wild > 0),
        exactly(case, "in order: overtaken", report.back.out_of_order),
        figure(
            case, "in order: longest additional delay", [back[-1]], "ms", f"<= {most:g} +0.1", back[-1] <= most + 0.1
        ),
    ]
    return [*figures, *unordered(case, seen)]


def hops(bench: Traffic) -> Iterator[list[Figure]]:
    """Rate, delay, loss, queue and jitter of each hop."""
    for slow in HOPS:
        for way in WAYS:
            yield hop_rate(bench, slow, way)
    yield hop_delays(bench)
    yield hop_losses(bench)
    yield hop_queue(bench)
    yield hop_jitter(bench)
