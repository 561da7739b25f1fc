"""Proxies, tunnels and TCP buffers in test case files: words and mappings become values, or one sentence."""

from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.config.loader import load_test_cases
from quicsat.model.emulated_link import (
    ClientSide,
    ClientSideDirection,
    GilbertElliottLoss,
    Queue,
    QueueDiscipline,
    QueueUnit,
    UniformLoss,
)
from quicsat.model.gateways import LINUX_ENDPOINTS, PEPS, VPNS, EndpointTcp, Pep, Vpn, VpnProgram, VpnTransport
from quicsat.model.units import KIB, MIB
from tests.config.my_yaml import read
from tests.ready import cases_on_request, ready_test_cases

ROOT = Path(__file__).resolve().parents[2]
SAT = ready_test_cases()["sat"]
KNOWN = {"sat": SAT}
HEAD = "name: {0}\nabbreviation: {0}\nextends: {1}\n"


def texts(*links: str) -> str:
    """Test cases a, b and so on; each extends the one before it, and the first one sat."""
    names = ["sat", *"abc"]
    documents = [HEAD.format(names[n + 1], names[n]) + f"link: {{{link}}}\n" for n, link in enumerate(links)]
    return "---\n".join(documents)


def test_rows_of_the_paper() -> None:
    """MB of the paper are what is left of Linux' values when their digits behind the point are cut."""
    rows = {
        letter: (pep.send_buffer // 10**6, pep.receive_buffer // 10**6, pep.initial_window)
        for letter, pep in PEPS.items()
    }
    assert rows == {"A": (4, 6, 10), "B": (4, 6, 100), "C": (33, 33, 10), "D": (33, 33, 100)}


@pytest.mark.parametrize("loss", [False, True])
def test_ready_test_cases(loss: bool) -> None:
    name = "geo-loss" if loss else "geo"
    cases = load_test_cases(ROOT / "testcases/satcom" / ("proxies-loss.yaml" if loss else "proxies.yaml"), {})
    links = {case.name: case.emulated for case in cases}
    assert {each: link.pep for each, link in links.items()} == {
        name: None, **{f"{name}-pep-{letter.lower()}": pep for letter, pep in PEPS.items()}
    }  # fmt: skip
    assert {replace(link, pep=None) for link in links.values()} == {links[name]}
    assert (links[name].endpoint_tcp, links[name].forward.rate, links[name].back.rate) == (LINUX_ENDPOINTS, 50e6, 10e6)
    assert (links[name].forward.loss is not None) == loss


@pytest.mark.parametrize("family", ["geo20", "geo20-loss", "leo100", "fade20"])
def test_families_with_proxies_and_without(family: str) -> None:
    links = {
        case.name: case.emulated for case in cases_on_request().values() if case.family and case.family.name == family
    }
    assert {each: link.pep for each, link in links.items()} == {
        f"{family}@pep=none": None, **{f"{family}@pep={letter.lower()}": pep for letter, pep in PEPS.items()}
    }  # fmt: skip
    assert {replace(link, pep=None) for link in links.values()} == {links[f"{family}@pep=none"]}
    assert links[f"{family}@pep=none"].endpoint_tcp == LINUX_ENDPOINTS


def test_missing_keys_are_those_of_a_or_inherited() -> None:
    text = texts(
        "pep: {initial window: 32}, endpoint tcp: {send buffer: 64 KiB, fast open: true}",
        "pep: {congestion control: bbr, send buffer: 1 MiB, receive buffer: 2 MiB}, "
        "endpoint tcp: {receive buffer: 2 MB}",
        "pep: none, endpoint tcp: none",
    )
    links = {case.name: case.emulated for case in read(text, KNOWN)}
    assert links["a"].pep == replace(PEPS["A"], initial_window=32)
    assert links["b"].pep == Pep(1 * MIB, 2 * MIB, 32, "bbr")
    assert links["a"].endpoint_tcp == replace(LINUX_ENDPOINTS, send_buffer=64 * KIB, fast_open=True)
    assert links["b"].endpoint_tcp == EndpointTcp(64 * KIB, 2_000_000, fast_open=True)
    assert links["c"] == SAT.emulated


def test_missing_keys_of_a_tunnel_are_inherited() -> None:
    text = texts(
        "vpn: {program: openvpn, transport: tcp, send buffer: 1 MiB}",
        "vpn: {mtu: 1300, initial window: 20, congestion control: bbr, receive buffer: 2 MiB, nagle: false}",
        "vpn: none",
    )
    links = {case.name: case.emulated for case in read(text, KNOWN)}
    assert links["a"].vpn == Vpn(1 * MIB, 6 * MIB, VpnProgram.OPENVPN, VpnTransport.TCP)
    assert links["b"].vpn == Vpn(1 * MIB, 2 * MIB, VpnProgram.OPENVPN, VpnTransport.TCP, 1300, 20, "bbr", nagle=False)
    assert links["c"] == SAT.emulated


def test_a_link_at_the_clients_side_inherits_its_missing_keys() -> None:
    text = texts(
        "client side: {delay: 5 ms, forward loss: {good to bad: 0.1, bad to good: 0.5}}",
        "client side: {return delay: 2 ms, loss: 1 %}, pep: D",
        "client side: {delay: 0 ms, loss: 0 %}",
    )
    a, b, c = (case.emulated for case in read(text, KNOWN))
    assert a.client_side == ClientSide(
        ClientSideDirection(0.005, GilbertElliottLoss(0.1, 0.5)), ClientSideDirection(0.005)
    )
    assert b.client_side == ClientSide(
        ClientSideDirection(0.005, UniformLoss(0.01)), ClientSideDirection(0.002, UniformLoss(0.01))
    )
    assert b.round_trip_delay == pytest.approx(SAT.link.round_trip_delay + 0.007)
    assert c == replace(b, client_side=None)
    home = "client side: {rate: 50 Mbit/s, return rate: 20 Mbit/s, queue: 64 KiB, return queue: 100}"
    [d] = read(texts(home), {"sat": replace(SAT, link=a)})
    assert d.emulated.client_side.forward == replace(
        a.client_side.forward, rate=50e6, queue=Queue(QueueDiscipline.DROP_TAIL, 65536, QueueUnit.BYTES)
    )
    assert (d.emulated.client_side.back.rate, d.emulated.client_side.back.queue) == (20e6, 100)
    assert d.emulated.on_path(70e6) == 50e6
    [none] = read(texts("client side: none"), {"sat": replace(SAT, link=a)})
    assert (none.emulated, a.has_gateways) == (SAT.emulated, True)


def test_ready_tunnels() -> None:
    cases = load_test_cases(ROOT / "testcases/satcom/vpn.yaml", {})
    links = {case.name: case.emulated for case in cases}
    assert {name: link.vpn for name, link in links.items()} == {
        "vpn-none": None,
        "vpn-wireguard": VPNS["wireguard"],
        "vpn-openvpn": VPNS["openvpn"],
        "vpn-openvpn-tcp": replace(VPNS["openvpn"], transport=VpnTransport.TCP),
    }
    assert {replace(link, vpn=None) for link in links.values()} == {links["vpn-none"]}
    assert [(case.tunnelled, case.has_gateways) for case in cases] == [
        (link.vpn is not None,) * 2 for link in links.values()
    ]
