"""Puts QUIC packets and STREAM frames together again from the lines that tshark writes about a trace.

tshark writes one line per captured frame; the values of coalesced packets and of several QUIC frames stand in one list
per field, without a word on which belongs to which. RFC 9000 says it: long headers come before the only short one, and
the bits of a STREAM frame's type tell whether it has an offset and a length.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, repeat

import numpy as np

from interop.columns import Flags, Form, Integers, StreamFrames, Trace, direction

FIELDS = (
    "frame.time_epoch",
    "ip.src",
    "ipv6.src",
    "ip.dst",
    "ipv6.dst",
    "udp.srcport",
    "udp.dstport",
    "udp.length",
    "quic.header_form",
    "quic.long.packet_type",
    "quic.long.packet_type_v2",
    "quic.version",
    "quic.dcil",
    "quic.scil",
    "quic.dcid",
    "quic.scid",
    "quic.packet_number",
    "quic.decryption_failed",
    "quic.key_phase",
    "quic.frame_type",
    "quic.stream.stream_id",
    "quic.stream.offset",
    "quic.stream.length",
    "quic.stream_data",
)
"""What ``parse`` needs in each line, separated by tabs; the values of a field are separated by commas."""

NANOSECONDS = 1_000_000_000
VERSION_2 = 0x6B3343CF
FORMS = {b"0": Form.INITIAL, b"1": Form.ZERO_RTT, b"2": Form.HANDSHAKE, b"3": Form.RETRY}
"""Type codes of QUIC version 1 (RFC 9000, section 17.2)."""
FORMS_2 = {b"0": Form.RETRY, b"1": Form.INITIAL, b"2": Form.ZERO_RTT, b"3": Form.HANDSHAKE}
"""Type codes of QUIC version 2 (RFC 9369, section 3.2)."""
NUMBERLESS = (Form.RETRY, Form.VERSION_NEGOTIATION)
FIN_BIT, LENGTH_BIT, OFFSET_BIT = 0x01, 0x02, 0x04
"""Bits in the type of a STREAM frame (RFC 9000, section 19.8)."""


def parse(lines: Iterable[bytes]) -> tuple[Trace, int]:
    """The columns of a trace, and how many lines there were (one per captured frame).

    Frames that are no QUIC between client and server give no row. Raises ValueError on a line of another shape.
    """
    rows = _Rows()
    for line in lines:
        if not line.endswith(b"\n"):
            break  # tshark was ended while it wrote; whoever ran it knows why
        rows.add(line)
    return rows.trace(), rows.lines


class _Rows:
    """The columns while they grow."""

    def __init__(self) -> None:
        self.lines = 0
        self.packets: tuple[array[int], ...] = tuple(array("q") for _ in range(11))
        """time, frame, from_server, path, size, form, number, version, scid, dcid, decrypted."""
        self.frames: tuple[array[int], ...] = tuple(array("q") for _ in range(5))
        """packet, stream, offset, length, fin."""
        self.ends: dict[tuple[bytes, ...], tuple[bool, int] | None] = {}
        self.paths: dict[str, int] = {}
        self.connection_ids: dict[str, int] = {"": 0}

    def add(self, line: bytes) -> None:
        """Take one line."""
        self.lines += 1
        values = line.rstrip(b"\n").split(b"\t")
        if len(values) != len(FIELDS):
            raise ValueError(f"line {self.lines} has {len(values)} fields, not {len(FIELDS)}")
        addresses = tuple(values[1:7])
        if addresses not in self.ends:
            self.ends[addresses] = self._end(addresses)
        end = self.ends[addresses]
        if end is None or not values[8]:
            return
        first = len(self.packets[0])
        self._packets(values, end)
        if values[19]:
            self._stream_frames(values, self._owner(first))

    def _end(self, addresses: tuple[bytes, ...]) -> tuple[bool, int] | None:
        """Direction and path; None if it is no packet between client and server, but e.g. ICMP that quotes one."""
        source4, source6, target4, target6, source_port, target_port = (value.decode("ascii") for value in addresses)
        if not source_port.isdigit() or not target_port.isdigit() or bool(source4) == bool(source6):
            return None
        source, target = source4 or source6, target4 or target6
        if "," in source or "," in target:
            return None
        from_server = direction(source, int(source_port), target, int(target_port))
        if from_server is None:
            return None
        ends = [f"{source}:{source_port}", f"{target}:{target_port}"]
        path = " ".join(reversed(ends) if from_server else ends)
        return from_server, self.paths.setdefault(path, len(self.paths))

    def _packets(self, values: list[bytes], end: tuple[bool, int]) -> None:
        """Append a row per QUIC packet of the datagram."""
        second, _, fraction = values[0].partition(b".")
        time = int(second) * NANOSECONDS + int(fraction[:9].ljust(9, b"0"))
        size = int(values[7] or 8) - 8
        headers = list(_headers(values))
        numbers, decrypted = _decryption([header[0] for header in headers], values)
        for (form, version, dcid, scid), number, clear in zip(headers, numbers, decrypted, strict=True):
            row = (time, self.lines, end[0], end[1], size, form, number, version, self._id(scid), self._id(dcid), clear)
            for column, value in zip(self.packets, row, strict=True):
                column.append(value)
            size = 0

    def _id(self, connection_id: bytes) -> int:
        return self.connection_ids.setdefault(connection_id.decode("ascii"), len(self.connection_ids))

    def _owner(self, first: int) -> int:
        """The packet of a datagram that carries its STREAM frames: 1-RTT is always the last, 0-RTT the only other."""
        forms = self.packets[5][first:]
        if forms[-1] != Form.ONE_RTT and Form.ZERO_RTT in forms:
            return first + forms.index(Form.ZERO_RTT)
        return len(self.packets[5]) - 1

    def _stream_frames(self, values: list[bytes], packet: int) -> None:
        """Append a row per STREAM frame of the datagram."""
        types = _stream_types(values[19])
        if not types:
            return
        streams, offsets, lengths = (map(int, _split(value)) for value in values[20:23])
        sized = 0
        for kind in types:
            stream = next(streams, -1)
            offset = next(offsets, 0) if kind & OFFSET_BIT else 0
            length = next(lengths, 0) if kind & LENGTH_BIT else _rest(values[23], sized)
            sized += length > 0
            if stream < 0:
                return  # the packet is malformed
            for column, value in zip(self.frames, (packet, stream, offset, length, kind & FIN_BIT), strict=True):
                column.append(value)

    def trace(self) -> Trace:
        """The frozen columns."""
        time, frame, from_server, path, size, form, number, version, scid, dcid, decrypted = self.packets
        packet, stream, offset, length, fin = map(_integers, self.frames)
        epoch = time[0] // NANOSECONDS if time else 0
        return Trace(
            epoch=epoch,
            time=(_integers(time) - epoch * NANOSECONDS) / NANOSECONDS,
            frame=_integers(frame),
            from_server=_flags(from_server),
            path=_integers(path),
            size=_integers(size),
            form=_integers(form),
            number=_integers(number),
            version=_integers(version),
            scid=_integers(scid),
            dcid=_integers(dcid),
            decrypted=_flags(decrypted),
            frames=StreamFrames(packet, stream, offset, length, fin.astype(np.bool_)),
            paths=tuple(self.paths),
            connection_ids=tuple(self.connection_ids),
        )


def _integers(values: array[int]) -> Integers:
    return np.array(values, dtype=np.int64)


def _flags(values: array[int]) -> Flags:
    return np.array(values, dtype=np.bool_)


def _split(value: bytes) -> list[bytes]:
    return value.split(b",") if value else []


def _headers(values: list[bytes]) -> Iterator[tuple[Form, int, bytes, bytes]]:
    """Form, version, DCID and SCID of each QUIC packet of a datagram."""
    forms, types, types_2, versions, dcid_sizes, scid_sizes, dcids, scids = (
        chain(_split(value), repeat(b"")) for value in values[8:16]
    )
    for form in forms:
        if not form:
            return
        if form == b"0":
            yield Form.ONE_RTT, -1, next(dcids), b""
            continue
        version = int(next(versions) or b"0", 0)
        if version == 0:
            kind = Form.VERSION_NEGOTIATION
        elif version == VERSION_2:
            kind = FORMS_2.get(next(types_2), Form.UNKNOWN)
        else:
            kind = FORMS.get(next(types), Form.UNKNOWN)
        dcid = next(dcids) if next(dcid_sizes) not in (b"", b"0") else b""
        scid = next(scids) if next(scid_sizes) not in (b"", b"0") else b""
        yield kind, version, dcid, scid


def _decryption(forms: list[Form], values: list[bytes]) -> tuple[list[int], list[bool]]:
    """Packet number (-1 if unknown) of each packet, and whether it could be decrypted.

    A number appears as soon as the header is unprotected. Where some are missing, the short header has one if its key
    phase is known, and Initials go before other long headers, since everybody can compute their keys.
    """
    found = list(map(int, _split(values[16])))
    numbered = [row for row, form in enumerate(forms) if form not in NUMBERLESS]
    numbers = [-1] * len(forms)
    if len(found) < len(numbered):
        long = [row for row in numbered if forms[row] != Form.ONE_RTT]
        short = [row for row in numbered if forms[row] == Form.ONE_RTT] if values[18] else []
        numbered = sorted(long, key=lambda row: forms[row] != Form.INITIAL)[: len(found) - len(short)] + short
    for row, number in zip(sorted(numbered), found, strict=False):
        numbers[row] = number
    clear = [number >= 0 for number in numbers]
    if len(forms) == 1:
        return numbers, [clear[0] and bool(values[19])]
    unnumbered = sum(number < 0 and form not in NUMBERLESS for number, form in zip(numbers, forms, strict=True))
    for _ in range(len(_split(values[17])) - unnumbered):
        if True in clear:
            clear[len(clear) - 1 - clear[::-1].index(True)] = False
    return numbers, clear


@lru_cache(maxsize=4096)
def _stream_types(types: bytes) -> tuple[int, ...]:
    """The types of STREAM frames among the types of all frames."""
    return tuple(kind for kind in (int(text, 0) for text in types.split(b",")) if 0x08 <= kind <= 0x0F)


def _rest(data: bytes, sized: int) -> int:
    """Length of a STREAM frame without a length: it fills its packet, so its data are the last of the line.

    ``sized`` frames before it have data too; for an empty one tshark writes nothing, or ``<MISSING>``.
    """
    pieces = [piece for piece in data.split(b",") if piece and not piece.startswith(b"<")]
    return len(pieces[-1].replace(b":", b"")) // 2 if len(pieces) > sized else 0
