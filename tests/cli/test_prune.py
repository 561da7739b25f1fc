"""``./run.py prune``: shows first, removes with --yes, and refuses what it cannot free."""

import re
from pathlib import Path

import pytest

from quicsat.results.prune import PINNED
from tests.cli.conftest import CommandLine
from tests.results.test_merge import Make
from tests.results.test_merge import make as make  # a fixture


@pytest.fixture
def place(quicsat: CommandLine, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only campaign of a checkout, which is the working directory."""
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)
    quicsat.root = tmp_path
    return make("1/1", "results/2026")


def test_prune_shows_first_and_removes_with_yes(quicsat: CommandLine, place: Path) -> None:
    traces = len(list(place.rglob("*.pcap")))
    assert traces > 0
    told = quicsat.out("prune", "--traces", "0")
    assert "traces" in told
    assert "would be removed; add --yes" in told
    assert len(list(place.rglob("*.pcap"))) == traces
    (place / PINNED).touch()
    assert quicsat.out("prune", "--traces", "0", "--yes").startswith(f"{place}: stays, pinned")
    (place / PINNED).unlink()
    assert "removed" in quicsat.out("prune", "--traces", "0", "--yes")
    assert list(place.rglob("*.pcap")) == []
    assert (place / "journal.jsonl").exists()


@pytest.mark.parametrize("words", [("--min-free", "999999 GiB"), ("--max-size", "0 B")])
def test_space_that_cannot_be_freed_is_reported(quicsat: CommandLine, place: Path, words: tuple[str, str]) -> None:
    err = quicsat.err("prune", *words, status=3)
    assert re.match(f"{place}: traces(.|\n)*would be removed(.|\n)*results go by --keep", err)
    assert list(place.rglob("*.pcap"))


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "Select what to remove"),
        (["--traces", "0", "results/2026"], "is a campaign"),
        (["--traces", "0", "no"], "no such directory"),
        (["--traces", "-1"], "out of range"),
        (["--keep", "0"], "out of range"),
        (["--max-size", "5"], "has no unit"),
        (["--min-free", "much"], "is no size"),
    ],
)
def test_prune_without_anything_to_do(quicsat: CommandLine, words: list[str], told: str) -> None:
    assert told in quicsat.refusal("prune", *words)
