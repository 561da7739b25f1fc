#!/usr/bin/env python3
"""Soak: campaigns, some of them killed with kill -9 at random moments, and a count of all that is lost or left."""
# ruff: noqa: E402, T201 - a script

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prettytable import PrettyTable

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from interop.errors import UserError
from interop.execution.daemon import Daemon
from interop.store import load

TEST_CASE = """\
name: soak
abbreviation: SO
description: 100 kB over a terrestrial link
link: {scenario: simple-p2p, delay: 15 ms, rate: 20 Mbit/s, queue: 25}
file size: 100 kB
repetitions: 1
timeout: 30 s
"""
BUSY = 75
PATIENCE = 600.0
"""Seconds to wait for another campaign at the same engine."""
GRACE = 15.0
"""Seconds that the reaper has to clean up after a kill."""
LATEST_KILL = 12.0
"""Seconds after the beginning of its journal within which a campaign is killed."""


@dataclass(frozen=True)
class Case:
    """What became of one campaign."""

    number: int
    killed_after: float | None
    """Seconds; None if it was left alone."""
    status: int
    acknowledged: int
    """Results that the journal held just before the end."""
    lost: int
    """Of those, how many cannot be read any more."""
    left: int
    """Containers of the campaign at the engine, GRACE seconds after its end."""


def main() -> int:
    """Exit status: 0 nothing was lost or left, 1 something was, 3 the engine does not answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    killed = set(chance.sample(range(options.runs), options.kills))
    moments = [chance.uniform(0, LATEST_KILL) if number in killed else None for number in range(options.runs)]
    url = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    before = processes()
    with tempfile.TemporaryDirectory(prefix="quicsat-soak-") as folder:
        Path(folder, "soak.yaml").write_text(TEST_CASE, encoding="utf-8")
        try:
            daemon = Daemon(url, "soak")
            cases = [soak(daemon, number, moment, Path(folder)) for number, moment in enumerate(moments, start=1)]
        except UserError as error:
            sys.stderr.write(f"{error}\n")
            return error.exit_status
        subprocess.run([sys.executable, "run.py", "clean"], cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
        still = len(daemon.leftovers())
    return report(cases, still, len(processes() - before))


def soak(daemon: Daemon, number: int, killed_after: float | None, folder: Path) -> Case:
    """One campaign of a few runs; killed at its moment, or left alone."""
    directory = folder / str(number)
    acknowledged: set[tuple[str, int, int]] = set()
    process = start(directory, folder / "soak.yaml", repetitions=1 if killed_after is None else 10)
    if killed_after is None:
        process.wait()
    else:
        time.sleep(killed_after)
        if process.poll() is None:
            acknowledged = journalled(directory)
            process.kill()
        process.wait()
    if killed_after is None or process.returncode >= 0:
        acknowledged = journalled(directory)
    known = identity(directory)
    deadline = time.monotonic() + GRACE
    while (left := len(daemon.leftovers(known)) if known else 0) and time.monotonic() < deadline:
        time.sleep(0.2)
    kept = readable(directory) if acknowledged else set()
    case = Case(number, killed_after, process.returncode, len(acknowledged), len(acknowledged - kept), left)
    moment = "left alone" if killed_after is None else f"killed after {killed_after:.1f} s"
    print(f"[{number}] {moment}: status {case.status}, {case.acknowledged} results, {case.lost} lost, {left} left")
    return case


def start(directory: Path, test_case: Path, repetitions: int) -> subprocess.Popen[bytes]:
    """A campaign that holds the engine's lock: it has begun its journal, or it has ended."""
    words = [
        "-s",
        "quic-go",
        "-c",
        "quic-go",
        "-t",
        str(test_case),
        "-l",
        str(directory),
        "--no-qlog",
        "--skip-compliance-check",
    ]
    command = [sys.executable, "run.py", "run", *words, "--repetitions", str(repetitions)]
    deadline = time.monotonic() + PATIENCE
    while True:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not (directory / "journal.jsonl").exists():
            time.sleep(0.02)
        if process.returncode != BUSY or time.monotonic() > deadline:
            return process
        time.sleep(1)


def journalled(directory: Path) -> set[tuple[str, int, int]]:
    """The results that the journal acknowledges, read without the program's own reader."""
    return {key(line["data"]) for line in lines(directory) if line.get("kind") == "result"}


def lines(directory: Path) -> Iterator[dict[str, Any]]:
    """Whole lines of the journal."""
    journal = directory / "journal.jsonl"
    for line in journal.read_bytes().splitlines(keepends=True) if journal.exists() else []:
        if line.endswith(b"\n"):
            yield json.loads(line)


def key(result: dict[str, Any]) -> tuple[str, int, int]:
    """What tells one result from another."""
    return result["test_case"], result["repetition"], result["attempt"]


def readable(directory: Path) -> set[tuple[str, int, int]]:
    """The results that the program can read."""
    return {(result.test_case, result.repetition, result.attempt) for result in load(directory).history}


def identity(directory: Path) -> str:
    """Id of the campaign, which its containers bear."""
    try:
        return load(directory).result_set.manifest.id
    except UserError:
        return ""


def processes() -> set[int]:
    """Ids of the processes of campaigns and their reapers in this checkout."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            here = (path / "cwd").readlink() == ROOT
        except OSError:
            continue
        if here and (b"run.py" in words or b"interop.execution.reaper" in words):
            found.add(int(path.name))
    return found


def report(cases: list[Case], still: int, running: int) -> int:
    """Print the figures; the exit status."""
    dead = [case for case in cases if case.status < 0]
    alone = [case for case in cases if case.killed_after is None]
    lost, left = sum(case.lost for case in cases), sum(case.left for case in cases)
    failed = sum(case.status != 0 for case in alone)
    table = PrettyTable(["", "count"])
    table.align = "l"
    table.add_rows(
        [
            ["campaigns", len(cases)],
            ["killed with kill -9", len(dead)],
            ["left alone", len(alone)],
            ["left alone, and not successful", failed],
            ["results acknowledged", sum(case.acknowledged for case in cases)],
            ["results lost", lost],
            [f"containers left {GRACE:.0f} s after a campaign", left],
            ["containers left after the clean command", still],
            ["processes left", running],
        ]
    )
    print(table)
    return 1 if lost or left or still or running else 0


if __name__ == "__main__":
    sys.exit(main())
