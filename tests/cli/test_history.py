"""``./run.py history``: releases are chosen, measured, continued and shown; one that cannot be built is left out."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from quicsat.cli import history as history_command
from quicsat.execution import campaign_setup
from quicsat.images import archives, changelogs, releases
from quicsat.images.changelogs import Changes
from quicsat.images.pull_or_build import Images
from quicsat.model.errors import MachineError
from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Implementation
from quicsat.model.outcomes import Outcome, Verdict
from quicsat.model.results import ImageFacts, Measurement
from quicsat.model.run import Run
from quicsat.results.store import load
from tests.cli.conftest import Checkout, Draws

DAYS = {"0.9": date(2024, 1, 1), "1.0": date(2026, 2, 1), "1.1": date(2025, 6, 1), "2.0": date(2026, 1, 1)}
LOST = "1.1"
WORDS = ("history", "good", "-c", "good", "-t", "tiny", "--clock", "real", "--skip-compliance-check")


@pytest.fixture
def history(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A checkout in which releases of ``good`` from 1.0 on can be built, all but one; 2.0 is slower."""
    known = json.loads((checkout.root / "implementations.json").read_text())
    known["good"] |= {
        "build": "endpoints/good",
        "package": {"registry": "PyPI", "name": "good"},
        "releases": [{"from": "1.0"}],
    }
    (checkout.root / "implementations.json").write_text(json.dumps(known))
    ensure: Callable[[Images, Implementation], ImageFacts] = Images.ensure

    def built(images: Images, wanted: Implementation) -> ImageFacts:
        if wanted.release == LOST:
            raise MachineError(f"{wanted.name}: the image could not be built: no wheel\nIt failed in step 3")
        return ensure(images, replace(wanted, build=None, image="example/good"))

    def numbers(run: Run, _: Evidence, __: Path) -> tuple[Verdict, Measurement]:
        noise = random.Random(str(run.key)).lognormvariate(0, 0.001)
        factor = 0.8 if run.server.release == "2.0" else 1.0
        return Verdict(Outcome.SUCCEEDED), Measurement({"goodput": 5e6 * factor * noise, "efficiency": 0.25})

    monkeypatch.setattr(Images, "ensure", built)
    monkeypatch.setattr(releases, "versions_of", lambda _: tuple(DAYS))
    monkeypatch.setattr(archives, "released", lambda _, version: DAYS[version])
    monkeypatch.setattr(
        changelogs, "changes_in", lambda release: Changes(f"New in {release.release}", "https://x.example")
    )
    monkeypatch.setattr(campaign_setup, "analyse_once", numbers)
    return checkout


def pairs(place: Path) -> list[str]:
    return [*load(place).result_set.manifest.pairs]


def test_the_step_is_shown_with_the_changelog_and_the_lost_release_with_its_reason(
    history: Checkout, tmp_path: Path
) -> None:
    draws = Draws()
    status, out, err = history(*WORDS, "-l", tmp_path / "a", draw=draws)
    assert status == 0, err
    assert pairs(tmp_path / "a") == ["good@1.0/good", "good@2.0/good"]
    assert len(load(tmp_path / "a").result_set.results) == 20
    assert err.index("Estimated duration") < err.index(
        "1.1 is left out. good@1.1: the image could not be built: no wheel"
    )
    assert "step 3" not in err
    page = (tmp_path / "a/plots/history-good.md").read_text()
    for shown in (out, page):
        assert "1.0 → 2.0" in shown
        assert "New in 2.0" in shown
        assert "slower" in shown
    assert "sha256" not in page  # example/good has no label
    assert "| 1.0 " in page and "2026-02-01" in page
    assert draws.requests[0].plots == ("releases",)
    assert f"{tmp_path / 'a/plots/history-good.md'}" in out


def test_the_same_command_continues_and_stored_results_are_shown_again(history: Checkout, tmp_path: Path) -> None:
    words = (*WORDS, "--release", "2.0", "1.0", "--repetitions", "1", "-l", tmp_path / "a")
    history(*words, draw=Draws())
    place = tmp_path / "a"
    begun = load(place).result_set
    assert len(begun.results) == 2
    history(*words, draw=Draws())
    assert load(place).result_set.results == begun.results
    out = history.out("history", "good", "--from", place, "-o", tmp_path / "shown", draw=Draws())
    assert "None of them changed anything significantly." in out
    assert "1 of 1" in out  # a single repetition shows nothing
    page = tmp_path / "shown/history-good.md"
    written = page.read_text()
    history.out("history", "good", "--from", place, "-o", tmp_path / "shown", draw=Draws())
    assert page.read_text() == written
    for told, more in (("tinny", ["-t", "tinny"]), ("--release", ["--release", "1.0", "2.0"])):
        assert told in history.refusal("history", "good", "--from", place, "-o", page.parent, *more, draw=Draws())
    assert page.read_text() == written
    page.write_text("# good\n\nmy own notes\n")
    err = history.refusal("history", "good", "--from", place, "-o", tmp_path / "shown", draw=Draws())
    assert f"-o: {page} exists, and is no earlier page of a history." in err
    assert "my own notes" in page.read_text()


@pytest.mark.parametrize(
    ("words", "versions"),
    [
        (["--since", "2025-12-01"], ["1.0", "2.0"]),
        (["--since", "2025-06-01"], ["1.0", "2.0"]),
        (["--most", "3"], ["1.0", "2.0"]),
        (["--release", "1.0,2.0"], ["1.0", "2.0"]),
    ],
)
def test_releases_are_chosen_by_date_number_or_name(
    words: list[str], versions: list[str], history: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_command, "MOST", 2)
    history(*WORDS, *words, "--repetitions", "1", "-l", tmp_path / "a", draw=Draws())
    assert pairs(tmp_path / "a") == [f"good@{version}/good" for version in versions]


def test_releases_without_a_date_may_be_newer_than_any_date(
    history: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "released", lambda _, version: None if version == "1.0" else DAYS[version])
    words = (*WORDS, "--since", "2025-12-01", "--repetitions", "1", "-l", tmp_path / "a")
    _, _, err = history(*words, draw=Draws())
    assert pairs(tmp_path / "a") == ["good@1.0/good", "good@2.0/good"]
    assert any("1.0" in line and "date" in line for line in err.splitlines())


def test_a_campaign_is_not_continued_with_other_options(history: Checkout, tmp_path: Path) -> None:
    place = tmp_path / "a"
    words = (*WORDS, "--release", "1.0", "2.0", "--repetitions", "1", "-l", place)
    history(*words, draw=Draws())
    begun = load(place)
    history.add_test_case("other", "OT")
    for more in (
        ["--repetitions", "2"], ["--seed", begun.result_set.manifest.seed + 1], ["-s", "good"], ["--timeout", "7"],
        ["--no-qlog"], ["-t", "other"], ["-r", "good=example/odd"],
    ):  # fmt: skip
        assert str(place) in history.err(*words, *more, status=2, draw=Draws()), more
    known = json.loads((history.root / "implementations.json").read_text())
    known["fine"] = known["good"]
    (history.root / "implementations.json").write_text(json.dumps(known))
    assert str(place) in history.err("history", "fine", "-c", "good", "-l", place, status=2, draw=Draws())
    assert load(place) == begun
    out = history.out(*words, "--release", LOST, draw=Draws())  # it could not be built, or is new
    assert f"{LOST} is missing" in out


def test_test_cases_of_several_files_are_measured_and_shown(history: Checkout, tmp_path: Path) -> None:
    history.add_test_case("other", "OT")
    files = [history.root / f"testcases/{name}.yaml" for name in ("tiny", "other")]
    words = (*WORDS[:4], "--release", "1.0", "2.0", *WORDS[6:], "-t", *files, "--repetitions", "8")
    draws = Draws()
    out = history.out(*words, "-l", tmp_path / "a", draw=draws)
    assert [case.name for case in load(tmp_path / "a").result_set.manifest.test_cases] == ["tiny", "other"]
    assert [out.count(f"│ {case} ") for case in ("tiny", "other")] == [3, 3]  # two releases, and the step
    assert draws.requests[0].test_cases == ()


def test_partners_have_the_roles_in_which_they_are_named(history: Checkout, tmp_path: Path) -> None:
    words = ("history", "good", "-s", "odd", "good", "--release", "1.0", "2.0", "-t", "tiny", "--clock", "real")
    history(*words, "--repetitions", "1", "--skip-compliance-check", "-l", tmp_path / "a", draw=Draws())
    expected = [f"{server}/good@{version}" for version in ("1.0", "2.0") for server in ("odd", "good")]
    assert pairs(tmp_path / "a") == expected


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["history", "goood"], 'No implementation "goood". Did you mean good?'),
        (["history", "odd"], "odd: its folder builds one version only"),
        (["history", "good", "--since", "yesterday"], "is no date"),
        (["history", "good", "--since", "2027-01-01"], "good since 2027-01-01"),
        (["history", "good", "--release", "0.9"], "good: 0.9 is older than 1.0"),
        (["history", "good", "--release", "../x"], "is no version"),
        (["history", "good", "-s", "nobody", "-t", "tiny", "--clock", "real"], 'No server "nobody".'),
        (["history", "good", "--pairs", "a/b"], "--pairs"),
        ([*WORDS, "-s", "Good@1.0"], "Good@1.0"),
        (["history", "good", "--most", "1"], "--most"),
        (["history", "good", "--most", "-3"], "--most"),
        (["history", "good", "--release", "1.0"], "needs 2"),
        (["history", "good", "--release", "1.0", "2.0", "--since", "2025-01-01"], "--since"),
        ([*WORDS, "--release", "1.0", "2.0", "--repetitions", "0"], "0 repetitions"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(words: list[str], fault: str, history: Checkout) -> None:
    assert fault in history.err(*words, status=2)


def test_without_two_releases_that_can_be_built_nothing_is_measured(history: Checkout, tmp_path: Path) -> None:
    err = history.err(*WORDS, "--release", "1.0", LOST, "-l", tmp_path / "a", status=3)
    assert f"good@{LOST}" in err
    assert not (tmp_path / "a").exists()


def test_a_campaign_without_two_releases_has_no_history(history: Checkout, places: list[str]) -> None:
    assert "A history needs 2" in history.err("history", "good", "--from", places[0], status=2)
