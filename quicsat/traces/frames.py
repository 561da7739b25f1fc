"""Takes the frames of decrypted QUIC packets down into columns (RFC 9000, section 19)."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import TypeVar

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
from quicsat.traces.tls import varint

PADDING, ACK, ACK_ECN, CRYPTO, STREAM, STREAM_LAST = 0x00, 0x02, 0x03, 0x06, 0x08, 0x0F
FIN_BIT, LENGTH_BIT, OFFSET_BIT = 0x01, 0x02, 0x04
"""Bits in the type of a STREAM frame (RFC 9000, section 19.8)."""
NUMBERS = {
    Frame.PING: 0, Frame.HANDSHAKE_DONE: 0, Frame.IMMEDIATE_ACK: 0,
    Frame.MAX_DATA: 1, Frame.MAX_STREAMS_BIDI: 1, Frame.MAX_STREAMS_UNI: 1, Frame.DATA_BLOCKED: 1,
    Frame.STREAMS_BLOCKED_BIDI: 1, Frame.STREAMS_BLOCKED_UNI: 1, Frame.RETIRE_CONNECTION_ID: 1,
    Frame.MAX_STREAM_DATA: 2, Frame.STREAM_DATA_BLOCKED: 2, Frame.STOP_SENDING: 2, Frame.RESET_STREAM: 3,
    Frame.RESET_STREAM_AT: 4, Frame.TIME_STAMP: 1,
}  # fmt: skip
"""How many numbers the frames have that consist of nothing else."""
PATH_DATA, RESET_TOKEN = 8, 16
QUIET = frozenset({Frame.CLOSE, Frame.CLOSE_APPLICATION, Frame.TIME_STAMP})
"""Frames other than ACK and PADDING that ask for no acknowledgement."""
TEXT_LIMIT = 1024
"""Bytes of a phrase or token that are kept."""
RANGES_LIMIT = 4096
"""Ranges of one ACK frame that are kept."""
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
        tables = self._stream, self._crypto, self._acks, self._ranges, self._signals, self._messages
        return sum(map(len, tables)) + self._texts_size // 8

    def message(self, row: int, kind: int, size: int) -> None:
        """A TLS message that became whole in this packet."""
        self._messages.extend((row, kind, size))

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
                    self._crypto.extend((row, offset, len(piece)))
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
        self._stream.extend((row, stream, offset, length, kind & FIN_BIT))
        return at + length

    def _ack(self, row: int, data: bytes, at: int, kind: int) -> int:
        largest, at = varint(data, at)
        delay, at = varint(data, at)
        count, at = varint(data, at)
        first, at = varint(data, at)
        start, top = len(self._ranges) // 2, largest
        self._ranges.extend((top - first, top))
        low = top - first
        for number in range(count):
            gap, at = varint(data, at)
            size, at = varint(data, at)
            top = low - gap - 2
            low = top - size
            if low < 0:
                raise IndexError(at)
            if number < RANGES_LIMIT:
                self._ranges.extend((low, top))
        marks = (-1, -1, -1)
        if kind == ACK_ECN:
            ect0, at = varint(data, at)
            ect1, at = varint(data, at)
            ce, at = varint(data, at)
            marks = (ect0, ect1, ce)
        self._acks.extend((row, largest, delay, len(self._ranges) // 2 - start, start, *marks))
        return at

    def _signal(self, row: int, data: bytes, at: int, kind: int) -> tuple[int, bytes]:
        """Where the frame ends, and the connection id that it makes known."""
        new_id = b""
        if kind in NUMBERS:
            first, second, at = _numbers(data, at, NUMBERS[Frame(kind)])
            text = ""
        elif kind in READERS:
            first, second, text, at = READERS[Frame(kind)](data, at)
        else:
            first, second, text, at = 0, 0, "", len(data)  # its length is unknown
        if at > len(data):
            raise IndexError(at)
        if kind == Frame.NEW_CONNECTION_ID:
            new_id = bytes.fromhex(text)
            self.reset_tokens.add(data[at - RESET_TOKEN : at])
        self._texts_size += len(text)
        self._signals.extend((row, kind, first, second, self._texts.setdefault(text, len(self._texts))))
        return at, new_id

    # ---- tables ---------------------------------------------------------------------------

    def stream(self) -> StreamFrames:
        """All STREAM frames, in the order of their packets; so the others."""
        return _table(StreamFrames, self._stream)

    def crypto(self) -> CryptoFrames:
        """All CRYPTO frames."""
        return _table(CryptoFrames, self._crypto)

    def acks(self) -> AckFrames:
        """All ACK frames."""
        return _table(AckFrames, self._acks)

    def ranges(self) -> AckRanges:
        """What they acknowledge, in the order in which they were read."""
        return AckRanges(*_rows(self._ranges, 2).T)

    def signals(self) -> Signals:
        """All other frames."""
        return _table(Signals, self._signals)

    def messages(self) -> Messages:
        """All TLS messages."""
        return _table(Messages, self._messages)

    def texts(self) -> tuple[str, ...]:
        """What signals point to."""
        return tuple(self._texts)


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


def _sized(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = varint(data, at)
    return data[at : at + size], at + size


def _numbers(data: bytes, at: int, count: int) -> tuple[int, int, int]:
    """The first two of so many numbers, 0 for those that there are not, and where they end."""
    found = [0, 0]
    for place in range(count):
        value, at = varint(data, at)
        if place < 2:
            found[place] = value
    return found[0], found[1], at


Read = tuple[int, int, str, int]
"""The two numbers and the text of a signal, and where its frame ends."""


def _path_data(data: bytes, at: int) -> Read:
    return 0, 0, data[at : at + PATH_DATA].hex(), at + PATH_DATA


def _close(data: bytes, at: int) -> Read:
    code, frame, at = _numbers(data, at, 2)
    phrase, at = _sized(data, at)
    return code, frame, _reason(phrase), at


def _close_application(data: bytes, at: int) -> Read:
    code, at = varint(data, at)
    phrase, at = _sized(data, at)
    return code, 0, _reason(phrase), at


def _new_connection_id(data: bytes, at: int) -> Read:
    sequence, retire, at = _numbers(data, at, 2)
    end = at + 1 + data[at]
    return sequence, retire, data[at + 1 : end].hex(), end + RESET_TOKEN


def _new_token(data: bytes, at: int) -> Read:
    token, at = _sized(data, at)
    return 0, 0, token[:TEXT_LIMIT].hex(), at


def _datagram(data: bytes, at: int) -> Read:
    return len(data) - at, 0, "", len(data)


def _datagram_sized(data: bytes, at: int) -> Read:
    payload, at = _sized(data, at)
    return len(payload), 0, "", at


def _ack_frequency(data: bytes, at: int) -> Read:
    _, at = varint(data, at)
    threshold, delay, at = _numbers(data, at, 3)
    return threshold, delay, "", at


def _bandwidth_delay_product(data: bytes, at: int) -> Read:
    _, at = varint(data, at)  # lifetime
    capacity, round_trip, at = _numbers(data, at, 2)
    address, at = _sized(data, at)
    return capacity, round_trip, address.hex(), at


READERS: dict[Frame, Callable[[bytes, int], Read]] = {
    Frame.PATH_CHALLENGE: _path_data,
    Frame.PATH_RESPONSE: _path_data,
    Frame.CLOSE: _close,
    Frame.CLOSE_APPLICATION: _close_application,
    Frame.NEW_CONNECTION_ID: _new_connection_id,
    Frame.NEW_TOKEN: _new_token,
    Frame.DATAGRAM: _datagram,
    Frame.DATAGRAM_SIZED: _datagram_sized,
    Frame.ACK_FREQUENCY: _ack_frequency,
    Frame.BDP: _bandwidth_delay_product,
}
"""The frames of ``Signals`` that consist of more than numbers."""


def _reason(phrase: bytes) -> str:
    return printable(phrase[:TEXT_LIMIT].decode("utf-8", "replace"), TEXT_LIMIT)
