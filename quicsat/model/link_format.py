"""A link in words, as tables and pages show it."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from statistics import median
from typing import Any

from quicsat.model.emulated_link import (
    Blackhole,
    Corruption,
    CorruptionMode,
    Demand,
    Direction,
    EmulatedLink,
    GilbertElliottLoss,
    Jitter,
    LinkDirection,
    Loss,
    Profile,
    Queue,
    QueueMode,
    QueueUnit,
    Rebind,
    Reordering,
    TimersFrom,
    UdpCrossTraffic,
    UniformLoss,
    loss_share,
)
from quicsat.model.gateways import LINUX, PEPS, Pep, TcpBuffers, Vpn, VpnProgram, VpnTransport
from quicsat.model.real_link import Baseline, RealLink
from quicsat.model.test_case import Link, TestCase, files_in_words
from quicsat.model.text import counted, first_few
from quicsat.model.units import byte_size, mbit_per_s, percent, seconds

WAYS = {LinkDirection.BOTH: "", LinkDirection.CLIENT: " forward", LinkDirection.SERVER: " return"}
NONE = "none"
MOST_DROPS = 8
"""Packets of a list that are named."""


def format_link(link: Link) -> str:
    """``20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 packets, loss 1 %``; forward / return where they differ."""
    if isinstance(link, RealLink):
        return _real_link(link)
    rates = _both(mbit_per_s(link.forward.rate), mbit_per_s(link.back.rate), " Mbit/s")
    queue = _both(format_queue(link.forward.queue), format_queue(link.back.queue), " packets")
    paper = " (as QIR-SE had it)" if link.queue_mode is QueueMode.PAPER else ""
    loss = _both(_loss(link.forward.loss), _loss(link.back.loss))
    loss = "no loss" if loss == NONE else f"loss {loss}"
    geometry = f"{rates}, RTT {seconds(link.round_trip_delay)}, queue {queue}{paper}"
    return ", ".join([geometry, loss, *client_side_words(link), *_changes(link), *_impairments(link), *_tcp(link)])


def format_details(case: TestCase) -> str:
    """What a row with rates, round trip, queues, losses, bytes and time limit does not tell of a test case."""
    link = case.link
    own = _real_details(link) if isinstance(link, RealLink) else _emulated_details(link)
    return "; ".join([*own, *_transfer(case)])


def _real_details(link: RealLink) -> Iterator[str]:
    yield f"real, client at {link.client_host}, server at {link.server_host}"
    yield from filter(None, (link.provider, link.tariff, f"modem {link.modem}" if link.modem else ""))
    if link.traffic_limit:
        yield f"at most {link.traffic_limit}"


def _emulated_details(link: EmulatedLink) -> Iterator[str]:
    yield link.scenario
    if link.forward.delay != link.back.delay:
        yield f"delay {_both(seconds(link.forward.delay), seconds(link.back.delay))}"
    if link.queue_mode is QueueMode.PAPER:
        yield "queues as QIR-SE had them"
    for way, loss in (("forward", link.forward.loss), ("return", link.back.loss)):
        yield from _bursts(way, loss)
    yield from (*client_side_words(link), *_changes(link), *_impairments(link), *_tcp(link))


def client_side_words(link: EmulatedLink) -> Iterator[str]:
    """``loss 1 % at the client's side``, ``50.00 Mbit/s, queue 9 packets, 5.0 ms and no loss at the client's side``;
    nothing without such a link.
    """
    if link.client_side is None:
        return
    ways = (link.client_side.forward, link.client_side.back)
    forward, back = ways
    loss = _both(_loss(forward.loss), _loss(back.loss))
    words = []
    if any(way.rate for way in ways):
        to, of = ("any rate" if way.rate is None else mbit_per_s(way.rate) for way in ways)
        before, behind = (NONE if way.queue is None else format_queue(way.queue) for way in ways)
        units = (" Mbit/s", " packets") if all(way.rate for way in ways) else ("", "")
        words += [_both(to, of, units[0]), f"queue {_both(before, behind, units[1])}"]
    words += [] if forward.delay == back.delay == 0 else [_both(seconds(forward.delay), seconds(back.delay))]
    if any(way.jitter for way in ways):
        words.append(f"jitter {_both(*(_jitter(way.jitter) if way.jitter else NONE for way in ways))}")
    words += ["no loss" if loss == NONE else f"loss {loss}"]
    yield f"{' and '.join(filter(None, (', '.join(words[:-1]), words[-1])))} at the client's side"


def _bursts(way: str, loss: Loss | None) -> Iterator[str]:
    """``forward loss P(b|g) 1.8 %, P(g|b) 64.5 %``, b: the bad state."""
    match loss:
        case UniformLoss(longest_burst=longest) if longest is not None:
            yield f"{way} loss of at most {longest} in a row"
        case GilbertElliottLoss():
            states = f"P(b|g) {_share(loss.good_to_bad)}, P(g|b) {_share(loss.bad_to_good)}"
            yield f"{way} loss {states}, {_share(loss.loss_in_good)} in g, {_share(loss.loss_in_bad)} in b"


def _transfer(case: TestCase) -> Iterator[str]:
    if case.workload is not None:
        yield f"{case.workload.name or 'objects'} ({case.workload.requests})"
        if case.workload.duration is not None:
            yield f"for {seconds(case.workload.duration)}"
    elif len(case.file_sizes) > 1:
        yield files_in_words(case)
    if case.flows:
        yield f"beside {' and '.join(flow.words for flow in case.flows)}"
    if case.limits is not None:
        yield f"limits: {', '.join(f'{name} {value:g}' for name, value in asdict(case.limits).items() if value)}"


def _real_link(link: RealLink) -> str:
    """``real, 20.00 / 2.00 Mbit/s as advertised, RTT about 600.0 ms, Novostream Connect L, modem SkyEdge II-c``."""
    rates = _both(mbit_per_s(link.forward.rate), mbit_per_s(link.back.rate), " Mbit/s")
    access = " ".join(filter(None, (link.provider, link.tariff)))
    words = [f"{rates} as advertised", f"RTT about {seconds(link.round_trip_delay)}", access]
    return ", ".join(["real", *filter(None, words), *([f"modem {link.modem}"] if link.modem else [])])


def format_baseline(baseline: Baseline) -> str:
    """``RTT 601.2 ms (600.4 ms to 633.0 ms), 0 of 20 packets lost, TCP 12.30 Mbit/s, return 1.20 Mbit/s``."""
    came = [each for each in baseline.round_trips if each is not None]
    sent = len(baseline.round_trips)
    words = f"RTT {seconds(median(came))} ({seconds(min(came))} to {seconds(max(came))})" if came else "no RTT"
    fast = f", TCP {mbit_per_s(baseline.goodput)}" if baseline.goodput is not None else ""
    back = f", return {mbit_per_s(baseline.return_goodput)}" if baseline.return_goodput is not None else ""
    return f"{words}, {sent - len(came)} of {counted(sent, 'packet')} lost{fast}{back}"


def format_queue(queue: int | Queue) -> str:
    """``25 packets``; ``codel 100 packets (target 5.0 ms, interval 100.0 ms, ECN)``."""
    if isinstance(queue, int):
        return counted(queue, "packet")
    limit = counted(queue.limit, "packet") if queue.unit is QueueUnit.PACKETS else byte_size(queue.limit)
    words = [f"{queue.discipline} {limit}"]
    words += [f"target {seconds(queue.target)}"] if queue.target is not None else []
    words += [f"interval {seconds(queue.interval)}"] if queue.interval is not None else []
    words += [f"{queue.minimum} to {queue.maximum} {queue.unit}"] if queue.minimum is not None else []
    words += [f"at most {_share(queue.probability)}"] if queue.probability is not None else []
    words += [f"weight {queue.weight:g}"] if queue.weight is not None else []
    words += ["ECN"] if queue.ecn else []
    words += [f"marks above {seconds(queue.mark_above)}"] if queue.mark_above is not None else []
    return " ".join([words[0], *([f"({', '.join(words[1:])})"] if words[1:] else [])])


def _both(forward: str, back: str, unit: str = "") -> str:
    return forward if forward == back else f"{forward.removesuffix(unit)} / {back}"


def _loss(loss: Loss | None) -> str:
    match loss:
        case UniformLoss(rate=rate, longest_burst=longest) if rate > 0:
            return f"{_share(rate)}{_at_most(longest)}"
        case GilbertElliottLoss() if loss_share(loss) > 0:
            burst = f"in bursts of {loss.mean_burst:.3g} packets" if math.isfinite(loss.mean_burst) else "without end"
            return f"{_share(loss_share(loss))} {burst}"
    return NONE


def _impairments(link: EmulatedLink) -> Iterator[str]:
    back = _impairments_of(link.back)
    for kind, words in _impairments_of(link.forward).items():
        if (words, back[kind]) != (NONE, NONE):
            yield f"{kind} {_both(words, back[kind])}"
    if link.blackhole:
        yield _blackhole(link.blackhole)
    if link.rebind:
        yield _rebind(link.rebind)
    if link.cross_traffic:
        yield f"beside a TCP flow ({link.cross_traffic.congestion_control})"


def _impairments_of(direction: Direction) -> dict[str, str]:
    values = {kind: (getattr(direction, field), in_words) for kind, (field, in_words) in IMPAIRMENTS.items()}
    return {kind: in_words(value) if value else NONE for kind, (value, in_words) in values.items()}


def _tcp(link: EmulatedLink) -> Iterator[str]:
    if link.pep:
        yield pep_in_words(link.pep)
    if link.vpn:
        yield _vpn(link.vpn)
    if link.endpoint_tcp:
        yield f"endpoints' TCP buffers {_buffers(link.endpoint_tcp)}"
        if link.endpoint_tcp.fast_open:
            yield "TCP Fast Open"


def pep_in_words(pep: Pep) -> str:
    letter = next((letter for letter, each in PEPS.items() if each == pep), None)
    if letter is not None:
        return f"PEP {letter}"
    return f"PEP (buffers {_buffers(pep)}, initial window {pep.initial_window}, {pep.congestion_control})"


VPN_NAMES = {VpnProgram.OPENVPN: "OpenVPN", VpnProgram.WIREGUARD: "WireGuard"}


def _vpn(vpn: Vpn) -> str:
    """``OpenVPN over UDP (MTU 1420)``."""
    words = [f"MTU {vpn.mtu}"]
    if vpn.transport is VpnTransport.TCP:
        own = (vpn.send_buffer, vpn.receive_buffer) != (LINUX.send_buffer, LINUX.receive_buffer)
        words += [f"buffers {_buffers(vpn)}"] if own else []
        words += [f"initial window {vpn.initial_window}", vpn.congestion_control]
        words += [] if vpn.nagle else ["TCP_NODELAY"]
    return f"{VPN_NAMES[vpn.program]} over {vpn.transport.upper()} ({', '.join(words)})"


def _buffers(tcp: TcpBuffers) -> str:
    return _both(byte_size(tcp.send_buffer), byte_size(tcp.receive_buffer))


def _changes(link: EmulatedLink) -> Iterator[str]:
    if link.forward.profile or link.back.profile:
        yield f"profile {_both(_profile(link.forward.profile), _profile(link.back.profile))}"
    if link.demand:
        yield _demand(link.demand)


def _jitter(jitter: Jitter) -> str:
    return f"{jitter.shape} {seconds(jitter.size)}{' with overtaking' if jitter.overtake else ''}"


def _reordering(reordering: Reordering) -> str:
    packets = "" if reordering.gap is None else f"{counted(reordering.gap, 'packet')}, at most "
    return f"{_share(reordering.rate)} by {packets}{seconds(reordering.delay)}"


def _profile(profile: Profile | None) -> str:
    """``leo of 300.0 s (2f4a09c1b77e)``: with the digest of its values."""
    if profile is None:
        return NONE
    once = "" if profile.loop else ", once"
    once += (
        ", from a random time" if profile.start is None else f", from {seconds(profile.start)}" * (profile.start > 0)
    )
    rates = [rate for rate in profile.rates if rate > 0]
    spread = f", {mbit_per_s(min(rates))} to {mbit_per_s(max(rates))}" if rates else ""
    return f"{profile.source} of {seconds(profile.length)}{once}{spread} ({profile.digest})"


def _demand(demand: Demand) -> str:
    constant = f", {mbit_per_s(demand.constant_rate)} constant" if demand.constant_rate else ""
    slots = f"frames of {seconds(demand.frame)} with slots of {demand.slot} B"
    return f"return capacity on demand after {seconds(demand.delay)} in {slots}{constant}"


def _corruption(corruption: Corruption) -> str:
    if not corruption.rate:
        return NONE
    lost = " as loss" if corruption.mode is CorruptionMode.LOSS else ""
    return f"{_share(corruption.rate)}{_at_most(corruption.longest_burst)}{lost}"


def _blackhole(hole: Blackhole) -> str:
    times = "" if hole.repeat == 1 else f", {hole.repeat} times"
    return (
        f"dark{WAYS[hole.direction]} for {seconds(hole.off)} after {seconds(hole.on)}{times}{_from(hole.timers_from)}"
    )


def _rebind(rebind: Rebind) -> str:
    what = "address and port" if rebind.address else "port"
    again = "" if rebind.period is None else f", then every {seconds(rebind.period)}"
    return f"new client {what} after {seconds(rebind.first)}{again}{_from(rebind.timers_from)}"


def _from(origin: TimersFrom) -> str:
    return " of the simulation" if origin is TimersFrom.START else ""


def _udp_cross_traffic(traffic: UdpCrossTraffic) -> str:
    """``of 5.00 Mbit/s after 20.0 s``."""
    late = f" after {seconds(traffic.start)}" if traffic.start else ""
    return f"of {mbit_per_s(traffic.rate)} in packets of {traffic.packet_size} B{late}"


def _at_most(longest: int | None) -> str:
    return "" if longest is None else f" (at most {longest} in a row)"


def _share(share: float) -> str:
    return percent(share, 0 if round(share * 100, 6).is_integer() else 2)


IMPAIRMENTS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "jitter": ("jitter", _jitter),
    "reordering": ("reordering", _reordering),
    "duplication": ("duplication", _share),
    "corruption": ("corruption", _corruption),
    "drops": ("drops", lambda drops: f"no. {first_few(drops, MOST_DROPS)}"),
    "beside UDP packets": ("udp_cross_traffic", _udp_cross_traffic),
}
"""What a direction may do to packets -> its field of :class:`Direction`, and the field's value in words."""
