"""``./run.py site``: builds the site of stored campaigns and prints a summary."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.cli.conftest import CommandLine


def test_a_site_is_built(places: list[str], tmp_path: Path, quicsat: CommandLine) -> None:
    summary = quicsat.out("site", places[0], "-o", tmp_path / "web")
    assert summary.startswith(f"{tmp_path}/web: 1 campaign, ")
    assert " pages, " in summary
    assert (tmp_path / "web" / "index.html").is_file()


def test_a_port_that_is_taken_is_told_before_the_site_is_built(
    places: list[str], tmp_path: Path, quicsat: CommandLine
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        err = quicsat.refusal("site", places[0], "-o", tmp_path / "web", "--serve", port)
    told = f"port {port}: cannot be listened on: Address already in use. Name another port, for example 8001.\n"
    assert err == told
    assert not (tmp_path / "web").exists()
