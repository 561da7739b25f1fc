"""``./run.py site``: builds the site of stored campaigns and prints a summary."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from quicsat.cli.main import main
from tests.cli.conftest import ROOT


def test_a_site_is_built(places: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ROOT, ["site", places[0], "-o", str(tmp_path / "web")]) == 0
    summary = capsys.readouterr().out
    assert summary.startswith(f"{tmp_path}/web: 1 campaign, ")
    assert " pages, " in summary
    assert (tmp_path / "web" / "index.html").is_file()


def test_a_port_that_is_taken_is_told_before_the_site_is_built(
    places: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(ROOT, ["site", places[0], "-o", str(tmp_path / "web"), "--serve", str(port)]) == 2
    told = f"port {port}: cannot be listened on: Address already in use. Name another port, for example 8001.\n"
    assert capsys.readouterr().err == told
    assert not (tmp_path / "web").exists()
