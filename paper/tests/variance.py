"""Shares of the variance of the logarithm of goodput, and their intervals: from sums of squares."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property
from statistics import fmean, variance
from typing import Any

import numpy as np

from paper.tests.raw import Run


def residual(logs: dict[tuple[str, str], float], *places: int) -> float:
    """Sum of squares that an additive model of server (0) and client (1), or of one of them, leaves."""
    names = [(place, name) for place in places for name in sorted({pair[place] for pair in logs})]
    design = np.array([[1.0] + [float(pair[place] == name) for place, name in names] for pair in logs])
    values = np.array(list(logs.values()))
    return float(((values - design @ np.linalg.lstsq(design, values, rcond=None)[0]) ** 2).sum())


DRAWS = 200_000
"""Of a generalized confidence interval: ten times as many as in the report, whose error is thus the larger one."""
NEAR = 1.1
"""Percentage points between an end in the report and ours: half of one from rounding, and the error of 20,000 draws."""


RESAMPLES = 5_000
NEAR_RESAMPLED = 2.5
"""Percentage points between an end in the report and ours: the error of 2,000 and of 5,000 draws, and of seeds."""


Value = Callable[[Run], float | None]
"""Goodput of a run; None if it does not count."""


class Variance:
    """Of the logarithm of goodput over a link: components from sums of squares of means over seeds, all random."""

    def __init__(self, runs: Iterable[Run], value: Value) -> None:
        """``runs``: over one link."""
        logs: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
        for run in runs:
            if (one := value(run)) is not None:
                logs[run["server"], run["client"]][run["evidence"]["seed"]] = math.log(one)
        self.pairs, seeds = list(logs), sorted({seed for each in logs.values() for seed in each})
        self.runs = [(pair, seed, each) for pair, found in logs.items() for seed, each in found.items()]
        names = [sorted({pair[place] for pair in logs}) for place in (0, 1)]
        self.sizes = {"server": len(logs) / len(names[0]), "client": len(logs) / len(names[1])}
        self.sizes["run"] = len(logs) / sum(1 / len(each) for each in logs.values())
        self.sizes["seed"] = len(seeds) / sum(1 / sum(seed == one for _, seed, _ in self.runs) for one in seeds)
        design = np.array([[float(one == pair) for one in self.pairs] + [float(one == seed) for one in seeds[1:]]
                           for pair, seed, _ in self.runs])  # fmt: skip
        values = np.array([each for *_, each in self.runs])
        effects = np.linalg.lstsq(design, values, rcond=None)[0]
        of_seeds = np.append(0.0, effects[len(logs) :])
        means = dict(zip(self.pairs, effects[: len(logs)] + of_seeds.mean(), strict=True))
        both = residual(means, 0, 1)
        self.squares = {
            "server": (residual(means, 1) - both, len(names[0]) - 1),
            "client": (residual(means, 0) - both, len(names[1]) - 1),
            "interaction": (both, len(logs) - len(names[0]) - len(names[1]) + 1),
        }
        """Sum of squares and degrees of freedom, by source."""
        if len(seeds) > 1:
            self.squares["seed"] = (self.sizes["seed"] * (len(seeds) - 1) * variance(of_seeds), len(seeds) - 1)
            left = float(((values - design @ effects) ** 2).sum())
            self.squares["repetition"] = (left, len(self.runs) - len(logs) - len(seeds) + 1)

    def _components(self, mean: dict[str, Any]) -> dict[str, Any]:
        """From mean squares, some below 0."""
        found = {name: (mean[name] - mean["interaction"]) / self.sizes[name] for name in ("server", "client")}
        if "repetition" not in mean:
            return found | {"interaction": mean["interaction"]}
        run = mean["repetition"]
        found["interaction"] = mean["interaction"] - run / self.sizes["run"]
        return found | {"seed": (mean["seed"] - run) / self.sizes["seed"], "repetition": run}

    def shares(self) -> dict[str, float]:
        """Of the sum, in percent; components below 0 are 0."""
        found = self._components({name: square / degrees for name, (square, degrees) in self.squares.items()})
        total = sum(max(each, 0) for each in found.values())
        return {name: 100 * max(each, 0) / total for name, each in found.items()}

    @cached_property
    def ends(self) -> dict[str, tuple[float, float]]:
        """95 % generalized confidence intervals, in percent: a sum of squares over chi-square is its expected mean.

        A component below 0 counts as 0 in the sum for the lower end, and as it is for the upper end.
        """
        return self._ends(np.random.default_rng(1), DRAWS)

    def _ends(self, random: np.random.Generator, draws: int) -> dict[str, tuple[float, float]]:
        found = self._components({name: square / random.chisquare(degrees, draws)
                                  for name, (square, degrees) in self.squares.items()})  # fmt: skip
        positive = {name: np.maximum(each, 0) for name, each in found.items()}
        total, with_signs = sum(positive.values()), sum(found.values())
        return {
            name: (
                100 * float(np.quantile(each / total, 0.025)),
                100 * float(np.quantile(each / np.maximum(np.maximum(with_signs, each), 1e-300), 0.975)),
            )
            for name, each in positive.items()
        }

    @cached_property
    def resampled(self) -> tuple[float, float]:
        """Ends of the bootstrap interval of the server's share, in percent, from a table of each resample.

        A pair without a success has the value of an additive model. What seeds and repetitions add to the variance of a
        pair is small, and the report's share has it in its denominator, too.
        """
        means = {pair: fmean(value for one, _, value in self.runs if one == pair) for pair in self.pairs}
        names = [sorted({pair[place] for pair in means}) for place in (0, 1)]
        columns = [(place, name) for place in (0, 1) for name in names[place]]
        design = np.array([[float(pair[place] == name) for place, name in columns] for pair in means])
        values = np.array(list(means.values()))
        fit = dict(zip(columns, np.linalg.lstsq(design, values, rcond=None)[0], strict=True))
        table = np.array([[means.get((a, b), fit[0, a] + fit[1, b]) for b in names[1]] for a in names[0]])
        height, width = table.shape
        random, shares = np.random.default_rng(3), []
        for _ in range(RESAMPLES):
            drawn = table[random.choice(height, height)][:, random.choice(width, width)]
            of_rows, of_columns = drawn.mean(axis=1), drawn.mean(axis=0)
            left = drawn - of_rows[:, None] - of_columns + drawn.mean()
            pair = float((left**2).sum()) / (len(means) - height - width + 1)
            parts = [max(variance(of_rows) - pair / width, 0), max(variance(of_columns) - pair / height, 0), pair]
            shares.append(100 * parts[0] / sum(parts))
        low, high = np.quantile(shares, (0.025, 0.975))
        return float(low), float(high)

    @property
    def near(self) -> float:
        """``NEAR``, or more with two seeds: their variance has one degree of freedom, and draws of it spread far."""
        if self.squares.get("seed", (0.0, 0))[1] != 1:
            return NEAR
        random = np.random.default_rng(2)
        several = np.array([self._ends(random, DRAWS // 10)["server"] for _ in range(10)])
        return max(NEAR, 0.51 + 4 * float(several.std(axis=0).max()))
