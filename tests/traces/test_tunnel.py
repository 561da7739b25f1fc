"""Bytes that a VPN adds per packet, from traces made by hand."""

from __future__ import annotations

import struct
from ipaddress import ip_address
from pathlib import Path

import pytest

from quicsat.traces.tunnel import tunnel_overhead

SECOND = 1_000_000_000
CLIENT, SERVER = ("193.167.0.100", 5000), ("193.167.100.100", 443)
NEAR, FAR = ("193.167.0.4", 51820), ("193.167.100.4", 51820)
CLIENT6, SERVER6 = ("fd00:cafe:cafe::100", 5000), ("fd00:cafe:cafe:100::100", 443)
End = tuple[str, int]


def datagram(source: End, target: End, size: int) -> bytes:
    """A frame with an IP packet of ``size`` bytes that carries UDP."""
    ends = [ip_address(end[0]) for end in (source, target)]
    header = 20 if ends[0].version == 4 else 40
    udp = struct.pack(">HHHH", source[1], target[1], size - header, 0) + bytes(size - header - 8)
    addresses = ends[0].packed + ends[1].packed
    if header == 20:
        return bytes(12) + b"\x08\x00" + struct.pack(">BBHHHBBH", 0x45, 0, size, 0, 0, 64, 17, 0) + addresses + udp
    return bytes(12) + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, size - header, 17, 64) + addresses + udp


def write(path: Path, *frames: tuple[float, bytes]) -> Path:
    data = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1)
    for time, frame in frames:
        second, rest = divmod(1_767_225_600 * SECOND + round(time * SECOND), SECOND)
        data += struct.pack("<IIII", second, rest, len(frame), len(frame)) + frame
    path.write_bytes(data)
    return path


def endpoint(directory: Path, server: End = SERVER, client: End = CLIENT) -> Path:
    """A request, and two packets of the server: 1420 and 100 bytes."""
    return write(
        directory / "endpoint.pcap",
        (1.0, datagram(client, server, 300)),
        (2.001, datagram(server, client, 1420)),
        (2.101, datagram(server, client, 100)),
    )


@pytest.mark.parametrize(("server", "client"), [(SERVER, CLIENT), (SERVER6, CLIENT6)])
def test_packets_that_carry_those_of_the_server_count(tmp_path: Path, server: End, client: End) -> None:
    """Neither those that made the tunnel nor those of the client do."""
    tunnel = write(
        tmp_path / "tunnel.pcap",
        (0.5, datagram(FAR, NEAR, 120)),
        (1.001, datagram(NEAR, FAR, 360)),
        (2.0, datagram(FAR, NEAR, 1480)),
        (2.1, datagram(FAR, NEAR, 172)),
    )
    assert tunnel_overhead(endpoint(tmp_path, server, client), tunnel) == (60 + 72) / 2


def test_without_packets_there_is_no_overhead(tmp_path: Path) -> None:
    silent = write(tmp_path / "silent.pcap", (1.0, datagram(CLIENT, SERVER, 300)))
    tunnel = write(tmp_path / "tunnel.pcap", (2.0, datagram(FAR, NEAR, 1480)))
    assert tunnel_overhead(silent, tunnel) is None
    assert tunnel_overhead(endpoint(tmp_path), tmp_path / "none.pcap") is None
    tunnel.write_bytes(tunnel.read_bytes()[:-1])
    assert tunnel_overhead(endpoint(tmp_path), tunnel) is None
