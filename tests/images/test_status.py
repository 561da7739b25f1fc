"""What images are here, and getting several at once."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.images.build_recipes import find_recipe
from quicsat.images.status import LOST, ImageState, Stocked, builders, get_all, stock_of, stock_of_own, used_by
from quicsat.model.errors import MachineError
from quicsat.model.implementation import Implementation, Role
from quicsat.model.results import ImageFacts
from quicsat.model.units import MIB
from tests.images.conftest import FakeStore

MINE = Implementation("mine", "me/mine:1", "", frozenset(Role), build="endpoints/mine")


def states(stocked: tuple[Stocked, ...]) -> list[tuple[str, str, bool]]:
    return [(each.source, each.state, each.image is not None) for each in stocked]


def test_states_of_an_image(checkout: Path) -> None:
    tag = find_recipe("mine", "endpoints/mine", checkout).tag
    here: dict[frozenset[str], list[tuple[str, str, bool]]] = {
        frozenset[str](): [("built", "not here", False)],
        frozenset({tag}): [("built", "current", True)],
        frozenset({"quicsat/mine:latest"}): [("built", "outdated", True)],
        frozenset({"quicsat/mine:latest", tag}): [("built", "current", True)],
        frozenset({"me/mine:1"}): [("public", "here", True), ("built", "not here", False)],
    }
    assert {names: states(stock_of(FakeStore(here=set(names)), checkout, MINE)) for names in here} == here


def test_without_a_folder_or_a_public_image(checkout: Path) -> None:
    assert states(stock_of(FakeStore(), checkout, replace(MINE, build=None))) == [("public", "not here", False)]
    found = stock_of(FakeStore(here={"me/mine:1"}), checkout, replace(MINE, build=None))
    assert states(found) == [("public", "here", True)]
    assert states(stock_of(FakeStore(), checkout, replace(MINE, image=""))) == [("built", "not here", False)]


def test_the_image_that_a_campaign_uses_is_one(checkout: Path) -> None:
    built = find_recipe("mine", "endpoints/mine", checkout).tag
    both = FakeStore(here={"me/mine:1", built})
    assert used_by(both, checkout, MINE).reference == "me/mine:1"
    assert used_by(FakeStore(here={built}), checkout, MINE).reference == built
    assert used_by(both, checkout, replace(MINE, server_parameters="--cc bbr")).reference == built
    given = replace(MINE, image="my/build:dev", replaced=True)
    assert states((used_by(both, checkout, given),)) == [("given", "not here", False)]
    assert states((used_by(FakeStore(here={"my/build:dev"}), checkout, given),)) == [("given", "here", True)]


def test_a_changed_folder_outdates_its_image(checkout: Path) -> None:
    store = FakeStore(here={find_recipe("simulator", "ns3-scenarios").tag, "quicsat/simulator:latest"})
    assert stock_of_own(store, "simulator").state is ImageState.CURRENT
    (checkout / "ns3-scenarios/main.cc").write_text("changed", encoding="utf-8")
    assert stock_of_own(store, "simulator").state is ImageState.OUTDATED


@pytest.mark.parametrize(
    ("cpus", "gibibytes", "workers"), [(2, 24, 2), (1, 24, 1), (16, 64, 2), (8, 4, 1), (8, 7, 1), (8, 8, 2), (2, 1, 1)]
)
def test_builds_at_the_same_time_fit_into_the_machine(cpus: int, gibibytes: int, workers: int) -> None:
    assert builders(cpus, gibibytes * 1024 * MIB) == workers


def test_one_that_fails_spares_the_others() -> None:
    def fail() -> ImageFacts:
        raise MachineError("b: it failed in Step 2")

    ways = {"a": lambda: ImageFacts("a:1", "1"), "b": fail, "c": lambda: ImageFacts("c:1", "3")}
    for workers in (1, 2, 5):
        got = get_all(ways, workers)
        assert [each.name for each in got] == ["a", "b", "c"]
        assert [each.image and each.image.reference for each in got] == ["a:1", None, "c:1"]
        assert [each.fault for each in got] == ["", "b: it failed in Step 2", ""]


def test_two_are_got_at_the_same_time() -> None:
    meeting = threading.Barrier(2)

    def meet() -> ImageFacts:
        meeting.wait(60)
        return ImageFacts("met", "1")

    assert [each.fault for each in get_all({"a": meet, "b": meet}, 2)] == ["", ""]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_of_this_program_neither_hangs_nor_hides() -> None:
    def break_down() -> ImageFacts:
        raise ZeroDivisionError

    first, second = get_all({"a": break_down, "b": lambda: ImageFacts("b:1", "1")}, 1)
    assert first.fault == f"a: {LOST}"
    assert second.fault == f"b: {LOST}"
