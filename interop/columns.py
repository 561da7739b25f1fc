"""What a trace says, as frozen columns of numbers, and which end of a packet is the server.

All columns of one table have the same length. Times are seconds since the table's ``epoch``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from ipaddress import ip_address

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

QUIC_PORT = 443

CLIENT_ADDRESSES = frozenset(map(ip_address, ("193.167.0.100", "fd00:cafe:cafe::100")))
SERVER_ADDRESSES = frozenset(map(ip_address, ("193.167.100.100", "fd00:cafe:cafe:100::100")))
SIMULATOR_ADDRESSES = frozenset(
    map(ip_address, ("193.167.0.2", "193.167.100.2", "fd00:cafe:cafe::2", "fd00:cafe:cafe:100::2"))
)
"""Addresses of the endpoint contract of the QUIC Interop Runner; the simulator's own probes are no part of a run."""


class Form(IntEnum):
    """Kinds of QUIC packets (RFC 9000, section 17), whatever their code in their version."""

    INITIAL = 0
    ZERO_RTT = 1
    HANDSHAKE = 2
    RETRY = 3
    ONE_RTT = 4
    VERSION_NEGOTIATION = 5
    UNKNOWN = 6


@dataclass(frozen=True, eq=False)
class Datagrams:
    """The UDP packets to or from the server's port in one trace, in the order of capture."""

    epoch: int
    """Whole second at which the trace begins, since 1970."""
    time: Floats
    from_server: Flags
    size: Integers
    """Bytes of UDP payload."""
    digest: NDArray[np.uint64]
    """Fingerprint of the UDP payload: the same on both sides of a link, also behind address translation."""

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True, eq=False)
class StreamFrames:
    """All STREAM frames that could be decrypted, one row per frame."""

    packet: Integers
    """Row of the QUIC packet in its ``Trace``."""
    stream: Integers
    offset: Integers
    length: Integers
    fin: Flags

    def __len__(self) -> int:
        return len(self.packet)


@dataclass(frozen=True, eq=False)
class Trace:
    """The QUIC packets of one trace, one row per packet; coalesced packets have rows of their own."""

    epoch: int
    """Whole second at which the trace begins, since 1970."""
    time: Floats
    frame: Integers
    """Number of the captured frame, from 1; coalesced packets share it."""
    from_server: Flags
    path: Integers
    """Index into ``paths``."""
    size: Integers
    """Bytes of UDP payload, in the row of a datagram's first packet; 0 in the others, so that sums are right."""
    form: Integers
    """A ``Form``."""
    number: Integers
    """Packet number, -1 if there is none or it could not be decrypted."""
    version: Integers
    """QUIC version of a long header, -1 for a short one."""
    scid: Integers
    dcid: Integers
    """Index into ``connection_ids``; 0 is the empty one."""
    decrypted: Flags
    frames: StreamFrames
    paths: tuple[str, ...]
    """``client address:port server address:port``."""
    connection_ids: tuple[str, ...]
    """Hexadecimal; the first is empty."""

    def __len__(self) -> int:
        return len(self.time)

    def absolute(self, row: int) -> float:
        """Seconds since 1970 of a row; good to about a microsecond."""
        return self.epoch + float(self.time[row])


@lru_cache(maxsize=4096)
def direction(source: str, source_port: int, target: str, target_port: int) -> bool | None:
    """Whether a UDP packet comes from the server; None if it is no packet between client and server.

    Addresses decide where they are those of the contract, the server's port elsewhere (real links).

    >>> direction("fd00:cafe:cafe:100:0:0:0:100", 443, "fd00:cafe:cafe:0::100", 4433)
    True
    """
    if QUIC_PORT not in (source_port, target_port):
        return None
    ends = ip_address(source), ip_address(target)
    if any(end in SIMULATOR_ADDRESSES for end in ends):
        return None
    if ends[0] in SERVER_ADDRESSES or ends[1] in CLIENT_ADDRESSES:
        return True
    if ends[0] in CLIENT_ADDRESSES or ends[1] in SERVER_ADDRESSES:
        return False
    return source_port == QUIC_PORT
