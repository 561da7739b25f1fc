"""Reads what stands between the endpoints and an emulated link (proxies, a VPN), and the endpoints' TCP."""

from quicsat.config.quantities import count, member_of, one_of, size, within, word_or_mapping
from quicsat.config.yaml_fields import Fields
from quicsat.model.emulated_link import EmulatedLink
from quicsat.model.gateways import (
    LARGEST_MTU,
    LINUX_ENDPOINTS,
    PEPS,
    VPNS,
    EndpointTcp,
    Pep,
    Vpn,
    VpnProgram,
    VpnTransport,
)

NONE = "none"
WITHOUT_VPN = ("rebind", "tcp-cross-traffic")
"""Scenarios that tell flows apart by their ports."""
BUFFERS_EXAMPLE = "{send buffer: 4 MiB, receive buffer: 6 MiB}"
SLOWEST_SET_UP = 1.5
"""Longest round trip, seconds, over which OpenVPN over TCP with Nagle's algorithm is ready in time."""
_BUFFER = within(size, "64 KiB", "1 GiB")
BUFFERS = {"send buffer": _BUFFER, "receive buffer": _BUFFER}
ENDPOINT_TCP = BUFFERS | {"fast open": bool}
PEP = BUFFERS | {"initial window": within(count, "1", "1000"), "congestion control": one_of(("cubic", "reno", "bbr"))}
VPN_TCP = PEP | {"nagle": bool}
"""Keys of a tunnel over TCP."""
VPN = {
    "program": member_of(VpnProgram),
    "transport": member_of(VpnTransport),
    "mtu": within(count, "1280", str(LARGEST_MTU)),
    **VPN_TCP,
}
_VPN = one_of((*VPNS, NONE))
_PEP = one_of((*PEPS, NONE))
_NO_BUFFERS = word_or_mapping(NONE, f"is neither {NONE} nor a mapping; write for example {BUFFERS_EXAMPLE}")


def read_pep(link: Fields, inherited: Pep | None) -> Pep | None:
    """The proxies of a link: by letter, ``none``, or a mapping whose missing keys are inherited, or those of A."""
    if not link.holds_mapping("pep"):
        word = link.read("pep", _PEP)
        return inherited if word is None else PEPS.get(word)
    return link.record("pep", PEPS["A"], inherited, PEP)


def read_vpn(link: Fields, inherited: Vpn | None) -> Vpn | None:
    """The tunnel of a link: by program, ``none``, or a mapping whose missing keys are inherited, or Linux'."""
    if not link.holds_mapping("vpn"):
        word = link.read("vpn", _VPN)
        return inherited if word is None else VPNS.get(word)
    vpn = link.record("vpn", VPNS["openvpn"], inherited, VPN, {"program": "openvpn"})
    fields = link.part("vpn")
    if vpn.transport is VpnTransport.TCP and vpn.program is not VpnProgram.OPENVPN:
        fields.note(f"transport tcp needs program openvpn; this is {vpn.program}.", fields.line_of("transport"))
    for key in VPN_TCP:
        if key in fields and vpn.transport is not VpnTransport.TCP:
            fields.note(f"{key} needs transport tcp; this is {vpn.transport}.", fields.line_of(key))
    return vpn


def read_endpoint_tcp(link: Fields, inherited: EndpointTcp | None) -> EndpointTcp | None:
    """TCP of the endpoints; missing keys are inherited, or those that Linux long had."""
    if not link.holds_mapping("endpoint tcp"):
        word = link.read("endpoint tcp", _NO_BUFFERS)
        return inherited if word is None else None
    return link.record("endpoint tcp", LINUX_ENDPOINTS, inherited, ENDPOINT_TCP)


def check_gateways(link: Fields, merged: EmulatedLink) -> None:
    """Report what cannot stand together at one link."""
    vpn, round_trip = merged.vpn, merged.round_trip_delay
    if vpn is None:
        return
    line = link.line_of("vpn")
    if merged.pep is not None:
        link.note("a link has either pep or vpn; write pep: none or vpn: none.", line)
    if merged.scenario in WITHOUT_VPN:
        link.note(f"vpn does not work with scenario {merged.scenario}, whose packets it would hide.", line)
    if vpn.transport is VpnTransport.TCP and vpn.nagle and round_trip > SLOWEST_SET_UP:
        allowed = f"needs a round trip of at most {SLOWEST_SET_UP:g} s"
        link.note(f"vpn: transport tcp {allowed}; this link has {round_trip:g} s.", line)
