"""Says whether a trace file is whole, and which UDP packets it holds.

tshark ends with status 0 on most damaged files and shows a part of them, so a trace is looked at here first.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

import numpy as np

from interop.columns import Datagrams, direction
from interop.records import NANOSECONDS, BrokenError, Condition, Record, records

ETHERNET, RAW_IP, PPP = 1, 101, 9
ETHERTYPES = {0x0800: 4, 0x86DD: 6}
PPP_PROTOCOLS = {0x0021: 4, 0x0057: 6}
UDP = 17


@dataclass(frozen=True, eq=False)
class TraceState:
    """The structure of a trace file."""

    condition: Condition
    packets: int
    """Good records up to the end, or up to the fault."""
    datagrams: Datagrams
    """The UDP packets between client and server among them."""
    reason: str = ""
    """One sentence; empty if the file is whole."""
    cut: int = 0
    """Records that hold less than the packet had, because of the snap length."""
    duration: float = 0.0
    """Seconds from the first to the last good record."""


def check(path: Path) -> TraceState:
    """Walk the whole file and say whether it is a complete trace; no exception leaves this function."""
    packets = cut = first = last = 0
    condition, reason = Condition.OK, ""
    table = _Table()
    try:
        for record in records(path):
            first = first or record.time
            last = record.time
            packets += 1
            cut += record.length > len(record.data)
            table.add(record)
    except BrokenError as broken:
        condition, reason = broken.condition, broken.reason
    if condition is Condition.OK and not packets:
        condition, reason = Condition.EMPTY, f"{path.name} holds no packet."
    return TraceState(condition, packets, table.datagrams(), reason, cut, (last - first) / NANOSECONDS)


class _Table:
    """UDP packets between client and server, as they are found."""

    def __init__(self) -> None:
        self._times, self._server, self._sizes, self._digests = array("q"), array("b"), array("q"), array("Q")

    def add(self, record: Record) -> None:
        packet = _udp(record)
        if packet is not None:
            self._times.append(record.time)
            self._server.append(packet.from_server)
            self._sizes.append(packet.size)
            self._digests.append(packet.digest)

    def datagrams(self) -> Datagrams:
        epoch = self._times[0] // NANOSECONDS if self._times else 0
        return Datagrams(
            epoch=epoch,
            time=(np.array(self._times, dtype=np.int64) - epoch * NANOSECONDS) / NANOSECONDS,
            from_server=np.array(self._server, dtype=np.bool_),
            size=np.array(self._sizes, dtype=np.int64),
            digest=np.array(self._digests, dtype=np.uint64),
        )


# ---- packets --------------------------------------------------------------------------------


class _Udp(NamedTuple):
    from_server: bool
    size: int
    digest: int


def _udp(record: Record) -> _Udp | None:
    """The UDP packet in a record; None for anything else: other protocols, fragments, other hosts, cut headers."""
    version, start = _network_layer(record)
    data = record.data
    if version == 4 and len(data) >= start + 20:
        header = start + (data[start] & 0x0F) * 4
        if data[start + 9] != UDP or struct.unpack_from(">H", data, start + 6)[0] & 0x3FFF:
            return None
        source, target = data[start + 12 : start + 16], data[start + 16 : start + 20]
    elif version == 6 and len(data) >= start + 40:
        header = start + 40
        if data[start + 6] != UDP:
            return None
        source, target = data[start + 8 : start + 24], data[start + 24 : start + 40]
    else:
        return None
    if len(data) < header + 8:
        return None
    source_port, target_port, length = struct.unpack_from(">HHH", data, header)
    from_server = direction(_text(source), source_port, _text(target), target_port)
    if from_server is None:
        return None
    payload = data[header + 8 : header + max(length, 8)]
    digest = int.from_bytes(blake2b(payload, digest_size=8).digest(), "little")
    return _Udp(from_server, max(length - 8, 0), digest)


def _network_layer(record: Record) -> tuple[int, int]:
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
def _text(address: bytes) -> str:
    return str(ip_address(address))
