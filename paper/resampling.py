"""The server's share of the variance by a bootstrap over servers and clients, without assumed distributions; pure."""

import math
from collections.abc import Sequence

import numpy as np

from quicsat.model.arrays import Floats
from quicsat.statistics.intervals import additive
from quicsat.statistics.samples import Sample

SEED = 20220808
RESAMPLES = 2_000


def bootstrapped_share(many: Sequence[Sample], resamples: int = RESAMPLES) -> tuple[float, float] | None:
    """Ends of the 95 % percentile interval of the server's share; None without two servers and two clients.

    Each resample draws as many servers and clients as there are, with replacement; a level drawn twice counts as two.
    A pair without a value has that of an additive model. The components of seeds and of repetitions stay as estimated.
    With 16 normal servers and 14 clients, the interval held the share in 92 to 97 % of 300 simulations of each of four
    shares (0.45 to 0.91). The lower end was above the share in 0.7 to 1.7 % of them, and the upper end below it in 2.7
    to 7.0 %.
    """
    cells = [sample for sample in many if sample.values]
    names = [sorted({name for name, _ in _pairs(cells)}), sorted({name for _, name in _pairs(cells)})]
    counts = [len(each) for each in names]
    if min(counts) < 2 or len(cells) <= sum(counts) - 1:
        return None
    means, error, within = _means_and_noise(cells)
    at = [[names[place].index(pair[place]) for pair in _pairs(cells)] for place in (0, 1)]
    by_client, by_server, _ = additive(at[0], at[1], means)
    table = by_server[:, None] + by_client[None, :]
    table[at[0], at[1]] = means
    rng = np.random.default_rng(SEED)
    rows, columns = (rng.integers(0, count, (resamples, count)) for count in counts)
    drawn = table[rows[:, :, None], columns[:, None, :]]
    of_servers, of_clients = drawn.mean(axis=2), drawn.mean(axis=1)
    left = drawn - of_servers[:, :, None] - of_clients[:, None, :] + drawn.mean(axis=(1, 2))[:, None, None]
    pairs = (left**2).sum(axis=(1, 2)) / (len(cells) - sum(counts) + 1)
    server = np.maximum(of_servers.var(axis=1, ddof=1) - pairs / counts[1], 0)
    client = np.maximum(of_clients.var(axis=1, ddof=1) - pairs / counts[0], 0)
    total = server + client + np.maximum(pairs - error, 0) + within
    shares = server / np.where(total > 0, total, 1)
    low, high = np.quantile(shares, (0.025, 0.975))
    return float(low), float(high)


def _means_and_noise(cells: Sequence[Sample]) -> tuple[Floats, float, float]:
    """Mean of each pair without the effects of seeds, the variance of its error, and that of seeds and repetitions."""
    rows = [number for number, sample in enumerate(cells) for _ in sample.values]
    seeds = sorted({seed for sample in cells for seed in sample.by_repetition})
    columns = [seeds.index(seed) for sample in cells for seed in sample.by_repetition]
    effects, means, left = additive(rows, columns, np.array([math.log(x) for each in cells for x in each.values]))
    free = len(rows) - len(cells) - len(seeds) + 1
    if free < 1:
        return means, 0.0, 0.0
    rest = float((left**2).sum()) / free
    of_seed = float(effects.var(ddof=1)) - rest * float((1 / np.bincount(columns)).sum()) / len(seeds)
    return means, rest * sum(1 / len(each.values) for each in cells) / len(cells), max(of_seed, 0) + rest


def _pairs(cells: Sequence[Sample]) -> list[tuple[str, str]]:
    return [(sample.server, sample.client) for sample in cells]
