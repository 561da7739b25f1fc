"""How often `compare` is wrong: false alarms among campaigns of the same thing, and drops that it overlooks.

make bench-compare
"""

# ruff: noqa: T201 - a script

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from interop.model import Outcome
from interop.statistics.comparison import WORSE, Change, compare
from interop.statistics.samples import Sample

CAMPAIGNS = 200
PAIRS = 144
REPETITIONS = 10
SPREAD = 0.1
DROP = 0.3
ALARMS_ALLOWED, FOUND_WANTED = 0.05, 0.95
SHAPES = ("normal", "skewed", "two levels", "flaky")


def values(rng: np.random.Generator, shape: str, mean: float) -> tuple[float, ...]:
    """Goodput of the repetitions of a pair, with a standard deviation of a tenth of the mean."""
    if shape == "skewed":
        sigma = np.sqrt(np.log(1 + SPREAD**2))
        return tuple(mean * rng.lognormal(-(sigma**2) / 2, sigma, REPETITIONS))
    if shape == "two levels":
        return tuple(mean * (1 + SPREAD * rng.choice([-1.0, 1.0], REPETITIONS) + rng.normal(0, 0.005, REPETITIONS)))
    return tuple(mean * rng.normal(1, SPREAD, REPETITIONS))


def campaign(
    rng: np.random.Generator, shape: str, means: NDArray[np.float64], risks: NDArray[np.float64]
) -> list[Sample]:
    """Samples of all pairs; in the shape flaky, some repetitions fail."""
    found = []
    for number, (mean, risk) in enumerate(zip(means, risks, strict=True)):
        good = values(rng, shape, mean)
        failed = rng.uniform(size=REPETITIONS) < (risk if shape == "flaky" else 0.0)
        outcomes = tuple(Outcome.FAILED if bad else Outcome.SUCCEEDED for bad in failed)
        numbers = tuple(value for value, bad in zip(good, failed, strict=True) if not bad)
        found.append(Sample(f"s{number % 12}", f"c{number // 12}", "sat", numbers, outcomes))
    return found


def false_alarms(shape: str, seed: int) -> int:
    """Campaign pairs from the same distribution in which anything at all is told to have changed."""
    rng = np.random.default_rng((1, seed))
    alarms = 0
    for _ in range(CAMPAIGNS):
        means = rng.uniform(1e6, 18e6, PAIRS)
        risks = np.where(rng.uniform(size=PAIRS) < 0.2, rng.uniform(size=PAIRS), 0.0)
        first, second = (campaign(rng, shape, means, risks) for _ in range(2))
        alarms += compare(first, second).alarms > 0
    return alarms


def found_drops(shape: str, seed: int) -> int:
    """Campaign pairs in which the one pair that lost 30 % is told to be slower."""
    rng = np.random.default_rng((2, seed))
    hits = 0
    for _ in range(CAMPAIGNS):
        means = rng.uniform(1e6, 18e6, PAIRS)
        none = np.zeros(PAIRS)
        target = int(rng.integers(PAIRS))
        first = campaign(rng, shape, means, none)
        means[target] *= 1 - DROP
        second = campaign(rng, shape, means, none)
        where = (first[target].server, first[target].client)
        changes = [pair for pair in compare(first, second).pairs if pair.change in WORSE]
        hits += any(
            (pair.first.server, pair.first.client) == where and pair.change is Change.SLOWER for pair in changes
        )
    return hits


def main() -> int:
    """Print a table; 1 if a bar is missed."""
    started, missed = time.monotonic(), False
    print(f"{CAMPAIGNS} campaign pairs of {PAIRS} pairs × {REPETITIONS} repetitions, spread {SPREAD:.0%}, seed 1\n")
    print(f"{'repetitions are':16} {'false alarms':>14} {'30 % drop found':>16}")
    for number, shape in enumerate(SHAPES):
        alarms = false_alarms(shape, number)
        hits = found_drops(shape, number) if shape != "flaky" else None
        told = f"{hits / CAMPAIGNS:16.1%}" if hits is not None else f"{'':16}"
        print(f"{shape:16} {alarms / CAMPAIGNS:14.1%} {told}", flush=True)
        missed |= alarms > ALARMS_ALLOWED * CAMPAIGNS or (hits is not None and hits < FOUND_WANTED * CAMPAIGNS)
    print(
        f"\nbars: false alarms ≤ {ALARMS_ALLOWED:.0%}, found ≥ {FOUND_WANTED:.0%}; {time.monotonic() - started:.0f} s"
    )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
