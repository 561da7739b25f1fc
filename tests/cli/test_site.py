"""``./run.py site``: builds the site of stored campaigns and prints a summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from interop.cli.main import main
from tests.cli.conftest import ROOT


def test_a_site_is_built(places: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ROOT, ["site", places[0], "-o", str(tmp_path / "web")]) == 0
    summary = capsys.readouterr().out
    assert summary.startswith(f"{tmp_path}/web: 1 campaign, ")
    assert " pages, " in summary
    assert (tmp_path / "web" / "index.html").is_file()
