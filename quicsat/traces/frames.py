"""Takes the frames of decrypted QUIC packets down into columns (RFC 9000, section 19)."""

from __future__ import annotations

from array import array
from itertools import accumulate
from operator import sub
from struct import Struct
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from quicsat.model.text import printable
from quicsat.traces.columns import (
    AckFrames,
    AckRanges,
    ColumnTable,
    CryptoFrames,
    Frame,
    Messages,
    Signals,
    StreamFrames,
    column_types,
)
from quicsat.traces.tls import varint, varints

PADDING, ACK, ACK_ECN, CRYPTO, STREAM, STREAM_LAST = 0x00, 0x02, 0x03, 0x06, 0x08, 0x0F
FIN_BIT, LENGTH_BIT, OFFSET_BIT = 0x01, 0x02, 0x04
"""Bits in the type of a STREAM frame (RFC 9000, section 19.8)."""
FIELDS = {
    Frame.PING: "", Frame.HANDSHAKE_DONE: "", Frame.IMMEDIATE_ACK: "",
    Frame.MAX_DATA: "n", Frame.MAX_STREAMS_BIDI: "n", Frame.MAX_STREAMS_UNI: "n", Frame.DATA_BLOCKED: "n",
    Frame.STREAMS_BLOCKED_BIDI: "n", Frame.STREAMS_BLOCKED_UNI: "n", Frame.RETIRE_CONNECTION_ID: "n",
    Frame.TIME_STAMP: "n", Frame.MAX_STREAM_DATA: "nn", Frame.STREAM_DATA_BLOCKED: "nn", Frame.STOP_SENDING: "nn",
    Frame.RESET_STREAM: "nnt", Frame.RESET_STREAM_AT: "nntt", Frame.ACK_FREQUENCY: "-nn-", Frame.BDP: "-nnb",
    Frame.PATH_CHALLENGE: "d", Frame.PATH_RESPONSE: "d", Frame.NEW_CONNECTION_ID: "nni", Frame.NEW_TOKEN: "b",
    Frame.CLOSE: "nnp", Frame.CLOSE_APPLICATION: "np", Frame.DATAGRAM: "r", Frame.DATAGRAM_SIZED: "s",
}  # fmt: skip
"""The fields of the frames of ``Signals``: n, a number that is kept; t, one kept as text; -, another one; d, the data
of a path; i, a connection id and its reset token; b, bytes behind their length; p, such a phrase; r, the rest of
the packet, of which the length is kept; s, bytes behind their length, of which that is kept."""
NO_MARKS = (-1, -1, -1)
"""Counts of ECN marks of an ACK frame without them."""
PATH_DATA, RESET_TOKEN = 8, 16
QUIET = frozenset({Frame.CLOSE, Frame.CLOSE_APPLICATION, Frame.TIME_STAMP})
"""Frames other than ACK and PADDING that ask for no acknowledgement."""
TEXT_LIMIT = 1024
"""Bytes of a phrase or token that are kept."""
RANGES_LIMIT = 4096
"""Ranges of one ACK frame that are kept."""
_FIVE, _EIGHT = Struct("5q").pack, Struct("8q").pack
Some = TypeVar("Some", bound=ColumnTable)


class FrameColumns:
    """The tables of frames while they grow."""

    def __init__(self) -> None:
        self._stream, self._crypto, self._acks = array("q"), array("q"), array("q")
        self._ranges, self._signals, self._messages = array("q"), array("q"), array("q")
        self._texts: dict[str, int] = {"": 0}
        self._texts_size = 0
        self.reset_tokens: set[bytes] = set()
        """Those of NEW_CONNECTION_ID frames."""

    @property
    def size(self) -> int:
        """How many numbers all tables have, and texts count with one for eight characters."""
        size = len(self._stream) + len(self._crypto) + len(self._acks) + len(self._ranges)
        return size + len(self._signals) + len(self._messages) + self._texts_size // 8

    def message(self, row: int, kind: int, size: int) -> None:
        """A TLS message that became whole in this packet."""
        self._messages.fromlist([row, kind, size])

    def read(self, row: int, data: bytes) -> tuple[bool, list[tuple[int, bytes]], list[bytes]]:
        """Take down the frames of a packet: whether it asks for an acknowledgement, its CRYPTO data, new ids.

        A packet that breaks off, or has a frame that we do not know, is read as far as that.
        """
        at, end, eliciting = 0, len(data), False
        crypto: list[tuple[int, bytes]] = []
        ids: list[bytes] = []
        try:
            while at < end:
                kind = data[at]
                if kind == PADDING:
                    at = end - len(data[at:].lstrip(b"\0"))
                elif STREAM <= kind <= STREAM_LAST:
                    at, eliciting = self._stream_frame(row, data, at + 1, kind), True
                elif kind in (ACK, ACK_ECN):
                    at = self._ack(row, data, at + 1, kind)
                elif kind == CRYPTO:
                    offset, at = varint(data, at + 1)
                    size, at = varint(data, at)
                    piece, at, eliciting = data[at : at + size], at + size, True
                    self.add_crypto(row, offset, len(piece))
                    crypto.append((offset, piece))
                else:
                    kind, at = varint(data, at)
                    at, new_id = self._signal(row, data, at, kind)
                    eliciting = eliciting or kind not in QUIET
                    if new_id:
                        ids.append(new_id)
        except IndexError:
            pass
        return eliciting, crypto, ids

    def _stream_frame(self, row: int, data: bytes, at: int, kind: int) -> int:
        stream, at = varint(data, at)
        offset = 0
        if kind & OFFSET_BIT:
            offset, at = varint(data, at)
        if kind & LENGTH_BIT:
            length, at = varint(data, at)
        else:
            length = len(data) - at
        if at + length > len(data):
            raise IndexError(at)
        self.add_stream(row, stream, offset, length, kind & FIN_BIT)
        return at + length

    def _ack(self, row: int, data: bytes, at: int, kind: int) -> int:
        largest, at = varint(data, at)
        delay, at = varint(data, at)
        count, at = varint(data, at)
        first, at = varint(data, at)
        numbers, at = varints(data, at, 2 * count)
        numbers[::2] = [gap + 2 for gap in numbers[::2]]
        ends = [*accumulate((largest, first, *numbers), sub)]
        if ends[-1] < 0:
            raise IndexError(at)
        ranges = [0] * len(ends)
        ranges[::2], ranges[1::2] = ends[1::2], ends[::2]
        marks = NO_MARKS
        if kind == ACK_ECN:
            ect0, at = varint(data, at)
            ect1, at = varint(data, at)
            ce, at = varint(data, at)
            marks = (ect0, ect1, ce)
        self.add_ack(row, delay, ranges, marks)
        return at

    def _signal(self, row: int, data: bytes, at: int, kind: int) -> tuple[int, bytes]:
        """Where the frame ends, and the connection id that it makes known."""
        new_id = b""
        if kind in FIELDS:
            first, second, text, at = _signal_fields(data, at, FIELDS[Frame(kind)])
        else:
            first, second, text, at = 0, 0, "", len(data)  # its length is unknown
        if at > len(data):
            raise IndexError(at)
        if kind == Frame.NEW_CONNECTION_ID:
            new_id = bytes.fromhex(text)
            self.reset_tokens.add(data[at - RESET_TOKEN : at])
        self.add_signal(row, kind, first, second, text)
        return at, new_id

    # ---- rows -------------------------------------------------------------------------------

    def add_stream(self, row: int, stream: int, offset: int, length: int, fin: int) -> None:
        """A STREAM frame of the packet in a row."""
        self._stream.frombytes(_FIVE(row, stream, offset, length, fin))

    def add_crypto(self, row: int, offset: int, length: int) -> None:
        """A CRYPTO frame."""
        self._crypto.fromlist([row, offset, length])

    def add_ack(self, row: int, delay: int, ranges: list[int], marks: tuple[int, int, int]) -> None:
        """An ACK frame: its ranges from the highest down, both ends of each, and the counts of ECN marks."""
        start = len(self._ranges) // 2
        self._ranges.fromlist(ranges[: 2 * RANGES_LIMIT])
        self._acks.frombytes(_EIGHT(row, ranges[1], delay, len(self._ranges) // 2 - start, start, *marks))

    def add_signal(self, row: int, kind: int, first: int, second: int, text: str) -> None:
        """Another frame, as in ``Signals``."""
        self._texts_size += len(text)
        self._signals.fromlist([row, kind, first, second, self._texts.setdefault(text, len(self._texts))])

    def tables(self) -> dict[str, Any]:
        """The members of ``Trace`` that hold frames, in the order of their packets; ranges in that of reading."""
        return {
            "frames": _table(StreamFrames, self._stream),
            "crypto": _table(CryptoFrames, self._crypto),
            "acks": _table(AckFrames, self._acks),
            "ack_ranges": AckRanges(*_rows(self._ranges, 2).T),
            "signals": _table(Signals, self._signals),
            "messages": _table(Messages, self._messages),
            "texts": tuple(self._texts),
        }


def _table(kind: type[Some], values: array[int]) -> Some:
    """Columns from rows, in the order of packets, since some packets are decrypted late."""
    types = column_types(kind)
    rows = _rows(values, len(types))
    order = np.argsort(rows[:, 0], kind="stable")
    columns = zip(rows.T, types.values(), strict=True)
    return kind(*(column[order].astype(dtype, copy=False) for column, dtype in columns))


def _rows(values: array[int], width: int) -> NDArray[np.int64]:
    """The same numbers, not copied."""
    return np.frombuffer(values, dtype=np.int64).reshape(-1, width)


def _signal_fields(data: bytes, at: int, fields: str) -> tuple[int, int, str, int]:
    """The two numbers and the text of a frame with these ``FIELDS``, and where it ends."""
    numbers, text = list[int](), ""
    for field in fields:
        if field == "d":
            text, at = data[at : at + PATH_DATA].hex(), at + PATH_DATA
        elif field == "i":
            end = at + 1 + data[at]
            text, at = data[at + 1 : end].hex(), end + RESET_TOKEN
        elif field == "r":
            numbers.append(len(data) - at)
            at = len(data)
        else:
            value, at = varint(data, at)
            numbers += [value] if field in "ns" else []
            piece, at = (data[at : at + min(value, TEXT_LIMIT)], at + value) if field in "bps" else (b"", at)
            text = _phrase(piece) if field == "p" else piece.hex() if field == "b" else text
            text = f"{text} {value}".strip() if field == "t" else text
    first, second = (*numbers, 0, 0)[:2]
    return first, second, text, at


def _phrase(piece: bytes) -> str:
    return printable(piece.decode("utf-8", "replace"), TEXT_LIMIT)
