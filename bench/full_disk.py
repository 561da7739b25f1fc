"""Counts unreadable files and failed resumes when the disk is full at 50 random bytes of a campaign; needs root.

Run it with `python -m bench.full_disk`, or with `make bench-faults`.
"""
# ruff: noqa: T201 - a script

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet

from bench.script import ROOT, counts_table, options_parser
from quicsat.analysis.analyse import analyse
from quicsat.execution import retries
from quicsat.execution.dispatcher import Dispatcher
from quicsat.execution.local_worker import LocalWorker
from quicsat.execution.observer import Observer
from quicsat.execution.remaining_work import remaining_work
from quicsat.execution.worker_pool import WorkerPool
from quicsat.links.ns3_testbed import Ns3Backend
from quicsat.model.errors import HarnessFault, MachineError, UserError
from quicsat.model.outcomes import Outcome
from quicsat.model.run import Run
from quicsat.results.store import DOCUMENT, JOURNAL, Journal, load, write_result_json
from tests import faults
from tests.fakes import CASE, SIMULATOR, FakeEngine, connect, endpoint, implementation, run_config

DISK = 16 * 1024 * 1024
"""Bytes of the file system that is filled."""
PIECE = 4096


@dataclass(frozen=True)
class Case:
    """What became of one campaign."""

    room: int
    """Bytes that were free when it began."""
    ended: str
    """By what its first part ended."""
    acknowledged: int
    lost: int
    """Results that were acknowledged and cannot be read."""
    unreadable: int
    """Files that a reader would trip over."""
    finished: bool
    """After it was resumed."""


def main() -> int:
    """Exit status: 0 all bars are kept, 1 one is not, 3 no file system can be mounted."""
    options = options_parser(__doc__, {"--points": 50, "--seed": 1}).parse_args()
    faults.quick(setattr)
    retries.FREE_SPACE = 0  # else the guard would hardly ever let a disk become full
    dice = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="quicsat-disk-") as folder:
        try:
            with file_system(Path(folder)):
                needed = measure_need(Path(folder))
            cases = []
            for number in range(options.points):
                with file_system(Path(folder)):
                    cases.append(one(Path(folder), dice.randrange(PIECE, needed)))
                print(f"[{number + 1}] {cases[-1]}")
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"No file system of a known size can be mounted here: {error}")
            return 3
    return tell(cases, needed)


@contextmanager
def file_system(place: Path) -> Iterator[None]:
    """A small file system at ``place``."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=700", "quicsat-bench", str(place)]
    subprocess.run(command, check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def measure_need(place: Path) -> int:
    """Bytes that a campaign takes if there is room enough."""
    before = shutil.disk_usage(place).free
    carry_out(place / "campaign")
    return before - shutil.disk_usage(place).free


def one(place: Path, room: int) -> Case:
    """A campaign that has ``room`` bytes, and its continuation when there is more."""
    filler = place / "filler"
    with filler.open("wb") as file:
        file.write(bytes(max(0, shutil.disk_usage(place).free - room)))
    directory = place / "campaign"
    heard: set[tuple[str, int]] = set()
    ended = carry_out(directory, heard)
    before = readable(directory)
    bad = unreadable(directory)
    filler.unlink()
    carry_out(directory, heard)
    record = load(directory)
    finished = record.result_set.finished is not None and all(
        result.verdict.outcome is Outcome.SUCCEEDED for result in record.result_set.results
    )
    lost = len(heard - readable(directory)) + len(before - readable(directory))
    return Case(room, ended, len(before), lost, bad + unreadable(directory), finished)


def carry_out(directory: Path, heard: set[tuple[str, int]] | None = None) -> str:
    """Begin or continue a campaign of four runs; how it ended."""
    case = replace(CASE, repetitions=4, timeout=10.0, file_sizes=(60_000,))
    good = implementation("good")
    runs = tuple(Run(good, good, case, number, 1) for number in range(1, 5))
    engine = FakeEngine(good=endpoint)
    engine.server_patience = 10.0
    daemon = connect(engine)
    stop, backend = threading.Event(), Ns3Backend(daemon, SIMULATOR)
    try:
        directory.mkdir(exist_ok=True)
        begun = (directory / JOURNAL).exists() and bool((directory / JOURNAL).stat().st_size)
        if not begun:
            (directory / JOURNAL).unlink(missing_ok=True)
        manifest = replace(faults.manifest(runs), seed=1)
        with Journal.open(directory) if begun else Journal.create(directory, manifest) as journal:
            rest = remaining_work(journal.record(), ())
            done = (heard if heard is not None else set()).add
            workers = WorkerPool(stop, LocalWorker(daemon, backend, run_config(engine), analyse, stop))
            observer = Observer(done=lambda result: done((result.test_case, result.repetition)))
            with closing(workers):
                Dispatcher(workers, journal, observer).run_all(rest, set())
            journal.finish()
            write_result_json(directory, journal.record().result_set)
    except (UserError, HarnessFault, OSError) as error:
        return type(error).__name__ if isinstance(error, (MachineError, HarnessFault)) else f"{error!r}"
    return "its own end"


def readable(directory: Path) -> set[tuple[str, int]]:
    """Runs whose result can be read."""
    try:
        return {(result.test_case, result.repetition) for result in load(directory).result_set.results}
    except UserError:
        return set()


def unreadable(directory: Path) -> int:
    """Files that are there, and are not whole: result.json, and the series of runs that have a result."""
    bad = 0
    document = directory / DOCUMENT
    if document.exists():
        try:
            json.loads(document.read_bytes())
        except ValueError:
            bad += 1
    for case, repetition in readable(directory):
        for series in directory.glob(f"*/{case}/{repetition}/series.parquet"):
            try:
                pyarrow.parquet.read_metadata(series)
            except (OSError, pyarrow.lib.ArrowException):
                bad += 1
    return bad


def tell(cases: list[Case], needed: int) -> int:
    """Print the figures; the exit status."""
    ends = Counter(case.ended for case in cases)
    surprises = sum(count for end, count in ends.items() if end not in ("its own end", "MachineError"))
    lost, bad = sum(case.lost for case in cases), sum(case.unreadable for case in cases)
    unfinished = sum(not case.finished for case in cases)
    print(
        counts_table(
            [
                ("points at which the disk was full", len(cases)),
                ("bytes of a whole campaign", needed),
                *((f"ended by {end}", count) for end, count in ends.most_common()),
                ("results that were on disk then", sum(case.acknowledged for case in cases)),
                ("results lost", lost),
                ("files that cannot be read", bad),
                ("campaigns that resume did not finish", unfinished),
            ]
        )
    )
    return int(bool(lost or bad or unfinished or surprises))


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
