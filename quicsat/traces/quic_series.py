"""Makes the series of a run over QUIC out of the columns of its two traces; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import isnan

import numpy as np

from quicsat.model.arrays import Flags, Floats, Integers
from quicsat.model.implementation import Protocol
from quicsat.traces.columns import Datagrams, Form, Trace
from quicsat.traces.connections import counterparts
from quicsat.traces.packet_matching import PacketMatches, TracePair
from quicsat.traces.series import UNKNOWN, Packets, Requests, Samples, Series, StreamData
from quicsat.traces.spin_bit import spin_periods
from quicsat.traces.streams import Stream, new_bytes, response_frames

PACKET_THRESHOLD = 3
"""A packet is given up when one so much later is acknowledged (RFC 9002, section 6.1.1)."""


@dataclass(frozen=True, eq=False)
class QuicTracePair(TracePair[Trace]):
    """Both traces of a run over QUIC."""

    @property
    def client_times(self) -> Floats:
        """When each packet of ``client`` was seen, seconds since the client's first packet."""
        return self.client.time + (self.client.epoch - self.at_client.epoch) - self.zeros[0]

    @property
    def server_times(self) -> Floats:
        """When each packet of ``server`` was seen, by the same clock."""
        return self.server.time + (self.server.epoch - self.at_server.epoch) - self.zeros[1]


def series(trace_pair: QuicTracePair, protocol: Protocol) -> Series:
    """All events but the congestion window; times are seconds since the client's first packet."""
    known, mine = trace_pair.clock, trace_pair.client.connection
    theirs = _named(trace_pair.server.connection, counterparts(trace_pair.server, trace_pair.client))
    client, server = trace_pair.zeros
    client_time, server_time = trace_pair.client_times, trace_pair.server_times
    at_client = _by_datagram(trace_pair.client, mine, trace_pair.at_client)
    at_server = _by_datagram(trace_pair.server, theirs, trace_pair.at_server)
    acknowledged = _acknowledgements(trace_pair)
    return Series(
        protocol=protocol,
        clock=known,
        sent=_stream_data(trace_pair.server, server_time, theirs),
        arrived=_stream_data(trace_pair.client, client_time, mine),
        forward=packets(trace_pair.forward, trace_pair.at_server, trace_pair.at_client, (server, client), *at_server),
        back=packets(trace_pair.back, trace_pair.at_client, trace_pair.at_server, (client, server), *at_client),
        rtt=acknowledged.round_trips(),
        in_flight=acknowledged.in_flight(),
        cwnd=Samples.of(),
        requests=_requests(trace_pair, client_time, server_time, theirs),
        spin=spin_periods(trace_pair.server, server_time),
    )


def declared_lost(trace_pair: QuicTracePair) -> Samples:
    """When the server must have declared packets lost, by the packet threshold, and when it had sent the last of them;
    seconds since the client's first."""
    return Samples.in_order(_acknowledgements(trace_pair).lost)


def _named(connection: Integers, names: Integers) -> Integers:
    """Numbers of the client's trace in place of those of the server's; ``UNKNOWN`` stays."""
    named: Integers = np.append(names, UNKNOWN)[connection]
    return named


def packets(
    matches: PacketMatches,
    sender: Datagrams,
    receiver: Datagrams,
    starts: tuple[float, float],
    numbers: Integers,
    connections: Integers,
) -> Packets:
    """The packets of one direction; ``starts`` are the zeros of both tables, the last two are by the sender's rows."""
    there = matches.arrived >= 0
    arrived = np.full(len(there), np.nan)
    arrived[there] = receiver.time[matches.arrived[there]] - starts[1]
    return Packets(
        sent=sender.time[matches.sent] - starts[0],
        arrived=arrived,
        lost=matches.lost,
        number=numbers[matches.sent],
        size=sender.size[matches.sent],
        connection=connections[matches.sent],
    )


def _by_datagram(trace: Trace, connection: Integers, datagrams: Datagrams) -> tuple[Integers, Integers]:
    """Number of the last packet in each datagram, and its connection; ``connection`` is by the packets of the trace.

    A short header is always the last, and the packets of a datagram are of one connection (RFC 9000, section 12.2).
    """
    numbers = np.full(len(datagrams), UNKNOWN, dtype=np.int64)
    connections = numbers.copy()
    if len(trace):
        firsts = np.concatenate([[True], trace.frame[1:] != trace.frame[:-1]])
        row = np.cumsum(firsts) - 1
        if row[-1] == len(datagrams) - 1:
            numbers[row] = trace.number
            np.maximum.at(connections, row, connection)
    return numbers, connections


def _stream_data(trace: Trace, times: Floats, connection: Integers) -> StreamData:
    rows = np.flatnonzero(response_frames(trace))
    frames = trace.frames
    packet = frames.packet[rows]
    return StreamData(
        times[packet], frames.stream[rows], frames.offset[rows], frames.length[rows], trace.number[packet],
        new_bytes(trace)[rows], connection[packet],
    )  # fmt: skip


def _requests(trace_pair: QuicTracePair, client_time: Floats, server_time: Floats, theirs: Integers) -> Requests:
    """The first frames of the request streams at both ends, and the first and last bytes of the answers."""
    mine = trace_pair.client.connection
    sent = _extremes(trace_pair.client, client_time, mine, from_server=False)
    arrived = _extremes(trace_pair.server, server_time, theirs, from_server=False)
    answered = _extremes(trace_pair.client, client_time, mine, from_server=True)
    streams = sorted(sent, key=lambda stream: sent[stream])
    nothing = (np.nan, np.nan)
    return Requests.of(
        connection=[connection for connection, _ in streams],
        stream=[stream for _, stream in streams],
        sent=[sent[stream][0] for stream in streams],
        arrived=[arrived.get(stream, nothing)[0] for stream in streams],
        first_byte=[answered.get(stream, nothing)[0] for stream in streams],
        last_byte=[answered.get(stream, nothing)[1] for stream in streams],
    )


def _extremes(
    trace: Trace, times: Floats, connection: Integers, *, from_server: bool
) -> dict[Stream, tuple[float, float]]:
    """When the first and the last new byte of each request stream was seen in one direction."""
    frames = trace.frames
    wanted = (trace.from_server[frames.packet] == from_server) & (frames.stream % 4 == 0) & (new_bytes(trace) > 0)
    found: dict[Stream, tuple[float, float]] = {}
    packet = frames.packet[wanted]
    streams = zip(connection[packet].tolist(), frames.stream[wanted].tolist(), strict=True)
    for stream, time in zip(streams, times[packet].tolist(), strict=True):
        first, _ = found.get(stream, (time, time))
        found[stream] = first, time
    return found


class _QuicAcknowledgements:
    """What the server learns from the acknowledgements of its 1-RTT packets, at its end of the link."""

    def __init__(self, server: Trace, times: Floats) -> None:
        self._trace, self._times = server, times
        self._changes: list[tuple[Floats, Integers]] = []
        """Times and changes of the bytes in flight."""
        self._trips: list[tuple[float, float]] = []
        self.lost: list[tuple[float, float]] = []
        """When packets were given up, and when the last of them had been sent."""
        for connection in range(len(server.connections)):
            self._connection(connection)

    def _connection(self, connection: int) -> None:
        trace = self._trace
        mine = (trace.connection == connection) & trace.decrypted & (trace.form == Form.ONE_RTT)
        rows = np.flatnonzero(mine & trace.from_server)
        if not len(rows):
            return
        base = int(trace.number[rows].min())  # some begin at a number of their choice
        count = int(trace.number[rows].max()) + 1 - base
        if count > 2 * len(rows) + 10_000:
            return  # an endpoint that skips most of its numbers; not worth the memory
        sent, size = np.full(count, np.nan), np.zeros(count, dtype=np.int64)
        eliciting = np.zeros(count, dtype=np.bool_)
        numbers = trace.number[rows] - base
        sent[numbers], size[numbers], eliciting[numbers] = self._times[rows], trace.length[rows], trace.eliciting[rows]
        done = self._acknowledge(sent, eliciting, mine & ~trace.from_server, base)
        done[np.isnan(done)] = self._over(connection)
        done = np.maximum(done, sent)
        flying = eliciting & ~np.isnan(sent)
        self._changes.append((sent[flying], size[flying]))
        over = flying & ~np.isnan(done)
        self._changes.append((done[over], -size[over]))

    def _over(self, connection: int) -> float:
        """When the connection's last packet was seen, if there were others later; else NaN: it may still go on."""
        of, times = self._trace.connection, self._times
        last = float(times[of == connection].max())
        return last if (times[(of >= 0) & (of != connection)] > last).any() else np.nan

    def _acknowledge(self, sent: Floats, eliciting: Flags, back: Flags, base: int) -> Floats:
        """When each packet was acknowledged or given up; NaN if neither. Takes down round trips.

        Rows are packet numbers less ``base``.
        """
        acks = self._trace.acks
        wanted = np.flatnonzero(back[acks.packet])
        done, acked = [np.nan] * len(sent), bytearray(len(sent))
        times, asks = sent.tolist(), eliciting.tolist()
        read: dict[int, int] = {}
        highest, given_up = -1, 0
        for now, ranges in self._new_ranges(wanted, base, len(sent)):
            news, lost = False, -1
            for low, high in ranges:
                at, last = max(read.get(low, low - 1) + 1, low), high
                if last < at:
                    continue
                read[low], newest = last, not acked[last]
                while (at := acked.find(0, at, last + 1)) >= 0:
                    acked[at] = 1
                    done[at] = now if isnan(done[at]) else done[at]
                    news = news or asks[at]
                if last > highest:
                    if news and newest and times[last] <= now:  # NaN, and acknowledgements of what is not sent yet
                        self._trips.append((now, now - times[last]))
                    highest = last
            for number in range(given_up, highest - PACKET_THRESHOLD + 1):
                if isnan(done[number]):
                    done[number], lost = now, number if asks[number] else lost
            given_up = max(given_up, highest - PACKET_THRESHOLD + 1)
            if lost >= 0:
                self.lost.append((now, times[lost]))
        return np.array(done)

    def _new_ranges(self, rows: Integers, base: int, count: int) -> Iterator[tuple[float, list[tuple[int, int]]]]:
        """Of the ACK frames in these rows: when each came, and its ranges that no frame before it had, if it has any.

        Numbers are less ``base``, and below ``count``. Most ranges are repeated in all ACK frames for a round trip.
        """
        acks, ranges = self._trace.acks, self._trace.ack_ranges
        counts = acks.ranges[rows]
        frame = np.repeat(np.arange(len(rows)), counts)
        place = np.arange(len(frame)) - np.repeat(np.cumsum(counts) - counts - acks.start[rows], counts)
        low = np.clip(ranges.smallest[place] - base, 0, count)
        high = np.clip(ranges.largest[place] - base, -1, count - 1)
        first = np.sort(np.unique(low * (count + 1) + high, return_index=True)[1])
        pairs = zip(low[first].tolist(), high[first].tolist(), strict=True)
        frame, times = frame[first], self._times[acks.packet[rows]]
        sizes = np.bincount(frame, minlength=len(rows))
        for row in np.flatnonzero(sizes).tolist():
            yield float(times[row]), [*islice(pairs, int(sizes[row]))]

    def round_trips(self) -> Samples:
        """From each packet that was the largest one newly acknowledged to its acknowledgement (RFC 9002, 5.1)."""
        return Samples.in_order(self._trips)

    def in_flight(self) -> Samples:
        """Bytes after each change."""
        if not self._changes:
            return Samples.of()
        times = np.concatenate([change[0] for change in self._changes])
        return accumulated(times, np.concatenate([change[1] for change in self._changes]))


@lru_cache(maxsize=2)
def _acknowledgements(trace_pair: QuicTracePair) -> _QuicAcknowledgements:
    return _QuicAcknowledgements(trace_pair.server, trace_pair.server_times)


def accumulated(times: Floats, changes: Integers) -> Samples:
    """The sum of all changes so far, after each moment at which there are some."""
    order = np.argsort(times, kind="stable")
    times, total = times[order], np.cumsum(changes[order])
    last = np.concatenate([times[1:] != times[:-1], [True]])[: len(times)]
    return Samples(times[last], total[last].astype(np.float64))
