"""Places are handed out one by one; a station that falls silent is left alone until it answers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from interop.errors import MachineError
from interop.execution import crew as module
from interop.execution.crew import Crew
from interop.execution.place import Place
from interop.execution.transfer import Interrupted
from interop.model import Compliance, Run, RunResult


@dataclass(eq=False)
class Post:
    """A station that is not there."""

    name: str
    quiet: str = ""
    count: int = 1
    closed: bool = False
    places: Sequence[Spot] = field(init=False)

    def __post_init__(self) -> None:
        self.places = tuple(Spot(self) for _ in range(self.count))

    def silence(self) -> str:
        return self.quiet

    def close(self) -> None:
        self.closed = True


@dataclass(eq=False)
class Spot:
    """One of its places."""

    station: Post

    def attempt(self, run: Run, number: int, directory: Path) -> RunResult:
        raise AssertionError

    def check_compliance(self, *_: Any) -> tuple[Compliance, ...]:
        raise AssertionError

    def clear(self, *, alone: bool) -> str:
        raise AssertionError


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROBE", 0.01)
    monkeypatch.setattr(module, "WAKE", 0.01)


def test_a_place_is_handed_out_once() -> None:
    crew = Crew(threading.Event(), Post("a", count=2), Post("b"))
    assert (crew.most, crew.testbeds) == (3, 3)
    taken = [crew.take() for _ in range(3)]
    assert len({id(place) for place in taken}) == 3
    assert crew.take(lambda: True) is None
    assert taken[0] is not None
    crew.give_back(taken[0])
    assert crew.take() is taken[0]


def test_who_waits_gets_the_place_that_is_given_back() -> None:
    crew = Crew(threading.Event(), Post("a"))
    place = crew.take()
    assert place is not None
    found: list[Place | None] = []
    thread = threading.Thread(target=lambda: found.append(crew.take()))
    thread.start()
    crew.give_back(place)
    thread.join(5)
    assert found == [place]


def test_runs_of_a_silent_station_go_to_another() -> None:
    silent, sound = Post("silent", quiet="its daemon"), Post("sound")
    crew = Crew(threading.Event(), silent, sound)
    assert crew.take() in sound.places
    place = crew.take()
    assert place in silent.places
    assert place is not None
    crew.give_back(sound.places[0])
    assert crew.replace(place, "its daemon") in sound.places
    assert crew.testbeds == 1
    silent.quiet = ""
    assert crew.take() in silent.places


def test_the_only_station_is_waited_for() -> None:
    post = Post("only", quiet="docker")
    crew = Crew(threading.Event(), post)
    place = crew.take()
    assert place is not None
    threading.Timer(0.1, lambda: setattr(post, "quiet", "")).start()
    assert crew.replace(place, "docker") is place


def test_a_place_in_use_is_not_handed_out_when_its_station_answers_again() -> None:
    stop = threading.Event()
    crew = Crew(stop, Post("only", count=2))
    lost, used = crew.take(), crew.take()
    assert lost is not None
    assert used is not None
    assert crew.replace(lost, "docker") is lost  # it answers at once, while a run is under way in the other
    stop.set()
    with pytest.raises(Interrupted):
        crew.take()
    crew.give_back(used)
    assert crew.take() is used
    with pytest.raises(Interrupted):
        crew.take()


def test_one_that_stays_silent_ends_the_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DAEMON_PATIENCE", 0.05)
    crew = Crew(threading.Event(), Post("only", quiet="docker"))
    place = crew.take()
    assert place is not None
    with pytest.raises(MachineError, match="Docker daemon at docker has not answered"):
        crew.replace(place, "docker")


def test_a_crew_of_nobody_says_what_to_do() -> None:
    crew = Crew(threading.Event(), most=4, absence="Start some.", patience=0.02)
    with pytest.raises(MachineError, match=r"Start some. What was finished is kept."):
        crew.take()


def test_stations_come_and_go() -> None:
    crew = Crew(threading.Event(), most=4, absence="Nobody.", patience=5)
    first, second = Post("first"), Post("second")
    threading.Timer(0.05, crew.join, (first,)).start()
    place = crew.take()
    assert place in first.places
    assert place is not None
    crew.join(second)
    crew.leave(first)
    crew.give_back(place)
    assert crew.take() in second.places
    crew.close()
    assert (first.closed, second.closed) == (False, True)


def test_whoever_waits_hears_that_the_campaign_ends() -> None:
    stop = threading.Event()
    crew = Crew(stop, most=1, absence="Nobody.", patience=5)
    threading.Timer(0.05, stop.set).start()
    with pytest.raises(Interrupted):
        crew.take()
