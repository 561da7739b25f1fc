"""`./run.py worker` without a scheduler, without Dask, and with wrong options."""

from __future__ import annotations

from asyncio import events
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from quicsat.cli import main as cli
from quicsat.execution import cluster
from tests.fakes import FakeEngine, endpoint, install


@pytest.fixture
def no_loop() -> Iterator[None]:
    """Playwright, where it was used before in this process, leaves its event loop running in this thread."""
    loop = events._get_running_loop()
    events._set_running_loop(None)
    yield
    events._set_running_loop(loop)


@pytest.mark.usefixtures("no_loop")
def test_without_a_scheduler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(FakeEngine(good=endpoint), monkeypatch, tmp_path)
    monkeypatch.setattr(cluster, "CONNECT_TIMEOUT", 1.0)
    assert cli.main(tmp_path, ["worker", "tcp://127.0.0.1:9", "--parallel", "2"]) == 3
    assert "No Dask scheduler answers at tcp://127.0.0.1:9" in capsys.readouterr().err


@pytest.mark.usefixtures("no_loop")
@pytest.mark.parametrize(("words", "low"), [((), True), (("--parallel", "2"), True), (("--parallel", "1"), False)])
def test_only_the_analysis_beside_other_runs_gives_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], low: bool
) -> None:
    asked = list[bool]()

    def pool(act: Callable[..., Any], *, low_priority: bool) -> AbstractContextManager[Callable[..., Any]]:
        asked.append(low_priority)
        return nullcontext(act)

    install(FakeEngine(good=endpoint), monkeypatch, tmp_path)
    monkeypatch.setattr(cluster, "CONNECT_TIMEOUT", 0.1)
    monkeypatch.setattr("quicsat.execution.analysis_pool.analysis_pool", pool)
    assert cli.main(tmp_path, ["worker", "tcp://127.0.0.1:9", *words]) == 3
    assert asked == [low]


def test_what_is_no_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["worker", "foo"], ["run", "--cluster", "tcp://scheduler"]):
        with pytest.raises(SystemExit) as ended:
            cli.main(tmp_path, words)
        assert ended.value.code == 2
        assert 'is not the address of a Dask scheduler; example: "tcp://scheduler:8786"' in capsys.readouterr().err
    for words in (["worker", "tcp://x:65536"], ["run", "--cluster", "x:99999"], ["run", "--cluster", "tls://[::1]:0"]):
        with pytest.raises(SystemExit):
            cli.main(tmp_path, words)
        assert "has a wrong port; allowed: 1 to 65535" in capsys.readouterr().err


def test_without_dask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert cli.main(tmp_path, ["worker", "tcp://127.0.0.1:9"]) == 3
    assert "Dask is not installed here: on every machine of a cluster, run `scripts" in capsys.readouterr().err


def test_tls_without_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(FakeEngine(good=endpoint), monkeypatch, tmp_path)
    (tmp_path / "ca.pem").touch()
    words = ["worker", "tls://127.0.0.1:9", "--cluster-tls", str(tmp_path)]
    assert cli.main(tmp_path, words) == 3
    assert "lacks cert.pem and key.pem" in capsys.readouterr().err
