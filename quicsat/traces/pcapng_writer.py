"""Writes captures of several places into one pcapng file, with secrets and comments (draft-ietf-opsawg-pcapng)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from heapq import merge
from typing import BinaryIO, NamedTuple

from quicsat.traces.records import (
    ENHANCED_PACKET,
    INTERFACE,
    SECRETS,
    SECTION,
    TIME_RESOLUTION,
    TLS_KEY_LOG,
    PacketRecord,
)

BYTE_ORDER, VERSION = 0x1A2B3C4D, (1, 0)
UNKNOWN_LENGTH = 0xFFFFFFFFFFFFFFFF
COMMENT, NAME, END_OF_OPTIONS = 1, 2, 0
"""Codes of options."""
NANOSECONDS_EXPONENT = 9
LONGEST_COMMENT = 1000
"""Bytes."""
EMPTY_LINK_TYPE = 1
"""Of a place without packets: Ethernet."""


class CapturedEnd(NamedTuple):
    """Where packets were captured."""

    name: str
    records: Sequence[PacketRecord]
    comments: Mapping[int, str]
    """By the number of a packet, from 1."""
    shift: int = 0
    """Nanoseconds to add to its times."""


def write_pcapng(file: BinaryIO, key_log: str, places: Sequence[CapturedEnd]) -> None:
    """A section with an interface per place, the key log, and all packets by time."""
    file.write(_block(SECTION, struct.pack("<IHHQ", BYTE_ORDER, *VERSION, UNKNOWN_LENGTH)))
    for place in places:
        link_type = place.records[0].link_type if place.records else EMPTY_LINK_TYPE
        options = _option(NAME, place.name.encode()) + _option(TIME_RESOLUTION, bytes([NANOSECONDS_EXPONENT]))
        file.write(_block(INTERFACE, struct.pack("<HHI", link_type, 0, 0) + options + _option(END_OF_OPTIONS, b"")))
    secrets = key_log.encode()
    file.write(_block(SECRETS, struct.pack("<II", TLS_KEY_LOG, len(secrets)) + _padded(secrets)))
    numbered = (_numbered(number, place) for number, place in enumerate(places))
    for time, interface, record, comment in merge(*numbered, key=lambda each: each[:2]):
        head = struct.pack("<IIIII", interface, time >> 32, time & 0xFFFFFFFF, len(record.data), record.length)
        options = (
            _option(COMMENT, comment.encode()[:LONGEST_COMMENT]) + _option(END_OF_OPTIONS, b"") if comment else b""
        )
        file.write(_block(ENHANCED_PACKET, head + _padded(record.data) + options))


def _numbered(interface: int, place: CapturedEnd) -> Iterable[tuple[int, int, PacketRecord, str]]:
    for number, record in enumerate(place.records, 1):
        yield record.time + place.shift, interface, record, place.comments.get(number, "")


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length
