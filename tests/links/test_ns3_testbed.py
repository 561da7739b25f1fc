"""Emulated links: what the simulator is told, names and addresses of the contract, and testbeds that clean up."""

import json
import math
import threading
from collections import Counter
from dataclasses import asdict, replace
from operator import attrgetter
from pathlib import Path
from queue import SimpleQueue
from signal import Signals
from typing import Any

import pytest
import requests.exceptions

from quicsat.analysis.queue_drops import client_side_loss, client_side_queue_loss, link_loss
from quicsat.docker import containers
from quicsat.docker.containers import ContainerEvent
from quicsat.links import ns3_testbed
from quicsat.links.addresses import ADDRESSES, GATEWAYS, hosts
from quicsat.links.memlock import MEMLOCK
from quicsat.links.ns3_testbed import Ns3Backend
from quicsat.links.session import Endpoint, FurtherFlow, RunControl, SessionRecord, SessionRequest
from quicsat.links.simulator_arguments import scenario, simulator_files
from quicsat.links.simulator_report import read_report
from quicsat.model.emulated_link import (
    ClientSideReport,
    CrossTrafficReport,
    Demand,
    DemandReport,
    Direction,
    DirectionReport,
    EmulatedLink,
    Interval,
    NatMapping,
    Profile,
    ProfileReport,
    Rebinding,
    UdpCrossTrafficReport,
)
from quicsat.model.errors import HarnessFault
from quicsat.model.flow import Flow
from quicsat.model.implementation import Protocol, Role
from quicsat.model.outcomes import ErrorCode
from tests.fakes import (
    CASE,
    COUNTERS,
    PATIENCE,
    REPORT,
    SIMULATOR,
    FakeEngine,
    Life,
    connect,
    endpoint,
    run_of,
    simulate,
)
from tests.results_builder import SATLOSS

SYMMETRIC = EmulatedLink.symmetric("simple-p2p", Direction(0.015, 20e6, 25))


# ---- the simulator's words ------------------------------------------------------------------


GEOMETRY = "--delay=15ms --bandwidth=20000000bps --queue=25"


def test_losses_of_a_run_over_tcp_are_those_of_tcp() -> None:
    words = scenario(SATLOSS.emulated, 1)
    assert scenario(SATLOSS.emulated, 1, Protocol.TCP) == words.replace(" --queue-mode", " --protocol=tcp --queue-mode")
    assert scenario(SATLOSS.emulated, 1, Protocol.H3) == words


STEPS = Profile("leo.csv", 3.0, (0.0, 1.5), (10e6, 0.0), (0.02, 0.0301), (0.0, 0.015))


def test_profiles_and_capacity_on_demand() -> None:
    link = SYMMETRIC.with_forward(profile=STEPS).with_back(profile=replace(STEPS, loop=False, start=0.25))
    link = replace(link, demand=Demand(0.0265, 0.56, 100, 64e3))
    words = (
        "--profile-to-client=/profiles/client --profile-period-to-client=3000000000ns --profile-start-to-client=0ns "
        "--profile-to-server=/profiles/server --profile-start-to-server=250000000ns "
        "--demand-frame=26500000ns --demand-delay=560000000ns --demand-slot=100 --demand-constant-rate=64000bps"
    )
    assert scenario(link, 7) == f"simple-p2p {GEOMETRY} {words} --queue-mode=exact --seed=7"
    lines = b"0 10000000 20000000 0\n1500000000 0 30100000 0.015\n"
    assert simulator_files(link) == {"profiles/client": lines, "profiles/server": lines}
    assert simulator_files(SYMMETRIC.with_back(profile=Profile("x", 1.0, (0.0,), losses=(0.5,)))) == {
        "profiles/server": b"0 - - 0.5\n"
    }
    assert simulator_files(SYMMETRIC) == {}


def test_random_starts_depend_on_the_seed_and_are_the_same_for_both_directions() -> None:
    profile = replace(STEPS, start=None)
    begins = [profile.begin(seed) for seed in range(200)]
    assert begins == [profile.begin(seed) for seed in range(200)]
    assert 0 <= min(begins) < 0.1 < 2.9 < max(begins) < 3
    assert replace(profile, length=6.0).begin(5) == pytest.approx(2 * profile.begin(5), abs=0.002)
    assert "--profile-start-to-client=" in scenario(SYMMETRIC.with_forward(profile=profile), 7)


# ---- the contract (qir-reference.md, 1.3) ---------------------------------------------------


def test_names_of_the_contract() -> None:
    addresses = {
        "client": ("193.167.0.100", "fd00:cafe:cafe::100"),
        "server": ("193.167.100.100", "fd00:cafe:cafe:100::100"),
        "sim": ("193.167.0.2", "fd00:cafe:cafe::2"),
    }
    assert hosts(GATEWAYS["client"]) == tuple(
        row
        for name, (four, six) in addresses.items()
        for row in ((name, four), (f"{name}4", four), (f"{name}6", six), (f"{name}46", four), (f"{name}46", six))
    )
    assert ("sim", "193.167.100.2") in hosts(GATEWAYS["server"])


def test_addresses_of_the_contract() -> None:
    assert ADDRESSES["client"] == "eth0=193.167.0.100/24,fd00:cafe:cafe:0::100/64"
    assert ADDRESSES["server"] == "eth0=193.167.100.100/24,fd00:cafe:cafe:100::100/64"
    assert ADDRESSES["simulator"].split(";") == [
        "eth0=193.167.0.2/24,fd00:cafe:cafe:0::2/64",
        "eth1=193.167.100.2/24,fd00:cafe:cafe:100::2/64",
    ]


# ---- testbeds -------------------------------------------------------------------------------


def test_a_testbed_has_no_network_of_the_host_and_no_rights_but_its_own() -> None:
    engine = FakeEngine()
    backend = Ns3Backend(connect(engine), SIMULATOR)
    with backend.open() as testbed:
        holders = {life.hostname: life for life in engine.lives.values()}
        assert set(holders) == {"client", "sim", "server"}
        for holder in holders.values():
            assert holder.host_config["network_mode"] == "none"
            assert (holder.host_config["cap_add"], holder.host_config["cap_drop"]) == (["NET_ADMIN"], ["ALL"])
            assert holder.host_config["sysctls"]["net.ipv4.ip_forward"] == "0"
        assert testbed.network(Role.CLIENT) == f"container:{holders['client'].id}"
        assert testbed.network(Role.SERVER) == f"container:{holders['server'].id}"
        [plumb] = [life for life in engine.all_lives if life.command[:1] == ("plumb",)]
        assert plumb.command == ("plumb", *(str(holders[name].pid) for name in ("client", "sim", "server")))
        assert all(
            life.host_config["network_mode"] != "host" and life.host_config["pid_mode"] is None
            for life in engine.all_lives
            if life is not plumb
        )
        with backend.open() as other:
            assert testbed.network(Role.CLIENT) != other.network(Role.CLIENT)
    assert engine.lives == {}


def test_a_testbed_that_cannot_be_plumbed_leaves_nothing() -> None:
    def refuse(life: Life) -> int:
        if life.command[:1] == ("plumb",):
            life.say("Operation not permitted")
            return 2
        return simulate(life)

    engine = FakeEngine(simulator=refuse)
    with pytest.raises(HarnessFault, match="Operation not permitted"), Ns3Backend(connect(engine), SIMULATOR).open():
        pass
    assert engine.lives == {}


def test_reset_notices_a_holder_that_has_ended() -> None:
    engine = FakeEngine()
    with Ns3Backend(connect(engine), SIMULATOR).open() as testbed:
        testbed.reset()
        next(iter(engine.lives.values())).end(1)
        with pytest.raises(HarnessFault, match="has ended"):
            testbed.reset()


def test_holders_get_no_signal_before_they_handle_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel drops one for a container's first process."""
    looks = Counter[str]()

    def takes(_pid: int, identity: str, signal: Signals) -> bool:
        looks[identity] += signal is Signals.SIGHUP
        return looks[identity] > 2

    class Drowsy(FakeEngine):
        def kill(self, identity: str, signal: str) -> None:
            if looks[identity] > 2:
                super().kill(identity, signal)

    monkeypatch.setattr(containers, "takes_signal", takes)
    with Ns3Backend(connect(Drowsy()), SIMULATOR).open() as testbed:
        testbed.reset()


# ---- what a daemon can do -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refused", "priority", "memlock"), [("", True, MEMLOCK), ("chrt", False, MEMLOCK), ("memlock", True, None)]
)
def test_abilities_are_found_once(refused: str, priority: bool, memlock: int | None) -> None:
    def probe(life: Life) -> int:
        asked = {"chrt": life.command[:1] == ("chrt",), "memlock": bool(life.host_config["ulimits"])}
        return 1 if asked.get(refused) else simulate(life)

    engine = FakeEngine(simulator=probe)
    backend = Ns3Backend(connect(engine), SIMULATOR)
    assert backend.notes == ()
    with backend.open() as testbed:
        assert [testbed.memlock(role) for role in Role] == [memlock, memlock]
    probes = engine.log.count(("create", "probe"))
    with backend.open():
        assert engine.log.count(("create", "probe")) == probes
    assert len(backend.notes) == (not priority) + (memlock is None)
    abilities = ns3_testbed.probe(connect(engine), SIMULATOR)
    assert abilities.realtime_priority == priority


def test_a_daemon_that_is_away_has_not_refused_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine()
    daemon = connect(engine)

    def vanish(*_: str) -> None:
        raise requests.exceptions.ConnectionError("Connection aborted.")

    monkeypatch.setattr(engine, "start", vanish)
    monkeypatch.setattr(engine, "ping", vanish)
    with pytest.raises(HarnessFault, match="Connection aborted"):
        ns3_testbed.probe(daemon, SIMULATOR)


# ---- the link of a run ----------------------------------------------------------------------


def test_the_simulator_is_told_all_and_may_little() -> None:
    engine = FakeEngine(good=endpoint)
    run = run_of(case=replace(CASE, link=SYMMETRIC.with_forward(profile=STEPS)))
    with Ns3Backend(connect(engine), SIMULATOR).open() as testbed, testbed.link(run):
        [life] = [life for life in engine.lives.values() if "SCENARIO" in life.environment]
        assert life.environment["SCENARIO"] == scenario(run.test_case.emulated, run.seed)
        assert life.environment["WAITFORSERVER"] == "server:443"
        assert life.host_config["cap_drop"] == ["ALL"]
        assert life.host_config["cap_add"] == ["NET_ADMIN", "NET_RAW", "SYS_NICE"]
        assert life.files["profiles/client"] == simulator_files(run.test_case.emulated)["profiles/client"]


def test_a_link_that_carried_nothing_has_no_report(tmp_path: Path) -> None:
    engine = FakeEngine()
    events: SimpleQueue[ContainerEvent] = SimpleQueue()
    with Ns3Backend(connect(engine), SIMULATOR).open() as testbed, testbed.link(run_of()) as link:
        link.start(events)
        event = events.get(timeout=PATIENCE)
        assert not link.ready(event)
        assert not link.running()
        assert link.collect(tmp_path) is None


@pytest.mark.parametrize("line", ["running", '"running"', "[]", '{"event": "waiting"}', "{", "", None])
def test_only_one_line_means_ready(line: str | None) -> None:
    engine = FakeEngine()
    with Ns3Backend(connect(engine), SIMULATOR).open() as testbed, testbed.link(run_of()) as link:
        assert not link.ready(ContainerEvent(link._container, line))
        assert link.ready(ContainerEvent(link._container, '{"event":"running","started":1.5}'))


def test_report() -> None:
    report = read_report(REPORT)
    assert report.forward == DirectionReport(7802, 7749, 53, 0)
    assert report.back == DirectionReport(3986, 3986, 0, 0)
    assert (report.lag_max, report.realtime_priority) == (0.0005, True)
    assert (report.demand, report.client_side, client_side_loss(report), report.lateness) == (None,) * 4


PROFILES = {
    "forward_profile": {"began": 5.25, "changes": 4, "steps": [[5.25, 1e6, None, None]]},
    "return_profile": {"began": None, "changes": 0, "steps": []},
}
BESIDE_COUNTERS = COUNTERS | {"received": 100, "delivered": 95, "queue_drops": 3, "loss_drops": 2}
CROSS = CrossTrafficReport(5.0, 7.0, 2500, 10_000.0, (1500, 1000), 2, 1)
UDP_CROSS = UdpCrossTrafficReport(1.5, 2.5, 100, 20, 79)
MAPPING = NatMapping("193.167.0.100:4433", "193.167.0.7:50000")


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (PROFILES, {"forward.profile": ProfileReport(5.25, 4), "back.profile": ProfileReport(None, 0)}),
        (
            {"demand": {"frames": 40, "requests": 3, "requested": 3000, "assigned": 3100, "constant": 200}},
            {"demand": DemandReport(40, 3, 3000, 3100, 200)},
        ),
        (
            {"client_side": {"forward": BESIDE_COUNTERS, "return": COUNTERS}},
            {"client_side": ClientSideReport(DirectionReport(100, 95, 3, 2), DirectionReport(0, 0, 0, 0))},
        ),
        (
            {"return_udp_cross_traffic": asdict(UDP_CROSS)},
            {"back.udp_cross_traffic": UDP_CROSS, "forward.udp_cross_traffic": None},
        ),
        (
            {"forward": REPORT["forward"] | {"corrupted": 1, "listed_drops": 2, "blackhole_drops": 3, "nat_drops": 4}},
            {"forward": DirectionReport(7802, 7749, 53, 0, 1, 2, 3, 4)},
        ),
        ({"blackholes": [[1.5, 2.5]]}, {"blackholes": (Interval(1.5, 2.5),)}),
        ({"rebinds": [{"time": 3.5, "mappings": [asdict(MAPPING)]}]}, {"rebinds": (Rebinding(3.5, (MAPPING,)),)}),
        ({"cross_traffic": asdict(CROSS)}, {"cross_traffic": CROSS}),
    ],
)
def test_report_of_elements(told: dict[str, Any], expected: dict[str, Any]) -> None:
    report = read_report(REPORT | told)
    assert {name: attrgetter(name)(report) for name in expected} == expected


def test_losses_at_the_clients_side_are_not_those_of_the_link() -> None:
    report = read_report(REPORT | {"client_side": {"forward": BESIDE_COUNTERS, "return": COUNTERS}})
    assert (client_side_loss(report), client_side_queue_loss(report), link_loss(report)) == (0.02, 0.03, 0)


def way(frames: list[int], largest: list[float]) -> dict[str, object]:
    """A direction of a link.json's lateness."""
    return {"p50": 0.0001, "p99": 0.002, "p999": 0.05, "frames_per_interval": frames, "max_per_interval": largest}


LATENESS = {
    "bound": 0.01,
    "interval": 0.1,
    "forward": way([100, 0, 200, 300, 1], [0.5, 0.0, 0.002, 0.03, 9.0]),
    "return": way([10, 0, 20], [0.4, 0.0, 0.001]),
    "stalls": [[1000.0, 1000.3, 100, 10, 0.5], [1000.31, 1000.34, 5, 1, 0.03], [1000.4, 1009.4, 1, 0, 9.0]],
}


def test_lateness_is_that_of_the_clients_life() -> None:
    """Frames and stalls before its start and after its end do not count; of a stall, the part that overlaps."""
    document = REPORT | {"started": 1000.0, "stopped": 1010.0, "lateness": LATENESS}
    found = read_report(document, Interval(1000.25, 1000.35)).lateness
    assert (found.forward.frames, found.forward.late, found.forward.maximum) == (500, 5, 0.03)
    assert (found.back.frames, found.back.late, found.back.maximum) == (20, 1, 0.001)
    assert (found.bound, found.forward.p50, found.back.p999) == (0.01, 0.0001, 0.05)
    assert found.late_share == 6 / 520
    assert found.stalls == 2
    assert found.life == pytest.approx(0.1)
    assert [found.stalled, found.longest_stall] == pytest.approx([0.08, 0.05])
    assert found.stalled_share == pytest.approx(0.8)


def test_lateness_without_the_clients_times_is_that_of_the_whole_run() -> None:
    found = read_report(REPORT | {"started": 1000.0, "stopped": 1010.0, "lateness": LATENESS}).lateness
    assert (found.forward.frames, found.forward.late, found.maximum) == (601, 106, 9.0)
    assert (found.back.frames, found.back.late) == (30, 11)
    assert [found.life, found.stalls, found.stalled_share] == pytest.approx([10.0, 3, 0.933])


@pytest.mark.parametrize("missing", sorted(REPORT))
def test_a_report_with_something_missing_is_none(missing: str) -> None:
    with pytest.raises((KeyError, TypeError)):
        read_report({name: value for name, value in REPORT.items() if name != missing})


HUGE = 10**400


@pytest.mark.parametrize(
    "wrong",
    [
        {"started": math.nan},
        {"stopped": 1e308},
        {"lag": {"mean": 0.0, "max": HUGE}},
        {"forward": REPORT["forward"] | {"received": math.inf}},
        {"lateness": LATENESS | {"interval": 0}},
        {"lateness": LATENESS | {"bound": math.nan}},
        {"lateness": LATENESS | {"stalls": [[1.0, math.inf, 1, 1, 1.0]]}},
        {"lateness": LATENESS | {"return": way([1], [math.nan])}},
        {"lateness": LATENESS | {"return": way([HUGE], [0.0])}},
    ],
)
def test_numbers_of_a_report_are_finite(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        read_report(REPORT | {"started": 1000.0, "stopped": 1010.0, "lateness": LATENESS} | wrong)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", json.dumps(REPORT).encode()[:-9]])
def test_a_broken_report_is_our_fault(content: bytes, tmp_path: Path) -> None:
    engine = FakeEngine()
    with Ns3Backend(connect(engine), SIMULATOR).open() as testbed, testbed.link(run_of()) as link:
        assert link.ready(ContainerEvent(link._container, '{"event":"running"}'))
        [life] = [life for life in engine.lives.values() if "SCENARIO" in life.environment]
        life.files["logs/link.json"] = content
        with pytest.raises(HarnessFault) as caught:
            link.collect(tmp_path)
    assert caught.value.code == ErrorCode.SIMULATOR_FAILED


def test_a_testbed_with_two_flows_has_two_namespaces_on_each_side() -> None:
    first = run_of(case=replace(CASE, flows=(Flow(),)))
    run = replace(first, others=(first,))
    engine = FakeEngine(good=endpoint)
    with Ns3Backend(connect(engine), SIMULATOR).open() as testbed:
        ends = {role: Endpoint("good", {"ROLE": str(role), "TESTCASE": "transfer", "REQUESTS": ""}) for role in Role}
        request = SessionRequest(run, ends, RunControl(threading.Event()), further=(FurtherFlow(ends, 0.0),))
        with testbed.session(request, SessionRecord()):
            [plumb] = [life for life in engine.all_lives if life.command[:1] == ("plumb",) and len(life.command) == 6]
            names = ("client-holder", "simulator-holder", "server-holder", "client-2-holder", "server-2-holder")
            held = [next(life for life in reversed(engine.all_lives) if life.name.endswith(name)) for name in names]
            assert plumb.command[1:] == tuple(str(life.pid) for life in held)
            assert held[3].environment["ADDRESSES"] == "eth0=193.167.0.101/24,fd00:cafe:cafe::101/64"
            assert held[4].environment["ADDRESSES"] == "eth0=193.167.100.101/24,fd00:cafe:cafe:100::101/64"
            assert held[4].hostname == "server"
            [second] = [life for life in engine.all_lives if life.name.endswith("-client-2")]
            assert second.host_config["network_mode"] == f"container:{held[3].id}"
    assert engine.lives == {}
