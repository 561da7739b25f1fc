"""Campaigns over a real Dask scheduler with real workers, each beside a Docker engine of threads."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import dask
import docker
import pytest
from distributed import LocalCluster, Worker

from quicsat.docker.archive import ArchiveLimits, pack
from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.execution import cluster as cluster_module
from quicsat.execution import worker_proxy, worker_service
from quicsat.execution.cluster import PLUGIN, RESOURCE, ServicePlugin
from quicsat.execution.dispatcher import Dispatcher
from quicsat.execution.lock import exclusive
from quicsat.execution.observer import Observer
from quicsat.execution.remaining_work import RemainingWork
from quicsat.execution.run_config import RunConfig
from quicsat.execution.worker import Outage, result_of
from quicsat.execution.worker_messages import AttemptReport, RemoteConfig
from quicsat.execution.worker_proxy import discover_workers
from quicsat.execution.worker_service import WorkerService
from quicsat.model.errors import HarnessFault, Interrupted, MachineError
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.real_link import Host, Scheduler
from quicsat.model.results import RunResult
from quicsat.model.run import Run
from quicsat.results.store import Journal, load
from tests.execution.test_dispatcher import Heard
from tests.fakes import CASE, PATIENCE, Loader, after, endpoint, hang, implementation, judge, only_as, run_of
from tests.faults import manifest
from tests.waiting import until

PLAN_OF_FOUR = replace(CASE, repetitions=4)


class Farm:
    """A scheduler, and workers at engines of their own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.engines: dict[str, Loader] = {}
        self._stack = ExitStack()
        cluster_module._quiet()
        self._cluster = self._stack.enter_context(
            LocalCluster(n_workers=0, processes=False, dashboard_address=":0", protocol="tcp", host="127.0.0.1")
        )
        self._monkeypatch = monkeypatch
        self.workers: dict[str, Worker] = {}
        monkeypatch.setattr(docker, "APIClient", lambda base_url, **_: self.engines[base_url].client())
        monkeypatch.setattr(worker_service, "start_reaper", lambda *_: nullcontext())

    @property
    def scheduler(self) -> Scheduler:
        return Scheduler(self._cluster.scheduler_address)

    def add(self, name: str, engine: Loader, testbeds: int = 1) -> WorkerService:
        self.engines[name] = engine
        service = WorkerService(Host("", name), judge, testbeds, measured=False, name=name)

        async def start() -> Worker:
            worker: Worker = await Worker(
                self.scheduler.address, nthreads=testbeds + 4, name=name, resources={RESOURCE: testbeds},
                memory_limit=0, plugins=(ServicePlugin(service),), dashboard=False,
            )  # fmt: skip
            return worker

        self.workers[name] = self._cluster.sync(start)
        return service

    def lose(self, name: str) -> None:
        """The worker is gone, as after kill -9: it says no farewell, and its engine is swept by its reaper."""
        worker = self.workers.pop(name)
        presence = worker.plugins[PLUGIN]
        assert isinstance(presence, ServicePlugin)
        self._cluster.sync(worker.close, nanny=False, executor_wait=False)
        presence.service.close()

    def close(self) -> None:
        for name in [*self.workers]:
            self.lose(name)
        self._stack.close()


@pytest.fixture
def farm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Farm]:
    monkeypatch.setattr("quicsat.execution.lock.FOLDERS", (str(tmp_path),))
    monkeypatch.setattr("quicsat.docker.containers.QUICK", 0.01)
    monkeypatch.setattr("quicsat.links.container_session.HEARTBEAT", 0.1)
    monkeypatch.setattr(worker_proxy, "POLL", 0.05)
    monkeypatch.setattr(worker_proxy, "REFUSAL", 0.3)
    monkeypatch.setattr(cluster_module, "WAKE", 0.05)
    made = Farm(monkeypatch)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def heard(tmp_path: Path) -> Heard:
    (tmp_path / "campaign").mkdir()
    return Heard(tmp_path / "campaign")


def source(**programs: Any) -> Daemon:
    """The daemon of whoever begins the campaign."""
    engine = Loader("source", **programs)
    engine.stock = dict(engine.programs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(docker, "APIClient", engine.client)
        return Daemon("fake://source", "test")


def remote_config(daemon: Daemon, *names: str) -> RemoteConfig:
    facts = {name: DaemonImages(daemon).find(name) for name in ("simulator", *names)}
    return RemoteConfig("test", RunConfig({name: image for name, image in facts.items() if image}), 6)


@contextmanager
def campaign(
    farm: Farm, heard: Heard, plan: Sequence[Run], stop: threading.Event | None = None, daemon: Daemon | None = None
) -> Iterator[Dispatcher]:
    daemon = daemon or source(good=endpoint)
    event = stop or threading.Event()
    names = dict.fromkeys(end.name for run in plan for end in (run.server, run.client))
    with (
        Journal.create(heard.directory, manifest(plan)) as journal,
        discover_workers(farm.scheduler, remote_config(daemon, *names), daemon, event, heard.said.append) as workers,
    ):
        yield Dispatcher(workers, journal, Observer(heard.said.append, heard.done.append))


def make(farm: Farm, heard: Heard, plan: Sequence[Run], **options: Any) -> None:
    """A whole campaign; ``options`` are those of ``campaign``."""
    with campaign(farm, heard, plan, **options) as opened:
        opened.run_all(RemainingWork(tuple(plan), {}), set())


def refusals(farm: Farm, heard: Heard, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is said in a campaign that ends because no worker takes part."""
    for patience in (2.0, 60.0):  # on a busy machine the first may be over before a worker was asked
        monkeypatch.setattr(worker_proxy, "PATIENCE", patience)
        place = Heard(heard.directory / f"{patience:.0f}")
        place.directory.mkdir()
        with pytest.raises(MachineError, match="No worker"):
            make(farm, place, [run_of()])
        if place.said:
            break
    return place.said


def hanging_after(act: Callable[[], object], name: str) -> Loader:
    """An engine of this name, whose image ``bad`` calls ``act`` as a client and hangs."""
    return Loader(name, good=endpoint, bad=only_as(Role.CLIENT, after(act, hang)))


def test_runs_are_made_by_workers_and_their_files_come_home(farm: Farm, heard: Heard) -> None:
    engines = [Loader(name, good=endpoint) for name in ("one", "two")]
    for engine in engines:
        farm.add(engine.identity, engine)
    plan = [run_of(case=PLAN_OF_FOUR, repetition=number) for number in range(1, 5)]
    with campaign(farm, heard, plan) as opened:
        wanted = {"good": (implementation("good"), set(Role))}
        assert opened.run_all(RemainingWork(tuple(plan), {}), opened.check_compliance(wanted)) is None
    assert heard.codes == [""] * 4
    assert [result.verdict.reason for result in heard.journalled] == [""] * 4
    assert sorted(result.repetition for result in heard.journalled) == [1, 2, 3, 4]
    for run in plan:
        assert (heard.directory / run.path / "output.txt").is_file()
        assert (heard.directory / run.path / "client/keys.log").is_file()
        assert (heard.directory / run.path / "sim/link.json").is_file()
    labels = {life.labels["quicsat.campaign"] for engine in engines for life in engine.all_lives}
    assert {label.partition(".")[0] for label in labels} == {"test"}
    assert [engine.lives for engine in engines] == [{}, {}]
    assert len(load(heard.directory).result_set.compliance) == 2


def test_images_that_a_worker_lacks_are_carried_to_it(farm: Farm, heard: Heard) -> None:
    engine = Loader("bare", good=endpoint)
    engine.programs = {"link-tools": engine.programs["link-tools"]}
    farm.add("bare", engine)
    make(farm, heard, [run_of()])
    assert heard.codes == [""]
    assert sorted(engine.loaded) == ["good", "simulator"]


def test_a_worker_with_another_image_of_that_name_is_refused(
    farm: Farm, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other(Loader):
        def inspect_image(self, reference: str) -> dict[str, Any]:
            found = super().inspect_image(reference)
            return found | {"Id": "another"} if reference == "good" else found

    engine = Other("other", good=endpoint)
    farm.add("other", engine)
    [said] = refusals(farm, heard, monkeypatch)
    assert "does not take part: good is good here and another at other" in said
    assert engine.all_lives == []


def test_the_runs_of_a_lost_worker_are_repeated_elsewhere(farm: Farm, heard: Heard) -> None:
    begun = threading.Event()
    doomed = hanging_after(begun.set, "doomed")
    sound = Loader("sound", good=endpoint, bad=endpoint)
    farm.add("doomed", doomed)

    def replace_it() -> None:
        assert begun.wait(PATIENCE)
        farm.add("sound", sound)
        farm.lose("doomed")

    thread = threading.Thread(target=replace_it)
    thread.start()
    plan = [run_of(client="bad")]
    make(farm, heard, plan, daemon=source(good=endpoint, bad=endpoint))
    thread.join()
    assert [(result.attempt, result.verdict.code.value) for result in heard.journalled] == [(1, "worker-lost"), (2, "")]
    assert [result.verdict.outcome for result in heard.done] == [Outcome.SUCCEEDED]
    assert heard.done[0].evidence.notes[-1] == "measured by worker sound"
    assert (doomed.lives, sound.lives) == ({}, {})
    assert (heard.directory / plan[0].path / "client/keys.log").is_file()


def test_a_worker_of_another_version_is_refused(farm: Farm, heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = iter(range(1000))
    monkeypatch.setattr(cluster_module, "code_version", lambda: f"edition {next(asked)}")
    farm.add("old", Loader("old", good=endpoint))
    said = refusals(farm, heard, monkeypatch)
    assert "it runs version edition" in said[0]
    assert "install the same" in said[0]


def test_a_worker_whose_daemon_is_in_use_takes_part_later(
    farm: Farm, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    farm.add("busy", Loader("busy", good=endpoint))
    stack = ExitStack()
    stack.enter_context(exclusive("busy /", "something else"))

    def end_after_refusal() -> None:
        until(lambda: heard.said)
        stack.close()

    threading.Thread(target=end_after_refusal, daemon=True).start()
    make(farm, heard, [run_of()])
    assert heard.codes == [""]
    assert "Another campaign uses this Docker daemon" in heard.said[0]


def test_a_scheduler_that_nobody_knows_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "CONNECT_TIMEOUT", 1.0)
    with (
        pytest.raises(MachineError, match="No Dask scheduler answers"),
        discover_workers(
            Scheduler("tcp://127.0.0.1:9"), remote_config(source(good=endpoint)), source(), threading.Event(), print
        ),
    ):
        pass


def test_workers_remain_while_the_client_updates_its_own_facts(farm: Farm) -> None:
    """Dask's client has a timer that replaces what it knows about the scheduler, without workers."""
    farm.add("one", Loader("one", good=endpoint))
    with dask.config.set({"distributed.client.scheduler-info-interval": "1ms"}):
        cluster = cluster_module.Cluster(farm.scheduler)
    try:
        assert {len(cluster.offers()) for _ in range(300)} == {1}
    finally:
        cluster.close()


def test_an_interruption_ends_what_workers_do(farm: Farm, heard: Heard) -> None:
    stop = threading.Event()
    engine = hanging_after(stop.set, "one")
    service = farm.add("one", engine)
    plan = [run_of(client="bad")]
    with pytest.raises(Interrupted):
        make(farm, heard, plan, stop=stop, daemon=source(good=endpoint, bad=endpoint))
    assert engine.lives == {}
    assert service._session is None
    assert heard.journalled == []
    assert not (heard.directory / plan[0].path).exists()


def test_a_worker_notices_that_the_campaign_has_died(farm: Farm) -> None:
    began = threading.Event()
    engine = hanging_after(began.set, "one")
    service = farm.add("one", engine)
    cluster = cluster_module.Cluster(farm.scheduler)
    [address] = cluster.offers()
    asked = remote_config(source(good=endpoint, bad=endpoint), "good", "bad")
    _, held = cluster.hold(address, "open", cluster_module.session_key("test"), asked)
    cluster.ask(address, "begin")
    run = run_of(client="bad")

    def attempt() -> None:
        with pytest.raises((HarnessFault, MachineError)):
            cluster.ask(address, "attempt", 0, run, 1, stop=threading.Event())

    threading.Thread(target=attempt, daemon=True).start()
    assert began.wait(PATIENCE)
    cluster._client.close()  # says nothing to the worker, nor does what is held here
    assert callable(held)
    assert until(lambda: service._session is None and not engine.lives)


class Unanswered(Mock):
    """A future of Dask's that is done, and whose result was on its way when the connection ended."""

    def add_done_callback(self, act: Callable[[object], None]) -> None:
        act(self)

    def result(self, timeout: float | None = None) -> object:
        assert timeout is not None, "this would wait for ever"
        raise TimeoutError


def test_an_answer_that_is_lost_on_its_way_is_not_waited_for(farm: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    farm.add("one", Loader("one", good=endpoint))
    cluster = cluster_module.Cluster(farm.scheduler)
    [address] = cluster.offers()
    monkeypatch.setattr(cluster, "_submit", lambda *_, **__: Unanswered())
    with pytest.raises(HarnessFault, match="was lost"):
        cluster.ask(address, "begin")


# ---- answers are not believed ---------------------------------------------------------------


class Liar(worker_proxy.WorkerProxy):
    """A proxy whose worker gives the answers of a test."""

    def __init__(self, **answers: Any) -> None:
        self.name = "worker liar"
        self.lost = False
        self.stop = threading.Event()
        self.answers = answers
        self.said: list[str] = []
        self.say = self.said.append

    def ask(self, verb: str, *words: Any, **_: Any) -> Any:
        answer = self.answers[verb]
        return answer(*words) if callable(answer) else answer


def good_result(run: Run) -> RunResult:
    return result_of(run, 1, Verdict(Outcome.SUCCEEDED))


def attempt_at(liar: Liar, directory: Path) -> RunResult:
    place = worker_proxy.SlotProxy(liar, 0)
    return place.attempt(run_of(), 1, directory / "run")


def test_an_answer_about_another_run_is_not_believed(tmp_path: Path) -> None:
    for wrong in (run_of(repetition=2), run_of(server="bad"), replace(run_of(), seed=9)):
        result = attempt_at(Liar(attempt=AttemptReport(good_result(wrong), (), 0)), tmp_path)
        assert (result.verdict.outcome, result.verdict.code) == (Outcome.ERROR, ErrorCode.HARNESS_FAULT)
        assert result.repetition == 1
    assert attempt_at(Liar(attempt="nonsense"), tmp_path).verdict.outcome is Outcome.ERROR


def test_files_of_a_worker_stay_below_the_directory_of_the_run(tmp_path: Path) -> None:
    data = pack({"run/../../outside": b"1", "run/inside": b"2"}).read()
    liar = Liar(
        attempt=AttemptReport(good_result(run_of()), (), len(data)), fetch=lambda _place, at: data[at:], drop=None
    )
    assert attempt_at(liar, tmp_path / "a").verdict.outcome is Outcome.SUCCEEDED
    names = {path.relative_to(tmp_path / "a").parts[0] for path in (tmp_path / "a").rglob("*")}
    assert names == {"run"}
    assert (tmp_path / "a/run/inside").read_bytes() == b"2"


def test_a_worker_cannot_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = ArchiveLimits(total=100_000, fault=ErrorCode.TRACE_LIMIT)
    monkeypatch.setattr(worker_proxy, "run_limits", lambda _test_case: small)
    data = pack({f"run/{number}": b"x" * 50_000 for number in range(10)}).read()
    endless = Liar(attempt=AttemptReport(good_result(run_of()), (), 2**60), fetch=lambda _place, at: data[at:])
    verdict = attempt_at(endless, tmp_path).verdict
    assert (verdict.outcome, verdict.code) == (Outcome.ERROR, ErrorCode.TRACE_LIMIT)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 200_000


def test_an_archive_that_ends_too_early_is_our_fault(tmp_path: Path) -> None:
    liar = Liar(attempt=AttemptReport(good_result(run_of()), (), 5000), fetch=b"")
    assert attempt_at(liar, tmp_path).verdict.code is ErrorCode.WORKER_LOST


@pytest.mark.parametrize(("answer", "reason"), [(Outage("its \x1bdisk"), "its "), ("its disk", "invalid answer")])
def test_who_is_silent_at_a_worker_is_told(answer: object, reason: str) -> None:
    outage = worker_proxy.SlotProxy(Liar(reset=answer), 0).reset(alone=False)
    assert outage.reason.startswith(f"worker liar: {reason}")
    assert "\x1b" not in outage.reason
    assert worker_proxy.SlotProxy(Liar(reset=None), 0).reset(alone=True) is None


def test_a_full_disk_of_a_worker_does_not_end_the_campaign(tmp_path: Path) -> None:
    full = replace(good_result(run_of()), verdict=Verdict(Outcome.ERROR, ErrorCode.DISK_FULL, "Full."))
    result = attempt_at(Liar(attempt=AttemptReport(full, ("odd \x1b[2J",), 0), drop=None), tmp_path)
    assert result.verdict.code is ErrorCode.HARNESS_FAULT
    assert "worker liar is full" in result.verdict.reason
