"""Gateways: what stands between the endpoints and an emulated link, and how TCP is set up there; frozen values."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class TcpBuffers:
    """Largest buffers that Linux grants a TCP connection by itself: the last values of tcp_wmem and tcp_rmem."""

    send_buffer: int
    receive_buffer: int
    """Bytes, with what the kernel needs for its own notes on each packet."""


@dataclass(frozen=True)
class EndpointTcp(TcpBuffers):
    """TCP of the endpoints."""

    fast_open: bool = False
    """Whether a SYN may carry data to each listening socket (RFC 7413), as the client asks for."""


@dataclass(frozen=True)
class Pep(TcpBuffers):
    """A pair of proxies that split TCP connections, one on each side of the link; UDP passes by."""

    initial_window: int
    """Packets in the first flight over the link."""
    congestion_control: str
    """Over the link."""


LINUX = TcpBuffers(4_194_304, 6_291_456)
"""Limits that Linux computed for itself on machines with enough memory, until it raised that of receivers to 32 MiB."""
LINUX_ENDPOINTS = EndpointTcp(LINUX.send_buffer, LINUX.receive_buffer)
PEPS = {
    "A": Pep(LINUX.send_buffer, LINUX.receive_buffer, 10, "cubic"),
    "B": Pep(LINUX.send_buffer, LINUX.receive_buffer, 100, "cubic"),
    "C": Pep(33_554_432, 33_554_432, 10, "cubic"),
    "D": Pep(33_554_432, 33_554_432, 100, "cubic"),
}
"""Table 3 of Kuhn et al., "QUIC: Opportunities and threats in SATCOM" (ASMS/SPSC 2020): 4 and 6 MB or 33 MB, and 10 or
100 packets. The congestion control is ours."""


class VpnProgram(StrEnum):
    """What makes a tunnel, and its format."""

    OPENVPN = "openvpn"
    WIREGUARD = "wireguard"


class VpnTransport(StrEnum):
    """What carries the packets of a tunnel."""

    UDP = "udp"
    TCP = "tcp"
    """Only with OpenVPN."""


LARGEST_MTU = 1420
"""Bytes; so that every packet of a tunnel fits into the link's 1500."""


@dataclass(frozen=True)
class Vpn(TcpBuffers):
    """A tunnel between two gateways, one on each side of the link; the buffers are those of the tunnel's TCP."""

    program: VpnProgram
    transport: VpnTransport = VpnTransport.UDP
    mtu: int = LARGEST_MTU
    """Largest IP packet that an endpoint sends, bytes."""
    initial_window: int = 10
    """Packets in the first flight of the tunnel's TCP."""
    congestion_control: str = "cubic"
    """Of the tunnel's TCP."""
    nagle: bool = True
    """Whether small packets in the tunnel's TCP wait for acknowledgements (RFC 896); false: TCP_NODELAY."""


VPNS = {program.value: Vpn(LINUX.send_buffer, LINUX.receive_buffer, program) for program in VpnProgram}
"""Tunnels over UDP by their program."""
