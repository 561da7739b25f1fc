"""Real links at an engine of threads: what is made on both hosts, captures, probes, and whose fault is whose."""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from unittest.mock import patch

import docker
import pytest
import requests.exceptions

from quicsat.analysis.analyse import SERVER_TRACE, analyse
from quicsat.cli.progress import Progress
from quicsat.docker.client import Daemon
from quicsat.docker.containers import ContainerEvent, ContainerSpec, create_container
from quicsat.links import real
from quicsat.links.host_pair import HostPair
from quicsat.links.real import HostLocks, RealBackend, captured, names
from quicsat.links.tcp_samples import LOGS, options
from quicsat.model.errors import HarnessFault, InputError, MachineError
from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Protocol, Role
from quicsat.model.link_format import format_baseline
from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.model.real_link import CLOCKS, Baseline, CaptureReport, Host, RealDirection, RealLink, RealLinkReport
from quicsat.model.results import ResultSet
from quicsat.model.run import Run
from quicsat.model.units import MBPS
from quicsat.report.run_tables import accesses
from quicsat.results.store import load, write_result_json
from quicsat.traces.run_traces import TCP_INFO
from tests.fakes import (
    CASE,
    LINK_TOOLS,
    PATIENCE,
    FakeEngine,
    Life,
    answer,
    end_with,
    endpoint,
    implementation,
    run_of,
    serve,
    transfer,
)
from tests.fakes import TCP_INFO as TCP_SAMPLES
from tests.results_builder import SAT, result_set, run_result

LINK = RealLink("modem", "far", RealDirection(20 * MBPS), RealDirection(2 * MBPS), 0.02)
HOSTS = {
    "modem": Host("modem", "fake://modem", interface="wwan0", source_address="10.0.0.2"),
    "far": Host("far", "fake://far", address4="198.51.100.7", address6="2001:db8::7", source_address="10.1.0.9"),
}
RUN = run_of(case=replace(CASE, link=LINK))


def hosts_at(engine: FakeEngine) -> dict[str, Daemon]:
    with patch.object(docker, "APIClient", engine.client):
        return {name: Daemon(host.daemon, "test", host=name) for name, host in HOSTS.items()}


def backend(engine: FakeEngine, hosts: Mapping[str, Host] = HOSTS) -> RealBackend:
    return RealBackend(LINK, hosts, hosts_at(engine), LINK_TOOLS, HostLocks())


def carry_out(
    engine: FakeEngine, directory: Path, run: Run = RUN, protocol: Protocol = Protocol.HQ, on: RealBackend | None = None
) -> Evidence:
    with (on or backend(engine)).open() as opened:
        evidence = transfer(replace(run, protocol=protocol), opened, engine, directory)
    assert engine.lives == {}
    return evidence


def run_with(server: str = "good", client: str = "good") -> Run:
    return run_of(server, client, replace(CASE, link=LINK))


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real, "SETTLE", 0)


# ---- a run ----------------------------------------------------------------------------------


def test_a_run_from_its_hosts_to_a_goodput(tmp_path: Path) -> None:
    engine = FakeEngine(good=endpoint)
    evidence = carry_out(engine, tmp_path)
    assert evidence.fault == ""
    assert evidence.real_link.client_capture.captured == 9
    baseline = evidence.real_link.baseline
    assert (baseline.round_trips[0], baseline.round_trips[-1], baseline.goodput) == (0.6, None, None)
    assert evidence.images == {"client": "good", "server": "good", "link-tools": "link-tools"}
    assert {path.name for path in (tmp_path / "sim").iterdir()} == {"trace_node_left.pcap", "trace_node_right.pcap"}
    verdict, measurement = analyse(RUN, evidence, tmp_path)
    assert verdict.outcome is Outcome.SUCCEEDED, verdict
    assert measurement.values["goodput"] > 0
    assert not any(note.startswith(CLOCKS) for note in measurement.notes)


def test_what_stands_on_both_hosts(tmp_path: Path) -> None:
    engine = FakeEngine(good=endpoint)
    carry_out(engine, tmp_path)
    holders = {life.hostname: life for life in engine.all_lives if life.command == ("hold",)}
    assert holders["server"].host_config["port_bindings"] == {
        "443/udp": ("10.1.0.9", 443), "443/tcp": ("10.1.0.9", 443),
    }  # fmt: skip
    assert holders["client"].host_config["port_bindings"] is None
    assert "sim:127.0.0.1" in holders["client"].host_config["extra_hosts"]
    for life in engine.all_lives:
        if life.image == LINK_TOOLS:
            assert life.host_config["cap_drop"] == ["ALL"]
    for role, life in endpoints_of(engine).items():
        assert life.host_config["network_mode"] == f"container:{holders[role].id}"
        told = life.environment
        assert {"ROLE", "TESTCASE", "SSLKEYLOGFILE", "QLOGDIR", "REQUESTS", "CRON", "PROTOCOLS"} <= told.keys()
        assert f"{role.upper()}_PARAMS" in told
        assert (told["PROTOCOLS"], "VERSION" in told) == ("", False)
        assert {"www", "downloads", "certs", "logs"} <= {name.partition("/")[0] for name in life.directories}


MEMLOCK_LIMIT = [{"Name": "memlock", "Soft": 64 * 2**20, "Hard": 64 * 2**20}]
"""What the compose file of the QUIC Interop Runner gives to both endpoints."""


def endpoints_of(engine: FakeEngine) -> dict[str, Life]:
    return {life.environment["ROLE"]: life for life in engine.all_lives if "ROLE" in life.environment}


@pytest.mark.parametrize("shared", [False, True])
def test_endpoints_have_the_contracts_limit_of_locked_memory(tmp_path: Path, shared: bool) -> None:
    engine = FakeEngine(good=endpoint)
    made = backend(engine, SHARED if shared else HOSTS)
    assert carry_out(engine, tmp_path, on=made).fault == ""
    assert {role: life.host_config["ulimits"] for role, life in endpoints_of(engine).items()} == {
        "client": MEMLOCK_LIMIT, "server": MEMLOCK_LIMIT,
    }  # fmt: skip
    assert not any("MEMLOCK" in note for note in made.notes)


def test_a_host_that_refuses_locked_memory_is_named_and_asked_once(tmp_path: Path) -> None:
    engine = FakeEngine(good=endpoint)
    engine.memlock_refused = True
    made = backend(engine)
    assert carry_out(engine, tmp_path, on=made).fault == ""
    with made.open():
        pass
    assert all(life.host_config["ulimits"] == [] for life in endpoints_of(engine).values())
    assert made.notes[0].startswith("endpoints get no larger RLIMIT_MEMLOCK: the daemon of modem and far lacks")
    assert engine.log.count(("create", "memlock")) == 2


def test_a_host_that_is_away_has_not_refused_locked_memory() -> None:
    engine = FakeEngine(good=endpoint)
    made = backend(engine)
    engine.refused.add("start")
    with patch.object(Daemon, "answers", lambda _daemon: False), pytest.raises(HarnessFault), made.open():
        pass


def over_tcp(life: Life) -> int:
    life.environment = {**life.environment, "TESTCASE": "transfer"}
    return endpoint(life)


def test_the_capture_at_the_server_samples_tcp(tmp_path: Path) -> None:
    engine = FakeEngine(good=over_tcp)
    carry_out(engine, tmp_path, protocol=Protocol.TCP)
    assert {life.name.rpartition("-")[0][-6:]: life.environment["SAMPLE"].split() for life in engine.all_lives
            if life.command == ("capture",)} == {"client": [], "server": [*options(LOGS)]}  # fmt: skip
    assert (tmp_path / TCP_INFO).read_bytes() == TCP_SAMPLES


def test_both_ends_capture_before_the_client_starts_and_end_after_it(tmp_path: Path) -> None:
    engine = FakeEngine(good=endpoint)
    carry_out(engine, tmp_path)
    started = engine.started()
    assert started.index("capture") < started.index("client")
    last = [index for index, (verb, name) in enumerate(engine.log) if (verb, name) == ("SIGTERM", "capture")]
    server_ends = engine.log.index(("SIGTERM", "server"))
    assert len(last) == 2
    assert all(server_ends < index for index in last)


SHARED = {
    "modem": replace(HOSTS["modem"], host_network=True),
    "far": replace(HOSTS["far"], host_network=True, source_address="", interface="eth7"),
}


def test_in_their_hosts_networks_endpoints_change_and_overhear_nothing(tmp_path: Path) -> None:
    engine = FakeEngine(good=endpoint)
    assert carry_out(engine, tmp_path, on=backend(engine, SHARED)).fault == ""
    ours = [life for life in engine.all_lives if life.image == LINK_TOOLS]
    for life in (each for each in ours if each.command[0] not in ("capture", "true")):
        assert life.host_config["network_mode"] == "host"
        assert life.host_config["port_bindings"] is None
        assert "NET_ADMIN" not in life.host_config["cap_add"]
    for life in endpoints_of(engine).values():
        assert life.host_config["cap_add"] == []
        assert {"NET_RAW", "MKNOD"} <= set(life.host_config["cap_drop"])
        assert life.host_config["network_mode"].startswith("container:")
    assert {life.hostname: life.environment["SHARED"] for life in ours if life.command == ("hold",)} == {
        "client": "client", "server": "server",
    }  # fmt: skip
    captures = {"server-capture" in life.name: life.environment for life in ours if life.command == ("capture",)}
    assert captures[True]["SERVED"] == "udp"
    assert captures[False]["FILTER"] == "udp port 443 and (host 198.51.100.7 or host 2001:db8::7)"
    assert [captures[server]["INTERFACE"] for server in (True, False)] == ["eth7", "wwan0"]
    assert captures[False]["TOWARDS"] == "198.51.100.7"


def test_in_a_hosts_network_tcp_alone_is_captured_of_a_run_over_tcp() -> None:
    ends = HostPair(LINK, {Role.CLIENT: SHARED["modem"], Role.SERVER: SHARED["far"]}, {}, LINK_TOOLS, ())
    assert captured(ends, Role.SERVER, Protocol.TCP) == {"SERVED": "tcp"}
    assert captured(ends, Role.CLIENT, Protocol.TCP)["FILTER"].startswith("tcp port 443 and (host ")
    ends = replace(ends, hosts={Role.CLIENT: HOSTS["modem"], Role.SERVER: HOSTS["far"]})
    assert [captured(ends, role, Protocol.TCP) for role in Role] == [{}, {}]


def test_a_hosts_interface_that_joins_packets_is_refused() -> None:
    engine = FakeEngine()
    engine.joining = ["tx-udp-segmentation", "generic-receive-offload"]
    shared = backend(engine, SHARED)
    mend = "ethtool -K eth0 tx-udp-segmentation off generic-receive-offload off"
    with pytest.raises(MachineError, match=f"modem merges packets, .*{mend}"):
        shared.examine(0.0, print)
    assert "endpoints use the own network of modem and far" in shared.notes
    assert engine.lives == {}
    backend(engine).examine(0.0, print)  # a namespace of ours has an interface of ours


def test_names_of_the_contract() -> None:
    assert names(HOSTS["far"]) == (
        ("sim", "127.0.0.1"), ("server", "198.51.100.7"), ("server4", "198.51.100.7"), ("server46", "198.51.100.7"),
        ("server", "2001:db8::7"), ("server6", "2001:db8::7"), ("server46", "2001:db8::7"),
    )  # fmt: skip


# ---- whose fault ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "words"), [({"dropped": 2, "received": 11}, "lost 2 of 11"), ({"captured": 8}, "lost 1 of 9")]
)
def test_a_capture_that_lost_packets_is_our_fault(tmp_path: Path, counts: dict[str, int], words: str) -> None:
    engine = FakeEngine(good=endpoint)
    engine.counts = counts
    evidence = carry_out(engine, tmp_path)
    assert evidence.fault_code == ErrorCode.CAPTURE_FAILED
    assert words in evidence.fault


@pytest.mark.parametrize(
    ("run", "status", "code"),
    [(run_with(server="ending"), 0, ErrorCode.SERVER_EXITED), (run_with(client="ending"), 1, ErrorCode.CLIENT_FAILED)],
)
def test_without_an_outage_a_failure_is_the_pairs(tmp_path: Path, run: Run, status: int, code: ErrorCode) -> None:
    evidence = carry_out(FakeEngine(good=endpoint, ending=end_with(status)), tmp_path, run)
    assert evidence.fault == ""
    assert analyse(RUN, evidence, tmp_path)[0].code is code


def test_a_capture_that_ends_is_our_fault(tmp_path: Path) -> None:
    def stop_capturing(life: Life) -> int:
        engine = life.engine
        next(each for each in engine.lives.values() if each.name.endswith("client-capture")).end(4)
        life.terminated.wait(PATIENCE)
        return 0

    engine = FakeEngine(good=endpoint, odd=stop_capturing)
    evidence = carry_out(engine, tmp_path, run_with(client="odd"))
    assert evidence.fault_code == ErrorCode.CAPTURE_FAILED


class Flaky(FakeEngine):
    """Questions about containers that cannot be asked for a time."""

    broken = 0

    def inspect_container(self, identity: str) -> dict[str, object]:
        if self.broken:
            self.broken -= 1
            raise requests.exceptions.ConnectionError("the tunnel is gone")
        return super().inspect_container(identity)


@pytest.mark.parametrize(("status", "code"), [(1, ErrorCode.CLIENT_FAILED), (0, ErrorCode.NONE)])
def test_a_broken_connection_excludes_an_attempt_whatever_its_outcome(
    tmp_path: Path, status: int, code: ErrorCode
) -> None:
    def cut(life: Life) -> int:
        engine.broken = 2
        return status or endpoint(life)

    engine = Flaky(good=endpoint, cut=cut)
    evidence = carry_out(engine, tmp_path, run_with(client="cut"))
    assert evidence.fault == ""
    assert evidence.real_link.outage
    verdict, measurement = analyse(RUN, evidence, tmp_path)
    assert (verdict.code, measurement) == (ErrorCode.HOST_LOST, None)
    assert verdict.if_valid.code is code


def test_readiness_is_told_once_though_the_log_breaks() -> None:
    class Breaks(FakeEngine):
        def _follow(self, life: Life) -> Iterator[bytes]:
            told = list(life.lines)
            yield from (f"{line}\n".encode() for line in told)
            if len(told) < 2:
                life.say("second")
                raise requests.exceptions.ChunkedEncodingError("cut")
            life.end(0)

    engine = Breaks(good=serve)
    daemon = hosts_at(engine)["far"]
    events: SimpleQueue[ContainerEvent] = SimpleQueue()
    with create_container(daemon, ContainerSpec("x", "good", environment={"TESTCASE": "transfer"})) as container:
        container.start()
        container.watch(events, lines=True)
        lines = [events.get(timeout=PATIENCE).line for _ in range(3)]
    assert sorted(filter(None, lines)) == ["listening", "second"]


# ---- the bare link --------------------------------------------------------------------------


def test_the_bare_link() -> None:
    said: list[str] = []
    backend(FakeEngine()).examine(5.0, said.append)
    rates = "TCP 12.50 Mbit/s, return 1.50 Mbit/s"
    assert said == [f"modem - far: RTT 609.0 ms (600.0 ms to 618.0 ms), 1 of 20 packets lost, {rates}"]


def test_a_link_that_is_down() -> None:
    engine = FakeEngine()
    engine.link_down = True
    with pytest.raises(MachineError, match="carries no packets"):
        backend(engine).examine(0.0, print)


@pytest.mark.parametrize(
    ("modem", "words"),
    [
        (replace(HOSTS["modem"], interface="eth0"), "over wwan0, not eth0"),
        (replace(HOSTS["modem"], source_address="10.9.9.9"), "from 10.0.0.2, not 10.9.9.9"),
    ],
)
def test_packets_that_would_leave_by_another_way(modem: Host, words: str) -> None:
    with pytest.raises(MachineError, match=words):
        backend(FakeEngine(), HOSTS | {"modem": modem}).examine(0.0, print)


def test_words_of_a_baseline() -> None:
    assert format_baseline(Baseline("", (0.6,), 0.1, 12.3e6, 1.2e6)) == (
        "RTT 600.0 ms (600.0 ms to 600.0 ms), 0 of 1 packet lost, TCP 12.30 Mbit/s, return 1.20 Mbit/s"
    )
    assert format_baseline(Baseline("", (None, None), 0.1)) == "no RTT, 2 of 2 packets lost"


# ---- one at a time --------------------------------------------------------------------------


def test_one_run_at_a_time_on_hosts_that_are_shared() -> None:
    engine, locks = FakeEngine(good=endpoint), HostLocks()
    daemons = hosts_at(engine)
    backends = [RealBackend(LINK, HOSTS, daemons, LINK_TOOLS, locks) for _ in range(2)]
    with backends[0].open() as first, backends[1].open() as second:
        with first.link(RUN):
            [lock] = locks.of(daemons["far"], daemons["modem"])  # one engine plays both
            assert lock.locked()
            assert not locks.of(daemons["far"])[0].acquire(blocking=False)
        assert first.daemon(Role.SERVER) is daemons["far"]
        with second.link(RUN):
            pass


def test_a_namespace_that_is_never_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real, "HOLD_PATIENCE", 0.1)
    engine = FakeEngine()
    engine.programs[LINK_TOOLS] = lambda life: 1 if life.command == ("hold",) else answer(life)
    with backend(engine).open() as opened, pytest.raises(HarnessFault, match="is not holding"), opened.link(RUN):
        pass
    assert engine.lives == {}


# ---- results --------------------------------------------------------------------------------


def stored(tmp_path: Path) -> tuple[ResultSet, Path]:
    case = replace(SAT, name="real", abbreviation="RE", link=LINK)
    report = RealLinkReport("modem", "far", 0.0, CaptureReport(9, 9, 0), CaptureReport(9, 9, 0),
                            Baseline("2026-11-21T06:00:00Z", (0.6, None), 0.1, 1e6))  # fmt: skip
    result = replace(
        run_result(server="a", client="b", test_case="real"),
        evidence=Evidence("2026-11-21T06:00:00Z", 1, real_link=report),
    )
    plain = result_set()
    manifest = replace(plain.manifest, servers=("a",), clients=("b",), test_cases=(case,),
                       implementations=(implementation("a"), implementation("b")))  # fmt: skip
    results = replace(plain, manifest=manifest, results=(result,), compliance=())
    return results, write_result_json(tmp_path, results)


def test_accesses_and_what_the_bare_link_did(tmp_path: Path) -> None:
    results, _ = stored(tmp_path)
    [case] = results.manifest.test_cases
    link = replace(LINK, provider="P", tariff="T", modem="M", traffic_limit="60 GB")
    first = Baseline("2026-11-21T06:00:00Z", (0.6, None), 0.1, 1e6)
    looks = [first, first, Baseline("2026-11-21T07:00:00Z", (0.7, 0.8), 0.1, 3e6, 5e5)]
    [result] = results.results
    assert result.evidence.real_link is not None
    runs = [
        replace(result, evidence=replace(result.evidence, real_link=replace(result.evidence.real_link, baseline=look)))
        for look in looks
    ]
    table = accesses(replace(results, results=tuple(runs)), [SAT, replace(case, link=link)])
    assert table.rows == (
        ("RE", "P", "T", 20 * MBPS, 2 * MBPS, "60 GB", "M", 2, 0.7, 0.6, 0.8, 0.25, 2e6, 5e5),
    )  # fmt: skip
    noted = replace(results, manifest=replace(results.manifest, note="rain"))
    assert [accesses(each, [case]).notes[1:] for each in (results, noted)] == [(), ("Note of the campaign: rain",)]
    assert accesses(replace(results, results=()), [case]).rows[0][7:] == (0, None, None, None, None, None, None)


def test_results_hold_a_real_link_and_a_faulty_one_has_one_fault(tmp_path: Path) -> None:
    results, path = stored(tmp_path)
    assert load(tmp_path).result_set == results
    text = json.loads(path.read_bytes())
    text["manifest"]["test_cases"][0]["link"]["client_host"] = 5
    path.write_text(json.dumps(text))
    with pytest.raises(InputError) as caught:
        load(tmp_path)
    assert [problem.partition(": ")[2].split(":")[0] for problem in caught.value.problems] == [
        "manifest.test_cases[0].link.client_host"
    ]


# ---- clocks ---------------------------------------------------------------------------------


def test_clocks_that_differ_are_told_once() -> None:
    note = f"{CLOCKS} differ by 1 h 0 min"
    first = run_result(server="good", client="good", test_case="short")
    assert first.measurement is not None
    told = replace(first, measurement=replace(first.measurement, notes=(note,)))
    progress = Progress()
    assert progress.line(told).endswith(f"\nwarning: {note}")
    assert "warning" not in progress.line(replace(told, repetition=2))


@pytest.mark.parametrize(("expected", "words"), [(0.0, "by 1 h 0 min, the server's is ahead"), (3600.0, "")])
def test_a_clock_that_is_an_hour_ahead(tmp_path: Path, expected: float, words: str) -> None:
    evidence = carry_out(FakeEngine(good=endpoint), tmp_path)
    assert evidence.real_link is not None
    evidence = replace(evidence, real_link=replace(evidence.real_link, expected_skew=expected))
    before = analyse(RUN, evidence, tmp_path)[1]
    trace = tmp_path / SERVER_TRACE
    trace.write_bytes(shifted(trace.read_bytes(), 3600))
    after = analyse(RUN, evidence, tmp_path)[1]
    assert after.values == pytest.approx(before.values, rel=1e-6, abs=1e-5)
    assert [words in note for note in after.notes if note.startswith(CLOCKS)] == ([True] if words else [])


def shifted(pcap: bytes, offset: int) -> bytes:
    """A capture whose clock is ``offset`` seconds ahead."""
    data, at = bytearray(pcap), 24
    while at < len(data):
        stamp, _, length, _ = struct.unpack_from("<IIII", data, at)
        struct.pack_into("<I", data, at, stamp + offset)
        at += 16 + length
    return bytes(data)
