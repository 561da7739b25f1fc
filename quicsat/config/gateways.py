"""Reads what stands between the endpoints and an emulated link (proxies, a VPN), and the endpoints' TCP buffers."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from quicsat.config.quantities import count, one_of, size, within
from quicsat.config.yaml_fields import Fields
from quicsat.model.emulated_link import EmulatedLink
from quicsat.model.gateways import (
    LARGEST_MTU,
    LINUX,
    PEPS,
    VPNS,
    Pep,
    TcpBuffers,
    Vpn,
    VpnProgram,
    VpnTransport,
)

T = TypeVar("T")

NONE = "none"
BUFFERS = ("send buffer", "receive buffer")
PEP_KEYS = (*BUFFERS, "initial window", "congestion control")
WITHOUT_VPN = ("rebind", "tcp-cross-traffic")
"""Scenarios that tell flows apart by their ports."""
BUFFERS_EXAMPLE = "{send buffer: 4 MiB, receive buffer: 6 MiB}"
VPN_TCP_KEYS = (*BUFFERS, "initial window", "congestion control", "nagle")
VPN_KEYS = ("program", "transport", "mtu", *VPN_TCP_KEYS)
SLOWEST_SET_UP = 1.5
"""Longest round trip, seconds, over which OpenVPN over TCP with Nagle's algorithm is ready in time."""
_VPN = one_of((*VPNS, NONE))
_PROGRAM = one_of(program.value for program in VpnProgram)
_TRANSPORT = one_of(transport.value for transport in VpnTransport)
_MTU = within(count, "1280", str(LARGEST_MTU))
_PEP = one_of((*PEPS, NONE))
_BUFFER = within(size, "64 KiB", "1 GiB")
_INITIAL_WINDOW = within(count, "1", "1000")
_CONGESTION_CONTROL = one_of(("cubic", "reno", "bbr"))


def _parse_none(text: str) -> str:
    if text != NONE:
        raise ValueError(f"is neither {NONE} nor a mapping; write for example {BUFFERS_EXAMPLE}.")
    return text


def read_pep(link: Fields, inherited: Pep | None) -> Pep | None:
    """The proxies of a link: by letter, ``none``, or a mapping whose missing keys are inherited, or those of A."""
    if "pep" not in link:
        return inherited
    if not link.holds_mapping("pep"):
        word = link.read("pep", _PEP)
        return inherited if word is None else PEPS.get(word)
    fields = link.part("pep")
    fields.allow_only(PEP_KEYS)
    base = _read_buffers(fields, inherited or PEPS["A"])
    return replace(
        base,
        initial_window=_or(fields.read("initial window", _INITIAL_WINDOW), base.initial_window),
        congestion_control=_or(fields.read("congestion control", _CONGESTION_CONTROL), base.congestion_control),
    )


def read_vpn(link: Fields, inherited: Vpn | None) -> Vpn | None:
    """The tunnel of a link: by program, ``none``, or a mapping whose missing keys are inherited, or Linux'."""
    if "vpn" not in link:
        return inherited
    if not link.holds_mapping("vpn"):
        word = link.read("vpn", _VPN)
        return inherited if word is None else VPNS.get(word)
    fields = link.part("vpn")
    fields.allow_only(VPN_KEYS)
    if inherited is None:
        fields.require({"program": "openvpn"})
    base = _read_buffers(fields, inherited or VPNS["openvpn"])
    found = replace(
        base,
        program=VpnProgram(_or(fields.read("program", _PROGRAM), base.program)),
        transport=VpnTransport(_or(fields.read("transport", _TRANSPORT), base.transport)),
        mtu=_or(fields.read("mtu", _MTU), base.mtu),
        initial_window=_or(fields.read("initial window", _INITIAL_WINDOW), base.initial_window),
        congestion_control=_or(fields.read("congestion control", _CONGESTION_CONTROL), base.congestion_control),
        nagle=_or(fields.read_flag("nagle"), base.nagle),
    )
    if found.transport is VpnTransport.TCP and found.program is not VpnProgram.OPENVPN:
        fields.note(f"transport tcp needs program openvpn; this is {found.program}.", fields.line_of("transport"))
    for key in VPN_TCP_KEYS:
        if key in fields and found.transport is not VpnTransport.TCP:
            fields.note(f"{key} needs transport tcp; this is {found.transport}.", fields.line_of(key))
    return found


def check_gateways(link: Fields, merged: EmulatedLink) -> None:
    """Report what cannot stand together at one link."""
    vpn, round_trip = merged.vpn, merged.round_trip_delay
    if vpn is None:
        return
    line = link.line_of("vpn")
    if merged.pep is not None:
        link.note("a link has either pep or vpn; write pep: none or vpn: none.", line)
    if merged.client_side is not None:
        link.note("a link has either client side or vpn; write client side: none or vpn: none.", line)
    if merged.scenario in WITHOUT_VPN:
        link.note(f"vpn does not work with scenario {merged.scenario}, whose packets it would hide.", line)
    if vpn.transport is VpnTransport.TCP and vpn.nagle and round_trip > SLOWEST_SET_UP:
        allowed = f"needs a round trip of at most {SLOWEST_SET_UP:g} s"
        link.note(f"vpn: transport tcp {allowed}; this link has {round_trip:g} s.", line)


def read_endpoint_tcp(link: Fields, inherited: TcpBuffers | None) -> TcpBuffers | None:
    """The endpoints' TCP buffers; missing keys are inherited, or those that Linux long had."""
    if not link.holds_mapping("endpoint tcp"):
        word = link.read("endpoint tcp", _parse_none)
        return inherited if word is None else None
    fields = link.part("endpoint tcp")
    fields.allow_only(BUFFERS)
    return _read_buffers(fields, inherited or LINUX)


B = TypeVar("B", bound=TcpBuffers)


def _read_buffers(fields: Fields, base: B) -> B:
    send, receive = (fields.read(key, _BUFFER) for key in BUFFERS)
    return replace(base, send_buffer=_or(send, base.send_buffer), receive_buffer=_or(receive, base.receive_buffer))


def _or(value: T | None, default: T) -> T:
    return default if value is None else value
