"""The reaper cleans up after a campaign that died, and only then."""

import io
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import docker
import pytest

from quicsat.docker.containers import ContainerSpec, create_container
from quicsat.execution import reaper
from quicsat.model.real_link import Host
from tests.fakes import FakeEngine, connect, endpoint
from tests.waiting import has_ended, until

ROOT = Path(__file__).resolve().parents[2]


NOWHERE = Host("", "unix:///no/such/socket")


def end(content: bytes, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pickle.dumps([NOWHERE]) + content)))
    monkeypatch.setattr(docker, "APIClient", engine.client)
    monkeypatch.setattr(reaper, "PASSES", 1)
    reaper.main("dead")


@pytest.mark.parametrize(("words", "left"), [(b"", 0), (b"don", 0), (reaper.FAREWELL, 1)])
def test_without_farewell_it_cleans_up(words: bytes, left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine(it=endpoint)
    with (
        create_container(connect(engine, "dead"), ContainerSpec("a", "it")),
        create_container(connect(engine), ContainerSpec("b", "it")),
    ):
        end(words, engine, monkeypatch)
        assert [life.name for life in engine.lives.values()] == ["a", "b"][1 - left :]


def test_a_daemon_that_died_too_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine()
    engine.gone = True
    end(b"", engine, monkeypatch)


def children() -> set[int]:
    return {int(pid) for pid in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()}


def test_it_ends_with_its_campaign_however_that_ends() -> None:
    before = children()
    with pytest.raises(ValueError, match="x"), reaper.start_reaper([NOWHERE], "x"):
        [pid] = children() - before
        assert os.getsid(pid) != os.getsid(0)  # Ctrl-C at the terminal must not end it
        raise ValueError("x")
    assert pid not in children()


def test_a_reaper_that_was_killed_is_no_fault() -> None:
    before = children()
    with reaper.start_reaper([NOWHERE], "x"):
        [pid] = children() - before
        os.kill(pid, signal.SIGKILL)
    assert pid not in children()


def test_it_outlives_a_campaign_that_is_killed(tmp_path: Path) -> None:
    script = """
import os, sys
from quicsat.execution import reaper
from quicsat.model.real_link import Host
with reaper.start_reaper([Host("", sys.argv[1])], "x"):
    pid = os.getpid()
    print(open(f"/proc/{pid}/task/{pid}/children").read(), flush=True)
    os.kill(pid, 9)
"""
    command = [sys.executable, "-c", script, f"unix://{tmp_path}/none"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    pid = int(done.stdout)
    assert until(lambda: has_ended(pid))  # nothing answers there, so it gives up at once
