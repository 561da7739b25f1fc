"""Implementation or algorithm: shares of the variance in a crossed design, and the interval of their difference; pure.

Each implementation has some of the algorithms, so that an algorithm's effect is what it changes in all of them alike.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from quicsat.model.arrays import Floats
from quicsat.statistics.intervals import additive, quantile

SOURCES = ("implementation", "algorithm", "interaction", "client", "rest")
FEWEST = 3
"""Implementations that an interval takes."""
ROUNDING = 1e-15
"""Of the sum of squares: variance below it is none."""
ALMOST = 0.995
"""Differences beyond it count as this, since the scale of the interval ends at 1."""

Cells = Mapping[tuple[str, str, str], float]
"""Logarithm of the goodput, by implementation, algorithm and client."""


@dataclass(frozen=True)
class Difference:
    """The implementation's share of the variance minus the algorithm's."""

    value: float
    low: float
    high: float
    """Ends of the 95 % confidence interval, for further implementations."""
    without: Mapping[str, float]
    """The difference without each implementation."""


@dataclass(frozen=True)
class Crossed:
    """Shares that add up to 1, by source, and their difference."""

    shares: Mapping[str, float]
    difference: Difference
    with_interaction: Difference
    """The interaction counts as the implementation's."""


def decompose_crossed(cells: Cells) -> Crossed | None:
    """Variance components of an additive model of implementation, algorithm and client.

    The interaction is what an implementation and an algorithm have beyond their sum, and the rest is single runs.
    Implementations are a sample of further ones; the algorithms are all there are. Least squares, since implementations
    lack algorithms; the variances of the effects are without that of their errors.

    The interval leaves out one implementation at a time, with all its runs, since these are not independent: jackknife
    with Student's t, on the scale of the inverse hyperbolic tangent. None if the model cannot be solved without one of
    the implementations, or if nothing varies.
    """
    cells = with_several_algorithms(cells)
    names = sorted({implementation for implementation, _, _ in cells})
    whole = _components(cells)
    parts = {name: _components({key: value for key, value in cells.items() if key[0] != name}) for name in names}
    if len(names) < FEWEST or whole is None or any(part is None for part in parts.values()):
        return None
    left_out = {name: part for name, part in parts.items() if part is not None}
    return Crossed(
        dict(zip(SOURCES, map(float, _shares(whole)), strict=True)),
        _difference(whole, left_out, ("implementation",)),
        _difference(whole, left_out, ("implementation", "interaction")),
    )


def with_several_algorithms(cells: Cells) -> dict[tuple[str, str, str], float]:
    """The cells of implementations with at least two algorithms."""
    counts = Counter(implementation for implementation, _ in {key[:2] for key in cells})
    return {key: value for key, value in cells.items() if counts[key[0]] > 1}


def _components(cells: Cells) -> Floats | None:
    """Variances by source, some below 0 by chance; None if they cannot be told apart, or are all 0."""
    servers = sorted({key[:2] for key in cells})
    clients = sorted({client for _, _, client in cells})
    implementations, algorithms = (sorted({key[place] for key in servers}) for place in (0, 1))
    free = len(servers) - len(implementations) - len(algorithms) + 1
    free_of_runs = len(cells) - len(servers) - len(clients) + 1
    if min(len(implementations), len(algorithms), len(clients)) < 2 or min(free, free_of_runs) < 1:
        return None
    at_server = [servers.index(key[:2]) for key in cells]
    at_client = [clients.index(key[2]) for key in cells]
    by_client, by_server, left = additive(at_server, at_client, np.array(list(cells.values())))
    rest = float((left**2).sum()) / free_of_runs
    rows = [implementations.index(implementation) for implementation, _ in servers]
    columns = [algorithms.index(algorithm) for _, algorithm in servers]
    design = np.hstack([np.eye(len(implementations))[rows], np.eye(len(algorithms))[columns]])
    if np.linalg.matrix_rank(design) < len(implementations) + len(algorithms) - 1:
        return None
    by_algorithm, by_implementation, left = additive(rows, columns, by_server)
    interaction = float((left**2).sum()) / free
    covariance = np.linalg.pinv(design.T @ design).astype(np.float64)
    split = len(implementations)
    found = np.array(
        [
            by_implementation.var(ddof=1) - interaction * _error(covariance[:split, :split]),
            by_algorithm.var(ddof=1) - interaction * _error(covariance[split:, split:]),
            interaction - rest / (len(servers) / float((1 / np.bincount(at_server)).sum())),
            by_client.var(ddof=1) - rest / (len(clients) / float((1 / np.bincount(at_client)).sum())),
            rest,
        ]
    )
    squares = sum(value**2 for value in cells.values())
    return found if np.maximum(found, 0).sum() > ROUNDING * squares else None


def _error(covariance: Floats) -> float:
    """What errors of effects add to the variance of the effects, for errors with variance 1 of the single means."""
    size = len(covariance)
    return float(np.trace(covariance) - covariance.sum() / size) / (size - 1)


def _shares(components: Floats) -> Floats:
    known = np.maximum(components, 0)
    shares: Floats = known / known.sum()
    return shares


def _difference(whole: Floats, left_out: Mapping[str, Floats], sources: Collection[str]) -> Difference:
    """The shares of these sources minus that of the algorithm."""
    weights = np.array([-1.0 if source == "algorithm" else float(source in sources) for source in SOURCES])
    value = float(_shares(whole) @ weights)
    without = {name: float(_shares(part) @ weights) for name, part in left_out.items()}
    middle, scaled = _scaled(value), np.array([_scaled(each) for each in without.values()])
    count = len(without)
    error = math.sqrt((count - 1) ** 2 / count * float(scaled.var(ddof=1)))
    low, high = (math.tanh(middle + sign * quantile(count - 1) * error) for sign in (-1, 1))
    return Difference(value, min(low, value), max(high, value), without)


def _scaled(difference: float) -> float:
    return math.atanh(min(max(difference, -ALMOST), ALMOST))
