"""What the link did in a run: its changes in the times of the run, and the packets that it dropped; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from quicsat.model.emulated_link import EmulatedLink, LinkDirection, Profile, SimulatorReport
from quicsat.model.outcomes import Cause
from quicsat.model.test_case import Link
from quicsat.model.text import counted
from quicsat.model.units import mbit_per_s, percent, seconds
from quicsat.traces.series import Packets, Series

RATE_FALL = 0.5
"""A link has changed if less than this share of its rate is left,"""
DELAY_JUMP, LOSS_JUMP = 0.010, 0.05
"""if its delay is so many seconds longer, or if its loss has grown by so much."""
TOGETHER_TRIPS, TOGETHER_LEAST = 2.0, 0.25
"""Round trips, and seconds, between a change of the link and the end of a transfer that stopped because of it."""
REBOUND = "The NAT in front of the client changed its mappings"
FEW = 5
"""Fewer packets that were all lost do not show that the link carried nothing."""


@dataclass(frozen=True)
class LinkEvent:
    """A change of the link. Times are seconds since the client's first packet."""

    cause: Cause
    begin: float
    end: float
    """When it was over; equal to ``begin`` for what happened at once."""
    text: str
    """What happened, as a clause with a capital letter, without its time."""


@dataclass(frozen=True)
class LinkHistory:
    """All that the link is known to have done."""

    events: tuple[LinkEvent, ...] = ()
    dropped: str = ""
    """Packets by what dropped them, such as ``122 at the NAT, 3 by the queue``; empty if none or unknown."""


def link_history(link: Link, report: SimulatorReport | None, seed: int, begin: float, duration: float) -> LinkHistory:
    """The history of a run; ``begin``: its start by the clock of the report; ``duration``: seconds to look at."""
    if report is None or not isinstance(link, EmulatedLink):
        return LinkHistory()
    rebinds = (rebind.time - begin for rebind in report.rebinds)
    events = [
        *(LinkEvent(Cause.NAT_REBINDING, time, time, REBOUND) for time in rebinds),
        *(_blackhole(link, each.begin - begin, each.end - begin) for each in report.blackholes),
    ]
    for name, profile, made in (
        ("forward", link.forward.profile, report.forward.profile),
        ("return", link.back.profile, report.back.profile),
    ):
        if profile is not None and made is not None and made.began is not None:
            events += _changes(name, profile, profile.begin(seed), made.began - begin, duration)
    return LinkHistory(tuple(sorted(events, key=lambda event: event.begin)), _dropped(report))


def _blackhole(link: EmulatedLink, begin: float, end: float) -> LinkEvent:
    one_way = {LinkDirection.CLIENT: " forward", LinkDirection.SERVER: " on the return direction"}
    where = one_way.get(link.blackhole.direction, "") if link.blackhole else ""
    return LinkEvent(Cause.LINK_OUTAGE, begin, end, f"The link delivered nothing{where} for {seconds(end - begin)}")


def _changes(name: str, profile: Profile, at_start: float, began: float, duration: float) -> Iterator[LinkEvent]:
    """Outages and changes of one direction; ``at_start``: time of the profile at ``began``, a time of the run."""
    until = at_start + max(duration, 1e-3)

    def steps(values: tuple[float, ...]) -> list[tuple[float, float]]:
        found = profile.steps_between(values, at_start, until) if values else []
        return [(began + time - at_start, value) for time, value in found]

    rates, delays, losses = steps(profile.rates), steps(profile.delays), steps(profile.losses)
    dead = [(time, rate <= 0) for time, rate in rates], [(time, loss >= 1) for time, loss in losses]
    for begin, end in (interval for points in dead for interval in _intervals(points, began + duration)):
        yield LinkEvent(Cause.LINK_OUTAGE, begin, end, f"The {name} link delivered nothing for {seconds(end - begin)}")
    changes = [
        *((time, "rate", "fell", mbit_per_s(old), mbit_per_s(new)) for time, old, new in _pairs(rates)
          if 0 < new < RATE_FALL * old),
        *((time, "delay", "rose", seconds(old), seconds(new)) for time, old, new in _pairs(delays)
          if new > old + DELAY_JUMP),
        *((time, "loss", "rose", percent(old, 1), percent(new, 1)) for time, old, new in _pairs(losses)
          if old + LOSS_JUMP < new < 1),
    ]  # fmt: skip
    for time, what, way, before, after in changes:
        text = f"The {what} of the {name} link {way} from {before} to {after}"
        yield LinkEvent(Cause.LINK_CHANGE, time, time, text)


def _pairs(points: list[tuple[float, float]]) -> Iterator[tuple[float, float, float]]:
    """When a value changed, from what, and to what."""
    return ((time, before, after) for (_, before), (time, after) in pairwise(points))


def _intervals(points: list[tuple[float, bool]], end: float) -> Iterator[tuple[float, float]]:
    """From when to when consecutive points are true."""
    begin = None
    for time, dead in [*points, (end, False)]:
        if dead and begin is None:
            begin = time
        elif not dead and begin is not None:
            yield begin, time
            begin = None


def _dropped(report: SimulatorReport) -> str:
    """Packets of both directions by what dropped them."""
    both = (report.forward, report.back)
    beside = (report.client_side.forward, report.client_side.back) if report.client_side else ()
    kinds = {
        "at the NAT": sum(each.nat_drops for each in both),
        "in outages": sum(each.blackhole_drops for each in both),
        "by the queue": sum(each.queue_drops for each in both),
        "by the link's loss": sum(each.loss_drops for each in both),
        "by the queue at the client's side": sum(each.queue_drops for each in beside),
        "by the loss at the client's side": sum(each.loss_drops for each in beside),
        "by its list of drops": sum(each.listed_drops for each in both),
        "by corruption": sum(each.corrupted for each in both),
    }
    return ", ".join(f"{count} {where}" for where, count in kinds.items() if count)


# ---- how a transfer stopped --------------------------------------------------------------------


@dataclass(frozen=True)
class LinkStop:
    """What the link did when a transfer stopped."""

    cause: Cause
    sentence: str
    recovered: bool
    """Whether it carried packets in both directions again, so that the endpoints could have gone on."""


def link_stop(history: LinkHistory, series: Series, stop: float, end: float) -> LinkStop | None:
    """What the link did to a transfer in which nothing of use arrived from ``stop`` to ``end``, seconds; None: nothing.

    A change of the link within two round trips of ``stop``, after which packets were lost, or a link that carried none
    of the packets sent from then on in one direction.
    """
    both = series.forward, series.back
    near = max(TOGETHER_TRIPS * _round_trip(series), TOGETHER_LEAST)
    event = next((each for each in reversed(history.events) if abs(each.begin - stop) <= near), None)
    since = min(stop, event.begin) if event else stop
    forward, back = (_Fate.of(packets, since, end) for packets in both)
    kinds = f"; in the whole run, it dropped {history.dropped}" if history.dropped else ""
    fate = f"the link lost {forward.lost} of {counted(forward.sent, 'packet')} of the server and {back} of the client"
    if event is not None and forward.lost + back.lost:
        over = event.end + near
        later = [_Fate.of(packets, over, end) for packets in both]
        recovered = all(each.sent - each.lost >= FEW for each in later)
        what = f"{event.text} after {seconds(event.begin)}. The transfer stopped after {seconds(stop)}. From then on"
        return LinkStop(event.cause, f"{what}, {fate}{kinds}.", recovered)
    if any(each.lost == each.sent >= FEW for each in (forward, back)):
        return LinkStop(
            Cause.LINK_LOSS, f"The transfer stopped after {seconds(stop)}. From then on, {fate}{kinds}.", False
        )
    return None


@dataclass(frozen=True)
class _Fate:
    """What became of the packets of one direction that were sent from a time on.

    Those that would have arrived by ``end`` with the longest delay of the others are lost if they did not. ``Packets``
    know of no loss after the last packet that arrived.
    """

    sent: int
    lost: int

    @classmethod
    def of(cls, packets: Packets, since: float, end: float) -> _Fate:
        came = np.isfinite(packets.arrived)
        longest = float(packets.delay[came].max(initial=0.0))
        later = (packets.sent >= since) & (came | (packets.sent + longest <= end))
        return cls(int(later.sum()), int((later & ~came).sum()))

    def __str__(self) -> str:
        return f"{self.lost} of {self.sent}"


def _round_trip(series: Series) -> float:
    return float(np.median(series.rtt.value)) if len(series.rtt) else 0.0
