"""Traces made by hand: QUIC packets with real encryption, capture files of every kind, and bare columns for metrics.

Packet protection is RFC 9001, sections 5.2 to 5.4, for AES-128-GCM; the TLS messages are only what tshark needs to find
the keys.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

from quicsat.traces.columns import (
    AckFrames,
    AckRanges,
    CryptoFrames,
    Datagrams,
    Form,
    Messages,
    Signals,
    StreamFrames,
    Trace,
)
from quicsat.traces.columns import Connection as QuicConnection

EPOCH = 1_750_000_000
SECOND = 1_000_000_000
CLIENT, SERVER = ("193.167.0.100", 40000), ("193.167.100.100", 443)
CLIENT_6, SERVER_6 = ("fd00:cafe:cafe::100", 40000), ("fd00:cafe:cafe:100::100", 443)
INITIAL_SALT = bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a")


# ---- QUIC -----------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    """RFC 9000, section 16."""
    for bits, size in ((6, 1), (14, 2), (30, 4), (62, 8)):
        if value < 1 << bits:
            return (value | (size.bit_length() - 1) << (size * 8 - 2)).to_bytes(size, "big")
    raise ValueError(value)


def stream_frame(stream: int, data: bytes, offset: int = 0, *, fin: bool = False, length: bool = True) -> bytes:
    """A STREAM frame; OFF is set only where the offset is not 0."""
    kind = 0x08 | (0x04 if offset else 0) | (0x02 if length else 0) | (0x01 if fin else 0)
    head = bytes([kind]) + varint(stream) + (varint(offset) if offset else b"")
    return head + (varint(len(data)) if length else b"") + data


ACK = bytes([0x02, 0, 0, 0, 0])
PING = b"\x01"


def _expand(secret: bytes, label: str, size: int) -> bytes:
    full = b"tls13 " + label.encode()
    info = struct.pack(">HB", size, len(full)) + full + b"\0"
    return HKDFExpand(SHA256(), size, info).derive(secret)


@cache
def _keys(secret: bytes) -> tuple[AESGCM, int, Callable[[bytes], bytes]]:
    key, vector, mask = (_expand(secret, f"quic {name}", size) for name, size in (("key", 16), ("iv", 12), ("hp", 16)))
    return AESGCM(key), int.from_bytes(vector, "big"), Cipher(algorithms.AES(mask), modes.ECB()).encryptor().update


def _protect(secret: bytes, header: bytes, number: int, frames: bytes, short_mask: int = 0x1F) -> bytes:
    """Header, which ends with a packet number of one byte, and frames, as they go over the wire."""
    frames = frames.rjust(4, b"\0")  # enough for the sample of the header protection; padding may come first
    aead, vector, mask_of = _keys(secret)
    payload = aead.encrypt((vector ^ number).to_bytes(12, "big"), frames, header)
    mask = mask_of(payload[3:19])
    first = header[0] ^ (mask[0] & (0x0F if header[0] & 0x80 else short_mask))
    return bytes([first]) + header[1:-1] + bytes([header[-1] ^ mask[1]]) + payload


def _extension(code: int, data: bytes) -> bytes:
    return struct.pack(">HH", code, len(data)) + data


_HANDSHAKE, _ONE_RTT = (b"c" * 32, b"s" * 32), (b"C" * 32, b"S" * 32)
"""Secrets of client and server."""


@dataclass
class Connection:
    """A QUIC connection of which any packet can be made."""

    original: bytes = b"original"
    """The connection id that the client invents for the server."""
    client_id: bytes = b"client-1"
    server_id: bytes = b"server-1"
    random: bytes = b"r" * 32
    version: int = 1
    loss_bits: int | None = None
    """Bits 0x10 and 0x08 of short headers, if the endpoints agreed on draft-ferrieux-hamchaoui-quic-lossbits."""
    fixed_bit: int = 0x40
    """Of all headers; 0 if the endpoints agreed on RFC 9287."""

    @property
    def key_log(self) -> str:
        """The lines of SSLKEYLOGFILE."""
        kinds = {"HANDSHAKE_TRAFFIC_SECRET": _HANDSHAKE, "TRAFFIC_SECRET_0": _ONE_RTT}
        return "".join(
            f"{side}_{name} {self.random.hex()} {secrets[side == 'SERVER'].hex()}\n"
            for name, secrets in kinds.items()
            for side in ("CLIENT", "SERVER")
        )

    def one_rtt(self, number: int, *frames: bytes, from_server: bool, spin: int = 0) -> bytes:
        """A packet with a short header; the last byte of its number must tell it from the one before."""
        header = bytes([self.fixed_bit | spin << 5 | (self.loss_bits or 0)]) + (
            self.client_id if from_server else self.server_id
        )
        short_mask = 0x1F if self.loss_bits is None else 0x07
        return _protect(_ONE_RTT[from_server], header + bytes([number & 0xFF]), number, b"".join(frames), short_mask)

    def handshake(self, number: int, *frames: bytes, from_server: bool) -> bytes:
        """A Handshake packet."""
        destination = self.client_id if from_server else self.server_id
        return self._long(0xE0, destination, b"", number, b"".join(frames), _HANDSHAKE[from_server], from_server)

    def initial(self, number: int, *frames: bytes, from_server: bool, target: bytes | None = None) -> bytes:
        """An Initial, padded by the client; ``target`` is the client's destination if it is not its first one."""
        secret = HKDF.extract(SHA256(), INITIAL_SALT, self.original)
        secret = _expand(secret, "server in" if from_server else "client in", 32)
        payload = b"".join(frames)
        destination = self.client_id if from_server else (target or self.original)
        payload = payload if from_server else payload.ljust(1100, b"\0")
        return self._long(0xC0, destination, varint(0), number, payload, secret, from_server)

    def _long(
        self, kind: int, destination: bytes, token: bytes, number: int, payload: bytes, secret: bytes, from_server: bool
    ) -> bytes:
        source = self.server_id if from_server else self.client_id
        header = bytes([kind & ~0x40 | self.fixed_bit]) + struct.pack(">I", self.version)
        header += bytes([len(destination)]) + destination + bytes([len(source)]) + source + token
        header += struct.pack(">H", 0x4000 | 1 + max(len(payload), 4) + 16) + bytes([number & 0xFF])
        return _protect(secret, header, number, payload)

    def client_hello(self) -> bytes:
        """The client's first packet."""
        return self.initial(0, b"\x06" + varint(0) + varint(len(self._hello)) + self._hello, from_server=False)

    def client_hello_in_two(self, at: int) -> tuple[bytes, bytes]:
        """The ClientHello in two Initials, the first of which has ``at`` bytes of it."""
        parts = (0, self._hello[:at]), (at, self._hello[at:])
        frames = [b"\x06" + varint(offset) + varint(len(piece)) + piece for offset, piece in parts]
        first, second = (self.initial(number, frame, from_server=False) for number, frame in enumerate(frames))
        return first, second

    @property
    def _hello(self) -> bytes:
        """The ClientHello, a message of TLS."""
        extensions = _extension(43, b"\x02\x03\x04") + _extension(57, b"")
        body = b"\x03\x03" + self.random + b"\0" + b"\0\x02\x13\x01" + b"\x01\0"
        return _message(1, body, extensions)

    def server_hello(self) -> bytes:
        """The server's first packet."""
        body = b"\x03\x03" + b"s" * 32 + b"\0" + b"\x13\x01" + b"\0"
        return self.initial(0, _crypto(2, body, _extension(43, b"\x03\x04")), from_server=True)

    def retry(self, new_id: bytes, token: bytes = b"token") -> bytes:
        """A Retry; its integrity tag is wrong, which no check looks at."""
        ids = bytes([len(self.client_id)]) + self.client_id + bytes([len(new_id)]) + new_id
        return bytes([0xF0]) + struct.pack(">I", self.version) + ids + token + b"t" * 16


def _message(kind: int, body: bytes, extensions: bytes) -> bytes:
    body += struct.pack(">H", len(extensions)) + extensions
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


def _crypto(kind: int, body: bytes, extensions: bytes) -> bytes:
    message = _message(kind, body, extensions)
    return b"\x06" + varint(0) + varint(len(message)) + message


# ---- capture files --------------------------------------------------------------------------


@cache
def _packed(address: str) -> bytes:
    return ip_address(address).packed


@dataclass(frozen=True)
class Captured:
    """A packet of any kind as it is captured."""

    time: float
    """Seconds after EPOCH."""
    from_server: bool

    @property
    def nanoseconds(self) -> int:
        return EPOCH * SECOND + round(self.time * SECOND)

    @property
    def frame(self) -> bytes:
        """Ethernet, IP and what is above them."""
        raise NotImplementedError


@dataclass(frozen=True)
class Packet(Captured):
    """A UDP packet."""

    payload: bytes
    client: tuple[str, int] = CLIENT
    server: tuple[str, int] = SERVER

    @property
    def frame(self) -> bytes:
        """Ethernet, IP and UDP."""
        ends = (self.server, self.client) if self.from_server else (self.client, self.server)
        source, target = (_packed(end[0]) for end in ends)
        udp = struct.pack(">HHHH", ends[0][1], ends[1][1], 8 + len(self.payload), 0) + self.payload
        if len(source) == 4:
            ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + source + target
            return bytes(12) + b"\x08\x00" + ip + udp
        return bytes(12) + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(udp), 17, 64) + source + target + udp


def pcap(packets: Iterable[Captured], *, order: str = "<", nano: bool = True, snap_length: int = 262_144) -> bytes:
    """A pcap file; records are cut at the snap length."""
    return b"".join(pcap_records(packets, order, nano, snap_length))


def pcap_records(
    packets: Iterable[Captured], order: str = "<", nano: bool = True, snap_length: int = 262_144
) -> Iterator[bytes]:
    """Header and records of a pcap file."""
    unit = 1 if nano else 1000
    yield struct.pack(f"{order}IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, snap_length, 1)
    for packet in packets:
        frame, (second, rest) = packet.frame, divmod(packet.nanoseconds, SECOND)
        kept = frame[:snap_length]
        yield struct.pack(f"{order}IIII", second, rest // unit, len(kept), len(frame)) + kept


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """A block of a pcapng file."""
    body += bytes(-len(body) % 4)
    size = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + size + body + size


def pcapng(packets: Iterable[Packet], order: str = "<") -> bytes:
    """A pcapng file with nanoseconds."""
    section = struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)
    interface = struct.pack(f"{order}HHI", 1, 0, 0) + struct.pack(f"{order}HHB3xHH", 9, 1, 9, 0, 0)
    data = block(0x0A0D0D0A, section, order) + block(1, interface, order) + block(5, bytes(12), order)
    for packet in packets:
        frame, time = packet.frame, packet.nanoseconds
        head = struct.pack(f"{order}IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(frame), len(frame))
        data += block(6, head + frame, order)
    return data


# ---- bare columns ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A QUIC packet of a trace made without capture file; ``frames`` are (stream, offset, length)."""

    time: float
    from_server: bool
    form: Form = Form.ONE_RTT
    frames: Sequence[tuple[int, int, int]] = ()
    scid: str = ""
    dcid: str = ""
    path: str = "client server"
    version: int = 1
    decrypted: bool = True
    size: int = 1200
    number: int = -1
    """Packet number."""
    ecn: int = 0
    key_phase: int = -1
    spin: int = -1
    token: str = ""
    eliciting: bool = False
    crypto: Sequence[tuple[int, int]] = ()
    """(offset, length)."""
    signals: Sequence[tuple[int, int, int, str]] = ()
    """(kind, first, second, text)."""
    messages: Sequence[tuple[int, int]] = ()
    """TLS messages that end here: (kind, size)."""
    acks: Sequence[tuple[int, int, int, int]] = ()
    """(largest, ECT(0), ECT(1), CE)."""
    connection: int = 0
    fin: bool = False
    """Whether its STREAM frames end their streams."""


@dataclass
class _Names:
    known: dict[str, int] = field(default_factory=dict)

    def __call__(self, name: str) -> int:
        return self.known.setdefault(name, len(self.known))


NOBODY = QuicConnection("", (), 0, "", "", False, False, {}, {})


def columns(*rows: Row, connections: Sequence[QuicConnection] = (NOBODY,)) -> Trace:
    """A trace with these packets."""
    ids, paths, tokens, texts = _Names({"": 0}), _Names(), _Names({"": 0}), _Names({"": 0})
    crypto = _rows(((index, *each) for index, row in enumerate(rows) for each in row.crypto), 3)
    messages = _rows(((index, *each) for index, row in enumerate(rows) for each in row.messages), 3)
    signals = _rows(((index, *each[:3], texts(each[3])) for index, row in enumerate(rows) for each in row.signals), 5)
    frames = [(index, *frame) for index, row in enumerate(rows) for frame in row.frames]
    table = np.array(frames, dtype=np.int64).reshape(-1, 4)
    fins = np.array([row.fin for row in rows], dtype=np.bool_)

    def integers(values: Iterable[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(list(values), dtype=np.int64)

    return Trace(
        epoch=EPOCH,
        time=np.array([row.time for row in rows], dtype=np.float64),
        frame=np.arange(1, len(rows) + 1, dtype=np.int64),
        from_server=np.array([row.from_server for row in rows], dtype=np.bool_),
        path=integers(paths(row.path) for row in rows),
        size=integers(row.size for row in rows),
        form=integers(row.form for row in rows),
        number=integers(row.number for row in rows),
        version=integers(-1 if row.form is Form.ONE_RTT else row.version for row in rows),
        scid=integers(ids(row.scid) for row in rows),
        dcid=integers(ids(row.dcid) for row in rows),
        decrypted=np.array([row.decrypted for row in rows], dtype=np.bool_),
        ecn=integers(row.ecn for row in rows),
        length=integers(row.size for row in rows),
        key_phase=integers(row.key_phase for row in rows),
        spin=integers(row.spin for row in rows),
        generation=integers(max(row.key_phase, 0) for row in rows),
        connection=integers(row.connection for row in rows),
        token=integers(tokens(row.token) for row in rows),
        eliciting=np.array([bool(row.frames) or row.eliciting for row in rows], dtype=np.bool_),
        frames=StreamFrames(table[:, 0], table[:, 1], table[:, 2], table[:, 3], fins[table[:, 0]]),
        crypto=CryptoFrames.of(**dict(zip(("packet", "offset", "length"), crypto.T, strict=True))),
        acks=_acks(rows),
        ack_ranges=AckRanges.of(),
        signals=Signals.of(**dict(zip(("packet", "kind", "first", "second", "text"), signals.T, strict=True))),
        messages=Messages.of(**dict(zip(("packet", "kind", "size"), messages.T, strict=True))),
        connections=tuple(connections) if rows else (),
        paths=tuple(paths.known),
        connection_ids=tuple(ids.known),
        tokens=tuple(tokens.known),
        texts=tuple(texts.known),
    )


def _acks(rows: Sequence[Row]) -> AckFrames:
    table = _rows(((index, *each) for index, row in enumerate(rows) for each in row.acks), 5)
    marks = dict(zip(("packet", "largest", "ect0", "ect1", "ce"), table.T, strict=True))
    return AckFrames.of(**marks, **dict.fromkeys(("delay", "ranges", "start"), np.zeros(len(table))))


def _rows(rows: Iterable[Sequence[int]], width: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.array(list(rows), dtype=np.int64).reshape(-1, width)


def datagram_columns(packets: Iterable[tuple[float, bool, int]], epoch: int = EPOCH, size: int = 1000) -> Datagrams:
    """UDP packets of ``size`` bytes: (time, from the server, fingerprint)."""
    rows = list(packets)
    return Datagrams(
        epoch=epoch,
        time=np.array([row[0] for row in rows], dtype=np.float64),
        from_server=np.array([row[1] for row in rows], dtype=np.bool_),
        size=np.full(len(rows), size, dtype=np.int64),
        digest=np.array([row[2] for row in rows], dtype=np.uint64),
    )
