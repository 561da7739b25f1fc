"""``./run.py bisect``: the commits of a checkout are built and measured until one of them explains a change."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quicsat.execution import campaign_setup
from quicsat.images.pull_or_build import Images
from quicsat.model.errors import MachineError
from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Implementation
from quicsat.model.outcomes import Outcome, Verdict
from quicsat.model.results import ImageFacts, Measurement
from quicsat.model.run import Run
from quicsat.model.text import command_line
from quicsat.results.store import JOURNAL, load
from tests.cli.conftest import Checkout
from tests.example_repository import commit_all, git
from tests.fakes import FakeEngine

COUNT = 8
"""Commits after the first one."""
IMAGE = re.compile(r"quicsat-bisect/good:([0-9a-f]{12})")


class Builder:
    """Commits with a number each, whose images an engine has by the names that ``bisect`` gives them."""

    def __init__(self, folder: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        git(folder.parent, "init", "--quiet", "--initial-branch", "main", str(folder))
        self.places = dict[str, int]()
        for number in range(COUNT + 1):
            (folder / "number").write_text(f"{number}\n")
            commit_all(folder, f"Number \x1b[31m{number}")
            git(folder, "tag", f"v{number}")
            self.places[git(folder, "rev-parse", "HEAD").strip()[:12]] = number
        self.measured = list[tuple[int, str]]()
        inspect = engine.inspect_image

        def tag(_image: str, repository: str, name: str) -> None:
            engine.programs[f"{repository}:{name}"] = engine.programs["good"]

        def inspect_image(reference: str) -> dict[str, Any]:
            return inspect(reference) | ({"Id": reference} if IMAGE.fullmatch(reference) else {})

        monkeypatch.setattr(engine, "tag", tag, raising=False)
        monkeypatch.setattr(engine, "inspect_image", inspect_image)

    def place(self, run: Run) -> int:
        """Number of the commit whose image is under test."""
        images = (each.image for each in (run.server, run.client) if each.name == "good")
        matched = IMAGE.fullmatch(next(images))
        assert matched
        return self.places[matched[1]]


@pytest.fixture
def builder(checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Builder:
    checkout.add_test_case("tiny", "TY")
    return Builder(tmp_path.resolve() / "stack", checkout.engine, monkeypatch)


def words(builder: Builder, *more: object, command: str = "true", of: str = "v0..v8") -> tuple[object, ...]:
    return (
        "bisect", "good", of, "--checkout", builder.folder, "--build", command, "--image", "example/good",
        "-s", "good", "-c", "good", "odd", "-t", "tiny", "--skip-compliance-check", *more,
    )  # fmt: skip


def slower_from(builder: Builder, monkeypatch: pytest.MonkeyPatch, place: int) -> Callable[[], list[int]]:
    """Let runs lose half of their goodput from a commit on; the commits of all runs so far."""

    def numbers(run: Run, _: Evidence, __: Path) -> tuple[Verdict, Measurement]:
        at = builder.place(run)
        builder.measured.append((at, str(run.key)))
        goodput = (1e6 if at < place else 5e5) * (1 + run.repetition / 100)
        return Verdict(Outcome.SUCCEEDED), Measurement({"goodput": goodput, "efficiency": 0.25})

    monkeypatch.setattr(campaign_setup, "analyse_once", numbers)
    return lambda: sorted({at for at, _ in builder.measured})


def test_the_commit_is_named_with_the_comparison_of_its_neighbours(
    checkout: Checkout, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = slower_from(builder, monkeypatch, 6)
    status, out, err = checkout(*words(builder, command="cat number"))
    assert status == 0, err
    assert measured() == [0, 4, 5, 6, 8]
    assert len(builder.measured) == 5 * 6 * 2
    commit = next(label for label, place in builder.places.items() if place == 6)
    [told] = [line for line in out.splitlines() if "It came with" in line]
    assert commit in told
    assert "-50.0 %" in told
    assert "\x1b" not in out + err
    place = checkout.root / "results/bisect-good-tiny"
    commands = re.findall(r"compare (\S+) (\S+)", out)
    assert [Path(each).name for each in commands[0]] == [
        label for label, number in builder.places.items() if number in (5, 6)
    ]
    assert checkout("compare", *commands[0])[0] == 1
    stored = load(place / commit).result_set.manifest
    assert stored.note.startswith(f"commit {commit}")
    assert stored.images["good"].reference == f"quicsat-bisect/good:{commit}"
    assert (place / f"{commit}.log").read_text() == "6\n"
    assert checkout("explain", re.findall(r"explain (\S+)", out)[0])[0] == 0


def test_nothing_is_measured_again(checkout: Checkout, builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    slower_from(builder, monkeypatch, 6)
    first = checkout.out(*words(builder))
    count = len(builder.measured)
    assert checkout.out(*words(builder, command="true")) == first
    assert len(builder.measured) == count
    checkout.out(*words(builder, of="v4..v7"))  # of another range, too
    assert {at for at, _ in builder.measured[count:]} == {7}


def test_an_interrupted_measurement_is_continued(
    checkout: Checkout, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    slower_from(builder, monkeypatch, 6)
    checkout.out(*words(builder))
    runs = sorted(builder.measured)
    label = next(label for label, place in builder.places.items() if place == 4)
    journal = checkout.root / "results/bisect-good-tiny" / label / JOURNAL
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:4]) + lines[4][:20])  # as after kill -9
    builder.measured.clear()
    assert "Building" not in checkout(*words(builder))[2]  # the images are there
    assert {at for at, _ in builder.measured} == {4}
    assert len(builder.measured) == 12 - 3
    assert {*builder.measured} < {*runs}


def test_resume_names_the_command_that_continues_a_bisection(
    checkout: Checkout, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    slower_from(builder, monkeypatch, 6)
    begun = [str(each) for each in words(builder)]
    monkeypatch.setattr("sys.argv", ["run.py", *begun])
    checkout.out(*begun)
    told = checkout.refusal("resume", checkout.root / "results/bisect-good-tiny")
    plain = [Path(each).name if each.startswith("/") else each for each in begun]
    assert told.endswith(f" {command_line(*plain)}\n")


def test_commits_that_do_not_build_are_skipped(
    checkout: Checkout, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = slower_from(builder, monkeypatch, 5)
    out = checkout.out(*words(builder, command='case $(cat number) in 4|5) echo "error: broken"; exit 1; esac'))
    assert measured() == [0, 3, 6, 8]
    labels = list(builder.places)
    [told] = [line for line in out.splitlines() if "It came with" in line]
    assert f"one of {labels[4]} to {labels[6]}" in told
    assert out.count("error: broken") == 2


def test_an_end_that_does_not_build_ends_the_command(
    checkout: Checkout, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    slower_from(builder, monkeypatch, 5)
    told = checkout.refusal(*words(builder, command="echo 'error: broken'; exit 1"), status=3)
    assert "error: broken" in told


def test_commits_with_one_image_are_measured_once(
    checkout: Checkout, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = slower_from(builder, monkeypatch, 6)
    inspect, labels = checkout.engine.inspect_image, list(builder.places)

    def same(reference: str) -> dict[str, Any]:
        found = inspect(reference)
        return found | ({"Id": "one"} if found["Id"] in [f"quicsat-bisect/good:{labels[n]}" for n in (0, 4)] else {})

    monkeypatch.setattr(checkout.engine, "inspect_image", same)
    checkout.engine.programs["one"] = checkout.engine.programs["good"]
    checkout.out(*words(builder))
    assert measured() == [0, 5, 6, 8]


def test_ends_without_a_difference_are_undecided(
    checkout: Checkout, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = slower_from(builder, monkeypatch, COUNT + 1)
    checkout.out(*words(builder), status=5)
    assert measured() == [0, 8]
    assert {int(key.rpartition("/")[2]) for _, key in builder.measured} == {*range(1, 21)}


def test_campaigns_of_other_runs_are_refused(
    checkout: Checkout, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    slower_from(builder, monkeypatch, 1)
    checkout.out(*words(builder, of="v0..v1"))
    runs = len(builder.measured)
    for changed in (
        ("--seed", "77"), ("--repetitions", "7"), ("--pairs", "good/good"),
        ("-s", "odd", "--pairs", "odd/good", "good/good"), ("--timeout", "7"), ("--no-qlog",),
    ):  # fmt: skip
        assert "-l" in checkout.refusal(*words(builder, *changed, of="v0..v1"))
    assert len(builder.measured) == runs
    assert "-l" in checkout.refusal(*words(builder, command="true; true", of="v0..v1"))


@pytest.mark.parametrize(("more", "of", "told"), [
    (("--shard", "1/2", "--seed", "1"), "v0..v8", "--shard"),
    (("-i", "good"), "v0..v8", "-i"),
    ((), "v8..v0", "ancestor"),
    ((), "v0..gone", "gone"),
    ((), "v0", "FIRST"),
    (("--image", "BAD IMAGE"), "v0..v8", "--image"),
    (("-r", "good=a/b:c"), "v0..v8", "-r"),
])  # fmt: skip
def test_what_is_refused_before_anything_is_built(
    more: tuple[str, ...], of: str, told: str, checkout: Checkout, builder: Builder
) -> None:
    assert told in checkout.refusal(*words(builder, *more, command="touch built", of=of))
    assert not (checkout.root / "results").exists()


def test_an_unknown_implementation_is_refused(checkout: Checkout, builder: Builder) -> None:
    wrong = [*words(builder)]
    wrong[1] = "goood"
    assert "good?" in checkout.refusal(*wrong)


RELEASES = tuple(f"1.{number}.0" for number in range(5))


@pytest.fixture
def releases(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Lets ``good`` have five releases, of which 1.1.0 cannot be built and those from 1.3.0 on are slower."""
    engine, seen = checkout.engine, {"built": list[str](), "measured": list[str]()}
    file = checkout.root / "implementations.json"
    known = json.loads(file.read_text())
    known["good"] |= {
        "build": "endpoints/good", "package": {"registry": "crates.io", "name": "good"}, "releases": [{"from": "1.0.0"}]
    }  # fmt: skip
    file.write_text(json.dumps(known))
    for version in RELEASES:
        engine.programs[f"quicsat/good:{version}"] = engine.programs["good"]
    inspect = engine.inspect_image
    monkeypatch.setattr(engine, "inspect_image", lambda reference: inspect(reference) | (
        {"Id": reference} if reference.startswith("quicsat/good") else {}
    ))  # fmt: skip

    def ensure(images: Images, release: Implementation) -> ImageFacts:
        if not release.release:
            return wanted(images, release)
        seen["built"].append(release.release)
        if release.release == "1.1.0":
            raise MachineError("good@1.1.0: no such file\nIt failed in step 3")
        return ImageFacts(f"quicsat/good:{release.release}", f"quicsat/good:{release.release}")

    def numbers(run: Run, _: Evidence, __: Path) -> tuple[Verdict, Measurement]:
        version = run.server.image.partition(":")[2]
        seen["measured"].append(version)
        goodput = (5e5 if version >= "1.3.0" else 1e6) * (1 + run.repetition / 100)
        return Verdict(Outcome.SUCCEEDED), Measurement({"goodput": goodput, "efficiency": 0.25})

    wanted = Images.ensure
    monkeypatch.setattr(Images, "ensure", ensure)
    monkeypatch.setattr(campaign_setup, "analyse_once", numbers)
    monkeypatch.setattr("quicsat.images.releases.versions_of", lambda _package: RELEASES)
    return seen


OF_RELEASES = "-s", "good", "-c", "odd", "-t", "tiny", "--skip-compliance-check"


def test_a_release_is_named(checkout: Checkout, releases: dict[str, list[str]]) -> None:
    out = checkout.out("bisect", "good", "1.0.0..1.4.0", *OF_RELEASES)
    assert "It came with 1.3.0." in out
    assert "step 3" not in out
    assert {*releases["measured"]} == {"1.0.0", "1.2.0", "1.3.0", "1.4.0"}
    place = checkout.root / "results/bisect-good-tiny"
    assert sorted(path.name for path in place.iterdir()) == ["1.0.0", "1.2.0", "1.3.0", "1.4.0"]
    assert load(place / "1.3.0").result_set.manifest.images["good"].reference == "quicsat/good:1.3.0"
    out = checkout.out("bisect", "good", "1.1.0..1.4.0", *OF_RELEASES, status=3)
    assert releases["built"].count("1.3.0") == 1


@pytest.mark.parametrize(("name", "of", "told"), [
    ("good", "1.4.0..1.0.0", "older"),
    ("good", "1.0.0..1.0.0", "older"),
    ("good", "1.0.0..1.0.9", "1.0.9"),
    ("good", "1.0.0..x", "version"),
    ("good@1.0.0", "1.0.0..1.4.0", "FIRST..LAST"),
    ("odd", "1.0.0..1.4.0", "odd"),
])  # fmt: skip
def test_ranges_of_releases_that_are_refused(
    name: str, of: str, told: str, checkout: Checkout, releases: dict[str, list[str]]
) -> None:
    assert told in checkout.refusal("bisect", name, of, *OF_RELEASES)
    assert not releases["built"]


def test_options_of_commits_go_together(checkout: Checkout, releases: dict[str, list[str]], tmp_path: Path) -> None:
    for more in (("--checkout", tmp_path), ("--build", "docker build -t a ."), ("--image", "a")):
        assert "--checkout and --build" in checkout.refusal("bisect", "good", "1.0.0..1.4.0", *OF_RELEASES, *more)
    assert not releases["built"]
