"""Where the time of a transfer went: each moment belongs to exactly one ``TimeShare``; docs/reference/time-shares.md.

The link serves the packets one after the other. While it is busy, nothing that the sender does could be faster. While
it is idle, the sender has a reason not to send, which the traces show: what it may send, what is in flight, and what
ended its silence. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from quicsat.analysis.failure_context import last_sent
from quicsat.analysis.link_events import link_history
from quicsat.model.arrays import Flags, Floats, Integers
from quicsat.model.emulated_link import EmulatedLink, SimulatorReport
from quicsat.model.evidence import Evidence
from quicsat.model.outcomes import Cause
from quicsat.model.test_case import Link, TestCase, path_rate
from quicsat.model.time_shares import TimeShare
from quicsat.traces.columns import Form, Frame
from quicsat.traces.flow_control import Steps, busiest_connection, connection_limit, data_sent, stream_limit
from quicsat.traces.http2 import stream_window
from quicsat.traces.quic_series import QuicTracePair, declared_lost
from quicsat.traces.run_traces import RunTraces
from quicsat.traces.series import Packets, Samples, Series, StreamData
from quicsat.traces.streams import response_frames
from quicsat.traces.tcp_events import TcpTracePair

TCP_HEADER = 22
"""Bytes of a packet on the link beside TCP's own header and payload."""
SAME_TIME = 1e-6
"""Seconds between two times of the same event at most."""
NO_LIMIT = 1 << 62
OTHERS = 0.01
"""Share of the data on other connections above which a run has no shares: each connection waits for something else."""
REACTION, LATE_REACTION, REACTION_SHARE = 0.001, 0.010, 0.05
"""Seconds after an acknowledgement within which a packet is sent because of it; the longer, the longer the pause that
it ends, since the sender may pace the packet: up to this share of the pause."""
PACING_TRIPS, PACING_LEAST = 0.25, 0.010
"""Round trips, and seconds, up to which a pause that a timer ends is one of the pacing."""
TOGETHER, LONGEST_BURST = 0.001, 14_720
"""Seconds between packets of a burst at most, and bytes of one of a server that paces: the initial window (RFC 9002,
sections 7.2 and 7.7)."""
LATE_TRIPS, ACK_DELAY = 2, 0.025
"""Round trips, and seconds of ``max_ack_delay`` (RFC 9000, section 18.2), after which an acknowledgement is overdue."""
GROWTH, ROUNDS = 1.25, 3
"""The bytes in flight no longer grow in slow start if they are not so many times as large after so many round trips;
as BBR finds the end of its start-up (draft-ietf-ccwg-bbr, section 5.3.1.2)."""
SMALLEST_WINDOW = 2400
"""Bytes: two packets of the smallest size (kMinimumWindow in RFC 9002, section 7.2)."""
SHORTEST = 0.001
"""Seconds of a round trip at least (kGranularity in RFC 9002, section 6.1.2)."""
FRESH = 1 / 8
"""Weight of a new round trip in the smoothed one."""
SHARES = tuple(TimeShare)
_NUMBER = {share: number for number, share in enumerate(SHARES)}


@dataclass(frozen=True, eq=False)
class LinkConditions:
    """What the forward link did; times are seconds since the client's first packet."""

    rate_times: Floats
    rates: Floats
    """bit/s from each of these times on; 0 while it sends nothing."""
    outages: Sequence[tuple[float, float]] = ()
    losses_take_time: bool = False
    """All packets that were lost had taken their time on the link: none was dropped by the queue."""
    header: int = 30
    """Bytes of a packet on the link beside its UDP payload."""


def run_time_shares(traces: RunTraces, series: Series, case: TestCase, evidence: Evidence) -> Stretches | None:
    """The shares of a run with this ``series``; ``case`` as it was perturbed.

    None beside other flows, of traces over QUIC that could not be decrypted, and of TCP over another link behind the
    second proxy.
    """
    pair = traces.trace_pair
    if case.flows or (isinstance(pair, QuicTracePair) and not traces.readable):
        return None
    if isinstance(pair, TcpTracePair) and pair.own is not None:
        return None
    link = link_conditions(case.link, evidence.simulator, evidence.seed, traces.start, last_sent(series))
    if isinstance(pair, TcpTracePair):
        link = replace(link, header=TCP_HEADER)
    return time_shares(pair, series, link)


def link_conditions(
    link: Link, report: SimulatorReport | None, seed: int, start: float, duration: float
) -> LinkConditions:
    """Those of a run that began at ``start`` by the clock of the report; ``duration``: seconds to look at."""
    history = link_history(link, report, seed, start, duration)
    outages = [(event.begin, event.end) for event in history.events if event.cause is Cause.LINK_OUTAGE]
    times, rates = [-np.inf], [path_rate(link)]
    profile = link.forward.profile if isinstance(link, EmulatedLink) else None
    made = report.forward.profile if report is not None else None
    if profile is not None and profile.rates:
        began = made.began - start if made is not None and made.began is not None else 0.0
        at_start = profile.begin(seed)
        steps = profile.steps_between(profile.rates, at_start, at_start + max(duration - began, 1e-3))
        times, rates = [began + time - at_start for time, _ in steps], [rate for _, rate in steps]
    if isinstance(link, EmulatedLink):
        rates = [*map(link.on_path, rates)]
    took_time = report is not None and not report.forward.queue_drops
    if report is not None and report.client_side is not None:
        took_time = took_time and not report.client_side.forward.queue_drops
    return LinkConditions(np.array(times), np.array(rates), _merged(outages), took_time)


def _merged(intervals: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same times as intervals that do not overlap."""
    found = list[tuple[float, float]]()
    for begin, end in sorted(intervals):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


@dataclass(frozen=True, eq=False)
class Stretches:
    """The time of a transfer in order; neighbours have different shares."""

    time: Floats
    """When each begins, and when the last one ends."""
    share: Integers
    """Of each: its place in ``SHARES``."""

    @property
    def seconds(self) -> dict[TimeShare, float]:
        """How long the transfer waited for each; all of them, together its duration."""
        total = np.bincount(self.share, np.diff(self.time), len(SHARES))
        return {share: float(total[number]) for share, number in _NUMBER.items()}


def time_shares(pair: QuicTracePair | TcpTracePair, series: Series, link: LinkConditions) -> Stretches | None:
    """The shares of a transfer.

    None if no single connection brought the data, if its limits of flow control at the beginning are unknown, or if too
    little could be decrypted.
    """
    sender = _over_tcp(pair, series) if isinstance(pair, TcpTracePair) else _over_quic(pair, series)
    if sender is None:
        return None
    marks = sender.marks
    busy = _busy(series.forward, link)
    edges = np.unique(np.concatenate([[0.0, *marks.times], busy.ravel(), *sender.edges, np.ravel(link.outages)]))
    edges = edges[(edges >= 0) & (edges <= marks.end)]
    middle = (edges[:-1] + edges[1:]) / 2
    share = sender.reasons(edges)
    for name, flags in (
        (TimeShare.TAIL, middle >= marks.sent),
        (TimeShare.OUTAGE, _within(middle, np.reshape(link.outages, (-1, 2)))),
        (TimeShare.FULL_RATE, _within(middle, busy)),
        (TimeShare.REQUEST, middle < marks.request),
        (TimeShare.HANDSHAKE, middle < marks.handshake),
    ):
        share[flags] = _NUMBER[name]
    new = np.flatnonzero(np.diff(share, prepend=-1))
    return Stretches(np.append(edges[new], edges[-1]), share[new])


@dataclass(frozen=True)
class _Marks:
    """Turning points of a transfer."""

    handshake: float
    """When the server knew that the handshake was complete."""
    request: float
    """When the first request arrived at the server."""
    sent: float
    """When the server sent the packet that brought the last new byte."""
    end: float
    """When it arrived."""

    @property
    def times(self) -> tuple[float, ...]:
        return self.handshake, self.request, self.sent, self.end


def _over_quic(pair: QuicTracePair, series: Series) -> _Sender | None:
    connection, arrived = busiest_connection(pair.server), series.arrived
    last, asked = _last_row(series), series.requests.arrived[~np.isnan(series.requests.arrived)]
    if connection is None or last is None or not len(asked):
        return None
    if not pair.server.connections[connection].client_parameters:
        return None
    forward = series.forward
    carrier = (forward.number == arrived.number[last]) & (forward.connection == arrived.connection[last])
    times = forward.sent[carrier & ~np.isnan(forward.arrived)]
    if not len(times):
        return None
    request, server, lost = float(asked.min()), pair.server, declared_lost(pair)
    marks = _Marks(*_begin(pair, connection, request), float(times.max()), float(arrived.time[last]))
    mine = server.from_server & server.eliciting & (server.form == Form.ONE_RTT) & (server.connection == connection)
    flight = series.in_flight
    fewer = flight.time[np.flatnonzero(np.diff(flight.value, prepend=0.0) < 0)]
    events = _Events(pair.server_times[mine], fewer, lost)
    return _Sender(series, marks, events, _quic_credit(pair, series, connection))


def _begin(pair: QuicTracePair, connection: int, request: float) -> tuple[float, float]:
    """When the server has completed the handshake, and has a request; ``request``: when the first one arrives.

    It shows by HANDSHAKE_DONE that it is complete (RFC 9001, section 4.1.2), or it answers. Before that, it does not
    read 1-RTT packets (section 5.7): the request may be a repetition. A request in 0-RTT ends the wait at once.
    """
    server, frames, signals = pair.server, pair.server.frames, pair.server.signals
    mine = server.connection[frames.packet] == connection
    answers = np.flatnonzero(mine & response_frames(server))
    done = signals.packet[(signals.kind == Frame.HANDSHAKE_DONE) & server.from_server[signals.packet]]
    done = np.append(done[server.connection[done] == connection], frames.packet[answers])
    if not len(answers) or (mine & (server.form[frames.packet] == Form.ZERO_RTT)).any():
        return request, request
    complete, first = float(pair.server_times[done].min()), answers[pair.server_times[frames.packet[answers]].argmin()]
    asked = mine & ~server.from_server[frames.packet] & (frames.stream == frames.stream[first])
    copies = pair.server_times[frames.packet[asked]]
    before = copies[copies <= pair.server_times[frames.packet[first]]]
    return complete, float(before.max()) if request < complete and len(before) else request


def _over_tcp(pair: TcpTracePair, series: Series) -> _Sender | None:
    """The sender's TLS is complete when the first request arrives; a packet that it repeats, it holds for lost."""
    last, asked = _last_row(series), series.requests.arrived[~np.isnan(series.requests.arrived)]
    if last is None or not len(asked):
        return None
    forward, sent, end = series.forward, series.sent, float(series.arrived.time[last])
    times = forward.sent[np.abs(forward.arrived - end) < SAME_TIME]
    if not len(times):
        return None
    request = float(asked.min())
    marks = _Marks(request, request, float(times.max()), end)
    connection = int(np.bincount(sent.connection, weights=sent.new).argmax())
    mine = sent.connection == connection
    back = ~pair.server.from_server & (pair.server.connection == connection)
    answers = pair.server.time[back] - pair.zeros[1] - SAME_TIME  # recorded a little after the server has got them
    again = sent.time[mine & sent.retransmission]
    events = _Events(sent.time[mine], answers, Samples(again, again))
    return _Sender(series, marks, events, _tcp_credit(pair, series, connection))


def _last_row(series: Series) -> int | None:
    """The row of the last new byte; None without round trips, or if several connections brought the responses."""
    arrived, ends = series.arrived, series.requests.last_byte
    if not np.isfinite(ends).any() or not len(series.rtt):
        return None
    news = np.flatnonzero((arrived.new > 0) & (arrived.time <= float(np.nanmax(ends)) + SAME_TIME))
    if not len(news):
        return None
    last = int(news[arrived.time[news].argmax()])
    others = np.isin(arrived.connection, series.requests.connection) & (arrived.connection != arrived.connection[last])
    return None if int(arrived.new[others].sum()) > OTHERS * int(arrived.new.sum()) else last


def _within(times: Floats, intervals: Floats) -> Flags:
    """Whether each time is in one of the intervals, which do not overlap and are in order."""
    if not len(intervals):
        return np.zeros(len(times), dtype=np.bool_)
    place = np.searchsorted(intervals[:, 0], times, "right") - 1
    found: Flags = (place >= 0) & (times < intervals[place, 1])
    return found


def _between(edges: Floats, flags: Flags, distance: Floats) -> Flags:
    """Whether each stretch between two edges lies between two stretches with flags, less than ``distance`` apart."""
    number = np.arange(len(flags))
    before = np.maximum.accumulate(np.where(flags, number, -1))
    after = np.minimum.accumulate(np.where(flags, number, len(flags))[::-1])[::-1]
    found: Flags = np.append(edges[:-1], np.inf)[after] - np.append(edges[1:], -np.inf)[before] < distance
    return found


def _busy(packets: Packets, link: LinkConditions) -> Floats:
    """When the link was sending packets: intervals in order, rows of begin and end.

    A link of constant delay: a packet leaves the link when it arrives, less the shortest time that one took beyond its
    own transmission.
    """
    if not (link.rates > 0).any():
        return np.zeros((0, 2))
    order = np.argsort(packets.sent, kind="stable")
    sent, arrived, size = packets.sent[order], packets.arrived[order], packets.size[order] + link.header
    rate = link.rates[np.maximum(np.searchsorted(link.rate_times, sent, "right") - 1, 0)]
    takes = np.divide(8.0 * size, rate, out=np.zeros(len(sent)), where=rate > 0)
    came = ~np.isnan(arrived)
    if not came.any():
        return np.zeros((0, 2))
    left = arrived - float((arrived - sent - takes)[came].min())
    if link.losses_take_time:
        left = _with_lost(sent, left, takes)
        came = ~np.isnan(left)
    begin, end = (left - takes)[came], left[came]
    by_begin = np.argsort(begin, kind="stable")
    begin, end = begin[by_begin], np.maximum.accumulate(end[by_begin])
    first = np.concatenate([[True], begin[1:] > end[:-1] + 1e-6])
    return np.stack([begin[first], end[np.append(np.flatnonzero(first)[1:] - 1, len(end) - 1)]], axis=1)


def _with_lost(sent: Floats, left: Floats, takes: Floats) -> Floats:
    """When each packet left the link, also those that were lost behind it: as soon as the link was free."""
    found, free = left.tolist(), -np.inf
    for row, (time, own, takes_own) in enumerate(zip(sent.tolist(), found, takes.tolist(), strict=True)):
        free = own if own == own else max(time, free) + takes_own
        found[row] = free
    return np.array(found)


# ---- the sender -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Events:
    """Times at the server, in order."""

    sent: Floats
    """Of packets that ask for an acknowledgement."""
    answered: Floats
    """Of acknowledgements."""
    lost: Samples
    """When it held packets for lost, and when it had sent the last of them; over TCP the same time."""


class _Sender:
    """What the server did from the first request on, by its own trace."""

    def __init__(self, series: Series, marks: _Marks, events: _Events, credit: _Credit) -> None:
        self.marks = marks
        self._series, self._credit = series, credit
        later = events.sent[(events.sent > marks.request) & (events.sent <= marks.sent)]
        self._sends = np.unique(np.concatenate([[marks.request], later]))  # the first is the arrival of the request
        self._recoveries = _recoveries(series, events.lost)
        self._gaps = _gap_reasons(series, self._sends, self._recoveries, events)

    @property
    def edges(self) -> Iterator[Floats]:
        """When a reason may change."""
        yield self._sends
        yield self._recoveries.ravel()
        if len(self._series.cwnd):
            yield self._series.cwnd.time
            yield self._series.in_flight.time
        yield from self._credit.edges

    def reasons(self, edges: Floats) -> Integers:
        """Of each stretch between two edges: the place in ``SHARES`` of the reason why the server does not send."""
        times = (edges[:-1] + edges[1:]) / 2
        place = np.clip(np.searchsorted(self._sends, times, "right") - 1, 0, len(self._gaps) - 1)
        found = self._gaps[place].copy()
        left, blocked_by_connection, blocked_by_stream = self._credit.at(times)
        paced = np.isin(found, (_NUMBER[TimeShare.PACING], _NUMBER[TimeShare.UNKNOWN]))
        found[paced & (_window_left(self._series, times) < 0)] = _NUMBER[TimeShare.CONGESTION_WINDOW]
        resting = found != _NUMBER[TimeShare.PTO]
        found[resting & (left <= 0)] = _NUMBER[TimeShare.RECOVERY]
        found[(left <= 0) & (times < self._credit.last_request)] = _NUMBER[TimeShare.REQUEST]
        spread = np.isin(found, (_NUMBER[TimeShare.PACING], _NUMBER[TimeShare.CONGESTION_WINDOW]))
        trip, _ = _smoothed(self._series.rtt, times)
        for share, blocked in (
            (TimeShare.STREAM_FLOW_CONTROL, (left > 0) & blocked_by_stream),
            (TimeShare.CONNECTION_FLOW_CONTROL, (left > 0) & blocked_by_connection),
        ):
            found[blocked | (spread & _between(edges, blocked, trip))] = _NUMBER[share]
        return found


def _quic_credit(pair: QuicTracePair, series: Series, connection: int) -> _Credit:
    server, times = pair.server, pair.server_times
    known = ~np.isnan(series.requests.arrived)
    streams = series.requests.stream[known].tolist()
    lengths = server.frames.length[server.from_server[server.frames.packet]]
    return _Credit(
        series.requests.arrived[known],
        [data_sent(server, times, connection, stream) for stream in streams],
        [stream_limit(server, times, connection, stream) for stream in streams],
        data_sent(server, times, connection),
        connection_limit(server, times, connection),
        _usual(lengths),
    )


def _tcp_credit(pair: TcpTracePair, series: Series, connection: int) -> _Credit:
    """The limit of the connection is that of TCP's window; streams have one with HTTP/2."""
    server, sent, requests = pair.server, series.sent, series.requests
    start, frames = pair.zeros[1], pair.server.http2
    known = ~np.isnan(requests.arrived)
    mine = sent.connection == connection
    of_streams = [mine & (sent.stream == stream) for stream in requests.stream[known].tolist()]
    back = ~server.from_server & (server.connection == connection) & (server.allowed >= 0)
    allowed = np.maximum.accumulate(np.append(0, server.allowed[back]))
    return _Credit(
        requests.arrived[known],
        [_steps(sent, rows) for rows in of_streams],
        [
            Steps(np.array([-np.inf]), np.array([NO_LIMIT]))
            if frames is None
            else stream_window(frames, connection, stream, start)
            for stream in requests.stream[known].tolist()
        ],
        _steps(sent, mine),
        Steps(np.append(-np.inf, server.time[back] - start), allowed),
        _usual(server.length[server.from_server & (server.length > 0)]),
    )


def _steps(sent: StreamData, rows: Flags) -> Steps:
    return Steps(sent.time[rows], np.cumsum(sent.new[rows]))


def _usual(lengths: Integers) -> int:
    """Bytes of data of a full packet."""
    return int(np.percentile(lengths, 75)) if len(lengths) else 1


class _Credit:
    """What the server still has to send, and what flow control lets it send."""

    def __init__(
        self, arrived: Floats, sent: Sequence[Steps], limits: Sequence[Steps], whole: Steps, limit: Steps, packet: int
    ) -> None:
        """Of each request: when it arrived, what was sent of its response, and the limit of its stream.

        ``whole``: what was sent on the connection, and ``limit`` how much it may be.
        """
        self._arrived, self._sent, self._limits = arrived, sent, limits
        self._all, self._limit, self._packet = whole, limit, packet
        self.last_request = float(arrived.max())

    @property
    def edges(self) -> Iterator[Floats]:
        """When something of it changes."""
        yield self._arrived
        for steps in (self._limit, *self._limits):
            yield steps.time[1:]

    def at(self, times: Floats) -> tuple[Integers, Flags, Flags]:
        """Bytes of requested responses that were not sent, and whether the connection's or the streams' limit is
        reached: less than a packet is left below it. The smaller one counts, of equal ones that of the connection."""
        left = np.zeros(len(times), dtype=np.int64)
        room = np.zeros(len(times), dtype=np.int64)
        for arrived, sent, limit in zip(self._arrived.tolist(), self._sent, self._limits, strict=True):
            gone = sent.at(times)
            mine = np.where(times >= arrived, int(sent.value[-1]) - gone if len(sent.value) else 0, 0)
            left += mine
            room += np.minimum(np.maximum(limit.at(times) - gone, 0), mine)
        whole = self._limit.at(times) - self._all.at(times)
        needed = np.minimum(left, self._packet)
        return left, (whole < needed) & (whole <= room), (room < needed) & (room < whole)


def _recoveries(series: Series, lost: Samples) -> Floats:
    """Recovery periods (RFC 9002, section 7.3.2): from a loss until a packet that was sent later is acknowledged.

    A loss of packets that were sent before the latest period does not begin another one (section B.6).
    """
    acknowledged, of = series.rtt.time, series.rtt.time - series.rtt.value
    found = list[tuple[float, float]]()
    begin = end = -np.inf
    for time, sent in zip(lost.time.tolist(), lost.value.tolist(), strict=True):
        if time < end or sent <= begin:
            continue
        later = np.flatnonzero((of >= time) & (acknowledged > time))
        begin, end = time, float(acknowledged[later[0]]) if len(later) else np.inf
        found.append((begin, end))
    return np.array(found).reshape(-1, 2)


def _gap_reasons(series: Series, sends: Floats, recoveries: Floats, events: _Events) -> Integers:
    """Of each pause between two packets of the server, the last one without end: what it waited for."""
    begin, end = sends, np.append(sends[1:], np.inf)
    flight = series.in_flight
    place = np.searchsorted(events.answered, end, "right") - 1
    answered = np.where(place >= 0, np.append(events.answered, -np.inf)[place], -np.inf)
    empty = np.append(0.0, flight.value)[np.searchsorted(flight.time, end, "left")] <= 0
    trip, measured = _smoothed(series.rtt, begin)
    pause = np.where(np.isfinite(end), end - begin, 0.0)
    reacted = (answered >= begin) & (end - answered <= np.clip(REACTION_SHARE * pause, REACTION, LATE_REACTION))
    short = pause <= np.maximum(PACING_TRIPS * trip, PACING_LEAST)
    overdue = measured & (pause >= LATE_TRIPS * trip + ACK_DELAY)
    flying = np.append(0.0, flight.value)[np.searchsorted(flight.time, begin, "right")]
    spread = measured & (pause * flying < _burst(series.forward, begin) * trip)
    first = ~measured & ~reacted & (pause < trip) & (flying >= SMALLEST_WINDOW)
    expired = ~empty & ~short & np.where(reacted, overdue, pause >= trip)
    starting = begin < _slow_start_end(series, events.lost)
    found = np.full(len(sends), _NUMBER[TimeShare.UNKNOWN])
    for share, flags in (
        (TimeShare.PACING, short | (spread & ~reacted)),  # until the window is full, see ``_Sender.reasons``
        (TimeShare.CONGESTION_WINDOW, reacted & (np.isnan(_window_left(series, begin)) | ~short)),
        (TimeShare.SLOW_START, starting & (reacted | short | spread | first)),
        (TimeShare.RECOVERY, _within((begin + np.minimum(end, begin + 1)) / 2, recoveries)),
        (TimeShare.APPLICATION, ~reacted & empty),
        (TimeShare.PTO, expired),
    ):
        found[flags] = _NUMBER[share]
    return found


def _burst(packets: Packets, ends: Floats) -> Floats:
    """Bytes of each burst that ends at one of these times; 0 if a server that paces does not send so many at once."""
    time = np.sort(packets.sent)
    size = np.append(0, np.cumsum(packets.size[np.argsort(packets.sent, kind="stable")]))
    first = np.maximum.accumulate(np.where(np.diff(time, prepend=-np.inf) > TOGETHER, np.arange(len(time)), 0))
    last = np.searchsorted(time, ends, "right") - 1
    found = np.where(last >= 0, size[last + 1] - size[np.append(first, 0)[last]], 0)
    return np.where(found <= LONGEST_BURST, found, 0).astype(np.float64)


def _window_left(series: Series, times: Floats) -> Floats:
    """Bytes below the congestion window that the server's qlog states, less those of a packet; NaN if it is unknown."""
    if not len(series.cwnd) or not len(series.in_flight):
        return np.full(len(times), np.nan)
    flight, window = (
        np.append(np.nan, samples.value)[np.searchsorted(samples.time, times, "right")]
        for samples in (series.in_flight, series.cwnd)
    )
    left: Floats = window - flight - np.percentile(series.forward.size, 75)
    return left


def _smoothed(rtt: Samples, times: Floats) -> tuple[Floats, Flags]:
    """The smoothed round trip at each time (RFC 9002, section 5.3), and whether one had been measured by then."""
    mean, means = float(rtt.value[0]), [float(rtt.value[0])]
    for value in rtt.value.tolist():
        mean += FRESH * (value - mean)
        means.append(mean)
    place = np.searchsorted(rtt.time, times, "right")
    return np.array(means)[place], place > 0


def _slow_start_end(series: Series, lost: Samples) -> float:
    """When slow start ended: at the first loss, or when bytes in flight had no longer grown for some round trips."""
    first_loss = float(lost.time[0]) if len(lost) else np.inf
    flight, trip = series.in_flight, float(series.rtt.value.min())
    if not len(flight):
        return first_loss
    rounds = ((flight.time - flight.time[0]) / max(trip, SHORTEST)).astype(np.int64)
    numbers, place = np.unique(rounds, return_inverse=True)
    highest = np.zeros(len(numbers))
    np.maximum.at(highest, place, flight.value)
    full, since = 0.0, 0
    for number, value in zip(numbers.tolist(), highest.tolist(), strict=True):
        if full and number - since > ROUNDS:
            break  # nothing was in flight for a round
        if value >= GROWTH * full:
            full, since = value, number
        elif number - since >= ROUNDS:
            break
    else:
        return first_loss
    return min(first_loss, float(flight.time[0]) + (since + 1) * trip)
