"""Reads the TLS messages of a QUIC handshake out of its CRYPTO frames: hellos, extensions, transport parameters.

RFC 8446, section 4; RFC 9000, section 18.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from quicsat.model.text import printable
from quicsat.traces.columns import Connection, Message

CRYPTO_LIMIT = 256 * 1024
"""Bytes of handshake that are kept per direction and level; more is no handshake."""
PIECES_LIMIT = 1000
"""Pieces of handshake that wait for one before them."""
SERVER_NAME, ALPN, PRE_SHARED_KEY, EARLY_DATA, SUPPORTED_VERSIONS, QUIC_PARAMETERS = 0, 16, 41, 42, 43, 57
PARAMETERS = {
    0x00: "original_destination_connection_id",
    0x01: "max_idle_timeout",
    0x02: "stateless_reset_token",
    0x03: "max_udp_payload_size",
    0x04: "initial_max_data",
    0x05: "initial_max_stream_data_bidi_local",
    0x06: "initial_max_stream_data_bidi_remote",
    0x07: "initial_max_stream_data_uni",
    0x08: "initial_max_streams_bidi",
    0x09: "initial_max_streams_uni",
    0x0A: "ack_delay_exponent",
    0x0B: "max_ack_delay",
    0x0C: "disable_active_migration",
    0x0D: "preferred_address",
    0x0E: "active_connection_id_limit",
    0x0F: "initial_source_connection_id",
    0x10: "retry_source_connection_id",
    0x11: "version_information",
    0x20: "max_datagram_frame_size",
    0xEBD9: "enable_bdp_frame",
}
OPAQUE = frozenset({0x00, 0x02, 0x0D, 0x0F, 0x10, 0x11})
"""Parameters whose values are no numbers."""

_SINGLE_BYTES = re.compile(rb"[\x00-\x3f]+")
"""Numbers of one byte each."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length and where it ends (RFC 9000, section 16); raises IndexError where data end."""
    first = data[at]
    if first < 64:
        return first, at + 1
    if first < 128:
        return (first & 63) << 8 | data[at + 1], at + 2
    size = 1 << (first >> 6)
    if at + size > len(data):
        raise IndexError(at)
    return int.from_bytes(data[at : at + size], "big") & (1 << (8 * size - 2)) - 1, at + size


def varints(data: bytes, at: int, count: int) -> tuple[list[int], int]:
    """So many numbers, and where the last one ends; raises IndexError where data end."""
    numbers = list[int]()
    while len(numbers) < count:
        end = min(at + count - len(numbers), len(data))
        if (single := _SINGLE_BYTES.match(data, at, end)) is not None:
            numbers += single[0]
            at = single.end()
        else:
            number, at = varint(data, at)
            numbers.append(number)
    return numbers, at


class Assembly:
    """The bytes of one CRYPTO stream, which come in any order."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.read = 0
        """Bytes of the messages that were whole."""
        self._pieces: dict[int, bytes] = {}
        self._starts: list[int] = []
        """A heap of the keys of ``_pieces``."""
        self._kept = 0

    def add(self, offset: int, piece: bytes) -> bool:
        """Put in a piece; whether there is more at the beginning of the stream now."""
        if offset > len(self.data):
            room = offset < CRYPTO_LIMIT and self._kept < CRYPTO_LIMIT and len(self._pieces) < PIECES_LIMIT
            if room and len(self._pieces.get(offset, b"")) < len(piece):
                if offset not in self._pieces:
                    heapq.heappush(self._starts, offset)
                self._pieces[offset] = piece
                self._kept += len(piece)
            return False
        before = len(self.data)
        self._take(offset, piece)
        while self._starts and self._starts[0] <= len(self.data):
            start = heapq.heappop(self._starts)
            self._take(start, self._pieces.pop(start))
        return len(self.data) > before

    def _take(self, offset: int, piece: bytes) -> None:
        if len(self.data) < CRYPTO_LIMIT:
            self.data += piece[len(self.data) - offset :]


class Handshake:
    """What the messages of one connection have said so far."""

    def __init__(self) -> None:
        self.random = b""
        """Of the client: names the connection in key logs."""
        self._session = b""
        """Name of the session that the client wants to resume, in TLS 1.2."""
        self._stated = Connection()

    @property
    def stated(self) -> Connection:
        return replace(self._stated, random=self.random.hex())

    @property
    def cipher(self) -> int:
        return self._stated.cipher

    def _state(self, **members: Any) -> None:
        self._stated = replace(self._stated, **members)

    def read(self, message: int, body: bytes, *, from_server: bool) -> None:
        """Take a whole message; what is malformed is left out."""
        try:
            if message == Message.CLIENT_HELLO and not from_server:
                self._client_hello(body)
            elif message == Message.SERVER_HELLO and from_server:
                self._server_hello(body)
            elif message == Message.ENCRYPTED_EXTENSIONS and from_server:
                self._encrypted_extensions(body)
        except (IndexError, ValueError):
            return

    def _client_hello(self, body: bytes) -> None:
        self.random = body[2:34]
        self._session = body[35 : 35 + body[34]]
        at = 35 + body[34]
        size = int.from_bytes(body[at : at + 2], "big")
        suites = body[at + 2 : at + 2 + size]
        self._state(offered=tuple(int.from_bytes(suites[n : n + 2], "big") for n in range(0, len(suites) - 1, 2)))
        at += 2 + size
        extensions = dict(_extensions(body, at + 1 + body[at]))
        self._state(**_parameters(extensions, "client"))
        server_name = _text(extensions.get(SERVER_NAME, b"")[5:])
        self._state(server_name=server_name, early_data_offered=EARLY_DATA in extensions)

    def _server_hello(self, body: bytes) -> None:
        at = 35 + body[34]
        self._state(cipher=int.from_bytes(body[at : at + 2], "big"))
        extensions = dict(_extensions(body, at + 3))
        resumed = PRE_SHARED_KEY in extensions
        if SUPPORTED_VERSIONS not in extensions:  # TLS 1.2: the server repeats the name (RFC 5246, section 7.4.1.3)
            resumed = len(self._session) > 0 and body[35:at] == self._session
        self._state(resumed=resumed, alpn=_text(extensions.get(ALPN, b"")[3:]))

    def _encrypted_extensions(self, body: bytes) -> None:
        extensions = dict(_extensions(body, 0))
        self._state(alpn=_text(extensions.get(ALPN, b"")[3:]), early_data=EARLY_DATA in extensions)
        self._state(**_parameters(extensions, "server"))


def _parameters(extensions: Mapping[int, bytes], side: str) -> dict[str, dict[str, int | str]]:
    """The transport parameters as a member of ``Connection``."""
    if QUIC_PARAMETERS not in extensions:
        return {}
    return {f"{side}_parameters": dict(_transport_parameters(extensions[QUIC_PARAMETERS]))}


def messages(data: bytes | bytearray, start: int) -> Iterator[tuple[int, bytes, int]]:
    """Type, body and end of every whole message from ``start`` on."""
    while start + 4 <= len(data):
        size = int.from_bytes(data[start + 1 : start + 4], "big")
        if start + 4 + size > len(data):
            return
        yield data[start], bytes(data[start + 4 : start + 4 + size]), start + 4 + size
        start += 4 + size


def hello_version(record: bytes) -> int:
    """The version of TLS that a server chose, as on the wire (0x0303, 0x0304); 0 if its first record shows none."""
    if record[:2] != b"\x16\x03" or record[5:6] != bytes([Message.SERVER_HELLO]):
        return 0
    body = record[9:]
    try:
        extensions = dict(_extensions(body, 35 + body[34] + 3))
    except IndexError:
        return 0
    return int.from_bytes(extensions.get(SUPPORTED_VERSIONS, body[:2]), "big")


def _extensions(body: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    end = at + 2 + int.from_bytes(body[at : at + 2], "big")
    at += 2
    while at + 4 <= min(end, len(body)):
        size = int.from_bytes(body[at + 2 : at + 4], "big")
        yield int.from_bytes(body[at : at + 2], "big"), body[at + 4 : at + 4 + size]
        at += 4 + size


def _transport_parameters(data: bytes) -> Iterator[tuple[str, int | str]]:
    at = 0
    while at < len(data):
        code, at = varint(data, at)
        size, at = varint(data, at)
        value = data[at : at + size]
        at += size
        name = PARAMETERS.get(code, f"0x{code:x}")
        if code in OPAQUE or code not in PARAMETERS:
            yield name, value[:64].hex()
        else:
            yield name, varint(value, 0)[0] if value else 1


def _text(field: bytes) -> str:
    return printable(field[:255].decode("ascii", "replace"))
