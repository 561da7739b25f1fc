"""Measures how often 95 % intervals cover the true value, and how often step detection raises a false alarm.

Run it with `make bench-coverage`; docs/measurements/statistics.md holds its output.
All numbers are simulated, with fixed seeds.
"""

# ruff: noqa: T201 - a script

import argparse
import math
import sys
import time
from collections.abc import Mapping
from itertools import product

import numpy as np

from paper.__main__ import DATA
from paper.congestion import subsets
from paper.crossed import FEWEST as FEWEST_IMPLEMENTATIONS
from paper.crossed import SOURCES, Cells, decompose_crossed
from paper.data_set import read
from quicsat.model.outcomes import Outcome
from quicsat.statistics.history import joint_steps
from quicsat.statistics.intervals import (
    FEWEST,
    FEWEST_MEANS,
    RUNS_OF_A_MEAN,
    around,
    coverage,
    half_widths,
    of_repetitions,
    over_partners,
)
from quicsat.statistics.samples import Sample
from quicsat.statistics.variance import decompose

PARTNERS = (2, 3, 5, 14)
REPETITIONS = (3, 10)
SEEDS = (0.0, 0.3)
"""Standard deviations of the logarithm: what the seed of a repetition does to all pairs."""
SPREADS = (0.05, 1.0)
"""Of partners: small, and by orders of magnitude."""
REST = 0.1
"""Of single runs."""
LOWEST = 0.93
HIGHEST = 0.97
RATIOS = (0.0, 0.05, 0.17, 0.5, 2.0, 8.0, 60.0)
"""What partners, or seeds, contribute to the variance of a mean, as multiples of what single runs contribute."""
SHAPES = {
    "normal": (0.0, 0.1), "log-normal": (0.0, 0.3), "two levels": (0.2, 0.002),
    "two levels, spread 1 %": (0.2, 0.01), "two levels, spread 2 %": (0.2, 0.02), "two levels, spread 5 %": (0.2, 0.05),
    "25 % apart": (-math.log(0.75), 0.002), "25 % apart, spread 5 %": (-math.log(0.75), 0.05),
}  # fmt: skip
"""By how much the logarithm of the lower level is smaller, and the standard deviation about the levels."""
COUNTS = (*range(FEWEST, 23), 25, 27, 30)
"""Repetitions of a pair, from the fewest with an interval on."""
FEW, MEANS_OF = (FEWEST_MEANS, 5, 10), (RUNS_OF_A_MEAN, 30)
"""Repetitions, and over how many runs each averages."""
LOW = 0.2
"""Share of the runs on the lower level."""
NORMAL_TRUTH = float(np.log(1 + 0.1 * np.random.default_rng(1).normal(size=4_000_000)).mean())
"""Expected logarithm of a normal goodput with a standard deviation of 10 %."""
OUTLYING = 0.125
"""Chance that a server is an outlier, as with the servers over terrestrial links."""
CORRELATIONS = (0.0, 0.3, 0.5, 0.7)


def marginal(partners: int, repetitions: int, seed: float, spread: float, trials: int, missing: float = 0.0) -> float:
    """Share of the intervals over partners that hold the truth; ``missing``: share of runs without a number."""
    rng = np.random.default_rng((partners, repetitions, int(100 * seed), int(100 * spread)))
    held = told = 0
    for _ in range(trials):
        logs = rng.normal(0, spread, (partners, 1)) + rng.normal(0, seed, (1, repetitions))
        logs = logs + rng.normal(0, REST, logs.shape)
        there = rng.uniform(size=logs.shape) >= missing
        rows = [{r: math.exp(logs[p, r]) for r in range(repetitions) if there[p, r]} for p in range(partners)]
        found = over_partners(rows)
        if found is not None and found.low is not None and found.high is not None:
            told += 1
            held += found.low <= 1 <= found.high
    return held / told


def extremes(partners: int, repetitions: int, trials: int) -> tuple[float, float]:
    """Least and greatest coverage of intervals over partners at any pair of ``RATIOS``, without missing runs."""
    rng = np.random.default_rng((partners, repetitions))
    degrees = partners - 1, repetitions - 1, (partners - 1) * (repetitions - 1)
    widths = []
    for partner, seed in product(RATIOS, RATIOS):
        drawn = [rng.chisquare(freedom, trials) / freedom for freedom in degrees]
        found = half_widths(np.stack([(1 + partner) * drawn[0], (1 + seed) * drawn[1], drawn[2]]), degrees)
        widths.append(found / math.sqrt(1 + partner + seed))
    held = coverage(np.array(widths))
    return float(held.min()), float(held.max())


def repeated(repetitions: int, shape: str, trials: int, runs: int = 1) -> float:
    """Share of the intervals of a pair's repetitions that hold the truth; ``shape``: see ``SHAPES``.

    ``runs``: over how many each repetition averages.
    """
    rng = np.random.default_rng((repetitions, len(shape)))
    size, (low, noise) = (trials, repetitions, runs), SHAPES[shape]
    logs = rng.normal(0, noise, size) - low * (rng.uniform(size=size) < LOW)
    truth = -LOW * low
    if shape == "normal":
        logs, truth = np.log(1 + rng.normal(0, noise, size)), NORMAL_TRUTH
    found = [of_repetitions([float(x) for x in np.exp(row)], runs) for row in logs.mean(axis=2)]
    held = sum(each is not None and each.low is not None and each.high is not None
               and each.low <= math.exp(truth) <= each.high for each in found)  # fmt: skip
    return held / trials


def shares(size: int, repetitions: int, seed: float, spread: float, trials: int) -> Mapping[str, float]:
    """Share of the intervals of each source of variance that hold the truth; servers spread by ``spread``."""
    rng = np.random.default_rng((size, repetitions, int(100 * seed), int(100 * spread), 1))
    parts = {"server": spread, "client": spread / 2, "interaction": spread / 2, "seed": seed, "repetition": REST}
    total = sum(each**2 for each in parts.values())
    held = dict.fromkeys(parts, 0)
    for _ in range(trials):
        logs = rng.normal(0, parts["server"], (size, 1, 1)) + rng.normal(0, parts["client"], (1, size, 1))
        logs = logs + rng.normal(0, parts["interaction"], (size, size, 1)) + rng.normal(0, seed, repetitions)
        logs = logs + rng.normal(0, REST, logs.shape)
        found = decompose(
            [
                Sample.of(f"s{s}", f"c{c}", "t", tuple(np.exp(logs[s, c])), (Outcome.SUCCEEDED,) * repetitions)
                for s, c in product(range(size), repeat=2)
            ]
        )
        for part in found.shares if found is not None else ():
            held[part.source] += part.low - 1e-9 <= parts[part.source] ** 2 / total <= part.high + 1e-9
    return {source: count / trials for source, count in held.items()}


def with_outliers(size: int, outlying: float, trials: int) -> tuple[float, dict[str, float], float]:
    """Share of the campaigns that have intervals; their coverage; and that of the server's share in all campaigns.

    ``outlying``: chance that a server has a third of the goodput; all others spread by 5 %, clients by 3 %, pairs by
    2 %, and three repetitions by 1 %.
    """
    rng = np.random.default_rng((size, int(1000 * outlying)))
    truth = {
        "server": 0.05**2 + math.log(3) ** 2 * outlying * (1 - outlying),
        "client": 0.03**2,
        "interaction": 0.02**2,
    }
    total = sum(truth.values()) + 0.01**2
    held, printed, anyway = dict.fromkeys(truth, 0), 0, 0
    for _ in range(trials):
        server = rng.normal(0, 0.05, (size, 1, 1)) - math.log(3) * (rng.uniform(size=(size, 1, 1)) < outlying)
        logs = server + rng.normal(0, 0.03, (1, size, 1)) + rng.normal(0, 0.02, (size, size, 1))
        logs = logs + rng.normal(0, 0.01, (size, size, 3))
        found = decompose(
            [
                Sample.of(f"s{s}", f"c{c}", "t", tuple(np.exp(logs[s, c])), (Outcome.SUCCEEDED,) * 3)
                for s, c in product(range(size), repeat=2)
            ]
        )
        assert found is not None
        holds = {part.source: part.low <= truth[part.source] / total <= part.high
                 for part in found.shares if part.source in truth}  # fmt: skip
        anyway += holds["server"]
        if not found.outlying:
            printed += 1
            for source in held:
                held[source] += holds[source]
    return printed / trials, {source: count / max(1, printed) for source, count in held.items()}, anyway / trials


def differences(cells: Cells, trials: int) -> tuple[float, float]:
    """Share of the intervals of the difference between implementation and algorithm that hold the truth.

    The interaction counts as neither in the first number, and as the implementation in the second. Simulated runs have
    the implementations, algorithms and clients of ``cells``, and the shares that these have. All effects are normal,
    but those of the algorithms, which are fixed and equally far apart.
    """
    known = decompose_crossed(cells)
    assert known is not None
    own, algorithm, both, client, rest = (known.shares[source] for source in SOURCES)
    servers = sorted({key[:2] for key in cells})
    names = [sorted({key[place] for key in cells}) for place in range(3)]
    steps = np.linspace(-1, 1, len(names[1]))
    effects = dict(zip(names[1], steps * math.sqrt(algorithm / float(steps.var(ddof=1))), strict=True))
    rng = np.random.default_rng((len(servers), int(1000 * own), int(1000 * algorithm)))
    held = [0, 0]
    for _ in range(trials):
        of_implementation = dict(zip(names[0], rng.normal(0, math.sqrt(own), len(names[0])), strict=True))
        of_server = dict(zip(servers, rng.normal(0, math.sqrt(both), len(servers)), strict=True))
        of_client = dict(zip(names[2], rng.normal(0, math.sqrt(client), len(names[2])), strict=True))
        found = decompose_crossed(
            {
                key: of_implementation[key[0]] + effects[key[1]] + of_server[key[:2]] + of_client[key[2]] + error
                for key, error in zip(cells, rng.normal(0, math.sqrt(rest), len(cells)), strict=True)
            }
        )
        if found is not None:
            held[0] += found.difference.low <= own - algorithm <= found.difference.high
            held[1] += found.with_interaction.low <= own + both - algorithm <= found.with_interaction.high
    return held[0] / trials, held[1] / trials


def step_alarms(correlation: float, length: int, series: int, trials: int, step: float = 0.0) -> float:
    """Share of reports of ``series`` series with any step; with ``step``, of those in which the first series has one.

    AR(1) with a standard deviation of 1 about 20; ``step``: what is added to the second half of the first series.
    """
    rng = np.random.default_rng((int(10 * correlation), length, series, int(step)))
    hits = 0
    for _ in range(trials):
        values = rng.normal(size=(series, length))
        for place in range(1, length):
            values[:, place] = correlation * values[:, place - 1] + math.sqrt(1 - correlation**2) * values[:, place]
        values[0, length // 2 :] += step
        found = joint_steps([list(map(float, 20 + row)) for row in values])
        hits += bool(found[0]) if step else any(found)
    return hits / trials


def of_partners(trials: int) -> bool:
    """Print a table; whether an interval covers less than chance explains."""
    missed = False
    print("\nover partners: coverage [%]; 10 % of the runs are missing in the last column")
    for row in product(PARTNERS, REPETITIONS, SEEDS, SPREADS):
        found, holes = marginal(*row, trials), marginal(*row, trials, missing=0.1)
        print("{:2} partners {:2} repetitions  seed {:.1f}  partner {:.2f}".format(*row), end="")
        print(f"  {100 * found:5.1f} {100 * holes:5.1f}", flush=True)
        missed |= not (within(found, trials) and within(holes, trials))
    return missed


def of_ratios(trials: int) -> bool:
    """The same at 49 pairs of ratios of variances; the extremes of all."""
    missed = False
    print(f"\nover partners, at any ratios of variances: least and greatest coverage [%], {trials} trials")
    for partners, repetitions in product(PARTNERS, REPETITIONS):
        least, greatest = extremes(partners, repetitions, trials)
        print(
            f"{partners:2} partners {repetitions:2} repetitions  {100 * least:5.1f} {100 * greatest:5.1f}", flush=True
        )
        missed |= least < LOWEST - margin(trials) or (partners > 2 and not within(greatest, trials))
    return missed


def of_cells(trials: int) -> bool:
    """The same of the repetitions of a pair."""
    missed = False
    print("\nover the repetitions of a pair: coverage [%]")
    for repetitions, shape in product((*COUNTS, 40), SHAPES):
        found = repeated(repetitions, shape, trials)
        print(f"{repetitions:2} repetitions  {shape:24} {100 * found:5.1f}", flush=True)
        missed |= not within(found, trials)
    for repetitions, runs, shape in product(FEW, MEANS_OF, SHAPES):
        found = repeated(repetitions, shape, trials, runs)
        print(f"{repetitions:2} means of {runs:2} runs  {shape:24} {100 * found:5.1f}", flush=True)
        missed |= not within(found, trials)
    return missed


def changes(sizes: tuple[int, int], shape: str, trials: int, *, paired: bool, before: float) -> float:
    """Share of the intervals of the change of a pair that hold the truth.

    ``sizes``: repetitions of the base, with its placebo if there is one, and of the change. ``before``: share of the
    base's runs on the lower level.
    """
    step, spread = SHAPES[shape]
    rng, held = np.random.default_rng((*sizes, list(SHAPES).index(shape), int(paired))), 0
    for _ in range(trials):
        logs = []
        for repetitions, low in zip(sizes, (before, LOW), strict=True):
            noise = spread * rng.normal(size=repetitions)
            each = np.log(1 + noise) if shape == "normal" else noise
            logs.append(each - step * (rng.uniform(size=repetitions) < low))
        one, other = logs
        ends = around((other - one).tolist()) if paired else around(other.tolist(), (-one).tolist())
        assert ends is not None
        held += ends[0] <= step * (before - LOW) - (other.mean() - one.mean()) <= ends[1]
    return held / trials


def of_changes(trials: int) -> bool:
    """The same of changes of a pair: of none, and of one that makes the lower level, which the base has not."""
    missed = False
    print(f"\nchanges of a pair: coverage [%], {trials} trials")
    print("members unpaired, paired, and unpaired with twice as many in the base (a placebo); the same of a new level")
    for repetitions, shape in product(COUNTS, SHAPES):
        found = [
            changes((times * repetitions, repetitions), shape, trials, paired=paired, before=before)
            for before in ((LOW, 0.0) if SHAPES[shape][0] else (LOW,))
            for times, paired in ((1, False), (1, True), (2, False))
        ]
        print(f"{repetitions:2} repetitions  {shape:24} {' '.join(f'{100 * each:5.1f}' for each in found)}", flush=True)
        missed |= not all(within(each, trials) for each in found)
    return missed


def of_outliers(trials: int) -> bool:
    """Shares of variance, where a server in eight is an outlier: how often there are intervals, and what they hold."""
    print(
        f"\nshares of variance with outlying servers: campaigns with intervals, and their coverage [%], {trials} trials"
    )
    for size, outlying in product((5, 8, 16), (0.0, OUTLYING)):
        printed, parts, anyway = with_outliers(size, outlying, trials)
        words = "  ".join(f"{source} {100 * share:5.1f}" for source, share in parts.items())
        print(f"{size:2} × {size:2}  outlying {outlying:.3f}  {100 * printed:5.1f}  {words}", end="")
        print(f"  server, without looking for outliers {100 * anyway:5.1f}", flush=True)
    return False


def of_shares(trials: int) -> bool:
    """The same of shares of variance."""
    missed = False
    print(f"\nshares of variance: coverage [%], {trials} trials")
    for row in product(PARTNERS, REPETITIONS, SEEDS, (0.2, 1.0)):
        parts = shares(*row, trials)
        words = "  ".join(f"{source} {100 * share:5.1f}" for source, share in parts.items())
        print("{0:2} × {0:2} {1:2} repetitions  seed {2:.1f}  server {3:.1f}  {4}".format(*row, words), flush=True)
        missed |= min(parts.values()) < LOWEST - margin(trials)
    return missed


def of_differences(trials: int) -> bool:
    """The same of the differences of docs/paper, in each of its subsets of the runs."""
    missed = False
    data = read(DATA)
    print(f"\nimplementation minus algorithm, docs/paper: coverage [%], {trials} trials")
    for case, name, cells in ((link, *each) for link in ("sat", "satloss") for each in subsets(data, link)):
        count = len({key[0] for key in cells})
        if count > FEWEST_IMPLEMENTATIONS:
            neither, both = differences(cells, trials)
            print(f"{case:8} {name:45} {count:2} implementations", end="")
            print(f"  neither {100 * neither:5.1f}  implementation {100 * both:5.1f}", flush=True)
            missed |= min(neither, both) < LOWEST - margin(trials)
    return missed


def of_steps(trials: int) -> bool:
    """Print a table; True if more than 5 % of the reports without a step contain one."""
    missed = False
    print(
        f"\nsteps: reports with any where there is none [%]; with one of 4 or 6 deviations: found [%]; {trials} trials"
    )
    for correlation, length, series in product(CORRELATIONS, (20, 40), (1, 25)):
        alarms = step_alarms(correlation, length, series, trials)
        hits = [100 * step_alarms(correlation, length, series, trials // 2, step) for step in (4, 6)]
        print(f"AR {correlation:.1f} {length} campaigns {series:2} series  {100 * alarms:4.1f}", end="")
        print(f"  {hits[0]:5.1f} {hits[1]:5.1f}", flush=True)
        missed |= alarms > 0.05 + margin(trials)
    return missed


def within(found: float, trials: int) -> bool:
    """Whether chance explains how far a coverage is from 93 to 97 %."""
    return LOWEST - margin(trials) <= found <= HIGHEST + margin(trials)


def margin(trials: int) -> float:
    """Three standard errors of a share of 5 %."""
    return 3 * math.sqrt(0.05 * 0.95 / trials)


PARTS = {
    "partners": (of_partners, 1),
    "ratios": (of_ratios, 1),
    "cells": (of_cells, 1),
    "changes": (of_changes, 1),
    "shares": (of_shares, 4),
    "outliers": (of_outliers, 4),
    "differences": (of_differences, 1),
    "steps": (of_steps, 4),
}
"""Table -> what prints it, and by how much fewer trials it has, for it takes longer."""


def main() -> int:
    """Print tables; 1 if chance does not explain how little an interval covers, or how many false steps there are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="tables to print")
    options = parser.parse_args()
    begin = time.monotonic()
    print(f"{options.trials} trials per number, unless told otherwise")
    missed = [part(options.trials // fewer) for part, fewer in (PARTS[name] for name in options.only)]
    print(f"\n{time.monotonic() - begin:.0f} s")
    return int(any(missed))


if __name__ == "__main__":
    sys.exit(main())
