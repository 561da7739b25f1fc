"""Addresses and names in the three networks of an emulated link: of client, simulator and server."""

ADDRESSES = {
    "client": "eth0=193.167.0.100/24,fd00:cafe:cafe:0::100/64",
    "simulator": "eth0=193.167.0.2/24,fd00:cafe:cafe:0::2/64;eth1=193.167.100.2/24,fd00:cafe:cafe:100::2/64",
    "server": "eth0=193.167.100.100/24,fd00:cafe:cafe:100::100/64",
    "client-gateway": "eth0=193.167.0.4/32,fd00:cafe:cafe:0::4/128;eth1=193.167.0.4/32,fd00:cafe:cafe:0::4/128",
    "server-gateway": "eth0=193.167.100.4/32,fd00:cafe:cafe:100::4/128;eth1=193.167.100.4/32,fd00:cafe:cafe:100::4/128",
}
"""Those of client, simulator and server are hard-coded in the images of the QUIC Interop Runner.

A gateway has the same address towards the endpoint (eth0) and towards the simulator (eth1)."""
CLIENT_SIDE = "eth2=198.18.1.1/32,fd00:cafe:cafe:51::1/128;eth3=198.18.1.2/32,fd00:cafe:cafe:51::2/128"
"""Further interfaces of the simulator, towards the client and its gateway, by which it finds them."""
LEFT, RIGHT = (entry.partition("=")[2] for entry in ADDRESSES["simulator"].split(";"))
"""Addresses of the simulator towards the clients and towards the servers."""
FIRST_HOST = 100
"""Last number of the addresses of the first client and server; those of the second flow have the next one."""
CLIENT, SERVER = ("193.167.0.100", "fd00:cafe:cafe::100"), ("193.167.100.100", "fd00:cafe:cafe:100::100")
GATEWAYS = {
    "client": ("193.167.0.2", "fd00:cafe:cafe::2"),
    "simulator": ("193.167.0.2", "fd00:cafe:cafe::2"),
    "server": ("193.167.100.2", "fd00:cafe:cafe:100::2"),
}
"""The simulator's addresses, by the part that looks for it."""


def of_flow(addresses: tuple[str, str], flow: int) -> tuple[str, str]:
    """The addresses of an endpoint of a flow, counted from 1, given those of the first one."""
    ipv4, ipv6 = addresses
    number = FIRST_HOST - 1 + flow
    return f"{ipv4.rpartition('.')[0]}.{number}", f"{ipv6.rpartition(':')[0]}:{number}"


def interfaces(role: str, flow: int) -> str:
    """As ``ADDRESSES``, of an endpoint of a flow, counted from 1."""
    ipv4, ipv6 = of_flow(CLIENT if role == "client" else SERVER, flow)
    return f"eth0={ipv4}/24,{ipv6}/64"


def hosts(gateways: tuple[str, str], flow: int = 1) -> tuple[tuple[str, str], ...]:
    """Names of the endpoint contract: each role plain and with 4, 6 and 46; endpoints are those of a flow."""
    entries: list[tuple[str, str]] = []
    client, server = of_flow(CLIENT, flow), of_flow(SERVER, flow)
    for name, (ipv4, ipv6) in (("client", client), ("server", server), ("sim", gateways)):
        entries += [(name, ipv4), (f"{name}4", ipv4), (f"{name}6", ipv6), (f"{name}46", ipv4), (f"{name}46", ipv6)]
    return tuple(entries)
