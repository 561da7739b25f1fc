"""`./run.py worker` without a scheduler, without Dask, and with wrong options."""

from asyncio import events
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from quicsat.execution import cluster
from tests.cli.conftest import CommandLine
from tests.fakes import FakeEngine, endpoint, install


@pytest.fixture
def no_loop() -> Iterator[None]:
    """Playwright, where it was used before in this process, leaves its event loop running in this thread."""
    loop = events._get_running_loop()
    events._set_running_loop(None)
    yield
    events._set_running_loop(loop)


@pytest.mark.usefixtures("no_loop")
def test_without_a_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quicsat: CommandLine) -> None:
    install(FakeEngine(good=endpoint), monkeypatch, tmp_path)
    monkeypatch.setattr(cluster, "CONNECT_TIMEOUT", 1.0)
    err = quicsat.err("worker", "tcp://127.0.0.1:9", "--parallel", "2", status=3)
    assert "No Dask scheduler answers at tcp://127.0.0.1:9" in err


@pytest.mark.usefixtures("no_loop")
@pytest.mark.parametrize(("words", "low"), [((), True), (("--parallel", "2"), True), (("--parallel", "1"), False)])
def test_only_the_analysis_beside_other_runs_gives_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], low: bool, quicsat: CommandLine
) -> None:
    asked = list[bool]()

    def pool(act: Callable[..., Any], *, low_priority: bool) -> AbstractContextManager[Callable[..., Any]]:
        asked.append(low_priority)
        return nullcontext(act)

    install(FakeEngine(good=endpoint), monkeypatch, tmp_path)
    monkeypatch.setattr(cluster, "CONNECT_TIMEOUT", 0.1)
    monkeypatch.setattr("quicsat.execution.analysis_pool.analysis_pool", pool)
    assert quicsat("worker", "tcp://127.0.0.1:9", *words)[0] == 3
    assert asked == [low]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("worker foo", 'is not the address of a Dask scheduler; example: "tcp://scheduler:8786"'),
        ("run --cluster tcp://scheduler", "is not the address of a Dask scheduler"),
        ("worker tcp://x:65536", "has a wrong port; allowed: 1 to 65535"),
        ("run --cluster x:99999", "has a wrong port"),
        ("run --cluster tls://[::1]:0", "has a wrong port"),
    ],
)
def test_what_is_no_address(quicsat: CommandLine, line: str, fault: str) -> None:
    assert fault in quicsat.refusal(*line.split())


def test_without_dask(monkeypatch: pytest.MonkeyPatch, quicsat: CommandLine) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    err = quicsat.err("worker", "tcp://127.0.0.1:9", status=3)
    assert "Dask is not installed here: on every machine of a cluster, run `scripts" in err


def test_tls_without_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quicsat: CommandLine) -> None:
    install(FakeEngine(good=endpoint), monkeypatch, tmp_path)
    (tmp_path / "ca.pem").touch()
    err = quicsat.err("worker", "tls://127.0.0.1:9", "--cluster-tls", tmp_path, status=3)
    assert "lacks cert.pem and key.pem" in err
