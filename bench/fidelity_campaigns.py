"""Measures the campaigns that bench.fidelity compares, and exports their numbers for the repository.

    python -m bench.fidelity_campaigns measure real --seeds 1001 1002 … -- --max-runtime "2 h"
    python -m bench.fidelity_campaigns measure virtual --seeds 1001 1002 …
    python -m bench.fidelity_campaigns export results/fidelity/* --to DIR
    python -m bench.fidelity_campaigns export results/paper/matrix-1 --to DIR --shares

All servers that can be built and transfer files over hq, with six clients, over three links. In real time, each seed is
a campaign with one repetition. In virtual time, the seeds are those of the link with random loss, so that both clocks
have the same losses; besides, one campaign has OTHER_LOSSES members with losses of their own. Over the other links, one
campaign has MEMBERS members. A campaign that was interrupted continues
with the next call. Words after ``--`` go to `run` and `resume`. After a campaign, its traces are removed.
"""

# ruff: noqa: T201 - a script

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench.fidelity import read
from paper.measure import LINKS, ROOT, SWEPT, Campaign, left_of, measure, of_role
from quicsat.cli.exit_status import ExitStatus
from quicsat.config.loader import load_implementations
from quicsat.model.clock import Clock
from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Implementation, Role
from quicsat.model.results import Measurement, ResultSet, RunResult
from quicsat.model.time_shares import TimeShare
from quicsat.results.document import document

CLIENTS = SWEPT
MEMBERS = 20
OTHER_LOSSES = 10
"""Members over the link with random loss that have no counterpart in real time."""
LOSSY = LINKS[-1]
METRICS = ("goodput", "completion_time", "time_to_2_mb", "time_to_first_byte", "handshake_time", "queue_loss")
"""Of the numbers of a run, those that are exported."""
SHARES = ("rtt_min", *(share.metric for share in TimeShare))
"""Those of the shares of its time, and of the window that removes flow control."""
EXPORT = ".json.gz"


def campaigns(known: Mapping[str, Implementation], clock: Clock, seeds: Sequence[int]) -> Iterator[Campaign]:
    """Those of a clock."""
    pairs = ("-s", *of_role(known, Role.SERVER), "-c", *CLIENTS)
    others, lossy = (*pairs, "-t", *LINKS[:-1]), (*pairs, "-t", LOSSY)
    if clock is Clock.VIRTUAL:
        yield Campaign("virtual", (*others, "--repetitions", str(MEMBERS), "--seed", "1"), clock)
        yield Campaign("virtual-loss", (*lossy, "--repetitions", str(OTHER_LOSSES), "--seed", "1"), clock)
    for seed in seeds:
        once = ("--repetitions", "1", "--seed", str(seed), "--shuffle")
        if clock is Clock.REAL:
            yield Campaign(f"real-{seed}", (*others, *once), clock)
        yield Campaign(f"{clock}-loss-{seed}", (*lossy, *once), clock)


def exported(results: ResultSet, metrics: Sequence[str] = METRICS) -> ResultSet:
    """The campaign without what comparisons and fits of CPU costs do not need: phases, files, exits and attempts."""
    runs = tuple(_numbers(run, metrics) for run in results.results)
    return replace(results, results=runs, earlier=(), compliance=(), placebo=())


def _numbers(run: RunResult, metrics: Sequence[str]) -> RunResult:
    evidence, measurement = run.evidence, run.measurement
    kept = {name: measurement.values[name] for name in metrics if name in measurement.values} if measurement else {}
    small = Evidence(
        evidence.started, evidence.seed, simulator=evidence.simulator, host=evidence.host, use=evidence.use,
        clock=evidence.clock, perturbation=evidence.perturbation,
    )  # fmt: skip
    return replace(run, evidence=small, measurement=Measurement(kept) if kept else None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure or export; measuring stops where a campaign could not be measured to its end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("clock", choices=[str(each) for each in Clock])
    measuring.add_argument("--seeds", nargs="+", type=int, required=True, metavar="N")
    measuring.add_argument("--results", type=Path, default=ROOT / "results" / "fidelity", metavar="DIR")
    exporting = commands.add_parser("export")
    exporting.add_argument("campaigns", nargs="+", type=Path)
    exporting.add_argument("--to", type=Path, required=True, metavar="DIR")
    exporting.add_argument("--shares", action="store_true", help="also export the shares of the time")
    given = list(sys.argv[1:] if arguments is None else arguments)
    end = given.index("--") if "--" in given else len(given)
    options, words = parser.parse_args(given[:end]), given[end + 1 :]
    if options.command == "export":
        options.to.mkdir(parents=True, exist_ok=True)
        for path, results in zip(options.campaigns, read(options.campaigns), strict=True):
            packed = gzip.compress(document(exported(results, METRICS + SHARES * options.shares)), mtime=0)
            (options.to / f"{path.name}{EXPORT}").write_bytes(packed)
            print(f"{path}: {len(results.results)} runs, {len(packed) / 1e3:.0f} kB")
        return 0
    known = load_implementations(ROOT / "implementations.json")
    for campaign in campaigns(known, Clock(options.clock), options.seeds):
        if left_of(campaign, options.results, ""):
            status = measure(campaign, options.results, "", words)
            if status not in (ExitStatus.SUCCESS, ExitStatus.FAILURE):
                return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
