"""Commands that are killed at one of their accesses to files leave nothing half-written, and the next call works."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from bench.kills import WRITERS, examine, killed_at, names, prepare, start

PARTS = {"site": 2, "plot": 1, "analyse": 2, "import": 1} | dict.fromkeys(
    ("merge", "prune", "baseline save", "export", "images lock"), 5
)
"""Number of kills, in equal parts of all accesses of the command."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What each command begins with."""
    return prepare(tmp_path_factory.mktemp("kills"))


def copy(base: Path, place: Path) -> Path:
    return shutil.copytree(base, place, symlinks=True)


@pytest.mark.parametrize("name", WRITERS)
def test_nothing_half_written_stays(base: Path, tmp_path: Path, name: str) -> None:
    writer, count = WRITERS[name], tmp_path / "count"
    whole = copy(base, tmp_path / "whole")
    assert os.waitpid(start(whole, killed_at(0, writer.act, count)), 0)[1] == 0
    accesses, expected = int(count.read_text()), names(whole)
    for part in range(1, PARTS[name] + 1):
        place = copy(base, tmp_path / str(part))
        process = start(place, killed_at(accesses * part // (PARTS[name] + 1), writer.act))
        found = examine(writer, process, place, expected)
        found.pop("drafts after the kill")
        assert [what for what, holds in found.items() if holds] == ["killed"], part


def test_what_a_kill_leaves_is_found(base: Path, tmp_path: Path) -> None:
    place = copy(base, tmp_path / "place")
    expected = names(copy(base, tmp_path / "other"))
    (place / "file.json").write_text("{")
    process = start(place, lambda: os.kill(os.getpid(), signal.SIGKILL))
    found = examine(WRITERS["export"], process, place, expected)
    assert (found["half-written states"], found["leftovers after the next call"]) == (True, True)
