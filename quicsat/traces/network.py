"""Finds the UDP packets and TCP segments in the records of a trace."""

from __future__ import annotations

import struct
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple

from quicsat.model.flow import MOST_FLOWS
from quicsat.traces.columns import direction
from quicsat.traces.records import PacketRecord

ETHERNET, RAW_IP, PPP = 1, 101, 9
ETHERTYPES = {b"\x08\x00": 4, b"\x86\xdd": 6}
PPP_PROTOCOLS = {b"\x00\x21": 4, b"\x00\x57": 6}
"""Version of IP."""
PPP_HDLC = b"\xff\x03"
"""Address and control bytes that may stand before the protocol (RFC 1662, section 3.1)."""
TYPE_AND_HEADER = {ETHERNET: (12, 14), 113: (14, 16), 276: (0, 20)}
"""Where the EtherType stands, and how long the header is, of Ethernet and Linux cooked captures (LINKTYPE_LINUX_SLL and
LINKTYPE_LINUX_SLL2)."""
BEFORE_IP = {0: 4, 108: 4, 50: 4, 12: 0, 14: 0, 228: 0, 229: 0}
"""Bytes before IP of loopback (LINKTYPE_NULL, _LOOP), PPP in HDLC framing, and the other codes of raw IP."""
LINK_TYPES = frozenset({PPP, RAW_IP, *TYPE_AND_HEADER, *BEFORE_IP})
"""Those that are read, by their numbers in capture files."""
VLAN_TAGS = (b"\x81\x00", b"\x88\xa8", b"\x91\x00")
"""EtherTypes of a tag of IEEE 802.1Q, and of the outer one of two."""
PPPOE = b"\x88\x64"
TCP, UDP = 6, 17
IPV6_EXTENSIONS = (0, 43, 60, 135)
"""Headers between that of IPv6 and the transport's: hop-by-hop, routing, destination options, mobility."""
IPV6_FRAGMENT = 44
_FLOWS = {
    f"{network}{99 + flow}": flow
    for network in ("193.167.100.", "fd00:cafe:cafe:100::")
    for flow in range(2, MOST_FLOWS + 1)
}
"""Flow by the address of its server: a NAT can only change that of the client."""
_PORTS = struct.Struct(">HHH")


class Segment(NamedTuple):
    """A UDP packet or TCP segment between client and server."""

    from_server: bool
    path: str
    """``client address:port server address:port``."""
    ecn: int
    """The two bits of RFC 3168: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE."""
    protocol: int
    """``TCP`` or ``UDP``."""
    header: bytes
    """Of TCP; empty for UDP."""
    payload: bytes
    size: int
    """Bytes of payload on the wire; more than ``payload`` has if the record was cut."""
    flow: int = 1
    """Counted from 1; further flows of a run have their own addresses."""


class IpPacket(NamedTuple):
    """An IP packet; offsets count from the first byte of the record."""

    start: int
    header: int
    """Where the header of TCP, UDP … begins."""
    end: int
    """By the length in the header, which may lie beyond the record if this was cut."""
    protocol: int
    """The next one, for example ``TCP`` or ``UDP``."""
    ends: bytes
    """Source and destination address."""
    ecn: int
    fragment: bool


def segment(record: PacketRecord) -> Segment | None:
    """What a record holds; None for other protocols, fragments, other hosts and headers that are cut."""
    found = ip_packet(record)
    if found is None or found.fragment:
        return None
    data, protocol, header, end = record.data, found.protocol, found.header, found.end
    if protocol == UDP and len(data) >= header + 8:
        source_port, target_port, length = _PORTS.unpack_from(data, header)
        first, end = header + 8, header + max(length, 8)
    elif protocol == TCP and len(data) >= header + 20:
        source_port, target_port, _ = _PORTS.unpack_from(data, header)
        first = header + max(data[header + 12] >> 4, 5) * 4
    else:
        return None
    known = _end(found.ends, source_port, target_port)
    if known is None or end < first:
        return None
    head = data[header:first] if protocol == TCP else b""
    return Segment(known[0], known[1], found.ecn, protocol, head, data[first:end], end - first, known[2])


def ip_packet(record: PacketRecord) -> IpPacket | None:
    """The IP packet in a record; None if there is none, or if its header is cut."""
    version, start = _network_layer(record)
    data = record.data
    if version == 4 and len(data) >= start + 20:
        header = start + (data[start] & 0x0F) * 4
        fragment = int.from_bytes(data[start + 6 : start + 8], "big") & 0x3FFF > 0
        end = start + int.from_bytes(data[start + 2 : start + 4], "big")
        ecn, protocol = data[start + 1] & 3, data[start + 9]
        return IpPacket(start, header, end, protocol, data[start + 12 : start + 20], ecn, fragment)
    if version == 6 and len(data) >= start + 40:
        end = start + 40 + int.from_bytes(data[start + 4 : start + 6], "big")
        protocol, header, fragment = _after_ipv6(data, start)
        return IpPacket(start, header, end, protocol, data[start + 8 : start + 40], data[start + 1] >> 4 & 3, fragment)
    return None


def _after_ipv6(data: bytes, start: int) -> tuple[int, int, bool]:
    """Protocol above IPv6, where its header begins, and whether the packet is a fragment (RFC 8200, section 4)."""
    protocol, header, fragment = data[start + 6], start + 40, False
    while len(data) >= header + 8 and protocol in (*IPV6_EXTENSIONS, IPV6_FRAGMENT):
        if protocol == IPV6_FRAGMENT:
            fragment = fragment or int.from_bytes(data[header + 2 : header + 4], "big") & 0xFFF9 > 0
        size = 8 if protocol == IPV6_FRAGMENT else 8 + data[header + 1] * 8
        protocol, header = data[header], header + size
    return protocol, header, fragment


def ip_size(record: PacketRecord) -> tuple[bytes, int]:
    """Source address and bytes of an IP packet, from its headers; an empty address and 0 if it is none."""
    found = ip_packet(record)
    return (found.ends[: len(found.ends) // 2], found.end - found.start) if found else (b"", 0)


def _network_layer(record: PacketRecord) -> tuple[int, int]:
    """IP version, 0 if there is none, and where its header begins."""
    data = record.data
    if record.link_type in TYPE_AND_HEADER:
        at, start = TYPE_AND_HEADER[record.link_type]
        kind = data[at : at + 2]
        while kind in VLAN_TAGS:
            kind, start = data[start + 2 : start + 4], start + 4
        if kind == PPPOE:  # six bytes, and PPP's own two (RFC 2516, section 4)
            return PPP_PROTOCOLS.get(data[start + 6 : start + 8], 0), start + 8
        return ETHERTYPES.get(kind, 0), start
    if record.link_type == PPP and len(data) > 2:
        start = 4 if data.startswith(PPP_HDLC) else 2
        return PPP_PROTOCOLS.get(data[start - 2 : start], 0), start
    if record.link_type == RAW_IP and data:
        return data[0] >> 4, 0
    start = BEFORE_IP.get(record.link_type, len(data))
    return data[start] >> 4 if start < len(data) else 0, start


def digest(payload: bytes) -> int:
    """Fingerprint of a payload, of 64 bits; SipHash with a secret of this process, so it means nothing elsewhere."""
    return hash(payload) & 0xFFFFFFFFFFFFFFFF


@lru_cache(maxsize=4096)
def _end(ends: bytes, source_port: int, target_port: int) -> tuple[bool, str, int] | None:
    """Direction, path and flow; None if it is no packet between client and server."""
    half = len(ends) // 2
    source, target = str(ip_address(ends[:half])), str(ip_address(ends[half:]))
    from_server = direction(source, source_port, target, target_port)
    if from_server is None:
        return None
    names = [f"{source}:{source_port}", f"{target}:{target_port}"]
    flow = _FLOWS.get(source if from_server else target, 1)
    return from_server, " ".join(reversed(names) if from_server else names), flow
