"""Confidence intervals of means of few numbers, and of means over partners and repetitions; pure.

See docs/reference/statistics.md for how their coverage was checked.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np

from quicsat.model.arrays import Floats, Integers
from quicsat.statistics.significance import student_quantile

SEED = 20220315
DRAWS = 3000
"""Tables that are simulated for each pair of ratios, to calibrate intervals over partners."""
RATIOS = (0.0, 0.1, 0.3, 1.0, 4.0, 20.0, 1000.0)
"""What partners, or repetitions, contribute to the variance of the mean: multiples of what single runs contribute."""
LOWEST, MIDDLE = 0.93, 0.95
"""Coverage of intervals over partners: the least, and the middle of its range where the least allows that."""
NORM, REST = 5, 0.3
"""Shape of intervals over partners: norm of two half-widths, and how much single runs narrow it."""
FACTORS, PRECISION = (0.5, 1.5), 0.002
"""Range and precision of the factor of intervals over partners."""
NO_SPREAD = 1e-12
"""Relative to the numbers: deviations below it are rounding."""
FEWEST = 13
"""Repetitions of a pair from which on an interval covers what it claims even if goodput has two levels, 80 to 20."""
RUNS_OF_A_MEAN, FEWEST_MEANS = 12, 3
"""Means over so many runs are nearly normal, so that so many repetitions have an interval."""
SKEWNESS = 0.4
"""Share of the correction for skewness with which intervals over repetitions cover 93 to 97 %."""
SKEWNESS_OF = {17: 0.3, 18: 0.245, 19: 0.305, 20: 0.35, 21: 0.385, 27: 0.325}
"""The same for numbers of repetitions with which intervals with ``SKEWNESS`` would cover more than 97 % of data on two
levels: the number of those on the lower level, up to which an interval holds the mean, is whole."""
_SINGULAR = 1e-9
"""Eigenvalues of normal equations, relative to the largest one, that are 0 but for rounding."""
_DEVIATIONS = np.linspace(0.0, 8.0, 4001)
_HELD = np.array([math.erf(each / math.sqrt(2)) for each in _DEVIATIONS])
"""Share of a normal distribution within so many standard deviations."""


@dataclass(frozen=True)
class Mean:
    """A mean of positive numbers on a logarithmic scale, else their arithmetic mean; and how sure it is."""

    value: float
    """In the unit of the numbers."""
    low: float | None
    high: float | None
    """Ends of the 95 % confidence interval; None if the variance is unknown."""
    geometric: bool
    count: int
    """Numbers, or partners, that it is taken from."""
    least: float | None = None
    greatest: float | None = None
    """The range of the repetitions; None over partners."""

    @property
    def why(self) -> str:
        """Why there is no interval, where numbers spread: ``n = 5``."""
        return "no spread" if self.count > 1 and self.ends is None else f"n = {self.count}"

    @property
    def ends(self) -> tuple[float, float] | None:
        """Of the interval, or of the range of the repetitions where there is none; None without either."""
        low, high = (self.least, self.greatest) if self.low is None else (self.low, self.high)
        return None if low is None or high is None or not _spreads((low, high)) else (low, high)


def of_repetitions(numbers: Sequence[float], runs: int = 1) -> Mean | None:
    """The expected value over further repetitions, each with a seed of its own; None without numbers.

    Geometric if all numbers are positive: the interval (:func:`around`) holds ``exp`` of the expected logarithm. With
    fewer than ``FEWEST`` numbers, the range stands for it. If each number is the mean of ``RUNS_OF_A_MEAN`` independent
    ``runs`` at least, Student's t holds from ``FEWEST_MEANS`` numbers on.
    """
    if not numbers:
        return None
    scaled, geometric = _scaled(numbers)
    ends = around(scaled)
    if runs >= RUNS_OF_A_MEAN and FEWEST_MEANS <= len(scaled) < FEWEST and _spreads(scaled):
        half = quantile(len(scaled) - 1) * statistics.stdev(scaled) / math.sqrt(len(scaled))
        ends = -half, half
    found = _mean(statistics.fmean(scaled), ends, geometric, len(scaled))
    return replace(found, least=min(numbers), greatest=max(numbers))


def around(*samples: Sequence[float]) -> tuple[float, float] | None:
    """How far the ends of the 95 % interval of a mean, or of the sum of samples' means, are below and above it.

    None with fewer than ``FEWEST`` numbers in a sample, or if nothing spreads. Student's t, with the degrees of freedom
    of Welch (1947), corrected for skewness (Hall 1992) by the share for a single sample with as many.
    """
    if min(map(len, samples)) < FEWEST or not any(map(_spreads, samples)):
        return None
    variance = second = third = squares = 0.0
    for sample in samples:
        n, middle = len(sample), statistics.fmean(sample)
        mean_square = statistics.fmean((each - middle) ** 2 for each in sample)
        second += mean_square / n
        third += statistics.fmean((each - middle) ** 3 for each in sample) / n**2
        variance += mean_square / (n - 1)
        squares += (mean_square / (n - 1)) ** 2 / (n - 1)
    freedom = round(variance**2 / squares)
    skew = SKEWNESS_OF.get(freedom + 1, SKEWNESS) * third / second**1.5
    # the inverse of t + skew t²/3 + skew² t³/27 + skew/6
    low, high = (
        3 / skew * (math.cbrt(1 + skew * (each - skew / 6)) - 1) if abs(skew) > NO_SPREAD else each
        for each in (quantile(freedom), -quantile(freedom))
    )
    return -low * math.sqrt(variance), -high * math.sqrt(variance)


def over_partners(rows: Sequence[Mapping[int, float]]) -> Mean | None:
    """The expected value over further partners and further repetitions; None without numbers.

    ``rows``: repetition -> number, per partner. Partners, repetitions (whose seed all partners share) and what is left
    are random in an additive model; each partner counts once. The half-width is nearly the larger of Student's t over
    the partners' means and over the repetitions' means, narrower where neither spreads more than single runs explain,
    times a factor that is calibrated by simulation for these numbers of partners, repetitions and runs. With one
    repetition, Student's t over the partners: the interval then holds for this repetition's seed alone. So it is with
    two partners, or partners without a repetition in common, where so many numbers are missing that nothing is left to
    tell seeds from runs by; there is no interval with more partners then, for t would cover 82 % only.
    Geometric if all numbers are positive.
    """
    known = [row for row in rows if row]
    scaled, geometric = _scaled([number for row in known for number in row.values()])
    if not scaled:
        return None
    source = iter(scaled)
    table = [{repetition: next(source) for repetition in row} for row in known]
    means = [statistics.fmean(row.values()) for row in table]
    half = _half_width(table, means) if len(table) > 1 and _spreads(scaled) else None
    return _mean(statistics.fmean(means), None if half is None else (-half, half), geometric, len(table))


def quantile(freedom: int) -> float:
    """97.5 % quantile of Student's t."""
    return student_quantile(0.025, freedom)


def additive(rows: Sequence[int], columns: Sequence[int], values: Floats) -> tuple[Floats, Floats, Floats]:
    """Least squares of ``values`` by row and column: effects of the columns (mean 0), of the rows, and residuals.

    Each row from 0 on has a value. Effects are arbitrary, but not the residuals, if some rows and columns have no
    values in common with the others.
    """
    row, column = np.asarray(rows), np.asarray(columns)
    if row.max() < column.max():  # the smaller number of unknowns is solved for
        by_row, by_column, residuals = _additive(column, row, values)
    else:
        by_column, by_row, residuals = _additive(row, column, values)
    middle = by_column.mean()
    return by_column - middle, by_row + middle, residuals


def _additive(row: Integers, column: Integers, values: Floats) -> tuple[Floats, Floats, Floats]:
    """As :func:`additive`, but for a constant in the effects; takes memory for the square of the number of columns."""
    runs = np.zeros((row.max() + 1, column.max() + 1))
    np.add.at(runs, (row, column), 1)
    per_row = runs.sum(axis=1)
    # the rows' effects eliminated, the normal equations have one unknown per column
    left = np.diag(runs.sum(axis=0)) - runs.T @ (runs / per_row[:, None])
    right = np.bincount(column, values) - runs.T @ (np.bincount(row, values) / per_row)
    by_column = np.linalg.pinv(left, rcond=_SINGULAR, hermitian=True) @ right
    by_row = np.bincount(row, values - by_column[column]) / per_row
    residuals: Floats = values - by_row[row] - by_column[column]
    return by_column, by_row, residuals


def _half_width(table: Sequence[Mapping[int, float]], means: Sequence[float]) -> float | None:
    """Of the interval of the mean of the rows' means; None if nothing spreads."""
    numbers = {repetition: n for n, repetition in enumerate(sorted({each for row in table for each in row}))}
    rows = [n for n, row in enumerate(table) for _ in row]
    columns = [numbers[repetition] for row in table for repetition in row]
    freedom = len(rows) - len(table) - len(numbers) + 1
    if freedom < 1 and 1 < len(numbers) < len(columns) and len(table) > 2:
        return None
    if len(numbers) < 2 or freedom < 1:
        half = quantile(len(means) - 1) * statistics.stdev(means) / math.sqrt(len(means))
        return half or None
    by_column, by_row, left = additive(rows, columns, np.array([x for row in table for x in row.values()]))
    weights = np.array([1 / (len(table) * len(row)) for row in table for _ in row])
    degrees = len(table) - 1, len(numbers) - 1, freedom
    found = np.array(
        [
            _squares(by_row) / degrees[0] / len(table),
            _squares(by_column) / degrees[1] * float((np.bincount(columns, weights) ** 2).sum()),
            float((left**2).sum()) / degrees[2] * float((weights**2).sum()),
        ]
    )
    return float(half_widths(found[:, None], degrees)[0]) or None


def half_widths(squares: Floats, degrees: tuple[int, int, int]) -> Floats:
    """Of 95 % intervals of a mean over partners and repetitions, both random, shape (n,).

    ``squares``: mean squares of partners, of repetitions and of single runs, each divided so that it estimates what
    single runs contribute to the variance of the mean, and the first two also what their own spread contributes,
    (3, n). ``degrees``: of freedom of each.
    """
    return _factor(*degrees) * _combined(squares, *degrees[:2])


def _combined(squares: Floats, partners: int, repetitions: int) -> Floats:
    """Half-widths before calibration."""
    by_partner, by_repetition, rest = squares
    wider: Floats = (
        (quantile(partners) ** 2 * by_partner) ** (NORM / 2)
        + (quantile(repetitions) ** 2 * by_repetition) ** (NORM / 2)
    ) ** (1 / NORM)
    both = by_partner + by_repetition
    narrower: Floats = wider * np.divide(both, both + REST * rest, out=np.zeros_like(both), where=both > 0)
    return narrower


def coverage(widths: Floats) -> Floats:
    """Mean coverage in each row of half-widths, given in standard deviations of a normal mean; (rows, n) -> (rows,)."""
    held: Floats = np.interp(widths, _DEVIATIONS, _HELD).mean(axis=1)
    return held


@lru_cache(maxsize=64)
def _factor(partners: int, repetitions: int, rest: int) -> float:
    """Factor of the half-width over partners for these degrees of freedom, from simulated tables.

    With it, coverage at all pairs of ``RATIOS`` ranges about ``MIDDLE``, and from ``LOWEST`` on where it would begin
    below.
    """
    rng = np.random.default_rng(SEED)
    drawn = [rng.chisquare(freedom, DRAWS) / freedom for freedom in (partners, repetitions, rest)]
    widths = np.array(
        [
            _combined(
                np.stack([(1 + partner) * drawn[0], (1 + repetition) * drawn[1], drawn[2]]), partners, repetitions
            )
            / math.sqrt(1 + partner + repetition)
            for partner, repetition in product(RATIOS, RATIOS)
        ]
    )
    low, high = FACTORS
    while high - low > PRECISION:
        factor = (low + high) / 2
        held = coverage(factor * widths)
        if held.min() >= LOWEST and held.min() + held.max() >= 2 * MIDDLE:
            high = factor
        else:
            low = factor
    return high


def _squares(numbers: Floats) -> float:
    return float(((numbers - numbers.mean()) ** 2).sum())


def _scaled(numbers: Sequence[float]) -> tuple[list[float], bool]:
    geometric = min(numbers, default=0.0) > 0
    return [math.log(number) for number in numbers] if geometric else list(numbers), geometric


def _spreads(numbers: Sequence[float]) -> bool:
    return max(numbers) - min(numbers) > NO_SPREAD * max(1.0, *map(abs, numbers))


def _mean(middle: float, around: tuple[float, float] | None, geometric: bool, count: int) -> Mean:
    ends = (None, None) if around is None else (middle + around[0], middle + around[1])
    value, low, high = (
        (math.exp(min(end, 700.0)) if geometric and end is not None else end) for end in (middle, *ends)
    )
    return Mean(value if value is not None else middle, low, high, geometric, count)
