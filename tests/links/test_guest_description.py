"""What a virtual machine is told of its run: programs, environments, addresses, rights and deadlines."""

import threading
from collections.abc import Mapping
from dataclasses import astuple, replace

import pytest

from quicsat.docker.containers import CONTRACT_CAPABILITIES
from quicsat.docker.daemon_images import ImageProgram
from quicsat.links.guest_description import CAPABILITIES, LOG_BYTES, SEEDED, SETTLE, describe, further_parts, host_names
from quicsat.links.memlock import MEMLOCK
from quicsat.links.session import (
    LOG_GRACE,
    READY_TIMEOUT,
    STOP_GRACE,
    Endpoint,
    FurtherFlow,
    RunControl,
    SessionRequest,
)
from quicsat.links.simulator_arguments import scenario
from quicsat.model.cpu_cost import DEFAULT, CostModel
from quicsat.model.emulated_link import CrossTraffic
from quicsat.model.flow import Flow, part_name
from quicsat.model.implementation import Protocol, Role
from quicsat.model.perturbation import NOMINAL
from quicsat.model.run import Run
from tests.fakes import CASE, run_of
from tests.links.test_ns3_testbed import SYMMETRIC

SIMULATOR = ImageProgram(("/simulate",), {"PATH": "/sim", "SCENARIO": "none"}, "/", "")
ENDPOINT = ImageProgram(("/entry", "word"), {"PATH": "/own", "GREETING": "a=b", "ROLE": "nobody"}, "/opt", "7:8")
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def keys(
    run: Run | None = None, roles: tuple[Role, ...] = tuple(Role), wait: float | None = None
) -> dict[str, list[str]]:
    """Values by key."""
    endpoints = {role: Endpoint(f"image of {role}", {"ROLE": str(role), "TESTCASE": "transfer"}) for role in roles}
    programs = {"simulator": SIMULATOR} | {str(role): ENDPOINT for role in roles}
    return values(SessionRequest(run or run_of(), endpoints, RunControl(threading.Event())), programs, wait)


def values(
    request: SessionRequest, programs: Mapping[str, ImageProgram], wait: float | None = None
) -> dict[str, list[str]]:
    """Values by key of the description of a run."""
    found: dict[str, list[str]] = {}
    for key, value in describe(request, programs, wait_for_ends=wait):
        found.setdefault(key, []).append(value)
    return found


def environment(found: Mapping[str, list[str]], part: str) -> dict[str, str]:
    entries = [entry.partition("=") for entry in found[f"{part}.environment"]]
    assert len({name for name, _, _ in entries}) == len(entries)
    return {name: value for name, _, value in entries}


def parts(found: Mapping[str, list[str]]) -> set[str]:
    """Those with a program."""
    return {key.removesuffix(".argument") for key in found if key.endswith(".argument")}


# ---- a transfer -----------------------------------------------------------------------------


def test_a_transfer() -> None:
    run = run_of(case=replace(CASE, timeout=12.5))
    found = keys(run)
    assert found["mode"] == ["transfer"]
    assert parts(found) == {"client", "simulator", "server"}
    assert found["client.argument"] == ["/entry", "word"]
    assert (found["client.directory"], found["client.user"], found["client.terminal"]) == (["/opt"], ["7:8"], ["1"])
    assert (found["simulator.user"], found["simulator.terminal"]) == ([""], ["0"])
    hostnames = [found[f"{part}.hostname"] for part in ("client", "simulator", "server")]
    assert hostnames == [["client"], ["sim"], ["server"]]
    assert [found[f"{part}.collect"] for part in ("client", "simulator", "server")] == [
        ["/logs", "/downloads"], ["/logs"], ["/logs"],
    ]  # fmt: skip
    assert found["client.memlock"] == found["server.memlock"] == [str(MEMLOCK)]
    assert found["output limit"] == [str(LOG_BYTES)]
    assert found["ready event"] == ['"event":"running"']
    assert "connected event" not in found


def test_costs_are_those_of_the_program_times_those_of_machine_and_member() -> None:
    model = CostModel(1e-6, 2e-6, 3e-6, datagram_sent=4.5e-6, datagram_received=5e-6, handshake=2e-3, file_read=1.5e-6)
    endpoints = {Role.CLIENT: Endpoint("image", {}, costs=model), Role.SERVER: Endpoint("image", {})}
    programs = {"simulator": SIMULATOR} | {str(role): ENDPOINT for role in Role}
    member = replace(NOMINAL, client_cpu=0.9, server_cpu=1.1)
    request = SessionRequest(run_of(), endpoints, RunControl(threading.Event()), perturbation=member)
    found = dict(describe(request, programs, cost_factor=2))
    assert found["client.costs"] == "360 90 1800 3600 5400 8100 9000 3600000 2700"
    usual = [200, 50, *(round(cost * 1e9) for cost in astuple(DEFAULT))]
    assert found["simulator.costs"] == " ".join(str(2 * cost) for cost in usual)
    assert found["server.costs"] == " ".join(str(round(2.2 * cost)) for cost in usual)
    assert set(dict(describe(request, programs, cost_factor=0))["server.costs"]) == {"0", " "}


def test_deadlines_are_nanoseconds_of_simulated_time() -> None:
    case = replace(CASE, timeout=12.5, link=SYMMETRIC.with_both(delay=0.3))
    found = keys(run_of(case=case))
    times = {name: int(found[name][0]) / 1e9 for name in found if name.split(" ")[-1] in ("timeout", "grace")}
    graces = {"stop grace": STOP_GRACE, "log grace": LOG_GRACE}
    assert times == {"ready timeout": READY_TIMEOUT, "transfer timeout": 12.5, **graces}
    assert found["linger"] == ["2400000000"]
    assert found["settle"] == [str(round(SETTLE * 1e9))]


def test_addresses_are_those_of_the_endpoint_contract() -> None:
    found = keys()
    assert found["client.address"] == ["eth0 193.167.0.100/24", "eth0 fd00:cafe:cafe:0::100/64"]
    assert found["server.address"] == ["eth0 193.167.100.100/24", "eth0 fd00:cafe:cafe:100::100/64"]
    assert found["simulator.address"] == [
        "eth0 193.167.0.2/24", "eth0 fd00:cafe:cafe:0::2/64", "eth1 193.167.100.2/24", "eth1 fd00:cafe:cafe:100::2/64",
    ]  # fmt: skip


def test_environments_are_merged_as_docker_merges_them() -> None:
    """What Docker sets, then the image's, then the run's: the later one counts."""
    found = keys()
    assert environment(found, "client") == {
        "PATH": "/own",
        "HOSTNAME": "client",
        "TERM": "xterm",
        **SEEDED,
        "GREETING": "a=b",
        "ROLE": "client",
        "TESTCASE": "transfer",
    }
    run = run_of()
    assert environment(found, "simulator") == {
        "PATH": "/sim",
        "HOSTNAME": "sim",
        **SEEDED,
        "SCENARIO": scenario(CASE.emulated, run.seed),
        "WAITFORSERVER": "server:443",
        "WAITTIMEOUT": "10",
    }


def test_an_image_without_an_environment_gets_the_default_path() -> None:
    request = SessionRequest(run_of(), {Role.CLIENT: Endpoint("i", {})}, RunControl(threading.Event()))
    found = values(request, {"simulator": SIMULATOR, Role.CLIENT: ImageProgram(("/entry",), {}, "/", "")}, 1.0)
    assert found["client.environment"][-1] == "OPENSSL_ia32cap=~0x4000000000000000:~0x40000"
    assert f"PATH={DEFAULT_PATH}" in found["client.environment"]


def test_rights_are_those_of_the_containers_of_real_time() -> None:
    found = keys()
    mask = int(found["client.capabilities"][0])
    held = {name for name, number in CAPABILITIES.items() if mask >> number & 1}
    assert mask.bit_count() == len(held)
    assert held.issuperset(CONTRACT_CAPABILITIES.added)
    assert held.isdisjoint(CONTRACT_CAPABILITIES.dropped)
    assert held == {
        "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "NET_BIND_SERVICE",
        "NET_RAW", "SYS_CHROOT", "NET_ADMIN",
    }  # fmt: skip
    assert found["server.capabilities"] == found["client.capabilities"]
    assert found["simulator.capabilities"] == [str(1 << 12 | 1 << 13 | 1 << 23)]


# ---- other runs -----------------------------------------------------------------------------


@pytest.mark.parametrize("role", Role)
def test_an_exits_check_with_one_role(role: Role) -> None:
    found = keys(roles=(role,), wait=30.0)
    assert found["mode"] == ["exits"]
    assert parts(found) == {"simulator", str(role)}
    assert found["transfer timeout"] == ["30000000000"]
    assert environment(found, "simulator")["WAITFORSERVER"] == ""


def test_cross_traffic() -> None:
    link = replace(SYMMETRIC, scenario="tcp-cross-traffic", cross_traffic=CrossTraffic("bbr"))
    found = keys(run_of(case=replace(CASE, link=link)))
    assert parts(found) == {"client", "simulator", "server", "receiver", "sender"}
    receiver, sender = found["receiver.argument"], found["sender.argument"]
    assert receiver[:2] == sender[:2] == ["sh", "-c"]
    assert receiver[3:] == ["193.167.0.2", "tcp-stream", "receive", "--port=5001"]
    assert sender[3:] == [
        "193.167.100.2", "tcp-stream", "send", "--host=193.167.0.100", "--congestion-control=bbr", "--port=5001",
    ]  # fmt: skip
    assert found["connected event"] == ['"event":"connected"']
    assert found["receiver.capabilities"] == found["sender.capabilities"] == [str(1 << 12)]
    assert "receiver.collect" not in found
    assert "--cross-port=5001" in environment(found, "simulator")["SCENARIO"]


def test_a_run_over_tcp_loses_tcp_packets() -> None:
    words = {protocol: environment(keys(replace(run_of(), protocol=protocol)), "simulator") for protocol in Protocol}
    assert {protocol for protocol in words if "--protocol=tcp" in words[protocol]["SCENARIO"]} == {Protocol.TCP}


def test_names_of_a_part() -> None:
    found: dict[str, list[str]] = {}
    for line in host_names("server").decode().splitlines():
        address, name = line.split("\t")
        found.setdefault(name, []).append(address)
    assert found["localhost"] == ["127.0.0.1", "::1"]
    assert found["server46"] == ["193.167.100.100", "fd00:cafe:cafe:100::100"]
    assert found["client"] == found["client4"] == ["193.167.0.100"]
    assert found["sim4"] == ["193.167.100.2"]
    assert "sim4\t193.167.0.2" not in host_names("server").decode()
    assert b"193.167.0.2\tsim4\n" in host_names("client")


def test_further_flows_have_endpoints_addresses_and_starts_of_their_own() -> None:
    flows = (Flow(), Flow("nginx-tcp", "curl", 2.5))
    first = replace(run_of(), test_case=replace(CASE, flows=flows))
    run = replace(first, others=(first, replace(first, protocol=Protocol.TCP)))
    ends = {role: Endpoint(f"image of {role}", {"ROLE": str(role)}) for role in Role}
    further = tuple(FurtherFlow(ends, flow.start) for flow in flows)
    request = SessionRequest(run, ends, RunControl(threading.Event()), further=further)
    programs = {"simulator": SIMULATOR} | {part_name(role, flow): ENDPOINT for role in Role for flow in (1, 2, 3)}
    found = values(request, programs)
    assert parts(found) == {"client", "server", "simulator", "client-2", "server-2", "client-3", "server-3"}
    assert found["client-2.address"] == ["eth0 193.167.0.101/24", "eth0 fd00:cafe:cafe::101/64"]
    assert found["server-3.address"] == ["eth0 193.167.100.102/24", "eth0 fd00:cafe:cafe:100::102/64"]
    assert (found["client-2.start"], found["client-3.start"]) == (["0"], ["2500000000"])
    assert found["server-3.hostname"] == ["server"]
    assert found["client-3.collect"] == ["/logs", "/downloads"]
    told = environment(found, "simulator")
    assert told["WAITFORSERVER"] == "server:443 193.167.100.101:443 193.167.100.102:443"
    assert "--protocol=both" in told["SCENARIO"]
    assert further_parts(request) == [(2, Role.CLIENT), (2, Role.SERVER), (3, Role.CLIENT), (3, Role.SERVER)]


def test_each_client_finds_the_server_of_its_flow() -> None:
    names = host_names("client", 2).decode().splitlines()
    assert "193.167.100.101\tserver4" in names
    assert "fd00:cafe:cafe:100::101\tserver6" in names
    assert "193.167.0.101\tclient" in names
    assert "193.167.0.2\tsim4" in names
