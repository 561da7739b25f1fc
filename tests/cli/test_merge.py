"""``./run.py merge``: two shards become one campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

from quicsat.cli import main as cli
from tests.results.test_merge import Make
from tests.results.test_merge import make as make  # a fixture


def test_merge(make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shards = [str(make(f"{number}/2")) for number in (1, 2)]
    assert cli.main(tmp_path, ["merge", *shards, "-o", str(tmp_path / "all")]) == 0
    assert "36 of 36 runs of 2 parts" in capsys.readouterr().out


def test_without_a_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(tmp_path, ["merge", str(tmp_path)])
    assert ended.value.code == 2
    assert "required: -o/--output" in capsys.readouterr().err
