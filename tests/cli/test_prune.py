"""``./run.py prune``: shows first, removes with --yes, and refuses what it cannot free."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from quicsat.cli import main as cli
from quicsat.results.prune import PINNED
from tests.results.test_merge import Make
from tests.results.test_merge import make as make  # a fixture

Prune = Callable[..., tuple[int, str, str]]


@pytest.fixture
def prune(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Prune:
    """``./run.py prune …`` in a checkout at ``tmp_path``: exit status, standard output, standard error output."""

    def call(*words: str) -> tuple[int, str, str]:
        status = cli.main(tmp_path, ["prune", *words])
        return status, *capsys.readouterr()

    return call


def test_prune_shows_first_and_removes_with_yes(prune: Prune, make: Make, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    place = make("1/1", "results/2026")
    traces = len(list(place.rglob("*.pcap")))
    assert traces > 0
    _, told, _ = prune("--traces", "0")
    assert "traces" in told
    assert "would be removed; add --yes" in told
    assert len(list(place.rglob("*.pcap"))) == traces
    (place / PINNED).touch()
    assert prune("--traces", "0", "--yes")[1].startswith(f"{place}: stays, pinned")
    (place / PINNED).unlink()
    assert "removed" in prune("--traces", "0", "--yes")[1]
    assert list(place.rglob("*.pcap")) == []
    assert (place / "journal.jsonl").exists()


def test_space_that_cannot_be_freed_is_reported(prune: Prune, make: Make, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    place = make("1/1", "results/2026")
    for words in (("--min-free", "999999 GiB"), ("--max-size", "0 B")):
        status, _, err = prune(*words)
        assert status == 3
        assert re.match(f"{place}: traces(.|\n)*would be removed(.|\n)*results go by --keep", err)
    assert list(place.rglob("*.pcap"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "Select what to remove"),
        (["--traces", "0", "results/2026"], "is a campaign"),
        (["--traces", "0", "no"], "no such"),
    ],
)
def test_prune_without_anything_to_do(
    prune: Prune,
    make: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    told: str,
) -> None:
    (tmp_path / "results").mkdir()
    make("1/1", "results/2026")
    monkeypatch.chdir(tmp_path)
    status, _, err = prune(*words)
    assert (status, told in err) == (2, True)


@pytest.mark.parametrize("words", [("--traces", "-1"), ("--keep", "0"), ("--max-size", "5"), ("--min-free", "much")])
def test_wrong_values(prune: Prune, words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        prune(*words)
    assert ended.value.code == 2


def test_a_directory_that_does_not_exist(prune: Prune, tmp_path: Path) -> None:
    status, _, err = prune(str(tmp_path / "nowhere"), "--traces", "0")
    assert status == 2
    assert "no such directory" in err
