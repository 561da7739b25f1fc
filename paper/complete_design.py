"""Variance components of a complete design of server, client and seed, with one run in each cell; pure."""

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from quicsat.model.arrays import Floats

FACTORS = ("server", "client", "seed")
REST = "rest"
"""The three factors together, and what has no cause in the model: one run per cell cannot tell them apart."""

Source = tuple[str, ...]
"""Factors that act together: ``("server", "seed")`` is what a seed changes for one server with all of its clients."""


def components(values: Floats) -> Mapping[Source, float]:
    """Variance components by source, with all factors as random effects.

    ``values``: servers x clients x seeds, each at least 2 long. Components are estimated from mean squares (Searle,
    Casella and McCulloch, *Variance Components*, chapter 4), so they are unbiased, and some can be below 0 by chance.
    """
    sizes = dict(zip(FACTORS, values.shape, strict=True))
    sources = [source for count in (3, 2, 1) for source in combinations(FACTORS, count)]
    effects = _effects(values)
    found: dict[Source, float] = {}
    for source in sources:
        free = np.prod([sizes[factor] - 1 for factor in source])
        copies = np.prod([size for factor, size in sizes.items() if factor not in source])
        square = float(copies * (effects[source] ** 2).sum() / free)
        # The expected mean square has each component that contains the source, times the cells that share its effect.
        others = (
            found[other] * float(np.prod([size for factor, size in sizes.items() if factor not in other]))
            for other in found
            if set(source) < set(other)
        )
        found[source] = (square - sum(others)) / float(copies)
    return {(REST,) if source == FACTORS else source: value for source, value in found.items()}


def shares(values: Floats) -> Mapping[Source, float]:
    """Shares of the variance that add up to 1; components below 0 count as 0. All are 0 if nothing varies."""
    found = {source: max(value, 0.0) for source, value in components(values).items()}
    total = sum(found.values())
    return {source: value / total if total else 0.0 for source, value in found.items()}


def _effects(values: Floats) -> Mapping[Source, Floats]:
    """What each source adds to the mean, as arrays with axes of length 1 for the other factors."""
    found: dict[Source, Floats] = {(): values.mean(keepdims=True)}
    for count in (1, 2, 3):
        for source in combinations(FACTORS, count):
            axes = tuple(axis for axis, factor in enumerate(FACTORS) if factor not in source)
            smaller = sum(effect for other, effect in found.items() if set(other) < set(source))
            found[source] = np.asarray(values.mean(axis=axes, keepdims=True) - smaller, dtype=np.float64)
    return found
