"""How sure a mean is: its 95 % confidence interval; pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

# Student's t, 97.5 % quantile for 1, 2, … degrees of freedom (any table; scipy.stats.t.ppf(0.975, df)).
_QUANTILES = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_NORMAL = 1.96


def interval(numbers: Sequence[float]) -> tuple[float, float] | None:
    """95 % confidence interval of the mean by Student's t, in the unit of the numbers; None for fewer than two."""
    if len(numbers) < 2:
        return None
    freedom = len(numbers) - 1
    quantile = _QUANTILES[freedom - 1] if freedom <= len(_QUANTILES) else _NORMAL
    half = quantile * statistics.stdev(numbers) / math.sqrt(len(numbers))
    mean = statistics.fmean(numbers)
    return (mean - half, mean + half)
