"""Runs in virtual time: the machine's container, what its report becomes, and whose fault it is if there is none."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quicsat.docker.archive import list_files
from quicsat.links import container_session, virtual_machine
from quicsat.links.artefact_limits import log_limits, run_limits
from quicsat.links.session import (
    READY_TIMEOUT,
    EarlyEnd,
    Endpoint,
    FurtherFlow,
    RunControl,
    SessionRecord,
    SessionRequest,
)
from quicsat.links.virtual_machine import DIRECTORY, START, VirtualBackend, VirtualSession, VirtualTestbed
from quicsat.model import run_limits as model_limits
from quicsat.model.emulated_link import CrossTraffic, Interval
from quicsat.model.errors import HarnessFault, Interrupted
from quicsat.model.evidence import Deadline, Exit
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode
from quicsat.model.run import Run
from quicsat.model.run_limits import RunLimits
from quicsat.model.units import MIB
from tests.fakes import (
    CASE,
    PATIENCE,
    SIMULATOR,
    VIRTUAL_TIME,
    FakeEngine,
    Life,
    Program,
    connect,
    described,
    end_with,
    endpoint,
    hang,
    leaves,
    only_as,
    output_disk,
    run_of,
    simulate,
    virtual_time,
)
from tests.links.test_ns3_testbed import SYMMETRIC
from tests.waiting import Later

IMAGES = {SIMULATOR: SIMULATOR, VIRTUAL_TIME: VIRTUAL_TIME}
BEGIN = round(START.timestamp()) * 10**9
WWW: Mapping[str, bytes | Path] = {"www/a": b"a" * 2500, "www/b": b"b" * 700}
PARTS = {"client": (1, 3, 0), "server": (0, 4, 143), "simulator": (0, 5, 143)}
"""First and last second and exit status of each part."""
ENDS: dict[str, object] = {"carried": 1, "server.killed": 1, "simulator.killed": 1}
for part, (begin, end, status) in PARTS.items():
    ENDS |= {f"{part}.begin": BEGIN + begin * 10**9, f"{part}.end": BEGIN + end * 10**9, f"{part}.status": status}
"""The report of a run that went well."""


def open_testbed(engine: FakeEngine) -> VirtualTestbed:
    """A testbed, which holds nothing between two runs."""
    with VirtualBackend(connect(engine), IMAGES).open() as testbed:
        return testbed


def request_of(
    run: Run | None = None, *, stop: bool = False, told: list[str] | None = None, test: str = "transfer"
) -> SessionRequest:
    told = [] if told is None else told
    run = run or run_of()
    urls = " ".join(f"https://server4:443/{path.rpartition('/')[2]}" for path in WWW)
    endpoints = {
        Role.SERVER: Endpoint(run.server.name, {"ROLE": "server", "TESTCASE": test}, WWW),
        Role.CLIENT: Endpoint(run.client.name, {"ROLE": "client", "TESTCASE": test, "REQUESTS": urls}),
    }
    event = threading.Event()
    if stop:
        event.set()
    return SessionRequest(run, endpoints, RunControl(event, lambda: told.append("start"), lambda: told.append("end")))


@contextmanager
def session_of(
    engine: FakeEngine, request: SessionRequest | None = None, record: SessionRecord | None = None
) -> Iterator[VirtualSession]:
    """A session that has run; checks that its containers are removed."""
    with open_testbed(engine).session(request or request_of(), record or SessionRecord()) as session:
        session.run()
        yield session
    assert engine.lives == {}


def engine_of(program: Program = endpoint, unstartable: Collection[str] = (), **machines: Program) -> FakeEngine:
    """An engine with the image ``good``, and ``bad`` that runs ``program``."""
    others = {name.replace("_", "-"): each for name, each in machines.items()}
    engine = FakeEngine(good=endpoint, bad=program, **others)
    engine.unstartable = {*unstartable}
    return engine


def record_of(engine: FakeEngine, request: SessionRequest | None = None) -> SessionRecord:
    """Of a session that has run."""
    record = SessionRecord()
    with session_of(engine, request, record):
        return record


def fault_of(engine: FakeEngine, request: SessionRequest | None = None) -> HarnessFault:
    with pytest.raises(HarnessFault) as caught, session_of(engine, request):
        pass
    assert engine.lives == {}
    return caught.value


def machine(engine: FakeEngine) -> Life:
    [life] = [life for life in engine.all_lives if life.command[:1] == ("run",)]
    return life


# ---- a run that goes well -------------------------------------------------------------------


def test_a_run_leaves_files_report_and_ends(tmp_path: Path) -> None:
    record, told = SessionRecord(), list[str]()
    with session_of(engine_of(), request_of(told=told), record) as session:
        with session.fetch(Role.CLIENT, "/downloads") as archive:
            assert {file.name: file.size for file in list_files(archive, log_limits(CASE))} == {"a": 2500, "b": 700}
        with session.fetch(Role.SERVER, "/logs") as archive:
            assert [file.name for file in list_files(archive, log_limits(CASE))] == ["server.log"]
        with session.fetch(Role.SERVER, "/downloads") as archive:
            assert [*archive] == []
        assert session.output(Role.SERVER) == b"2026-01-01T00:00:06.000000000Z listening\r\n"
        report = session.collect(tmp_path, record.exits_of(1)[Role.CLIENT].life)
    assert report.forward.delivered == 7749
    assert {path.name for path in (tmp_path / "sim").iterdir()} == {
        "trace_node_left.pcap", "trace_node_right.pcap", "link.json",
    }  # fmt: skip
    assert told == ["start", "end"]
    assert record.timed_out is None
    assert record.evidence.notes == ()
    assert {"transfer", "collect"} <= set(record.evidence.phases)
    client, server = record.exits_of(1)[Role.CLIENT], record.exits_of(1)[Role.SERVER]
    assert (client.status, client.killed) == (0, False)
    assert (server.status, server.killed) == (143, True)
    assert server.life.begin < client.life.begin < client.life.end < START.timestamp() + 60


def test_ends_are_told_in_simulated_time() -> None:
    record = record_of(engine_of(virtual_time=leaves(output_disk(ENDS, {}))))
    start = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    assert record.exits_of(1) == {
        Role.CLIENT: Exit(0, life=Interval(start + 1, start + 3)),
        Role.SERVER: Exit(143, killed=True, life=Interval(start, start + 4)),
    }


def test_the_container_of_a_machine_can_reach_nothing() -> None:
    record_of(engine := engine_of())
    host = machine(engine).host_config
    assert host["network_mode"] == "none"
    assert host["cap_drop"] == ["ALL"]
    assert host["cap_add"] == []
    assert host["security_opt"] == ["no-new-privileges"]
    assert host["binds"] == ["quicsat-roots-2:/roots:ro"]
    assert host["pid_mode"] is None
    assert host["pids_limit"] == virtual_machine.PROCESSES
    assert host["port_bindings"] is None
    assert machine(engine).environment == {}


def test_the_container_has_more_memory_than_the_machine() -> None:
    record_of(engine := engine_of(), request_of(run_of(case=replace(CASE, file_sizes=(100 * MIB,)))))
    [words] = [word for word in machine(engine).command if word.startswith("--memory=")]
    guest = int(words.partition("=")[2])
    assert guest == 1024 + 12 * 100
    host = machine(engine).host_config
    assert host["mem_limit"] == host["memswap_limit"] == (guest + 512) * MIB


@pytest.mark.parametrize(("limit", "memory"), [(8192, 8192), (300, 300), (64, 128)])
def test_a_test_case_can_set_the_memory_of_the_machine(limit: int, memory: int) -> None:
    limits = RunLimits(memory=limit * MIB, cpus=0.5)
    record_of(engine := engine_of(), request_of(run_of(case=replace(CASE, limits=limits))))
    assert [word for word in machine(engine).command if word.startswith("--memory=")] == [f"--memory={memory}"]
    assert machine(engine).host_config["mem_limit"] == (memory + 512) * MIB
    assert "nano_cpus" not in machine(engine).host_config


def test_the_machine_is_told_seed_clock_and_roots() -> None:
    engine = engine_of()
    run = replace(run_of(client="bad"), seed=77)
    backend = VirtualBackend(connect(engine), IMAGES)
    with backend.open(), backend.open() as second, second.session(request_of(run), SessionRecord()) as session:
        session.run()
    command = machine(engine).command
    assert command[:6] == (
        "run", "--memory=1024", f"--output={-(-run_limits(CASE).total // MIB) * MIB}", "--cpu=2",
        f"--cpu-seconds={300 + round(5 * CASE.timeout)}", "--",
    )  # fmt: skip
    assert command[6:] == (
        "time-travel-start=1767225600000000000", "seed=77", "um_cpus=2",
        "ubd2rc=/roots/bad.erofs", "ubd3rc=/roots/simulator.erofs", "ubd4rc=/roots/good.erofs",
    )  # fmt: skip
    assert engine.roots == {name: f"root of {name}".encode() for name in ("bad", "good", SIMULATOR)}


def test_the_input_disk_holds_files_names_and_directories() -> None:
    record_of(engine := engine_of())
    values, files, directories = described(machine(engine).files[f"{DIRECTORY}/input"])
    assert {path for path in files if not path.endswith("/etc/hosts")} == {f"server/{path}" for path in WWW}
    assert {path for path in files if path.endswith("/etc/hosts")} == {
        f"{part}/etc/hosts" for part in ("client", SIMULATOR, "server")
    }
    assert directories == {
        f"{role}/{name}" for role in ("client", "server") for name in ("www", "downloads", "certs", "logs")
    }
    assert values["server.argument"] == ["/run_endpoint.sh"]
    assert "GREETING=a=b" in values["client.environment"]


def test_inputs_follow_from_the_seed() -> None:
    origin = open_testbed(engine_of()).input_origin(replace(run_of(), seed=5))
    assert (origin.seed, origin.moment) == (5, datetime(2026, 1, 1, tzinfo=UTC))


def test_testbeds_that_are_open_have_different_cpus() -> None:
    backend = VirtualBackend(connect(engine_of()), IMAGES, 0.0)
    with backend.open() as first, backend.open() as second:
        assert (first._number, second._number) == (1, 2)
    with backend.open() as again:
        assert again._number == 1
    assert backend.notes == ()


def test_several_machines_side_by_side() -> None:
    """Each client ends only when three run: nothing makes one run wait for another."""
    all_there = threading.Barrier(3)

    def meet(life: Life) -> int:
        all_there.wait(PATIENCE)
        return endpoint(life)

    engine = engine_of(only_as(Role.CLIENT, meet))
    backend = VirtualBackend(connect(engine), IMAGES, 0.0)
    records = [SessionRecord() for _ in range(3)]

    def one(record: SessionRecord) -> None:
        with backend.open() as testbed, testbed.session(request_of(run_of(client="bad")), record) as session:
            session.run()

    threads = [threading.Thread(target=one, args=(record,)) for record in records]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert [record.exits_of(1)[Role.CLIENT].status for record in records] == [0] * 3
    assert [life.command[1] for life in engine.all_lives if life.command[:1] == ("root",)].count("bad") == 1


# ---- endpoints that fail --------------------------------------------------------------------


def test_a_client_that_never_ends(tmp_path: Path) -> None:
    record = SessionRecord()
    request = request_of(run_of(client="bad", case=replace(CASE, timeout=0.2)))
    with session_of(engine_of(only_as(Role.CLIENT, hang)), request, record) as session:
        assert session.collect(tmp_path, None) is not None
    assert record.timed_out is Deadline.TRANSFER
    assert (record.exits_of(1)[Role.CLIENT].status, record.exits_of(1)[Role.CLIENT].killed) == (137, True)


def test_a_server_that_ends_at_once(tmp_path: Path) -> None:
    record, engine = SessionRecord(), engine_of(only_as(Role.SERVER, end_with(2)))
    with session_of(engine, request_of(run_of(server="bad")), record) as session:
        assert session.collect(tmp_path, None) is None
    assert record.timed_out is Deadline.READY
    assert record.exits_of(1)[Role.SERVER].status == 2
    assert Role.CLIENT not in record.exits_of(1)


def test_a_server_that_is_silent_is_not_ready(tmp_path: Path) -> None:
    """The simulator gives up with status 3, which is no fault of its own."""
    engine, record = engine_of(only_as(Role.SERVER, lambda life: int(life.ended.wait(PATIENCE)))), SessionRecord()
    engine.server_patience, engine.stop_grace = 0.05, 0.05
    with session_of(engine, request_of(run_of(server="bad")), record) as session:
        assert session.collect(tmp_path, None) is None
    assert record.timed_out is Deadline.READY
    assert not (tmp_path / "sim").exists()


@pytest.mark.parametrize("role", Role)
def test_an_endpoint_that_cannot_be_executed(role: Role) -> None:
    run = run_of(server="bad") if role is Role.SERVER else run_of(client="bad")
    record = record_of(engine_of(unstartable={"bad"}), request_of(run))
    assert record.exits_of(1)[role].status == 126
    assert record.evidence.notes == (f"{role}: cannot be started: guest: /run_endpoint.sh: No such file or directory",)


def test_an_endpoint_that_ends_with_126_by_itself_was_started() -> None:
    record = record_of(engine_of(only_as(Role.CLIENT, end_with(126))), request_of(run_of(client="bad")))
    assert record.exits_of(1)[Role.CLIENT].status == 126
    assert record.evidence.notes == ()


def test_files_that_were_lost_are_noted() -> None:
    record = record_of(engine_of(virtual_time=leaves(output_disk(ENDS | {"lost": 7}, {}))))
    assert record.evidence.notes == ("7 files were left out: no room, or a name that is too long",)


# ---- machines that fail ---------------------------------------------------------------------


def without(key: str) -> dict[str, object]:
    return {name: value for name, value in ENDS.items() if name != key}


@pytest.mark.parametrize(
    ("report", "console", "reason"),
    [
        ({"fault": "mounting the image: Invalid argument"}, "", "virtual machine failed: mounting the image: Invalid"),
        (ENDS, "Out of memory: Killed process 42 (client) total-vm:1kB", "the virtual machine ran out of memory"),
        (ENDS, "UML ran out of memory on the host side! This can happen due", "the virtual machine ran out of memory"),
        (ENDS | {"timed_out": "never"}, "", "report that cannot be read"),
        (ENDS | {"client.status": "fine"}, "", "report that cannot be read"),
        (ENDS | {"server.end": ""}, "", "report that cannot be read"),
        (ENDS | {"client.begin": "9" * 400}, "", "report that cannot be read"),
        (without("client.status"), "", "report that cannot be read"),
    ],
)
def test_machines_that_fail(report: dict[str, object], console: str, reason: str) -> None:
    fault = fault_of(engine_of(virtual_time=leaves(output_disk(report, {}), "quiet", console)))
    assert fault.code == ErrorCode.VIRTUAL_MACHINE_FAILED
    assert reason in fault.reason


ADJUSTED = {"client.oom_score_adj": "1", "simulator.oom_score_adj": "2", "server.oom_score_adj": "3"}
KILL = (
    "[77] Out of memory: Killed process 77 (a) oom_score_adj:3) total-vm:9kB, anon-rss:{memory}kB, file-rss:0kB, "
    "shmem-rss:0kB, UID:0 pgtables:9kB oom_score_adj:{priority}"
)


@pytest.mark.parametrize(
    ("kills", "culprits"),
    [
        ([(600, 1)], {Role.CLIENT}),
        ([(900, 3)], {Role.SERVER}),
        ([(300, 3), (50, 1), (300, 3)], {Role.SERVER}),
        ([(500, 1)], set()),
        ([(900, 2)], set()),
        ([(900, 0), (400, 1)], set()),
    ],
)
def test_an_endpoint_that_had_most_of_the_memory_ran_out_of_it(
    kills: list[tuple[int, int]], culprits: set[Role]
) -> None:
    """Else, the machine was too small."""
    console = "\n".join(KILL.format(memory=memory * 1024, priority=priority) for memory, priority in kills)
    engine = engine_of(virtual_time=leaves(output_disk({**ENDS, **ADJUSTED}, {}), "quiet", console))
    if not culprits:
        assert fault_of(engine).reason == "the virtual machine ran out of memory"
        return
    record = record_of(engine)
    assert {role for role, end in record.exits_of(1).items() if end.out_of_memory} == culprits


def times(part: str, begin: float, end: float, status: int) -> dict[str, str]:
    moments = {"begin": begin, "end": end}
    return {f"{part}.{name}": str(round((1.7e9 + moment) * 1e9)) for name, moment in moments.items()} | {
        f"{part}.status": str(status)
    }


COMPUTED = "virtual-time: a process of the guest is ended after 20 s of CPU time without a system call"


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("status", [139, 1])
@pytest.mark.parametrize("after", [False, True])
def test_an_endpoint_that_computes_without_end_counts_as_stopped_at_the_deadline(
    role: Role, status: int, after: bool
) -> None:
    """Unless the other one had ended already."""
    other = Role.SERVER if role is Role.CLIENT else Role.CLIENT
    ends = times(role, 5, 8, status) | times(other, 5, 7.9 if after else 8.2, 0 if after else 143)
    ends |= {} if after else {f"{other}.killed": "1"}
    simulator = times("simulator", 5, 9, 143) | {"simulator.killed": "1", "carried": "1"}
    for console, found in ((COMPUTED, Exit(152, killed=True)), ("quiet", Exit(status))):
        record = record_of(engine_of(virtual_time=leaves(output_disk(simulator | ends, {}), "quiet", console)))
        end = record.exits_of(1)[role]
        assert (end.status, end.killed) == (found.status, found.killed)
        assert record.timed_out is (Deadline.TRANSFER if found.killed and not after else None)


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_machine, "PAUSE", 0.001)


ALWAYS = ("make_uml_dir: no value in environment for $HOME", 'Failed to initialize umid "", trying with a random umid')
"""What each machine says."""
PANIC = "Kernel panic - not syncing: Kernel mode fault at addr 0x0"


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("disk", [None, bytes(65536)])
@pytest.mark.parametrize(("lines", "quoted"), [
    ((PANIC, "Stack:", " [<60045569>] 0x60045569"), PANIC), (("Cannot map memory",), "Cannot map memory"),
    ((), "exit status 0"),
])  # fmt: skip
def test_no_report(disk: bytes | None, lines: tuple[str, ...], quoted: str) -> None:
    fault = fault_of(engine_of(virtual_time=leaves(disk, *ALWAYS, *lines)))
    assert fault.code == ErrorCode.VIRTUAL_MACHINE_FAILED
    assert fault.reason == f"the virtual machine ended without a report: {quoted}"


@pytest.mark.usefixtures("_impatient")
def test_the_output_is_asked_for_until_podman_has_unmounted_the_container() -> None:
    engine = engine_of()
    engine.unmounting = virtual_machine.READS - 1
    assert set(exits(engine)) == set(Role)
    engine.unmounting = virtual_machine.READS
    with pytest.raises(HarnessFault, match="without a report"):
        exits(engine)


def test_a_machine_that_leaves_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_machine, "run_limits", lambda case: replace(run_limits(case), total=2 * MIB))
    fault = fault_of(engine_of(virtual_time=leaves(output_disk(ENDS, {"client/logs/a": bytes(3 * MIB)}))))
    assert fault.code == ErrorCode.TRACE_LIMIT


def never_ends(meanwhile: Callable[[], object]) -> Program:
    """A machine that says something, and then calls ``meanwhile`` again and again."""

    def run(life: Life) -> int:
        if life.command[0] != "run":
            return virtual_time(life)
        life.say("guest: still here")
        while not life.ended.wait(0.05):
            meanwhile()
        return 0

    return run


def test_a_machine_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    later, limit = Later(), model_limits.wall_clock_limit(CASE.timeout)
    for module in (container_session, virtual_machine):
        monkeypatch.setattr(module, "time", later)
    fault = fault_of(engine_of(virtual_time=never_ends(lambda: later.pass_by(limit))))
    assert fault.code == ErrorCode.VIRTUAL_MACHINE_FAILED
    assert fault.reason == f"the virtual machine still ran after {limit:.0f} s: guest: still here"


def test_the_deadline_of_the_host_allows_for_slow_hosts() -> None:
    assert model_limits.wall_clock_limit(CASE.timeout) > READY_TIMEOUT + 5 * CASE.timeout


def test_interruption_ends_a_machine_at_once() -> None:
    told = list[str]()
    request = request_of(told=told)
    engine = engine_of(virtual_time=never_ends(request.control.stop.set))
    with pytest.raises(Interrupted), session_of(engine, request):
        pass
    assert machine(engine).exit_code == 137  # it did not end by itself
    assert engine.lives == {}
    assert told == ["start", "end"]


def test_a_simulator_that_ends_early() -> None:
    def die(life: Life) -> int:
        life.say("assert failed")
        return 134

    fault = fault_of(engine_of(simulator=die))
    assert fault.code == ErrorCode.SIMULATOR_FAILED
    assert fault.reason == "the simulator ended (134): assert failed"


def test_a_simulator_that_leaves_no_report(tmp_path: Path) -> None:
    def forget(life: Life) -> int:
        status = simulate(life)
        del life.files["logs/link.json"]
        return status

    with (
        session_of(engine_of(simulator=forget)) as session,
        pytest.raises(HarnessFault, match="left no report") as caught,
    ):
        session.collect(tmp_path, None)
    assert caught.value.code == ErrorCode.SIMULATOR_FAILED
    assert '"running"' in caught.value.reason


@pytest.mark.parametrize("part", ["receiver", "sender"])
def test_cross_traffic_that_ends_early(part: str) -> None:
    ends = ENDS | {f"{part}.begin": BEGIN, f"{part}.end": BEGIN + 1, f"{part}.status": 1}
    files = {f"{part}.output": b"2026-01-01T00:00:06Z tcp-stream: refused\r\n"}
    link = replace(SYMMETRIC, scenario="tcp-cross-traffic", cross_traffic=CrossTraffic())
    engine = engine_of(virtual_time=leaves(output_disk(ends, files)))
    fault = fault_of(engine, request_of(run_of(case=replace(CASE, link=link))))
    assert fault.code == ErrorCode.SIMULATOR_FAILED
    assert fault.reason == f"the {part} of the cross traffic ended (1): tcp-stream: refused"


def test_parts_that_were_stopped_did_not_fail() -> None:
    ends = ENDS | {"sender.begin": BEGIN, "sender.end": BEGIN + 1, "sender.status": 137, "sender.killed": 1}
    record_of(engine_of(virtual_time=leaves(output_disk(ends, {}))))


# ---- how endpoints end ----------------------------------------------------------------------


def exits(engine: FakeEngine, *roles: Role, patience: float = PATIENCE) -> Mapping[Role, EarlyEnd]:
    request = request_of(run_of("bad", "bad"), test="unknown")
    chosen = {role: request.endpoints[role] for role in roles or Role}
    found = open_testbed(engine).exits(replace(request, endpoints=chosen), patience)
    assert engine.lives == {}
    return found


def statuses(ends: Mapping[Role, EarlyEnd]) -> dict[Role, int | str | None]:
    return {role: each.end if isinstance(each.end, str) else each.end.status for role, each in ends.items()}


@pytest.mark.parametrize(
    ("engine", "found"),
    [
        (engine_of(endpoint), 127),
        (engine_of(end_with(0)), 0),
        (engine_of(unstartable={"bad"}), "guest: /run_endpoint.sh: No such file or directory"),
    ],
)
def test_exits(engine: FakeEngine, found: int | str) -> None:
    assert statuses(exits(engine)) == dict.fromkeys(Role, found)


@pytest.mark.parametrize("role", Role)
def test_exits_of_one_role(role: Role) -> None:
    engine = engine_of(endpoint)
    assert statuses(exits(engine, role)) == {role: 127}
    assert set(engine.roots) == {"bad", SIMULATOR}
    assert len([word for word in machine(engine).command if word.startswith("ubd")]) == 2


def test_exits_of_who_does_not_end() -> None:
    engine = engine_of(hang)
    engine.stop_grace = 0.05
    ends = exits(engine, patience=0.2)
    assert [isinstance(each.end, Exit) and each.end.killed for each in ends.values()] == [True, True]


@pytest.mark.usefixtures("_impatient")
def test_exits_of_a_machine_that_failed() -> None:
    with pytest.raises(HarnessFault, match="without a report"):
        exits(engine_of(virtual_time=leaves(None)))


def test_exits_are_interrupted() -> None:
    request = request_of(stop=True)
    engine = engine_of(virtual_time=never_ends(lambda: None))
    with pytest.raises(Interrupted):
        open_testbed(engine).exits(request, PATIENCE)
    assert engine.lives == {}


def test_further_flows_have_disks_and_ends_of_their_own() -> None:
    ends = ENDS | {"client-2.begin": ENDS["client.begin"], "client-2.end": ENDS["client.end"], "client-2.status": 1}
    engine = engine_of(virtual_time=leaves(output_disk(ends, {"client-2/downloads/a": b"x"})))
    request, record = request_of(), SessionRecord()
    further = FurtherFlow({**request.endpoints, Role.CLIENT: Endpoint("bad", {"ROLE": "client"})}, 0.0)
    with (
        session_of(engine, replace(request, further=(further,)), record) as session,
        session.fetch(Role.CLIENT, "/downloads", 2) as archive,
    ):
        assert [file.name for file in list_files(archive, log_limits(CASE))] == ["a"]
    assert machine(engine).command[-5:] == (
        "ubd2rc=/roots/good.erofs", "ubd3rc=/roots/simulator.erofs", "ubd4rc=/roots/good.erofs",
        "ubd6rc=/roots/bad.erofs", "ubd7rc=/roots/good.erofs",
    )  # fmt: skip
    assert [word for word in machine(engine).command if word.startswith("--memory=")] == ["--memory=1024"]
    assert record.exits_of(2)[Role.CLIENT].status == 1
    assert record.exits_of(1)[Role.CLIENT].status == 0
