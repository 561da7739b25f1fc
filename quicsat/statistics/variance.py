"""How much of the spread of a test case is the server's, the client's, and of both together (two-way ANOVA); pure.

The question of section IV-B of arXiv 2202.08228: does the server decide, the client, or the pair?
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from quicsat.model.arrays import Floats
from quicsat.statistics.intervals import additive
from quicsat.statistics.samples import Sample

SEED = 20220808
DRAWS = 20_000
NO_OUTLIER = 0.975
"""Share of the samples of normal effects in which no implementation of a role is taken for an outlier: the intervals
are those of normal effects, and do not hold with others."""
FEWEST_TO_OUTLIE = 5
"""Implementations in a role from which on outliers are looked for."""
ROUNDING = 1e-15
"""Of the sum of squares: variance below it is none."""
SOURCES = ("server", "client", "interaction", "seed", "repetition")


@dataclass(frozen=True)
class Share:
    """Part of the variance, 0..1."""

    source: str
    """server, client, interaction; seed: what all pairs of a repetition have in common, such as their loss pattern;
    repetition: what the repetitions of a pair differ by beyond that."""
    share: float
    low: float
    high: float
    """Ends of the 95 % confidence interval."""


@dataclass(frozen=True)
class Decomposition:
    """Shares that add up to 1, and what they were taken from."""

    shares: tuple[Share, ...]
    servers: int
    clients: int
    pairs: int
    """That have a number."""
    repetitions: int
    """Numbers in all."""
    outlying: tuple[str, ...] = ()
    """Implementations because of which the intervals do not hold: ``server kwik``."""


@dataclass(frozen=True)
class _Squares:
    """Sums of squares over cell means, of the repetitions' effects, and what is left, with their degrees of freedom."""

    sums: Floats
    """As ``SOURCES``; shape (5,)."""
    degrees: Floats
    size: float
    """Repetitions per pair, harmonic mean."""
    per_server: float
    per_client: float
    """Pairs that a server and a client have, on average."""
    per_seed: float
    """Pairs that a repetition has, harmonic mean."""


def decompose(many: Sequence[Sample]) -> Decomposition | None:
    """Variance components of the logarithms of the values, all sources taken as random; None if they have none.

    Of the values themselves if one is not positive.

    It takes two servers, two clients, and more pairs than an additive model has parameters. Unweighted means (Searle,
    Casella and McCulloch 1992, section 4.6); a server's share is what it explains beyond the clients, and the reverse,
    so that pairs may be missing. Intervals are generalized confidence intervals (Weerahandi 1993) from 20,000 draws of
    a fixed seed; their ends err on the wide side where a component is drawn below 0. With one repetition per pair,
    interaction holds what repetitions would differ by.
    """
    cells = [sample for sample in many if sample.values]
    servers = sorted({sample.server for sample in cells})
    clients = sorted({sample.client for sample in cells})
    if min(len(servers), len(clients)) < 2 or len(cells) <= len(servers) + len(clients) - 1:
        return None
    squares = _sums_of_squares(cells, servers, clients)
    if squares.sums.sum() <= ROUNDING * sum(value**2 for value in _scaled(cells)):
        return None
    point = _components(squares, squares.sums / np.maximum(squares.degrees, 1))
    rng = np.random.default_rng(SEED)
    chi = np.stack([rng.chisquare(max(1.0, degree), DRAWS) for degree in squares.degrees])
    drawn = _components(squares, squares.sums[:, None] / chi)
    return Decomposition(
        _with_intervals(SOURCES, point, drawn),
        servers=len(servers),
        clients=len(clients),
        pairs=len(cells),
        repetitions=sum(len(sample.values) for sample in cells),
        outlying=_outliers(cells, servers, clients),
    )


def _outliers(cells: Sequence[Sample], servers: Sequence[str], clients: Sequence[str]) -> tuple[str, ...]:
    source = iter(_scaled(cells))
    means = np.array([np.mean([next(source) for _ in sample.values]) for sample in cells])
    rows, columns = ([names.index(name) for name in own] for names, own in (
        (servers, [sample.server for sample in cells]), (clients, [sample.client for sample in cells])
    ))  # fmt: skip
    by_client, by_server, _ = additive(rows, columns, means)
    return tuple(
        f"{role} {name}"
        for role, names, effects in (("server", servers, by_server), ("client", clients, by_client))
        for name, outlies in zip(names, _outlies(effects), strict=True)
        if outlies
    )


def _outlies(effects: Floats) -> list[bool]:
    """Of each: whether it is farther from the median than the median distance explains (Hampel 1985)."""
    distances = np.abs(effects - np.median(effects))
    farthest = _farthest(len(effects)) * float(np.median(distances)) + ROUNDING
    return [len(effects) >= FEWEST_TO_OUTLIE and float(distance) > farthest for distance in distances]


@lru_cache(maxsize=64)
def _farthest(count: int) -> float:
    """Largest distance from the median, in median distances, in ``NO_OUTLIER`` of the samples of normal numbers."""
    numbers = np.random.default_rng(SEED).normal(size=(DRAWS, count))
    distances = np.abs(numbers - np.median(numbers, axis=1)[:, None])
    return float(np.quantile(distances.max(axis=1) / np.median(distances, axis=1), NO_OUTLIER))


def _with_intervals(sources: Sequence[str], point: Floats, drawn: Floats) -> tuple[Share, ...]:
    """Shares of the components, with the quantiles of drawn components as the ends of their intervals."""
    low = np.quantile(_shares(drawn), 0.025, axis=1)
    high = np.quantile(_most(drawn), 0.975, axis=1)
    shares = zip(sources, _shares(point), low, high, strict=True)
    return tuple(Share(source, *(float(number) for number in numbers)) for source, *numbers in shares)


def _sums_of_squares(cells: Sequence[Sample], servers: Sequence[str], clients: Sequence[str]) -> _Squares:
    values = np.array(_scaled(cells))
    rows = [number for number, sample in enumerate(cells) for _ in sample.values]
    names = sorted({repetition for sample in cells for repetition in sample.by_repetition})
    places = {name: place for place, name in enumerate(names)}
    columns = [places[repetition] for sample in cells for repetition in sample.by_repetition]
    seeds, means, left = additive(rows, columns, values)
    by_server = _indicators([sample.server for sample in cells], servers)
    by_client = _indicators([sample.client for sample in cells], clients)
    one = np.ones((len(cells), 1))
    both = _residual(np.hstack([one, by_server, by_client]), means)
    per_seed = len(names) / float((1 / np.bincount(columns)).sum())
    sums = [
        _residual(np.hstack([one, by_client]), means) - both,
        _residual(np.hstack([one, by_server]), means) - both,
        both,
        per_seed * float((seeds**2).sum()),
        float((left**2).sum()),
    ]
    counts = [len(sample.values) for sample in cells]
    degrees = [
        len(servers) - 1,
        len(clients) - 1,
        len(cells) - len(servers) - len(clients) + 1,
        len(names) - 1,
        max(0, sum(counts) - len(cells) - len(names) + 1),
    ]
    return _Squares(
        np.maximum(np.array(sums), 0.0),
        np.array(degrees, dtype=np.float64),
        size=len(cells) / sum(1 / count for count in counts),
        per_server=len(cells) / len(servers),
        per_client=len(cells) / len(clients),
        per_seed=per_seed,
    )


def _scaled(cells: Sequence[Sample]) -> list[float]:
    values = [value for sample in cells for value in sample.values]
    return [math.log(value) for value in values] if min(values) > 0 else values


def _indicators(names: Sequence[str], levels: Sequence[str]) -> Floats:
    return np.array([[float(name == level) for level in levels] for name in names])


def _residual(design: Floats, values: Floats) -> float:
    """Sum of squares that a linear model leaves."""
    fitted = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return float(((values - fitted) ** 2).sum())


def _components(squares: _Squares, mean_squares: Floats) -> Floats:
    """Variance components from mean squares, some below 0 by chance; first axis as ``SOURCES``."""
    server, client, interaction, seed, repetition = mean_squares
    if not squares.degrees[4]:
        repetition = np.zeros_like(interaction)
    if not squares.degrees[3]:
        seed = np.zeros_like(interaction)
    return np.stack(
        [
            (server - interaction) / squares.per_server,
            (client - interaction) / squares.per_client,
            interaction - repetition / squares.size,
            (seed - repetition) / squares.per_seed,
            repetition,
        ]
    )


def _shares(components: Floats) -> Floats:
    """Of the sum, each component at least 0."""
    known = np.maximum(components, 0.0)
    total = known.sum(axis=0)
    shares: Floats = known / np.where(total > 0, total, 1.0)
    return shares


def _most(components: Floats) -> Floats:
    """Shares of the sum to which components below 0 count as they are: it is not too large where they are chance."""
    known = np.maximum(components, 0.0)
    total = np.maximum(components.sum(axis=0), known)
    shares: Floats = known / np.where(total > 0, total, 1.0)
    return shares
