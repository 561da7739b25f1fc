"""Commands that are killed at one of their accesses to files leave nothing half-written, and the next call works.

What is there after a kill is the old or the new state as a whole; the same call then succeeds, and leaves what it
leaves without a kill. The lock file of images is written without an engine, as `images lock` writes it at its end.
"""

import itertools
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from quicsat.cli import entry_point
from quicsat.cli.main import main as command_line
from quicsat.images.lock_file import lock_text, read_lock
from quicsat.model.errors import UserError
from quicsat.model.results import ImageFacts
from quicsat.model.whole_file import is_draft, write_atomically
from quicsat.results import baseline
from quicsat.results.qir_import import open_results
from quicsat.results.store import load
from quicsat.site import address, cell_pages
from tests import hostile_results

ROOT = Path(__file__).resolve().parents[2]
GOOD, WHOLE = Path("results/good"), Path("whole")
LEFT = Path("results/hostile") / hostile_results.RUN / "sim/trace_node_left.pcap"
KEYS = Path("results/hostile") / hostile_results.RUN / "client/keys.log"
"""Captures of another runner are copied and analysed in a temporary directory."""
FILE, LOCK, SITE = Path("file.json"), Path("images.lock.json"), Path("site")
IMAGES = {f"image-{number}": ImageFacts(f"quicsat/{number}:1", f"sha256:{number:064}") for number in range(1000)}
PATIENCE = 60.0
"""Seconds after which the processes of a killed command must have ended."""
FILE_EVENTS = ("open", "os.", "shutil.")
"""Beginnings of the names of audit events at which a process is killed."""


@dataclass(frozen=True)
class Writer:
    """A command that writes."""

    act: Callable[[], object]
    is_whole: Callable[[], bool]
    """Whether what a reader sees is the state before or after the command."""
    is_done: Callable[[], bool] = lambda: False
    """Whether the command was killed when all was done, and refuses to do it again."""


def run(*words: str) -> Callable[[], None]:
    """A command of run.py, which must succeed."""

    def act() -> None:
        if command_line(ROOT, words, entry_point._draw, entry_point._figures):
            raise SystemExit(f"{words} does not succeed")

    return act


def _loads(path: Path, read: Callable[[Path], object]) -> bool:
    try:
        read(path)
    except UserError:
        return not path.exists()
    return True


def _site_is_whole() -> bool:
    """Whether all pages of the campaigns that its marker names are there."""
    folders = {path.name for path in (SITE / "runs").iterdir() if path.is_dir()}
    pages = [SITE / address.HOME, *(SITE / "runs" / folder / "index.html" for folder in folders)]
    kept = [path for path in SITE.glob("*/*/*") if path.is_symlink() and not path.exists()]
    return all(page.stat().st_size for page in pages) and not kept


def _site_by_several_processes() -> None:
    cell_pages.WORTHWHILE = 1
    run("site", "results", "-o", str(SITE), "--files")()


def _figures_are_whole() -> bool:
    """Whether all of them can be parsed."""
    for figure in (GOOD / "plots").glob("*.svg"):
        ElementTree.parse(figure)
    return True


WRITERS = {
    "site": Writer(_site_by_several_processes, _site_is_whole),
    "plot": Writer(run("plot", str(GOOD), "-p", "box", "offset"), _figures_are_whole),
    "merge": Writer(
        run("merge", "results/hostile", "-o", str(WHOLE)),
        lambda: not WHOLE.exists() or load(WHOLE).result_set.finished is not None,
        WHOLE.exists,
    ),
    "analyse": Writer(run("analyse", "results/hostile"), lambda: _loads(Path("results/hostile"), load)),
    "import": Writer(run("tables", f"{LEFT}:{LEFT.with_name('trace_node_right.pcap')}:{KEYS}"), lambda: True),
    "prune": Writer(
        run("prune", "results", "--keep", "1", "--traces", "0", "--yes"),
        lambda: all(_loads(place, load) for place in Path("results").iterdir() if not is_draft(place.name)),
    ),
    "baseline save": Writer(
        run("baseline", "save", str(GOOD), str(FILE)), lambda: not FILE.exists() or baseline.is_baseline(FILE)
    ),
    "export": Writer(run("export", str(GOOD), str(FILE)), lambda: _loads(FILE, lambda path: open_results(path, {}))),
    "images lock": Writer(
        lambda: write_atomically(LOCK, lock_text(IMAGES).encode()),
        lambda: not LOCK.exists() or read_lock(LOCK) == IMAGES,
    ),
}


# ---- a kill ---------------------------------------------------------------------------------


def names(place: Path) -> list[str]:
    """All files and directories."""
    return sorted(str(path.relative_to(place)) for path in place.rglob("*"))


def start(place: Path, act: Callable[[], object]) -> int:
    """The number of a process, which leads a session, that does ``act`` in ``place``."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        os.setsid()
        os.chdir(place)
        tempfile.tempdir = str(place / "tmp")
        quiet = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(quiet, descriptor)
        act()
        status = 0
    finally:
        os._exit(status)
    raise AssertionError


def killed_at(number: int, act: Callable[[], object], count_file: Path | None = None) -> Callable[[], object]:
    """``act``, whose process kills itself when it accesses files for the ``number``-th time.

    If it ends before, it writes into ``count_file`` how often it did.
    """

    def acting() -> None:
        count, own = itertools.count(1), os.getpid()

        def hook(event: str, _: object) -> None:
            if event.startswith(FILE_EVENTS) and os.getpid() == own and next(count) == number:
                os.kill(own, signal.SIGKILL)

        sys.addaudithook(hook)
        act()
        if count_file is not None:
            count_file.write_text(str(next(count)))

    return acting


def members(session: int) -> Iterator[int]:
    """The processes of a session that have not ended."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, found = path.read_text().rpartition(") ")[2].split()[:4]
            if int(found) == session and state != "Z":
                yield int(path.parent.name)


def ended(session: int) -> bool:
    """Whether all processes of a session end in time; those that do not are killed."""
    deadline = time.monotonic() + PATIENCE
    while left := [*members(session)]:
        if time.monotonic() > deadline:
            for process in left:
                os.kill(process, signal.SIGKILL)
            return False
        time.sleep(0.02)
    return True


def examine(writer: Writer, process: int, place: Path, expected: list[str]) -> dict[str, bool]:
    """What is wrong after a process has been killed, and after the next call."""
    _, status = os.waitpid(process, 0)
    found = {"killed": os.WIFSIGNALED(status), "processes that stay": not ended(process)}
    before = Path.cwd()
    os.chdir(place)
    try:
        found["half-written states"] = not writer.is_whole()
        done = writer.is_done()
    finally:
        os.chdir(before)
    if not done:
        again = start(place, writer.act)
        found["next calls that fail"] = os.waitpid(again, 0)[1] != 0 or not ended(again)
    found["leftovers after the next call"] = names(place) != expected
    return found


# ---- tests ------------------------------------------------------------------------------------

PARTS = {"site": 2, "plot": 1, "analyse": 2, "import": 1} | dict.fromkeys(
    ("merge", "prune", "baseline save", "export", "images lock"), 5
)
"""Number of kills, in equal parts of all accesses of the command."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each command begins with two campaigns; one has a site."""
    place = tmp_path_factory.mktemp("kills")
    hostile_results.good(place / GOOD)
    hostile_results.campaign(place / "results/hostile")
    (place / "tmp").mkdir()
    assert os.waitpid(start(place, run("site", str(GOOD), "-o", str(SITE))), 0)[1] == 0
    return place


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
        assert [what for what, holds in found.items() if holds] == ["killed"], part


def test_what_a_kill_leaves_is_found(base: Path, tmp_path: Path) -> None:
    place = copy(base, tmp_path / "place")
    expected = names(copy(base, tmp_path / "other"))
    (place / "file.json").write_text("{")
    process = start(place, lambda: os.kill(os.getpid(), signal.SIGKILL))
    found = examine(WRITERS["export"], process, place, expected)
    assert (found["half-written states"], found["leftovers after the next call"]) == (True, True)
