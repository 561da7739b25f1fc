"""Slots are handed out one by one; a worker with an outage gets no runs until it can be used again."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from unittest.mock import Mock

import pytest

from quicsat.execution import worker_pool as module
from quicsat.execution.worker import Outage, Slot
from quicsat.execution.worker_pool import WorkerPool
from quicsat.model.errors import Interrupted, MachineError
from tests.fakes import PATIENCE

OUTAGE = Outage("the daemon is silent")


@dataclass(eq=False)
class FakeWorker:
    """A worker that is not there."""

    name: str
    out: Outage | None = None
    count: int = 1
    closed: bool = False
    slots: Sequence[FakeSlot] = field(init=False)

    def __post_init__(self) -> None:
        self.slots = tuple(FakeSlot(worker=self) for _ in range(self.count))

    def outage(self) -> Outage | None:
        return self.out

    def close(self) -> None:
        self.closed = True


class FakeSlot(Mock):
    """One of its slots, which makes no runs."""

    worker: FakeWorker


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROBE", 0.01)
    monkeypatch.setattr(module, "WAKE", 0.01)


def acquired(workers: WorkerPool) -> Slot:
    slot = workers.acquire()
    assert slot is not None
    return slot


def test_a_place_is_handed_out_once() -> None:
    workers = WorkerPool(threading.Event(), FakeWorker("a", count=2), FakeWorker("b"))
    assert (workers.max_slots, workers.testbeds) == (3, 3)
    taken = [acquired(workers) for _ in range(3)]
    assert len({id(slot) for slot in taken}) == 3
    assert workers.acquire(lambda: True) is None
    workers.release(taken[0])
    assert workers.acquire() is taken[0]


def test_who_waits_gets_the_place_that_is_given_back() -> None:
    workers = WorkerPool(threading.Event(), FakeWorker("a"))
    slot = acquired(workers)
    found: list[Slot | None] = []
    thread = threading.Thread(target=lambda: found.append(workers.acquire()))
    thread.start()
    workers.release(slot)
    thread.join(PATIENCE)
    assert found == [slot]


def test_runs_of_a_silent_station_go_to_another() -> None:
    silent, sound = FakeWorker("silent", out=OUTAGE), FakeWorker("sound")
    workers = WorkerPool(threading.Event(), silent, sound)
    assert workers.acquire() in sound.slots
    slot = acquired(workers)
    assert slot in silent.slots
    workers.release(sound.slots[0])
    assert workers.replace(slot, OUTAGE) in sound.slots
    assert workers.testbeds == 1
    silent.out = None
    assert workers.acquire() in silent.slots


def test_the_only_station_is_waited_for() -> None:
    post = FakeWorker("only", out=OUTAGE)
    workers = WorkerPool(threading.Event(), post)
    slot = acquired(workers)
    threading.Timer(0.1, lambda: setattr(post, "out", None)).start()
    assert workers.replace(slot, OUTAGE) is slot


def test_a_place_in_use_is_not_handed_out_when_its_station_answers_again() -> None:
    stop = threading.Event()
    workers = WorkerPool(stop, FakeWorker("only", count=2))
    lost, used = acquired(workers), acquired(workers)
    assert workers.replace(lost, OUTAGE) is lost  # it answers at once, while a run is under way in the other
    stop.set()
    with pytest.raises(Interrupted):
        workers.acquire()
    workers.release(used)
    assert workers.acquire() is used
    with pytest.raises(Interrupted):
        workers.acquire()


def test_one_that_stays_silent_ends_the_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OUTAGE_PATIENCE", 0.05)
    workers = WorkerPool(threading.Event(), FakeWorker("only", out=OUTAGE))
    slot = acquired(workers)
    with pytest.raises(MachineError, match=r"No worker could be used for 0 s: the daemon is silent\. What"):
        workers.replace(slot, OUTAGE)


def test_a_crew_of_nobody_says_what_to_do() -> None:
    workers = WorkerPool(threading.Event(), max_slots=4, no_worker="Start some.", patience=0.02)
    with pytest.raises(MachineError, match=r"Start some. What was finished is kept."):
        workers.acquire()


def test_stations_come_and_go() -> None:
    workers = WorkerPool(threading.Event(), max_slots=4, no_worker="Nobody.", patience=PATIENCE)
    first, second = FakeWorker("first"), FakeWorker("second")
    threading.Timer(0.05, workers.add, (first,)).start()
    slot = acquired(workers)
    assert slot in first.slots
    workers.add(second)
    workers.remove(first)
    workers.release(slot)
    assert workers.acquire() in second.slots
    workers.close()
    assert (first.closed, second.closed) == (False, True)


def test_whoever_waits_hears_that_the_campaign_ends() -> None:
    stop = threading.Event()
    workers = WorkerPool(stop, max_slots=1, no_worker="Nobody.", patience=PATIENCE)
    threading.Timer(0.05, stop.set).start()
    with pytest.raises(Interrupted):
        workers.acquire()
