#!/usr/bin/env python3
"""Starts 20 campaigns at the same moment at one engine: one must run, the others must name it; measures their delay.

Run it with `make bench-concurrent-start`.
"""
# ruff: noqa: E402, T201 - a script

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from prettytable import PrettyTable

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.soak import TEST_CASE
from quicsat.model.errors import LockedError

BUSY = LockedError.exit_status
BAR = 2.0
"""Seconds within which who comes second is told so."""


@dataclass(frozen=True)
class Start:
    """One of the campaigns."""

    pid: int
    status: int
    seconds: float
    said: str


def main() -> int:
    """Exit status: 0 all bars are kept, 1 one is not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quicsat-starts-") as folder:
        Path(folder, "soak.yaml").write_text(TEST_CASE, encoding="utf-8")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        starts = start(options.starts, Path(folder))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return tell(starts, cpu)


def start(count: int, folder: Path) -> list[Start]:
    """Start ``count`` campaigns at once, and hear when and how each of them ends."""
    words = ["-s", "quic-go", "-c", "quic-go", "-t", str(folder / "soak.yaml"), "--no-qlog", "--skip-compliance-check"]
    found: list[Start] = []
    begin = time.monotonic()

    def hear(process: subprocess.Popen[str]) -> None:
        _, said = process.communicate()
        found.append(Start(process.pid, process.returncode, time.monotonic() - begin, said))

    threads = []
    for number in range(count):
        command = [sys.executable, "run.py", "run", *words, "-l", str(folder / str(number))]
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=os.environ
        )
        threads.append(threading.Thread(target=hear, args=(process,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    return found


def tell(starts: list[Start], cpu: float) -> int:
    """Print the figures; the exit status."""
    ran = [each for each in starts if each.status != BUSY]
    busy = [each for each in starts if each.status == BUSY]
    named = [each for each in busy if any(re.search(rf"\bprocess {one.pid}\b", each.said) for one in ran)]
    slowest = max((each.seconds for each in busy), default=0.0)
    table = PrettyTable(["", "count"], align="l")
    table.add_rows(
        [
            ["started at once", len(starts)],
            ["ran, exit status 0", sum(each.status == 0 for each in ran)],
            ["ended otherwise", sum(each.status != 0 for each in ran)],
            [f"exit status {BUSY}", len(busy)],
            ["  and named the one that ran", len(named)],
            [f"  within {BAR:g} s", sum(each.seconds <= BAR for each in busy)],
            ["  slowest, s", f"{slowest:.2f}"],
            ["CPU time of all of them, s", f"{cpu:.1f}"],
        ]
    )
    print(table)
    for each in ran:
        if each.status:
            print(each.said)
    return int(len(ran) != 1 or len(named) != len(busy) or slowest > BAR)


if __name__ == "__main__":
    sys.exit(main())
