"""Kills commands that write, each 30 times at a random moment, and looks for what they leave.

    make bench-kills
    python -m bench.kills --kills 100 --seed 7 --only merge

Bars: what is there after a kill is the old or the new state as a whole; the same call then succeeds, and leaves what it
leaves without a kill. The lock file of images is written without an engine, as `images lock` writes it at its end.
"""
# ruff: noqa: T201 - a script

import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from prettytable import PrettyTable

from bench.script import ROOT, judged, options_parser
from quicsat.cli import commands, entry_point
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
    "export": Writer(
        run("export", str(GOOD), str(FILE)),
        lambda: _loads(FILE, lambda path: open_results(path, {})),
    ),
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
        left = any(is_draft(Path(name).name) for name in names(place))
        found["drafts after the kill"] = left
        done = writer.is_done()
    finally:
        os.chdir(before)
    if not done:
        again = start(place, writer.act)
        found["next calls that fail"] = os.waitpid(again, 0)[1] != 0 or not ended(again)
    found["leftovers after the next call"] = names(place) != expected
    return found


def prepare(place: Path) -> Path:
    """Two campaigns, of which one has a site."""
    hostile_results.good(place / GOOD)
    hostile_results.campaign(place / "results/hostile")
    (place / "tmp").mkdir()
    process = start(place, run("site", str(GOOD), "-o", str(SITE)))
    if os.waitpid(process, 0)[1]:
        raise SystemExit("the first site cannot be built")
    return place


def reference(writer: Writer, base: Path, place: Path) -> tuple[float, list[str]]:
    """How long a call takes, seconds, and what it leaves if it is not killed."""
    shutil.copytree(base, place, symlinks=True)
    begin = time.monotonic()
    process = start(place, writer.act)
    if os.waitpid(process, 0)[1]:
        raise SystemExit("the command fails even if it is not killed")
    return time.monotonic() - begin, names(place)


def main() -> int:
    """Exit status: 0 all bars are kept, 1 one is not."""
    parser = options_parser(__doc__, {"--kills": 30, "--seed": 1})
    parser.add_argument("--only", choices=WRITERS)
    options = parser.parse_args()
    for name in ("site", "plot", "merge", "analyse", "tables", "prune", "baseline", "export"):
        commands.load(name)
    dice = random.Random(options.seed)
    table = PrettyTable(["", *(chosen := [options.only] if options.only else list(WRITERS))], align="r")
    counts = {name: Counter[str]() for name in chosen}
    with tempfile.TemporaryDirectory(prefix="quicsat-kills-") as folder:
        base = prepare(Path(folder, "base"))
        for name in chosen:
            writer = WRITERS[name]
            seconds, expected = reference(writer, base, Path(folder, name))
            while counts[name]["killed"] < options.kills:
                counts[name]["calls"] += 1
                place = Path(folder, f"{name} {counts[name]['calls']}")
                shutil.copytree(base, place, symlinks=True)
                process = start(place, writer.act)
                time.sleep(dice.uniform(0, seconds))
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                found = examine(writer, process, place, expected)
                counts[name].update(what for what, holds in found.items() if holds)
                shutil.rmtree(place)
    rows = ("calls", "killed", "drafts after the kill", "half-written states", "processes that stay",
            "next calls that fail", "leftovers after the next call")  # fmt: skip
    table.add_rows([[row, *(counts[name][row] for name in chosen)] for row in rows])
    print(table)
    return judged(any(counts[name][row] for name in chosen for row in rows[3:]))


if __name__ == "__main__":
    sys.exit(main())
