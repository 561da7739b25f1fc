"""Makes a plain capture of one that another tool wrote: sorted, split into datagrams, with the server at port 443."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from statistics import median_low

from quicsat.model.implementation import Role
from quicsat.model.text import counted
from quicsat.model.whole_file import new_file
from quicsat.traces.capture_contents import WRONG, Capture, Datagram, Mark, clock_of, datagram, usual
from quicsat.traces.columns import QUIC_PORT
from quicsat.traces.network import RAW_IP, digest
from quicsat.traces.records import EARLIEST, NANOSECONDS, PacketRecord

MOST_PAYLOAD = 1500 - 20 - 8
"""Bytes of UDP payload in an Ethernet packet without jumbo frames."""
LEAST_ID = 4
"""Bytes of a connection id that are not found by chance in encrypted data."""
MOST_SIZES = 64
"""Sizes of datagrams, the most frequent first, into which a larger record may be split."""
NOTHING = b"\0"
"""Data of a record that takes the place of one that is left out; no version of IP."""
BETWEEN = "as with losses between several interfaces: the loss is not known."
COPIED = 0.5
"""Share of datagrams with a copy in the same capture above which it was taken at several interfaces."""
UNMATCHED = 0.05
"""Share of datagrams that the other trace does not have so, above which they may be several datagrams each."""


def write_capture(path: Path, records: Sequence[PacketRecord]) -> None:
    """A pcap file of IP packets with times in nanoseconds."""
    with new_file(path) as stream:
        stream.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, RAW_IP))
        for record in records:
            stream.write(struct.pack("<IIII", *divmod(record.time, NANOSECONDS), len(record.data), record.length))
            stream.write(record.data)


class Repair:
    """What has to be changed in a capture; ``other`` is that of the other end."""

    def __init__(self, capture: Capture, other: Capture) -> None:
        self.capture, self._other = capture, other
        self.unsplit = 0
        self.done = list[str]()
        """Notes on what was done when the records were made."""
        counts = [len(times) for each in capture.seen.values() for times in each.values()]
        self._copied = sum(counts) - len(counts) > COPIED * len(counts)
        self._single = sum(count < median_low(counts) for count in counts) if self._copied else 0
        self._split = any(self._splittable(from_server) for from_server in (False, True))
        self._dropped = {ends for ends in capture.pairs if ends not in capture.flows and usual(*ends) is not None}
        self._moved = {ends for ends, server in capture.flows.items() if usual(*ends) is not server}
        self._clock = capture.clocks.most_common(1)[0][0] if capture.clocks else ""
        self._wrong = capture.records - capture.clocks[self._clock]
        self._shift = EARLIEST * NANOSECONDS - capture.first if self._clock == WRONG else 0
        changes = (
            self._copied, self._split, self._dropped, self._moved, self._wrong, self._shift, capture.late,
            capture.strangers, capture.damage,
        )  # fmt: skip
        self.needed = bool(capture.flows) and any(changes)

    @property
    def incomplete(self) -> bool:
        """Whether packets may be missing or too many, so that loss and causes are not known."""
        capture = self.capture
        return bool(self.unsplit or self._single or capture.parts > 1 or (capture.flows and capture.unread))

    def _splittable(self, from_server: bool) -> bool:
        """Whether records may hold several datagrams: larger than those of Ethernet, or unknown at the other end."""
        here, there = self.capture.seen[from_server], self._other.seen[from_server]
        unknown = sum(len(times) for mark, times in here.items() if mark not in there)
        total = sum(map(len, here.values()))
        return any(size > MOST_PAYLOAD for _, size in here) or bool(there and unknown > UNMATCHED * total)

    @property
    def notes(self) -> list[str]:
        """What differs from a plain capture, in sentences."""
        capture, whose = self.capture, f"the {self.capture.role}'s trace"
        servers = sorted({ends[0][1] if server else ends[1][1] for ends, server in capture.flows.items()} - {QUIC_PORT})
        late, wrong, strangers = (
            _records(count, whose) for count in (capture.late, self._wrong, len(capture.strangers))
        )
        fewer = counted(self._single, "packet has", "packets have")
        notes: list[tuple[object, str]] = [
            (capture.sorted, f"All records were sorted by time: {late} came after a newer one."),
            (self._wrong, f"{wrong} with an impossible time: left out."),
            (self._shift, f"The clock of {whose} was wrong: its first record is not of the years 2000 to 2099."),
            (self._copied, f"{whose.capitalize()} has its packets several times; copies were left out."),
            (self._single, f"{fewer} fewer copies in {whose} than others, {BETWEEN}"),
            (servers and self._moved, f"The server in {whose} has port {', '.join(map(str, servers))}."),
            (capture.strangers, f"{strangers} of no connection that key logs name, or that was answered: left out."),
            (self._dropped, f"{whose.capitalize()} has other traffic of port {QUIC_PORT}, which was left out."),
        ]  # fmt: skip
        return [note for differs, note in notes if self.needed and differs]

    def records(self) -> list[PacketRecord]:
        """The IP packets of the capture, repaired; others become empty records, so that frames keep their numbers."""
        made, copies, split = list[PacketRecord](), Counter[tuple[bool, Mark]](), 0
        for record, from_server in self._plausible():
            found = None if from_server is None else datagram(record)
            if found is None or from_server is None:
                made.append(record._replace(length=len(NOTHING), data=NOTHING))
                continue
            mark = digest(found.payload), found.size
            copies[from_server, mark] += 1
            if self._copied and not self._nearest(from_server, mark, copies[from_server, mark]):
                continue
            pieces = self._pieces(found, from_server) if self._split else None
            split += pieces is not None
            self.unsplit += pieces is None and found.size > MOST_PAYLOAD
            made += [self._made(record, found, from_server, piece) for piece in pieces or (None,)]
        self._say(split)
        return made

    def _nearest(self, from_server: bool, mark: Mark, copy: int) -> bool:
        """Whether the ``copy``-th record of a packet is the one that is closest to the capture's end of the link."""
        sent = from_server is (self.capture.role is Role.SERVER)
        return copy == (1 if sent else len(self.capture.seen[from_server][mark]))

    def _plausible(self) -> Sequence[tuple[PacketRecord, bool | None]]:
        """The records in the order of time; of those of the run, whether the server sent them."""
        made = list[tuple[PacketRecord, bool | None]]()
        for number, (record, _, from_server) in enumerate(self.capture.packets(), 1):
            if clock_of(record.time) == self._clock:
                own = None if number in self.capture.strangers else from_server
                made.append((record._replace(time=max(record.time + self._shift, 0)), own))
        if self.capture.sorted:
            return sorted(made, key=lambda each: each[0].time)
        latest = accumulate((record.time for record, _ in made), max)
        return [(record._replace(time=time), own) for (record, own), time in zip(made, latest, strict=True)]

    def _made(self, record: PacketRecord, found: Datagram, from_server: bool, piece: bytes | None) -> PacketRecord:
        """The record without its link layer, with the server at its usual port, and with a piece of its payload."""
        payload, size = (found.payload, found.size) if piece is None else (piece, len(piece))
        head = bytearray(record.data[found.ip.start : found.ip.header])
        ports = [found.source[1], found.target[1]]
        if (found.source, found.target) in self._moved:
            ports[not from_server] = QUIC_PORT
        at, length = (2, len(head) + 8 + size) if len(found.ip.ends) == 8 else (4, len(head) - 40 + 8 + size)
        head[at : at + 2] = min(length, 0xFFFF).to_bytes(2, "big")
        data = bytes(head) + struct.pack(">HHHH", *ports, min(8 + size, 0xFFFF), 0) + payload
        return record._replace(length=len(head) + 8 + size, data=data)

    def _pieces(self, found: Datagram, from_server: bool) -> list[bytes] | None:
        """The datagrams of a record with more than one: all of one size, of which the last one may be smaller.

        The right size is the one whose pieces the other capture has as datagrams. If it has none of them, since its
        records hold several as well, the connection id shows where each datagram begins.
        """
        payload = found.payload
        there = self._other.seen[from_server]
        if len(payload) < found.size or ((digest(payload), found.size) in there and found.size <= MOST_PAYLOAD):
            return None
        sizes = [size for size in self._sizes[from_server] if size < len(payload)]
        cuts = [[payload[at : at + size] for at in range(0, len(payload), size)] for size in sizes]
        shares = [sum(len(piece) for piece in cut if (digest(piece), len(piece)) in there) for cut in cuts]
        if any(shares):
            return cuts[shares.index(max(shares))]
        known = self.capture.id_size(from_server=from_server) or self._other.id_size(from_server=from_server)
        return _by_id(payload, known) if known >= LEAST_ID and found.size > MOST_PAYLOAD else None

    @cached_property
    def _sizes(self) -> dict[bool, list[int]]:
        """Sizes of the other end's datagrams by direction, the most frequent first."""
        sizes = {}
        for from_server, marks in self._other.seen.items():
            frequent = Counter[int]()
            for (_, size), times in marks.items():
                frequent[size] += len(times) if 0 < size <= MOST_PAYLOAD else 0
            sizes[from_server] = [size for size, count in frequent.most_common(MOST_SIZES) if count]
        return sizes

    def _say(self, split: int) -> None:
        whose = f"the {self.capture.role}'s trace"
        remedy = (
            "To record datagrams, switch the offload of the captured device off: ethtool -K DEVICE gro off gso off "
            "tso off rx-udp-gro-forwarding off rx-gro-list off tx-udp-segmentation off."
        )
        if split:
            many = f"{_records(split, whose)} with several datagrams each (segmentation or receive offload)."
            self.done.append(f"Split: {many} The datagrams of a record have one time. {remedy}")
        if self.unsplit:
            many = f"Larger than an Ethernet packet, and not split: {_records(self.unsplit, whose)}."
            self.done.append(
                f"{many} They may hold several datagrams each, so that loss and streams are not known. {remedy}"
            )


def _records(count: int, whose: str) -> str:
    return f"{counted(count, 'record')} of {whose}"


def _by_id(payload: bytes, size: int) -> list[bytes] | None:
    """Pieces of equal size that all begin with a short header and the same connection id of ``size`` bytes."""
    name = payload[1 : 1 + size]
    at = payload.find(name, 1 + size)
    while at > 0:
        pieces = [payload[begin : begin + at - 1] for begin in range(0, len(payload), at - 1)]
        if all(not piece[0] & 0x80 and piece[1 : 1 + size] == name for piece in pieces):
            return pieces
        at = payload.find(name, at + 1)
    return None
