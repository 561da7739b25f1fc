"""Gateways: routers between the endpoints and the simulator, each with a network namespace and a program of its own.

They answer for the addresses behind them, so neither an endpoint nor the simulator is configured otherwise. What they
do to packets is in the image ``link-gateways``. In real time, ``ns3_testbed`` starts them, and in virtual time the
virtual machine does (``guest_description``). See docs/guide/proxies.md and docs/guide/vpn.md.
"""

import datetime
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from quicsat.links.addresses import ADDRESSES, CLIENT_SIDE, LEFT, RIGHT
from quicsat.links.certificates import certificates, wireguard_keys
from quicsat.links.session import InputOrigin
from quicsat.model.emulated_link import EmulatedLink
from quicsat.model.gateways import EndpointTcp, Pep, TcpBuffers, Vpn, VpnProgram

SIDES = {"client-gateway": "client", "server-gateway": "server"}
"""Gateways, and the endpoint that is next to each."""
CAPABILITIES = ("NET_ADMIN", "NET_BIND_SERVICE", "NET_RAW")
TUNNEL_DEVICE = "/dev/net/tun"
LOGS = "/logs"
"""Directory of what a gateway leaves."""
KEYS = "run/vpn"
"""Directory of the keys of a tunnel, below the root."""
STOP_GRACE = 5.0
"""Seconds in which a gateway completes its trace."""
READY = '"event":"ready"'
"""What a gateway prints when it is set up."""
_SMALLEST_SEND, _FIRST_SEND = 4096, 16384
_SMALLEST_RECEIVE, _FIRST_RECEIVE = 4096, 131072
"""Linux' own values of tcp_wmem and tcp_rmem before the last, bytes."""
FAST_OPEN = {"net.ipv4.tcp_fastopen": str(0x1 | 0x2 | 0x400)}
"""For clients that ask for it, and for all listening sockets (Documentation/networking/ip-sysctl.rst of Linux)."""
ROUTER = {
    "net.ipv4.ip_forward": "1",
    "net.ipv4.conf.all.proxy_arp": "1",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.conf.all.send_redirects": "0",
    "net.ipv4.conf.default.send_redirects": "0",
    "net.ipv6.conf.all.disable_ipv6": "0",
    "net.ipv6.conf.default.disable_ipv6": "0",
    "net.ipv6.conf.all.forwarding": "1",
    "net.ipv6.conf.all.proxy_ndp": "1",
    "net.ipv6.conf.default.accept_dad": "0",
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.ping_group_range": "0 0",
}
"""Kernel parameters of a gateway's namespace.

``accept_dad``: else its link-local addresses are tentative for 1 to 2 s after a reset. It asks from them for the
neighbours of packets that it forwards; if it cannot, it tries again only after 1 s.
"""


@dataclass(frozen=True)
class Layout:
    """What of a link decides how its namespaces are made; runs with the same layout can share them."""

    pep: Pep | None = None
    endpoint_tcp: EndpointTcp | None = None
    vpn: Vpn | None = None
    flows: int = 1
    client_side: bool = False
    """The simulator also stands between the client and its gateway."""

    @property
    def gateways(self) -> tuple[str, ...]:
        """Names of the gateways."""
        return tuple(SIDES) if self.pep or self.vpn or self.client_side else ()

    @property
    def shared(self) -> bool:
        """Whether several flows share the gateways; then the simulator has bridges of their endpoints."""
        return self.flows > 1 and bool(self.gateways)

    @property
    def simulator_addresses(self) -> str:
        """Addresses of the simulator's interfaces, as in ``ADDRESSES``.

        With shared gateways, eth0 and eth1 are the bridges, eth2 and eth3 lead to the gateways, and eth4 to that of the
        clients by the link at their side.
        """
        beside = CLIENT_SIDE.split(";") if self.client_side else []
        if not self.shared:
            return ";".join([ADDRESSES["simulator"], *beside])
        near, far = (each.partition("=")[2] for each in beside) if beside else ("", "")
        own = [f"eth0={near}", "eth1=", f"eth2={LEFT}", f"eth3={RIGHT}"]
        return ";".join([*own, *([f"eth4={far}"] if far else [])])

    @property
    def simulator_sysctls(self) -> Mapping[str, str]:
        """Kernel parameters of the namespace of the simulator.

        It has the gateways' address at another interface, where the client must not find it.
        """
        return {"net.ipv4.conf.all.arp_ignore": "1"} if self.client_side or self.shared else {}

    @property
    def endpoint_mtu(self) -> int | None:
        """Largest IP packet that an endpoint sends, bytes; None for that of Ethernet."""
        return self.vpn.mtu if self.vpn else None

    @property
    def gateway_devices(self) -> tuple[str, ...]:
        """Devices of the host that the program of a gateway needs."""
        return (TUNNEL_DEVICE,) if self.vpn else ()

    @property
    def endpoint_sysctls(self) -> Mapping[str, str]:
        """Kernel parameters of the namespaces of client and server."""
        tcp = self.endpoint_tcp
        return (_buffers(tcp) | (FAST_OPEN if tcp.fast_open else {})) if tcp else {}

    @property
    def gateway_sysctls(self) -> Mapping[str, str]:
        """Kernel parameters of the namespaces of the gateways."""
        tcp = self.pep or self.vpn
        return ROUTER | (_buffers(tcp) if tcp else {})

    @property
    def gateway_environment(self) -> Mapping[str, str]:
        """What the program of a gateway is to do."""
        tcp = self.pep or self.vpn
        flows = {"FLOWS": str(self.flows)} if self.shared else {}
        if tcp is None:
            return flows
        own = {"PROXY": "split"}
        if self.vpn:
            own = {"VPN": str(self.vpn.program), "TRANSPORT": str(self.vpn.transport), "MTU": str(self.vpn.mtu)}
            if not self.vpn.nagle:
                own["NODELAY"] = "1"
        return {**own, **flows, "INITIAL_WINDOW": str(tcp.initial_window), "CONGESTION_CONTROL": tcp.congestion_control}


def layout_of(link: EmulatedLink, flows: int = 1) -> Layout:
    """The layout that a link and the flows over it need."""
    return Layout(link.pep, link.endpoint_tcp, link.vpn, flows, link.client_side is not None)


def gateway_command(gateway: str, layout: Layout) -> tuple[str, ...]:
    """The program of a gateway."""
    return ("shared-gateway" if layout.shared else "gateway", SIDES[gateway])


SHARED = ("several-flows",)
"""The program of the simulator and of shared gateways in the virtual machine, of the gateways' image."""
SHARED_CAPABILITIES = (*CAPABILITIES, "SETPCAP", "SYS_ADMIN", "SYS_NICE")
SHARED_SAMPLES = "/sampler"
"""Where it leaves samples of TCP; what a gateway leaves is in a directory of the gateway's name."""
SHARED_KEYS = {gateway: f"{gateway}-run/vpn" for gateway in SIDES}
"""As ``KEYS``, by gateway."""


def shared_environment(layout: Layout, samples: Iterable[str]) -> dict[str, str]:
    """What ``SHARED`` is to do beside the simulator; ``samples``: options of tcp-info, empty without samples."""
    return {
        **layout.gateway_environment,
        "ADDRESSES": layout.simulator_addresses,
        "SYSCTLS": ";".join(f"{name}={value}" for name, value in layout.gateway_sysctls.items()),
        "SAMPLES": " ".join(samples),
        **({"CLIENT_SIDE": "1"} if layout.client_side else {}),
        **{gateway.upper().replace("-", "_"): ADDRESSES[gateway] for gateway in SIDES},
    }


def gateway_files(vpn: Vpn | None, origin: InputOrigin | None = None) -> dict[str, dict[str, bytes]]:
    """Keys of a tunnel for one run: content by path, without the leading slash, by gateway; empty without a tunnel.

    The same ``origin`` gives the same keys; without one they are random. Each end trusts only the other one's key.
    """
    if vpn is None:
        return {}
    numbers = random.SystemRandom() if origin is None else random.Random(f"{origin.seed} vpn")
    moment = datetime.datetime.now(datetime.UTC) if origin is None else origin.moment
    if vpn.program is VpnProgram.WIREGUARD:
        pairs = [wireguard_keys(numbers) for _ in SIDES]
        files = [
            {"private.key": own[0], "peer.key": other[1]} for own, other in zip(pairs, reversed(pairs), strict=True)
        ]
    else:
        chains = [certificates(1, numbers, moment) for _ in SIDES]
        files = [own | {"ca.pem": other["ca.pem"]} for own, other in zip(chains, reversed(chains), strict=True)]
    return {
        gateway: {f"{KEYS}/{name}": content for name, content in each.items()}
        for gateway, each in zip(SIDES, files, strict=True)
    }


def _buffers(tcp: TcpBuffers) -> dict[str, str]:
    return {
        "net.ipv4.tcp_wmem": f"{_SMALLEST_SEND} {min(_FIRST_SEND, tcp.send_buffer)} {tcp.send_buffer}",
        "net.ipv4.tcp_rmem": f"{_SMALLEST_RECEIVE} {min(_FIRST_RECEIVE, tcp.receive_buffer)} {tcp.receive_buffer}",
    }
