"""Writes captures of several places into one pcapng file, with secrets and comments (draft-ietf-opsawg-pcapng)."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from heapq import merge
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, NamedTuple

from quicsat.model.stored_files import open_file, resolved
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

ETHERNET = 1
"""Link type of a place without packets."""


class CapturedEnd(NamedTuple):
    """Where packets were captured."""

    name: str
    records: Callable[[], Iterable[PacketRecord]]
    """Gives all of them, in the order of time; called twice, so that they need not be in memory."""
    comments: Mapping[int, str] = MappingProxyType({})
    """By the number of a packet, from 1."""
    shift: int = 0
    """Nanoseconds to add to its times."""


def write_pcapng(file: BinaryIO, key_log: bytes, places: Sequence[CapturedEnd]) -> None:
    """A section with an interface per place and link type, the key log if there is one, and all packets by time.

    One packet is in memory at a time. The section has its length if ``file`` can seek.
    """
    begin = file.tell() if file.seekable() else 0
    file.write(_section(UNKNOWN_LENGTH))
    if key_log:
        file.write(_block(SECRETS, struct.pack("<II", TLS_KEY_LOG, len(key_log)) + _padded(key_log)))
    interfaces: dict[tuple[int, int], int] = {}
    for number, place in enumerate(places):
        options = _option(NAME, place.name.encode()) + _option(TIME_RESOLUTION, bytes([NANOSECONDS_EXPONENT]))
        for link_type in dict.fromkeys(record.link_type for record in place.records()) or (ETHERNET,):
            interfaces[number, link_type] = len(interfaces)
            file.write(_block(INTERFACE, struct.pack("<HHI", link_type, 0, 0) + options + _option(END_OF_OPTIONS, b"")))
    numbered = (_numbered(number, place) for number, place in enumerate(places))
    for time, number, record, comment in merge(*numbered, key=lambda each: each[:2]):
        interface = interfaces[number, record.link_type]
        head = struct.pack("<IIIII", interface, time >> 32, time & 0xFFFFFFFF, len(record.data), record.length)
        options = (
            _option(COMMENT, comment.encode()[:LONGEST_COMMENT]) + _option(END_OF_OPTIONS, b"") if comment else b""
        )
        file.write(_block(ENHANCED_PACKET, head + _padded(record.data) + options))
    if not file.seekable():
        return
    end = file.tell()
    file.seek(begin)
    file.write(_section(end - begin - len(_section(0))))
    file.seek(end)


def is_export(path: Path) -> bool:
    """Whether :func:`write_pcapng` wrote a file: others do not state the length of a section that fills the file."""
    with suppress(OSError), open_file(resolved(path)) as file:
        head = _section(max(os.fstat(file.fileno()).st_size - len(_section(0)), 0))
        return file.read(len(head)) == head
    return False


def _section(length: int) -> bytes:
    """The header of a section; ``length``: bytes behind it."""
    return _block(SECTION, struct.pack("<IHHQ", BYTE_ORDER, *VERSION, length))


def _numbered(place: int, end: CapturedEnd) -> Iterable[tuple[int, int, PacketRecord, str]]:
    for number, record in enumerate(end.records(), 1):
        yield record.time + end.shift, place, record, end.comments.get(number, "")


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length
