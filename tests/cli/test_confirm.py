"""``./run.py confirm``: what virtual time found is measured in real time, with both builds in turn."""

import random
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from quicsat.cli import confirm
from quicsat.execution.dispatcher import Dispatcher
from quicsat.execution.remaining_work import RemainingWork
from quicsat.execution.worker import result_of
from quicsat.model.clock import Clock
from quicsat.model.outcomes import Outcome, Verdict
from quicsat.model.results import Measurement, ResultSet
from quicsat.model.run import Run
from quicsat.results.store import load
from tests.cli.conftest import Checkout
from tests.cli.test_gate import BASE, is_change, noise

PAIRS = ("-s", "good", "bad", "odd", "-c", "good", "bad", "odd", "-t", "tiny")
VIRTUAL = ("-i", "good", *PAIRS, "--clock", "virtual", "--seed", "1", "--skip-compliance-check", "--repetitions", "5")
Factor = Callable[[Run], float | None]


class Both:
    """Two campaigns in virtual time, and how goodput is in real time."""

    def __init__(self, checkout: Checkout, monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
        self.checkout, self.place = checkout, place
        self._patch = monkeypatch
        self.made: list[Run] = []
        """In real time."""
        self.stop_after = 0
        checkout.add_test_case("tiny", "TY")

    def judge(self, factor: Factor) -> None:
        """Let runs have a goodput of about 5 Mbit/s times a factor, without containers; those without one fail."""

        def run_all(dispatcher: Dispatcher, work: RemainingWork, *_: object, **__: object) -> str | None:
            for run in work.runs:
                self.made.append(run)
                if len(self.made) == self.stop_after:
                    return "stopped"
                times = factor(run)
                verdict = Verdict(Outcome.SUCCEEDED if times else Outcome.FAILED)
                result = result_of(run, 1, verdict)
                numbers = Measurement({"goodput": 5e6 * times, "efficiency": 0.25}) if times else None
                dispatcher._finish(replace(result, measurement=numbers))
            return None

        self._patch.setattr(Dispatcher, "run_all", run_all)

    def measure(self, factor: Factor, status: int = 0) -> None:
        """The campaigns in virtual time."""
        self.judge(factor)
        self.checkout.out("run", *VIRTUAL, "-r", f"good={BASE}", "-l", self.place / "a")
        self.checkout.out("run", *VIRTUAL, "-l", self.place / "b", status=status)
        self.made.clear()

    def confirm(self, *words: object, status: int) -> str:
        return self.checkout.out("confirm", self.place / "a", self.place / "b", "--seed", "7", *words, status=status)

    def look(self, number: int) -> ResultSet:
        return load(self.place / f"b-confirm/look-{number}").result_set

    @property
    def looks(self) -> list[str]:
        return sorted(each.name for each in (self.place / "b-confirm").iterdir())


@pytest.fixture
def both(checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Both:
    return Both(checkout, monkeypatch, tmp_path)


def slower(run: Run) -> float:
    return (0.9 if is_change_of(run) else 1.0) * noise(run)


def is_change_of(run: Run) -> bool:
    return is_change(run) and not any(end.name.endswith(":base") for end in (run.server, run.client))


def one_slower(run: Run) -> float:
    lost = (run.server.name, run.client.name) == ("good", "bad") and is_change_of(run)
    return (0.9 if lost else 1.0) * noise(run)


def test_a_change_of_an_implementation_is_confirmed_at_the_first_look(both: Both) -> None:
    both.measure(slower)
    hint = f"./run.py confirm {both.place / 'a'} {both.place / 'b'}"
    assert hint in both.checkout.out("compare", both.place / "a", both.place / "b", status=1)
    out = both.confirm("--format", "csv", status=1)
    rows = [line.split(",") for line in out.splitlines()]
    assert {(row[0], row[-1]) for row in rows[1:]} >= {("server good", "confirmed"), ("client good", "confirmed")}
    assert both.looks == ["look-1"]
    results = both.look(1)
    assert results.manifest.clock is Clock.REAL
    assert {name: image.reference for name, image in results.manifest.images.items() if "good" in name} == {
        "good": "example/good", "good:base": BASE,
    }  # fmt: skip
    assert len(results.results) == 4 * 2 * 5
    assert len(results.pairs) == 2 * 5


def test_both_builds_of_a_cell_run_one_after_the_other_in_random_order(both: Both) -> None:
    both.measure(slower)
    both.confirm(status=1)
    order = list[bool]()
    for first, second in zip(both.made[::2], both.made[1::2], strict=True):
        assert first.repetition == second.repetition
        assert first.seed == second.seed
        assert {is_change_of(first), is_change_of(second)} == {True, False}
        order.append(is_change_of(first))
    assert 4 < sum(order) < len(order) - 4
    assert [run.repetition for run in both.made] == sorted(run.repetition for run in both.made)


def test_a_change_that_is_not_there_in_real_time_is_denied(both: Both) -> None:
    both.measure(slower)
    both.judge(noise)
    out = both.confirm("--format", "csv", status=0)
    assert "not confirmed" in out
    assert both.looks == ["look-1"]


def test_one_cell_takes_ten_blocks(both: Both) -> None:
    both.measure(one_slower)
    both.confirm("--pair", "good_bad", status=1)
    assert both.looks == ["look-1", "look-2"]
    assert {(each.server, each.client) for each in both.look(2).results} == {("good", "bad"), ("good:base", "bad")}
    assert {each.repetition for each in both.look(2).results} == set(range(5, 11))


def test_what_stays_open_is_undecided(both: Both) -> None:
    both.measure(one_slower)
    both.judge(lambda run: random.Random(f"{run.key}").lognormvariate(0, 0.5))
    out = both.confirm("--pair", "good_bad", "--format", "csv", status=5)
    assert "undecided" in out
    assert both.looks == ["look-1", "look-2", "look-3", "look-4"]


def test_a_pair_that_fails_is_confirmed_by_its_outcomes(both: Both) -> None:
    def fails(run: Run) -> float | None:
        broken = (run.server.name, run.client.name) == ("good", "bad") and is_change_of(run)
        return None if broken else noise(run)

    both.measure(fails, status=1)
    out = both.confirm("--pair", "good_bad", "--format", "csv", status=1)
    assert "good_bad: success" in out
    assert ",confirmed" in out


def test_the_same_command_continues(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    both.measure(slower)
    both.stop_after = 15
    monkeypatch.setattr(sys, "argv", ["run.py", "confirm", "results/a", "results/b"])
    err = both.checkout.err("confirm", both.place / "a", both.place / "b", status=4)
    assert "./run.py confirm results/a results/b" in err
    first = both.made[:14]
    both.made.clear()
    both.stop_after = 0
    both.checkout.out("confirm", both.place / "a", both.place / "b", status=1)
    assert len(both.made) == 40 - 14
    assert not {run.key for run in first} & {run.key for run in both.made}
    assert len({run.seed for run in (*first, *both.made)}) == 4
    both.made.clear()
    both.checkout.out("confirm", both.place / "a", both.place / "b", status=1)
    assert both.made == []


def test_without_time_nothing_more_is_measured(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    both.measure(one_slower)
    monkeypatch.setattr(confirm, "time", SimpleNamespace(monotonic=iter((0.0, 1.0, 3.0)).__next__))
    words = ("--pair", "good_bad", "--max-runtime", "2 s")
    assert "undecided" in both.confirm(*words, "--format", "csv", status=4)
    assert both.looks == ["look-1"]


def test_a_gate_has_both_campaigns(both: Both) -> None:
    both.judge(slower)
    place = both.place / "gate"
    words = ("-i", "good", *PAIRS, "--clock", "virtual", "--seed", "1", "--skip-compliance-check")
    both.checkout.out("gate", *words, "--against", BASE, "-l", place, status=1)
    both.checkout.out("confirm", place, status=1)
    assert (both.place / "gate-confirm/look-1").is_dir()


def test_what_cannot_be_checked(both: Both) -> None:
    both.measure(slower)
    a, b = both.place / "a", both.place / "b"
    both.checkout.out("run", *PAIRS, "--skip-compliance-check", "-l", both.place / "real")
    assert "real time" in both.checkout.refusal("confirm", both.place / "real", b)
    assert "--pair" in both.checkout.refusal("confirm", a, a)
    assert "same images" in both.checkout.refusal("confirm", b, b, "--pair", "good_bad")
    assert "good_bad" in both.checkout.refusal("confirm", a, b, "--pair", "good_badd")
    assert "satt" in both.checkout.refusal("confirm", a, b, "-t", "satt", "tiny")
    assert "gate" in both.checkout.refusal("confirm", a)
    assert not (both.place / "b-confirm").exists()


def test_the_check_of_other_cells_is_not_continued(both: Both) -> None:
    both.measure(slower)
    both.confirm(status=1)
    assert "-l" in both.checkout.refusal(
        "confirm", both.place / "a", both.place / "b", "--seed", "7", "--pair", "good_bad"
    )


def test_an_image_that_is_gone_ends_the_check(both: Both) -> None:
    both.measure(slower)
    both.checkout.engine.programs.pop("odd")
    err = both.checkout.err("confirm", both.place / "a", both.place / "b", status=3)
    assert BASE in err
