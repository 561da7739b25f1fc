"""Runs commands on hostile results: files that are links, pipes or devices; mutated journals, qlogs and series.

    make bench-hostile
    python -m bench.hostile --journals 100 --seed 7
    python -m bench.hostile --only journal-17 --keep build/hostile    # one case again

Bars: no command reads or changes a file outside the campaign, prints a traceback, hides the campaign beside it, needs
more than 1 GiB of memory or 20 s of CPU time, or hangs.
"""
# ruff: noqa: T201 - a script

import argparse
import ctypes
import os
import pickle
import random
import re
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from pathlib import Path

from prettytable import PrettyTable

from bench.script import ROOT, judged, options_parser
from quicsat.cli import commands, entry_point
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.main import main as command_line
from quicsat.cli.tables import TABLES
from quicsat.docker.archive import ArchiveLimits, unpack
from quicsat.model.errors import HarnessFault
from quicsat.model.units import MIB, byte_size
from quicsat.plots import discovery
from tests import hostile_archives
from tests import hostile_results as hostile

GIB = 1024 * MIB
MOST_MEMORY, LONGEST = GIB, 20.0
"""Bytes, and seconds of CPU time, of one command and all of its processes."""
HANG = 120
"""Seconds after which a command hangs, also on a busy machine."""
GOOD, HOSTILE = "results/good", "results/hostile"
RUN = f"{HOSTILE}/{hostile.RUN}"
COMMANDS: dict[str, tuple[str, ...]] = {
    "site": ("site", "results", "-o", "site", "--files"),
    "tables": ("tables", GOOD, HOSTILE, "--table", *(name for name in TABLES if name not in ("clusters", "groups"))),
    "history": ("tables", HOSTILE, GOOD),
    "show": ("show", HOSTILE, "--negotiated"),
    "compare": ("compare", GOOD, HOSTILE),
    "plot": ("plot", HOSTILE, GOOD, "-p", "data-rate", "rtt"),
    "any plot": ("plot", HOSTILE, GOOD, "--format", "pdf", "-p"),
    "explain": ("explain", RUN),
    "packets": ("packets", RUN, "3"),
    "export": ("export", HOSTILE, "all.json"),
    "analyse": ("analyse", HOSTILE),
    "merge": ("merge", HOSTILE, "-o", "whole"),
    "plan": ("plan", "-s", "quic-go", "-c", "aioquic", "-t", "sat"),
    "prune": ("prune", "results", "--traces", "0", "--logs", "0", "--yes"),
}
"""Those that change results come last."""
OF_FILES = ("site", "tables", "show", "explain", "export", "analyse", "merge", "prune")
OF_JOURNALS = ("tables", "history", "show", "compare", "explain", "export", "prune")
OF_QLOGS = ("explain", "analyse")
OF_SERIES = ("explain", "plot", "analyse")
SLOW = ("site", "site", "plot", "any plot", "plan", "packets")
"""Of which each third case runs one first."""
NEEDS_GOOD = {"tables": "quiche", "history": "7.13"}
"""Commands that must show the campaign beside, and what of it they print: its server, or its goodput, as the summary of
a campaign that is left alone names no server."""
PLOTS = sorted(discovery.headings())


@dataclass(frozen=True)
class Case:
    """One damage to a campaign, and the commands that then read it."""

    name: str
    """Which is its seed, too."""
    commands: tuple[str, ...]
    place: Path | None = None
    change: str = ""

    def apply(self, campaign: Path, outside: Path) -> None:
        """Do the damage."""
        dice = random.Random(self.name)
        if self.place is not None:
            hostile.CHANGES[self.change](campaign / self.place, outside / self.place)
        elif self.change == "journal":
            hostile.mutate_journal(campaign, dice)
        elif self.change == "qlog":
            hostile.mutate_qlog(campaign / hostile.QLOG, dice)
        else:
            hostile.mutate_series(campaign / hostile.RUN / "series.parquet", dice)


@dataclass
class Found:
    """What a case has shown."""

    name: str
    faults: list[tuple[str, str]] = field(default_factory=list)
    """Command, and what it did."""
    begun: list[str] = field(default_factory=list)
    """Commands in their order; the last one may not have ended."""
    memory: int = 0
    cpu: float = 0.0
    longest: float = 0.0


def cases(base: Path, options: argparse.Namespace) -> list[Case]:
    """All of them, or those that are chosen."""
    of_files = [
        Case(f"{change} as {place}", OF_FILES, place, change)
        for place in hostile.places(base)
        for change in hostile.CHANGES
    ]
    mutated = (
        ("journal", OF_JOURNALS, options.journals),
        ("qlog", OF_QLOGS, options.qlogs),
        ("series", OF_SERIES, options.series),
    )
    others = [
        Case(f"{kind}-{number}", words, change=kind)
        for kind, words, count in mutated
        for number in range(options.seed, options.seed + count)
    ]
    if options.only:
        return [case for case in (*of_files, *others) if case.name == options.only]
    random.Random(options.seed).shuffle(of_files)
    return [*of_files[: options.files], *others]


# ---- one case -------------------------------------------------------------------------------


class Watch:
    """Sees every access to what is below a directory, however the path led there (inotify(7))."""

    CHANGED = 0x2 | 0x4 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
    READ = 0x1 | 0x20
    EVENT = struct.Struct("iIII")
    NAMES = ((READ, "read"), (0x2, "written"), (0x100, "created"), (0x640, "removed"), (0x980, "changed"))

    def __init__(self, directory: Path, *, reads: bool) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        mask = self.CHANGED & ~0x4 | self.READ if reads else 0x2 | 0x100
        self._paths: dict[int, Path] = {}
        for path in (directory, *directory.rglob("*")):
            self._paths[self._library.inotify_add_watch(self._descriptor, os.fsencode(path), mask)] = path
        if self._descriptor < 0 or -1 in self._paths:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def seen(self) -> list[str]:
        """What was done since the last call."""
        found: dict[str, None] = {}
        try:
            raw = os.read(self._descriptor, 2**20)
        except BlockingIOError:
            return []
        while raw:
            watch, mask, _, length = self.EVENT.unpack_from(raw)
            name = os.fsdecode(raw[self.EVENT.size : self.EVENT.size + length].rstrip(b"\0"))
            raw = raw[self.EVENT.size + length :]
            kinds = [word for bits, word in self.NAMES if mask & bits]
            found[f"{self._paths[watch] / name} {' and '.join(kinds)}"] = None
        return list(found)

    def close(self) -> None:
        """Stop."""
        os.close(self._descriptor)


def examine(case: Case, base: Path, scratch: Path, keep: Path | None = None) -> Found:
    """Damage a copy of the campaigns, and run the commands of the case."""
    with tempfile.TemporaryDirectory(prefix="case-", dir=scratch) as name:
        place = keep or Path(name)
        shutil.copytree(base, place, symlinks=True, dirs_exist_ok=True)
        case.apply(place / HOSTILE, place / "outside")
        watch = Watch(place / "outside", reads=case.change != "hard link")
        dice = random.Random(case.name)
        slow = [dice.choice(SLOW)] if dice.random() < 1 / 3 else []
        try:
            return run_commands(case.name, [*slow, *case.commands], place, watch)
        finally:
            watch.close()


def run_commands(name: str, commands_: Sequence[str], place: Path, watch: Watch | None = None) -> Found:
    """Run commands one after the other in one process of their own, which a hang ends."""
    found = Found(name)
    process = os.fork()
    if not process:
        _child(found, commands_, place, watch)
    _, status, used = os.wait4(process, 0)
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    with suppress(FileNotFoundError):
        found = pickle.loads((place / "found").read_bytes())
    found.memory = used.ru_maxrss * 1024
    last = commands_[min(len(found.begun), len(commands_)) - 1]
    exit_status = os.waitstatus_to_exitcode(status)
    faults = {
        "hangs": exit_status == -signal.SIGALRM,
        f"ends the process with {exit_status}": exit_status not in (0, -signal.SIGALRM),
        f"memory of {found.memory // MIB} MiB": found.memory > MOST_MEMORY,
    }
    found.faults += [(last, fault) for fault, holds in faults.items() if holds]
    return found


def _child(found: Found, commands_: Sequence[str], place: Path, watch: Watch | None) -> None:
    try:
        os.setsid()
        os.chdir(place)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (8 * GIB, 8 * GIB))  # so that the machine survives
        for command in commands_:
            found.begun.append(command)
            Path("found").write_bytes(pickle.dumps(found))
            _run(command, place, found)
            if watch is not None:
                seen = [each.replace(f"{place}/outside", "") for each in watch.seen()]
                found.faults += [(command, f"outside {each}") for each in seen]
        Path("found").write_bytes(pickle.dumps(found))
    except BaseException:  # noqa: BLE001 - no line of the bench may run in this process
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _run(command: str, place: Path, found: Found) -> None:
    """One command in this process, whose output goes to a file."""
    more = random.Random(found.name).sample(PLOTS, 2) if command == "any plot" else ()
    said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.close(said)
    signal.alarm(HANG)
    begun, before = time.monotonic(), _cpu()
    exit_status = -1
    try:
        exit_status = command_line(place, (*COMMANDS[command], *more), entry_point._draw, entry_point._figures)
    except SystemExit as ended:
        exit_status = int(ended.code or 0)
    except BaseException:  # noqa: BLE001 - this is what is looked for
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    signal.alarm(0)
    cpu = _cpu() - before
    found.cpu, found.longest = max(found.cpu, cpu), max(found.longest, time.monotonic() - begun)
    text = Path("said").read_text(errors="replace")
    faults = {
        f"{cpu:.0f} s of CPU time": cpu > LONGEST,
        f"ends with {exit_status}": exit_status not in [*ExitStatus],
        "hides the other campaign": not _shows_good(command, place, text, exit_status),
        _last_call(text): "Traceback" in text,
    }
    found.faults += [(command, fault) for fault, holds in faults.items() if holds]


def _cpu() -> float:
    """Seconds of this process and of those that it waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _last_call(said: str) -> str:
    """The error of the last traceback, and the line of this program that raised it."""
    calls = re.findall(rf'File "{ROOT}/((?:quicsat|plots)/[^"]+)", line (\d+)', said)
    error = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Fault|Warning)\b.*", said, re.MULTILINE)
    return f"traceback: {':'.join(calls[-1]) if calls else '?'}: {error[-1][:100] if error else said[-100:]!r}"


def _shows_good(command: str, place: Path, said: str, exit_status: int) -> bool:
    """Whether the campaign beside is shown in full; those that name a damaged campaign alone may fail."""
    if command == "site":
        return exit_status == 0 and pages(place / "site") >= pages(place / "alone")
    return command not in NEEDS_GOOD or (exit_status == 0 and NEEDS_GOOD[command] in said)


def pages(site: Path) -> set[tuple[str, bool]]:
    """Of the good campaign: their names, and whether there is something in them."""
    files = (path for path in site.glob("runs/*-good/**/*") if path.is_file())
    return {(str(path.relative_to(site)), path.stat().st_size > 0) for path in files}


# ---- all cases ------------------------------------------------------------------------------


def prepare(place: Path) -> Path:
    """What every case begins with: a checkout with two campaigns, the like of one outside, the site of the other."""
    place.mkdir()
    for part in ROOT.iterdir():
        if not part.name.startswith(".") and part.name not in ("results", "site"):
            (place / part.name).symlink_to(part)
    for name in ("testcases", "implementations.json"):  # which are read through no link
        (place / name).unlink()
    shutil.copytree(ROOT / "testcases", place / "testcases")
    shutil.copy(ROOT / "implementations.json", place)
    hostile.good(place / GOOD)
    hostile.campaign(place / HOSTILE)
    shutil.copytree(place / HOSTILE, place / "outside")
    COMMANDS["alone"] = ("site", GOOD, "-o", "alone", "--files")
    found = run_commands("the good campaign alone", ["alone"], place)
    if found.faults or not pages(place / "alone"):
        raise SystemExit(f"{found} {(place / 'said').read_text()}")
    return place


def warm(base: Path, scratch: Path) -> None:
    """Import what commands import, compile templates and load fonts, so that each case need not."""
    for name in {words[0] for words in COMMANDS.values()}:
        commands.load(name)
    shutil.copytree(base, scratch / "warm", symlinks=True)
    here = Path.cwd()
    os.chdir(scratch / "warm")
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        for command in ("site", "plot", "plan"):
            command_line(scratch / "warm", COMMANDS[command], entry_point._draw, entry_point._figures)
    os.chdir(here)


def unpack_all(folder: Path, count: int) -> Counter[str]:
    """Unpack hostile archives, each beside a file that must stay as it is; what went wrong, by its kind."""
    found: Counter[str] = Counter()
    for seed in range(count):
        place = folder / f"archive-{seed}"
        target = place / "deep/target"
        target.mkdir(parents=True)
        (place / "secret").write_text("untouched")
        content, regular = hostile_archives.hostile(seed)
        try:
            unpack(iter([content]), target, ArchiveLimits(total=10**6))
        except HarnessFault:
            found["refused"] += 1
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            found["uncaught"] += 1
            print(f"archive {seed}: {type(error).__name__}: {error}")
        else:
            kept = Counter(path.read_bytes() for path in target.rglob("*") if path.is_file())
            found["lost"] += (Counter(regular) - kept).total()
        inside = {path for path in place.rglob("*") if target in path.parents}
        beside = {path.name for path in {*place.rglob("*")} - inside}
        found["outside"] += beside != {"deep", "target", "secret"} or (place / "secret").read_text() != "untouched"
        found["special"] += sum(path.is_symlink() or not (path.is_file() or path.is_dir()) for path in inside)
        shutil.rmtree(place)
    return found


def main() -> int:
    """Exit status: 0 all bars are kept, 1 one is not."""
    counts = {"--files": 400, "--journals": 1600, "--qlogs": 400, "--series": 100, "--archives": 200, "--seed": 1}
    parser = options_parser(__doc__, counts)  # there are 800 kinds of files at all places
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", help="the case of this name")
    parser.add_argument("--keep", type=Path, help="directory for what that case leaves")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quicsat-hostile-") as name:
        scratch = Path(name)
        base = prepare(scratch / "base")
        warm(base, scratch)
        chosen = cases(base / HOSTILE, options)
        with ProcessPoolExecutor(options.jobs) as pool:
            found = list(told(pool.map(partial(examine, base=base, scratch=scratch, keep=options.keep), chosen)))
        unpacked = unpack_all(scratch, options.archives)
    return tell(found, unpacked)


def told(found: Iterable[Found]) -> Iterator[Found]:
    """The same; each fault is printed when a case shows it first."""
    known: set[tuple[str, str]] = set()
    for each in found:
        for command, fault in each.faults:
            if (command, fault) not in known:
                known.add((command, fault))
                print(f"{command}: {fault}   [{each.name}]", flush=True)
        yield each


def tell(found: Sequence[Found], unpacked: Counter[str]) -> int:
    """Print the counts, and whether the bars are reached."""
    kinds = Counter(each.name.partition("-")[0] if re.fullmatch(r"[a-z]+-\d+", each.name) else "file" for each in found)
    table = PrettyTable(["", "number"], align="l")
    table.add_rows([
        *([f"cases of {kind}s", count] for kind, count in kinds.items()),
        ["cases with a fault", sum(bool(each.faults) for each in found)],
        ["most memory", byte_size(max(each.memory for each in found))],
        ["longest CPU time", f"{max(each.cpu for each in found):.1f} s"],
        ["longest command", f"{max(each.longest for each in found):.1f} s"],
    ])  # fmt: skip
    print(table)
    bad = any(each.faults for each in found) or any(
        unpacked[what] for what in ("outside", "special", "lost", "uncaught")
    )
    return judged(bad)


if __name__ == "__main__":
    sys.exit(main())
