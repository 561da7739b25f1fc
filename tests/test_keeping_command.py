"""The commands merge and prune, from their words to what they do."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from interop import keeping_command
from interop.errors import MachineError, UserError
from interop.prune import PINNED
from tests.test_merge import Make
from tests.test_merge import make as make  # a fixture


@pytest.fixture
def parser(tmp_path: Path) -> argparse.ArgumentParser:
    """The two commands alone; results are below ``tmp_path``."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    commands = parser.add_subparsers(required=True)
    keeping_command.add(lambda name, text: commands.add_parser(name, help=text, exit_on_error=False), tmp_path)
    return parser


def act(parser: argparse.ArgumentParser, *words: str) -> str:
    options = parser.parse_args(words)
    return str(options.carry_out(options))


def test_merge(parser: argparse.ArgumentParser, make: Make, tmp_path: Path) -> None:
    parts = [str(make(f"{number}/2")) for number in (1, 2)]
    assert "36 of 36 runs of 2 parts" in act(parser, "merge", *parts, "-o", str(tmp_path / "all"))


def test_prune_shows_first_and_removes_when_told_to(
    parser: argparse.ArgumentParser, make: Make, tmp_path: Path
) -> None:
    (tmp_path / "results").mkdir()
    place = make("1/1", "results/2026")
    traces = len(list(place.rglob("*.pcap")))
    assert traces > 0
    told = act(parser, "prune", "--traces", "0")
    assert "traces" in told
    assert "would be removed; add --yes" in told
    assert len(list(place.rglob("*.pcap"))) == traces
    (place / PINNED).touch()
    assert act(parser, "prune", "--traces", "0", "--yes").startswith(f"{place}: stays, pinned")
    (place / PINNED).unlink()
    assert "removed" in act(parser, "prune", "--traces", "0", "--yes")
    assert list(place.rglob("*.pcap")) == []
    assert (place / "journal.jsonl").exists()


def test_room_that_cannot_be_made_is_told(parser: argparse.ArgumentParser, make: Make, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    place = make("1/1", "results/2026")
    for words in (("--min-free", "999999 GiB"), ("--max-size", "0 B")):
        with pytest.raises(MachineError, match=f"{place}: traces(.|\n)*would be removed(.|\n)*results go by --keep"):
            act(parser, "prune", *words)
    assert list(place.rglob("*.pcap"))


@pytest.mark.parametrize(
    ("words", "told"),
    [([], "What may go"), (["--traces", "0", "results/2026"], "is a campaign"), (["--traces", "0", "no"], "no such")],
)
def test_prune_without_anything_to_do(
    parser: argparse.ArgumentParser,
    make: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    told: str,
) -> None:
    (tmp_path / "results").mkdir()
    make("1/1", "results/2026")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=told):
        act(parser, "prune", *words)


@pytest.mark.parametrize("words", [("--traces", "-1"), ("--keep", "0"), ("--max-size", "5"), ("--min-free", "much")])
def test_words_that_are_wrong(parser: argparse.ArgumentParser, words: tuple[str, ...]) -> None:
    with pytest.raises(argparse.ArgumentError):
        parser.parse_args(["prune", *words])


def test_prune_where_nothing_is(parser: argparse.ArgumentParser, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such directory"):
        act(parser, "prune", str(tmp_path / "nowhere"), "--traces", "0")
