"""``./run.py merge``: two shards become one campaign."""

from pathlib import Path

from tests.cli.conftest import CommandLine
from tests.results.test_merge import Make
from tests.results.test_merge import make as make  # a fixture


def test_merge(make: Make, tmp_path: Path, quicsat: CommandLine) -> None:
    shards = [make(f"{number}/2") for number in (1, 2)]
    assert "36 of 36 runs of 2 parts" in quicsat.out("merge", *shards, "-o", tmp_path / "all")


def test_without_a_target(tmp_path: Path, quicsat: CommandLine) -> None:
    assert "required: -o/--output" in quicsat.refusal("merge", tmp_path)
