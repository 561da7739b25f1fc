"""A link in words, as tables and pages show it."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from interop.model.emulated_link import (
    Blackhole,
    Corruption,
    CorruptionMode,
    EmulatedLink,
    GilbertElliottLoss,
    LinkDirection,
    Loss,
    QueueMode,
    Rebind,
    UniformLoss,
)
from interop.model.real_link import Baseline, RealLink
from interop.model.test_case import Link
from interop.model.units import mbit_per_s, percent, seconds

WAYS = {LinkDirection.BOTH: "", LinkDirection.CLIENT: " forward", LinkDirection.SERVER: " return"}
MOST_DROPS = 8
"""Packets of a list that are named."""


def format_link(link: Link) -> str:
    """``20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 packets, loss 1 %``; forward / return where they differ."""
    if isinstance(link, RealLink):
        return _real_link(link)
    rates = _both(mbit_per_s(link.forward_rate), mbit_per_s(link.return_rate), " Mbit/s")
    queue = _both(f"{link.forward_queue} packets", f"{link.return_queue} packets", " packets")
    paper = " (as QIR-SE had it)" if link.queue_mode is QueueMode.PAPER else ""
    loss = _both(_loss(link.forward_loss), _loss(link.return_loss))
    loss = "no loss" if loss == "none" else f"loss {loss}"
    geometry = f"{rates}, RTT {seconds(link.round_trip_delay)}, queue {queue}{paper}"
    return ", ".join([geometry, loss, *_impairments(link)])


def _real_link(link: RealLink) -> str:
    """``real, 20.00 / 2.00 Mbit/s as advertised, RTT about 600.0 ms, Novostream Connect L, modem SkyEdge II-c``."""
    rates = _both(mbit_per_s(link.forward_rate), mbit_per_s(link.return_rate), " Mbit/s")
    access = " ".join(filter(None, (link.provider, link.tariff)))
    words = [f"{rates} as advertised", f"RTT about {seconds(link.round_trip_delay)}", access]
    return ", ".join(["real", *filter(None, words), *([f"modem {link.modem}"] if link.modem else [])])


def format_baseline(baseline: Baseline) -> str:
    """``RTT 601.2 ms (600.4 ms to 633.0 ms), 0 of 20 packets lost, TCP 12.30 Mbit/s``."""
    came = [each for each in baseline.round_trips if each is not None]
    sent = len(baseline.round_trips)
    words = f"RTT {seconds(median(came))} ({seconds(min(came))} to {seconds(max(came))})" if came else "no RTT"
    fast = f", TCP {mbit_per_s(baseline.goodput)}" if baseline.goodput is not None else ""
    return f"{words}, {sent - len(came)} of {sent} packets lost{fast}"


def _both(forward: str, back: str, unit: str = "") -> str:
    return forward if forward == back else f"{forward.removesuffix(unit)} / {back}"


def _loss(loss: Loss | None) -> str:
    match loss:
        case UniformLoss(rate=rate, longest_burst=longest) if rate > 0:
            return f"{_share(rate)}{_at_most(longest)}"
        case GilbertElliottLoss(good_to_bad=start, bad_to_good=end) if start > 0:
            burst = f"in bursts of {1 / end:.3g} packets" if end > 0 else "without end"
            return f"{_share(start / (start + end))} {burst}"
    return "none"


def _impairments(link: EmulatedLink) -> Iterator[str]:
    if link.forward_corruption or link.return_corruption:
        corruption = _both(_corruption(link.forward_corruption), _corruption(link.return_corruption))
        yield f"corruption {corruption}"
    if link.forward_drops or link.return_drops:
        yield f"drops {_both(_drops(link.forward_drops), _drops(link.return_drops))}"
    if link.blackhole:
        yield _blackhole(link.blackhole)
    if link.rebind:
        yield _rebind(link.rebind)
    if link.cross_traffic:
        yield f"beside a TCP flow ({link.cross_traffic.congestion_control})"


def _corruption(corruption: Corruption | None) -> str:
    if corruption is None or not corruption.rate:
        return "none"
    lost = " as loss" if corruption.mode is CorruptionMode.LOSS else ""
    return f"{_share(corruption.rate)}{_at_most(corruption.longest_burst)}{lost}"


def _drops(drops: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, drops[:MOST_DROPS]))
    more = f" and {len(drops) - MOST_DROPS} more" if len(drops) > MOST_DROPS else ""
    return f"no. {shown}{more}" if drops else "none"


def _blackhole(hole: Blackhole) -> str:
    times = "" if hole.repeat == 1 else f", {hole.repeat} times"
    return f"dark{WAYS[hole.direction]} for {seconds(hole.off)} after {seconds(hole.on)}{times}"


def _rebind(rebind: Rebind) -> str:
    what = "address and port" if rebind.address else "port"
    again = "" if rebind.period is None else f", then every {seconds(rebind.period)}"
    return f"new client {what} after {seconds(rebind.first)}{again}"


def _at_most(longest: int | None) -> str:
    return "" if longest is None else f" (at most {longest} in a row)"


def _share(share: float) -> str:
    return percent(share, 0 if round(share * 100, 6).is_integer() else 2)
