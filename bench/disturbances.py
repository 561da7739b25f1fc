"""Measures bursty loss, jitter, reordering, duplication and queue disciplines; part of `make bench-link`."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, floor, inf, log
from pathlib import Path
from statistics import fmean, median

from bench.result_rows import Figure, exactly, figure, lag, share_of
from bench.testbed_traffic import (
    ETHERNET_HEADER,
    PORT,
    PPP,
    SMALL,
    SMALL_BITS,
    STREAM_SIZE,
    UDP_IPV4,
    Flow,
    Seen,
    Traffic,
    stream_both_ways,
)
from quicsat.model.emulated_link import (
    Direction,
    EmulatedLink,
    GilbertElliottLoss,
    Jitter,
    JitterShape,
    Loss,
    Queue,
    QueueDiscipline,
    QueueUnit,
    Reordering,
    UdpCrossTraffic,
    UniformLoss,
    loss_share,
)
from quicsat.model.units import MBPS, MS, PERCENT
from quicsat.traces.records import NANOSECONDS, records

WIRED, WIRELESS = GilbertElliottLoss(0.017, 0.935), GilbertElliottLoss(0.018, 0.645)
"""Losses that the SATCOM paper measured (Table 1), without and with Wi-Fi behind the satellite modem."""
BOTH_STATES = GilbertElliottLoss(0.01, 0.2, 0.001, 0.5)
RARE, RARER = UniformLoss(0.1 * PERCENT), UniformLoss(0.01 * PERCENT)
WIDE = EmulatedLink.symmetric("asymmetric-p2p", Direction(15 * MS, 100 * MBPS, 1000))
TEN = WIDE.with_both(rate=10 * MBPS)
LOSSY_N, N = 100_000, 20_000
"""Packets per direction."""
LOSS_BAR, BURST_BAR = 0.1 * PERCENT, 5 * PERCENT
DELAY_BAR, TAIL_BAR = 0.3 * MS, 0.6 * MS
"""Difference of the median and of the 95th percentile of a delay from what was asked for."""
MARK_BAR = 5 * PERCENT
"""Relative difference of the number of marks from the one expected."""
SERIALISATION = (STREAM_SIZE + UDP_IPV4 + PPP) * 8 / TEN.forward.rate
"""Seconds that a packet of a full stream takes on the slow link."""
ECT0, CE = 2, 3
STANDING = 150
"""Packets of a queue that neither grows nor shrinks, unless the sender has no CPU for longer than they last."""
PIE_TARGET, PIE_PERIOD, PIE_BURST = 15 * MS, 15 * MS, 150 * MS
"""Defaults of RFC 8033, section 4.2."""
OVERLOAD = 1.08


# ---- what passed ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Passed:
    """A stream as the traces at both ends show it."""

    sent: dict[int, float]
    """Number of a packet -> seconds since 1970 at which it came to the link."""
    arrived: tuple[tuple[int, float, int], ...]
    """Number, seconds since 1970 and ECN codepoint, in order of arrival."""

    def delays(self) -> list[float]:
        """From one end to the other, seconds, in order of arrival."""
        return [time - self.sent[number] for number, time, _ in self.arrived]


def passed(seen: Seen, way: str) -> Passed:
    """The stream of one direction."""
    return passed_between(*seen.traces(way), way)


def passed_between(before: Path, behind: Path, way: str) -> Passed:
    """The stream of one direction between the places of two traces."""
    payload = ETHERNET_HEADER + UDP_IPV4
    found: list[list[tuple[int, float, int]]] = []
    sender = 0 if way == "forward" else 1
    for path in (before, behind):
        packets = []
        for record in records(path):
            head = record.data[ETHERNET_HEADER:]
            if head[0] >> 4 != 4 or head[9] != 17 or int.from_bytes(head[22:24], "big") != PORT:
                continue
            if head[14] != (100, 0)[sender]:  # the server's network is 193.167.100.0, the client's 193.167.0.0
                continue
            number = int.from_bytes(record.data[payload : payload + 8], "little")
            packets.append((number, record.time / NANOSECONDS, head[1] & CE))
        found.append(packets)
    return Passed({number: time for number, time, _ in found[0]}, tuple(found[1]))


def _prompt(case: str, seen: Seen, *, typical: float, longest: float = inf) -> list[Figure]:
    """Whether frames left the simulator early enough, in the median and at most, to measure delays by them; seconds."""
    lateness = seen.report.lateness
    if lateness is None:
        return []
    middle = max(lateness.forward.p50, lateness.back.p50)
    return [
        figure(case, "lag of frames, median", [middle / MS], "ms", f"<= {typical / MS:g}", middle <= typical),
        figure(case, "lag of frames, longest", [lateness.maximum / MS], "ms", f"<= {longest / MS:g}",
               lateness.maximum <= longest),
    ]  # fmt: skip


def unordered(case: str, seen: Seen) -> list[Figure]:
    """``lag`` without the order of packets."""
    return [one for one in lag(case, seen) if one.name != "out of order"]


def near(case: str, name: str, value: float, expected: float, tolerance: float, unit: str) -> Figure:
    """A value that has to be within ``tolerance`` of the one expected."""
    bar = f"{expected:.4g} +-{tolerance:.2g}"
    return figure(case, name, [value], unit, bar, abs(value - expected) <= tolerance)


# ---- loss -----------------------------------------------------------------------------------


def bursts(missing: list[int]) -> int:
    """Rows of consecutive numbers."""
    return len(missing) and 1 + sum(after != before + 1 for before, after in pairwise(missing))


def share_deviation(model: Loss, n: int) -> float:
    """Standard deviation of the share of ``n`` packets that a model loses: successive packets share a state."""
    share = loss_share(model)
    variance = share * (1 - share)
    if isinstance(model, GilbertElliottLoss):
        kept = 1 - model.good_to_bad - model.bad_to_good
        states = model.bad_share * (1 - model.bad_share) * (model.loss_in_bad - model.loss_in_good) ** 2
        variance += 2 * states * kept / (1 - kept)
    return float((variance / n) ** 0.5)


def loss(bench: Traffic, name: str, forward: Loss, back: Loss, n: int = LOSSY_N) -> list[Figure]:
    """Share and mean burst of a loss in each direction; with fewer packets chance has more room."""
    room = max(1.0, (LOSSY_N / n) ** 0.5)
    seen = stream_both_ways(bench, WIDE.with_forward(loss=forward).with_back(loss=back), n)
    figures = []
    for way, model in (("forward", forward), ("return", back)):
        stream = passed(seen, way)
        missing = sorted(stream.sent.keys() - {number for number, *_ in stream.arrived})
        share, expected, total = len(missing) / len(stream.sent), loss_share(model), len(stream.sent)
        bar = (LOSS_BAR if n >= LOSSY_N else max(LOSS_BAR, 3 * share_deviation(model, n))) / PERCENT
        figures.append(near(name, f"{way}, {total} packets", share / PERCENT, expected / PERCENT, bar, "%"))
        if isinstance(model, GilbertElliottLoss) and missing:
            burst = len(missing) / bursts(missing)
            tolerance = room * BURST_BAR * model.mean_burst
            figures.append(near(name, f"{way}: mean burst", burst, model.mean_burst, tolerance, "packets"))
    return [*figures, *lag(name, seen)]


# ---- jitter, reordering, duplication --------------------------------------------------------


def _quantile(jitter: Jitter, share: float) -> float:
    """Additional delay that ``share`` of the packets do not exceed, seconds."""
    match jitter.shape:
        case JitterShape.UNIFORM:
            return share * jitter.size
        case JitterShape.EXPONENTIAL:
            return -log(1 - share) * jitter.size
        case JitterShape.NORMAL:
            return jitter.size * (3 + {0.5: 0.0, 0.95: 1.6449}[share])


def jitter(bench: Traffic, shape: JitterShape, size: float, n: int = N) -> list[Figure]:
    """Distribution of the additional delay, with overtaking; in the other direction, half of it and in order."""
    case = f"jitter {shape}, {size / MS:g} ms"
    asked = Jitter(size, shape, overtake=True)
    in_order = Jitter(size / 2, shape)
    seen = stream_both_ways(bench, WIDE.with_forward(jitter=asked).with_back(jitter=in_order), n)
    added = sorted(_additional(passed(seen, "forward")))
    figures = []
    for share, bar in ((0.5, DELAY_BAR), (0.95, TAIL_BAR)):
        value = added[round(share * (len(added) - 1))]
        name = f"additional delay, {share:.0%} of {len(added)}"
        figures.append(near(case, name, value / MS, _quantile(asked, share) / MS, bar / MS, "ms"))
    wild = seen.report.forward.out_of_order
    return [
        *figures,
        exactly(case, "in order: overtaken", seen.report.back.out_of_order),
        figure(case, "with overtaking: overtaken", [wild], "packets", "> 0", wild > 0),
        *_prompt(case, seen, typical=DELAY_BAR),
        *unordered(case, seen),
    ]


def overtaken_by(numbers: list[int]) -> dict[int, int]:
    """Number of a packet -> packets with higher numbers that arrived before it, for those that have any."""
    found: dict[int, int] = {}
    for place, number in enumerate(numbers):
        before = sum(other > number for other in numbers[max(0, place - 300) : place])
        if before:
            found[number] = before
    return found


def reordering(bench: Traffic, n: int = N) -> list[Figure]:
    """Forward, 2 % are held back for 10 ms; return, 1 % until three others have passed."""
    case = "reordering"
    by_time, by_gap = Reordering(2 * PERCENT, 10 * MS), Reordering(1 * PERCENT, 1.0, 3)
    seen = stream_both_ways(bench, WIDE.with_forward(reordering=by_time).with_back(reordering=by_gap), n)
    forward, back = passed(seen, "forward"), passed(seen, "return")
    held = [each for each in _additional(forward) if each > by_time.delay / 2]
    places = overtaken_by([number for number, *_ in back.arrived])
    exact = sum(place == by_gap.gap for place in places.values()) / max(len(places), 1)
    return [
        share_of(case, f"forward, held back of {len(forward.sent)}", len(held) / len(forward.sent), by_time.rate, n),
        near(case, "forward: for how long", median(held) / MS, by_time.delay / MS, DELAY_BAR / MS, "ms"),
        share_of(case, f"return, overtaken of {len(back.sent)}", len(places) / len(back.sent), by_gap.rate, n),
        # a packet that is held back does not pass another one
        figure(case, "return: by exactly 3", [exact / PERCENT], "%", ">= 90", exact >= 0.9),
        exactly(case, "in the report, forward", seen.report.forward.reordered, len(held)),
        exactly(case, "in the report, return", seen.report.back.reordered, len(places)),
        *_prompt(case, seen, typical=DELAY_BAR, longest=by_time.delay / 4),
        *unordered(case, seen),
    ]


def leaving(sent: Mapping[int, float], serialisation: float) -> dict[int, float]:
    """When each packet leaves a queue that loses none, seconds since 1970.

    A sender that had no CPU for a while sends what it missed at once, and these packets wait for each other.
    """
    found, free = dict[int, float](), 0.0
    for number, time in sorted(sent.items(), key=lambda packet: packet[1]):
        free = found[number] = max(time, free) + serialisation
    return found


def _additional(stream: Passed) -> list[float]:
    """Delay of each small packet beyond those of the wide link and of its queue, seconds, in order of arrival."""
    left = leaving(stream.sent, SMALL_BITS / WIDE.forward.rate)
    return [time - left[number] - WIDE.forward.delay for number, time, _ in stream.arrived]


def duplication(bench: Traffic, n: int = N) -> list[Figure]:
    """1 % of the forward packets and 5 % of the return packets arrive twice."""
    case = "duplication"
    shares = (1 * PERCENT, 5 * PERCENT)
    seen = stream_both_ways(bench, WIDE.with_forward(duplication=shares[0]).with_back(duplication=shares[1]), n)
    figures = []
    for way, share, counters in zip(
        ("forward", "return"), shares, (seen.report.forward, seen.report.back), strict=True
    ):
        times = Counter(number for number, *_ in passed(seen, way).arrived)
        twice = sum(count == 2 for count in times.values())
        figures.append(share_of(case, f"{way}, twice of {len(times)}", twice / len(times), share, n))
        figures.append(exactly(case, f"{way}: most often", max(times.values()), 2, "times"))
        figures.append(exactly(case, f"{way}: in the report", counters.duplicated, twice))
    return [*figures, *lag(case, seen)]


def udp_cross_traffic(bench: Traffic, duration: float = 4.0) -> list[Figure]:
    """6 Mbit/s of others, beside which a stream of 3 Mbit/s fits into 10 Mbit/s, and one of 8 Mbit/s does not."""
    others = UdpCrossTraffic(6 * MBPS, STREAM_SIZE + UDP_IPV4)
    bits = (others.packet_size + PPP) * 8
    others = replace(others, rate=6 * MBPS * others.packet_size * 8 / bits)  # as the link carries it: 6 Mbit/s
    queue = 50
    link = TEN.with_forward(queue=queue, udp_cross_traffic=others)
    figures = []
    for rate, full in ((3 * MBPS, False), (8 * MBPS, True)):
        case = f"UDP cross traffic beside {rate / MBPS:g} Mbit/s"
        seen = bench.stream(link, [Flow("forward", rate, duration), Flow("return", 50 * 1040, duration, SMALL)])
        report, stream = seen.report.forward.udp_cross_traffic, passed(seen, "forward")
        if report is None or seen.report.back.udp_cross_traffic is not None:
            return [figure(case, "reported in the wrong direction", [1], "", "0", False)]
        life = report.end - report.begin
        sent = (report.sent - 1) * bits / life
        figures.append(near(case, "sent", sent / MBPS, 6, 0.006, "Mbit/s"))
        waiting = report.sent - report.queue_drops - report.delivered
        waits = figure(case, "neither dropped nor delivered", [waiting], "packets", "0 to 51", 0 <= waiting <= 51)
        figures.append(waits)
        lost = len(stream.sent) - len(stream.arrived)
        dropped = lost + report.queue_drops
        if full:
            # from when the link carries both on: the others begin with the first packet of the stream that returns
            begin = report.begin + link.forward.delay + SERIALISATION
            times = [time for _, time, _ in stream.arrived if time >= begin]
            beside, name = len(times), "lag of the flows: packets beside others"
            figures.append(figure(case, name, [beside], "packets", "> 1", beside > 1))
            if beside <= 1:  # a busy machine has started the stream that returns when this one had ended
                return figures
            lasted = times[-1] - times[0]
            # the others that have come while the last packet of the stream waited are too many, and parts of packets
            most = ceil(0.6 * (queue + 1)) + 2
            passing = 6 * MBPS * lasted / bits - report.queue_drops
            more = len(times) + passing - 10 * MBPS * lasted / bits
            bar = f"0 to {most}"
            figures.append(figure(case, "more than the link carries", [more], "packets", bar, 0 <= more <= most))
            came = sorted(time for time in stream.sent.values() if time >= report.begin)
            # at the end, the queue is full, and one packet is on its way into the link
            least = len(came) - (10 - 6) * MBPS * (came[-1] - came[0]) / bits - (queue + 2)
            # fewer if a busy machine starts one of them late
            figures.append(figure(case, "lag of the flows: too many packets", [least], "packets", "> 100", least > 100))
            bar = f">= {least:.0f}"
            figures.append(figure(case, "dropped by the queue", [dropped], "packets", bar, dropped >= least))
        else:
            figures.append(exactly(case, "dropped by the queue", dropped))
        figures += lag(case, seen)
    return figures


def together(bench: Traffic, n: int = N) -> list[Figure]:
    """All elements at once, in both directions: every packet is accounted for."""
    case = "all together"
    queue = Queue(QueueDiscipline.FQ_CODEL, 1000, ecn=True)
    link = WIDE.with_forward(
        queue=queue,
        loss=WIRELESS,
        jitter=Jitter(2 * MS, overtake=True),
        reordering=Reordering(1 * PERCENT, 5 * MS),
        duplication=1 * PERCENT,
    ).with_back(
        queue=Queue(QueueDiscipline.PIE, 500, ecn=True),
        loss=WIRED,
        jitter=Jitter(1 * MS, JitterShape.NORMAL),
        reordering=Reordering(1 * PERCENT, 100 * MS, 2),
        duplication=2 * PERCENT,
    )
    seen = stream_both_ways(bench, link, n)
    figures = []
    models = (
        ("forward", WIRELESS, link.forward.duplication, seen.report.forward),
        ("return", WIRED, link.back.duplication, seen.report.back),
    )
    for way, model, twice, counters in models:
        arrived = counters.received - counters.loss_drops - counters.queue_drops
        figures.append(share_of(case, f"{way}: lost", counters.loss_drops / counters.received, loss_share(model), n))
        figures.append(share_of(case, f"{way}: held back", counters.reordered / arrived, 1 * PERCENT, n))
        figures.append(share_of(case, f"{way}: twice", counters.duplicated / arrived, twice, n))
        rest = arrived + counters.duplicated - counters.delivered
        figures.append(exactly(case, f"{way}: not accounted for", rest))
    return [*figures, *unordered(case, seen)]


# ---- queues ---------------------------------------------------------------------------------


def _standing(
    bench: Traffic, queue: Queue, duration: float, *, ecn: int = ECT0, load: float = 1.0, burst: int = STANDING
) -> tuple[Seen, Passed]:
    """A stream at ``load`` of the link's rate behind ``burst`` packets that are sent at once."""
    flow = Flow("forward", load * TEN.forward.rate, duration, catch_up=1.0, burst=burst, ecn=ecn)
    seen = bench.stream(TEN.with_forward(queue=queue), [flow])
    return seen, passed(seen, "forward")


def _waits(stream: Passed) -> list[float]:
    """Queueing delay of each packet, seconds, in order of arrival."""
    return [delay - TEN.forward.delay - SERIALISATION for delay in stream.delays()]


def _marks(stream: Passed) -> int:
    return sum(ecn == CE for *_, ecn in stream.arrived)


def byte_limit(bench: Traffic) -> list[Figure]:
    """A drop-tail queue of 30 kB holds as many packets as fit into it."""
    case, limit = "queue of 30 kB", 30_000
    seen, stream = _standing(bench, Queue(QueueDiscipline.DROP_TAIL, limit, QueueUnit.BYTES), 3.0, load=1.3)
    held = sorted(wait / SERIALISATION for wait in _waits(stream))
    expected = limit // (STREAM_SIZE + UDP_IPV4 + PPP)
    p95 = held[round(0.95 * (len(held) - 1))]
    fits = expected - 0.5 <= p95 <= expected + 1
    return [figure(case, "packets held, p95", [p95], "packets", f"{expected}", fits), *lag(case, seen)]


def codel_marks(interval: float, duration: float) -> int:
    """Marks of CoDel in a queue that stays above its target for ``duration`` seconds (RFC 8289, section 5.4).

    With ECN the next mark is due after interval / sqrt(count), counted from the packet that was marked.
    """
    time, count = ceil(interval / SERIALISATION) * SERIALISATION, 0
    while time <= duration:
        count += 1
        time = ceil((time + interval / count**0.5) / SERIALISATION) * SERIALISATION
    return count


def codel(bench: Traffic, duration: float = 4.0) -> list[Figure]:
    """Marks of a standing queue follow the control law; packets without ECN are dropped instead."""
    case, queue = "codel", Queue(QueueDiscipline.CODEL, 1000, target=5 * MS, interval=100 * MS, ecn=True)
    seen, stream = _standing(bench, queue, duration)
    marks, expected = _marks(stream), codel_marks(100 * MS, duration + STANDING * SERIALISATION)
    # the queue runs empty if the sender gets no CPU for too long; CoDel then starts again
    shortest = min(_waits(stream)[STANDING:]) / MS
    plain, unmarked = _standing(bench, queue, duration, ecn=0, load=1.05)
    drops = plain.report.forward.queue_drops
    return [
        figure(case, "lag of the sender: shortest wait", [shortest], "ms", "> 5", shortest > 5),
        near(case, f"marks of {len(stream.arrived)}", marks, expected, MARK_BAR * expected, "packets"),
        _told(case, seen, marks),
        exactly(case, "queue drops with ECN", seen.report.forward.queue_drops),
        exactly(case, "without ECN: marks", _marks(unmarked)),
        figure(case, "without ECN: queue drops", [drops], "packets", "> 0", drops > 0),
        *lag(case, seen),
    ]


def _told(case: str, seen: Seen, marks: int) -> Figure:
    return exactly(case, "in the report", seen.report.forward.ecn_marks, marks)


def fq_codel(bench: Traffic) -> list[Figure]:
    """A thin flow does not wait behind a stream that fills the queue; in a drop-tail queue it does."""
    case, limit = "fq-codel", 100
    nominal = TEN.round_trip_delay + 2 * SMALL_BITS / TEN.forward.rate
    errors = {}
    for discipline in (QueueDiscipline.FQ_CODEL, QueueDiscipline.DROP_TAIL):
        target = 1.0 if discipline is QueueDiscipline.FQ_CODEL else None
        link = TEN.with_forward(queue=Queue(discipline, limit, target=target))
        seen = bench.ping(link, 4, 200, Flow("forward", 1.3 * TEN.forward.rate, 10.0, catch_up=1.0))
        errors[discipline] = [(value - nominal) / MS for value in seen.round_trips]
    fair, plain = errors[QueueDiscipline.FQ_CODEL], errors[QueueDiscipline.DROP_TAIL]
    # a packet of the stream that is being sent, and one that waits
    bar = 2 * SERIALISATION / MS + 1
    full = 0.9 * limit * SERIALISATION / MS
    return [
        figure(case, "RTT error of a thin flow", fair, "ms", f"median <= {bar:.1f}", median(fair) <= bar),
        figure(case, "the same with drop-tail", plain, "ms", f"median >= {full:.1f}", median(plain) >= full),
        *lag(case, seen),
    ]


def pie_probabilities(left: list[tuple[float, float]], target: float) -> Iterator[float]:
    """Probability after each update (RFC 8033, sections 4.2 and 5.5).

    ``left``: when each packet left the queue and how long it had waited, seconds.
    """
    scale = ((1e-6, 2048), (1e-5, 512), (1e-4, 128), (1e-3, 32), (1e-2, 8), (1e-1, 2))
    current, before, place = 0.0, left[0][1], 0
    begin, end = left[0][0], left[-1][0]
    for update in range(floor((end - begin) / PIE_PERIOD)):
        time = update * PIE_PERIOD
        while left[place + 1][0] <= begin + time:
            place += 1
        delay = left[place][1]
        if time >= PIE_BURST:
            step = 0.125 * (delay - target) + 1.25 * (delay - before)
            step /= next((divisor for below, divisor in scale if current < below), 1)
            current = min(max(current + step, 0.0), 1.0)
        before = delay
        yield current


def pie(bench: Traffic, duration: float = 6.0) -> list[Figure]:
    """Marks of a standing queue follow the controller; an overload is dropped so that the delay meets the target."""
    case, target = "pie", (STANDING - 5) * SERIALISATION
    queue = Queue(QueueDiscipline.PIE, 1000, ecn=True)
    seen, stream = _standing(bench, replace(queue, target=target), duration)
    gone = [time - TEN.forward.delay - SERIALISATION for _, time, _ in stream.arrived]
    marks, per_update = _marks(stream), PIE_PERIOD / SERIALISATION
    expected = sum(pie_probabilities(list(zip(gone, _waits(stream), strict=True)), target)) * per_update
    over, dropped = _standing(bench, queue, 2 * duration, ecn=0, load=OVERLOAD, burst=0)
    last = len(dropped.arrived) * 2 // 3
    late = _waits(dropped)[last:]
    numbers = [number for number, *_ in dropped.arrived][last:]
    share = 1 - len(numbers) / (numbers[-1] - numbers[0] + 1)
    asked = 1 - 1 / OVERLOAD
    return [
        near(case, f"marks of {len(stream.arrived)}", marks, expected, 4 * expected**0.5, "packets"),
        _told(case, seen, marks),
        near(case, f"dropped at {OVERLOAD:.0%} load", share / PERCENT, asked / PERCENT, 2.0, "%"),
        near(case, "queueing delay then", median(late) / MS, PIE_TARGET / MS, 5.0, "ms"),
        *lag(case, over),
    ]


def red_marks(lengths: Iterable[int], *, minimum: int, maximum: int, probability: float, weight: float) -> float:
    """Expected number of marks by ns-3's RED, given the length of the queue that each packet finds.

    After a mark, no packet is marked while (packets since then) x (marking probability) is below 1; above,
    the probability rises so that the distance between marks is uniform ("wait" of Floyd's RED). The distance is
    a whole number of packets, so its mean is not simply 3/2 of the inverse probability.
    """
    average, expected = 0.0, 0.0
    since: dict[int, float] = {}
    for length in lengths:
        average += weight * (length - average)
        if average < minimum:
            since = {}
            continue
        if not since:
            since = {1: 1.0}
            continue
        basic = probability * (average - minimum) / (maximum - minimum)
        before, since = since, {0: 0.0}
        for count, share in before.items():
            if share == 0.0:
                continue
            product = (count + 1) * basic
            marked = 0.0 if product < 1 else min(basic / (2 - product), 1.0) if product < 2 else 1.0
            expected += share * marked
            since[0] += share * marked
            since[count + 1] = share * (1 - marked)
    return expected


def red(bench: Traffic, duration: float = 8.0) -> list[Figure]:
    """Marked packets of a standing queue follow the probability that its length asks for."""
    case = "red"
    minimum, maximum, probability, weight = 100, 200, 0.2, 0.02
    queue = Queue(
        QueueDiscipline.RED, 1000, minimum=minimum, maximum=maximum, probability=probability, weight=weight, ecn=True
    )
    seen, stream = _standing(bench, queue, duration)
    lengths = [floor(wait / SERIALISATION) for wait in _waits(stream)]
    shortest = min(lengths[STANDING:])
    marks = _marks(stream)
    expected = red_marks(lengths, minimum=minimum, maximum=maximum, probability=probability, weight=weight)
    return [
        figure(case, "mean queue", [fmean(lengths[STANDING:])], "packets"),
        # the queue becomes too short for RED if the sender gets no CPU for too long
        figure(case, "lag of the sender: shortest queue", [shortest], "packets", "> 100", shortest > 100),
        near(case, f"marks of {len(stream.arrived)}", marks, expected, MARK_BAR * expected, "packets"),
        _told(case, seen, marks),
        exactly(case, "queue drops", seen.report.forward.queue_drops),
        *lag(case, seen),
    ]


def threshold(bench: Traffic, above: float = 10 * MS) -> list[Figure]:
    """Every packet that waited longer than the threshold is marked, and no other one."""
    case = f"mark above {above / MS:g} ms"
    seen, stream = _standing(bench, Queue(QueueDiscipline.DROP_TAIL, 1000, mark_above=above), 4.0, load=0.9)
    judged = [
        (wait > above, ecn == CE)
        for wait, (*_, ecn) in zip(_waits(stream), stream.arrived, strict=True)
        if abs(wait - above) > 1 * MS
    ]
    longer = sum(expected for expected, _ in judged)
    right = sum(expected == marked for expected, marked in judged) / len(judged)
    return [
        figure(case, f"waited longer, of {len(judged)}", [longer], "packets", "> 100", longer > 100),
        figure(case, "marked as asked", [right / PERCENT], "%", ">= 99", right >= 0.99),
        *lag(case, seen),
    ]


def disturbances(bench: Traffic) -> Iterator[list[Figure]]:
    """All of them."""
    yield loss(bench, "Gilbert-Elliott, Table 1", WIRED, WIRELESS)
    yield loss(bench, "Gilbert-Elliott, both states", BOTH_STATES, WIRELESS)
    yield loss(bench, "loss 0.1 and 0.01 %", RARE, RARER)
    yield jitter(bench, JitterShape.UNIFORM, 10 * MS)
    yield jitter(bench, JitterShape.EXPONENTIAL, 5 * MS)
    yield jitter(bench, JitterShape.NORMAL, 2 * MS)
    yield reordering(bench)
    yield duplication(bench)
    yield udp_cross_traffic(bench)
    yield together(bench)


def disciplines(bench: Traffic) -> Iterator[list[Figure]]:
    """All of them."""
    yield byte_limit(bench)
    yield codel(bench)
    yield fq_codel(bench)
    yield pie(bench)
    yield red(bench)
    yield threshold(bench)
