"""Compares page load times of campaigns with those that Chromium itself measured in the same runs.

    python -m bench.page_load results/latest

A browser's page load begins where it starts to connect (``connectStart`` of the navigation timing), since no packet is
sent before, and ends with its load event. Ours is from the client's first packet to the last byte of the last object.
"""
# ruff: noqa: T201 - a script

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prettytable import PrettyTable

from quicsat.results.store import load

BAR = 0.05
"""Share by which both may differ."""
TIMES = Path("client/page.json")
"""What Chromium leaves, relative to the directory of a run."""
MILLISECOND = 1e-3


@dataclass(frozen=True)
class BrowserTimes:
    """A page load as the browser saw it, seconds."""

    objects: int
    before: float
    """From the navigation to the start of the connection."""
    page_load: float
    """From the start of the connection to the load event."""


def browser_times(path: Path) -> BrowserTimes:
    """The times in a file of performance entries; raises OSError, ValueError and KeyError."""
    entries = json.loads(path.read_text(encoding="utf-8"))
    [navigation] = [each for each in entries if each["entryType"] == "navigation"]
    resources = [each for each in entries if each["entryType"] == "resource"]
    connect, loaded = navigation["connectStart"] * MILLISECOND, navigation["loadEventStart"] * MILLISECOND
    return BrowserTimes(1 + len(resources), connect, loaded - connect)


def differences(directory: Path) -> Iterator[tuple[str, str, int, float, BrowserTimes]]:
    """Server, test case, repetition and our page load time, seconds, of each run that both measured."""
    for result in load(directory).result_set.results:
        path = directory / result.key.path / TIMES
        if path.is_file() and result.measurement and "completion_time" in result.measurement.values:
            ours = result.measurement.values["completion_time"]
            yield result.server, result.test_case, result.repetition, ours, browser_times(path)


def main(directories: Sequence[str]) -> int:
    """Prints a row per run; 1 if one differs by more than BAR, or if there is none."""
    table = PrettyTable(
        ["server", "test case", "#", "objects", "quicsat [s]", "Chromium [s]", "difference", "before [s]"]
    )
    table.align = "r"
    worst = []
    for directory in directories:
        for server, case, number, ours, theirs in differences(Path(directory)):
            share = ours / theirs.page_load - 1
            worst.append(abs(share))
            table.add_row(
                [server, case, number, theirs.objects, f"{ours:.3f}", f"{theirs.page_load:.3f}", f"{share:+.1%}",
                 f"{theirs.before:.3f}"]
            )  # fmt: skip
    print(table)
    return 0 if worst and max(worst) <= BAR else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
