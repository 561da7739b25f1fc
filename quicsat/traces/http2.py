"""Which bytes of a TCP connection belong to which stream of HTTP/2, and when their receiver could read them.

RFC 9113, sections 3.4, 4.1, 6.1, 6.5 and 6.9. Bytes can be read in the order of sending only, and a TLS record as a
whole.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from quicsat.model.arrays import Flags, Floats, Integers
from quicsat.model.units import MIB
from quicsat.traces.columns import ColumnTable, Connection
from quicsat.traces.flow_control import Steps
from quicsat.traces.key_log import secrets
from quicsat.traces.records import too_large
from quicsat.traces.tls_records import Plaintext, Records

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What a client sends first."""
HEADER = 9
MOST_FRAME = 1 << 20
"""Bytes of a frame: more than any endpoint allows."""
PADDED = 0x8
INITIAL_WINDOW_SIZE = 4
"""Identifier of a setting."""
INITIAL_WINDOW = 65_535
"""Bytes of each window unless settings state others."""
MOST_SETTINGS = 600
"""Bytes of a SETTINGS frame that are read."""
EARLY_LIMIT = 32 * MIB
"""Bytes of a side that are kept while earlier ones are missing."""
FRAMES = 10
"""Frames per packet that a trace may have, on average."""
COLUMNS = 8


class FrameKind(IntEnum):
    """Types of frames that are read."""

    DATA = 0
    HEADERS = 1
    SETTINGS = 4
    WINDOW_UPDATE = 8


@dataclass(frozen=True, eq=False)
class Http2Frames(ColumnTable):
    """The parts of DATA frames in each TLS record, the beginnings of HEADERS frames, and what opens windows."""

    time: Floats
    """When the record was whole, and all before it, at this end; in the seconds of the trace."""
    connection: Integers
    from_server: Flags
    stream: Integers
    kind: Integers
    """A ``FrameKind``."""
    start: Integers
    """Position of the first byte among those that this side sends over TCP."""
    length: Integers
    """Bytes of data without padding; 0 of a HEADERS frame. Of SETTINGS the initial window of streams, if it is stated,
    and of WINDOW_UPDATE by how much a window grows."""
    offset: Integers
    """Position of the first byte in the data of the stream."""

    def times(self, kind: FrameKind, *, from_server: bool) -> Iterator[tuple[int, int, float]]:
        """Connection, stream and time of the frames of one kind and side, in order."""
        wanted = (self.kind == kind) & (self.from_server == from_server)
        columns = (column[wanted].tolist() for column in (self.connection, self.stream, self.time))
        return zip(*columns, strict=True)


class Http2Reader:
    """Reads the frames of all connections of a trace, segment by segment."""

    def __init__(self, name: str, keys: Iterable[str], most: int) -> None:
        """``most``: packets of the trace ``name``."""
        self._name, self._most = name, most
        self._secrets = secrets(keys)
        self._connections: dict[int, _Connection | None] = {}
        self._records: dict[int, Records] = {}
        """Of each connection."""
        self._rows = array("q")

    def add(self, time: int, connection: int, offset: int, payload: bytes, *, from_server: bool) -> None:
        """Take a segment of a connection; ``time`` is in nanoseconds. Raises HarnessFault(TRACE_LIMIT)."""
        if connection not in self._connections:
            self._records[connection] = Records(self._secrets)
            self._connections[connection] = _Connection(self._records[connection]) if self._secrets else None
        known = self._connections[connection]
        if known is None:
            return
        for row in known.read(offset, payload, from_server=from_server):
            self._rows.fromlist([time, connection, from_server, *row])
        if len(self._rows) > self._most * FRAMES * COLUMNS:
            raise too_large(self._name, self._most * FRAMES, "HTTP/2 frames")
        if known.other:
            self._connections[connection] = None

    def handshake(self, connection: int) -> Connection:
        """What the handshake of a connection says, as far as it could be decrypted."""
        records = self._records.get(connection)
        return Connection() if records is None else records.stated

    def frames(self, epoch: int) -> Http2Frames | None:
        """Those of connections that speak HTTP/2, None if there are none; ``epoch``: of the trace, nanoseconds."""
        table = np.frombuffer(self._rows, dtype=np.int64).reshape(-1, COLUMNS)
        spoken = [number for number, each in self._connections.items() if each is not None and each.spoken]
        time, connection, from_server, *others = table[np.isin(table[:, 1], spoken)].T.copy()
        if not len(time):
            return None
        return Http2Frames((time - epoch) / 1e9, connection, from_server.astype(np.bool_), *others)


class _Connection:
    """Both sides of a connection."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._sides = {True: _Side(b""), False: _Side(PREFACE)}
        self._in_order = {True: _InOrder(), False: _InOrder()}
        self._early = False
        """What the client sent last is early data."""

    @property
    def spoken(self) -> bool:
        """Whether the client began to speak HTTP/2."""
        return self._sides[False].begun

    @property
    def other(self) -> bool:
        """Whether the client speaks something else."""
        return self._sides[False].other

    def read(self, offset: int, payload: bytes, *, from_server: bool) -> Iterator[tuple[int, int, int, int, int]]:
        """Stream, kind, start, length and offset of what can be read from now on."""
        for piece in self._in_order[from_server].add(offset, payload):
            for record in self._records.read(piece, from_server=from_server):
                if not from_server:
                    self._begin_again_after_refusal(record)
                yield from self._sides[from_server].read(record)

    def _begin_again_after_refusal(self, record: Plaintext) -> None:
        """The client sends early data again if the server has refused them (RFC 8446, section 4.2.10)."""
        if self._early and not record.early and not self._records.stated.early_data:
            self._sides[False] = _Side(PREFACE)
        self._early = record.early


class _InOrder:
    """The bytes of one side in their order."""

    def __init__(self) -> None:
        self._reached = 0
        self._early: dict[int, bytes] = {}
        self._starts: list[int] = []
        """A heap of the keys of ``_early``."""
        self._kept = 0

    def add(self, offset: int, payload: bytes) -> Iterator[bytes]:
        """Put in the bytes of a segment; what follows upon those that were given out."""
        if offset > self._reached:
            before = len(self._early.get(offset, b""))
            if len(payload) > before and self._kept < EARLY_LIMIT:
                if not before:
                    heapq.heappush(self._starts, offset)
                self._early[offset] = payload
                self._kept += len(payload) - before
            return
        yield from self._next(offset, payload)
        while self._starts and self._starts[0] <= self._reached:
            start = heapq.heappop(self._starts)
            early = self._early.pop(start)
            self._kept -= len(early)
            yield from self._next(start, early)

    def _next(self, offset: int, payload: bytes) -> Iterator[bytes]:
        new = payload[self._reached - offset :]
        if new:
            self._reached += len(new)
            yield new


class _Side:
    """The frames that one side sends."""

    def __init__(self, preface: bytes) -> None:
        self.begun = self.other = False
        self._preface, self._first = preface, bytearray()
        self._header = bytearray()
        self._left = self._data = 0
        """Bytes of the current frame, and of data in it, that are to come."""
        self._kind = self._stream = 0
        self._padded = False
        """Its next byte is the length of its padding."""
        self._window = bytearray()
        """Of a frame that opens windows: its payload so far."""
        self._lengths: dict[int, int] = {}
        """Data of each stream so far."""

    def read(self, record: Plaintext) -> Iterator[tuple[int, int, int, int, int]]:
        """As ``_Connection.read``, of a record."""
        data, at = record.data, 0
        if len(self._first) < len(self._preface):
            at = min(len(self._preface) - len(self._first), len(data))
            self._first += data[:at]
            self.other = not self._preface.startswith(self._first)
        while at < len(data) and not self.other:
            if not self._left:
                at = self._begin(data, at)
                if self._left and self._kind == FrameKind.HEADERS:
                    yield self._stream, self._kind, record.start + at, 0, 0
                continue
            if self._padded:
                self._padded, self._data = False, max(self._left - 1 - data[at], 0)
                self._left, at = self._left - 1, at + 1
                continue
            taken = min(self._left, len(data) - at)
            if self._kind in (FrameKind.SETTINGS, FrameKind.WINDOW_UPDATE):
                self._window += data[at : at + min(taken, MOST_SETTINGS)]
                if taken == self._left and (window := _window(self._kind, bytes(self._window))) is not None:
                    yield self._stream, self._kind, record.start + at, window, 0
            useful = min(taken, self._data)
            if useful:
                offset = self._lengths.get(self._stream, 0)
                yield self._stream, self._kind, record.start + at, useful, offset
                self._lengths[self._stream] = offset + useful
            self._data, self._left, at = self._data - useful, self._left - taken, at + taken

    def _begin(self, data: bytes, at: int) -> int:
        """Take bytes of the header of a frame; where they end."""
        end = min(at + HEADER - len(self._header), len(data))
        self._header += data[at:end]
        if len(self._header) == HEADER:
            self._left, self._kind = int.from_bytes(self._header[:3], "big"), self._header[3]
            self._stream = int.from_bytes(self._header[5:], "big") & 0x7FFFFFFF
            self._padded = self._kind == FrameKind.DATA and self._header[4] & PADDED > 0 and self._left > 0
            self._data = self._left if self._kind == FrameKind.DATA and not self._padded else 0
            self.begun, self.other = True, self._left > MOST_FRAME
            self._header.clear()
            self._window.clear()
        return end


def _window(kind: int, payload: bytes) -> int | None:
    """What SETTINGS or WINDOW_UPDATE say of windows, bytes; None if nothing."""
    if kind == FrameKind.WINDOW_UPDATE:
        return int.from_bytes(payload[:4], "big") & 0x7FFFFFFF
    settings = (payload[at : at + 6] for at in range(0, len(payload) - 5, 6))
    stated = [each for each in settings if int.from_bytes(each[:2], "big") == INITIAL_WINDOW_SIZE]
    return int.from_bytes(stated[-1][2:], "big") if stated else None


def stream_window(frames: Http2Frames, connection: int, stream: int, start: float) -> Steps:
    """Up to where the client lets the server send on a stream, as the server knows; ``frames``: at its end.

    Times are seconds since ``start``. Settings apply to streams that are open, too (RFC 9113, section 6.9.2).
    """
    mine = ~frames.from_server & (frames.connection == connection)
    rows = np.flatnonzero(
        mine
        & ((frames.kind == FrameKind.SETTINGS) | ((frames.kind == FrameKind.WINDOW_UPDATE) & (frames.stream == stream)))
    )
    initial, more = INITIAL_WINDOW, 0
    times, limits = [-np.inf], [initial]
    for row in rows.tolist():
        if frames.kind[row] == FrameKind.SETTINGS:
            initial = int(frames.length[row])
        else:
            more += int(frames.length[row])
        times.append(float(frames.time[row]) - start)
        limits.append(initial + more)
    return Steps(np.array(times), np.maximum.accumulate(np.array(limits, dtype=np.int64)))
