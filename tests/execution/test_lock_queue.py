"""Campaigns that wait for a lock get it in the order in which they came."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from quicsat.execution import lock, lock_queue
from quicsat.model.errors import LockedError
from tests.waiting import until

WAIT = """
import sys
from pathlib import Path
from quicsat.execution import lock
lock.FOLDERS, lock.PERIOD = (sys.argv[1],), 0.02
with lock.exclusive("d", sys.argv[2], lock.Patience(1000, lambda _: print("waits", flush=True))):
    with open(sys.argv[3], "a") as order:
        order.write(sys.argv[2] + "\\n")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks").chmod(0o1777)
    monkeypatch.setattr(lock, "FOLDERS", (str(tmp_path / "locks"),))
    return tmp_path


def waiting(folder: Path, name: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", WAIT, str(folder / "locks"), name, str(folder / "order")]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "waits\n"
    return process


def test_first_come_first_served_and_the_dead_leave_the_queue(folder: Path) -> None:
    at = lock.lock_path("d")
    with lock.exclusive("d", "holder"):
        processes = []
        for name in ("one", "two", "three"):
            processes.append(waiting(folder, name))
            assert until(lambda: lock_queue.ahead(at) == len(processes))
        os.kill(processes[1].pid, signal.SIGKILL)
        processes[1].wait()
        assert lock_queue.ahead(at) == 2
    assert [process.wait() for process in (processes[0], processes[2])] == [0, 0]
    assert (folder / "order").read_text().split() == ["one", "three"]
    assert [file.name for file in (folder / "locks").iterdir()] == [at.name]


def test_who_has_waited_is_named(folder: Path) -> None:
    at = lock.lock_path("d")
    with lock.exclusive("d", "a name that is longer than the next one"):
        process = waiting(folder, "next")
        assert until(lambda: lock_queue.ahead(at) == 1)
    process.wait()
    holder = json.loads(at.read_text())
    assert (holder["pid"], holder["purpose"]) == (process.pid, "next")


def test_who_does_not_wait_does_not_overtake(folder: Path) -> None:
    with lock_queue.ticket(lock.lock_path("d")), pytest.raises(LockedError), lock.exclusive("d", "hasty"):
        pass
    with lock.exclusive("d", "hasty"):
        pass


def test_patience_ends(folder: Path) -> None:
    told = list[str]()
    with (
        lock.exclusive("d", "holder"),
        pytest.raises(LockedError, match=r"It has not ended within 50\.0 ms\."),
        lock.exclusive("d", "x", lock.Patience(0.05, told.append)),
    ):
        pass
    assert len(told) == 1
    assert not lock_queue.ahead(lock.lock_path("d"))
