#!/usr/bin/env python3
"""Compares QUIC with TCP behind an operator's proxies: pages, 2, 10 and 100 MB over five satellite links.

    python -m bench.parity --estimate                        # runs and duration; measures nothing
    python -m bench.parity                                   # measures, or continues where it was interrupted
    python -m bench.parity --links geo -- --wait             # one of the links
    python -m bench.parity --table                           # the ratios of what has been measured
    ./run.py tables results/parity/geo --table parity        # all numbers of a link

Each link is an ordinary campaign in virtual time: nginx over TCP with curl, behind proxies D, and each server over QUIC
with picoquic as the client. A transfer of 100 MB also has the times to 2 and 10 MB. A campaign begins with the first
members of all cases, so that a third of it can be compared already. Traces are removed after each ``--slice``, so that
the campaigns need a few GB. Words after ``--`` go to `run` and `resume`.
"""
# ruff: noqa: T201 - a script

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from paper.measure import ROOT, Campaign, has_begun, left_of, measure, planned
from quicsat.cli.exit_status import ExitStatus
from quicsat.model.errors import UserError
from quicsat.model.results import ResultSet
from quicsat.model.units import seconds
from quicsat.report.table import Column, Table, Unit, Value, render
from quicsat.results.store import load
from quicsat.statistics.parity import Ratio, overall, ratios

LINKS = {"geo": "PGEO", "loss": "PLOSS", "fade": "PFADE", "leo": "PLEO", "dama": "PDAMA"}
"""Names of the links -> abbreviations of their families in testcases/satcom/parity.yaml."""
PAGES = ("P10", "P25", "P50", "P75", "P90")
LARGE, SMALL = "100MB", "10MB"
"""Files of the families; pages do not have them, and are combined with the smaller one."""
SERVERS = (
    "aioquic", "haproxy", "kwik", "lsquic", "msquic", "nginx", "ngtcp2", "noq", "picoquic", "quic-go", "quiche",
    "quinn", "s2n-quic", "tquic",
)  # fmt: skip
TCP, CLIENT = "nginx-tcp/curl", "picoquic"
SEED, MEMBERS = 51, 3
SLICE = "20 min"
COSTS = {SMALL: 6.0, LARGE: 45.0}
"""CPU seconds of a run by its file; see docs/measurements/parity.md."""
LEFT_NOTE = "The last column is their CPU time, which cores that nothing else uses share."
NOTE = (
    "Geometric means of the ratios of 2, 10 and 100 MB and of all pages. Low and high bound the 95 % interval of "
    "further members. With fewer than 3, they are the smallest and the largest one. n counts the members that 90 % of "
    "the ratios have."
)


def campaign(link: str, servers: Sequence[str], repetitions: int) -> Campaign:
    """All cases of a link: the pages, and the large file."""
    cases = [*(f"{LINKS[link]}@{SMALL}+{page}" for page in PAGES), f"{LINKS[link]}@{LARGE}"]
    pairs = (TCP, *(f"{server}/{CLIENT}" for server in servers))
    words = ("--repetitions", str(repetitions), "--seed", str(SEED), "--shuffle", "--skip-compliance-check")
    return Campaign(link, ("--pairs", *pairs, "-t", *cases, *words))


def left(many: Sequence[Campaign], results: Path) -> Table:
    """A row per campaign with the runs that are left, and what they cost."""
    rows = list[tuple[str, int, int, float]]()
    for each in many:
        runs = left_of(each, results, "")
        cost = sum(COSTS[LARGE if run.test_case.workload is None else SMALL] for run in runs)
        rows.append((each.name, len(planned(each, "")), len(runs), cost))
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows), sum(row[3] for row in rows)))
    columns = Column("link"), Column("runs", Unit.COUNT), Column("left", Unit.COUNT), Column("cost of those")
    shown = tuple((link, runs, rest, seconds(cost)) for link, runs, rest, cost in rows)
    return Table("left", "What is left to measure", columns, shown, (LEFT_NOTE,))


def by_server(results: Mapping[str, ResultSet]) -> Table:
    """A row per server, with the ratio over each link and over all; ``results``: by link."""
    found: dict[str, dict[str, list[Ratio]]] = {}
    for link, mine in results.items():
        for each in ratios(mine, mine.manifest.test_cases):
            found.setdefault(each.pair[0], {}).setdefault(link, []).append(each)
    rows = list[tuple[float, tuple[Value, ...]]]()
    for server, over in found.items():
        every = [each for mine in over.values() for each in mine]
        mean = overall(every)
        of_link = [overall(over[link]) if link in over else None for link in results]
        low, high = mean.ends or (None, None) if mean else (None, None)
        numbers = [each.value if each else None for each in (*of_link, mean)]
        failed = sum(each.failed for each in every), sum(each.failed_over_tcp for each in every)
        place = mean.value if mean else math.inf
        rows.append((place, (server, *numbers, low, high, mean.count if mean else 0, len(every), *failed)))
    columns = (
        Column("server"), *(Column(link, Unit.RATIO, 2) for link in results), Column("all", Unit.RATIO, 2),
        Column("low", Unit.RATIO, 2), Column("high", Unit.RATIO, 2), Column("n", Unit.COUNT),
        Column("ratios", Unit.COUNT), Column("failed", Unit.COUNT), Column("TCP failed", Unit.COUNT),
    )  # fmt: skip
    return Table("parity", "Time over QUIC, relative to TCP", columns, tuple(row for _, row in sorted(rows)), (NOTE,))


def runs_left(campaign: Campaign, results: Path) -> int:
    """Number of runs of a campaign that have no result yet."""
    return len(left_of(campaign, results, ""))


def in_slices(runs_left: Callable[[], int], next_slice: Callable[[], int]) -> int:
    """Measure slice after slice until no run is left, or until one brings nothing; the last exit status."""
    status: int = ExitStatus.SUCCESS
    before = runs_left()
    while before:
        status = next_slice()
        left = runs_left()
        if status not in (ExitStatus.SUCCESS, ExitStatus.FAILURE, ExitStatus.TIME_UP) or left >= before:
            break
        before = left
    return status


def main() -> int:
    """Print the estimate, and measure what is left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--links", nargs="+", choices=LINKS, default=list(LINKS), help="default: all")
    parser.add_argument("--servers", nargs="+", default=list(SERVERS), metavar="NAME", help="default: 14 servers")
    parser.add_argument("--repetitions", type=int, default=MEMBERS, metavar="N", help=f"default: {MEMBERS}")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "parity", metavar="DIR")
    parser.add_argument("--slice", default=SLICE, metavar="DURATION", help=f"default: {SLICE}")
    parser.add_argument("--estimate", action="store_true", help="measure nothing")
    parser.add_argument("--table", action="store_true", help="print the ratios, and measure nothing")
    parser.add_argument("words", nargs="*", metavar="-- WORD", help="for `run` and `resume`")
    options = parser.parse_args()
    many = [campaign(link, options.servers, options.repetitions) for link in options.links]
    status: int = ExitStatus.SUCCESS
    if not options.table:
        try:
            print(render(left(many, options.results), "text"), flush=True)
        except UserError as error:
            parser.error(str(error))
    if options.estimate:
        return status
    for mine in [] if options.table else many:
        words = ["--max-runtime", options.slice, *options.words]
        status = in_slices(
            partial(runs_left, mine, options.results), partial(measure, mine, options.results, "", words)
        )
        if status not in (ExitStatus.SUCCESS, ExitStatus.FAILURE):
            break
    begun = [each.name for each in many if has_begun(each, options.results)]
    if begun:
        print(render(by_server({name: load(options.results / name).result_set for name in begun}), "text"))
    return status


if __name__ == "__main__":
    sys.exit(main())
