"""What a capture of any tool holds: its flows, its clock, its damage, and what of it is not understood."""

from __future__ import annotations

import struct
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import ip_address
from itertools import pairwise
from math import gcd
from pathlib import Path
from typing import NamedTuple

import numpy as np

from quicsat.model.errors import HarnessFault, MachineError
from quicsat.model.implementation import Role
from quicsat.model.stored_files import has_content, is_file, open_file
from quicsat.model.text import counted, escaped
from quicsat.traces.columns import QUIC_PORT, Form, Trace, direction
from quicsat.traces.key_log import secrets
from quicsat.traces.network import LINK_TYPES, TCP, UDP, IpPacket, Segment, digest, ip_packet
from quicsat.traces.packets import Dissector
from quicsat.traces.protection import SALTS
from quicsat.traces.records import (
    BACKWARD_LIMIT,
    CLIENT_TRACE,
    NANOSECONDS,
    SERVER_TRACE,
    DamagedTraceError,
    PacketRecord,
    dated,
    simulated,
    unsorted_records,
)
from quicsat.traces.tshark import editcap

ORIGIN, LONGEST_ORIGIN = ".origin", 2000
"""Suffix of a file beside a copied capture, and its bytes that are read, see :func:`note_origin`."""
TRACES = {Role.CLIENT: CLIENT_TRACE, Role.SERVER: SERVER_TRACE}
HELLOS = 8
"""Packets with a long header in each direction between two ports that are looked into."""
PROTOCOLS = {TCP: "TCP", 1: "ICMP", 4: "IP in IP", 41: "IPv6 in IP", 47: "GRE", 50: "ESP", 58: "ICMPv6", 132: "SCTP"}
ETHERTYPES = {0x0806: "ARP", 0x8847: "MPLS", 0x8848: "MPLS", 0x88E5: "MACsec", 0x8863: "PPPoE discovery"}
TUNNELS = {4789: "VXLAN", 6081: "Geneve", 2152: "GTP-U", 51820: "WireGuard"}
"""By their UDP ports."""
FRAGMENTS, CUT_HEADERS = "IP fragments", "headers that are cut"
HIDING = frozenset({"IP in IP", "IPv6 in IP", "GRE", "ESP", "MPLS", "MACsec", FRAGMENTS, CUT_HEADERS})
"""Kinds of records that are not read, and may hold packets of the run."""
MOST_KINDS = 5
"""Kinds of packets that a note names."""
FEW = 8
"""Packets up to which their times may be regular by chance."""
LONGEST_SILENCE = 60
"""Seconds without a packet above which the clock may have been set."""
LEAST_STEPS = 20
"""Multiples of its resolution that a capture has to last for its times to be of use."""
COARSE = 1_000_000
"""Nanoseconds from which on a resolution of times is named."""

SIMULATION, SINCE_1970, WRONG = "simulation", "1970", "wrong"
"""Where times count from."""
End = tuple[bytes, int]
"""Address and port."""
Mark = tuple[int, int]
"""Digest and size of a datagram."""


class Datagram(NamedTuple):
    """A UDP packet in a record."""

    ip: IpPacket
    source: End
    target: End
    payload: bytes
    size: int
    """Bytes of payload on the wire."""


def datagram(record: PacketRecord) -> Datagram | None:
    """The UDP packet in a record; None if there is none, or if its header is cut."""
    ip = ip_packet(record)
    if ip is None or ip.fragment or ip.protocol != UDP or len(record.data) < ip.header + 8:
        return None
    ports = struct.unpack_from(">HHH", record.data, ip.header)
    half, first = len(ip.ends) // 2, ip.header + 8
    size = max(ports[2], 8) - 8
    source, target = (ip.ends[:half], ports[0]), (ip.ends[half:], ports[1])
    return Datagram(ip, source, target, record.data[first : first + size], size)


def usual(source: End, target: End) -> bool | None:
    """Whether it comes from the server by the addresses and the port that we expect; None if it is of neither."""
    return direction(str(ip_address(source[0])), source[1], str(ip_address(target[0])), target[1])


def clock_of(time: int) -> str:
    """Where a time in nanoseconds counts from."""
    return SIMULATION if simulated(time) else SINCE_1970 if dated(time) else WRONG


def _kind(record: PacketRecord) -> str:
    """What a record holds that is no UDP packet."""
    if record.link_type not in LINK_TYPES:
        return f"link type {record.link_type}"
    ip = ip_packet(record)
    if ip is None:
        number = int.from_bytes(record.data[12:14], "big") if record.link_type == 1 else 0
        return ETHERTYPES.get(number) or (CUT_HEADERS if len(record.data) < min(record.length, 54) else "not IP")
    if ip.fragment:
        return FRAGMENTS
    return CUT_HEADERS if ip.protocol == UDP else PROTOCOLS.get(ip.protocol, f"IP protocol {ip.protocol}")


def note_origin(copy: Path, name: str, damage: str = "") -> None:
    """Note the name of the file that a capture was copied from, and its damage if the copy does not show it."""
    copy.with_suffix(ORIGIN).write_text(f"{escaped(name)}\n{damage}", encoding="utf-8")


def _origin(path: Path) -> tuple[str, str]:
    """What :func:`note_origin` noted of a capture; empty if it is no copy."""
    with suppress(OSError), open_file(path.with_suffix(ORIGIN)) as file:
        name, _, damage = file.read(LONGEST_ORIGIN).decode(errors="replace").partition("\n")
        return escaped(name), escaped(damage)
    return "", ""


@dataclass
class Capture:
    """What a capture holds, without the packets themselves."""

    role: Role
    path: Path
    records: int = 0
    late: int = 0
    """Records that are older than one before them."""
    clocks: Counter[str] = field(default_factory=Counter)
    """Records by the kind of their time, see ``clock_of``."""
    first: int = 0
    oldest: int = 0
    newest: int = 0
    """Times of the first record in the file, and of the first and last in time."""
    set_back: bool = False
    """Records are older than those before them because the clock was set back, not because they are out of order."""
    parts: int = 1
    """Files that the capture consists of, the first of which is read."""
    damage: str = ""
    kinds: Counter[str] = field(default_factory=Counter)
    """Records that are no UDP packets."""
    cut: int = 0
    """UDP packets that are not there as a whole (snap length)."""
    pairs: dict[tuple[End, End], int] = field(default_factory=dict)
    pair: array[int] = field(default_factory=lambda: array("q"))
    size: array[int] = field(default_factory=lambda: array("q"))
    digest: array[int] = field(default_factory=lambda: array("Q"))
    time: array[int] = field(default_factory=lambda: array("q"))
    """Of each UDP packet."""
    hellos: dict[tuple[End, End], list[Segment]] = field(default_factory=dict)
    """The first packets with long headers."""
    flows: dict[tuple[End, End], bool] = field(default_factory=dict)
    """Pairs of ends of the run, and whether they are packets from the server."""
    strangers: frozenset[int] = frozenset()
    """Numbers, from 1, of records of these flows that are of no connection of the run."""

    @classmethod
    def read(cls, role: Role, source: Path, place: Path) -> Capture:
        """Walk the file; formats that we do not read are converted into a file in ``place``."""
        found = cls(role, source)._walked()
        if found.damage and found.records:
            found.damage = _origin(source)[1] or found.damage
        if found.damage and not found.records and is_file(source):
            converted = place / f"{role}.pcapng"
            with suppress(HarnessFault, MachineError):
                damage = editcap(source, converted) if has_content(source) else ""
                other = cls(role, converted)._walked()
                other.damage = damage or other.damage
                return other if other.records else found
        return found

    def _walked(self) -> Capture:
        try:
            for record in unsorted_records(self.path, name=_origin(self.path)[0]):
                self.records += 1
                self.late += record.time < self.newest - BACKWARD_LIMIT
                self.newest = max(self.newest, record.time)
                self.clocks[clock_of(record.time)] += 1
                self.first = record.time if self.records == 1 else self.first
                self.oldest = min(self.oldest, record.time) if self.records > 1 else record.time
                found = datagram(record)
                if found is None:
                    self.kinds[_kind(record)] += 1
                else:
                    self._add(record.time, found)
        except DamagedTraceError as broken:
            self.damage = broken.reason
        return self

    def _add(self, time: int, found: Datagram) -> None:
        ends = found.source, found.target
        self.pair.append(self.pairs.setdefault(ends, len(self.pairs)))
        self.size.append(found.size)
        self.digest.append(digest(found.payload))
        self.time.append(time)
        self.cut += len(found.payload) < found.size
        if found.payload and found.payload[0] & 0x80:
            hellos = self.hellos.setdefault(ends, [])
            if len(hellos) < HELLOS:
                hellos.append(Segment(False, str(ends), 0, UDP, b"", found.payload, found.size))

    def judge(self, servers: Collection[End], keys: Sequence[str]) -> None:
        """Find the flows of the run, with what is known of its servers, and what in them is not of the run."""
        for source, target in self.pairs:
            by_port = usual(source, target)
            if source in servers or target in servers:
                self.flows[source, target] = source in servers
            elif by_port is not None and not (servers and _at_port(source, target)):
                self.flows[source, target] = by_port
        if self._strangers(keys, quick=True):
            self.strangers = self._strangers(keys)
        if self.strangers and self.late:
            self.set_back = True
            in_file = self._strangers(keys)
            self.set_back = len(in_file) < len(self.strangers)
            self.strangers = in_file if self.set_back else self.strangers

    # ---- connections ------------------------------------------------------------------------

    def _strangers(self, keys: Sequence[str], *, quick: bool = False) -> frozenset[int]:
        """Records of the flows that are of no connection of the run, or of an unknown one and open with no key.

        ``quick``: without opening 1-RTT packets, so that some which use a new connection id are among them.
        """
        trace = self._dissected(() if quick else keys)
        rows = np.flatnonzero(trace.size > 0)
        own = _own_connections(trace, keys)
        if not own or not len(rows):
            return frozenset()
        mine = np.isin(trace.connection, [*own])
        opened, protected = mine & trace.decrypted, trace.form == Form.ONE_RTT
        known, readable = np.zeros(len(trace), dtype=np.bool_), np.zeros(len(trace), dtype=np.bool_)
        for side in (False, True):
            there = trace.from_server == side
            ids = np.union1d(trace.dcid[opened & there], trace.scid[opened & ~there & ~protected])
            known |= there & np.isin(trace.dcid, ids)
            answered = bool((opened & ~there).any())  # only then the length of connection ids is known
            readable |= there & answered & (quick or bool((opened & there & protected).any()))
        readable &= not (self.cut or self.unread)
        early = np.isin(trace.form, (Form.VERSION_NEGOTIATION, Form.ZERO_RTT)) | ~np.isin(trace.version, [-1, *SALTS])
        kept = np.where(
            trace.connection < 0,
            (early & np.isin(trace.path, trace.path[mine])) | (known & (trace.dcid > 0)),
            mine & (known | trace.decrypted | ~protected | ~readable),
        )
        return frozenset(trace.frame[rows[~kept[rows]]].tolist())

    def _dissected(self, keys: Sequence[str]) -> Trace:
        """The packets of the flows; frames are numbers of records."""
        dissector = Dissector(secrets(keys))
        segments = self._segments()
        for time, number, segment in sorted(segments, key=lambda each: each[0]) if self.sorted else segments:
            dissector.add(time, number, segment)
        return dissector.trace()

    @property
    def sorted(self) -> bool:
        """Whether the records have to be sorted by time."""
        return bool(self.late) and not self.set_back

    def packets(self) -> Iterator[tuple[PacketRecord, Datagram | None, bool | None]]:
        """All records up to a fault, with the datagram in each; of those of the flows, whether the server sent it."""
        with suppress(DamagedTraceError):
            for record in unsorted_records(self.path):
                found = datagram(record)
                yield record, found, None if found is None else self.flows.get((found.source, found.target))

    def _segments(self) -> Iterator[tuple[int, int, Segment]]:
        for number, (record, found, from_server) in enumerate(self.packets(), 1):
            if found is not None and from_server is not None:
                ends = (found.target, found.source) if from_server else (found.source, found.target)
                yield record.time, number, Segment(from_server, str(ends), 0, UDP, b"", found.payload, found.size)

    @cached_property
    def seen(self) -> dict[bool, dict[Mark, list[int]]]:
        """When each datagram of the flows was seen, by direction, in the order of the file."""
        times: dict[bool, dict[Mark, list[int]]] = {False: {}, True: {}}
        ends = list(self.pairs)
        for pair, mark, time in zip(self.pair, zip(self.digest, self.size, strict=True), self.time, strict=True):
            from_server = self.flows.get(ends[pair])
            if from_server is not None:
                times[from_server].setdefault(mark, []).append(time)
        return times

    def id_size(self, *, from_server: bool) -> int:
        """Bytes of the destination connection ids of a direction, which the other one's long headers show."""
        sizes = Counter[int]()
        for ends, hellos in self.hellos.items():
            if self.flows.get(ends) is (not from_server):
                for hello in hellos:
                    at = 6 + hello.payload[5] if len(hello.payload) > 5 else 0
                    sizes[hello.payload[at] if 0 < at < len(hello.payload) else 0] += 1
        return sizes.most_common(1)[0][0] if sizes else 0

    # ---- times ------------------------------------------------------------------------------

    @cached_property
    def _times(self) -> list[int]:
        return sorted(time for marks in self.seen.values() for times in marks.values() for time in times)

    @cached_property
    def _steps(self) -> set[int]:
        return {later - former for former, later in pairwise(self._times)}

    @cached_property
    def timeless(self) -> str:
        """Why the times say nothing of when packets were sent; empty if they do."""
        count = len(self._times)
        if count > 2 and self._steps == {0}:
            return f"All packets of the {self.role}'s trace have the same time"
        step = gcd(*self._steps)
        if self.set_back:
            return f"The clock of the {self.role}'s trace was set back"
        if count > FEW and self.newest - self.oldest == (self.records - 1) * step:
            return f"Each record of the {self.role}'s trace is {step / NANOSECONDS:g} s after the last one"
        if count > 2 and (step >= NANOSECONDS or step * LEAST_STEPS > self.newest - self.oldest):
            return f"All times in the {self.role}'s trace are multiples of {step / NANOSECONDS:g} s"
        return ""

    @property
    def resolution(self) -> float:
        """Seconds between two times at least, if that is so much that it blurs the results; else 0."""
        unit = gcd(*self._steps)
        return unit / NANOSECONDS if unit >= COARSE and len(self.time) > FEW and not self.timeless else 0.0

    # ---- notes ------------------------------------------------------------------------------

    @cached_property
    def unread(self) -> Counter[str]:
        """Records beside the flows that are not read, and may hold packets of the run."""
        kinds = self._beside()
        hiding = (kind for kind in kinds if kind in HIDING or kind in TUNNELS.values() or kind.startswith("link type"))
        return Counter({kind: kinds[kind] for kind in hiding})

    def notes(self) -> list[str]:
        """What is not understood, and what is damaged."""
        notes, whose = list[str](), f"The {self.role}'s trace"
        if self.damage and self.records:
            notes.append(f"{whose} is damaged: {self.damage} Before that, {self.records} are complete, and are used.")
        if self.parts > 1:
            parts = f"{self.parts} files, of which only {self.path.name} is read"
            notes.append(f"{whose} consists of {parts}: join them with mergecap -w {TRACES[self.role]} FILE...")
        if self.flows and self.unread:
            named = ", ".join(f"{count} of {kind}" for kind, count in self.unread.most_common(MOST_KINDS))
            notes.append(f"{whose} has records that are not read, so packets may be missing: {named}.")
        if self.records and not self.flows:
            kinds = self._beside()
            named = ", ".join(f"{count} of {kind}" for kind, count in kinds.most_common(MOST_KINDS))
            content = f"It holds {counted(self.records, 'record')}: {named}."
            notes.append(f"{whose} has no packet from or to port {QUIC_PORT}. {content}")
        if self.flows and self.timeless:
            notes.append(f"{self.timeless}: its times cannot be used.")
        elif self._steps and max(self._steps) > LONGEST_SILENCE * NANOSECONDS:
            gap = max(self._steps) / NANOSECONDS
            notes.append(f"{whose} has no packet for {gap:.0f} s, or its clock was set then.")
        elif self.resolution:
            notes.append(f"The times in the {self.role}'s trace are multiples of {self.resolution:g} s.")
        return notes

    def _beside(self) -> Counter[str]:
        """Records that are of no flow of the run, by what they hold."""
        kinds, ends = Counter(self.kinds), list(self.pairs)
        for pair in self.pair:
            if ends[pair] not in self.flows:
                ports = ends[pair][0][1], ends[pair][1][1]
                tunnel = next((name for port, name in TUNNELS.items() if port in ports), None)
                kinds[tunnel or f"UDP port {min(ports)}"] += 1
        return kinds


def _at_port(source: End, target: End) -> bool:
    """Whether the port alone says who is the server, since the addresses are none that we expect."""
    return usual((source[0], 0), (target[0], QUIC_PORT)) is usual((target[0], 0), (source[0], QUIC_PORT))


def _own_connections(trace: Trace, keys: Sequence[str]) -> set[int]:
    """Connections of the run: those that key logs name, without such those that were answered, else all.

    A client begins another one after Version Negotiation.
    """
    randoms = secrets(keys).keys()
    logged = {at for at, each in enumerate(trace.connections) if bytes.fromhex(each.random) in randoms}
    answered = {*trace.connection[trace.from_server].tolist()} - {-1}
    negotiating = {*trace.connection[trace.form == Form.VERSION_NEGOTIATION].tolist()} - {-1}
    own = logged or answered or {*range(len(trace.connections))}
    return own | negotiating if own else own


def find_servers(captures: Collection[Capture], keys: Sequence[str]) -> frozenset[End]:
    """Whom a client of the run sends an Initial, which only those can be read with the keys of its destination.

    If key logs name some of the connections, only theirs; else those at the usual addresses or port, if there are any.
    """
    randoms = secrets(keys).keys()
    found: dict[End, bool] = {}
    usuals = set[End]()
    for capture in captures:
        for (source, target), hellos in capture.hellos.items():
            dissector = Dissector({})
            for number, hello in enumerate(hellos, 1):
                dissector.add(0, number, hello)
            for connection in dissector.trace().connections:
                found[target] = found.get(target, False) or bytes.fromhex(connection.random) in randoms
                if usual(source, target) is False:
                    usuals.add(target)
    named = frozenset(server for server, logged in found.items() if logged)
    return named or frozenset(usuals) or frozenset(found)
