"""``./run.py gate``: two builds are measured with the same members, and what is open is measured again."""

import random
import shlex
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.execution import campaign_setup, host_facts
from quicsat.execution.dispatcher import Dispatcher
from quicsat.execution.remaining_work import RemainingWork
from quicsat.execution.worker import result_of
from quicsat.model.evidence import Evidence
from quicsat.model.gate_directories import ALL
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import Measurement, ResultSet
from quicsat.model.run import Run
from quicsat.model.run_key import RunKey
from quicsat.results.store import load
from tests.cli.conftest import GOOD, Checkout
from tests.fakes import FakeEngine, endpoint

BASE = "example/odd"
"""The image of the base; that of the change is example/good."""
WORDS = (
    "gate",
    *("-i", "good", "-s", "good", "bad", "odd", "-c", "good", "bad", "odd", "-t", "tiny"),
    *("--clock", "virtual", "--seed", "1", "--skip-compliance-check"),
)
CELL = "good", "bad"
"""Server and client of the cell that changes."""


def measure(checkout: Checkout, monkeypatch: pytest.MonkeyPatch, factor: Callable[[Run], float]) -> None:
    """Let each run have a goodput of about 5 Mbit/s times a factor."""

    def numbers(run: Run, _: Evidence, __: Path) -> tuple[Verdict, Measurement]:
        return Verdict(Outcome.SUCCEEDED), Measurement({"goodput": 5e6 * factor(run), "efficiency": 0.25})

    monkeypatch.setattr(campaign_setup, "analyse_once", numbers)
    checkout.add_test_case("tiny", "TY")


def noise(run: Run) -> float:
    """A tenth of a per cent by chance, for each build and member another one."""
    return float(random.Random(f"{run.key} {is_change(run)}").lognormvariate(0, 0.001))


def is_change(run: Run) -> bool:
    return all(end.image != BASE for end in (run.server, run.client) if end.name == "good")


def slower_cell(run: Run, most: int = 20) -> float:
    """One of five cells has lost 2.5 %, in so many members."""
    lost = (run.server.name, run.client.name) == CELL and is_change(run) and run.repetition <= most
    return (0.975 if lost else 1.0) * noise(run)


def members(results: ResultSet) -> dict[tuple[str, str], set[int]]:
    """Repetitions of each pair."""
    found = dict[tuple[str, str], set[int]]()
    for result in results.results:
        found.setdefault((result.server, result.client), set()).add(result.repetition)
    return found


def test_equal_builds_need_one_look(checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    measure(checkout, monkeypatch, lambda _: 1.0)
    place, report = tmp_path / "both", tmp_path / "comment.md"
    told = checkout.out(*WORDS, "--against", BASE, "-l", place, "--comment", report)
    assert "run.py confirm" not in told
    assert sorted(path.name for path in place.iterdir()) == ["base", "change"]
    base, change = (load(place / name).result_set for name in ("base", "change"))
    assert members(base) == members(change) == {pair: {1, 2, 3, 4, 5} for pair in members(base)}
    assert [results.manifest.images["good"].reference for results in (base, change)] == [BASE, "example/good"]
    assert base.manifest.seed == change.manifest.seed == 1
    used = [{run.evidence.images["server"] for run in each.results if run.server == "good"} for each in (base, change)]
    assert used == [{each.manifest.images["good"].id} for each in (base, change)]
    assert used[0] != used[1]
    assert report.read_text()


def test_a_change_of_all_cells_is_found_at_the_first_look(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measure(checkout, monkeypatch, lambda run: (0.95 if is_change(run) else 1.0) * noise(run))
    told = checkout.out(*WORDS, "--against", BASE, "-l", tmp_path / "both", status=1)
    assert f"./run.py confirm {tmp_path / 'both'}\n" in told
    assert not (tmp_path / "both/base-again").exists()


@pytest.mark.parametrize(("members_slower", "status"), [(20, 1), (5, 0)])
def test_an_open_cell_is_measured_again_with_new_members_which_decide(
    members_slower: int, status: int, checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measure(checkout, monkeypatch, lambda run: slower_cell(run, members_slower))
    place = tmp_path / "both"
    told = checkout.out(*WORDS, "--against", BASE, "-l", place, status=status)
    assert ("run.py confirm" in told) == (status == 1)
    for name in ("base-again", "change-again"):
        again = load(place / name).result_set
        assert members(again) == {CELL: set(range(6, 21))}
        assert not again.compliance


def test_images_of_both_builds_are_checked(checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A partner that is not compliant is unsupported with both builds, and no reason to blame the change."""
    measure(checkout, monkeypatch, lambda _: 1.0)
    place = tmp_path / "both"
    words = [word for word in WORDS if word != "--skip-compliance-check"]
    checkout.out(*words, "--against", "example/bad", "-l", place)
    first, second = (load(place / name).result_set for name in ("base", "change"))
    assert {each.implementation: each.compliant for each in first.compliance}["odd"] is False
    codes = [{run.key: run.verdict.code for run in each.results} for each in (first, second)]
    assert codes[0] == codes[1]
    assert ErrorCode.NOT_COMPLIANT in codes[0].values()


def test_without_a_second_look_an_open_cell_is_undecided(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measure(checkout, monkeypatch, slower_cell)
    checkout.out(*WORDS, "--against", BASE, "-l", tmp_path / "both", "--second-look", "0", status=5)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((*GOOD, "--clock", "virtual", "-l", "x"), "-i"),
        ((*GOOD, "-i", "good", "bad", "-s", "bad", "--clock", "virtual", "-l", "x"), "-i"),
        ((*GOOD, "-i", "good", "--clock", "real", "-l", "x"), "--clock virtual"),
        ((*GOOD, "-i", "nosuch"), "nosuch"),
        ((*GOOD, "-i", "good", "-l", "x", "--repetitions", "5", "--second-look", "3"), "--second-look"),
        ((*GOOD, "-i", "good", "--clock", "virtual", "-l", "x", "--placebo"), "--placebo"),
        ((*GOOD, "-i", "good", "--clock", "virtual", "-l", "x", "-j", "y.json"), "-j"),
        ((*GOOD, "-i", "good", "--clock", "virtual", "-l", "x", "--seed", "1", "--shard", "1/1"), "--shard"),
    ],
)
def test_options_that_do_not_go_together(
    words: tuple[str, ...], told: str, checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told in checkout.refusal("gate", *words, "--against", BASE)
    assert not (tmp_path / "x").exists()


def test_a_loss_that_chance_explains_is_measured_again(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Three of five members have lost 4 %, the others have gained: the p-value of the first look is 0.25."""

    def factor(run: Run) -> float:
        if (run.server.name, run.client.name) != CELL or not is_change(run):
            return 1.0 if (run.server.name, run.client.name) == CELL else noise(run)
        return 0.96 if run.repetition % 5 < 3 else 1.005

    measure(checkout, monkeypatch, factor)
    checkout.out(*WORDS, "--against", BASE, "-l", tmp_path / "both", status=1)
    assert members(load(tmp_path / "both/change-again").result_set) == {CELL: set(range(6, 21))}


@pytest.fixture
def move_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Let this machine have a processor of another name."""

    def move(name: str) -> None:
        file = tmp_path / f"cpuinfo-{name}"
        file.write_text(f"processor : 0\nmodel name : {name}\nflags : fpu {name}\n\n")
        monkeypatch.setattr(host_facts, "PROCESSORS", file)
        host_facts.processor.cache_clear()

    yield move
    host_facts.processor.cache_clear()


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_the_verdict_is_the_same_on_every_processor(
    loss: float, move_to: Callable[[str], None], checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Runners change their processor from job to job; both images are measured in one job."""
    measure(checkout, monkeypatch, lambda run: (1 - loss if is_change(run) else 1.0) * noise(run))
    told = []
    for name in ("CPU1", "CPU2"):
        move_to(name)
        place = tmp_path / name
        output = checkout.out(*WORDS, "--against", BASE, "-l", place, status=int(loss > 0))
        told.append([line for line in output.splitlines() if "goodput" in line])
        used = {load(place / part).result_set.manifest.processor for part in ("base", "change")}
        assert len(used) == 1
        assert name in used.pop()
    assert told[0] == told[1]
    assert told[0]


def test_a_baseline_of_another_processor_is_not_green_for_a_cell_that_lost(
    move_to: Callable[[str], None], checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The reports name both processors, and the answer is neutral."""
    measure(checkout, monkeypatch, slower_cell)
    for name in ("CPU1", "CPU2"):
        move_to(name)
        checkout.out(*WORDS, "--against", BASE, "-l", tmp_path / name, "--second-look", "0", status=5)
    file, comment = tmp_path / "baseline.json", tmp_path / "comment.md"
    checkout.out("baseline", "save", tmp_path / "CPU1/base", file)
    told = checkout.out("baseline", "check", tmp_path / "CPU2/change", file, "--comment", comment, status=5)
    assert comment.read_text().startswith("### ⚠️ ")
    for text in (told, comment.read_text()):
        assert "ran on CPU1 (" in text
        assert "on CPU2 (" in text


class Interrupted:
    """Gates whose runs end at once, and which are stopped after some of them."""

    def __init__(self, checkout: Checkout, monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
        self.checkout, self.place = checkout, place
        self.made: list[tuple[str, RunKey]] = []
        """Build and run."""
        self.stop_after = 10**6
        self._patch = monkeypatch
        checkout.add_test_case("tiny", "TY")
        self._taking = threading.Lock()

        def run_all(dispatcher: Dispatcher, work: RemainingWork, *_: object, **__: object) -> str | None:
            return self._run_all(dispatcher, work)

        monkeypatch.setattr(Dispatcher, "run_all", run_all)

    def _run_all(self, dispatcher: Dispatcher, work: RemainingWork) -> str | None:
        for run in work.runs:
            with self._taking:
                if len(self.made) >= self.stop_after:
                    return "Time is up."
                self.made.append(("change" if is_change(run) else "base", run.key))
            numbers = Measurement({"goodput": 5e6 * slower_cell(run), "efficiency": 0.25})
            dispatcher._finish(replace(result_of(run, 1, Verdict(Outcome.SUCCEEDED)), measurement=numbers))
        return None

    def words(self, *more: object) -> list[object]:
        return [*WORDS, "--against", BASE, "-l", self.place, *more]

    def __call__(self, *more: object, status: int) -> str:
        words = self.words(*more)
        self._patch.setattr(sys, "argv", ["run.py", *map(str, words)])
        return self.checkout.out(*words, status=status)

    def stopped_at(self, runs: int, *more: object) -> str:
        """The error output of a gate that is stopped after so many runs."""
        self.stop_after = runs
        words = self.words(*more)
        self._patch.setattr(sys, "argv", ["run.py", *map(str, words)])
        told = self.checkout.err(*words, status=4)
        self.stop_after = 10**6
        return told

    def keys(self, name: str) -> set[RunKey]:
        return {each.key for each in load(self.place / name).result_set.results}


@pytest.fixture
def interrupted(checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Interrupted:
    return Interrupted(checkout, monkeypatch, tmp_path / "both")


WHOLE = 2 * 5 * 5 + 2 * 15
"""Runs of both looks."""


@pytest.mark.parametrize("stop", [0, 7, 49, 50, 52, WHOLE - 1])
def test_the_same_command_continues(stop: int, interrupted: Interrupted, tmp_path: Path) -> None:
    """Each run is made once, and the judgement is that of a gate that nothing stopped."""
    told = interrupted.stopped_at(stop)
    [again] = [line for line in told.splitlines() if "To continue: " in line]
    assert shlex.split(again)[3:] == [str(word) for word in interrupted.words()]
    out = interrupted(status=1)
    assert len(interrupted.made) == len(set(interrupted.made)) == WHOLE
    whole = Interrupted(interrupted.checkout, interrupted._patch, tmp_path / "whole")
    judged = [line for line in whole(status=1).splitlines() if "both" not in line and "whole" not in line]
    assert [line for line in out.splitlines() if "both" not in line] == judged
    before = len(whole.made)
    assert whole(status=1)
    assert len(whole.made) == before


@pytest.mark.parametrize("left", [("base",), ("change",), ()])
def test_a_gate_that_was_killed_while_it_began_continues(left: tuple[str, ...], interrupted: Interrupted) -> None:
    """A directory may have no journal yet, or may not be there."""
    interrupted.stopped_at(7)
    for name in {"base", "change"} - {*left}:
        shutil.rmtree(interrupted.place / name)
    (interrupted.place / "base").mkdir(exist_ok=True)
    told = interrupted.checkout.refusal("confirm", interrupted.place)
    assert ("unfinished" in told) == bool(left)
    interrupted(status=1)
    assert len(interrupted.keys("base")) == len(interrupted.keys("change")) == 25


def test_a_finished_gate_of_one_look_is_not_measured_again(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measure(checkout, monkeypatch, lambda _: 1.0)
    words = [*WORDS, "--against", BASE, "-l", tmp_path / "both"]
    told = checkout.out(*words)
    before = [(tmp_path / "both" / name / "journal.jsonl").read_bytes() for name in ("base", "change")]
    assert checkout.out(*words) == told
    assert before == [(tmp_path / "both" / name / "journal.jsonl").read_bytes() for name in ("base", "change")]


def test_a_continued_gate_has_the_seed_of_its_campaigns(interrupted: Interrupted) -> None:
    words = [word for word in WORDS if word not in ("--seed", "1")]
    interrupted.stop_after = 7
    interrupted.checkout.err(*words, "--against", BASE, "-l", interrupted.place, status=4)
    interrupted.stop_after = 10**6
    interrupted.checkout.out(*words, "--against", BASE, "-l", interrupted.place, status=1)
    seeds = {load(interrupted.place / name).result_set.manifest.seed for name in ALL}
    assert len(seeds) == 1


@pytest.mark.parametrize(
    "more", [("--seed", "2"), ("--repetitions", "6"), ("--cpu-cost-factor", "2"), ("--no-qlog",), ("--timeout", "3s")]
)
@pytest.mark.parametrize("stop", [7, 52])
def test_what_was_measured_with_other_settings_is_not_continued(
    stop: int, more: tuple[str, ...], interrupted: Interrupted
) -> None:
    interrupted.stopped_at(stop)
    assert "-l" in interrupted.checkout.refusal(*interrupted.words(*more))
    assert len(interrupted.made) == stop


def test_other_parameters_of_the_environment_are_refused(
    interrupted: Interrupted, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted.stopped_at(7)
    monkeypatch.setenv("CLIENT_PARAMS", "--cc bbr")
    assert "CLIENT_PARAMS" in interrupted.checkout.refusal(*interrupted.words())


@pytest.mark.parametrize(("stop", "status"), [(7, 4), (50, 4), (52, 4), (WHOLE, 1)])
def test_an_image_that_was_replaced_since_is_not_mixed_with_the_earlier_one(
    stop: int, status: int, interrupted: Interrupted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finished gate does not answer for a build that it has not measured either."""
    interrupted.stop_after = stop
    interrupted(status=status)
    made = len(interrupted.made)
    interrupted.checkout.engine.programs["newer"] = endpoint
    named = FakeEngine._image
    monkeypatch.setattr(FakeEngine, "_image", lambda self, tag: "newer" if tag == "example/good" else named(self, tag))
    told = interrupted.checkout.refusal(*interrupted.words())
    assert "good" in told
    assert "images" in told
    assert len(interrupted.made) == made


def test_a_second_look_that_the_options_do_not_ask_for_is_not_left_out(interrupted: Interrupted) -> None:
    interrupted(status=1)
    assert "second look" in interrupted.checkout.refusal(*interrupted.words("--second-look", "0"))


@pytest.mark.parametrize("stop", [0, 7, 52])
def test_confirm_and_resume_tell_that_a_gate_is_unfinished(stop: int, interrupted: Interrupted) -> None:
    interrupted.stopped_at(stop)
    told = interrupted.checkout.refusal("confirm", interrupted.place)
    assert "unfinished" in told
    assert "Nothing changed" not in told
    assert "repeat the command gate" in interrupted.checkout.refusal("resume", interrupted.place)


def test_without_a_directory_the_gate_has_one_of_its_own(
    interrupted: Interrupted, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*WORDS[: WORDS.index("--clock")], "--seed", "1", "--skip-compliance-check", "--against", BASE]
    monkeypatch.setattr(sys, "argv", ["run.py", *words])
    interrupted.stop_after = 7
    told = interrupted.checkout.err(*words, status=4)
    interrupted.stop_after = 10**6
    [again] = [line for line in told.splitlines() if "To continue: " in line]
    assert "Results: " in interrupted.checkout.out(*shlex.split(again)[3:], status=1)
    assert len(interrupted.made) == WHOLE
