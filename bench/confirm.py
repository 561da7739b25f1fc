"""Measures how often `confirm` confirms a change that is not there, how often it denies one that is, and its power.

docs/measurements/statistics.md holds its output. All numbers are simulated, with fixed seeds: in each block, the
machine drifts, and both builds run in random order.
"""

# ruff: noqa: T201 - a script

import argparse
import math
import sys
import time
from collections import Counter
from itertools import product

import numpy as np

from bench.compare import wilson
from quicsat.model.outcomes import Outcome
from quicsat.statistics.confirmation import LEVEL, LOOKS, Answer, Claim, Pairs, answers
from quicsat.statistics.samples import GOODPUT, Sample

NOISE = {"normal": (0.0, 0.01), "two levels": (0.2, 0.002), "heavy tails": (0.0, 0.01)}
"""By how much the logarithm of the lower of two levels is smaller, and the standard deviation of single runs."""
LOW = 0.2
"""Share of the runs on the lower level."""
DRIFT = 0.005
"""Standard deviation of what the machine does to the logarithm from one run to the next: a random walk."""
CLAIMED = -0.05
"""Logarithm of the change that virtual time found."""
REAL = (0.0, 0.5, 1.0)
"""Share of it that is there in real time."""
KINDS = {"a cell": (1, 1), "an implementation, 5 cells": (1, 5), "4 cells": (4, 1)}
"""Claims, and cells of each."""


def block(
    cells: int, shift: float, noise: str, rng: np.random.Generator, state: list[float]
) -> list[tuple[float, ...]]:
    """Goodputs of both builds in each cell; ``state``: where the machine has drifted to."""
    step, spread = NOISE[noise]
    found = []
    for _ in range(cells):
        both = [0.0, 0.0]
        for build in rng.permutation(2):
            state[0] += float(rng.normal(0, DRIFT))
            rest = float(rng.standard_t(3) if noise == "heavy tails" else rng.normal()) * spread
            both[build] = math.exp(state[0] + rest - step * float(rng.uniform() < LOW) + shift * float(build))
        found.append(tuple(both))
    return found


def once(kind: str, shift: float, noise: str, rng: np.random.Generator) -> list[tuple[Answer, int, bool]]:
    """A check of claims: of each, the answer, the blocks that it took, and whether the interval holds the truth."""
    made, cells = KINDS[kind]
    claims = [
        Claim("a", f"c{number}", "t", GOODPUT, CLAIMED, tuple(("a", f"c{number}-{cell}", "t") for cell in range(cells)))
        for number in range(made)
    ]
    state = [0.0]
    blocks = [block(made * cells, shift, noise, rng, state) for _ in range(LOOKS[-1])]

    def pairs_of(claim: Claim, count: int) -> Pairs:
        first = claims.index(claim) * cells
        return [
            (sample([each[place][0] for each in blocks[:count]]), sample([each[place][1] for each in blocks[:count]]))
            for place in range(first, first + cells)
        ]

    return [
        (each.answer, each.blocks, each.interval is None or each.interval[0] <= math.expm1(shift) <= each.interval[1])
        for each in answers(claims, pairs_of, len(LOOKS))
    ]


def sample(values: list[float]) -> Sample:
    """Blocks 1, 2, … of one build."""
    return Sample.of("a", "c", "t", values, (Outcome.SUCCEEDED,) * len(values), seeds=range(1, len(values) + 1))


def main() -> int:
    """Print a table; 1 if a bound is missed with significance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", type=int, default=400, help="per row")
    checks, started, missed = parser.parse_args().checks, time.monotonic(), False
    print(f"{checks} checks per row; virtual time found {math.expm1(CLAIMED):+.1%}; real: share of it in real time")
    print("any confirmed, any denied, all decided [% of checks]; mean blocks; interval holds the truth [% of claims]")
    for number, (kind, noise, real) in enumerate(product(KINDS, NOISE, REAL)):
        rng = np.random.default_rng((2, number))
        found = [once(kind, CLAIMED * real, noise, rng) for _ in range(checks)]
        told = [Counter(answer for answer, _, _ in each) for each in found]
        confirmed = sum(each[Answer.CONFIRMED] > 0 for each in told)
        denied = sum(each[Answer.DENIED] > 0 for each in told)
        decided = sum(each[Answer.OPEN] == 0 for each in told)
        blocks = np.mean([count for each in found for _, count, _ in each])
        held = np.mean([holds for each in found for _, _, holds in each])
        shares = " ".join(f"{100 * count / checks:6.1f}" for count in (confirmed, denied, decided))
        print(f"{kind:28} {noise:12} real {real:.1f}  {shares}  {blocks:5.1f}  {100 * held:5.1f}", flush=True)
        wrong = confirmed if not real else denied
        missed |= wilson(wrong, checks, 3.0)[0] > LEVEL
    print(f"\nbound: {LEVEL:.1%}; {time.monotonic() - started:.0f} s")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
