#!/usr/bin/env python3
"""Compares QUIC with TCP behind an operator's proxies: pages, 2, 10 and 100 MB over five satellite links.

    python -m bench.parity --estimate                        # runs and duration; measures nothing
    python -m bench.parity                                   # measures, or continues where it was interrupted
    python -m bench.parity --links geo --repetitions 1 -- --wait
    ./run.py tables results/parity/all --table parity

It is one ordinary campaign in virtual time: nginx over TCP with curl, behind proxies D, and each server over QUIC with
picoquic as the client. A transfer of 100 MB also has the times to 2 and 10 MB. Traces are removed after each
``--slice``, so that the campaign needs a few GB. Words after ``--`` go to `run` and `resume`.
"""
# ruff: noqa: T201 - a script

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from paper.measure import ROOT, Campaign, estimate, left_of, measure, table
from quicsat.cli.exit_status import ExitStatus
from quicsat.report.table import render

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


def campaign(name: str, links: Sequence[str], servers: Sequence[str], repetitions: int) -> Campaign:
    """All cases of a link, the pages first, then those of the next one."""
    cases = [
        case
        for link in links
        for case in (*(f"{LINKS[link]}@{SMALL}+{page}" for page in PAGES), f"{LINKS[link]}@{LARGE}")
    ]
    pairs = (TCP, *(f"{server}/{CLIENT}" for server in servers))
    return Campaign(name, ("--pairs", *pairs, "-t", *cases, "--repetitions", str(repetitions), "--seed", str(SEED)))


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
    parser.add_argument("--name", default="all", metavar="NAME", help="of the campaign's directory; default: all")
    parser.add_argument("--slice", default=SLICE, metavar="DURATION", help=f"default: {SLICE}")
    parser.add_argument("--estimate", action="store_true", help="measure nothing")
    parser.add_argument("words", nargs="*", metavar="-- WORD", help="for `run` and `resume`")
    options = parser.parse_args()
    mine = campaign(options.name, options.links, options.servers, options.repetitions)
    print(render(table([estimate("parity", [mine], options.results, "")]), "text"), flush=True)
    if options.estimate:
        return ExitStatus.SUCCESS
    return in_slices(
        lambda: len(left_of(mine, options.results, "")),
        lambda: measure(mine, options.results, "", ["--max-runtime", options.slice, *options.words]),
    )


if __name__ == "__main__":
    sys.exit(main())
