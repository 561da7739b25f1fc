#!/usr/bin/env python3
"""Measures memory, descriptors and threads that 2,000 runs at a simulated engine leave behind.

Run it with `bench/endurance.py`, or with `make bench-faults`.
"""
# ruff: noqa: E402, T201 - a script

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import threading
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from prettytable import PrettyTable

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from quicsat.cli.progress import Progress
from quicsat.execution.cpu_monitor import CpuMonitor
from quicsat.execution.dispatcher import Dispatcher
from quicsat.execution.local_worker import LocalWorker
from quicsat.execution.observer import Observer
from quicsat.execution.remaining_work import RemainingWork
from quicsat.execution.worker_pool import WorkerPool
from quicsat.links.ns3_testbed import Ns3Backend
from quicsat.model.evidence import Evidence
from quicsat.model.outcomes import Verdict
from quicsat.model.results import Measurement, RunResult
from quicsat.model.run import Run
from quicsat.model.units import MIB
from quicsat.results.store import Journal
from tests import faults
from tests.fakes import CASE, SIMULATOR, FakeEngine, connect, endpoint, implementation, judge, run_config

SETTLED = 100
"""Runs after which all is loaded and every pool is full."""
MEMORY, DESCRIPTORS = 20 * MIB, 5


class Look(NamedTuple):
    """What the process has at one moment."""

    runs: int
    memory: int
    """Resident, bytes."""
    descriptors: int
    threads: int


class Forgetful(FakeEngine):
    """Keeps nothing of containers that are gone."""

    def remove_container(self, identity: str, *, v: bool, force: bool) -> None:
        super().remove_container(identity, v=v, force=force)
        with self.mutex:
            self.all_lives[:] = self.lives.values()
            self.log.clear()


def main() -> int:
    """Exit status: 0 all bars are kept, 1 one is not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    options = parser.parse_args()
    faults.quick(setattr)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="quicsat-endurance-") as folder:
        looks = carry_out(Path(folder) / "campaign", options.runs)
    return tell(looks, time.monotonic() - begin)


def carry_out(directory: Path, count: int) -> list[Look]:
    """A campaign of ``count`` runs on two testbeds, looked at every 100 runs."""
    case = replace(CASE, repetitions=count, timeout=60.0)
    good = implementation("good")
    runs = tuple(Run(good, good, case, number, 1) for number in range(1, count + 1))
    engine = Forgetful(good=endpoint)
    engine.server_patience = 30.0
    daemon, meter, progress, looks = connect(engine), CpuMonitor(), Progress(), list[Look]()
    progress.begin(runs)
    said: deque[str] = deque(maxlen=1)

    def done(result: RunResult) -> None:
        said.append(progress.line(result))
        if progress.finished % SETTLED == 0:
            looks.append(look(progress.finished))

    stop, backend, observer = threading.Event(), Ns3Backend(daemon, SIMULATOR), Observer(done=done)
    directory.mkdir()
    with Journal.create(directory, faults.manifest(runs)) as journal, meter.watching():
        worker = LocalWorker(daemon, backend, run_config(engine), numbers, stop, meter, testbeds=2)
        with Dispatcher(WorkerPool(stop, worker), journal, observer).open() as campaign:
            campaign.run_all(RemainingWork(tuple(runs), {}), set())
    return looks


def numbers(run: Run, evidence: Evidence, directory: Path) -> tuple[Verdict, Measurement | None]:
    """As many numbers as a real run has; without traces, which take half a second each."""
    verdict, measurement = judge(run, evidence, directory)
    values = {"goodput": 1e6, "efficiency": 0.05} | {f"metric {number}": number / 7 for number in range(40)}
    return verdict, Measurement(values) if measurement else None


def look(runs: int) -> Look:
    """What this process has now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return Look(runs, 4096 * pages, len(list(Path("/proc/self/fd").iterdir())), threading.active_count())


def tell(looks: list[Look], seconds: float) -> int:
    """Print the figures; the exit status."""
    table = PrettyTable(["runs", "memory, MiB", "descriptors", "threads"], align="r")
    step = max(1, len(looks) // 5)
    for each in (*looks[:1], *looks[step::step]):
        table.add_row([each.runs, f"{each.memory / MIB:.1f}", each.descriptors, each.threads])
    first, rest = looks[0], looks[1:]
    grown = max(each.memory for each in rest) - first.memory
    strayed = max(abs(each.descriptors - first.descriptors) for each in rest)
    print(table)
    print(f"memory grew by {grown / MIB:.1f} MiB at most, descriptors differed by {strayed}; {seconds:.0f} s")
    return int(grown >= MEMORY or strayed > DESCRIPTORS)


if __name__ == "__main__":
    sys.exit(main())
