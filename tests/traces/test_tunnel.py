"""Bytes that a VPN adds per packet, from traces made by hand."""

from pathlib import Path

import pytest

from quicsat.traces.tunnel import tunnel_overhead
from tests.quic_builder import CLIENT, CLIENT_6, SERVER, SERVER_6, Packet, pcap

NEAR, FAR = ("193.167.0.4", 51820), ("193.167.100.4", 51820)
End = tuple[str, int]


def packet(time: float, from_server: bool, size: int, client: End = CLIENT, server: End = SERVER) -> Packet:
    """An IP packet of ``size`` bytes that carries UDP."""
    return Packet(time, from_server, bytes(size - (48 if ":" in client[0] else 28)), client, server)


def write(path: Path, *packets: Packet) -> Path:
    path.write_bytes(pcap(packets))
    return path


def endpoint(directory: Path, client: End = CLIENT, server: End = SERVER) -> Path:
    """A request, and two packets of the server: 1420 and 100 bytes."""
    sizes = (1.0, False, 300), (2.001, True, 1420), (2.101, True, 100)
    return write(directory / "endpoint.pcap", *(packet(*each, client, server) for each in sizes))


def tunnelled(directory: Path, *sizes: tuple[float, bool, int]) -> Path:
    return write(directory / "tunnel.pcap", *(packet(*each, NEAR, FAR) for each in sizes))


@pytest.mark.parametrize("ends", [(CLIENT, SERVER), (CLIENT_6, SERVER_6)])
def test_packets_that_carry_those_of_the_server_count(tmp_path: Path, ends: tuple[End, End]) -> None:
    """Neither those that made the tunnel nor those of the client do."""
    tunnel = tunnelled(tmp_path, (0.5, True, 120), (1.001, False, 360), (2.0, True, 1480), (2.1, True, 172))
    assert tunnel_overhead(endpoint(tmp_path, *ends), tunnel) == (60 + 72) / 2


def test_without_packets_there_is_no_overhead(tmp_path: Path) -> None:
    silent = write(tmp_path / "silent.pcap", packet(1.0, False, 300))
    tunnel = tunnelled(tmp_path, (2.0, True, 1480))
    assert tunnel_overhead(silent, tunnel) is None
    assert tunnel_overhead(endpoint(tmp_path), tmp_path / "none.pcap") is None
    tunnel.write_bytes(tunnel.read_bytes()[:-1])
    assert tunnel_overhead(endpoint(tmp_path), tunnel) is None
