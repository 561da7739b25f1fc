"""Makes plain captures of those that other tools wrote: sorted, split into datagrams, with the server at port 443.

Copies are changed, never the files of the run. Captures of our own need none of this.
"""

from __future__ import annotations

import shutil
import struct
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from interop.model.errors import HarnessFault, MachineError
from interop.model.implementation import Role
from interop.traces.columns import QUIC_PORT, direction
from interop.traces.key_log import key_lines, secrets, well_formed
from interop.traces.network import LINK_TYPES, RAW_IP, TCP, UDP, IpPacket, Segment, digest, ip_packet
from interop.traces.packets import Dissector
from interop.traces.records import (
    BACKWARD_LIMIT,
    EARLIEST,
    NANOSECONDS,
    DamagedTraceError,
    PacketRecord,
    dated,
    embedded_secrets,
    simulated,
    unsorted_records,
)
from interop.traces.run_traces import CLIENT_TRACE, EMBEDDED_KEYS, KEY_LOGS, SERVER_TRACE
from interop.traces.tshark import editcap

TRACES = {Role.CLIENT: CLIENT_TRACE, Role.SERVER: SERVER_TRACE}
MOST_PAYLOAD = 1500 - 20 - 8
"""Bytes of UDP payload in an Ethernet packet without jumbo frames."""
LEAST_ID = 4
"""Bytes of a connection id that are not found by chance in encrypted data."""
HELLOS = 8
"""Packets with a long header in each direction between two ports that are looked into."""
MOST_SIZES = 64
"""Sizes of datagrams, the most frequent first, into which a larger record may be split."""
COPIED = 0.5
"""Share of datagrams with a copy in the same capture above which it was taken at several interfaces."""
UNMATCHED = 0.05
"""Share of datagrams that the other trace does not have so, above which they may be several datagrams each."""
PROTOCOLS = {TCP: "TCP", 1: "ICMP", 4: "IP in IP", 41: "IPv6 in IP", 47: "GRE", 50: "ESP", 58: "ICMPv6", 132: "SCTP"}
TUNNELS = {4789: "VXLAN", 6081: "Geneve", 2152: "GTP-U", 51820: "WireGuard"}
"""By their UDP ports."""
MOST_KINDS = 5
"""Kinds of packets that a note names."""

SIMULATION, SINCE_1970, WRONG = "simulation", "1970", "wrong"
"""Where times count from."""
End = tuple[bytes, int]
"""Address and port."""


@dataclass(frozen=True)
class PlainCaptures:
    """The captures of a run, as ``check_traces`` and ``read_run`` expect them."""

    directory: Path
    """That of the run, or of copies, with links to the folders of both endpoints."""
    sources: Mapping[Role, Path]
    """The files that the captures were made from."""
    notes: tuple[str, ...] = ()
    """A sentence each: what was changed, and what is not understood."""
    damaged: frozenset[Role] = frozenset()
    """Whose capture ends early: only the records before its fault are used."""
    unsplit: int = 0
    """Records of several datagrams that could not be split."""


@contextmanager
def plain_captures(directory: Path) -> Iterator[PlainCaptures]:
    """The captures of a run of any tool; copies are removed at the end.

    Not understood link types, tunnels and ports are named in the notes, and so is damage. No exception leaves this
    function for what the captures contain.
    """
    sources = {role: _capture(directory, trace) for role, trace in TRACES.items()}
    with TemporaryDirectory(prefix="captures-") as name:
        place = Path(name)
        found = {role: _Capture.read(role, source, place) for role, source in sources.items()}
        known, keys = _keys(directory, found)
        servers = _servers(found.values(), keys)
        for role in Role:
            found[role].judge(servers)
        repairs = {role: _Repair(found[role], found[_other(role)]) for role in Role}
        notes = [note for role in Role for note in (*found[role].notes(), *repairs[role].notes)]
        plain = directory
        changed = any(repair.needed for repair in repairs.values())
        usual = all(each.path == directory / TRACES[role] for role, each in found.items())
        if changed or not usual or len(keys) > len(known):
            plain = place / "run"
            _copy(directory, plain, keys, repairs)
            notes += [note for repair in repairs.values() for note in repair.done]
        yield PlainCaptures(
            plain,
            sources,
            tuple(notes),
            frozenset(role for role, each in found.items() if each.damage and each.records),
            sum(repair.unsplit for repair in repairs.values()),
        )


def _other(role: Role) -> Role:
    return Role.SERVER if role is Role.CLIENT else Role.CLIENT


def _capture(directory: Path, trace: Path) -> Path:
    """The file of a capture: of its usual name, or of one that other tools and compression programs make of it."""
    usual = directory / trace
    others = sorted((directory / trace.parent).glob(f"{trace.stem}*.pcap*"), key=lambda path: (len(path.name), path))
    files = [path for path in (usual, *others) if _regular(path)]
    return next((path for path in files if path.stat().st_size), files[0] if files else usual)


def _regular(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _keys(directory: Path, found: Mapping[Role, _Capture]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lines of the key logs at their usual places, and with those of all others and of the captures."""
    known = key_lines(*(directory / log for log in KEY_LOGS))
    below = sorted(path for part in ("client", "server") for path in (directory / part).glob("**/keys.log"))
    more = key_lines(directory / "keys.log", *below)
    captures = {path for each in found.values() for path in (each.path, *each.path.parent.glob(f"{each.stem}*.pcapng"))}
    embedded = well_formed(b"\n".join(embedded_secrets(path) for path in sorted(captures)))
    return known, tuple(dict.fromkeys((*known, *more, *embedded)))


def _copy(directory: Path, target: Path, keys: Sequence[str], repairs: Mapping[Role, _Repair]) -> None:
    (target / CLIENT_TRACE).parent.mkdir(parents=True)
    for part in ("client", "server"):
        if (directory / part).is_dir():
            (target / part).symlink_to((directory / part).absolute(), target_is_directory=True)
    (target / EMBEDDED_KEYS).write_text("".join(f"{line}\n" for line in keys), encoding="ascii")
    for role, repair in repairs.items():
        if repair.needed:
            _write(target / TRACES[role], repair.records())
        elif _regular(repair.capture.path):
            shutil.copyfile(repair.capture.path, target / TRACES[role])


def _write(path: Path, records: Sequence[PacketRecord]) -> None:
    """A pcap file of IP packets with times in nanoseconds."""
    with path.open("wb") as stream:
        stream.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, RAW_IP))
        for record in records:
            stream.write(struct.pack("<IIII", *divmod(record.time, NANOSECONDS), len(record.data), record.length))
            stream.write(record.data)


# ---- what a capture holds -------------------------------------------------------------------


class Datagram(NamedTuple):
    """A UDP packet in a record."""

    ip: IpPacket
    source: End
    target: End
    payload: bytes
    size: int
    """Bytes of payload on the wire."""


def _datagram(record: PacketRecord) -> Datagram | None:
    ip = ip_packet(record)
    if ip is None or ip.fragment or ip.protocol != UDP or len(record.data) < ip.header + 8:
        return None
    ports = struct.unpack_from(">HHH", record.data, ip.header)
    half, first = len(ip.ends) // 2, ip.header + 8
    size = max(ports[2], 8) - 8
    source, target = (ip.ends[:half], ports[0]), (ip.ends[half:], ports[1])
    return Datagram(ip, source, target, record.data[first : first + size], size)


def _usual(source: End, target: End) -> bool | None:
    """Whether it comes from the server by the addresses and the port that we expect; None if it is of neither."""
    return direction(str(ip_address(source[0])), source[1], str(ip_address(target[0])), target[1])


def _kind(record: PacketRecord) -> str:
    """What a record holds that is no UDP packet."""
    if record.link_type not in LINK_TYPES:
        return f"link type {record.link_type}"
    ip = ip_packet(record)
    if ip is None:
        return "not IP"
    return "IP fragments" if ip.fragment else PROTOCOLS.get(ip.protocol, f"IP protocol {ip.protocol}")


@dataclass
class _Capture:
    """What a capture holds, without the packets themselves."""

    role: Role
    path: Path
    records: int = 0
    late: int = 0
    """Records that are older than one before them."""
    clocks: Counter[str] = field(default_factory=Counter)
    """Records by the kind of their time, see ``_clock``."""
    first: int = 0
    """Time of the first record."""
    damage: str = ""
    kinds: Counter[str] = field(default_factory=Counter)
    """Records that are no UDP packets."""
    pairs: dict[tuple[End, End], int] = field(default_factory=dict)
    pair: array[int] = field(default_factory=lambda: array("q"))
    size: array[int] = field(default_factory=lambda: array("q"))
    digest: array[int] = field(default_factory=lambda: array("Q"))
    """Of each UDP packet."""
    hellos: dict[tuple[End, End], list[Segment]] = field(default_factory=dict)
    """The first packets with long headers."""
    flows: dict[tuple[End, End], bool] = field(default_factory=dict)
    """Pairs of ends of the run, and whether they are packets from the server."""

    @property
    def stem(self) -> str:
        return TRACES[self.role].stem

    @classmethod
    def read(cls, role: Role, source: Path, place: Path) -> _Capture:
        """Walk the file; formats that we do not read are converted into a file in ``place``."""
        found = cls(role, source)._walked()
        if found.damage and not found.records and _regular(source) and source.stat().st_size:
            converted = place / f"{role}.pcapng"
            with suppress(HarnessFault, MachineError):
                editcap(source, converted)
                other = cls(role, converted)._walked()
                return other if other.records else found
        return found

    def _walked(self) -> _Capture:
        newest = 0
        try:
            for record in unsorted_records(self.path):
                self.records += 1
                self.late += record.time < newest - BACKWARD_LIMIT
                newest = max(newest, record.time)
                self.clocks[_clock(record.time)] += 1
                self.first = self.first or record.time
                found = _datagram(record)
                if found is None:
                    self.kinds[_kind(record)] += 1
                else:
                    self._add(found)
        except DamagedTraceError as broken:
            self.damage = broken.reason
        return self

    def _add(self, found: Datagram) -> None:
        ends = found.source, found.target
        self.pair.append(self.pairs.setdefault(ends, len(self.pairs)))
        self.size.append(found.size)
        self.digest.append(digest(found.payload))
        if found.payload and found.payload[0] & 0x80:
            hellos = self.hellos.setdefault(ends, [])
            if len(hellos) < HELLOS:
                hellos.append(Segment(False, str(ends), 0, UDP, b"", found.payload, found.size))

    def judge(self, servers: Collection[End]) -> None:
        """Find the flows of the run, with what is known of its servers."""
        for source, target in self.pairs:
            usual = _usual(source, target)
            if source in servers or target in servers:
                self.flows[source, target] = source in servers
            elif usual is not None and not (servers and _at_port(source, target)):
                self.flows[source, target] = usual

    @cached_property
    def by_direction(self) -> dict[bool, Counter[tuple[int, int]]]:
        """How often there is a datagram of a digest and size."""
        counts: dict[bool, Counter[tuple[int, int]]] = {False: Counter(), True: Counter()}
        ends = list(self.pairs)
        for pair, size, mark in zip(self.pair, self.size, self.digest, strict=True):
            from_server = self.flows.get(ends[pair])
            if from_server is not None:
                counts[from_server][mark, size] += 1
        return counts

    def id_size(self, *, from_server: bool) -> int:
        """Bytes of the destination connection ids of a direction, which the other one's long headers show."""
        sizes = Counter[int]()
        for ends, hellos in self.hellos.items():
            if self.flows.get(ends) is (not from_server):
                for hello in hellos:
                    at = 6 + hello.payload[5] if len(hello.payload) > 5 else 0
                    sizes[hello.payload[at] if 0 < at < len(hello.payload) else 0] += 1
        return sizes.most_common(1)[0][0] if sizes else 0

    def notes(self) -> list[str]:
        """What is not understood, and what is damaged."""
        notes, whose = list[str](), f"The {self.role}'s trace"
        if self.damage and self.records:
            notes.append(f"{whose} is damaged: {self.damage} Before that, {self.records} are complete, and are used.")
        strange = {kind: count for kind, count in self.kinds.items() if self.flows and kind.startswith("link type")}
        notes += [f"{whose} has {_records(count, kind)}, which is not read." for kind, count in strange.items()]
        if fragments := self.kinds["IP fragments"]:
            notes.append(f"{whose} has {fragments} IP fragments, which are not put together, so packets are missing.")
        if self.records and not self.flows:
            notes.append(f"{whose} has no packet from or to port {QUIC_PORT}. It holds {self._content()}.")
        return notes

    def _content(self) -> str:
        kinds, ends = Counter(self.kinds), list(self.pairs)
        for pair in self.pair:
            ports = ends[pair][0][1], ends[pair][1][1]
            tunnel = next((name for port, name in TUNNELS.items() if port in ports), None)
            kinds[tunnel or f"UDP port {min(ports)}"] += 1
        named = [f"{count} of {kind}" for kind, count in kinds.most_common(MOST_KINDS)]
        return f"{self.records} records: {', '.join(named)}"


def _clock(time: int) -> str:
    """Where a time in nanoseconds counts from."""
    return SIMULATION if simulated(time) else SINCE_1970 if dated(time) else WRONG


def _records(count: int, whose: str) -> str:
    return f"{count} record{'s'[: count != 1]} of {whose}"


def _at_port(source: End, target: End) -> bool:
    """Whether the port alone says who is the server, since the addresses are none that we expect."""
    return _usual((source[0], 0), (target[0], QUIC_PORT)) is _usual((target[0], 0), (source[0], QUIC_PORT))


def _servers(captures: Collection[_Capture], keys: Sequence[str]) -> frozenset[End]:
    """Whom a client of the run sends an Initial, which only those can be read with the keys of its destination.

    If key logs name some of the connections, only theirs; else those at the usual addresses or port, if there are any.
    """
    randoms = secrets(keys).keys()
    found: dict[End, bool] = {}
    usual = set[End]()
    for capture in captures:
        for (source, target), hellos in capture.hellos.items():
            dissector = Dissector({})
            for number, hello in enumerate(hellos, 1):
                dissector.add(0, number, hello)
            for connection in dissector.trace().connections:
                found[target] = found.get(target, False) or bytes.fromhex(connection.random) in randoms
                if _usual(source, target) is False:
                    usual.add(target)
    named = frozenset(server for server, logged in found.items() if logged)
    return named or frozenset(usual) or frozenset(found)


# ---- repair ---------------------------------------------------------------------------------


class _Repair:
    """What has to be changed in a capture; ``other`` is that of the other end."""

    def __init__(self, capture: _Capture, other: _Capture) -> None:
        self.capture, self._other = capture, other
        self.unsplit = 0
        self.done = list[str]()
        """Notes on what was done when the records were made."""
        counts = [count for each in capture.by_direction.values() for count in each.values()]
        self._copied = sum(counts) - len(counts) > COPIED * len(counts)
        self._split = any(self._splittable(from_server) for from_server in (False, True))
        self._dropped = {ends for ends in capture.pairs if ends not in capture.flows and _usual(*ends) is not None}
        self._moved = {ends for ends, server in capture.flows.items() if _usual(*ends) is not server}
        self._clock = capture.clocks.most_common(1)[0][0] if capture.clocks else ""
        self._wrong = capture.records - capture.clocks[self._clock]
        self._shift = EARLIEST * NANOSECONDS - capture.first if self._clock == WRONG else 0
        changes = (self._copied, self._split, self._dropped, self._moved, self._wrong, self._shift, capture.late)
        self.needed = bool(capture.flows) and any(changes)

    def _splittable(self, from_server: bool) -> bool:
        """Whether records may hold several datagrams: larger than those of Ethernet, or unknown at the other end."""
        here, there = self.capture.by_direction[from_server], self._other.by_direction[from_server]
        unknown = sum(count for known, count in here.items() if known not in there)
        return any(size > MOST_PAYLOAD for _, size in here) or bool(there and unknown > UNMATCHED * here.total())

    @property
    def notes(self) -> list[str]:
        """What differs from a plain capture, in sentences."""
        notes, whose, capture = list[str](), f"the {self.capture.role}'s trace", self.capture
        if not self.needed:
            return notes
        if capture.late:
            late = _records(capture.late, whose)
            notes.append(f"All records were sorted by time: {late} came after a newer one.")
        if self._wrong:
            notes.append(f"{_records(self._wrong, whose)} with an impossible time: left out.")
        if self._shift:
            notes.append(f"The clock of {whose} was wrong: its first record is not of the years 2000 to 2099.")
        if self._copied:
            notes.append(
                f"{whose.capitalize()} has its packets several times, of several interfaces; copies were left out."
            )
        servers = sorted({ends[0][1] if server else ends[1][1] for ends, server in capture.flows.items()} - {QUIC_PORT})
        if servers and self._moved:
            notes.append(f"The server in {whose} has port {', '.join(map(str, servers))}.")
        if self._dropped:
            notes.append(f"{whose.capitalize()} has other traffic of port {QUIC_PORT}, which was left out.")
        return notes

    def records(self) -> list[PacketRecord]:
        """The IP packets of the capture, repaired; others become empty records, so that frames keep their numbers."""
        made, seen, split = list[PacketRecord](), set[tuple[bool, int]](), 0
        for record in self._plausible():
            found = _datagram(record)
            from_server = None if found is None else self.capture.flows.get((found.source, found.target))
            if found is None or from_server is None:
                made.append(record._replace(length=0, data=b""))
                continue
            mark = from_server, digest(found.payload)
            if self._copied and mark in seen:
                continue
            seen.add(mark)
            pieces = self._pieces(found, from_server) if self._split else None
            split += pieces is not None
            self.unsplit += pieces is None and found.size > MOST_PAYLOAD
            made += [self._made(record, found, from_server, piece) for piece in pieces or (None,)]
        self._say(split)
        return sorted(made, key=lambda record: record.time) if self.capture.late else made

    def _plausible(self) -> Iterator[PacketRecord]:
        with suppress(DamagedTraceError):
            for record in unsorted_records(self.capture.path):
                if _clock(record.time) == self._clock:
                    yield record._replace(time=max(record.time + self._shift, 0))

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
        there = self._other.by_direction[from_server]
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
        for from_server, counts in self._other.by_direction.items():
            frequent = Counter[int]()
            for (_, size), count in counts.items():
                frequent[size] += count if 0 < size <= MOST_PAYLOAD else 0
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
