"""The events of a link as qlog, in the namespace ``link``, which docs/reference/qlog.md defines; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from quicsat.analysis.link_events import link_history
from quicsat.model.arrays import Flags, Integers
from quicsat.model.emulated_link import (
    ClientSideDirection,
    Direction,
    DirectionReport,
    EmulatedLink,
    Queue,
    SimulatorReport,
    loss_share,
)
from quicsat.model.outcomes import Cause
from quicsat.model.test_case import Link
from quicsat.traces.columns import Datagrams, Trace
from quicsat.traces.qlog_events import Event, Timed, milliseconds
from quicsat.traces.quic_series import QuicTracePair
from quicsat.traces.series import Packets, Series

SCHEMA = "https://quicsat.invalid/112026/qlog/link"
CLIENT_SIDE = "client side"
"""Place of the link at the client's side, and in the triggers of what it drops."""
CE = 3
"""The mark "congestion experienced" in ``Trace.ecn``."""


@dataclass(frozen=True)
class LinkRun:
    """The link of a run, and what is known of it beside the traces."""

    link: Link
    report: SimulatorReport | None
    seed: int
    start: float
    """When the client sent its first packet by the clock of the report."""


def link_events(run: LinkRun, series: Series, pair: QuicTracePair | None = None) -> list[Timed]:
    """All events of the link, by time; marks of packets only with the traces (``pair``)."""
    packets = series.forward, series.back
    end = max(
        (float(np.nanmax(each)) for table in packets for each in (table.sent, table.arrived) if each.size), default=0.0
    )
    history = link_history(run.link, run.report, run.seed, run.start, end)
    outages = [(each.begin, each.end) for each in history.events if each.cause is Cause.LINK_OUTAGE]
    directions = (run.link.forward, run.link.back) if isinstance(run.link, EmulatedLink) else (None, None)
    client_side = run.link.client_side if isinstance(run.link, EmulatedLink) else None
    sides = (client_side.forward, client_side.back) if client_side else (None, None)
    reports = (run.report.forward, run.report.back) if run.report else (None, None)
    counted = run.report.client_side if run.report else None
    others = (counted.forward, counted.back) if counted else (None, None)
    marked = _marked(pair) if pair else (None, None)
    found = [event for each in history.events for event in _change(each.begin, each.end, each.text, each.cause)]
    for way, table, direction, side, report, other, marks in zip(
        ("forward", "return"), packets, directions, sides, reports, others, marked, strict=True
    ):
        if direction is not None:
            found += _parameters(way, direction)
            found += _steps(way, direction, report, run, end)
        if side is not None:
            found += _parameters(way, side)
        regular = (direction is None or direction.profile is None) and (side is None or side.rate is None)
        reason = _reason(report, other)
        found += _packets(way, table, marks, _Link(reason, outages, _waiting(table) if regular else None))
    return sorted(found, key=lambda each: each[0])


def _parameters(way: str, direction: Direction | ClientSideDirection) -> Iterator[Timed]:
    """Those of the link, or of the one at the client's side, which may have neither rate nor queue."""
    queue = direction.queue
    place = {"place": CLIENT_SIDE} if isinstance(direction, ClientSideDirection) else {}
    buffer = {} if direction.rate is None else {
        "rate": round(direction.rate),
        "queue_limit": queue.limit if isinstance(queue, Queue) else queue,
        "queue_unit": queue.unit.value if isinstance(queue, Queue) else "packets",
        "queue_discipline": queue.discipline.value if isinstance(queue, Queue) else "drop-tail",
    }  # fmt: skip
    data = {"direction": way, **place, "delay": milliseconds(direction.delay), "loss": loss_share(direction.loss)}
    yield 0.0, "link:parameters_set", data | buffer


def _steps(way: str, direction: Direction, report: DirectionReport | None, run: LinkRun, end: float) -> Iterator[Timed]:
    """The steps of a profile: each change of rate, delay or loss."""
    profile, made = direction.profile, report.profile if report else None
    if profile is None or made is None or made.began is None:
        return
    at_start, began = profile.begin(run.seed), made.began - run.start
    for name, values in (("rate", profile.rates), ("delay", profile.delays), ("loss", profile.losses)):
        for time, value in profile.steps_between(values, at_start, at_start + max(end, 1e-3)) if values else ():
            told = {"rate": round(value), "delay": milliseconds(value)}.get(name, value)
            yield began + time - at_start, "link:parameters_updated", {"direction": way, name: told}


def _change(begin: float, end: float, text: str, cause: Cause) -> Iterator[Timed]:
    if cause is not Cause.LINK_OUTAGE:
        yield begin, "link:changed", {"message": text}
        return
    yield begin, "link:outage_updated", {"new": "outage", "message": text}
    yield end, "link:outage_updated", {"new": "available"}


# ---- packets --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Link:
    """What a direction does with packets."""

    reason: str
    outages: list[tuple[float, float]]
    waiting: tuple[Integers, Integers] | None
    """Packets and bytes in the queue when each packet comes."""

    def trigger(self, sent: float) -> str:
        """What dropped a packet that was sent at this time."""
        return "outage" if any(begin <= sent < end for begin, end in self.outages) else self.reason


def _reason(counted: DirectionReport | None, beside: DirectionReport | None) -> str:
    """What dropped all packets of a direction outside of outages; ``unknown`` if there were several reasons.

    ``beside``: of the link at the client's side, which the packets pass as well.
    """
    if counted is None:
        return "unknown"
    counts = {
        "queue": counted.queue_drops, "loss": counted.loss_drops, "list": counted.listed_drops,
        "nat": counted.nat_drops,
    }  # fmt: skip
    if beside is not None:
        counts |= {f"{CLIENT_SIDE} queue": beside.queue_drops, f"{CLIENT_SIDE} loss": beside.loss_drops}
    present = [name for name, count in counts.items() if count]
    return present[0] if len(present) == 1 else "unknown"


def _waiting(packets: Packets) -> tuple[Integers, Integers]:
    """Packets, and their bytes, that had come to the link before each packet and had not left its queue.

    A packet waits for as long as its delay exceeds the shortest one: on a link of constant delay. Those that did not
    arrive are not counted.
    """
    came = ~np.isnan(packets.arrived)
    shortest = float(packets.delay[came].min(initial=np.inf))
    entered, left, size = packets.sent[came], packets.arrived[came] - shortest, packets.size[came]
    by_entry, by_exit = np.argsort(entered, kind="stable"), np.argsort(left, kind="stable")
    inside = np.searchsorted(entered[by_entry], packets.sent, "left")
    gone = np.minimum(np.searchsorted(left[by_exit], packets.sent, "right"), inside)
    bytes_in, bytes_out = (np.concatenate([[0], np.cumsum(size[order])]) for order in (by_entry, by_exit))
    return inside - gone, np.maximum(bytes_in[inside] - bytes_out[gone], 0)


def _packets(way: str, packets: Packets, marked: Flags | None, link: _Link) -> Iterator[Timed]:
    for row, (sent, arrived, lost, number, size, connection) in enumerate(
        packets.rows("sent", "arrived", "lost", "number", "size", "connection")
    ):
        data: dict[str, Any] = {"direction": way, "length": size}
        data |= {"packet_number": number} if number >= 0 else {}
        data |= {"connection": connection} if connection >= 0 else {}
        depth: Event = {}
        if link.waiting is not None:
            depth = {"queue_packets": int(link.waiting[0][row]), "queue_bytes": int(link.waiting[1][row])}
        yield sent, "link:packet_enqueued", data | depth
        if lost:
            yield sent, "link:packet_dropped", data | {"trigger": link.trigger(sent)}
        elif not np.isnan(arrived):
            if marked is not None and marked[row]:
                yield arrived, "link:packet_marked", data
            yield arrived, "link:packet_departed", data


def _marked(pair: QuicTracePair) -> tuple[Flags, Flags]:
    """Which packets forward, and in return, arrived with the mark CE that they were not sent with."""
    at_client, at_server = _ecn(pair.client, pair.at_client), _ecn(pair.server, pair.at_server)
    found = list[Flags]()
    for matches, sender, receiver in ((pair.forward, at_server, at_client), (pair.back, at_client, at_server)):
        flags = np.zeros(len(matches.sent), dtype=np.bool_)
        came = matches.arrived >= 0
        flags[came] = (receiver[matches.arrived[came]] == CE) & (sender[matches.sent[came]] != CE)
        found.append(flags)
    return found[0], found[1]


def _ecn(trace: Trace, datagrams: Datagrams) -> Integers:
    """The mark of each datagram; 0 of all if the packets of the trace are not those of the datagrams."""
    firsts = np.flatnonzero(np.diff(trace.frame, prepend=-1))
    return trace.ecn[firsts] if len(firsts) == len(datagrams) else np.zeros(len(datagrams), dtype=np.int64)
