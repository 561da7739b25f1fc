"""What a trace says, as frozen columns of numbers, and which end of a packet is the server.

All columns of one table have the same length. Times are seconds since the table's ``epoch``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Self, get_type_hints

import numpy as np

from quicsat.model.arrays import Digests, Flags, Floats, Integers

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
    STATELESS_RESET = 7
    """Ends with a reset token of the connection (section 10.3)."""


class Frame(IntEnum):
    """Types of QUIC frames that ``Signals`` hold.

    RFC 9000, section 19; RFC 9221; draft-ietf-quic-reliable-stream-reset, -ack-frequency; draft-huitema-quic-ts;
    draft-kuhn-quic-bdpframe-extension.
    """

    PING = 0x01
    RESET_STREAM = 0x04
    STOP_SENDING = 0x05
    NEW_TOKEN = 0x07
    MAX_DATA = 0x10
    MAX_STREAM_DATA = 0x11
    MAX_STREAMS_BIDI = 0x12
    MAX_STREAMS_UNI = 0x13
    DATA_BLOCKED = 0x14
    STREAM_DATA_BLOCKED = 0x15
    STREAMS_BLOCKED_BIDI = 0x16
    STREAMS_BLOCKED_UNI = 0x17
    NEW_CONNECTION_ID = 0x18
    RETIRE_CONNECTION_ID = 0x19
    PATH_CHALLENGE = 0x1A
    PATH_RESPONSE = 0x1B
    CLOSE = 0x1C
    CLOSE_APPLICATION = 0x1D
    HANDSHAKE_DONE = 0x1E
    IMMEDIATE_ACK = 0x1F
    RESET_STREAM_AT = 0x24
    DATAGRAM = 0x30
    DATAGRAM_SIZED = 0x31
    ACK_FREQUENCY = 0xAF
    TIME_STAMP = 0x02F5
    BDP = 0xEBD9


class Message(IntEnum):
    """Types of TLS messages (RFC 8446, section 4)."""

    CLIENT_HELLO = 1
    SERVER_HELLO = 2
    NEW_SESSION_TICKET = 4
    ENCRYPTED_EXTENSIONS = 8
    CERTIFICATE = 11
    CERTIFICATE_REQUEST = 13
    CERTIFICATE_VERIFY = 15
    FINISHED = 20


class ColumnTable:
    """Columns of equal length."""

    def __len__(self) -> int:
        return len(next(iter(self.__dict__.values())))

    def rows(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """The rows of some columns, as numbers of Python."""
        return zip(*(getattr(self, name).tolist() for name in names), strict=True)

    @classmethod
    def of(cls, **columns: Iterable[float]) -> Self:
        """A table from columns of any kind, or an empty one; raises ValueError if they differ in length or name."""
        kinds = column_types(cls)
        arrays = {name: np.asarray(list(columns.get(name, ())), dtype=kind) for name, kind in kinds.items()}
        if len({len(column) for column in arrays.values()}) > 1 or columns.keys() - kinds.keys():
            raise ValueError(f"{cls.__name__} needs {', '.join(kinds)}, of one length")
        return cls(**arrays)


def column_types(table: type[ColumnTable]) -> dict[str, Any]:
    """The numpy type of each column of a table."""
    known = {Floats: np.float64, Integers: np.int64, Flags: np.bool_, Digests: np.uint64}
    hints = get_type_hints(table)
    return {each.name: known[hints[each.name]] for each in fields(table)}  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Datagrams:
    """The UDP packets (TCP: segments) to or from the server's port in one trace, in the order of capture."""

    epoch: int
    """Whole second at which the trace begins, since 1970 or since the start of a simulation."""
    time: Floats
    from_server: Flags
    size: Integers
    """Bytes of UDP payload; TCP: of header and payload."""
    digest: Digests
    """Fingerprint of the UDP payload: the same on both sides of a link, also behind address translation."""

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True, eq=False)
class StreamFrames(ColumnTable):
    """All STREAM frames that could be decrypted, one row per frame."""

    packet: Integers
    """Row of the QUIC packet in its ``Trace``; so in all tables of frames."""
    stream: Integers
    offset: Integers
    length: Integers
    fin: Flags


@dataclass(frozen=True, eq=False)
class CryptoFrames(ColumnTable):
    """All CRYPTO frames that could be decrypted."""

    packet: Integers
    offset: Integers
    length: Integers


@dataclass(frozen=True, eq=False)
class AckFrames(ColumnTable):
    """All ACK frames that could be decrypted."""

    packet: Integers
    largest: Integers
    delay: Integers
    """As it is on the wire, not yet multiplied by the sender's ack_delay_exponent."""
    ranges: Integers
    """How many ranges it has; the first is row ``start`` of ``AckRanges``."""
    start: Integers
    ect0: Integers
    ect1: Integers
    ce: Integers
    """Counts of ECN marks; -1 in a frame without them."""


@dataclass(frozen=True, eq=False)
class AckRanges(ColumnTable):
    """The ranges of packet numbers that ACK frames acknowledge, both ends included; from the highest down."""

    smallest: Integers
    largest: Integers


@dataclass(frozen=True, eq=False)
class Signals(ColumnTable):
    """All other frames that could be decrypted, except PADDING."""

    packet: Integers
    kind: Integers
    """A ``Frame``, or the number of a type that we do not know, after which the rest of the packet was not read."""
    first: Integers
    second: Integers
    """The numbers of the frame in the order of RFC 9000, section 19, 0 where there are fewer.

    MAX_DATA, DATA_BLOCKED: limit. MAX_STREAM_DATA, STREAM_DATA_BLOCKED: stream, limit. MAX_STREAMS, STREAMS_BLOCKED:
    limit. RESET_STREAM, STOP_SENDING: stream, code. NEW_CONNECTION_ID: sequence number, retire prior to.
    RETIRE_CONNECTION_ID: sequence number. CLOSE: code, type of the frame at fault. CLOSE_APPLICATION: code. DATAGRAM:
    length. ACK_FREQUENCY: threshold, greatest delay in microseconds. BDP: capacity in bytes, round-trip time in
    microseconds.
    """
    text: Integers
    """Index into ``texts``: the phrase of a CLOSE; as hexadecimal digits the id of NEW_CONNECTION_ID, the token of
    NEW_TOKEN, the data of PATH_CHALLENGE and PATH_RESPONSE, the client's address of BDP; as decimal digits the final
    size of RESET_STREAM, and with the reliable size of RESET_STREAM_AT. 0 is the empty one."""


@dataclass(frozen=True, eq=False)
class Messages(ColumnTable):
    """The TLS messages, each in the packet that made it whole."""

    packet: Integers
    kind: Integers
    """A ``Message``."""
    size: Integers
    """Bytes, without those of type and length."""


@dataclass(frozen=True)
class Connection:
    """What the handshake of one connection says."""

    random: str = ""
    """Of the newest ClientHello, hexadecimal: the name of the connection in key logs."""
    offered: tuple[int, ...] = ()
    """Cipher suites in the newest ClientHello."""
    cipher: int = 0
    """Cipher suite chosen by the server, 0 if unknown."""
    alpn: str = ""
    """Chosen by the server."""
    server_name: str = ""
    resumed: bool = False
    """The server took up an earlier session (RFC 8446, section 2.2)."""
    early_data: bool = False
    """The server accepted 0-RTT."""
    client_parameters: Mapping[str, int | str] = field(default_factory=dict)
    server_parameters: Mapping[str, int | str] = field(default_factory=dict)
    """Transport parameters by their names in RFC 9000, section 18.2; opaque ones as hexadecimal digits."""
    early_data_offered: bool = False
    """The client announced early data."""


@dataclass(frozen=True, eq=False)
class Trace:
    """The QUIC packets of one trace, one row per packet; coalesced packets have rows of their own."""

    epoch: int
    """Whole second at which the trace begins, since 1970 or since the start of a simulation."""
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
    ecn: Integers
    """0 not ECN capable, 1 ECT(1), 2 ECT(0), 3 CE (RFC 3168)."""
    length: Integers
    """Bytes of the QUIC packet."""
    key_phase: Integers
    """0 or 1; -1 for a long header, or if it could not be decrypted."""
    spin: Integers
    """Spin bit of a short header, 0 or 1 (RFC 9000, section 17.4); -1 for a long header."""
    generation: Integers
    """How often the keys of a decrypted 1-RTT packet had been updated."""
    connection: Integers
    """Index into ``connections``, -1 if unknown."""
    token: Integers
    """Index into ``tokens``: of an Initial or Retry, for Version Negotiation the versions; 0 is the empty one."""
    eliciting: Flags
    """Ack-eliciting (RFC 9002, section 2): has a frame that is not ACK, PADDING or CONNECTION_CLOSE."""
    frames: StreamFrames
    crypto: CryptoFrames
    acks: AckFrames
    ack_ranges: AckRanges
    signals: Signals
    messages: Messages
    connections: tuple[Connection, ...]
    paths: tuple[str, ...]
    """``client address:port server address:port``."""
    connection_ids: tuple[str, ...]
    tokens: tuple[str, ...]
    """Hexadecimal; the first is empty."""
    texts: tuple[str, ...]
    """What ``Signals.text`` points to; the first is empty."""

    def __len__(self) -> int:
        return len(self.time)

    def absolute(self, row: int) -> float:
        """Seconds since 1970 of a row; good to about a microsecond."""
        return self.epoch + float(self.time[row])


@lru_cache(maxsize=4096)
def direction(source: str, source_port: int, target: str, target_port: int) -> bool | None:
    """Whether a UDP packet comes from the server; None if it is no packet between client and server.

    Addresses decide where they are those of the contract, the server's port elsewhere (real links, and behind a NAT).
    Between the contract's own addresses the server may have another port, of a preferred address, but none below 1024.

    >>> direction("fd00:cafe:cafe:100:0:0:0:100", 443, "fd00:cafe:cafe:0::100", 4433)
    True
    """
    ends = ip_address(source), ip_address(target)
    of_contract = CLIENT_ADDRESSES & {*ends} and SERVER_ADDRESSES & {*ends} and min(source_port, target_port) > 1023
    if QUIC_PORT not in (source_port, target_port) and not of_contract:
        return None
    if any(end in SIMULATOR_ADDRESSES for end in ends):
        return None
    if ends[0] in SERVER_ADDRESSES or ends[1] in CLIENT_ADDRESSES:
        return True
    if ends[0] in CLIENT_ADDRESSES or ends[1] in SERVER_ADDRESSES:
        return False
    return source_port == QUIC_PORT
