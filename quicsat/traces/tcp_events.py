"""Makes the series of a run over TCP out of the columns of its two traces; pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from quicsat.model.arrays import Floats, Integers
from quicsat.model.implementation import Protocol
from quicsat.traces.http2 import FrameKind, Http2Frames
from quicsat.traces.packet_matching import TracePair
from quicsat.traces.quic_series import accumulated, packets
from quicsat.traces.series import UNKNOWN, Requests, Samples, Series, StreamData
from quicsat.traces.streams import ByteRanges, Stream
from quicsat.traces.tcp import TcpTrace, finished_handshake, first_seen, response_rows


@dataclass(frozen=True, eq=False)
class TcpTracePair(TracePair[TcpTrace]):
    """Both traces of a run over TCP."""

    own: TcpTrace | None = None
    """The client's connection with its proxy, whose packets are others than those of the link; by the same clock."""

    @property
    def seen(self) -> TcpTrace:
        """The connection of the client itself."""
        return self.client if self.own is None else self.own

    @property
    def zeros(self) -> tuple[float, float]:
        """See :meth:`TracePair.zeros`; behind a proxy, the client's first packet is earlier than that of the link."""
        if self.own is None or not (~self.own.from_server).any():
            return super().zeros
        first = float(self.own.time[~self.own.from_server].min())
        return self._zeros(first + self.own.epoch - self.at_client.epoch)

    def ports(self) -> frozenset[int]:
        """The client's ports, as the server sees them, of connections of which a packet crossed the link."""
        arrived = self.back.arrived[self.back.arrived >= 0]
        return frozenset(self.server.ports[connection] for connection in np.unique(self.server.connection[arrived]))


def tcp_series(trace_pair: TcpTracePair) -> Series:
    """All events; each connection has one stream, 0, and beside it those of HTTP/2 that could be decrypted.

    Behind a proxy, data arrive when the client gets them; packets, round trips and bytes in flight are of the link.
    """
    known = trace_pair.clock
    client, server = trace_pair.zeros
    seen, behind = trace_pair.seen, trace_pair.own is not None
    since = client + trace_pair.at_client.epoch - seen.epoch
    numbers = _numbers(trace_pair.client), _numbers(trace_pair.server)
    acknowledged = _TcpAcknowledgements(trace_pair.server, trace_pair.server.time - server, trace_pair.at_server.size)
    return Series(
        protocol=Protocol.TCP,
        clock=known,
        sent=_stream_data(trace_pair.server, numbers[1], server),
        arrived=_stream_data(seen, np.full(len(seen), UNKNOWN) if behind else numbers[0], since),
        forward=packets(
            trace_pair.forward,
            trace_pair.at_server,
            trace_pair.at_client,
            (server, client),
            numbers[1],
            trace_pair.server.connection,
        ),
        back=packets(
            trace_pair.back,
            trace_pair.at_client,
            trace_pair.at_server,
            (client, server),
            numbers[0],
            trace_pair.client.connection,
        ),
        rtt=acknowledged.round_trips(),
        in_flight=acknowledged.in_flight(),
        cwnd=Samples.of(),
        requests=_requests(trace_pair, since, server),
        spin=Samples.of(),
    )


def _numbers(trace: TcpTrace) -> Integers:
    """The position of each segment among those of its direction."""
    numbers = np.zeros(len(trace), dtype=np.int64)
    for from_server in (False, True):
        rows = np.flatnonzero(trace.from_server == from_server)
        numbers[rows] = np.arange(len(rows))
    return numbers


def _stream_data(trace: TcpTrace, numbers: Integers, start: float) -> StreamData:
    rows = np.flatnonzero(trace.from_server & (trace.length > 0))
    if trace.http2 is not None:
        return _by_stream(trace, trace.http2, rows, numbers, start)
    return StreamData(
        trace.time[rows] - start, np.zeros(len(rows), dtype=np.int64), trace.offset[rows], trace.length[rows],
        numbers[rows], first_seen(trace)[rows], trace.connection[rows],
    )  # fmt: skip


def _by_stream(trace: TcpTrace, frames: Http2Frames, rows: Integers, numbers: Integers, start: float) -> StreamData:
    """The pieces of each segment by the stream of HTTP/2; stream 0 has all that is no data of others."""
    columns = {name: array("q") for name in ("row", "stream", "offset", "length", "new")}
    mine = (frames.kind == FrameKind.DATA) & frames.from_server
    for connection in np.unique(trace.connection[rows]).tolist():
        data = np.flatnonzero(mine & (frames.connection == connection))
        starts, lengths = frames.start[data], frames.length[data]
        before = np.concatenate([[0], np.cumsum(lengths)])
        columns_of_parts = starts, lengths, frames.stream[data], frames.offset[data], before[:-1]
        parts = list(zip(*(column.tolist() for column in columns_of_parts), strict=True))
        ends, total = (starts + lengths).tolist(), int(before[-1])
        seen: dict[int, ByteRanges] = {}
        for row in rows[trace.connection[rows] == connection].tolist():
            begin = int(trace.offset[row])
            end = begin + int(trace.length[row])
            for stream, offset, length in _cut(islice(parts, bisect_right(ends, begin), None), total, begin, end):
                new = seen.setdefault(stream, ByteRanges()).add(offset, offset + length)
                for name, value in zip(columns, (row, stream, offset, length, new), strict=True):
                    columns[name].append(value)
    order = np.argsort(np.array(columns["row"], dtype=np.int64), kind="stable")
    found = {name: np.array(column, dtype=np.int64)[order] for name, column in columns.items()}
    segment = found.pop("row")
    times, connections = trace.time[segment] - start, trace.connection[segment]
    return StreamData(time=times, number=numbers[segment], connection=connections, **found)


def _cut(
    parts: Iterable[tuple[int, int, int, int, int]], total: int, at: int, end: int
) -> Iterator[tuple[int, int, int]]:
    """Stream, offset in it and length of each piece of the bytes ``at`` to ``end``.

    ``parts``: start, length, stream, offset and data before it of each part that does not end before ``at``, in order;
    ``total``: data of all parts of the connection.
    """
    before = total
    for start, length, stream, offset, before in parts:
        if start >= end:
            break
        if start > at:
            yield 0, at - before, start - at
            at = start
        upto = min(end, start + length)
        yield stream, offset + at - start, upto - at
        at = upto
    else:
        before = total
    if at < end:
        yield 0, at - before, end - at


def _http2_requests(seen: Http2Frames, at_server: Http2Frames | None, client: float, server: float) -> Requests:
    """The first HEADERS of each stream at both ends, and when the client could read the answer."""
    asked, answered, ended = (dict[Stream, float]() for _ in range(3))
    for *stream, time in seen.times(FrameKind.HEADERS, from_server=False):
        asked.setdefault((stream[0], stream[1]), time - client)
    for *stream, time in seen.times(FrameKind.HEADERS, from_server=True):
        answered.setdefault((stream[0], stream[1]), time - client)
    for *stream, time in seen.times(FrameKind.DATA, from_server=True):
        ended[stream[0], stream[1]] = time - client
    arrived = dict[Stream, float]()
    for *stream, time in at_server.times(FrameKind.HEADERS, from_server=False) if at_server is not None else ():
        arrived.setdefault((stream[0], stream[1]), time - server)
    streams = sorted(asked, key=asked.__getitem__)
    return Requests.of(
        connection=[connection for connection, _ in streams],
        stream=[number for _, number in streams],
        sent=[asked[stream] for stream in streams],
        arrived=[arrived.get(stream, np.nan) for stream in streams],
        first_byte=[answered.get(stream, np.nan) for stream in streams],
        last_byte=[ended.get(stream, np.nan) for stream in streams],
    )


def _requests(trace_pair: TcpTracePair, client: float, server: float) -> Requests:
    """The first request: what lies in it is encrypted, but it follows upon the client's Finished.

    Of HTTP/2 that could be decrypted, all requests. ``client``, ``server``: zeros of the client's own trace, and of the
    server's.
    """
    seen, link = trace_pair.seen, trace_pair.client
    if seen.http2 is not None:
        return _http2_requests(seen.http2, trace_pair.server.http2, client, server)
    sent, on_link = finished_handshake(seen), finished_handshake(link)
    if sent is None:
        return Requests.of()
    rows = np.flatnonzero(~link.from_server & (link.length > 0) & (link.time == on_link))
    own = np.flatnonzero(~seen.from_server & (seen.length > 0) & (seen.time == sent))
    passed = np.flatnonzero(np.isin(trace_pair.back.sent, rows))
    arrivals = trace_pair.back.arrived[passed]
    arrived = float(trace_pair.server.time[arrivals[0]]) - server if len(arrivals) and arrivals[0] >= 0 else np.nan
    answer = seen.time[response_rows(seen, sent) & (first_seen(seen) > 0)]
    first, last = (float(answer.min()), float(answer.max())) if len(answer) else (np.nan, np.nan)
    return Requests.of(
        connection=[int(seen.connection[own[0]])], stream=[0], sent=[sent - client], arrived=[arrived],
        first_byte=[first - client], last_byte=[last - client],
    )  # fmt: skip


class _TcpAcknowledgements:
    """What the server learns from acknowledgements, at its end of the link."""

    def __init__(self, server: TcpTrace, times: Floats, sizes: Integers) -> None:
        self._trace, self._times, self._sizes = server, times, sizes
        self._done = np.full(len(server), np.nan)
        """When each of the server's segments was acknowledged, or sent again."""
        self._trips: list[tuple[float, float]] = []
        for connection in np.unique(server.connection).tolist():
            self._connection(connection)

    def _connection(self, connection: int) -> None:
        """Go through one connection in the order of time."""
        trace = self._trace
        starts: list[int] = []
        latest: list[int] = []
        segment_ends: list[int] = []
        repeated: set[int] = set()
        acked_up_to: dict[int, int] = {}
        cumulative = 0
        sacks = _by_segment(trace)
        rows = np.flatnonzero(trace.connection == connection)
        for row in rows.tolist():
            now = float(self._times[row])
            if trace.from_server[row]:
                offset, length = int(trace.offset[row]), int(trace.length[row])
                if not length:
                    continue
                place = bisect_left(starts, offset)
                if place == len(starts):
                    starts.append(offset)
                    segment_ends.append(offset + length)
                    latest.append(row)
                elif starts[place] == offset:
                    self._finish(latest[place : place + 1], now)
                    latest[place] = row
                    repeated.add(row)
                else:  # cut otherwise than what it repeats: not followed
                    self._finish([row], now)
                continue
            first = cumulative
            while cumulative < len(segment_ends) and segment_ends[cumulative] <= trace.acknowledged[row]:
                cumulative += 1
            self._answer(latest[first:cumulative], repeated, now)
            for low, high in sacks.get(row, ()):
                begin = max(bisect_left(starts, max(low, acked_up_to.get(low, low))), cumulative)
                acked_up_to[low] = high
                self._answer(latest[begin : bisect_right(segment_ends, high)], repeated, now)

    def _answer(self, rows: list[int], repeated: set[int], now: float) -> None:
        """These segments are acknowledged; the last, if sent once and not acknowledged before, tells a round trip."""
        if rows and np.isnan(self._done[rows[-1]]) and rows[-1] not in repeated:
            self._trips.append((now, now - float(self._times[rows[-1]])))
        self._finish(rows, now)

    def _finish(self, rows: list[int], now: float) -> None:
        """These segments are no longer in flight."""
        for row in rows:
            if np.isnan(self._done[row]):
                self._done[row] = now

    def round_trips(self) -> Samples:
        """Of segments sent once, to the first acknowledgement of them, selective or not (Karn's rule)."""
        return Samples.in_order(self._trips)

    def in_flight(self) -> Samples:
        """Bytes after each change."""
        rows = np.flatnonzero(self._trace.from_server & (self._trace.length > 0))
        over = rows[~np.isnan(self._done[rows])]
        return accumulated(
            np.concatenate([self._times[rows], self._done[over]]),
            np.concatenate([self._sizes[rows], -self._sizes[over]]),
        )


def _by_segment(trace: TcpTrace) -> dict[int, list[tuple[int, int]]]:
    found: dict[int, list[tuple[int, int]]] = {}
    for row, start, end in trace.sacks.rows("segment", "start", "end"):
        found.setdefault(row, []).append((start, end))
    return found
