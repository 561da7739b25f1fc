"""Addresses and names in the three networks of an emulated link: of client, simulator and server."""

from __future__ import annotations

ADDRESSES = {
    "client": "eth0=193.167.0.100/24,fd00:cafe:cafe:0::100/64",
    "simulator": "eth0=193.167.0.2/24,fd00:cafe:cafe:0::2/64;eth1=193.167.100.2/24,fd00:cafe:cafe:100::2/64",
    "server": "eth0=193.167.100.100/24,fd00:cafe:cafe:100::100/64",
}
"""Addresses that the images of the QUIC Interop Runner hard-code."""
CLIENT, SERVER = ("193.167.0.100", "fd00:cafe:cafe::100"), ("193.167.100.100", "fd00:cafe:cafe:100::100")
GATEWAYS = {
    "client": ("193.167.0.2", "fd00:cafe:cafe::2"),
    "simulator": ("193.167.0.2", "fd00:cafe:cafe::2"),
    "server": ("193.167.100.2", "fd00:cafe:cafe:100::2"),
}


def hosts(gateways: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Names of the endpoint contract: each role plain and with 4, 6 and 46."""
    entries: list[tuple[str, str]] = []
    for name, (ipv4, ipv6) in (("client", CLIENT), ("server", SERVER), ("sim", gateways)):
        entries += [(name, ipv4), (f"{name}4", ipv4), (f"{name}6", ipv6), (f"{name}46", ipv4), (f"{name}46", ipv6)]
    return tuple(entries)
