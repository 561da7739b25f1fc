"""Takes the QUIC packets of a trace down into columns."""

from __future__ import annotations

from array import array
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from quicsat.traces.columns import Connection, Form, Trace
from quicsat.traces.frames import FrameColumns
from quicsat.traces.network import Segment
from quicsat.traces.records import too_large

NANOSECONDS = 1_000_000_000
COLUMNS = (
    "time", "frame", "from_server", "path", "size", "form", "number", "version", "scid", "dcid", "decrypted", "ecn",
    "length", "key_phase", "generation", "connection", "token", "eliciting", "spin",
)  # fmt: skip
WIDTH = len(COLUMNS)
FRAME, FORM, NUMBER, DECRYPTED, KEY_PHASE, GENERATION, CONNECTION, ELICITING = map(
    COLUMNS.index, ("frame", "form", "number", "decrypted", "key_phase", "generation", "connection", "eliciting")
)
SPIN = 5
"""Place of the spin bit in the first byte of a short header (RFC 9000, section 17.3.1)."""
TOKEN_LIMIT = 2048
"""Bytes of a token that are kept."""
NAMES, FRAMES = 100, 20
"""Bytes of tokens and connection ids, and numbers in frames, per packet that a trace may have, on average."""
_PACK = Struct(f"{WIDTH}q").pack


class Packet(NamedTuple):
    """A packet within its datagram, header still protected."""

    form: Form
    version: int
    """-1 for a short header."""
    dcid: bytes
    scid: bytes
    token: bytes
    data: bytes
    """From the first byte of the header to the end of the packet, or of the datagram if that was cut."""
    payload: int
    """Where the packet number begins."""


class PacketColumns:
    """The columns while they grow."""

    def __init__(self, name: str, most: int) -> None:
        """``most``: packets of the trace ``name``, from which limits of all columns follow."""
        self._name, self._most = name, most
        self._values = array("q")
        self.frame_columns = FrameColumns()
        """The tables of frames."""
        self._paths: dict[str, int] = {}
        self._ids: dict[bytes, int] = {b"": 0}
        self._tokens: dict[bytes, int] = {b"": 0}
        self._names_size = 0

    def packet(self, time: int, frame: int, segment: Segment, size: int, packet: Packet) -> int:
        """The row of a packet with only what its header shows; ``size`` as in ``Trace``."""
        ids, token = self._ids, packet.token[:TOKEN_LIMIT]
        if len(self._values) >= self._most * WIDTH:
            raise too_large(self._name, self._most, "QUIC packets")
        self._names_size += len(token) + len(packet.scid) + len(packet.dcid)
        if self._names_size > self._most * NAMES:
            raise too_large(self._name, self._most * NAMES, "bytes of tokens and connection ids")
        self._values.frombytes(_PACK(
            time,
            frame,
            segment.from_server,
            self._paths.setdefault(segment.path, len(self._paths)),
            size,
            packet.form,
            -1,
            packet.version,
            ids.setdefault(packet.scid, len(ids)),
            ids.setdefault(packet.dcid, len(ids)),
            0,
            segment.ecn,
            len(packet.data),
            -1,
            0,
            -1,
            self._tokens.setdefault(token, len(self._tokens)),
            0,
            packet.data[0] >> SPIN & 1 if packet.form is Form.ONE_RTT else -1,
        ))  # fmt: skip
        return len(self._values) // WIDTH - 1

    def set(self, row: int, column: int, value: int) -> None:
        """Change what is known of a packet."""
        self._values[row * WIDTH + column] = value

    def opened(self, row: int, number: int, phase: int, generation: int) -> None:
        """A packet was decrypted."""
        start, values = row * WIDTH, self._values
        values[start + NUMBER], values[start + DECRYPTED] = number, 1
        values[start + KEY_PHASE], values[start + GENERATION] = phase, generation

    def follows_another(self, row: int) -> bool:
        """Whether a packet is not the first one of its datagram."""
        return row > 0 and self._values[row * WIDTH + FRAME] == self._values[(row - 1) * WIDTH + FRAME]

    @property
    def reset_tokens(self) -> frozenset[bytes]:
        """Tokens of NEW_CONNECTION_ID frames."""
        return frozenset(self.frame_columns.reset_tokens)

    def frames(self, row: int, payload: bytes) -> tuple[list[tuple[int, bytes]], list[bytes]]:
        """Take down the frames of a packet; its CRYPTO data and the connection ids that it makes known."""
        eliciting, crypto, ids = self.frame_columns.read(row, payload)
        self.check_frames()
        self._values[row * WIDTH + ELICITING] = eliciting
        return crypto, ids

    def check_frames(self) -> None:
        """Raise HarnessFault (trace-limit) if the frames have more numbers than those of so many packets can have."""
        if self.frame_columns.size > self._most * FRAMES:
            raise too_large(self._name, self._most * FRAMES, "numbers in its frames")

    def message(self, row: int, kind: int, size: int) -> None:
        """A TLS message that became whole in this packet."""
        self.frame_columns.message(row, kind, size)

    def trace(self, connections: tuple[Connection, ...]) -> Trace:
        """The frozen columns."""
        table = np.frombuffer(self._values, dtype=np.int64).reshape(-1, WIDTH)
        columns: dict[str, Any] = {name: column.copy() for name, column in zip(COLUMNS, table.T, strict=True)}
        epoch = int(table[0, 0]) // NANOSECONDS if len(table) else 0
        columns["time"] = (columns["time"] - epoch * NANOSECONDS) / NANOSECONDS
        for name in ("from_server", "decrypted", "eliciting"):
            columns[name] = columns[name].astype(np.bool_)
        return Trace(
            epoch=epoch,
            **columns,
            **self.frame_columns.tables(),
            connections=connections,
            paths=tuple(self._paths),
            connection_ids=tuple(each.hex() for each in self._ids),
            tokens=tuple(each.hex() for each in self._tokens),
        )
