"""One run: the order of its parts, its deadlines, what endpoints are told, and what it leaves however it ends."""

import errno
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from unittest.mock import Mock

import pytest

from quicsat.analysis.analyse import analyse
from quicsat.analysis.run_outcome import of_flow
from quicsat.docker import disk_monitor
from quicsat.docker.archive import ArchiveLimits
from quicsat.docker.containers import ContainerEvent
from quicsat.docker.resource_use import ResourceMonitor
from quicsat.execution import transfer as module
from quicsat.execution.run_inputs import Inputs, SessionInputs
from quicsat.links import container_session
from quicsat.links.artefact_limits import disk_limit
from quicsat.links.ns3_testbed import Ns3Backend
from quicsat.links.session import RunControl
from quicsat.model.emulated_link import Interval
from quicsat.model.errors import Interrupted
from quicsat.model.evidence import Deadline, Evidence, Exit, FlowEvidence
from quicsat.model.flow import Flow
from quicsat.model.implementation import Contract, Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.run import File, Run
from quicsat.model.run_limits import RunLimits
from quicsat.model.units import MIB
from quicsat.model.webtransport import WebTransport
from tests.fakes import (
    CASE,
    PATIENCE,
    REPORT,
    SIMULATOR,
    FakeEngine,
    Life,
    Program,
    after,
    connect,
    end_with,
    endpoint,
    fetch,
    hang,
    judge,
    only_as,
    run_config,
    run_of,
    simulate,
    transfer,
)
from tests.waiting import Later


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is asked to stop does so, however busy the machine is."""
    monkeypatch.setattr(container_session, "STOP_GRACE", PATIENCE)
    monkeypatch.setattr(container_session, "LOG_GRACE", PATIENCE)


def carry_out(
    engine: FakeEngine, directory: Path, run: Run | None = None, stop: threading.Event | None = None, **options: bool
) -> Evidence:
    """The evidence of one run; checks that the run has removed its containers."""
    daemon = connect(engine)
    with Ns3Backend(daemon, SIMULATOR).open() as testbed:
        holders = set(engine.lives)
        try:
            return transfer(run or run_of(), testbed, engine, directory, stop=stop, **options)
        finally:
            assert set(engine.lives) == holders or engine.refused


def verdict_of(run: Run, evidence: Evidence, directory: Path) -> tuple[Outcome, ErrorCode]:
    verdict, _ = judge(run, evidence, directory)
    return verdict.outcome, verdict.code


def endpoint_that(role: Role, program: Program) -> tuple[FakeEngine, Run]:
    """An engine whose image ``bad`` has ``program`` in a role, and a run of it."""
    engine = FakeEngine(good=endpoint, bad=only_as(role, program))
    return engine, BAD_CLIENT if role is Role.CLIENT else BAD_SERVER


BAD_CLIENT, BAD_SERVER = run_of(client="bad"), run_of(server="bad")


# ---- a run that goes well -------------------------------------------------------------------


def test_a_good_run_leaves_all_that_the_analysis_needs(tmp_path: Path) -> None:
    evidence = carry_out(FakeEngine(good=endpoint), tmp_path / "run")
    assert (evidence.fault, evidence.timed_out) == ("", None)
    assert evidence.client == Exit(0)
    assert evidence.server == Exit(143, killed=True)
    assert list(evidence.phases) == ["prepare", "create", "start", "transfer", "stop", "collect", "remove"]
    assert all(duration > 0 for duration in evidence.phases.values())
    assert sorted(file.size for file in evidence.offered) == sorted(CASE.file_sizes)
    assert {*evidence.downloaded} == {*evidence.offered}
    assert evidence.images == {"client": "good", "server": "good", "simulator": SIMULATOR}
    assert evidence.simulator is not None
    assert (tmp_path / "run/server/server.log").read_bytes() == b"all is well\n"
    assert "server | 2026-01-01T00:00:00.000000000Z listening" in (tmp_path / "run/output.txt").read_text()
    assert not (tmp_path / "run/www").exists()
    verdict, measurement = analyse(run_of(), evidence, tmp_path / "run")
    assert verdict == Verdict(Outcome.SUCCEEDED)
    assert measurement.values["goodput"] > 0
    assert measurement.notes == ()


def test_the_order_of_starts_and_stops(tmp_path: Path) -> None:
    """Networks are reset before a run starts anything; the client starts last, and the server is stopped first."""
    engine = FakeEngine(good=endpoint)
    carry_out(engine, tmp_path)
    starts = [("start", name) for name in ("sim", "server", "client")]
    verbs = [entry for entry in engine.log if entry[0] == "SIGHUP" or entry in starts]
    assert verbs[:3] == [("SIGHUP", "holder")] * 3
    assert len(verbs) == 6
    begun = [name for name in engine.started() if name in ("sim", "server", "client")]
    assert sorted(begun[:2]) == ["server", "sim"]
    assert begun[2:] == ["client"]
    ends = [entry for entry in engine.log if entry[0] == "SIGTERM" and entry[1] in ("sim", "server")]
    assert ends == [("SIGTERM", "server"), ("SIGTERM", "sim")]


INPUTS = Inputs((File("one", 1, ""), File("two", 2, "")), {}, {})


# ---- what endpoints are told (qir-reference.md, 1.1 to 1.4) ---------------------------------


USUAL = {
    "SSLKEYLOGFILE": "/logs/keys.log", "QLOGDIR": "/logs/qlog/", "CRON": "", "PROTOCOLS": "",
    "TESTCASE_CONTEXT": "short",
}  # fmt: skip
BOTH_PARAMETERS = {"CLIENT_PARAMS": "-x", "SERVER_PARAMS": "-y", "CRON": "true"}
GIVEN = {"PROTOCOLS_CLIENT": "three", "PROTOCOLS_SERVER": "four five"}
OWN_CONTRACT = replace(run_of(), client=replace(run_of().client, contract=Contract(("one", "two"), "0x1")))
OTHER_TESTS = run_of(case=replace(CASE, server_test="goodput", server_name="server6"))


@pytest.mark.parametrize(
    ("role", "run", "options", "expected"),
    [
        (Role.CLIENT, run_of(), {}, {}),
        (Role.SERVER, run_of(), {}, {}),
        (Role.CLIENT, run_of(), {"parameters": BOTH_PARAMETERS}, {"CLIENT_PARAMS": "-x", "CRON": "true"}),
        (Role.SERVER, run_of(), {"parameters": BOTH_PARAMETERS}, {"SERVER_PARAMS": "-y", "CRON": "true"}),
        (Role.CLIENT, OTHER_TESTS, {}, {"REQUESTS": "https://server6:443/one https://server6:443/two"}),
        (Role.SERVER, OTHER_TESTS, {}, {"TESTCASE": "goodput"}),
        (Role.CLIENT, OWN_CONTRACT, {"parameters": GIVEN}, {"PROTOCOLS": "one two", "VERSION": "0x1"}),
        (Role.SERVER, OWN_CONTRACT, {"parameters": GIVEN}, {"PROTOCOLS": "four five"}),
        (Role.SERVER, run_of(), {"qlog": False}, {"QLOGDIR": ""}),
    ],
)
def test_environment_of_an_endpoint(role: Role, run: Run, options: dict[str, Any], expected: dict[str, str]) -> None:
    """``expected``: what differs from the usual."""
    requests = "https://server4:443/one https://server4:443/two" if role is Role.CLIENT else ""
    usual = USUAL | {"ROLE": role, "TESTCASE": "transfer", "REQUESTS": requests, f"{role.upper()}_PARAMS": ""}
    told = module.endpoint(role, run, run_config(FakeEngine(good=endpoint), **options), INPUTS).environment
    assert told == usual | expected


def test_files_and_rights_of_the_endpoints(tmp_path: Path) -> None:
    engine = FakeEngine(good=endpoint)
    carry_out(engine, tmp_path)
    lives = {life.environment.get("ROLE"): life for life in engine.all_lives}
    server, client = lives["server"], lives["client"]
    certificates = {"certs/ca.pem", "certs/cert.pem", "certs/priv.key"}
    assert certificates <= set(server.files)
    assert certificates <= set(client.files)
    assert len([name for name in server.files if name.startswith("www/")]) == len(CASE.file_sizes)
    assert not [name for name in client.files if name.startswith("www/")]
    for life in (server, client):
        assert {"www", "downloads", "certs", "logs"} <= {name.partition("/")[0] for name in life.directories}
        assert life.host_config["cap_add"] == ["NET_ADMIN"]
        assert life.host_config["security_opt"] == ["no-new-privileges"]
        assert life.host_config["network_mode"].startswith("container:")
        assert life.host_config["mem_limit"] == life.host_config["memswap_limit"] > 0
        assert life.host_config["pids_limit"] > 0
        assert life.host_config["ulimits"] == [{"Name": "memlock", "Soft": 64 * 2**20, "Hard": 64 * 2**20}]


# ---- runs that end otherwise ----------------------------------------------------------------


def eat_memory(life: Life) -> int:
    life.out_of_memory = True
    return 137


def ignore_sigterm(life: Life) -> int:
    life.listening.set()
    return 0 if life.ended.wait(PATIENCE) else 1


@pytest.mark.parametrize(
    ("role", "program", "end", "verdict"),
    [
        (Role.CLIENT, end_with(1), Exit(1), (Outcome.FAILED, ErrorCode.CLIENT_FAILED)),
        (Role.CLIENT, end_with(127), Exit(127), (Outcome.UNSUPPORTED, ErrorCode.UNSUPPORTED)),
        (Role.CLIENT, end_with(139), Exit(139), (Outcome.FAILED, ErrorCode.CRASHED)),
        (Role.CLIENT, eat_memory, Exit(137, out_of_memory=True), (Outcome.FAILED, ErrorCode.OUT_OF_MEMORY)),
        (Role.SERVER, end_with(1), Exit(1), (Outcome.FAILED, ErrorCode.SERVER_EXITED)),
        (Role.SERVER, end_with(127), Exit(127), (Outcome.UNSUPPORTED, ErrorCode.UNSUPPORTED)),
        (Role.SERVER, end_with(139), Exit(139), (Outcome.FAILED, ErrorCode.CRASHED)),
        (Role.SERVER, ignore_sigterm, Exit(137, killed=True), (Outcome.SUCCEEDED, ErrorCode.NONE)),
    ],
)
def test_ends_of_an_endpoint(
    role: Role, program: Program, end: Exit, verdict: tuple[Outcome, ErrorCode], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A server may end before it is ready; one that ignores SIGTERM is killed."""
    if program is ignore_sigterm:
        monkeypatch.setattr(container_session, "STOP_GRACE", 0.05)
        monkeypatch.setattr(container_session, "LOG_GRACE", 0.05)
    engine, run = endpoint_that(role, program)
    evidence = carry_out(engine, tmp_path, run)
    assert (evidence.client if role is Role.CLIENT else evidence.server) == end
    assert role is Role.SERVER or (evidence.server is not None and evidence.server.killed)
    assert verdict_of(run, evidence, tmp_path) == verdict


def test_a_client_that_hangs_meets_the_deadline(tmp_path: Path) -> None:
    run = replace(BAD_CLIENT, test_case=replace(CASE, timeout=0.3))
    evidence = carry_out(endpoint_that(Role.CLIENT, hang)[0], tmp_path, run)
    assert evidence.timed_out is Deadline.TRANSFER
    assert evidence.client == Exit(137, killed=True)
    assert verdict_of(run, evidence, tmp_path)[0] is Outcome.TIMEOUT
    assert evidence.simulator is not None  # traces of a timeout are kept


def test_a_client_that_fills_the_disk_is_ended_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(life: Life) -> int:
        life.written = disk_limit(BAD_CLIENT.test_case) + 1
        return hang(life)

    monkeypatch.setattr(disk_monitor, "PERIOD", 0.05)
    evidence = carry_out(endpoint_that(Role.CLIENT, greedy)[0], tmp_path, BAD_CLIENT)
    verdict = judge(BAD_CLIENT, evidence, tmp_path)[0]
    assert (verdict.outcome, verdict.code) == (Outcome.FAILED, ErrorCode.ARTEFACT_LIMIT)
    assert verdict.reason.startswith("The client wrote 1.")
    assert evidence.timed_out is None


@pytest.mark.parametrize("role", Role)
def test_memory_of_the_machine_that_ran_out_is_no_ones_fault(
    role: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine may report it as it reports an endpoint's own lack of memory, or not at all."""

    monkeypatch.setattr(ResourceMonitor, "starved", [str(role)])
    engine, run = endpoint_that(role, eat_memory)
    verdict = verdict_of(run, carry_out(engine, tmp_path, run), tmp_path)
    assert verdict == (Outcome.ERROR, ErrorCode.HOST_STARVED)


@pytest.mark.parametrize("impatient", ["link", "quicsat"])
def test_a_server_that_never_answers(impatient: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, run = endpoint_that(Role.SERVER, lambda life: 0 if life.terminated.wait(PATIENCE) else 1)
    if impatient == "link":
        engine.server_patience = 0.3
    else:
        monkeypatch.setattr(container_session, "READY_TIMEOUT", 0.4)
    evidence = carry_out(engine, tmp_path, run)
    assert evidence.timed_out is Deadline.READY
    assert evidence.client == Exit(None)
    assert "client" not in engine.started()
    assert verdict_of(run, evidence, tmp_path)[1] is ErrorCode.SERVER_NOT_READY


def test_an_event_that_came_before_the_deadline_is_not_lost_after_it() -> None:
    """As that of a link which is ready, while the machine holds up this process."""
    event, stop = ContainerEvent(Mock(), "ready"), threading.Event()
    events: SimpleQueue[ContainerEvent] = SimpleQueue()
    events.put(event)
    past = time.monotonic()
    assert [container_session.next_event(events, past, stop) for _ in range(2)] == [event, None]


def test_a_server_that_ends_during_the_transfer(tmp_path: Path) -> None:
    begun = threading.Event()

    def short_lived(life: Life) -> int:
        life.listening.set()
        return 3 if begun.wait(PATIENCE) else 0

    engine = FakeEngine(good=only_as(Role.CLIENT, after(begun.set, hang)), bad=only_as(Role.SERVER, short_lived))
    evidence = carry_out(engine, tmp_path, BAD_SERVER)
    assert (evidence.server, evidence.client) == (Exit(3), Exit(137, killed=True))
    assert verdict_of(BAD_SERVER, evidence, tmp_path)[1] is ErrorCode.SERVER_EXITED


@pytest.mark.parametrize("role", Role)
def test_an_image_without_entry_point(role: Role, tmp_path: Path) -> None:
    engine, run = endpoint_that(role, endpoint)
    engine.unstartable = {"bad"}
    evidence = carry_out(engine, tmp_path, run)
    assert not evidence.fault
    assert evidence.notes == (f'{role}: cannot be started: exec: "/run_endpoint.sh": no such file or directory',)
    assert verdict_of(run, evidence, tmp_path)[0] is Outcome.FAILED


def test_a_server_that_writes_its_logs_late_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for when the link has already stopped, so that nothing that it still sends is in the traces."""
    monkeypatch.setattr(container_session, "STOP_GRACE", 0.0)

    def thorough(life: Life) -> int:
        life.listening.set()
        life.terminated.wait()
        [simulator] = (other for other in [*life.engine.lives.values()] if "SCENARIO" in other.environment)
        if simulator.ended.wait(PATIENCE):
            life.files["logs/late.log"] = b"all is well"
        return 143

    evidence = carry_out(endpoint_that(Role.SERVER, thorough)[0], tmp_path, BAD_SERVER)
    assert (tmp_path / "server/late.log").read_bytes() == b"all is well"
    assert evidence.server == Exit(143, killed=True)


# ---- our own faults -------------------------------------------------------------------------


@pytest.mark.parametrize("after", ["before it is ready", "during the transfer"])
def test_a_simulator_that_dies(after: str, tmp_path: Path) -> None:
    def die(life: Life) -> int:
        if life.command:
            return simulate(life)
        if after == "during the transfer":
            life.say('{"event": "running"}')
            life.terminated.wait(0.1)
        life.say("terminate called after throwing")
        return 134

    evidence = carry_out(FakeEngine(simulator=die, good=only_as(Role.CLIENT, hang)), tmp_path)
    assert evidence.fault_code == ErrorCode.SIMULATOR_FAILED
    assert "terminate called after throwing" in evidence.fault
    assert "134" in evidence.fault


def test_a_simulator_without_report(tmp_path: Path) -> None:
    engine = FakeEngine(good=endpoint)
    engine.report = dict
    evidence = carry_out(engine, tmp_path)
    assert evidence.fault_code == ErrorCode.SIMULATOR_FAILED
    assert "no report" in evidence.fault


def test_lateness_is_told_of_the_clients_life(tmp_path: Path) -> None:
    """The daemon tells when the client started and ended: the stall before its start does not count."""
    way = {"p50": 0.0, "p99": 0.0, "p999": 0.0, "frames_per_interval": [10] * 100, "max_per_interval": [0.03] * 100}
    begin = 1_800_000_000.0
    stalls = [[begin + 1, begin + 1.5, 5, 0, 0.5], [begin + 3, begin + 3.03, 1, 0, 0.03]]
    lateness = {"bound": 0.01, "interval": 0.1, "forward": way, "return": way, "stalls": stalls}

    def fetch_later(life: Life) -> int:
        life.times = {"StartedAt": "2027-01-15T08:00:02.123456789Z", "FinishedAt": "2027-01-15T08:00:06.5Z"}
        return fetch(life)

    engine = FakeEngine(good=only_as(Role.CLIENT, fetch_later))
    engine.report = lambda: REPORT | {"started": begin, "stopped": begin + 10, "lateness": lateness}
    evidence = carry_out(engine, tmp_path)
    assert evidence.fault == ""
    assert evidence.client == Exit(0, life=Interval(begin + 2.123456, begin + 6.5))
    found = evidence.simulator.lateness
    assert [found.life, found.stalls, found.stalled, found.forward.late] == pytest.approx([4.376544, 1, 0.03, 1])


def test_a_testbed_that_ends_while_traces_are_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon that is stopped ends its containers one after another, the endpoint perhaps before the testbed."""
    engine = FakeEngine(good=endpoint)
    fetch = engine.get_archive

    def end_holders(identity: str, path: str, chunk_size: int) -> tuple[Iterator[bytes], dict[str, str]]:
        if "SCENARIO" in engine.lives[identity].environment:
            for life in [*engine.lives.values()]:
                if life.command[:1] == ("holder",):
                    life.end(143)
        return fetch(identity, path, chunk_size)

    monkeypatch.setattr(engine, "get_archive", end_holders)
    evidence = carry_out(engine, tmp_path)
    assert evidence.fault_code is ErrorCode.DAEMON_FAULT
    assert "the testbed ended during the run" in evidence.fault


@pytest.mark.parametrize("verb", ["put", "get"])
def test_an_engine_that_refuses_is_our_fault(verb: str, tmp_path: Path) -> None:
    engine = FakeEngine(good=endpoint)
    engine.refused = {verb}
    evidence = carry_out(engine, tmp_path)
    assert evidence.fault_code == ErrorCode.DAEMON_FAULT
    assert f"{verb} was refused" in evidence.fault
    assert all(life.name.endswith("holder") for life in engine.lives.values())


def test_an_image_that_has_gone(tmp_path: Path) -> None:
    engine = FakeEngine(good=endpoint)
    daemon = connect(engine)
    with Ns3Backend(daemon, SIMULATOR).open() as testbed:
        config, control = run_config(engine), RunControl(threading.Event())
        del engine.programs["good"]
        evidence = module.Transfer(run_of(), testbed, config, control, tmp_path).make()
    assert evidence.fault_code == ErrorCode.IMAGE_MISSING


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object) -> Iterator[None]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module, "unpack", full)
    evidence = carry_out(FakeEngine(good=endpoint), tmp_path)
    assert evidence.fault_code == ErrorCode.DISK_FULL


def test_logs_beyond_the_limit_are_cut_and_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "log_limits", lambda _test_case: ArchiveLimits(total=100))
    evidence = carry_out(FakeEngine(good=endpoint), tmp_path)
    assert not evidence.fault
    assert [note for note in evidence.notes if note.startswith("server: logs cut")]


# ---- interruption ---------------------------------------------------------------------------


@pytest.mark.parametrize("role", Role)
def test_an_interrupted_run_is_given_up_and_removed(
    role: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_session, "STOP_GRACE", 0.05)
    stop = threading.Event()
    engine, run = endpoint_that(role, after(stop.set, hang))
    with pytest.raises(Interrupted):
        carry_out(engine, tmp_path, run, stop)
    assert engine.lives == {}


# ---- files and words ------------------------------------------------------------------------


def test_files_are_kept_if_wanted(tmp_path: Path) -> None:
    evidence = carry_out(FakeEngine(good=endpoint), tmp_path, keep_files=True)
    assert {path.name for path in (tmp_path / "www").iterdir()} == {file.name for file in evidence.offered}
    for path in (tmp_path / "downloads").iterdir():
        assert path.read_bytes() == (tmp_path / "www" / path.name).read_bytes()


# ---- limits of endpoints --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (None, (4096 * MIB, 1024, None)),
        (RunLimits(), (4096 * MIB, 1024, None)),
        (RunLimits(memory=64 * MIB, processes=20, cpus=0.5), (64 * MIB, 20, 500_000_000)),
    ],
)
def test_a_test_case_can_limit_endpoints(
    tmp_path: Path, limits: RunLimits | None, expected: tuple[int, int, int | None]
) -> None:
    engine = FakeEngine(good=endpoint)
    carry_out(engine, tmp_path, replace(run_of(), test_case=replace(CASE, limits=limits)))
    hosts = {life.name.rpartition("-")[2]: life.host_config for life in engine.all_lives}
    for side in ("client", "server"):
        host = hosts[side]
        assert (host["mem_limit"], host["pids_limit"], host.get("nano_cpus")) == expected
        assert host["memswap_limit"] == host["mem_limit"]
    assert {host.get("nano_cpus") for name, host in hosts.items() if name not in ("client", "server")} == {None}


# ---- several flows --------------------------------------------------------------------------


def carry_out_flows(engine: FakeEngine, directory: Path, run: Run) -> Evidence:
    """As ``carry_out``; networks for several flows are kept until the testbed is closed."""
    with Ns3Backend(connect(engine), SIMULATOR).open() as testbed:
        evidence = transfer(run, testbed, engine, directory)
        assert {life.command for life in engine.lives.values()} == {("holder",)}
    assert engine.lives == {}
    return evidence


def two_flows(second: Run, start: float = 0.0) -> Run:
    case = replace(CASE, flows=(Flow(second.server.name, second.client.name, start),))
    first = replace(run_of(), test_case=case)
    return replace(first, others=(replace(second, test_case=case),))


def test_each_flow_leaves_its_files_logs_and_ends(tmp_path: Path) -> None:
    evidence = carry_out_flows(FakeEngine(good=endpoint), tmp_path, two_flows(run_of()))
    assert (evidence.client, evidence.server) == (Exit(0), Exit(143, killed=True))
    assert evidence.flows == (FlowEvidence(Exit(0), Exit(143, killed=True), evidence.downloaded),)
    assert {*evidence.downloaded} == {*evidence.offered}
    assert evidence.images == {
        "client": "good", "server": "good", "client-2": "good", "server-2": "good", "simulator": SIMULATOR
    }  # fmt: skip
    assert (tmp_path / "flow-2/server/server.log").read_bytes() == b"all is well\n"
    assert "server-2 | 2026-01-01T00:00:00.000000000Z listening" in (tmp_path / "output.txt").read_text()


def test_a_further_client_starts_later_and_the_run_waits_for_it(tmp_path: Path) -> None:
    engine = FakeEngine(good=endpoint)
    begin = time.monotonic()
    evidence = carry_out_flows(engine, tmp_path, two_flows(run_of(), 0.5))
    assert time.monotonic() - begin > 0.5
    starts = [life.name.rpartition("short-1-")[2] for life in engine.all_lives if "short-1-" in life.name]
    assert sorted(starts) == ["client", "client-2", "server", "server-2"]
    assert [flow.client for flow in evidence.flows] == [Exit(0)]


def test_a_flow_that_hangs_is_ended_at_the_deadline_and_the_other_one_is_not_to_blame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = Later()
    monkeypatch.setattr(container_session, "time", later)

    def hang_after_the_other(life: Life) -> int:
        [other] = [each for each in engine.all("client") if each is not life]
        assert other.ended.wait(PATIENCE)
        later.pass_by(CASE.timeout)
        return hang(life)

    engine = endpoint_that(Role.CLIENT, hang_after_the_other)[0]
    evidence = carry_out_flows(engine, tmp_path, two_flows(BAD_CLIENT))
    assert evidence.timed_out is Deadline.TRANSFER
    assert evidence.client == Exit(0)
    assert evidence.flows[0].client == Exit(137, killed=True)
    assert of_flow(evidence, 1).timed_out is None
    assert of_flow(evidence, 2).timed_out is Deadline.TRANSFER
    assert of_flow(evidence, 2).client == Exit(137, killed=True)


# ---- WebTransport ---------------------------------------------------------------------------


SESSIONS = {
    kind: replace(CASE, webtransport=kind, file_sizes=() if kind is WebTransport.HANDSHAKE else CASE.file_sizes)
    for kind in WebTransport
}


@pytest.mark.parametrize(
    ("kind", "client", "server"),
    [
        (WebTransport.HANDSHAKE, "https://server4:443/session", ""),
        (WebTransport.RECEIVE, "https://server4:443/session/a https://server4:443/session/b", ""),
        (WebTransport.SEND, "https://server4:443/session", "session/a session/b"),
    ],
)
def test_what_both_sides_of_a_session_are_told(kind: WebTransport, client: str, server: str) -> None:
    session = SessionInputs("session", {Role.CLIENT: ("one", "two"), Role.SERVER: ("two",)})
    inputs = Inputs((File("session/a", 1, ""), File("session/b", 1, "")), {}, {}, session)
    config, run = run_config(FakeEngine(good=endpoint)), run_of(case=SESSIONS[kind])
    told = [module.endpoint(role, run, config, inputs).environment for role in (Role.CLIENT, Role.SERVER)]
    words = [(environment["REQUESTS"], environment["PROTOCOLS"]) for environment in told]
    assert words == [(client, "one two"), (server, "two")]


@pytest.mark.parametrize("kind", [WebTransport.RECEIVE, WebTransport.SEND])
def test_files_of_a_session_are_taken_from_the_side_that_requests_them(tmp_path: Path, kind: WebTransport) -> None:
    """What the other side stores does not count, nor does the protocol."""

    def client(life: Life) -> int:
        server = life.opposite("server")
        asking, asked = (life, server) if kind is WebTransport.RECEIVE else (server, life)
        sent = {name: content for name, content in asked.files.items() if name.startswith("www/")}
        assert not [name for name in asking.files if name.startswith("www/")]
        assert len([name for name in (*life.directories, *server.directories) if name.startswith("www/")]) >= 2
        asking.files |= {f"downloads/{name.removeprefix('www/')}": content for name, content in sent.items()}
        for end in (life, server):
            end.files["downloads/negotiated_protocol.txt"] = b"one"
        asked.files["downloads/other"] = b"x"
        return 0

    evidence = carry_out(endpoint_that(Role.CLIENT, client)[0], tmp_path, run_of(client="bad", case=SESSIONS[kind]))
    assert {*evidence.downloaded} == {*evidence.offered}
    assert len(evidence.offered) == len(CASE.file_sizes)


def test_the_protocol_of_a_session_is_read_on_both_sides(tmp_path: Path) -> None:
    def client(life: Life) -> int:
        server = life.opposite("server")
        theirs = server.environment["PROTOCOLS"].split()
        chosen = next(each for each in life.environment["PROTOCOLS"].split() if each in theirs)
        life.files["downloads/negotiated_protocol.txt"] = f"{chosen}\n".encode()
        server.files["downloads/negotiated_protocol.txt"] = theirs[0].encode()
        return 0

    case = SESSIONS[WebTransport.HANDSHAKE]
    evidence = carry_out(endpoint_that(Role.CLIENT, client)[0], tmp_path, run_of(client="bad", case=case))
    assert evidence.downloaded[0] == evidence.offered[0]
    assert evidence.downloaded[1].name == evidence.offered[1].name
    assert evidence.downloaded[1] != evidence.offered[1]
