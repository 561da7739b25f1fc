"""The sequence diagram of a run and its flow control, as columns for the browser; pure.

A diagram has one row per datagram (TCP: segment) of either direction, in the order of sending: ``time``, ``delay``
(``LOST`` or ``UNKNOWN`` if it did not arrive), ``way`` (1: from the server), ``size``. Frames stand in a second table,
in the order of ``row``, that of their datagram: ``kind``, and up to three numbers. Numbers may have 60 bits, therefore
``a`` and ``b`` are split in the file, where ``a_high`` and ``b_high`` have the upper 30 bits.

==================  ==========  =======================  ======================
kind                a           b                        c
==================  ==========  =======================  ======================
``PACKET`` + form   number      0                        0
0x02 ACK            largest     smallest                 ranges
0x06 CRYPTO         0           offset                   length
0x08, 0x09 STREAM   stream      offset                   length (0x09: with FIN)
any other           first       second number of it      text, 0 for none
==================  ==========  =======================  ======================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quicsat.model.arrays import Floats, Integers
from quicsat.model.text import printable
from quicsat.site.packets import PackedColumn, pack
from quicsat.traces.columns import Datagrams, Frame, Trace
from quicsat.traces.congestion import Recovery
from quicsat.traces.flow_control import busiest_connection, connection_limit, data_sent
from quicsat.traces.packet_matching import PacketMatches
from quicsat.traces.quic_series import QuicTracePair
from quicsat.traces.run_traces import RunTraces
from quicsat.traces.series import Packets, Series

MOST = 150_000
"""Datagrams of a diagram: the first of a longer run."""
PRECISION = 1e-6
"""Seconds."""
LOST, UNKNOWN = -1, -2
"""In place of a delay, in units of ``PRECISION``."""
PACKET = 0x10000
"""Kind of a row that begins a QUIC packet; its form is added. 0x10010: a packet of unknown form, from the series."""
ACK, CRYPTO, STREAM, FIN = 0x02, 0x06, 0x08, 0x01
BITS = 30
_LARGEST = (1 << 60) - 1
_PHRASES = (Frame.CLOSE, Frame.CLOSE_APPLICATION)

Numbers = NDArray[Any]


@dataclass(frozen=True, eq=False)
class FrameRows:
    """Frames, in any order; all columns have the same length."""

    row: Integers
    """Of the datagram."""
    kind: Integers
    a: Integers
    b: Integers
    c: Integers

    def at(self, places: Integers) -> FrameRows:
        """Those at these places, in this order."""
        return FrameRows(*(column[places] for column in vars(self).values()))


@dataclass(frozen=True, eq=False)
class Diagram:
    """What both ends sent."""

    time: Floats
    """Seconds since the client's first packet, ascending."""
    delay: Floats
    """Seconds; negative: ``LOST`` or ``UNKNOWN`` times ``PRECISION``."""
    way: Integers
    size: Integers
    frames: FrameRows
    texts: tuple[str, ...]
    """Phrases of frames; the first is empty."""


def of_traces(traces: RunTraces) -> Diagram | None:
    """The diagram with all frames that could be decrypted; None over TCP."""
    pair = traces.trace_pair
    if not isinstance(pair, QuicTracePair):
        return None
    client, server = pair.zeros
    texts: dict[str, int] = {"": 0}
    parts = [
        _direction(pair.server, pair.at_server, pair.at_client, pair.forward, (server, client), texts, way=1),
        _direction(pair.client, pair.at_client, pair.at_server, pair.back, (client, server), texts, way=0),
    ]
    return _joined(parts, tuple(texts))


def of_series(series: Series) -> Diagram:
    """The diagram of what the series have: all datagrams, and of frames only those of responses."""
    parts = []
    for way, table in ((1, series.forward), (0, series.back)):
        rows = np.arange(len(table))
        known = rows[table.number >= 0]
        frames = [_frames(known, PACKET + 0x10, table.number[known])]
        if way:
            frames.append(_responses(series, table))
        delay = np.where(np.isnan(table.arrived), _missing(table.lost), table.delay)
        parts.append(Diagram(table.sent, delay, np.full(len(table), way), table.size, _together(frames), ("",)))
    return _joined(parts, ("",))


def encode(diagram: Diagram) -> bytes:
    """The file of one run: the columns of the client (0), then those of the server (1); the reader joins them by time.

    Of each side, in the order of sending: ``time``; ``fate`` (0, ``LOST`` or ``UNKNOWN``); ``arrival``, only of those
    that arrived; ``size``; ``frames``, how many a datagram has; and ``kind`` of each frame. The numbers of the frames
    are in the order of their kinds, then of sending, since those of one kind follow from each other.
    """
    frames = diagram.frames
    counts = np.bincount(frames.row, minlength=len(diagram.time))
    columns = list[PackedColumn]()
    for way in (0, 1):
        mine, ours = diagram.way == way, diagram.way[frames.row] == way
        time, delay = diagram.time[mine], diagram.delay[mine]
        there = delay >= 0
        kind = frames.kind[ours]
        order = np.argsort(kind, kind="stable")
        columns += [
            PackedColumn(f"time_{way}", time, PRECISION),
            PackedColumn(f"arrival_{way}", (time + delay)[there], PRECISION),
            PackedColumn(f"fate_{way}", np.where(there, 0.0, delay), PRECISION),
            PackedColumn(f"size_{way}", diagram.size[mine], 1.0),
            PackedColumn(f"frames_{way}", counts[mine], 1.0),
            PackedColumn(f"kind_{way}", kind, 1.0),
        ]
        for name, values in (("a", frames.a), ("b", frames.b)):
            limited = np.clip(values[ours][order], 0, _LARGEST)
            columns.append(PackedColumn(f"{name}_{way}", limited & ((1 << BITS) - 1), 1.0))
            columns.append(PackedColumn(f"{name}_high_{way}", limited >> BITS, 1.0))
        columns.append(PackedColumn(f"c_{way}", frames.c[ours][order], 1.0))
    return pack(columns, texts=[printable(text) for text in diagram.texts])


def flow_control(traces: RunTraces) -> list[PackedColumn]:
    """Of the connection with most data from the server: bytes sent for the first time, and up to where it may send.

    Both are steps at the server's end of the link; the limit is that of the connection (RFC 9000, section 4.1).
    ``flow_blocked_time``: when the server reports to be blocked. Empty over TCP, and if nothing could be decrypted.
    """
    pair = traces.trace_pair
    if not isinstance(pair, QuicTracePair) or not len(pair.server.frames):
        return []
    trace, times = pair.server, pair.server_times
    connection = busiest_connection(trace)
    if connection is None:
        return []
    sent, limit = data_sent(trace, times, connection), connection_limit(trace, times, connection)
    signals = trace.signals
    blocked = np.isin(signals.kind, (Frame.DATA_BLOCKED, Frame.STREAM_DATA_BLOCKED))
    blocked &= trace.from_server[signals.packet] & (trace.connection[signals.packet] == connection)
    since = np.append(0.0, limit.time[1:])
    end = float(max(sent.time[-1], since[-1]))
    return [
        *_steps("flow_sent", sent.time, sent.value),
        *(
            _steps("flow_limit", np.append(since, end), np.append(limit.value, limit.value[-1]))
            if limit.value[-1]
            else []
        ),
        PackedColumn("flow_blocked_time", times[signals.packet[blocked]], PRECISION * 10),
    ]


def congestion(found: Recovery) -> tuple[list[PackedColumn], list[str]]:
    """What the server's qlog tells beyond the window, as columns, and the texts that ``state_text`` points to."""
    texts = {text: number for number, text in enumerate(dict.fromkeys(word for _, word in found.states))}
    columns = [
        *(_steps("threshold", found.threshold.time, found.threshold.value) if len(found.threshold) else []),
        PackedColumn("given_up_time", found.given_up, PRECISION * 10),
        PackedColumn("state_time", np.array([time for time, _ in found.states]), PRECISION * 10),
        PackedColumn("state_text", np.array([texts[word] for _, word in found.states]), 1.0),
    ]
    return columns, list(texts)


# ---- parts ----------------------------------------------------------------------------------


def _steps(name: str, times: Numbers, values: Numbers) -> Iterator[PackedColumn]:
    """A step function as a line: each new value is preceded by the old one at the same time. In KiB, at most 3000."""
    rows = np.unique(np.linspace(0, len(times) - 1, min(len(times), 3000)).astype(np.int64))
    moments, levels = np.repeat(times[rows], 2)[1:], np.repeat(values[rows], 2)[:-1]
    yield PackedColumn(f"{name}_time", moments, PRECISION * 10)
    yield PackedColumn(f"{name}_value", np.minimum(levels, 1 << 40), 1024.0)


def _direction(
    trace: Trace,
    sender: Datagrams,
    receiver: Datagrams,
    matches: PacketMatches,
    starts: tuple[float, float],
    texts: dict[str, int],
    *,
    way: int,
) -> Diagram:
    """One direction, in the sender's trace; ``starts``: zeros of the sender's and the receiver's table."""
    there = matches.arrived >= 0
    time = sender.time[matches.sent] - starts[0]
    delay = _missing(matches.lost)
    delay[there] = np.maximum(receiver.time[matches.arrived[there]] - starts[1] - time[there], 0.0)
    size = sender.size[matches.sent]
    frames = _together([])
    row = np.cumsum(np.concatenate([[True], trace.frame[1:] != trace.frame[:-1]])[: len(trace)]) - 1
    if len(trace) and row[-1] == len(sender) - 1:
        place = np.full(len(sender), -1, dtype=np.int64)
        place[matches.sent] = np.arange(len(matches.sent))
        frames = _decrypted(trace, place[row], texts)
    return Diagram(time, delay, np.full(len(time), way), size, frames, ("",))


def _decrypted(trace: Trace, row: Integers, texts: dict[str, int]) -> FrameRows:
    """The frames of one side; ``row``: of the datagram of each packet, -1 for those of the other side."""
    acks, crypto, stream, signals = trace.acks, trace.crypto, trace.frames, trace.signals
    lowest = trace.ack_ranges.smallest[acks.start + acks.ranges - 1]
    phrases = [texts.setdefault(text, len(texts)) for text in _phrases(trace)]
    told = np.where(np.isin(signals.kind, _PHRASES), np.array([*phrases, 0])[signals.text], 0)
    packets = np.arange(len(trace))
    parts = [
        _frames(packets, PACKET + trace.form, np.maximum(trace.number, 0)),
        _frames(acks.packet, ACK, acks.largest, lowest, acks.ranges),
        _frames(crypto.packet, CRYPTO, 0, crypto.offset, crypto.length),
        _frames(stream.packet, STREAM + FIN * stream.fin, stream.stream, stream.offset, stream.length),
        _frames(signals.packet, np.minimum(signals.kind, PACKET - 1), signals.first, signals.second, told),
    ]
    found = _together(parts)
    by_packet = found.at(np.argsort(found.row, kind="stable"))  # the row of the packet itself first
    in_datagrams = replace(by_packet, row=row[by_packet.row])
    return in_datagrams.at(np.flatnonzero(in_datagrams.row >= 0))


def _phrases(trace: Trace) -> list[str]:
    """The texts of a trace: those of CLOSE frames as they are, identifiers and tokens empty."""
    closing = set(trace.signals.text[np.isin(trace.signals.kind, _PHRASES)].tolist())
    return [text if number in closing else "" for number, text in enumerate(trace.texts)]


def _responses(series: Series, table: Packets) -> FrameRows:
    """STREAM frames of the responses, in the datagram that has their packet number and connection."""
    data = series.sent
    order = np.lexsort((table.number, table.connection))
    mine = table.connection[order] * (1 << 40) + table.number[order]
    wanted = data.connection * (1 << 40) + data.number
    at = np.searchsorted(mine, wanted)
    known = (at < len(mine)) & (data.number >= 0)
    known[known] = mine[at[known]] == wanted[known]
    return _frames(order[at[known]], STREAM, data.stream[known], data.offset[known], data.length[known])


def _missing(lost: Numbers) -> Floats:
    absent: Floats = np.where(lost, LOST * PRECISION, UNKNOWN * PRECISION)
    return absent


def _frames(row: Numbers, kind: Any, a: Any, b: Any = 0, c: Any = 0) -> FrameRows:
    columns = (np.broadcast_to(np.asarray(each, dtype=np.int64), row.shape) for each in (kind, a, b, c))
    return FrameRows(row, *columns)


def _together(parts: list[FrameRows]) -> FrameRows:
    none = np.zeros(0, dtype=np.int64)
    columns = ([vars(part)[name] for part in parts] or [none] for name in ("row", "kind", "a", "b", "c"))
    return FrameRows(*map(np.concatenate, columns))


def _joined(parts: list[Diagram], texts: tuple[str, ...]) -> Diagram:
    """Both directions in the order of sending."""
    time = np.concatenate([each.time for each in parts])
    order = np.argsort(time, kind="stable")[:MOST]
    place = np.full(len(time), -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    begins = np.cumsum([0, *(len(each.time) for each in parts)])
    frames = _together(
        [replace(each.frames, row=place[each.frames.row + begin]) for each, begin in zip(parts, begins, strict=False)]
    )
    frames = frames.at(np.argsort(frames.row, kind="stable"))
    delay, way, size = (np.concatenate([getattr(each, name) for each in parts]) for name in ("delay", "way", "size"))
    return Diagram(
        time[order], delay[order], way[order], size[order], frames.at(np.flatnonzero(frames.row >= 0)), texts
    )
