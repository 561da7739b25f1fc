"""A campaign that was cut short goes on exactly as it began: the same plan, images and options."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quicsat.docker.daemon_images import DaemonImages
from quicsat.execution.campaign_config import CampaignOutcome
from quicsat.execution.observer import Observer
from quicsat.execution.remaining_work import changed_parameters, remaining_work
from quicsat.execution.run_campaign import resume_campaign
from quicsat.execution.run_config import RunConfig, environment_parameters
from quicsat.model.errors import InputError, MachineError
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import PARAMETERS, ImageFacts, RunResult
from quicsat.model.run import Run
from quicsat.plan.limits import CampaignLimits
from quicsat.plan.order import involving, of_pairs, part_of, shuffled
from quicsat.plan.stored_plan import CHOOSING, plan_of
from quicsat.results.store import load
from tests import fakes
from tests.fakes import CASE, FakeEngine, after, conditions_of, end_with, endpoint, hang, measure, only_as, select
from tests.hostile_results import sealed

TWICE = replace(CASE, repetitions=2)


def begin(directory: Path, *clients: str, qlog: bool = True, **options: Any) -> CampaignOutcome:
    selection = select(*clients, cases=(TWICE,))
    plan = of_pairs(involving(fakes.plan_of(selection), options.get("must_include", ())), options.get("pairs", ()))
    plan = part_of(plan, options.get("shard", ""))
    plan = shuffled(plan, 3) if options.get("shuffle") else plan
    config = RunConfig(parameters=environment_parameters(), qlog=qlog)
    return measure(selection, directory, plan=plan, run=config, **options)


def go_on(directory: Path, *retry: Outcome, **options: Any) -> tuple[CampaignOutcome, list[Run], list[RunResult]]:
    """What it came to, what was said to be left, and what was done."""
    rest, done = list[Run](), list[RunResult]()
    observer = Observer(done=done.append, planned=rest.extend)
    return resume_campaign(directory, retry, conditions_of(options), observer), rest, done


def interrupt(engine: FakeEngine) -> None:
    """The first client of ``bad`` sends a signal, later ones are good."""

    def once() -> None:
        engine.programs["bad"] = endpoint
        os.kill(os.getpid(), signal.SIGTERM)

    engine.programs["bad"] = only_as(Role.CLIENT, after(once, hang))


def test_what_has_a_result_is_not_made_again(engine: FakeEngine, tmp_path: Path) -> None:
    interrupt(engine)
    cut = begin(tmp_path, "good", "bad", qlog=False)
    assert cut.signal == signal.SIGTERM
    assert len(cut.record.result_set.results) == 1
    finished, rest, done = go_on(cut.directory)
    assert [(run.client.name, run.repetition) for run in rest] == [("bad", 1), ("good", 2), ("bad", 2)]
    assert [result.verdict.outcome for result in done] == [Outcome.SUCCEEDED] * 3
    results = finished.record.result_set
    assert (len(results.results), finished.directory) == (4, cut.directory)
    assert results.finished is not None
    seeds = {(result.repetition, result.evidence.seed) for result in results.results}
    assert len(seeds) == 2
    qlogs = {life.environment["QLOGDIR"] for life in engine.all_lives if life.environment.get("ROLE") == "client"}
    assert qlogs == {""} | {life.environment["QLOGDIR"] for life in engine.all_lives if "compliance" in life.name}


@pytest.mark.parametrize(
    "options",
    [
        {"shuffle": True},
        {"shard": "2/2"},
        {"shuffle": True, "shard": "1/2"},
        {"must_include": ("bad", "odd")},
        {"pairs": ("good/bad", "good/odd")},
    ],
)
def test_order_and_part_of_a_plan_are_remembered(engine: FakeEngine, tmp_path: Path, options: dict[str, Any]) -> None:
    """With no time at all nothing is made; what is left then is the plan, in its order."""
    names = ("good", "bad", "odd", "even")
    engine.programs |= dict.fromkeys(names, endpoint)
    stopped = begin(tmp_path, *names, limits=CampaignLimits(most_seconds=0), **options)
    assert stopped.out_of_time == "No other run is likely to end within 0.0 ms."
    assert (stopped.record.result_set.finished, stopped.record.result_set.results) == (None, ())
    plan = plan_of(stopped.record.result_set.manifest)
    assert len(plan) == (4 if {"shard", "must_include", "pairs"} & set(options) else 8)
    finished, rest, done = go_on(stopped.directory)
    assert tuple(rest) == plan
    assert [(each.client, each.repetition) for each in done] == [(run.client.name, run.repetition) for run in plan]
    assert finished.record.result_set.finished is not None


def test_a_part_without_one_of_the_test_cases_goes_on(engine: FakeEngine, tmp_path: Path) -> None:
    brief = replace(CASE, name="brief", abbreviation="BR", repetitions=1)
    selection = select("good", cases=(TWICE, brief))
    plan = part_of(fakes.plan_of(selection), "2/2")
    done = measure(selection, tmp_path, plan=plan, shard="2/2")
    assert [result.test_case for result in done.record.result_set.results] == ["brief"]
    assert plan_of(done.record.result_set.manifest) == plan


def test_what_neighbours_have_disturbed_is_known(engine: FakeEngine, tmp_path: Path) -> None:
    record = begin(tmp_path, "good").record
    starved, other = (
        replace(result, verdict=Verdict(Outcome.ERROR, ErrorCode.HOST_STARVED), evidence=replace(
            result.evidence, host=replace(result.evidence.host, neighbours=neighbours)
        ))
        for result, neighbours in zip(record.history, (2, 0), strict=True)
        if result.evidence.host
    )  # fmt: skip
    cut = replace(record, history=(starved, other), result_set=replace(record.result_set, results=(starved, other)))
    rest = remaining_work(cut, ())
    assert [run.repetition for run in rest.runs] == [1, 2]
    assert [run.repetition for run in rest.disturbed] == [1]


def test_what_was_skipped_is_made_if_asked_for(engine: FakeEngine, tmp_path: Path) -> None:
    first = begin(tmp_path, "good", "bad", limits=CampaignLimits(budget=1e-6))
    outcomes = [result.verdict.outcome for result in first.record.result_set.results]
    assert outcomes == [Outcome.SUCCEEDED, Outcome.SKIPPED, Outcome.SKIPPED, Outcome.SKIPPED]
    assert first.record.result_set.finished is not None
    assert go_on(first.directory)[1] == []
    killed = first.directory / "good_bad" / TWICE.name / "1"  # an attempt that was killed
    (killed / ".inputs-killed").mkdir(parents=True)
    engine.programs["bad"] = endpoint
    results = go_on(first.directory, Outcome.SKIPPED)[0].record.result_set.results
    assert [result.verdict.outcome for result in results] == [Outcome.SUCCEEDED] * 4
    assert [path.name for path in killed.parent.iterdir() if "1" in path.name] == ["1"]
    assert not (killed / ".inputs-killed").exists()


def test_what_was_spent_before_counts_unless_it_is_asked_for_what_that_skipped(
    engine: FakeEngine, tmp_path: Path
) -> None:
    tight = CampaignLimits(budget=1e-6)
    interrupt(engine)
    cut = begin(tmp_path, "good", "bad")
    done = go_on(cut.directory, limits=tight)[2]
    assert [result.verdict.outcome for result in done] == [Outcome.SKIPPED] * 3
    done = go_on(cut.directory, Outcome.SKIPPED, limits=tight)[2]
    assert [result.verdict.outcome for result in done] == [Outcome.SUCCEEDED, Outcome.SKIPPED, Outcome.SKIPPED]


def test_half_a_run_of_a_killed_campaign_is_no_evidence(engine: FakeEngine, tmp_path: Path) -> None:
    interrupt(engine)
    cut = begin(tmp_path, "good", "bad")
    leftover = cut.directory / "good_bad" / TWICE.name / "1" / "client" / "old.log"
    leftover.parent.mkdir(parents=True)
    leftover.write_text("of the run that was killed")
    go_on(cut.directory)
    assert not leftover.exists()
    assert sorted(path.name for path in leftover.parents[2].iterdir()) == ["1", "2"]


def test_failures_are_made_again_only_if_asked_for(engine: FakeEngine, tmp_path: Path) -> None:
    first = begin(tmp_path, "bad")
    assert go_on(first.directory)[1] == []
    engine.programs["bad"] = endpoint
    finished, rest, done = go_on(first.directory, Outcome.FAILED)
    assert len(rest) == 2
    assert [(result.attempt, result.verdict.outcome) for result in done] == [(2, Outcome.SUCCEEDED)] * 2
    assert {result.verdict.outcome for result in finished.record.result_set.results} == {Outcome.SUCCEEDED}
    assert len(load(first.directory).history) == 4
    folder = first.directory / "good_bad" / TWICE.name
    assert sorted(path.name for path in folder.iterdir()) == ["1", "1.attempt-1", "2", "2.attempt-1"]


def test_an_attempt_that_was_killed_does_not_take_the_place_of_the_one_before(
    engine: FakeEngine, tmp_path: Path
) -> None:
    first = begin(tmp_path, "bad")
    folder = first.directory / "good_bad" / TWICE.name
    (folder / "1" / "evidence").touch()
    (folder / "1").rename(folder / "1.attempt-1")
    (folder / "1" / "client").mkdir(parents=True)
    go_on(first.directory)
    assert (folder / "1" / "evidence").exists()
    assert not (folder / "1.attempt-1").exists()
    engine.programs["bad"] = endpoint
    go_on(first.directory, Outcome.FAILED)
    assert (folder / "1.attempt-1" / "evidence").exists()
    assert not (folder / "1" / "evidence").exists()


def test_an_image_that_was_missing_when_the_campaign_began_is_used_once_it_is_there(
    engine: FakeEngine, tmp_path: Path
) -> None:
    finished = begin(tmp_path, "nobody", "none", "good", limits=CampaignLimits(budget=1e-6))
    codes = [(each.client, each.verdict.code) for each in finished.record.result_set.results]
    assert codes == [(name, "image-missing") for name in ("nobody", "none") * 2] + [("good", ""), ("good", "budget")]
    engine.programs["nobody"] = endpoint
    continued, rest, done = go_on(finished.directory, Outcome.SKIPPED)
    assert {(run.client.name, run.repetition) for run in rest} == {("nobody", 1), ("nobody", 2), ("good", 2)}
    assert {(each.client, each.verdict.outcome, each.attempt) for each in done} == {
        ("nobody", Outcome.SUCCEEDED, 2), ("good", Outcome.SUCCEEDED, 2)
    }  # fmt: skip
    results = continued.record.result_set
    assert results.manifest.images.keys() == {"simulator", "good", "nobody"}
    assert {each.client: each.verdict.code for each in results.results}["none"] == ErrorCode.IMAGE_MISSING
    assert {(each.implementation, each.role) for each in results.compliance} >= {("nobody", Role.CLIENT)}
    assert load(finished.directory / "result.json").result_set.manifest == load(finished.directory).result_set.manifest


def test_a_campaign_whose_images_are_still_missing_stays_as_it_is(engine: FakeEngine, tmp_path: Path) -> None:
    finished, said = begin(tmp_path, "nobody", "good"), list[str]()
    before = (finished.directory / "journal.jsonl").read_bytes()
    continued = resume_campaign(finished.directory, (), conditions_of({}), Observer(said.append))
    assert continued.record.result_set == finished.record.result_set
    assert (finished.directory / "journal.jsonl").read_bytes() == before
    assert [line for line in said if line.startswith("nobody: its image nobody is not here.")]


def test_an_image_that_was_missing_is_pinned_once_it_was_used(
    engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = begin(tmp_path, "nobody", "good")
    engine.programs["nobody"] = only_as(Role.CLIENT, end_with(1))
    go_on(finished.directory)
    find = DaemonImages.find

    def rebuilt(images: DaemonImages, reference: str) -> ImageFacts | None:
        return None if reference == known else find(images, reference)

    known = load(finished.directory).result_set.manifest.images["nobody"].id
    monkeypatch.setattr(DaemonImages, "find", rebuilt)
    with pytest.raises(MachineError, match=r"replaced: nobody \("):
        go_on(finished.directory, Outcome.FAILED)


def test_images_that_have_changed_are_refused(
    engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = begin(tmp_path, "bad")
    monkeypatch.setattr("quicsat.docker.daemon_images.DaemonImages.find", lambda _self, reference: None)
    with pytest.raises(MachineError, match=r"replaced: simulator \(.*, good .*, bad .*start a new campaign"):
        go_on(first.directory, Outcome.FAILED)
    assert engine.lives == {}


def test_a_plan_that_would_be_another_is_refused(engine: FakeEngine, tmp_path: Path) -> None:
    manifest = begin(tmp_path, "good").record.result_set.manifest
    assert len(plan_of(manifest)) == manifest.planned_runs == 2
    with pytest.raises(InputError, match="planned with 3 runs, and this version of the program makes 2"):
        plan_of(replace(manifest, planned_runs=3))


@pytest.mark.parametrize("command", CHOOSING)
def test_commands_that_choose_runs_themselves_are_to_be_repeated(
    engine: FakeEngine, tmp_path: Path, command: str
) -> None:
    manifest = begin(tmp_path, "good").record.result_set.manifest
    chosen = replace(manifest, planned_runs=1, command=("run.py", command, "-l", "gate"))
    with pytest.raises(InputError, match=f"repeat the command {command}") as refused:
        plan_of(chosen)
    assert manifest.tool_version not in str(refused.value)
    assert len(plan_of(replace(chosen, planned_runs=2))) == 2


def test_a_place_without_a_campaign(engine: FakeEngine, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no results"):
        go_on(tmp_path)


def test_parameters_of_endpoints_are_those_of_the_beginning(
    engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLIENT_PARAMS", "--cc bbr")
    monkeypatch.setenv("CRON", "true")
    interrupt(engine)
    cut = begin(tmp_path, "good", "bad")
    given = {"CLIENT_PARAMS": "--cc bbr", "CRON": "true"}
    assert cut.record.result_set.manifest.parameters == dict.fromkeys(PARAMETERS, "") | given
    monkeypatch.delenv("CRON")
    monkeypatch.setenv("CLIENT_PARAMS", "--cc cubic")
    before, said = len(engine.all_lives), list[str]()
    resume_campaign(cut.directory, (), conditions_of({}), Observer(said.append))
    made = [life.environment for life in engine.all_lives[before:] if "compliance" not in life.name]
    clients = [environment for environment in made if environment.get("ROLE") == "client"]
    assert {(each["CLIENT_PARAMS"], each["CRON"]) for each in clients} == {("--cc bbr", "true")}
    assert len(clients) == 3
    assert (
        "The endpoint parameters of the environment are ignored, the campaign's are used: "
        'CLIENT_PARAMS was "--cc bbr" and is now "--cc cubic"; CRON was "true" and is now "".'
    ) in said


def test_parameters_that_were_not_stored_are_those_of_today(engine: FakeEngine, tmp_path: Path) -> None:
    manifest = begin(tmp_path, "good").record.result_set.manifest
    today = {"CLIENT_PARAMS": "", "SERVER_PARAMS": "-x", "CRON": ""}
    old = replace(manifest, parameters=None)
    assert changed_parameters(old, today) == (
        'The campaign does not store its endpoint parameters; those of the environment are used: SERVER_PARAMS="-x".'
    )
    assert changed_parameters(old, {}) is None
    assert changed_parameters(replace(manifest, parameters=today), today) is None


def test_a_journal_without_parameters_can_be_continued(engine: FakeEngine, tmp_path: Path) -> None:
    interrupt(engine)
    directory = begin(tmp_path, "good", "bad").directory
    journal = directory / "journal.jsonl"
    first, *others = journal.read_bytes().splitlines(keepends=True)
    line = json.loads(first)
    del line["sum"], line["data"]["parameters"]
    journal.write_bytes(b"".join([sealed(line), b"\n", *others]))
    assert load(directory).result_set.manifest.parameters is None
    finished, rest, _ = go_on(directory)
    assert len(rest) == 3
    assert finished.record.result_set.finished is not None
