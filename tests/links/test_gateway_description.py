"""Gateways with both clocks: their place, their rights, when a run may begin, and whose fault it is if one ends."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.docker.daemon_images import ImageProgram
from quicsat.links.addresses import CLIENT_SIDE as CLIENT_SIDE_ADDRESSES
from quicsat.links.gateway_description import CAPABILITIES, READY, ROUTER, SIDES, Layout, gateway_files, layout_of
from quicsat.links.guest_description import CAPABILITIES as NUMBERS
from quicsat.links.guest_description import describe
from quicsat.links.ns3_testbed import Ns3Backend
from quicsat.links.session import Endpoint, FurtherFlow, InputOrigin, RunControl, SessionRecord, SessionRequest
from quicsat.links.simulator_arguments import scenario
from quicsat.links.virtual_machine import START, VirtualBackend
from quicsat.model.clock import Clock
from quicsat.model.emulated_link import ClientSide, ClientSideDirection, EmulatedLink, UniformLoss
from quicsat.model.errors import HarnessFault
from quicsat.model.flow import Flow
from quicsat.model.gateways import LINUX_ENDPOINTS, PEPS, VPNS, Pep, Vpn, VpnTransport
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
    Program,
    connect,
    endpoint,
    leave_endpoint_trace,
    link_gateways,
    run_of,
    simulate,
    traces,
)
from tests.links.test_guest_description import values

TCP_TUNNEL = replace(VPNS["openvpn"], transport=VpnTransport.TCP)
SPLIT = replace(LINK, pep=PEPS["D"], endpoint_tcp=LINUX_ENDPOINTS)
IMAGES = {name: name for name in (SIMULATOR, VIRTUAL_TIME, LINK_GATEWAYS)}
ORDER = ("client-holder", "client-gateway-holder", "simulator-holder", "server-gateway-holder", "server-holder")


PROGRAMS = dict.fromkeys(["simulator", *Role, *SIDES], ImageProgram(("/bin/own",), {}, "/", ""))


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


def measure(engine: FakeEngine, *runs: Run, clock: Clock = Clock.REAL, folder: Path | None = None) -> SessionRecord:
    """Makes runs on one testbed, takes their traces if there is a folder; the record of the last one."""
    opened = backend(engine) if clock is Clock.REAL else VirtualBackend(connect(engine), IMAGES, 0.0)
    with opened.open() as testbed:
        for run in runs:
            record = SessionRecord()
            with testbed.session(request_of(run), record) as session:
                session.run()
                if folder:
                    session.collect(folder, None)
    assert engine.lives == {}
    return record


def part(life: Life) -> str:
    """``quicsat-test-7-client-holder`` -> ``client-holder``."""
    return life.name.split("-", 3)[3]


def gateways_that(act: Callable[[Life], None], status: int | None = None) -> Program:
    """Gateways that do something and end, or wait for their end."""

    def gateway(life: Life) -> int:
        if life.command[0] == "plumb":
            return link_gateways(life)
        act(life)
        if status is None:
            life.terminated.wait()
        return 143 if status is None else status

    return gateway


COLLAPSE = gateways_that(lambda life: life.say("Cannot find device eth1"), status=1)


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


def test_fast_open_is_a_kernel_parameter_of_the_endpoints() -> None:
    layout = Layout(endpoint_tcp=replace(LINUX_ENDPOINTS, fast_open=True), pep=PEPS["D"])
    assert layout.endpoint_sysctls["net.ipv4.tcp_fastopen"] == "1027"
    assert "net.ipv4.tcp_fastopen" not in layout.gateway_sysctls


def test_a_buffer_is_never_larger_at_first_than_at_last() -> None:
    small = Layout(endpoint_tcp=replace(LINUX_ENDPOINTS, send_buffer=8192, receive_buffer=65536)).endpoint_sysctls
    assert small == {"net.ipv4.tcp_wmem": "4096 8192 8192", "net.ipv4.tcp_rmem": "4096 65536 65536"}


# ---- real time ------------------------------------------------------------------------------


def test_gateways_stand_between_endpoints_and_simulator() -> None:
    engine = FakeEngine(good=endpoint)
    assert measure(engine, split_run()).exits_of(1)[Role.CLIENT].status == 0
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
    measure(engine, split_run())
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
    measure(engine, split_run(), split_run(), other)
    assert sum(life.command == ("holder",) for life in engine.all_lives) == 3 + 5 + 5


def test_a_client_waits_for_gateways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quicsat.links.container_session.READY_TIMEOUT", 0.5)
    engine = FakeEngine(**{"good": endpoint, LINK_GATEWAYS: gateways_that(lambda _: None)})
    record = measure(engine, split_run())
    assert record.timed_out.value == "ready"
    assert Role.CLIENT not in {Role(life.environment["ROLE"]) for life in engine.all_lives if life.status == "running"}


@pytest.mark.parametrize(("clock", "gateway"), [(Clock.REAL, "a gateway"), (Clock.VIRTUAL, "the client-gateway")])
def test_a_gateway_that_ends_is_our_fault(clock: Clock, gateway: str) -> None:
    engine = FakeEngine(**{"good": endpoint, LINK_GATEWAYS: COLLAPSE})
    with pytest.raises(HarnessFault, match=rf"{gateway} ended \(1\): .*Cannot find device eth1") as caught:
        measure(engine, split_run(), clock=clock)
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


@pytest.mark.parametrize(("run", "disks"), [(split_run(), ["ubd5rc=/roots/link-gateways.erofs"]), (run_of(), [])])
def test_a_machine_with_gateways_has_a_disk_for_them(run: Run, disks: list[str]) -> None:
    engine = FakeEngine(good=endpoint)
    assert measure(engine, run, clock=Clock.VIRTUAL).exits_of(1)[Role.CLIENT].status == 0
    [machine] = [life for life in engine.all_lives if life.command[:1] == ("run",)]
    assert [word for word in machine.command if word.startswith("ubd5rc=")] == disks
    assert (LINK_GATEWAYS in engine.roots) == bool(disks)


def test_what_a_machine_is_told() -> None:
    found = values(request_of(split_run()), PROGRAMS)
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
    measure(engine, run_of(case=replace(CASE, link=replace(BESIDE, pep=pep))))
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
    request = request_of(run_of(case=replace(CASE, link=BESIDE)))
    found = [*describe(request, PROGRAMS)]
    assert ("client side", "1") in found
    assert sum(key == "simulator.address" for key, _ in found) == 8
    assert ("simulator.sysctl", "net.ipv4.conf.all.arp_ignore=1") in found


@pytest.mark.parametrize("clock", Clock)
@pytest.mark.parametrize(
    ("protocol", "pep"), [(Protocol.TCP, None), (Protocol.TCP, PEPS["A"]), (Protocol.HQ, PEPS["A"])]
)
def test_the_trace_of_the_client_is_the_first_unless_a_proxy_splits_its_connection(
    protocol: Protocol, pep: Pep | None, clock: Clock, tmp_path: Path
) -> None:
    engine = FakeEngine(**{"good": endpoint, SIMULATOR: leave_three_traces})
    run = replace(run_of(case=replace(CASE, link=replace(BESIDE, pep=pep))), protocol=protocol)
    measure(engine, run, clock=clock, folder=tmp_path)
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "sim").glob("*.pcap")}
    split = protocol is Protocol.TCP and pep is not None
    third = "trace_client.pcap" if split else "link_left.pcap"
    assert sizes.keys() == {"trace_node_left.pcap", "trace_node_right.pcap", third}
    own, link = sizes["trace_client.pcap" if split else "trace_node_left.pcap"], sizes["trace_node_right.pcap"]
    assert own < link


# ---- several flows --------------------------------------------------------------------------


def flows_of(link: EmulatedLink, protocol: Protocol = Protocol.TCP) -> SessionRequest:
    """A run of three flows, the first one over ``protocol``, the others over QUIC."""
    first = run_of(case=replace(CASE, link=link, flows=(Flow(), Flow())))
    run = replace(first, protocol=protocol, others=(first, first))
    own = request_of(run)
    return replace(own, further=(FurtherFlow(own.endpoints, 0.0),) * 2)


@pytest.mark.parametrize("beside", [None, BESIDE.client_side])
def test_several_flows_share_gateways_behind_the_bridges_of_the_simulator(beside: ClientSide | None) -> None:
    engine = FakeEngine(good=endpoint)
    request = flows_of(replace(SPLIT, client_side=beside))
    with backend(engine).open() as testbed, testbed.session(request, SessionRecord()):
        held = {part(life): life for life in engine.all_lives if life.command == ("holder",)}
        addresses = dict(each.split("=") for each in held["simulator-holder"].environment["ADDRESSES"].split(";"))
        [plumb] = [life for life in engine.all_lives if life.command[:1] == ("plumb",) and len(life.command) == 10]
        gateways = {life.command for life in engine.all_lives if life.environment.get("FLOWS") == "3"}
        assert "net.ipv4.conf.all.arp_ignore" in held["simulator-holder"].host_config["sysctls"]
    assert plumb.environment.get("CLIENT_SIDE") == ("1" if beside else None)
    assert plumb.command[-1] == str(held["server-3-holder"].pid)
    assert gateways == {("shared-gateway", "client"), ("shared-gateway", "server")}
    between = {"eth2": "193.167.0.2/24,fd00:cafe:cafe:0::2/64", "eth3": "193.167.100.2/24,fd00:cafe:cafe:100::2/64"}
    near, far = (each.partition("=")[2] for each in CLIENT_SIDE_ADDRESSES.split(";"))
    own = {"eth0": near, "eth4": far} if beside else {"eth0": ""}
    assert addresses == {**own, "eth1": "", **between}
    assert engine.lives == {}


def test_shared_gateways_are_part_of_the_simulator_in_a_machine() -> None:
    """The machine joins endpoints and bridges only."""
    programs = PROGRAMS | {f"{role}-{flow}": PROGRAMS["simulator"] for role in Role for flow in (2, 3)}
    found = values(flows_of(SPLIT), programs)
    assert not [key for key in found if "gateway" in key or key in ("simulator.address", "sampled")]
    assert found["simulator.argument"] == ["several-flows"]
    rights = {*CAPABILITIES, "SETPCAP", "SYS_ADMIN", "SYS_NICE"}
    assert found["simulator.capabilities"] == [str(sum(1 << NUMBERS[name] for name in rights))]
    told = dict(each.split("=", 1) for each in found["simulator.environment"])
    assert (told["PROXY"], told["FLOWS"], told["INITIAL_WINDOW"]) == ("split", "3", "100")
    assert "net.ipv4.ip_forward=1" in told["SYSCTLS"].split(";")
    assert told["CLIENT_GATEWAY"].startswith("eth0=193.167.0.4/32,")
    assert "--output=/sampler/tcp_info.csv" in told["SAMPLES"].split()
    assert found["simulator.collect"] == ["/logs", "/client-gateway", "/server-gateway", "/sampler"]
    quic = values(flows_of(SPLIT, Protocol.HQ), programs)
    assert "SAMPLES=" in quic["simulator.environment"]


def test_keys_and_traces_of_a_tunnel_of_several_flows(tmp_path: Path) -> None:
    engine = FakeEngine(good=endpoint)
    request = flows_of(replace(LINK, vpn=VPNS["wireguard"]), Protocol.HQ)
    record = SessionRecord()
    with VirtualBackend(connect(engine), IMAGES).open() as testbed, testbed.session(request, record) as session:
        session.run()
        session.collect(tmp_path, None)
        [machine] = [life for life in engine.all_lives if life.command[:1] == ("run",)]
        assert f"ubd3rc=/roots/{LINK_GATEWAYS}.erofs" in machine.command
        assert not [word for word in machine.command if word.startswith("ubd5rc=")]
    names = {path.name for path in (tmp_path / "sim").iterdir()}
    assert {"tunnel_left.pcap", "tunnel_right.pcap", "trace_node_left.pcap"} <= names


# ---- tunnels --------------------------------------------------------------------------------


def tunnel_run(vpn: Vpn = VPNS["wireguard"]) -> Run:
    return run_of(case=replace(CASE, link=replace(LINK, vpn=vpn)))


def leave_lossy_trace(life: Life) -> None:
    """As gateways whose kernel had no room for packets of the trace."""
    leave_endpoint_trace(life, dropped=3)
    leave_no_trace(life)


def leave_no_trace(life: Life) -> None:
    life.say('{"event": "ready"}')


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


@pytest.mark.parametrize(
    ("tunnel", "protocol", "words"),
    [
        (VPNS["wireguard"], Protocol.TCP, {"--client-side-protocol=tcp"}),
        (VPNS["wireguard"], Protocol.HQ, set()),
        (TCP_TUNNEL, Protocol.TCP, {"--protocol=tcp"}),
        (TCP_TUNNEL, Protocol.HQ, {"--protocol=tcp", "--client-side-protocol=udp"}),
    ],
)
def test_the_link_at_the_clients_side_carries_packets_outside_a_tunnel(
    tunnel: Vpn, protocol: Protocol, words: set[str]
) -> None:
    link = replace(LINK, vpn=tunnel, client_side=ClientSide(ClientSideDirection(0.002)))
    assert {word for word in scenario(link, 1, protocol).split() if "protocol=" in word} == words


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
    measure(engine, tunnel_run())
    programs = [life for life in engine.all_lives if life.command[:1] == ("gateway",)]
    for life in programs:
        assert life.host_config["devices"] == ["/dev/net/tun:/dev/net/tun:rwm"]
        assert {"run/vpn/private.key", "run/vpn/peer.key"} <= {*life.files}
    mtus = {part(life): life.environment.get("MTU") for life in engine.all_lives if life.command == ("holder",)}
    assert mtus == {name: "1420" if name in ("client-holder", "server-holder") else None for name in ORDER}


def test_a_machine_is_told_of_a_tunnel() -> None:
    entries = [*describe(request_of(tunnel_run()), PROGRAMS)]
    assert [entry for entry in entries if entry[0].endswith(".mtu")] == [("client.mtu", "1420"), ("server.mtu", "1420")]
    assert ("client-gateway.collect", "/logs") in entries
    assert ("gateway grace", "5000000000") in entries
    assert not [entry for entry in describe(request_of(split_run()), PROGRAMS) if entry[0].endswith(".mtu")]


@pytest.mark.parametrize("clock", Clock)
def test_traces_have_the_packets_of_the_endpoints(clock: Clock, tmp_path: Path) -> None:
    measure(FakeEngine(good=endpoint), tunnel_run(), clock=clock, folder=tmp_path)
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "sim").glob("*.pcap")}
    assert sizes.keys() == {"trace_node_left.pcap", "trace_node_right.pcap", "tunnel_left.pcap", "tunnel_right.pcap"}
    assert sizes["trace_node_left.pcap"] == 2 * sizes["tunnel_left.pcap"] - 24
    assert [path.name for path in tmp_path.iterdir()] == ["sim"]


@pytest.mark.parametrize("clock", Clock)
@pytest.mark.parametrize(
    ("act", "fault"),
    [
        (leave_lossy_trace, "the trace of the client-gateway lacks 3 packets"),
        (leave_no_trace, "the client-gateway left no trace"),
    ],
)
def test_an_incomplete_trace_is_our_fault(
    clock: Clock, act: Callable[[Life], None], fault: str, tmp_path: Path
) -> None:
    engine = FakeEngine(**{"good": endpoint, LINK_GATEWAYS: gateways_that(act)})
    with pytest.raises(HarnessFault, match=fault) as caught:
        measure(engine, tunnel_run(), clock=clock, folder=tmp_path)
    assert caught.value.code is ErrorCode.SIMULATOR_FAILED
