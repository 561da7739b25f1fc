"""A campaign over a real Dask cluster whose worker stands beside the real engine; and both of them killed."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quicsat.cli import main as cli
from quicsat.docker.client import Daemon
from quicsat.docker.containers import list_containers
from quicsat.execution import cluster
from quicsat.model.outcomes import Outcome
from quicsat.results.store import load
from quicsat.traces.pcap import check
from tests.dockerds import running, wait_for
from tests.engine.conftest import ROOT
from tests.engine.test_command import PAIR, UNCHECKED, finished, mine  # noqa: F401 - a fixture
from tests.waiting import until

BUSY_PATIENCE = 300.0
"""Seconds for a run whose machine is busy with other jobs: attempts that they disturb are repeated."""


@contextmanager
def scheduler(log: Path) -> Iterator[str]:
    """A scheduler; its address."""
    command = [str(Path(sys.executable).with_name("dask")), "scheduler", "--host", "127.0.0.1", "--port", "0"]
    at = re.compile(r"Scheduler at: +(tcp://127\.0\.0\.1:\d+)\n")
    with running([*command, "--no-dashboard", "--dashboard-address", ":0"], log) as process:
        wait_for(lambda: at.search(log.read_text()) is not None, "the scheduler", process, log)
        yield at.search(log.read_text())[1]


@contextmanager
def worker(address: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "run.py", "worker", address, "--parallel", "1"]
    with running(command, log, cwd=ROOT) as process:
        wait_for(lambda: b"offers 1 testbed to" in log.read_bytes(), "the worker", process, log)
        yield process


def begin(address: str, directory: Path, *words: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "run.py", *PAIR, *map(str, words), "--cluster", address, "-l", str(directory)]
    command += ["--images", "local", "--no-qlog"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.fixture(scope="class")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a scheduler that has a worker."""
    logs = tmp_path_factory.mktemp("cluster")
    with scheduler(logs / "scheduler.log") as found, worker(found, logs / "worker.log"):
        yield found


@pytest.mark.usefixtures("image_ids")
class TestOneWorker:
    """Campaigns one after the other over the same worker."""

    def test_a_campaign_over_a_worker(self, address: str, mine: Path, tmp_path: Path) -> None:  # noqa: F811
        process = begin(address, tmp_path / "c", "-t", mine)
        said, _ = process.communicate()
        assert process.returncode == 0, said
        results = load(tmp_path / "c").result_set
        assert [result.verdict.outcome for result in results.results] == [Outcome.SUCCEEDED] * 2
        assert all(result.evidence.notes[-1].startswith("measured by worker") for result in results.results)
        for result in results.results:
            place = tmp_path / "c" / f"quic-go_aioquic/{result.test_case}/1"
            assert len(check(place / "sim/trace_node_left.pcap").datagrams) > 200
            assert (place / "client/keys.log").stat().st_size
            assert (place / "series.parquet").stat().st_size

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
    def test_who_dies_leaves_nothing_at_workers(
        self,
        address: str,
        mine: Path,  # noqa: F811
        tmp_path: Path,
        daemon: Daemon,
        number: signal.Signals,
    ) -> None:
        process = begin(address, tmp_path / "c", "-t", mine, "--repetitions", "50", UNCHECKED)
        assert until(lambda: finished(tmp_path / "c") or process.poll() is not None, BUSY_PATIENCE)
        assert process.poll() is None, process.communicate()
        there = {*list_containers(daemon)}
        process.send_signal(number)
        process.communicate()
        assert there
        assert until(lambda: not there & {*list_containers(daemon)})
        before = finished(tmp_path / "c")
        assert {(each.test_case, each.repetition) for each in load(tmp_path / "c").history} >= {*before}


@pytest.mark.usefixtures("image_ids")
def test_a_worker_that_is_killed_loses_nothing(mine: Path, tmp_path: Path) -> None:  # noqa: F811
    with scheduler(tmp_path / "scheduler.log") as place, worker(place, tmp_path / "worker.log") as first:
        process = begin(place, tmp_path / "c", "-t", mine, "--repetitions", "2", UNCHECKED)
        assert until(lambda: finished(tmp_path / "c") or process.poll() is not None, BUSY_PATIENCE)
        os.kill(first.pid, signal.SIGKILL)
        with worker(place, tmp_path / "second.log"):
            said, _ = process.communicate()
    assert process.returncode == 0, said
    record = load(tmp_path / "c")
    assert [result.verdict.outcome for result in record.result_set.results] == [Outcome.SUCCEEDED] * 4
    attempts = [(each.test_case, each.repetition, each.attempt) for each in record.history]
    assert len(attempts) == len({*attempts})


@pytest.mark.usefixtures("image_ids")
def test_a_worker_without_a_scheduler(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(cluster, "CONNECT_TIMEOUT", 1.0)
    assert cli.main(ROOT, ["worker", "tcp://127.0.0.1:9"]) == 3
    assert "No Dask scheduler answers at tcp://127.0.0.1:9" in capsys.readouterr().err
