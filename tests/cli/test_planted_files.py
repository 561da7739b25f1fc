"""Links and pipes in a campaign: no command follows or waits for them, and the campaign beside is shown."""

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from quicsat.cli import entry_point
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.main import main
from quicsat.model.run import OUTPUT
from tests import hostile_results as hostile
from tests.cli.conftest import ROOT

COMMANDS = (
    ("site", "results", "-o", "site", "--files"),
    ("plot", "results/hostile", "-p", "data-rate"),
    ("tables", "results/hostile", "results/good"),
    ("explain", f"results/hostile/{hostile.RUN}"),
    ("packets", f"results/hostile/{hostile.RUN}", "3"),
    ("analyse", "results/hostile"),
    ("merge", "results/hostile", "-o", "whole"),
    ("prune", "results", "--traces", "0", "--logs", "0", "--yes"),
)
PATIENCE = 300
"""Seconds after which a command waits for ever, on a machine however busy."""
FOLDERS = (hostile.RUN, hostile.RUN / "client", hostile.RUN.parents[1], Path("plots"))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two campaigns, and the like of one outside, with a secret in each file."""
    place = tmp_path_factory.mktemp("base")
    hostile.good(place / "results/good")
    hostile.campaign(place / "results/hostile")
    shutil.copytree(place / "results/hostile", place / "outside")
    for path in (place / "outside").rglob("*"):
        if path.is_file() and path.suffix not in (".pcap", ".parquet"):
            path.write_bytes(path.read_bytes() + b"\n" + hostile.SECRET)
    return place


@pytest.fixture
def place(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy to plant in; a command that never ends fails."""
    shutil.copytree(base, tmp_path / "copy")

    def end(*_: object) -> None:
        raise TimeoutError

    monkeypatch.chdir(tmp_path / "copy")
    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(PATIENCE)
    yield tmp_path / "copy"
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def evidence(campaign: Path) -> list[Path]:
    """All files that a campaign consists of but its results."""
    return [path for path in sorted(campaign.rglob("*")) if path.is_file() and path.parent != campaign]


def state(outside: Path) -> dict[Path, tuple[bytes, int]]:
    return {path: (path.read_bytes(), path.stat().st_nlink) for path in sorted(outside.rglob("*")) if path.is_file()}


def run_all(place: Path) -> None:
    before = state(place / "outside")
    for words in COMMANDS:
        status = main(ROOT, words, entry_point._draw, entry_point._figures)
        assert status in [*ExitStatus], words
        assert status == 0 or words[0] in ("analyse", "explain", "packets", "plot"), words
    assert state(place / "outside") == before
    assert any((place / "site/runs").glob("*-good/**/index.html"))
    for made in ("site", "whole", "results"):
        for path in (place / made).rglob("*"):
            assert not path.is_file() or path.is_symlink() or hostile.SECRET not in path.read_bytes(), path


@pytest.mark.parametrize("change", ["link outside", "FIFO"])
def test_files_are_replaced(place: Path, change: str) -> None:
    for path in evidence(place / "results/hostile"):
        hostile.CHANGES[change](path, place / "outside" / path.relative_to(place / "results/hostile"))
    run_all(place)


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_a_directory_is_a_link(place: Path, folder: Path) -> None:
    hostile.CHANGES["link outside"](place / "results/hostile" / folder, place / "outside" / folder)
    run_all(place)


def test_a_campaign_is_a_link(place: Path) -> None:
    hostile.CHANGES["link outside"](place / "results/hostile", place / "outside")
    assert main(ROOT, COMMANDS[0]) == 0
    assert [path.parent.name.rpartition("-")[2] for path in (place / "site/runs").glob("*/index.html")] == ["good"]


@pytest.mark.parametrize("change", ["gzip with padding", "gzip of empty members"])
def test_packed_files_of_nothing_stop_no_command(place: Path, change: str) -> None:
    run = place / "results/hostile" / hostile.RUN
    (run / OUTPUT).unlink(missing_ok=True)
    for name in (*hostile.PACKED, f"{OUTPUT}.gz"):
        hostile.CHANGES[change](run / name, place / "outside")
    run_all(place)
