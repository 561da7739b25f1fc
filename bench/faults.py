"""Counts hangs, wrong results and lost runs of 1,000 campaigns at a simulated engine with seeded faults.

Run it with `python -m bench.faults`, or with `make bench-faults`.
"""
# ruff: noqa: T201 - a script

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from bench.script import counts_table, options_parser
from tests import faults
from tests.faults import Report

SIDE_BY_SIDE = 16
"""Campaigns at the same time: each needs an eighth of a second of CPU time, and waits for most of its seconds."""
LONGEST_LOOK = 2.0
"""Seconds that a look counts for at most: while a machine sleeps, or this process is stopped, nothing hangs."""
HANG = 120.0
"""Seconds after which a campaign hangs: its runs' deadlines together are 13 s, and the patience with a daemon 20 s."""


def main() -> int:
    """Exit status: 0 all bars are kept, 1 one is not."""
    options = options_parser(__doc__, {"--schedules": 1000, "--seed": 1}).parse_args()
    faults.quick(setattr)
    crashed: list[str] = []
    threading.excepthook = lambda what: crashed.append(f"{what.exc_type.__name__}: {what.exc_value}")
    begin = time.monotonic()
    reports, hung = carry_out(range(options.seed, options.seed + options.schedules))
    return tell(reports, hung, crashed, time.monotonic() - begin)


def carry_out(seeds: range) -> tuple[list[Report], list[int]]:
    """A report for each seed, and the seeds whose campaign did not end."""
    reports, hung = list[Report](), list[int]()
    waiting: Iterator[int] = iter(seeds)
    under_way: dict[Future[Report], tuple[int, float]] = {}
    pool = ThreadPoolExecutor(SIDE_BY_SIDE)
    clock = 0.0
    while True:
        while len(under_way) < SIDE_BY_SIDE and (seed := next(waiting, None)) is not None:
            under_way[pool.submit(one, seed)] = seed, clock
        if not under_way:
            pool.shutdown(wait=False)
            return reports, hung
        looked = time.monotonic()
        done, _ = wait(under_way, timeout=1, return_when=FIRST_COMPLETED)
        clock += min(time.monotonic() - looked, LONGEST_LOOK)
        for future in done:
            del under_way[future]
            reports.append(future.result())
            show(reports[-1])
        for future, (seed, since) in list(under_way.items()):
            if clock - since > HANG:
                print(f"schedule {seed} hangs")
                hung.append(seed)
                del under_way[future]


def one(seed: int) -> Report:
    """A campaign with one to eight faults, half of them with two testbeds."""
    with tempfile.TemporaryDirectory(prefix="quicsat-faults-") as folder:
        return faults.carry_out(seed, Path(folder), faults=1 + seed % 8, testbeds=1 + seed % 2)


def show(report: Report) -> None:
    """A line for what is not as it should be."""
    for what, found in (("false", report.false), ("uncaught", report.uncaught)):
        for each in found:
            print(f"schedule {report.seed}: {what}: {each}; after {', '.join(report.happened)}")
    if report.missing or report.left:
        print(f"schedule {report.seed}: {report.missing} runs missing, {report.left} containers left")


def tell(reports: list[Report], hung: list[int], crashed: list[str], seconds: float) -> int:
    """Print the figures; the exit status."""
    outcomes = sum((Counter(report.results) for report in reports), Counter[str]())
    kinds = Counter(each.partition(" at ")[0] for report in reports for each in report.happened)
    bars = {
        "hangs": len(hung),
        "false verdicts": sum(len(report.false) for report in reports),
        "uncaught exceptions": sum(len(report.uncaught) for report in reports) + len(crashed),
        "runs without a result after resume": sum(report.missing for report in reports),
        "containers left": sum(report.left for report in reports),
    }
    rows: list[tuple[str, object]] = [
        ("schedules", len(reports) + len(hung)),
        ("faults", sum(kinds.values())),
        *((f"  {kind}", count) for kind, count in kinds.most_common()),
        ("campaigns that a fault ended early, and that were resumed", sum(bool(r.ended_early) for r in reports)),
        *((f"runs: {outcome}", count) for outcome, count in outcomes.items()),
        *bars.items(),
        ("longest campaign, s", f"{max((report.seconds for report in reports), default=0):.1f}"),
        ("all, s", f"{seconds:.0f}"),
    ]
    print("\n".join([*crashed, counts_table(rows)]))
    return int(any(bars.values()))


if __name__ == "__main__":
    sys.exit(main())
