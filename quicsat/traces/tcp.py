"""Reads the TCP segments of a trace into columns: a transfer over TCP with TLS (RFC 9293, RFC 8446, RFC 5246)."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quicsat.model.arrays import Flags, Floats, Integers
from quicsat.model.bounds import LEAST_PACKETS
from quicsat.traces.columns import ColumnTable, Connection
from quicsat.traces.http2 import Http2Frames, Http2Reader
from quicsat.traces.network import TCP, Segment
from quicsat.traces.pcap import check
from quicsat.traces.records import MOST_CONNECTIONS, too_large
from quicsat.traces.streams import ByteRanges
from quicsat.traces.tls import hello_version

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
NANOSECONDS = 1_000_000_000
FIXED_HEADER = 20
END_OF_OPTIONS, NO_OPERATION, WINDOW_SCALE, SACK = 0, 1, 3, 5
"""Kinds of options (RFC 9293, section 3.2; RFC 7323; RFC 2018)."""
MOST_SCALE = 14
WIDTH = 9
"""Columns while they grow."""
TLS_1_2 = 0x0303
SPACE = 1 << 32
"""Number of sequence numbers, after which they wrap."""


@dataclass(frozen=True, eq=False)
class Sacks(ColumnTable):
    """Ranges that selective acknowledgements name, counted as ``TcpTrace.offset`` of the other direction."""

    segment: Integers
    """Row of the segment in its ``TcpTrace``."""
    start: Integers
    end: Integers


@dataclass(frozen=True, eq=False)
class TcpTrace:
    """The TCP segments between client and server, one row each."""

    epoch: int
    """Whole second at which the trace begins, since 1970."""
    time: Floats
    from_server: Flags
    connection: Integers
    """By pair of addresses and ports, in the order of their first segments."""
    offset: Integers
    """Position of the first byte among those that this side sends on this connection; its SYN without data is at -1."""
    acknowledged: Integers
    """Offset of the next byte that is expected from the other side; -1 without an acknowledgement."""
    length: Integers
    """Bytes of payload on the wire."""
    flags: Integers
    ecn: Integers
    allowed: Integers
    """Offset up to which the other side may send, by acknowledgement and window; -1 without an acknowledgement."""
    sacks: Sacks
    tls: int = 0
    """Version of TLS that the server chose first, as on the wire (0x0303 is TLS 1.2); 0 if unknown."""
    ports: tuple[int, ...] = ()
    """The client's port as seen here, by connection."""
    http2: Http2Frames | None = None
    """None if no connection speaks HTTP/2, or if it cannot be decrypted."""
    handshakes: tuple[Connection, ...] = ()
    """What the handshakes of TLS say, by connection."""

    def __len__(self) -> int:
        return len(self.time)


def read_tcp(path: Path, flow: int = 1, most: int = LEAST_PACKETS, keys: Iterable[str] = ()) -> TcpTrace:
    """All segments of a flow in a trace; of a damaged file, which ``pcap.check`` finds, those before its fault.

    ``keys``: lines of key logs (:func:`~quicsat.traces.key_log.key_lines`), for what a connection carries. Raises
    HarnessFault (trace-limit) if there are more than ``most`` packets, or too many connections or frames.
    """
    reader = TcpReader(path.name, keys, most)
    check(path, TCP, flow, most, reader.add)
    return reader.trace()


class TcpReader:
    """The columns while they grow."""

    def __init__(self, name: str, keys: Iterable[str], most: int) -> None:
        """``name``: of the trace, for messages; ``most``: segments that it may have."""
        self._name, self._http2 = name, Http2Reader(name, keys, most)
        self._rows, self._sacks = array("q"), array("q")
        self._paths: dict[str, int] = {}
        self._bases: dict[tuple[int, bool], int] = {}
        """The number of each side's first byte."""
        self._latest: dict[tuple[int, bool], int] = {}
        """The offset of each side's newest segment, which identifies wrapped numbers."""
        self._scales: dict[tuple[int, bool], int] = {}
        """Of each side's windows, from its SYN; none unless both state one."""
        self._tls = 0

    def add(self, time: int, _record: int, found: Segment) -> None:
        """Take a segment, captured ``time`` nanoseconds after 1970."""
        number, acknowledged = struct.unpack_from(">II", found.header, 4)
        flags = found.header[13]
        connection = self._paths.setdefault(found.path, len(self._paths))
        if connection == MOST_CONNECTIONS:
            raise too_large(self._name, MOST_CONNECTIONS, "connections")
        here, there = (connection, found.from_server), (connection, not found.from_server)
        offset = self._offset(here, number, first=number + 1 if flags & SYN else number)
        if flags & SYN and found.size:
            offset += 1  # the SYN has a sequence number before that of its first byte (RFC 7413)
        self._latest[here] = max(offset, self._latest.get(here, 0))
        expected = self._offset(there, acknowledged, first=acknowledged) if flags & ACK else -1
        if not self._tls and found.from_server and found.payload:
            self._tls = hello_version(found.payload)
        if flags & SYN:
            self._note_scale(here, found.header)
        allowed = expected + self._window(here, there, found.header) if flags & ACK else -1
        row = len(self._rows) // WIDTH
        self._rows.fromlist([
            time, found.from_server, connection, offset, expected, found.size, flags, found.ecn, allowed
        ])  # fmt: skip
        if found.payload:
            self._http2.add(time, connection, offset, found.payload, from_server=found.from_server)
        for start, end in _sacks(found.header) if flags & ACK else ():
            self._sacks.fromlist([row, self._offset(there, start, start), self._offset(there, end, end)])

    def _offset(self, side: tuple[int, bool], number: int, first: int) -> int:
        """The offset nearest to the newest one that has this number."""
        latest = self._latest.get(side, 0)
        base = self._bases.setdefault(side, first)
        return latest + (number - base - latest + SPACE // 2) % SPACE - SPACE // 2

    def _window(self, here: tuple[int, bool], there: tuple[int, bool], header: bytes) -> int:
        """Bytes of the window that a segment states; that of a SYN is not scaled."""
        scaled = here in self._scales and there in self._scales and not header[13] & SYN
        return int.from_bytes(header[14:16], "big") << (self._scales[here] if scaled else 0)

    def _note_scale(self, here: tuple[int, bool], header: bytes) -> None:
        if (body := _option(header, WINDOW_SCALE)) is not None and body:
            self._scales[here] = min(body[0], MOST_SCALE)

    def trace(self) -> TcpTrace:
        """The frozen columns."""
        table = np.frombuffer(self._rows, dtype=np.int64).reshape(-1, WIDTH)
        time, from_server, connection, offset, expected, length, flags, ecn, allowed = table.T.copy()
        epoch = int(time[0]) // NANOSECONDS if len(time) else 0
        return TcpTrace(
            epoch, (time - epoch * NANOSECONDS) / NANOSECONDS, from_server.astype(np.bool_), connection, offset,
            expected, length, flags, ecn, allowed,
            Sacks(*np.array(self._sacks, dtype=np.int64).reshape(-1, 3).T), self._tls,
            tuple(int(path.split()[0].rpartition(":")[2]) for path in self._paths),
            self._http2.frames(epoch * NANOSECONDS),
            tuple(map(self._http2.handshake, range(len(self._paths)))),
        )  # fmt: skip


def _sacks(header: bytes) -> list[tuple[int, int]]:
    """The ranges of the header's SACK option."""
    body = _option(header, SACK) or b""
    return [struct.unpack_from(">II", body, start) for start in range(0, len(body) - 7, 8)]


def _option(header: bytes, kind: int) -> bytes | None:
    """The content of the first option of a kind; None if there is none."""
    at = FIXED_HEADER
    while at + 1 < len(header) and header[at] != END_OF_OPTIONS:
        if header[at] == NO_OPERATION:
            at += 1
            continue
        size = max(header[at + 1], 2)
        if header[at] == kind:
            return header[at + 2 : at + size]
        at += size
    return None


# ---- what a trace tells ----------------------------------------------------------------------


def first_seen(trace: TcpTrace) -> Integers:
    """For each segment: how many of its bytes no segment before it had, in its direction of its connection."""
    news = np.zeros(len(trace), dtype=np.int64)
    for connection in range(int(trace.connection.max()) + 1 if len(trace) else 0):
        for from_server in (False, True):
            rows = np.flatnonzero((trace.connection == connection) & (trace.from_server == from_server))
            ranges = ByteRanges()
            starts, ends = trace.offset[rows].tolist(), (trace.offset + trace.length)[rows].tolist()
            news[rows] = [ranges.add(max(start, 0), end) for start, end in zip(starts, ends, strict=True)]
    return news


def finished_handshake(client: TcpTrace) -> float | None:
    """When the client had all that it needs, at its end; None if never.

    It then sends its request. In TLS 1.3 that is its first payload after the server's first, with its Finished
    (RFC 8446, section 2). In TLS 1.2 its Finished comes first, and the request follows upon that of the server
    (RFC 5246, section 7.3).
    """
    payload = client.length > 0
    moment = -np.inf
    for from_server in (True, False, True, False) if client.tls == TLS_1_2 else (True, False):
        times = client.time[payload & (client.from_server == from_server) & (client.time >= moment)]
        if not len(times):
            return None
        moment = float(times.min())
    return moment


def response_rows(trace: TcpTrace, since: float) -> Flags:
    """Segments with payload from the server after the handshake: session tickets and response (``since`` in s)."""
    rows: Flags = trace.from_server & (trace.length > 0) & (trace.time > since)
    return rows
