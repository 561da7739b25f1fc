"""Makes the series of a run over TCP out of the columns of its two traces; pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np

from quicsat.model.arrays import Floats, Integers
from quicsat.model.implementation import Protocol
from quicsat.traces.packet_matching import TracePair
from quicsat.traces.quic_series import accumulated, packets
from quicsat.traces.series import UNKNOWN, Requests, Samples, Series, StreamData
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
    """All events; each connection has one stream, 0.

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
    return StreamData(
        trace.time[rows] - start, np.zeros(len(rows), dtype=np.int64), trace.offset[rows], trace.length[rows],
        numbers[rows], first_seen(trace)[rows], trace.connection[rows],
    )  # fmt: skip


def _requests(trace_pair: TcpTracePair, client: float, server: float) -> Requests:
    """The first request: what lies in it is encrypted, but it follows upon the client's Finished.

    ``client``, ``server``: zeros of the client's own trace, and of the server's.
    """
    seen, link = trace_pair.seen, trace_pair.client
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
