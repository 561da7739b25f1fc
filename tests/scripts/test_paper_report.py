"""The command scripts/paper_report.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import paper_report


def test_without_results_there_is_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert paper_report.main([str(tmp_path), "--output", str(tmp_path / "paper")]) == 2
    assert "no campaign has a result yet" in capsys.readouterr().err
    assert not (tmp_path / "paper" / "index.md").exists()
