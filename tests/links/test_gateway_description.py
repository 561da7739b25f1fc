"""Gateways with both clocks: their place, their rights, when a run may begin, and whose fault it is if one ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.docker.daemon_images import ImageProgram
from quicsat.links.gateway_description import CAPABILITIES, READY, ROUTER, SIDES, Layout, gateway_files, layout_of
from quicsat.links.guest_description import CAPABILITIES as NUMBERS
from quicsat.links.guest_description import describe
from quicsat.links.ns3_testbed import Ns3Backend
from quicsat.links.session import Endpoint, InputOrigin, RunControl, SessionRecord, SessionRequest
from quicsat.links.simulator_arguments import scenario
from quicsat.links.virtual_machine import START, VirtualBackend
from quicsat.model.emulated_link import ClientSide, ClientSideDirection, UniformLoss
from quicsat.model.errors import HarnessFault
from quicsat.model.evidence import Exit
from quicsat.model.gateways import LINUX, PEPS, VPNS, Pep, Vpn, VpnTransport
from quicsat.model.implementation import Protocol, Role
from quicsat.model.outcomes import ErrorCode
from quicsat.model.run import Run
from tests.fakes import (
    CASE,
    LINK,
    LINK_GATEWAYS,
    SIMULATOR,
    VIRTUAL_TIME,
    FakeEngine,
    Life,
    connect,
    endpoint,
    leave_endpoint_trace,
    link_gateways,
    run_of,
    simulate,
    traces,
)

TCP_TUNNEL = replace(VPNS["openvpn"], transport=VpnTransport.TCP)
SPLIT = replace(LINK, pep=PEPS["D"], endpoint_tcp=LINUX)
IMAGES = {name: name for name in (SIMULATOR, VIRTUAL_TIME, LINK_GATEWAYS)}
ORDER = ("client-holder", "client-gateway-holder", "simulator-holder", "server-gateway-holder", "server-holder")


def split_run() -> Run:
    return run_of(case=replace(CASE, link=SPLIT))


def request_of(run: Run) -> SessionRequest:
    urls = "https://server4:443/a"
    endpoints = {
        Role.SERVER: Endpoint(run.server.name, {"ROLE": "server", "TESTCASE": "transfer"}, {"www/a": b"a" * 2500}),
        Role.CLIENT: Endpoint(run.client.name, {"ROLE": "client", "TESTCASE": "transfer", "REQUESTS": urls}),
    }
    return SessionRequest(run, endpoints, RunControl(threading.Event()))


def backend(engine: FakeEngine) -> Ns3Backend:
    return Ns3Backend(connect(engine), SIMULATOR, gateways=LINK_GATEWAYS)


def real(engine: FakeEngine, *runs: Run) -> list[SessionRecord]:
    """Makes runs in real time on one testbed."""
    records = [SessionRecord() for _ in runs]
    with backend(engine).open() as testbed:
        for run, record in zip(runs, records, strict=True):
            with testbed.session(request_of(run), record) as session:
                session.run()
    assert engine.lives == {}
    return records


def virtual(engine: FakeEngine, run: Run) -> SessionRecord:
    """Makes a run in virtual time."""
    record = SessionRecord()
    with (
        VirtualBackend(connect(engine), IMAGES, 0.0).open() as testbed,
        testbed.session(request_of(run), record) as session,
    ):
        session.run()
    assert engine.lives == {}
    return record


def part(life: Life) -> str:
    """``quicsat-test-7-client-holder`` -> ``client-holder``."""
    return life.name.split("-", 3)[3]


def hold_back(life: Life) -> int:
    """Gateways that are never ready."""
    if life.command[0] == "plumb":
        return link_gateways(life)
    life.terminated.wait()
    return 143


def collapse(life: Life) -> int:
    """Gateways that cannot be set up."""
    if life.command[0] == "plumb":
        return link_gateways(life)
    life.say("Cannot find device eth1")
    return 1


# ---- what a link needs ----------------------------------------------------------------------


def test_a_plain_link_has_no_gateways() -> None:
    plain = layout_of(LINK)
    assert (plain, plain.gateways, plain.endpoint_sysctls) == (Layout(), (), {})


def test_buffers_become_kernel_parameters() -> None:
    layout = layout_of(SPLIT)
    assert layout.endpoint_sysctls == {
        "net.ipv4.tcp_wmem": "4096 16384 4194304", "net.ipv4.tcp_rmem": "4096 131072 6291456",
    }  # fmt: skip
    assert layout.gateway_sysctls == ROUTER | {
        "net.ipv4.tcp_wmem": "4096 16384 33554432", "net.ipv4.tcp_rmem": "4096 131072 33554432",
    }  # fmt: skip
    assert layout.gateway_environment == {
        "PROXY": "split", "INITIAL_WINDOW": "100", "CONGESTION_CONTROL": "cubic",
    }  # fmt: skip


def test_a_buffer_is_never_larger_at_first_than_at_last() -> None:
    small = Layout(endpoint_tcp=replace(LINUX, send_buffer=8192, receive_buffer=65536)).endpoint_sysctls
    assert small == {"net.ipv4.tcp_wmem": "4096 8192 8192", "net.ipv4.tcp_rmem": "4096 65536 65536"}


# ---- real time ------------------------------------------------------------------------------


def test_gateways_stand_between_endpoints_and_simulator() -> None:
    engine = FakeEngine(good=endpoint)
    [record] = real(engine, split_run())
    assert record.exits_of(1)[Role.CLIENT].status == 0
    pids = {part(life): life.pid for life in engine.all_lives if life.command == ("holder",)}
    [_, plumb] = [life for life in engine.all_lives if life.command[:1] == ("plumb",)]
    layout = [life for life in engine.all_lives if life.command == ("holder",)][3:]
    assert plumb.image == LINK_GATEWAYS
    assert [part(life) for life in layout] == [*ORDER]
    assert plumb.command == ("plumb", *(str(life.pid) for life in layout))
    assert len(pids) == 5
    for life in layout:
        forwards = life.host_config["sysctls"]["net.ipv4.ip_forward"]
        assert forwards == ("1" if "gateway" in life.name else "0")
        buffers = life.host_config["sysctls"].get("net.ipv4.tcp_wmem", "")
        assert buffers.split()[-1:] == {
            "client-holder": ["4194304"], "server-holder": ["4194304"], "simulator-holder": [],
        }.get(part(life), ["33554432"])  # fmt: skip


def test_a_gateway_has_few_rights_in_its_own_namespace() -> None:
    engine = FakeEngine(good=endpoint)
    real(engine, split_run())
    programs = [life for life in engine.all_lives if life.command[:1] == ("gateway",)]
    holders = {part(life): life for life in engine.all_lives if life.command == ("holder",)}
    assert [life.command for life in programs] == [("gateway", "client"), ("gateway", "server")]
    for life, name in zip(programs, SIDES, strict=True):
        assert life.image == LINK_GATEWAYS
        assert life.environment["INITIAL_WINDOW"] == "100"
        assert life.host_config["network_mode"] == f"container:{holders[f'{name}-holder'].id}"
        assert (life.host_config["cap_add"], life.host_config["cap_drop"]) == ([*CAPABILITIES], ["ALL"])


def test_networks_are_kept_for_runs_that_need_the_same() -> None:
    engine = FakeEngine(good=endpoint)
    other = run_of(case=replace(CASE, link=replace(SPLIT, pep=PEPS["A"])))
    real(engine, split_run(), split_run(), other)
    assert sum(life.command == ("holder",) for life in engine.all_lives) == 3 + 5 + 5


def test_a_client_waits_for_gateways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quicsat.links.container_session.READY_TIMEOUT", 0.5)
    engine = FakeEngine(**{"good": endpoint, LINK_GATEWAYS: hold_back})
    [record] = real(engine, split_run())
    assert record.timed_out is not None
    assert record.timed_out.value == "ready"
    assert Role.CLIENT not in {Role(life.environment["ROLE"]) for life in engine.all_lives if life.status == "running"}


def test_a_gateway_that_ends_is_our_fault() -> None:
    engine = FakeEngine(**{"good": endpoint, LINK_GATEWAYS: collapse})
    with pytest.raises(HarnessFault, match=r"a gateway ended \(1\): .*Cannot find device eth1") as caught:
        real(engine, split_run())
    assert caught.value.code is ErrorCode.SIMULATOR_FAILED
    assert engine.lives == {}


def test_without_an_image_there_are_no_gateways() -> None:
    engine = FakeEngine(good=endpoint)
    with (
        Ns3Backend(connect(engine), SIMULATOR).open() as testbed,
        pytest.raises(HarnessFault, match="the image link-gateways is missing"),
        testbed.session(request_of(split_run()), SessionRecord()),
    ):
        pass
    assert engine.lives == {}


# ---- virtual time ---------------------------------------------------------------------------


def test_a_machine_has_gateways(tmp_path: Path) -> None:
    engine = FakeEngine(good=endpoint)
    record = virtual(engine, split_run())
    assert isinstance(record.exits_of(1)[Role.CLIENT], Exit)
    assert record.exits_of(1)[Role.CLIENT].status == 0
    [machine] = [life for life in engine.all_lives if life.command[:1] == ("run",)]
    assert [word for word in machine.command if word.startswith("ubd5rc=")] == ["ubd5rc=/roots/link-gateways.erofs"]


def test_a_machine_without_gateways_has_no_disk_for_them() -> None:
    engine = FakeEngine(good=endpoint)
    virtual(engine, run_of())
    [machine] = [life for life in engine.all_lives if life.command[:1] == ("run",)]
    assert not [word for word in machine.command if word.startswith("ubd5rc=")]
    assert LINK_GATEWAYS not in engine.roots


def test_a_gateway_that_ends_in_a_machine_is_our_fault() -> None:
    engine = FakeEngine(**{"good": endpoint, LINK_GATEWAYS: collapse})
    with pytest.raises(HarnessFault, match=r"the client-gateway ended \(1\): Cannot find device eth1") as caught:
        virtual(engine, split_run())
    assert caught.value.code is ErrorCode.SIMULATOR_FAILED


def test_what_a_machine_is_told() -> None:
    program = ImageProgram(("/bin/own",), {"PATH": "/own"}, "/", "")
    programs = dict.fromkeys(["simulator", *Role, *SIDES], program)
    found: dict[str, list[str]] = {}
    for key, value in describe(request_of(split_run()), programs):
        found.setdefault(key, []).append(value)
    assert found["client-gateway.argument"] == ["gateway", "client"]
    assert found["server-gateway.argument"] == ["gateway", "server"]
    assert found["client-gateway.address"] == [
        "eth0 193.167.0.4/32", "eth0 fd00:cafe:cafe:0::4/128", "eth1 193.167.0.4/32", "eth1 fd00:cafe:cafe:0::4/128",
    ]  # fmt: skip
    assert found["server-gateway.capabilities"] == [str(sum(1 << NUMBERS[name] for name in CAPABILITIES))]
    assert "PROXY=split" in found["server-gateway.environment"]
    assert "net.ipv4.ip_forward=1" in found["client-gateway.sysctl"]
    assert found["server.sysctl"] == ["net.ipv4.tcp_wmem=4096 16384 4194304", "net.ipv4.tcp_rmem=4096 131072 6291456"]
    assert "simulator.sysctl" not in found
    assert found["gateway event"] == [READY]


# ---- a link at the client's side ------------------------------------------------------------

BESIDE = replace(LINK, client_side=ClientSide(ClientSideDirection(loss=UniformLoss(0.01))))


def leave_three_traces(life: Life) -> int:
    """A simulator that also stands between the client and its gateway; that trace has the fewest packets."""
    if "client-side" in life.environment.get("SCENARIO", ""):
        life.files["logs/trace_client.pcap"] = traces([b"a"])[0]
    return simulate(life)


@pytest.mark.parametrize("pep", [None, PEPS["A"]])
def test_the_simulator_also_stands_between_the_client_and_its_gateway(pep: Pep | None) -> None:
    engine = FakeEngine(good=endpoint)
    real(engine, run_of(case=replace(CASE, link=replace(BESIDE, pep=pep))))
    plumbs = [life.environment for life in engine.all_lives if life.command[:1] == ("plumb",)]
    assert [each.get("CLIENT_SIDE") for each in plumbs] == [None, "1"]
    last = {part(life): life for life in engine.all_lives if life.command == ("holder",)}
    assert [each.split("=")[0] for each in last["simulator-holder"].environment["ADDRESSES"].split(";")] == [
        "eth0", "eth1", "eth2", "eth3",
    ]  # fmt: skip
    ignoring = [name for name, life in last.items() if "net.ipv4.conf.all.arp_ignore" in life.host_config["sysctls"]]
    assert ignoring == ["simulator-holder"]
    proxies = {life.environment.get("PROXY") for life in engine.all_lives if life.command[:1] == ("gateway",)}
    assert proxies == {"split" if pep else None}


def test_a_machine_learns_of_a_link_at_the_clients_side() -> None:
    programs = dict.fromkeys(["simulator", *Role, *SIDES], ImageProgram(("/bin/own",), {}, "/", ""))
    request = request_of(run_of(case=replace(CASE, link=BESIDE)))
    found = [*describe(request, programs)]
    assert ("client side", "1") in found
    assert sum(key == "simulator.address" for key, _ in found) == 8
    assert ("simulator.sysctl", "net.ipv4.conf.all.arp_ignore=1") in found


@pytest.mark.parametrize("clock", ["real", "virtual"])
@pytest.mark.parametrize(
    ("protocol", "pep"), [(Protocol.TCP, None), (Protocol.TCP, PEPS["A"]), (Protocol.HQ, PEPS["A"])]
)
def test_the_trace_of_the_client_is_the_first_unless_a_proxy_splits_its_connection(
    protocol: Protocol, pep: Pep | None, clock: str, tmp_path: Path
) -> None:
    engine = FakeEngine(**{"good": endpoint, SIMULATOR: leave_three_traces})
    run = replace(run_of(case=replace(CASE, link=replace(BESIDE, pep=pep))), protocol=protocol)
    opened = backend(engine) if clock == "real" else VirtualBackend(connect(engine), IMAGES, 0.0)
    with opened.open() as testbed, testbed.session(request_of(run), SessionRecord()) as session:
        session.run()
        session.collect(tmp_path, None)
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "sim").glob("*.pcap")}
    split = protocol is Protocol.TCP and pep is not None
    third = "trace_client.pcap" if split else "link_left.pcap"
    assert sizes.keys() == {"trace_node_left.pcap", "trace_node_right.pcap", third}
    own, link = sizes["trace_client.pcap" if split else "trace_node_left.pcap"], sizes["trace_node_right.pcap"]
    assert own < link


# ---- tunnels --------------------------------------------------------------------------------


def tunnel_run(vpn: Vpn = VPNS["wireguard"]) -> Run:
    return run_of(case=replace(CASE, link=replace(LINK, vpn=vpn)))


def measured(engine: FakeEngine, directory: Path, clock: str) -> None:
    """Makes a run through a tunnel with either clock, and takes its traces."""
    opened = backend(engine) if clock == "real" else VirtualBackend(connect(engine), IMAGES, 0.0)
    with opened.open() as testbed, testbed.session(request_of(tunnel_run()), SessionRecord()) as session:
        session.run()
        session.collect(directory, None)
    assert engine.lives == {}


def lossy(life: Life) -> int:
    """Gateways whose kernel had no room for packets of the trace."""
    if life.command[0] == "plumb":
        return link_gateways(life)
    leave_endpoint_trace(life, dropped=3)
    life.say('{"event": "ready"}')
    life.terminated.wait()
    return 143


def without_trace(life: Life) -> int:
    """Gateways that leave nothing."""
    if life.command[0] == "plumb":
        return link_gateways(life)
    life.say('{"event": "ready"}')
    life.terminated.wait()
    return 143


def test_what_a_tunnel_needs() -> None:
    layout = layout_of(replace(LINK, vpn=TCP_TUNNEL))
    assert (layout.gateways, layout.endpoint_mtu, layout.gateway_devices) == (tuple(SIDES), 1420, ("/dev/net/tun",))
    assert layout.gateway_environment == {
        "VPN": "openvpn", "TRANSPORT": "tcp", "MTU": "1420", "INITIAL_WINDOW": "10", "CONGESTION_CONTROL": "cubic",
    }  # fmt: skip
    without_nagle = layout_of(replace(LINK, vpn=replace(TCP_TUNNEL, nagle=False)))
    assert without_nagle.gateway_environment == {**layout.gateway_environment, "NODELAY": "1"}
    assert layout.gateway_sysctls["net.ipv4.tcp_wmem"] == "4096 16384 4194304"
    assert (layout_of(SPLIT).endpoint_mtu, layout_of(SPLIT).gateway_devices) == (None, ())


@pytest.mark.parametrize("protocol", [Protocol.HQ, Protocol.TCP])
def test_losses_concern_the_packets_of_a_tunnel(protocol: Protocol) -> None:
    assert "--protocol=tcp" in scenario(replace(LINK, vpn=TCP_TUNNEL), 1, protocol).split()
    assert "--protocol=tcp" not in scenario(replace(LINK, vpn=VPNS["openvpn"]), 1, protocol).split()


def test_each_gateway_has_its_own_key_and_the_other_ones_public_one() -> None:
    files = gateway_files(VPNS["wireguard"])
    assert [*files] == [*SIDES]
    assert all(each.keys() == {"run/vpn/private.key", "run/vpn/peer.key"} for each in files.values())
    assert len({content for each in files.values() for content in each.values()}) == 4
    assert gateway_files(VPNS["wireguard"]) != files
    certificates = gateway_files(VPNS["openvpn"])
    roots = [each["run/vpn/ca.pem"] for each in certificates.values()]
    assert len({*roots}) == 2
    assert gateway_files(None) == {}


@pytest.mark.parametrize("program", VPNS)
def test_one_seed_gives_the_same_keys(program: str) -> None:
    keys = [gateway_files(VPNS[program], InputOrigin(seed, START)) for seed in (1, 1, 2)]
    assert keys[0] == keys[1]
    assert keys[0] != keys[2]


def test_gateways_with_a_tunnel_in_real_time() -> None:
    engine = FakeEngine(good=endpoint)
    real(engine, tunnel_run())
    programs = [life for life in engine.all_lives if life.command[:1] == ("gateway",)]
    for life in programs:
        assert life.host_config["devices"] == ["/dev/net/tun:/dev/net/tun:rwm"]
        assert {"run/vpn/private.key", "run/vpn/peer.key"} <= {*life.files}
    mtus = {part(life): life.environment.get("MTU") for life in engine.all_lives if life.command == ("holder",)}
    assert mtus == {name: "1420" if name in ("client-holder", "server-holder") else None for name in ORDER}


def test_a_machine_is_told_of_a_tunnel() -> None:
    programs = dict.fromkeys(["simulator", *Role, *SIDES], ImageProgram(("/bin/own",), {}, "/", ""))
    entries = [*describe(request_of(tunnel_run()), programs)]
    assert [entry for entry in entries if entry[0].endswith(".mtu")] == [("client.mtu", "1420"), ("server.mtu", "1420")]
    assert ("client-gateway.collect", "/logs") in entries
    assert ("gateway grace", "5000000000") in entries
    assert not [entry for entry in describe(request_of(split_run()), programs) if entry[0].endswith(".mtu")]


@pytest.mark.parametrize("clock", ["real", "virtual"])
def test_traces_have_the_packets_of_the_endpoints(clock: str, tmp_path: Path) -> None:
    measured(FakeEngine(good=endpoint), tmp_path, clock)
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "sim").glob("*.pcap")}
    assert sizes.keys() == {"trace_node_left.pcap", "trace_node_right.pcap", "tunnel_left.pcap", "tunnel_right.pcap"}
    assert sizes["trace_node_left.pcap"] == 2 * sizes["tunnel_left.pcap"] - 24
    assert [path.name for path in tmp_path.iterdir()] == ["sim"]


@pytest.mark.parametrize("clock", ["real", "virtual"])
@pytest.mark.parametrize(
    ("gateway", "fault"),
    [
        (lossy, "the trace of the client-gateway lacks 3 packets"),
        (without_trace, "the client-gateway left no trace"),
    ],
)
def test_an_incomplete_trace_is_our_fault(
    clock: str, gateway: Callable[[Life], int], fault: str, tmp_path: Path
) -> None:
    with pytest.raises(HarnessFault, match=fault) as caught:
        measured(FakeEngine(**{"good": endpoint, LINK_GATEWAYS: gateway}), tmp_path, clock)
    assert caught.value.code is ErrorCode.SIMULATOR_FAILED
