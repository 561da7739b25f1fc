"""Counts lost runs and left-over containers of campaigns that are killed with kill -9 at random moments.

Run it with `make bench-soak`; it starts a Docker daemon of its own.
"""
# ruff: noqa: T201 - a script

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prettytable import PrettyTable

from bench.script import DAEMON, ROOT, options_parser, run
from quicsat.docker.client import Daemon
from quicsat.docker.containers import list_containers
from quicsat.model.clock import Clock
from quicsat.results.store import load
from tests.own_engine import OwnEngine, own_engine

TEST_CASE = """\
name: soak
abbreviation: SO
description: a file over a link so long that a simulator of a busy machine is exact enough for it
link: {{scenario: simple-p2p, delay: 1 s, rate: 20 Mbit/s, queue: 25}}
file size: {size}
repetitions: 1
timeout: 60 s
"""
SIZES = {Clock.REAL: "10 kB", Clock.VIRTUAL: "10 MiB"}
"""Of the file: a run takes a few seconds of this machine's time by either clock."""
REPETITIONS = {Clock.REAL: 2, Clock.VIRTUAL: 8}
"""In virtual time, as many run side by side as there are CPUs: some are still under way when the first is stored."""
GRACE = 15.0
"""Seconds that the reaper has to clean up after a kill."""


@dataclass(frozen=True)
class Moment:
    """When a campaign is killed."""

    during: str
    begun: Callable[[Path], bool]
    """Whether this part of the campaign in a directory has begun."""
    longest: float
    """Seconds; it is killed at a random moment of so many from then on."""


MOMENTS = (
    Moment("start, lock, images", lambda _: True, 3.0),
    Moment("testbed, compliance check", lambda directory: (directory / "journal.jsonl").exists(), 6.0),
    Moment("runs", lambda directory: any(directory.glob("*/soak/*")), 12.0),
    Moment("archives of a run", lambda directory: any(directory.glob("*/soak/*/client")), 1.0),
    Moment("runs after a result", lambda directory: bool(journalled(directory)), 12.0),
)


@dataclass(frozen=True)
class Left:
    """What is there that should not be."""

    containers: int = 0
    networks: int = 0
    """Of the daemon, and network namespaces."""
    processes: int = 0
    """Of containers and their shims, of campaigns and their reapers."""

    def __bool__(self) -> bool:
        return bool(self.containers or self.networks or self.processes)


@dataclass(frozen=True)
class Case:
    """What became of one campaign."""

    during: str
    """When it was killed; empty if it was left alone."""
    status: int
    acknowledged: int
    """Results that the journal held just before the end."""
    lost: int
    """Of those, how many cannot be read any more."""
    left: Left
    """GRACE seconds after its end."""
    cleaned: float
    """Seconds after its end until nothing was left."""


def main() -> int:
    """Exit status: 0 nothing was lost or left, 1 something was, 3 no daemon of one's own can be raised here."""
    parser = options_parser(__doc__, {"--kills": 50, "--alone": 3, "--seed": 1})
    parser.add_argument("--clock", type=Clock, choices=list(Clock), default=Clock.REAL, help="default: real")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    kills = [MOMENTS[number % len(MOMENTS)] for number in range(options.kills)]
    moments = [*kills, *[None] * options.alone]
    chance.shuffle(moments)
    images = ["simulator", "quic-go", *(["virtual-time"] if options.clock is Clock.VIRTUAL else [])]
    with own_engine(DAEMON, *images) as engine, tempfile.TemporaryDirectory(prefix="quicsat-soak-") as folder:
        Path(folder, "soak.yaml").write_text(test_case(options.clock), encoding="utf-8")
        bench = Bench(engine, Daemon(engine.url, "soak"), Path(folder), options.clock)
        return report([bench.soak(number, moment, chance) for number, moment in enumerate(moments, start=1)])


class Bench:
    """An engine that nobody else uses."""

    def __init__(self, engine: OwnEngine, daemon: Daemon, folder: Path, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._daemon = daemon
        self._folder = folder
        self._networks = len(daemon.subnets())

    def soak(self, number: int, moment: Moment | None, chance: random.Random) -> Case:
        """One campaign of a few runs; killed at its moment, or left alone."""
        directory = self._folder / str(number)
        process = start(self._engine.url, directory, self._folder / "soak.yaml", self._clock)
        acknowledged: set[tuple[str, int, int]] = set()
        if moment is not None:
            while process.poll() is None and not moment.begun(directory):
                time.sleep(0.005)
            time.sleep(chance.uniform(0, moment.longest))
            acknowledged = journalled(directory)
            process.kill()
        process.wait()
        end = time.monotonic()
        if process.returncode >= 0:
            acknowledged = journalled(directory)
        while (left := self._left()) and time.monotonic() < end + GRACE:
            time.sleep(0.2)
        cleaned = time.monotonic() - end
        kept = readable(directory) if acknowledged else set()
        during = moment.during if moment is not None and process.returncode < 0 else ""
        case = Case(during, process.returncode, len(acknowledged), len(acknowledged - kept), left, cleaned)
        print(f"[{number}] {case}", flush=True)
        return case

    def _left(self) -> Left:
        networks = len(self._daemon.subnets()) - self._networks + len(self._engine.networks())
        running = len(self._engine.processes()) + len(processes(self._engine.url))
        return Left(len(list_containers(self._daemon)), networks, running)


def test_case(clock: Clock) -> str:
    """The test case of all campaigns, as YAML."""
    return TEST_CASE.format(size=SIZES[clock])


def start(url: str, directory: Path, test_case: Path, clock: Clock) -> subprocess.Popen[bytes]:
    """A campaign at the daemon at ``url``."""
    words = ["-s", "quic-go", "-c", "quic-go", "-t", str(test_case), "-l", str(directory), "--images", "local"]
    words += ["--clock", clock.value]
    return subprocess.Popen(
        [sys.executable, "run.py", "run", *words, "--no-qlog", "--repetitions", str(REPETITIONS[clock])],
        cwd=ROOT,
        env={**os.environ, "DOCKER_HOST": url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def journalled(directory: Path) -> set[tuple[str, int, int]]:
    """The results that whole lines of the journal acknowledge, read without the program's own reader."""
    journal = directory / "journal.jsonl"
    text = journal.read_bytes() if journal.exists() else b""
    lines = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith(b"\n")]
    results = (line["data"] for line in lines if line.get("kind") == "result")
    return {(each["test_case"], each["repetition"], each["attempt"]) for each in results}


def readable(directory: Path) -> set[tuple[str, int, int]]:
    """The results that the program can read."""
    return {(result.test_case, result.repetition, result.attempt) for result in load(directory).history}


def processes(url: str) -> set[int]:
    """Ids of the processes of campaigns at the daemon at ``url``: the program, its reaper, its analysis."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            environment = (path / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"DOCKER_HOST={url}".encode() in environment:
            found.add(int(path.name))
    return found


def report(cases: Sequence[Case]) -> int:
    """Print the figures; the exit status."""
    alone = [case for case in cases if not case.during]
    killed = Counter(case.during for case in cases if case.during)
    before = sum(case.acknowledged for case in cases if case.during)
    bars = {
        "results lost": sum(case.lost for case in cases),
        f"containers left {GRACE:.0f} s after a campaign": sum(case.left.containers for case in cases),
        "networks and namespaces left": sum(case.left.networks for case in cases),
        "processes left": sum(case.left.processes for case in cases),
        "campaigns left alone that were not successful": sum(case.status != 0 for case in alone),
    }
    rows: list[tuple[str, object]] = [
        ("campaigns", len(cases)),
        ("killed with kill -9", sum(killed.values())),
        *((f"  during: {during}", count) for during, count in killed.items()),
        ("ended before their kill, or left alone", len(alone)),
        ("results acknowledged", sum(case.acknowledged for case in cases)),
        ("  of them before a kill", before),
        *((name, count) for name, count in bars.items()),
        ("longest until nothing was left, s", f"{max((case.cleaned for case in cases), default=0):.1f}"),
    ]
    table = PrettyTable(["", "count"], align="l")
    table.add_rows([[*row] for row in rows])
    print(table)
    if killed and not before:
        print("No campaign was killed after a result: whether a kill loses results remains open.")
    return int(any(bars.values()) or bool(killed and not before))


if __name__ == "__main__":
    run(main)
