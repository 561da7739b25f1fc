"""Finds the UDP packets and TCP segments in the records of a trace."""

from __future__ import annotations

import struct
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple

from interop.model.flow import MOST_FLOWS
from interop.traces.columns import direction
from interop.traces.records import PacketRecord

ETHERNET, RAW_IP, PPP = 1, 101, 9
ETHERTYPES = {0x0800: 4, 0x86DD: 6}
PPP_PROTOCOLS = {0x0021: 4, 0x0057: 6}
TCP, UDP = 6, 17
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


def segment(record: PacketRecord) -> Segment | None:
    """What a record holds; None for other protocols, fragments, other hosts and headers that are cut.

    IPv6 extension headers are not followed: neither the links nor the endpoints add any.
    """
    version, start = _network_layer(record)
    data = record.data
    if version == 4 and len(data) >= start + 20:
        header = start + (data[start] & 0x0F) * 4
        if int.from_bytes(data[start + 6 : start + 8], "big") & 0x3FFF:
            return None
        protocol, ecn = data[start + 9], data[start + 1] & 3
        ends, length = data[start + 12 : start + 20], int.from_bytes(data[start + 2 : start + 4], "big")
        end = start + length
    elif version == 6 and len(data) >= start + 40:
        header = start + 40
        protocol, ecn = data[start + 6], data[start + 1] >> 4 & 3
        ends, end = data[start + 8 : start + 40], header + int.from_bytes(data[start + 4 : start + 6], "big")
    else:
        return None
    if protocol == UDP and len(data) >= header + 8:
        source_port, target_port, length = _PORTS.unpack_from(data, header)
        first, end = header + 8, header + max(length, 8)
    elif protocol == TCP and len(data) >= header + 20:
        source_port, target_port, _ = _PORTS.unpack_from(data, header)
        first = header + max(data[header + 12] >> 4, 5) * 4
    else:
        return None
    known = _end(ends, source_port, target_port)
    if known is None or end < first:
        return None
    head = data[header:first] if protocol == TCP else b""
    return Segment(known[0], known[1], ecn, protocol, head, data[first:end], end - first, known[2])


def ip_size(record: PacketRecord) -> tuple[bytes, int]:
    """Source address and bytes of an IP packet, from its headers; an empty address and 0 if it is none."""
    version, start = _network_layer(record)
    data = record.data
    if version == 4 and len(data) >= start + 20:
        return data[start + 12 : start + 16], int.from_bytes(data[start + 2 : start + 4], "big")
    if version == 6 and len(data) >= start + 40:
        return data[start + 8 : start + 24], 40 + int.from_bytes(data[start + 4 : start + 6], "big")
    return b"", 0


def _network_layer(record: PacketRecord) -> tuple[int, int]:
    """IP version, 0 if there is none, and where its header begins."""
    data = record.data
    if record.link_type == ETHERNET and len(data) > 14:
        return ETHERTYPES.get(int.from_bytes(data[12:14], "big"), 0), 14
    if record.link_type == PPP and len(data) > 2:
        return PPP_PROTOCOLS.get(int.from_bytes(data[0:2], "big"), 0), 2
    if record.link_type == RAW_IP and data:
        return data[0] >> 4, 0
    return 0, 0


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
