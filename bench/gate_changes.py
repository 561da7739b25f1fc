"""Tries `gate` with changed builds: is it red for irrelevant ones, does it find those that matter, and how long is it?

  python -m bench.gate_changes -o DIR [--implementations quic-go quiche] [--changes "initial window halved"]

It builds the images of all changes (bench/gate_images.py), and calls `./run.py gate` for each: five pairs, by default
in the three test cases of testcases/ci/gate.yaml. Planted changes come first. DIR keeps what is done, so that a second
call continues.
"""
# ruff: noqa: T201 - a script

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.gate_images import IRRELEVANT, build, changes_of, slug
from bench.script import ROOT, judged, run
from quicsat.cli.exit_status import ExitStatus
from quicsat.config.loader import load_implementations
from quicsat.images.build_recipes import recipe_of
from quicsat.model.errors import MachineError
from quicsat.model.whole_file import write_atomically
from quicsat.report.table import Column, Table, Unit, render

IMPLEMENTATIONS = ("quic-go", "picoquic", "ngtcp2", "quiche")
PARTNERS = ("picoquic", "quic-go", "ngtcp2")
"""The first two that are not under test take part."""
UNSEEN = frozenset({"a copy of every packet"})
"""Planted changes that virtual time cannot show: computation takes no time there."""
MOST_RED = 1
LIMIT = 300.0
"""Seconds that a gate may take on two idle cores."""


@dataclass(frozen=True)
class Tried:
    """A gate with one change."""

    implementation: str
    change: str
    status: int
    duration: float
    """Seconds."""
    found: tuple[str, ...]
    """What it said of implementations and of cells that are worse."""

    @property
    def red(self) -> bool:
        """Whether it blamed the change."""
        return self.status == ExitStatus.FAILURE

    @property
    def missed(self) -> bool:
        """Whether a planted change was not found."""
        return self.change not in (*IRRELEVANT, *UNSEEN) and not self.red


def tried(folder: Path, name: str, change: str, tests: Sequence[str]) -> Tried:
    """The gate with a change, which is called unless an earlier call of this script did."""
    place = folder / name / slug(change)
    result = place / "tried.json"
    if result.is_file():
        stored = json.loads(result.read_text())
        return Tried(**{**stored, "found": tuple(stored["found"])})
    place.mkdir(parents=True, exist_ok=True)
    implementation = load_implementations(ROOT / "implementations.json")[name]
    image, base = build(name, change), recipe_of(ROOT, implementation).tag
    names = [name, *[each for each in PARTNERS if each != name][:2]]
    campaigns = place / f"campaigns-{time.time():.0f}"
    words = [
        sys.executable, "run.py", "gate", "--clock", "virtual", "--seed", "1", "--images", "local", "-i", name,
        "-s", *names, "-c", *names, "-t", *tests, "--against", base, "-r", f"{name}={image}", "-l", campaigns,
        "--comment", place / "comment.md",
    ]  # fmt: skip
    began = time.monotonic()
    done = subprocess.run([*map(str, words)], cwd=ROOT, capture_output=True, text=True, check=False)
    duration = time.monotonic() - began
    (place / "output.txt").write_text(f"{done.stdout}\n{done.stderr}")
    if done.returncode not in (ExitStatus.SUCCESS, ExitStatus.FAILURE, ExitStatus.UNDECIDED):
        raise MachineError(f"gate with {change} of {name}: exit status {done.returncode}: {done.stderr[-1000:]}")
    said = tuple(line for line in done.stdout.splitlines() if " changed by " in line and not line.startswith(" "))
    found = Tried(name, change, done.returncode, round(duration, 1), said)
    write_atomically(result, json.dumps(asdict(found)).encode())
    return found


def table(all_tried: Sequence[Tried]) -> Table:
    """A row per gate."""
    columns = (
        Column("implementation"), Column("change"), Column("exit status", Unit.COUNT),
        Column("duration", Unit.SECONDS, 0), Column("found"),
    )  # fmt: skip
    rows = tuple(
        (each.implementation, each.change, each.status, each.duration, " ".join(each.found[:2])) for each in all_tried
    )
    return Table("gates", "Gates with changed builds", columns, rows)


def main() -> int:
    """Make the gates, and print the table after each; the exit status is 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="directory of the results")
    parser.add_argument("--implementations", nargs="+", default=IMPLEMENTATIONS, choices=IMPLEMENTATIONS)
    parser.add_argument("--changes", nargs="+", default=[], help="only these changes")
    parser.add_argument("--tests", nargs="+", default=["testcases/ci/gate.yaml"], help="test cases")
    parser.add_argument("--build", action="store_true", help="only build the images")
    arguments = parser.parse_args()
    chosen = [
        (name, change)
        for name in arguments.implementations
        for change in sorted(changes_of(name), key=lambda each: each in IRRELEVANT)
        if not arguments.changes or change in arguments.changes
    ]
    for name, change in chosen if arguments.build else ():
        print(build(name, change), flush=True)
    if arguments.build:
        return 0
    done = list[Tried]()
    for name, change in chosen:
        done.append(tried(arguments.output.absolute(), name, change, arguments.tests))
        print(f"{name}, {change}: exit status {done[-1].status} after {done[-1].duration:.0f} s", flush=True)
    print(render(table(done), "markdown"))
    red = [each for each in done if each.red and each.change in IRRELEVANT]
    missed = [each for each in done if each.missed]
    late = [each for each in done if each.duration > LIMIT]
    irrelevant = sum(each.change in IRRELEVANT for each in done)
    print(f"irrelevant changes that are red: {len(red)} of {irrelevant}; planted ones missed: {len(missed)} of "
          f"{len(done) - irrelevant}; longer than {LIMIT:.0f} s: {len(late)}")  # fmt: skip
    return judged(len(red) > MOST_RED or missed or late)


if __name__ == "__main__":
    run(main)
