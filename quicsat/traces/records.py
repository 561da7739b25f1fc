"""Reads the records of a trace file one by one, and finds the first byte that cannot be true.

Formats: pcap (micro- and nanoseconds, both byte orders; draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng).
Only one record is in memory at a time, whatever lengths the file claims.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, NamedTuple

from quicsat.model.bounds import LEAST_PACKETS
from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode
from quicsat.model.stored_files import open_file

CLIENT_TRACE = Path("sim", "trace_node_left.pcap")
SERVER_TRACE = Path("sim", "trace_node_right.pcap")
"""In the directory of a run: what the link carried, at its two ends."""
MOST_CONNECTIONS = 1000
"""Connections of a trace."""
RECORD_LIMIT = 262_144
"""Largest packet that capture programs write (their maximum snap length), bytes."""
BLOCK_LIMIT = 16 * 1024 * 1024
"""Largest pcapng block that libpcap accepts, bytes."""
EARLIEST, LATEST = 946_684_800, 4_102_444_800
"""The years 2000 and 2100 in seconds since 1970; a capture from outside them has a broken clock or broken bytes."""
LONGEST_SIMULATION = 86_400
"""Seconds. A capture whose first record is younger counts from the start of a simulation, as ns-3 writes it; the
scenarios of the QUIC Interop Runner end after 36,000 s."""
BACKWARD_LIMIT = 1_000_000
"""Nanoseconds that a record may be older than the one before it."""
NANOSECONDS = 1_000_000_000


UNPACK = "unpack it. If that fails, the file is damaged."
CONVERT = "convert it with `editcap -F pcapng IN OUT`."
OTHER_FORMATS = {
    "compressed with zstd": (b"\x28\xb5\x2f\xfd", UNPACK),
    "compressed with xz": (b"\xfd7zX", UNPACK),
    "compressed with lz4": (b"\x04\x22\x4d\x18", UNPACK),
    "compressed with bzip2": (b"BZh9", UNPACK),
    "a ZIP archive": (b"PK\x03\x04", UNPACK),
    "a text file of K12": (b"+---", CONVERT),
    "a capture of snoop": (b"snoo", CONVERT),
    "a capture of Microsoft Network Monitor": (b"GMBU", CONVERT),
}
"""Files in place of a trace, by what they are: their first four bytes, and what helps."""


class Condition(StrEnum):
    """In which state a trace file is."""

    OK = "ok"
    EMPTY = "empty"
    TRUNCATED = "truncated"
    CORRUPT = "corrupt"


class DamagedTraceError(Exception):
    """The walk cannot go on."""

    def __init__(self, condition: Condition, reason: str) -> None:
        super().__init__(reason)
        self.condition = condition
        self.reason = reason


class PacketRecord(NamedTuple):
    time: int
    """Nanoseconds since 1970, or since the start of a simulation."""
    link_type: int
    length: int
    """Of the packet on the wire."""
    data: bytes


def records(path: Path, most: int = LEAST_PACKETS) -> Iterator[PacketRecord]:
    """All records, at ``most`` so many; raises as :func:`unsorted_records`.

    A record that is older than the one before is a fault, too.
    """
    return _in_order(unsorted_records(path, most), path.name)


def records_before_fault(path: Path, most: int = LEAST_PACKETS) -> Iterator[PacketRecord]:
    """The records up to the first fault; those of :func:`records`."""
    with suppress(DamagedTraceError):
        yield from records(path, most)


def unsorted_records(path: Path, most: int = LEAST_PACKETS, name: str = "") -> Iterator[PacketRecord]:
    """All records, whatever their times; raises ``DamagedTraceError`` at the first fault.

    Raises ``HarnessFault`` (trace-limit) after ``most`` records. ``name``: of the file in messages, if it has another.
    """
    name = name or path.name
    with _opened(path) as stream:
        for number, record in enumerate(_open(stream, name, most)):
            if number == most:
                raise too_large(name, most, "packets")
            yield record


def too_large(name: str, most: int, what: str) -> HarnessFault:
    """The fault of a trace that holds more than ``most`` of something."""
    return HarnessFault(ErrorCode.TRACE_LIMIT, f"{name} has more than {most} {what}")


def embedded_secrets(path: Path) -> bytes:
    """The key logs in the Decryption Secrets Blocks of a pcapng file, up to its first fault.

    draft-ietf-opsawg-pcapng, section 4.7. Empty for other files.
    """
    found, room = list[bytes](), SECRETS_LIMIT
    with suppress(DamagedTraceError, HarnessFault), _opened(path) as stream:
        if stream.read(4) == SECTION_BYTES:
            for block in _blocks(stream, path.name, LEAST_PACKETS):
                if block.kind == SECRETS and len(block.body) >= 8:
                    kind, size = struct.unpack_from(f"{block.order}II", block.body)
                    secrets = block.body[8 : 8 + min(size, room)] if kind == TLS_KEY_LOG else b""
                    found.append(secrets)
                    room -= len(secrets)
    return b"\n".join(found)


def records_by_interface(path: Path, most: int = LEAST_PACKETS) -> dict[str, list[PacketRecord]]:
    """The packets of a pcapng file by the names of their interfaces, up to its first fault; empty for other files.

    The first ``most`` packets.
    """
    found: dict[str, list[PacketRecord]] = {}
    interfaces = list[_Interface]()
    with suppress(DamagedTraceError, HarnessFault), _opened(path) as stream:
        if stream.read(4) != SECTION_BYTES:
            return {}
        for kind, order, body, where in _blocks(stream, path.name, most):
            if kind == SECTION:
                interfaces = []
            elif kind == INTERFACE and len(interfaces) < MOST_INTERFACES:
                interfaces.append(_interface(body, order, where))
            elif kind == ENHANCED_PACKET:
                record = _enhanced(body, order, interfaces, where)
                (index,) = struct.unpack_from(f"{order}I", body)
                found.setdefault(interfaces[index].name, []).append(record)
                most -= 1
                if most < 0:
                    break
    return found


def first_fault(path: Path, name: str, most: int = LEAST_PACKETS) -> str:
    """What is wrong with a trace, or that it has more than ``most`` packets; empty if nothing is. ``name``: its own."""
    try:
        for _ in unsorted_records(path, most, name):
            pass
    except DamagedTraceError as broken:
        return broken.reason
    except HarnessFault as fault:
        return f"{fault.reason}."
    return ""


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The file, without following a link; raises ``DamagedTraceError`` if it cannot be read."""
    try:
        with open_file(path) as stream:
            yield stream
    except FileNotFoundError:
        raise DamagedTraceError(Condition.EMPTY, f"There is no file {path.name}.") from None
    except OSError as error:
        raise DamagedTraceError(Condition.CORRUPT, f"{path.name} cannot be read: {error.strerror}.") from error


def _open(stream: BinaryIO, name: str, most: int) -> Iterator[PacketRecord]:
    magic = stream.read(4)
    if not magic:
        raise DamagedTraceError(Condition.EMPTY, f"{name} has no bytes.")
    if magic == SECTION_BYTES:
        return _pcapng(stream, name, most)
    for order in "<>":
        for code, unit in ((0xA1B2C3D4, 1000), (0xA1B23C4D, 1)):
            if magic == struct.pack(f"{order}I", code):
                return _pcap(stream, name, order, unit)
    if len(magic) < 4:
        raise DamagedTraceError(Condition.TRUNCATED, f"{name} ends within its header.")
    for kind, (beginning, remedy) in OTHER_FORMATS.items():
        if magic == beginning:
            raise DamagedTraceError(Condition.CORRUPT, f"{name} is {kind}: {remedy}")
    raise DamagedTraceError(Condition.CORRUPT, f"{name} is no trace: it begins with the bytes {magic.hex()}.")


def simulated(time: int) -> bool:
    """Whether a time in nanoseconds counts from the start of a simulation rather than from 1970."""
    return 0 <= time < LONGEST_SIMULATION * NANOSECONDS


def dated(time: int) -> bool:
    """Whether a time in nanoseconds since 1970 can be true."""
    return EARLIEST * NANOSECONDS <= time < LATEST * NANOSECONDS


def _in_order(records: Iterator[PacketRecord], name: str) -> Iterator[PacketRecord]:
    """The same records, as long as their times can be true. The first one decides on the clock of all."""
    before, least, most = 0, EARLIEST * NANOSECONDS, LATEST * NANOSECONDS
    for number, record in enumerate(records, 1):
        if number == 1 and simulated(record.time):
            least, most = 0, LONGEST_SIMULATION * NANOSECONDS
        if not least <= record.time < most:
            raise DamagedTraceError(Condition.CORRUPT, f"Record {number} of {name} has an impossible time.")
        if record.time < before - BACKWARD_LIMIT:
            late = (before - record.time) / NANOSECONDS
            raise DamagedTraceError(
                Condition.CORRUPT, f"Record {number} of {name} is {late:.3f} s older than the one before."
            )
        before = record.time
        yield record


def _exactly(stream: BinaryIO, size: int, where: str) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise _cut_off(where)
    return data


def _cut_off(where: str) -> DamagedTraceError:
    return DamagedTraceError(Condition.TRUNCATED, f"{where} is cut off.")


def _pcap(stream: BinaryIO, name: str, order: str, unit: int) -> Iterator[PacketRecord]:
    """Records after the magic number; ``unit`` is the resolution in nanoseconds."""
    header = _exactly(stream, 20, f"The header of {name}")
    major, _minor, _zone, _accuracy, snap_length, link_type = struct.unpack(f"{order}HHiIII", header)
    if major != 2:
        raise DamagedTraceError(Condition.CORRUPT, f"{name} has the unknown format version {major}.")
    limit = min(snap_length or RECORD_LIMIT, RECORD_LIMIT)
    layout = struct.Struct(f"{order}IIII")
    number = 0
    while header := stream.read(16):
        number += 1
        if len(header) < 16:
            raise DamagedTraceError(Condition.TRUNCATED, f"The header of record {number} of {name} is cut off.")
        second, fraction, captured, length = layout.unpack(header)
        if not 0 < captured <= length <= limit:
            _plausible(captured, length, limit, f"Record {number} of {name}")
        if fraction * unit >= NANOSECONDS:
            raise DamagedTraceError(Condition.CORRUPT, f"Record {number} of {name} has an impossible time.")
        if len(data := stream.read(captured)) < captured:
            raise _cut_off(f"Record {number} of {name}")
        yield PacketRecord(second * NANOSECONDS + fraction * unit, link_type & 0xFFFF, length, data)


def _plausible(captured: int, length: int, limit: int, where: str) -> None:
    if captured > limit:
        raise DamagedTraceError(
            Condition.CORRUPT, f"{where} claims {captured} bytes, more than the {limit} possible ones."
        )
    if not length:  # a file system that lost the end of a file fills it with zeros
        raise DamagedTraceError(Condition.CORRUPT, f"{where} is a packet of 0 bytes.")
    if captured > length or length > RECORD_LIMIT:
        raise DamagedTraceError(Condition.CORRUPT, f"{where} claims {captured} of {length} bytes.")


# ---- pcapng ---------------------------------------------------------------------------------

SECTION, INTERFACE, OLD_PACKET, SIMPLE_PACKET, ENHANCED_PACKET, SECRETS = 0x0A0D0D0A, 1, 2, 3, 6, 10
SECTION_BYTES = b"\x0a\x0d\x0d\x0a"
"""The type of a section header reads the same in both byte orders."""
TLS_KEY_LOG = 0x544C534B
SECRETS_LIMIT = 4 * 1024 * 1024
"""Bytes of key logs in a file that are read."""
MOST_INTERFACES = 1000
"""Interfaces that a section of a file describes."""
NAME, TIME_RESOLUTION, TIME_OFFSET = 2, 9, 14
"""Codes of the options if_name, if_tsresol and if_tsoffset."""


class _Block(NamedTuple):
    kind: int
    order: str
    """Byte order of its section, as in struct."""
    body: bytes
    where: str


class _Interface(NamedTuple):
    link_type: int
    snap_length: int
    ticks: int
    """Per second."""
    offset: int
    """Seconds to add to each time."""
    name: str = ""


def _pcapng(stream: BinaryIO, name: str, most: int) -> Iterator[PacketRecord]:
    """Packets of all sections, whose first block type has been read."""
    interfaces = list[_Interface]()
    for kind, order, body, where in _blocks(stream, name, most):
        if kind == SECTION:
            interfaces = []
        elif kind == INTERFACE:
            if len(interfaces) == MOST_INTERFACES:
                raise too_large(name, MOST_INTERFACES, "interfaces")
            interfaces.append(_interface(body, order, where))
        elif kind == ENHANCED_PACKET:
            yield _enhanced(body, order, interfaces, where)
        elif kind in (SIMPLE_PACKET, OLD_PACKET):
            raise DamagedTraceError(Condition.CORRUPT, f"{where} is a packet without a usable time.")


def _blocks(stream: BinaryIO, name: str, most: int) -> Iterator[_Block]:
    """All blocks of a file whose first block type has been read; raises HarnessFault after twice ``most`` blocks."""
    order, number, kind_bytes = "<", 0, SECTION_BYTES
    while kind_bytes:
        number += 1
        if number > 2 * most + MOST_INTERFACES:
            raise too_large(name, number - 1, "blocks")
        where = f"Block {number} of {name}"
        if len(kind_bytes) < 4:
            raise DamagedTraceError(Condition.TRUNCATED, f"{where} is cut off.")
        (kind,) = struct.unpack(f"{order}I", kind_bytes)
        if kind == SECTION:
            order, body = _section(stream, where)
        else:
            body = _body(stream, order, _exactly(stream, 4, where), where)
        yield _Block(kind, order, body, where)
        kind_bytes = stream.read(4)


def _section(stream: BinaryIO, where: str) -> tuple[str, bytes]:
    """Byte order and body of a section header; the caller has read its type."""
    length, magic = _exactly(stream, 4, where), _exactly(stream, 4, where)
    for order in "<>":
        if magic == struct.pack(f"{order}I", 0x1A2B3C4D):
            return order, magic + _body(stream, order, length, where, already=4)
    raise DamagedTraceError(Condition.CORRUPT, f"{where} has no byte order.")


def _body(stream: BinaryIO, order: str, length_bytes: bytes, where: str, already: int = 0) -> bytes:
    """What lies between the two lengths of a block, less the bytes ``already`` read."""
    (length,) = struct.unpack(f"{order}I", length_bytes)
    if length % 4 or not 12 + already <= length <= BLOCK_LIMIT:
        raise DamagedTraceError(Condition.CORRUPT, f"{where} claims a length of {length} bytes.")
    body = _exactly(stream, length - 12 - already, where)
    if _exactly(stream, 4, where) != length_bytes:
        raise DamagedTraceError(Condition.CORRUPT, f"{where} has two different lengths.")
    return body


def _interface(body: bytes, order: str, where: str) -> _Interface:
    if len(body) < 8:
        raise DamagedTraceError(Condition.CORRUPT, f"{where} is too short to describe an interface.")
    link_type, _reserved, snap_length = struct.unpack_from(f"{order}HHI", body)
    ticks, offset, name, position = 1_000_000, 0, "", 8
    while position + 4 <= len(body):
        code, length = struct.unpack_from(f"{order}HH", body, position)
        if code == NAME:
            name = body[position + 4 : position + 4 + length].decode(errors="replace")
        if code == TIME_RESOLUTION and length == 1 and position + 4 < len(body):
            exponent = body[position + 4]
            ticks = 2 ** (exponent & 0x7F) if exponent & 0x80 else 10 ** min(exponent, 18)
        if code == TIME_OFFSET and length == 8 and position + 12 <= len(body):
            (offset,) = struct.unpack_from(f"{order}q", body, position + 4)
        if code == 0:
            break
        position += 4 + (length + 3) // 4 * 4
    return _Interface(link_type, snap_length, ticks, offset, name)


def _enhanced(body: bytes, order: str, interfaces: list[_Interface], where: str) -> PacketRecord:
    if len(body) < 20:
        raise DamagedTraceError(Condition.CORRUPT, f"{where} is too short for a packet.")
    index, high, low, captured, length = struct.unpack_from(f"{order}IIIII", body)
    if index >= len(interfaces):
        raise DamagedTraceError(Condition.CORRUPT, f"{where} names an interface that is not described.")
    interface = interfaces[index]
    limit = min(interface.snap_length or RECORD_LIMIT, RECORD_LIMIT, len(body) - 20)
    _plausible(captured, length, limit, where)
    time = ((high << 32) | low) * NANOSECONDS // interface.ticks + interface.offset * NANOSECONDS
    return PacketRecord(time, interface.link_type, length, body[20 : 20 + captured])
