"""The wrappers that are written here stay small, so that what is measured is the stack and not the wrapper."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.conftest import ROOT

MOST_LINES = 150
PROGRAMS = {
    "aioquic": (("endpoint.py",), ("webtransport.py",)),
    "openssl": (("client.c", "quic.h"), ("server.c", "quic.h")),
}
"""Files of each program of a wrapper that is several programs; all the others are counted as a whole."""
SHARED = {"base", "base-rust", "TEMPLATE"}
"""Folders of no implementation: what the contract asks of all, and a first draft."""
NO_CODE = {"Cargo.lock", "Cargo.toml", "Dockerfile", "go.mod", "go.sum", "pom.xml", "requirements.txt", "tests"}
"""Which versions, how they are put together, and which test cases they know."""


def wrapper(folder: Path) -> dict[str, int]:
    """Lines of each file that is code of our own, by its path below the folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in NO_CODE)
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8").count("\n") for path in files}


WRAPPERS = {
    folder.name: wrapper(folder)
    for folder in sorted((ROOT / "endpoints").iterdir())
    if folder.is_dir() and folder.name not in SHARED
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapper_is_small_as_a_whole(name: str) -> None:
    lines = WRAPPERS[name]
    programs = PROGRAMS.get(name, (tuple(lines),))
    assert {file for files in programs for file in files} == lines.keys()
    for files in programs:
        assert sum(lines[file] for file in files) <= MOST_LINES, lines


def test_every_file_of_a_wrapper_counts(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for name in ("client", "src/main.rs", "src/setup.rs", "Cargo.lock", "Dockerfile", "tests"):
        (tmp_path / name).write_text("1\n2\n3\n", encoding="utf-8")
    assert wrapper(tmp_path) == {"client": 3, "src/main.rs": 3, "src/setup.rs": 3}


def test_the_wrappers_that_there_are_are_found() -> None:
    assert "src/main.rs" in WRAPPERS["msquic"]
    assert {"client", "client.sed", "server"} < WRAPPERS["neqo"].keys()
