"""A second decoder of QUIC traces, made of aioquic's packet and crypto primitives, which knows nothing of ours.

It finds every STREAM frame of 1-RTT packets. A connection id has the length that the first packet of its sender tells.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from aioquic._buffer import Buffer
from aioquic._crypto import CryptoError
from aioquic.quic.crypto import CryptoContext
from aioquic.quic.packet import QuicPacketType, pull_ack_frame, pull_quic_header
from aioquic.tls import CipherSuite

LABELS = {False: "CLIENT_TRAFFIC_SECRET_0", True: "SERVER_TRAFFIC_SECRET_0"}
NUMBERS = {
    0x00: 0, 0x01: 0, 0x02: 0, 0x03: 3, 0x04: 3, 0x05: 2, 0x10: 1, 0x11: 2, 0x12: 1, 0x13: 1, 0x14: 1, 0x15: 2, 0x16: 1,
    0x17: 1, 0x19: 1, 0x1E: 0, 0x1F: 0, 0xAF: 4,
}  # fmt: skip
"""How many numbers follow the type of a frame, or its acknowledgements, at its end."""
BEFORE_BYTES = {0x06: 1, 0x07: 0, 0x1C: 2, 0x1D: 1}
"""How many numbers come before bytes that have their length in front of them."""


class Range(NamedTuple):
    """A STREAM frame."""

    from_server: bool
    number: int
    stream: int
    offset: int
    length: int


def stream_ranges(trace: Path, key_log: Path) -> list[Range]:
    """All STREAM frames of a trace of one connection between port 443 and another, in the order of capture."""
    secrets = {line.split()[0]: bytes.fromhex(line.split()[2]) for line in key_log.read_text().splitlines()}
    id_length: dict[bool, int] = {}
    contexts: dict[bool, CryptoContext] = {}
    expected = {False: 0, True: 0}
    found: list[Range] = []
    for from_server, payload in _datagrams(trace.read_bytes()):
        at = 0
        while at < len(payload) and (payload[at] & 0x80 or (not from_server) in id_length):
            greased = bytes([payload[at] | 0x40]) + payload[at + 1 :]  # RFC 9287: the bit may be anything
            buffer = Buffer(data=greased)
            header = pull_quic_header(buffer, host_cid_length=id_length.get(not from_server, 0))
            packet, start = payload[at : at + header.packet_length], buffer.tell()
            at += header.packet_length
            if header.packet_type is not QuicPacketType.ONE_RTT:
                id_length.setdefault(from_server, len(header.source_cid))
                continue
            for context in (
                [contexts[from_server]] if from_server in contexts else _guesses(secrets[LABELS[from_server]])
            ):
                try:
                    _, plain, number, _ = context.decrypt_packet(packet, start, expected[from_server])
                except CryptoError:
                    continue
                contexts[from_server] = context
                expected[from_server] = max(expected[from_server], number + 1)
                found += [Range(from_server, number, *each) for each in _stream_frames(Buffer(data=plain))]
    return found


def _datagrams(data: bytes) -> Iterator[tuple[bool, bytes]]:
    """Direction and UDP payload of each record of a little-endian pcap file with PPP or Ethernet frames over IPv4."""
    link_type = struct.unpack_from("<I", data, 20)[0]
    at, skip = 24, {9: 2, 1: 14}[link_type]
    while at < len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        ip = data[at + 16 + skip : at + 16 + size]
        at += 16 + size
        if ip[0] >> 4 != 4 or ip[9] != 17:
            continue
        udp = ip[(ip[0] & 15) * 4 :]
        ports = struct.unpack_from(">HHH", udp)
        if 443 in ports[:2]:
            yield ports[0] == 443, udp[8 : ports[2]]


def _guesses(secret: bytes) -> Iterator[CryptoContext]:
    for suite in CipherSuite:
        if suite.name in {"AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305_SHA256"}:
            if (len(secret) == 48) != (suite is CipherSuite.AES_256_GCM_SHA384):
                continue
            context = CryptoContext()
            context.setup(cipher_suite=suite, secret=secret, version=1)
            yield context


def _stream_frames(buffer: Buffer) -> Iterator[tuple[int, int, int]]:
    """Stream, offset and length of the STREAM frames in the payload of a packet."""
    while not buffer.eof():
        kind = buffer.pull_uint_var()
        if 0x08 <= kind <= 0x0F:
            stream = buffer.pull_uint_var()
            offset = buffer.pull_uint_var() if kind & 4 else 0
            length = buffer.pull_uint_var() if kind & 2 else buffer.capacity - buffer.tell()
            yield stream, offset, length
            buffer.pull_bytes(length)
        else:
            _skip(buffer, kind)


def _skip(buffer: Buffer, kind: int) -> None:
    """Go behind a frame of another type."""
    if kind in (0x02, 0x03):
        pull_ack_frame(buffer)
    if kind in BEFORE_BYTES:
        _skip_numbers(buffer, BEFORE_BYTES[kind])
        buffer.pull_bytes(buffer.pull_uint_var())
    elif kind == 0x18:
        _skip_numbers(buffer, 2)
        buffer.pull_bytes(buffer.pull_uint8() + 16)
    elif kind in (0x1A, 0x1B):
        buffer.pull_bytes(8)
    else:
        _skip_numbers(buffer, NUMBERS[kind])


def _skip_numbers(buffer: Buffer, count: int) -> None:
    for _ in range(count):
        buffer.pull_uint_var()
