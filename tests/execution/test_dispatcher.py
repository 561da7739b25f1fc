"""A plan on its way: every run ends in the journal, ours are tried again, and nothing but the results is left."""

import shutil
import threading
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from docker.errors import APIError

from quicsat.analysis.analyse import analyse
from quicsat.execution import admission, retries
from quicsat.execution import worker_pool as module
from quicsat.execution.dispatcher import Dispatcher
from quicsat.execution.local_worker import LocalWorker
from quicsat.execution.observer import Observer
from quicsat.execution.remaining_work import RemainingWork
from quicsat.execution.retries import ATTEMPTS
from quicsat.execution.worker import Analyse
from quicsat.execution.worker_pool import WorkerPool
from quicsat.links import container_session
from quicsat.links.ns3_testbed import Ns3Backend
from quicsat.model.errors import Interrupted, MachineError
from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Role
from quicsat.model.outcomes import Check, ErrorCode, Outcome, Verdict
from quicsat.model.results import Measurement, RunResult
from quicsat.model.run import Run
from quicsat.report import functional_table
from quicsat.results.store import Journal, load
from quicsat.results.summary import summarise
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
    hang,
    judge,
    only_as,
    run_config,
    run_of,
    simulate,
)
from tests.faults import manifest


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patience that tests can afford."""
    monkeypatch.setattr(module, "OUTAGE_PATIENCE", 2)
    monkeypatch.setattr("quicsat.docker.containers.QUICK", 0.01)
    monkeypatch.setattr(container_session, "HEARTBEAT", 0.1)


@dataclass
class Heard:
    """What a campaign came to."""

    directory: Path
    said: list[str] = field(default_factory=list)
    done: list[RunResult] = field(default_factory=list)

    @property
    def codes(self) -> list[str]:
        return [result.verdict.code.value for result in self.done]

    @property
    def journalled(self) -> list[RunResult]:
        return list(load(self.directory).history)


class Stop(threading.Event):
    """A stop event with which waiting for the daemon takes no time; ``meanwhile`` happens in that time."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Any = lambda: None

    def wait(self, timeout: float | None = None) -> bool:
        self.meanwhile()
        return super().wait(min(timeout or 0, 0.05))


def run_all(
    engine: FakeEngine,
    heard: Heard,
    *plan: Run,
    judged: Analyse = judge,
    stop: threading.Event | None = None,
    compliance: bool = False,
    testbeds: int = 1,
    disturbed: Collection[Run] = (),
    **options: Any,
) -> None:
    daemon = connect(engine)
    backend, observer = Ns3Backend(daemon, SIMULATOR), Observer(heard.said.append, heard.done.append)
    config, stop = run_config(engine, **options), stop or Stop()
    worker = LocalWorker(daemon, backend, config, judged, stop, observer=observer, testbeds=testbeds)
    wanted = {end.name: (end, set(Role)) for run in plan for end in (run.server, run.client)} if compliance else {}
    with Journal.create(heard.directory, manifest(plan)) as journal, closing(WorkerPool(stop, worker)) as workers:
        dispatcher = Dispatcher(workers, journal, observer)
        work = RemainingWork(plan, {}, disturbed=frozenset(disturbed))
        dispatcher.run_all(work, dispatcher.check_compliance(wanted))


@pytest.fixture
def heard(tmp_path: Path) -> Heard:
    return Heard(tmp_path)


GOOD, AGAIN, BAD = run_of(), run_of(repetition=2), run_of(client="bad")
TWICE = replace(CASE, repetitions=2)
FIRST, SECOND = run_of(case=TWICE), run_of(case=TWICE, repetition=2)
BAD_TWICE = [run_of(client="bad", case=TWICE, repetition=number) for number in (1, 2)]


def with_bad(client: Program) -> FakeEngine:
    """An engine with the images ``good``, and ``bad``, which is as good but as a client."""
    return FakeEngine(good=endpoint, bad=only_as(Role.CLIENT, client))


def first_time(verdict: Verdict | Exception) -> Analyse:
    """An analysis that gives, or raises, ``verdict`` about first repetitions, and is right about others."""

    def analyse_run(run: Run, evidence: Evidence, directory: Path) -> tuple[Verdict, Measurement | None]:
        if run.repetition > 1:
            return judge(run, evidence, directory)
        if isinstance(verdict, Exception):
            raise verdict
        return verdict, None

    return analyse_run


# ---- what goes well -------------------------------------------------------------------------


def test_runs_share_a_testbed_and_leave_nothing_behind(heard: Heard) -> None:
    """Each result is on disk before anyone hears of it."""

    class Careful(list[RunResult]):
        def append(self, result: RunResult) -> None:
            assert heard.journalled[-1] == result
            super().append(result)

    heard.done = Careful()
    engine = FakeEngine(good=endpoint)
    run_all(engine, heard, FIRST, SECOND)
    assert heard.codes == ["", ""]
    assert engine.log.count(("create", "plumb")) == 1
    assert engine.lives == {}
    assert load(heard.directory).result_set.results == tuple(heard.journalled) == tuple(heard.done)
    evidence = heard.done[0].evidence
    assert evidence.host.engine == "99.0"
    assert "analyse" in evidence.phases


def test_a_run_that_is_judged_is_nobodys_neighbour(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "slow_start", lambda _link: PATIENCE)  # the other begins when the client has ended
    judged, other = list[Run](), threading.Event()

    def patient(run: Run, evidence: Evidence, directory: Path) -> tuple[Verdict, Measurement | None]:
        judged.append(run)
        if len(judged) == 1:
            other.wait(PATIENCE)
        else:
            other.set()
        return judge(run, evidence, directory)

    run_all(FakeEngine(good=endpoint), heard, FIRST, SECOND, judged=patient, testbeds=2)
    assert [result.evidence.host and result.evidence.host.neighbours for result in heard.done] == [0, 0]


def test_failures_of_the_pair_are_not_repeated_and_their_files_are_kept(heard: Heard) -> None:
    run_all(with_bad(end_with(1)), heard, BAD, GOOD, keep_files=True)
    assert heard.codes == ["client-failed", ""]
    assert [result.attempt for result in heard.journalled] == [1, 1]
    assert len(list((heard.directory / BAD.path / "www").iterdir())) == len(CASE.file_sizes)
    assert not (heard.directory / GOOD.path / "www").exists()
    assert not (heard.directory / GOOD.path / "downloads").exists()
    assert (heard.directory / GOOD.path / "output.txt").exists()


# ---- our own faults -------------------------------------------------------------------------


def dying_simulator(times: int) -> FakeEngine:
    """An engine at which the first simulators have ended as soon as they are started."""
    left = [times]

    class Engine(FakeEngine):
        def start(self, identity: str) -> None:
            life = self.lives[identity]
            if "SCENARIO" in life.environment and left[0]:
                left[0] -= 1
                life.end(134)
            else:
                super().start(identity)

    return Engine(good=endpoint)


def test_a_run_is_repeated_after_a_fault_of_ours(heard: Heard) -> None:
    engine = dying_simulator(1)
    run_all(engine, heard, GOOD)
    outcomes = [(result.attempt, result.verdict.outcome) for result in heard.journalled]
    assert outcomes == [(1, Outcome.ERROR), (2, Outcome.SUCCEEDED)]
    assert engine.log.count(("create", "plumb")) == 2  # its networks are made anew
    assert heard.codes == [""]
    assert "is repeated" in heard.said[0]
    assert sorted(path.name for path in (heard.directory / GOOD.path).parent.iterdir()) == ["1", "1.attempt-1"]
    assert load(heard.directory).result_set.results == tuple(heard.done)


def lagging_simulator(late: Collection[int]) -> FakeEngine:
    """An engine whose simulator was late in the attempts of these numbers, counted over the whole campaign."""
    engine, numbers = with_bad(end_with(1)), count(1)
    delayed = REPORT | {"receive_overflows": 3, "lag": REPORT["lag"] | {"max": 0.5}}
    engine.report = lambda: delayed if next(numbers) in late else REPORT
    return engine


FUNCTIONAL = replace(CASE, name="handshake", abbreviation="H", check=Check.HANDSHAKE, repetitions=2)


def test_a_pass_with_a_late_simulator_is_excluded_and_repeated_like_a_failure(heard: Heard) -> None:
    good = [run_of(case=FUNCTIONAL, repetition=number) for number in (1, 2)]
    bad = [run_of(client="bad", case=FUNCTIONAL, repetition=number) for number in (1, 2)]
    run_all(lagging_simulator({1, 3, 4, 6}), heard, good[0], bad[0], good[1], bad[1], judged=analyse)
    otherwise = [
        (each.client, each.repetition, each.attempt, each.verdict.code.value, each.verdict.if_valid)
        for each in heard.journalled
    ]
    late, failed = "simulator-lag", "client-failed"
    assert [each[:4] for each in otherwise] == [
        ("good", 1, 1, late), ("good", 1, 2, ""), ("bad", 1, 1, late), ("bad", 1, 2, late), ("bad", 1, 3, failed),
        ("good", 2, 1, late), ("good", 2, 2, ""), ("bad", 2, 1, failed),
    ]  # fmt: skip
    would_be = [each[4].code.value if each[4] else None for each in otherwise]
    assert would_be == ["", None, failed, failed, None, "", None, None]
    results = load(heard.directory).result_set
    cells = {cell.client: (cell.succeeded, cell.attempts, cell.excluded) for cell in summarise(results)}
    assert cells == {"good": (2, 4, 2), "bad": (0, 4, 2)}
    text = functional_table.matrix(results)
    assert "│ good   │ good   │ ✓+2 │ 2/2    │" in text
    assert "│ bad    │ good   │ ×+2 │ 0/2    │" in text
    assert "Of 8 attempts in total, quicsat excluded 4" in text


def test_a_pass_of_which_every_attempt_is_excluded_is_an_error_of_ours(heard: Heard) -> None:
    run_all(lagging_simulator(range(1, ATTEMPTS + 1)), heard, run_of(case=FUNCTIONAL), judged=analyse)
    assert heard.codes == ["simulator-lag"]
    [cell] = summarise(load(heard.directory).result_set)
    assert (cell.succeeded, cell.error, cell.attempts, cell.excluded) == (0, 1, ATTEMPTS, ATTEMPTS)


def test_a_run_is_tried_a_few_times_at_most(heard: Heard) -> None:
    run_all(dying_simulator(ATTEMPTS), heard, FIRST, SECOND)
    assert heard.codes == ["simulator-failed", ""]
    assert [result.attempt for result in heard.journalled] == [*range(1, ATTEMPTS + 1), 1]
    names = {path.name for path in (heard.directory / GOOD.path).parent.iterdir()}
    assert names == {"1", "2", *(f"1.attempt-{attempt}" for attempt in range(1, ATTEMPTS))}


def test_a_daemon_that_comes_back_is_waited_for(heard: Heard) -> None:
    stop = Stop()

    def pull_the_plug(life: Life) -> int:
        if not engine.gone and engine.log.count(("create", "plumb")) == 1:
            engine.gone = True
        return endpoint(life)

    engine = with_bad(pull_the_plug)
    stop.meanwhile = lambda: setattr(engine, "gone", False)
    run_all(engine, heard, BAD, GOOD, stop=stop)
    codes = [(result.attempt, result.verdict.code.value) for result in heard.journalled]
    assert codes == [(1, "daemon-fault"), (2, ""), (1, "")]
    assert engine.log.count(("create", "plumb")) == 2
    assert engine.lives == {}


def test_a_daemon_that_stays_away_ends_the_campaign(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OUTAGE_PATIENCE", 0)
    engine = with_bad(after(lambda: setattr(engine, "gone", True), endpoint))
    with pytest.raises(MachineError, match="No worker could be used for"):
        run_all(engine, heard, GOOD, BAD)
    assert heard.codes == [""]
    assert [result.verdict.code.value for result in heard.journalled] == ["", "daemon-fault"]


@pytest.mark.parametrize("linked", [GOOD.path, GOOD.path.parents[1]], ids=str)
def test_a_link_in_a_campaign_leads_no_run_elsewhere(heard: Heard, tmp_path: Path, linked: Path) -> None:
    heard.directory = tmp_path / "campaign"
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / GOOD.path.relative_to(linked)).mkdir(parents=True)
    (heard.directory / linked).parent.mkdir(parents=True)
    (heard.directory / linked).symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    with pytest.raises(MachineError, match="symbolic link"):
        run_all(FakeEngine(good=endpoint), heard, GOOD)
    assert sorted(elsewhere.rglob("*")) == before


def test_a_testbed_that_cannot_be_made_is_our_fault(heard: Heard) -> None:
    def broken(life: Life) -> int:
        return 1 if life.command[:1] == ("plumb",) else simulate(life)

    run_all(FakeEngine(simulator=broken, good=endpoint), heard, GOOD)
    assert heard.codes == ["daemon-fault"]
    assert len(heard.journalled) == ATTEMPTS


@pytest.mark.parametrize("fault", ["a bug", "a number that JSON cannot hold"])
def test_a_fault_of_the_analysis_costs_one_run(heard: Heard, fault: str) -> None:
    def endless(run: Run, evidence: Evidence, directory: Path) -> tuple[Verdict, Measurement | None]:
        value = float("inf") if run.repetition == 1 else 1.0
        return judge(run, evidence, directory)[0], Measurement({"goodput": value})

    buggy = first_time(ZeroDivisionError("division by zero"))
    run_all(FakeEngine(good=endpoint), heard, FIRST, SECOND, judged=buggy if fault == "a bug" else endless)
    assert heard.codes == ["harness-fault", ""]
    assert fault != "a bug" or "division by zero" in heard.done[0].verdict.reason


# ---- side by side ---------------------------------------------------------------------------


def test_runs_stand_side_by_side_in_testbeds_of_their_own(heard: Heard) -> None:
    together = threading.Barrier(2)
    engine = with_bad(after(lambda: together.wait(PATIENCE), endpoint))
    run_all(engine, heard, *BAD_TWICE, testbeds=2)
    assert heard.codes == ["", ""]
    assert engine.log.count(("create", "plumb")) == 2
    assert engine.lives == {}
    assert [result.evidence.host.neighbours for result in heard.done if result.evidence.host] == [1, 1]
    assert {(result.client, result.repetition) for result in heard.journalled} == {("bad", 1), ("bad", 2)}


def test_a_run_that_neighbours_disturbed_before_an_interruption_is_made_alone(heard: Heard) -> None:
    run_all(FakeEngine(good=endpoint), heard, FIRST, SECOND, testbeds=2, disturbed={FIRST})
    assert [result.repetition for result in heard.done] == [SECOND.repetition, FIRST.repetition]
    assert heard.said == ["repeating 1 run that parallel runs may have disturbed, one at a time"]


def starved_beside_others(*repetitions: int) -> Analyse:
    """An analysis of runs that do not bear others beside them."""

    def analyse(run: Run, evidence: Evidence, directory: Path) -> tuple[Verdict, Measurement | None]:
        if run.repetition in repetitions and evidence.host is not None and evidence.host.neighbours:
            return Verdict(Outcome.ERROR, ErrorCode.HOST_STARVED, "Too many."), None
        return judge(run, evidence, directory)

    return analyse


def test_a_run_that_neighbours_disturbed_is_repeated_alone(heard: Heard) -> None:
    together = threading.Barrier(2)

    def meet() -> None:
        if not heard.journalled:
            together.wait(PATIENCE)

    engine = with_bad(after(meet, endpoint))
    run_all(engine, heard, *BAD_TWICE, testbeds=2, judged=starved_beside_others(1))
    assert [(result.repetition, result.attempt) for result in heard.done] == [(2, 1), (1, 2)]
    assert heard.codes == ["", ""]
    assert "to be repeated with fewer runs beside it: Too many." in heard.said[0]
    codes = {(result.repetition, result.attempt): result.verdict.code.value for result in heard.journalled}
    assert codes == {(1, 1): "host-starved", (1, 2): "", (2, 1): ""}


def test_runs_that_neighbours_disturbed_are_repeated_with_fewer_and_fewer_beside_them(heard: Heard) -> None:
    together = threading.Barrier(2)

    def meet() -> None:
        if len(heard.journalled) < 4:
            together.wait(PATIENCE)

    engine = with_bad(after(meet, endpoint))
    run_all(engine, heard, *BAD_TWICE, testbeds=8, judged=starved_beside_others(1, 2))
    assert sorted((result.repetition, result.attempt) for result in heard.done) == [(1, 3), (2, 3)]
    assert heard.codes == ["", ""]
    assert [text.rpartition(", ")[2] for text in heard.said if "repeating" in text] == ["2 at a time", "one at a time"]


def test_neighbours_that_a_run_alone_claims_to_have_do_not_make_it_repeat_for_ever(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "disturbed", lambda _: True)
    starved = first_time(Verdict(Outcome.ERROR, ErrorCode.HOST_STARVED, "Too many."))
    run_all(FakeEngine(good=endpoint), heard, FIRST, SECOND, judged=starved)
    assert [(result.repetition, result.attempt) for result in heard.done] == [(1, 3), (2, 1)]
    assert heard.codes == ["host-starved", ""]


DISK_FULL = first_time(Verdict(Outcome.ERROR, ErrorCode.DISK_FULL, "The disk is full."))


@pytest.mark.parametrize("testbeds", [1, 2])
def test_a_disk_that_fills_during_a_run_ends_the_campaign_and_its_neighbours(heard: Heard, testbeds: int) -> None:
    engine = with_bad(hang)
    with pytest.raises(MachineError, match="disk is full"):
        run_all(engine, heard, FIRST, BAD_TWICE[1], testbeds=testbeds, judged=DISK_FULL)
    assert heard.done == []
    assert engine.lives == {}


# ---- what ends a campaign -------------------------------------------------------------------


def test_a_full_disk_ends_the_campaign_and_keeps_what_is_finished(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(heard.directory)
    free = iter([2**40, 2**20])
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=next(free)))
    engine = FakeEngine(good=endpoint)
    with pytest.raises(MachineError, match="Only 1 MiB are free"):
        run_all(engine, heard, FIRST, SECOND)
    assert heard.codes == [""]
    assert len(heard.journalled) == 1
    assert engine.lives == {}


def test_an_interrupted_run_leaves_nothing_and_none_begins_after_it(heard: Heard) -> None:
    stop = Stop()
    engine = with_bad(after(stop.set, hang))
    with pytest.raises(Interrupted):
        run_all(engine, heard, GOOD, BAD, AGAIN, stop=stop)
    assert heard.codes == [""]
    assert (heard.directory / GOOD.path).is_dir()
    assert not (heard.directory / BAD.path).exists()
    assert not (heard.directory / AGAIN.path).exists()
    assert engine.lives == {}


# ---- compliance -----------------------------------------------------------------------------


def test_images_that_are_not_compliant_are_not_run(heard: Heard) -> None:
    engine = FakeEngine(good=endpoint, bad=lambda life: 1 if life.environment["ROLE"] == "client" else endpoint(life))
    run_all(engine, heard, run_of(server="bad"), BAD, compliance=True)
    assert heard.codes == ["", "not-compliant"]
    assert heard.done[1].verdict.outcome is Outcome.UNSUPPORTED
    assert "bad as client" in heard.done[1].verdict.reason
    assert not (heard.directory / BAD.path).exists()
    checked = {
        (each.implementation, str(each.role)): each.compliant for each in load(heard.directory).result_set.compliance
    }
    assert [end for end, compliant in sorted(checked.items()) if not compliant] == [("bad", "client")]
    assert len(checked) == 4
    assert any("bad is not compliant as client" in said for said in heard.said)


def test_a_compliance_check_is_tried_more_often_than_a_run(heard: Heard) -> None:
    """Each is ended by a fault of ours, as when a daemon is started anew time and again."""
    engine = dying_simulator(ATTEMPTS + 1)
    run_all(engine, heard, GOOD, compliance=True)
    assert heard.codes == [""]


def test_compliance_that_cannot_be_checked_ends_the_campaign(heard: Heard) -> None:
    class Refuses(FakeEngine):
        def start(self, identity: str) -> None:
            if "ROLE" in self.lives[identity].environment:
                raise APIError("start was refused", explanation="start was refused")
            super().start(identity)

    with pytest.raises(MachineError, match="compliance of good could not be checked"):
        run_all(Refuses(good=endpoint), heard, GOOD, compliance=True)
    assert heard.done == []
