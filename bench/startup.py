"""Measures how long commands take to start: help of each command, and commands that have next to nothing to do.

    make bench-startup
    .venv/bin/python bench/startup.py results/a    # also commands that read this campaign

Each command runs once to fill caches, then ``RUNS`` times; medians of the wall clock, and of the processors' time of
the process and its children.
"""

# ruff: noqa: T201 - a script

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from quicsat.cli import commands
from quicsat.report.terminal_tables import draw

ROOT = Path(__file__).resolve().parent.parent
RUNS = 10
LIMIT = 0.5
"""Seconds that a command may take to start."""
WITHOUT_CAMPAIGN = (
    "--help",
    "--version",
    "list",
    "help --markdown",
    "plan -s quic-go -c aioquic -t sat",
    "run -s none",
    "completion bash",
)
WITH_CAMPAIGN = ("show {}", "tables {}", "compare {0} {0}", "export {} /dev/null", "prune {}")


def start(words: list[str]) -> tuple[float, float]:
    """Wall-clock and CPU seconds of one command; its exit status does not matter."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, ROOT / "run.py", *words], cwd=ROOT, capture_output=True, check=False)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(directory: str | None) -> int:
    """Print a table; 1 if a command takes longer than ``LIMIT``."""
    lines = [*WITHOUT_CAMPAIGN, *(f"{name} --help" for name in commands.SUMMARIES)]
    lines += [line.format(directory) for line in WITH_CAMPAIGN] if directory else []
    rows, slow = [], False
    for line in lines:
        start(line.split())
        walls, cpus = zip(*(start(line.split()) for _ in range(RUNS)), strict=True)
        slow |= median(walls) > LIMIT
        rows.append([line, f"{median(walls):.2f}", f"{max(walls):.2f}", f"{median(cpus):.2f}"])
    header = ["command", "median s", "max s", "CPU s"]
    print(draw(header, rows, markdown=True, right=header[1:]))
    print(f"\nn = {RUNS}, load {os.getloadavg()[0]:.1f}, {os.cpu_count()} CPUs; limit {LIMIT} s")
    return int(slow)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if sys.argv[1:] else None))
