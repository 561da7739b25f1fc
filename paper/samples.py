"""Statistics of runs in a DataFrame: shares of the variance, intervals, rank correlations."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from paper.data_set import Frame
from paper.resampling import bootstrapped_share
from quicsat.model.outcomes import Outcome
from quicsat.statistics.intervals import Mean, over_partners
from quicsat.statistics.samples import Sample
from quicsat.statistics.variance import Share, decompose

ERROR = 0.05
"""Probability that an interval misses its number."""


def samples(runs: Frame, metric: str = "goodput") -> list[Sample]:
    """One for each pair with a number; seeds are repetitions."""
    known = runs[runs[metric].notna()]
    return [
        Sample.of(server, client, "", tuple(pair[metric]), (Outcome.SUCCEEDED,) * len(pair), numbers=tuple(pair.seed))
        for (server, client), pair in known.sort_values("seed").groupby(["server", "client"], sort=False)
    ]


def shares(runs: Frame, metric: str = "goodput") -> dict[str, Share]:
    """Shares of the variance of the logarithm of a metric, by source; empty with too few pairs."""
    found = decompose(samples(runs, metric))
    return {share.source: share for share in found.shares} if found else {}


def resampled(runs: Frame, metric: str = "goodput") -> tuple[float | None, float | None]:
    """Ends of the bootstrap interval of the server's share."""
    return bootstrapped_share(samples(runs, metric)) or (None, None)


def geometric(values: Iterable[float]) -> float:
    """The geometric mean of positive numbers."""
    return statistics.geometric_mean(list(values))


def interval(values: Iterable[float]) -> Mean:
    """The geometric mean of at least one positive number with its 95 % interval (Student's t of the logarithms)."""
    found = over_partners([{1: float(value)} for value in values])
    assert found is not None
    return found


def over_clients_and_seeds(runs: Frame, metric: str) -> Mean | None:
    """The geometric mean of a server over its clients and seeds, with its 95 % interval over both."""
    return over_partners([sample.by_repetition for sample in samples(runs, metric)])


def rank_correlation(first: Any, second: Any) -> float:
    """Spearman's, of two Series, over the names that both have."""
    both = first.dropna().index.intersection(second.dropna().index)
    return float(first[both].rank().corr(second[both].rank()))


def spread(values: Sequence[float]) -> float:
    """Standard deviation over mean."""
    return statistics.stdev(values) / statistics.fmean(values)


@dataclass(frozen=True)
class Correlation:
    """Pearson's correlation, with its confidence interval (Fisher 1921)."""

    value: float
    low: float
    high: float


def correlation(first: Sequence[float], second: Sequence[float], intervals: int = 1) -> Correlation:
    """Of the logarithms of positive numbers; ``intervals``: how many the 95 % are for (Bonferroni)."""
    logs = [[math.log(value) for value in values] for values in (first, second)]
    value = max(-1.0, min(1.0, statistics.correlation(*logs)))
    half = statistics.NormalDist().inv_cdf(1 - ERROR / 2 / intervals) / math.sqrt(len(first) - 3)
    return Correlation(value, math.tanh(math.atanh(value) - half), math.tanh(math.atanh(value) + half))
