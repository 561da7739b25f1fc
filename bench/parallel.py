#!/usr/bin/env python3
"""Compares the same pairs alone and side by side: wall time, distributions, a test; `make bench-parallel`."""
# ruff: noqa: E402, T201 - a script

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prettytable import PrettyTable

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from quicsat.results.document import StoredResults
from quicsat.results.store import load
from quicsat.statistics.significance import alike, difference, holm, smallest_p, spread, stratified

METRICS = {"goodput": 1e6, "queue_loss": 0.01, "loss_forward": 0.01}
"""What must be alike -> what one Mbit/s or per cent is."""
CLOSE = 0.02
"""Means that differ by no more than this share are taken for the same."""
Distributions = dict[tuple[str, str, str], dict[str, list[float]]]
"""(server, client, test case) -> metric -> values of the repetitions that succeeded."""


@dataclass(frozen=True)
class Campaign:
    """One way to carry the plan out."""

    record: StoredResults
    duration: float
    """Seconds, images and compliance check included."""

    @property
    def repeated(self) -> int:
        """Attempts that did not count, most of them disturbed by neighbours."""
        return len(self.record.history) - len(self.record.result_set.results)


def distributions(records: Sequence[StoredResults]) -> Distributions:
    """What was measured in these campaigns together."""
    found: Distributions = defaultdict(lambda: defaultdict(list))
    for result in (result for record in records for result in record.result_set.results):
        if result.measurement is not None:
            for name, value in result.measurement.values.items():
                found[(result.server, result.client, result.test_case)][name].append(value)
    return found


def campaign(words: list[str], directory: Path, parallel: str) -> Campaign:
    """Carry the plan out; its exit status does not matter: pairs may fail, alone as well as beside others."""
    begin = time.monotonic()
    command = [str(ROOT / "run.py"), *words, "--parallel", parallel, "-l", str(directory)]
    status = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode
    duration = time.monotonic() - begin
    if status not in (0, 1, 3):
        sys.exit(f"bench-parallel: the campaign ended with exit status {status}; see above")
    return Campaign(load(directory), duration)


def rows(alone: Distributions, beside: Distributions) -> Iterator[list[str]]:
    """A row per pair and metric: both distributions, how the means differ, and Holm's p."""
    keys = [(pair, metric) for pair in alone for metric in METRICS if alone[pair][metric] and beside[pair].get(metric)]
    found = [difference(alone[pair][metric], beside[pair][metric]) for pair, metric in keys]
    for ((server, client, case), metric), p in zip(keys, holm(found), strict=True):
        one, other = (each[(server, client, case)][metric] for each in (alone, beside))
        before, after = statistics.fmean(one), statistics.fmean(other)
        change = f"{100 * (after / before - 1):+.1f} %" if before else "-"
        unit = METRICS[metric]
        yield [server, client, case, metric, shown(one, unit), shown(other, unit), change, f"{p:.3f}"]


def over_all(alone: Distributions, beside: Distributions, *, same_seeds: bool) -> Iterator[str]:
    """Three sentences per metric over all pairs, for few repetitions of one pair tell little.

    If the seeds differ, the test permutes whole repetitions: all pairs of a repetition share its losses.
    """
    for metric in METRICS:
        first, second = ([each[pair].get(metric, []) for pair in alone] for each in (alone, beside))
        change, p = stratified(first, second, whole=not same_seeds)
        yield f"{metric}, over all pairs: {100 * change:+.1f} % beside others, p = {p:.3f}"
        change, p = spread(first, second)
        yield f"  distance from the median of a pair: {100 * change:+.0f} % beside others, p = {p:.3f}"
        close, low, high = alike(first, second, CLOSE)
        expected = f"{low} to {high} if neighbours did nothing"
        yield f"  means within {100 * CLOSE:g} % in {close} of {len(alone)} pairs; {expected}"


def shown(values: list[float], unit: float) -> str:
    """Mean, standard deviation, n."""
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values) / unit:.3f} ± {spread / unit:.3f} ({len(values)})"


def tell(alone: Sequence[StoredResults], beside: Sequence[StoredResults]) -> None:
    """The distributions of campaigns alone and of those side by side, and what their tests say."""
    before, after = distributions(alone), distributions(beside)
    table = PrettyTable(["server", "client", "test case", "metric", "alone", "side by side", "change", "p"])
    table.add_rows(list(rows(before, after)))
    print(table)
    fewest = (min((len(each["goodput"]) for each in found.values()), default=0) for found in (before, after))
    print("goodput in Mbit/s, losses in per cent: mean ± standard deviation (n); p after Holm's correction,")
    print(f"before which the repetitions of the pair with the fewest cannot reach less than {smallest_p(*fewest):.4f}")
    one, other = ({each.evidence.seed for record in found for each in record.result_set.results}
                  for found in (alone, beside))  # fmt: skip
    print(*over_all(before, after, same_seeds=one == other), sep="\n")


def main() -> None:
    """Two campaigns with the same seed, or any that were made before; everything is printed, nothing judged."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-s", "--server", nargs="+", default=["quic-go", "picoquic", "quinn", "ngtcp2"])
    parser.add_argument("-c", "--client", nargs="+", default=["quic-go", "picoquic", "quinn", "ngtcp2"])
    parser.add_argument("-t", "--test", nargs="+", default=["sat"])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--parallel", default="auto", help="of the second campaign")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("-o", "--output", type=Path, metavar="DIR", help="for both results directories")
    where.add_argument(
        "--made",
        type=Path,
        nargs="+",
        action="append",
        metavar="DIR",
        help="once for campaigns that were made alone, once for those that were made side by side: compare them only",
    )
    options = parser.parse_args()
    if options.made:
        if len(options.made) != 2:
            parser.error("--made is needed twice")
        tell(*([load(directory) for directory in directories] for directories in options.made))
        return
    words = ["-s", *options.server, "-c", *options.client, "-t", *options.test]
    words += ["--repetitions", str(options.repetitions), "--seed", "1"]
    alone = campaign(words, options.output / "alone", "1")
    beside = campaign(words, options.output / "beside", options.parallel)
    tell([alone.record], [beside.record])
    for name, each in (("alone", alone), (f"--parallel {options.parallel}", beside)):
        print(f"{name}: {each.duration:.0f} s, {each.repeated} attempts that did not count")
    print(f"ratio of wall times: {beside.duration / alone.duration:.2f}")


if __name__ == "__main__":
    main()
