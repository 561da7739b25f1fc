"""Whether two groups of repetitions differ by more than chance: exact tests, and correction for many of them; pure."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from quicsat.model.arrays import Floats

MOST_EXACT = 32
"""Numbers in both groups together up to which every arrangement is counted; a few milliseconds."""
PARTS, MOST_PARTS = 64, 2**15
"""What the mean of more numbers is divided into, and at most their sum, to count the choices of their signs."""
TIE = 1e-9
"""Relative: arrangements whose sums differ by less are as extreme as each other, for sums are rounded."""
LEVEL = 0.05
"""Largest corrected p-value that is significant in comparisons: the promised share of false alarms."""
SMALLEST_CHANGE = 0.01
"""Relative change of a mean below which nothing is reported: comparisons and steps of trends use it, in both clocks."""
_FARTHEST = 1e9
"""Quantile beyond which none is looked for."""
_REMEMBERED = 4096
"""Results for numbers of repetitions: thousands of cells have the same ones."""
_ROUNDING = 1e-7
"""Relative: goodputs that were stored with some digits less still differ by 1 %."""


def matters(ratio: float | None, least: float = SMALLEST_CHANGE) -> bool:
    """Whether a relative change (-0.3: a drop by 30 %) is at least ``least``; None is no change."""
    return ratio is not None and abs(ratio) >= least * (1 - _ROUNDING)


def difference(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p-value of a difference in location, 0..1.

    Exact permutation test of the difference of means (Fisher 1935; Pitman 1937) for up to 32 numbers in all, else the
    Mann–Whitney test with its normal approximation, corrected for ties and continuity. 1.0 if a group is empty.
    """
    if not first or not second:
        return 1.0
    if len(first) + len(second) <= MOST_EXACT:
        return permutation(first, second)
    return mann_whitney(first, second)


def permutation(first: Sequence[float], second: Sequence[float]) -> float:
    """Share of all arrangements of the numbers whose means are at least as far apart as the given ones.

    The sums of all choices are not made one by one: a choice is one from each half of the numbers, and sorted sums of
    the halves can be counted (Pagano and Tritchler 1983 do so for whole numbers).
    """
    pooled = np.array([*first, *second], dtype=np.float64)
    pooled -= pooled.mean()
    slack = TIE * float(np.abs(pooled).sum())
    observed = abs(float(pooled[: len(first)].sum())) - slack
    if observed <= 0:
        return 1.0
    middle = len(pooled) // 2
    left, right = _sums_by_count(pooled[:middle]), _sums_by_count(pooled[middle:])
    extreme = 0
    for count, sums in enumerate(left):
        if 0 <= len(first) - count < len(right):
            others = right[len(first) - count]
            extreme += int((len(others) - np.searchsorted(others, observed - sums, side="left")).sum())
            extreme += int(np.searchsorted(others, -observed - sums, side="right").sum())
    return extreme / math.comb(len(pooled), len(first))


def _sums_by_count(numbers: Floats) -> list[Floats]:
    """Sorted sums of all choices of 0, 1, 2, … of the numbers."""
    sums, counts = np.zeros(1), np.zeros(1, dtype=np.int64)
    for number in numbers:
        sums, counts = np.concatenate([sums, sums + number]), np.concatenate([counts, counts + 1])
    return [np.sort(sums[counts == count]) for count in range(len(numbers) + 1)]


def matched(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p-value of a difference between numbers that belong together, 0..1; 1.0 if there are none.

    Exact: the share of all choices of signs whose sum of differences is at least as far from 0 as the given one
    (Fisher 1935). The halves of the choices are counted as in :func:`permutation`, or more than 32 differences as
    whole numbers.
    """
    differences = np.asarray(second, dtype=np.float64) - np.asarray(first, dtype=np.float64)
    if len(differences) > MOST_EXACT:
        return _of_signs(differences)
    observed = abs(float(differences.sum())) - TIE * float(np.abs(differences).sum())
    if observed <= 0:
        return 1.0
    middle = len(differences) // 2
    left, right = np.zeros(1), np.zeros(1)
    for each in differences[:middle]:
        left = np.concatenate([left + each, left - each])
    for each in differences[middle:]:
        right = np.concatenate([right + each, right - each])
    right = np.sort(right)
    extreme = int((len(right) - np.searchsorted(right, observed - left, side="left")).sum())
    extreme += int(np.searchsorted(right, -observed - left, side="right").sum())
    return float(extreme / 2 ** len(differences))


def _of_signs(numbers: Floats) -> float:
    """As :func:`matched`, of numbers rounded to parts of their mean: sums of whole numbers are as likely as can be
    counted (Pagano and Tritchler 1983). Rounding changes no sign, so the test remains exact.
    """
    total = float(np.abs(numbers).sum())
    if not total:
        return 1.0
    whole = np.rint(numbers * (min(PARTS * len(numbers), MOST_PARTS) / total)).astype(np.int64)
    observed, reach = abs(int(whole.sum())), 0
    shares = np.zeros(int(np.abs(whole).sum()) + 1)  # of the choices whose positive numbers have this sum
    shares[0] = 1.0
    for each in np.sort(np.abs(whole)):
        before, reach = shares[: reach + 1] / 2, reach + int(each)
        shares[: len(before)] = before
        shares[reach + 1 - len(before) : reach + 1] += before
    return min(1.0, 2 * float(shares[(reach + observed + 1) // 2 :].sum())) if observed else 1.0


@lru_cache(_REMEMBERED)
def smallest_p(first: int, second: int) -> float:
    """The smallest p-value that groups of these sizes can reach with the permutation test."""
    if not first or not second:
        return 1.0
    return min(1.0, (2 if first == second else 1) / math.comb(first + second, first))


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float:
    """Normal approximation (Mann and Whitney 1947), with ties; 1.0 if all numbers are the same."""
    pooled = [*first, *second]
    n, m, total = len(first), len(second), len(pooled)
    statistic = float(ranks(pooled)[:n].sum()) - n * (n + 1) / 2
    ties = sum(count**3 - count for count in Counter(pooled).values())
    variance = n * m / 12 * (total + 1 - ties / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    distance = max(0.0, abs(statistic - n * m / 2) - 0.5) / math.sqrt(variance)
    return math.erfc(distance / math.sqrt(2))


def ranks(numbers: Sequence[float] | Floats) -> Floats:
    """From 1; equal numbers share the mean of theirs."""
    _, inverse, counts = np.unique(np.asarray(numbers, dtype=np.float64), return_inverse=True, return_counts=True)
    shared: Floats = np.cumsum(counts) - (counts - 1) / 2
    return shared[inverse]


@lru_cache(_REMEMBERED)
def proportions(hits: int, of: int, other_hits: int, other_of: int) -> float:
    """Two-sided p-value of Fisher's exact test for two shares (Fisher 1922); 1.0 if one has no trials."""
    if not of or not other_of:
        return 1.0
    total, successes = of + other_of, hits + other_hits
    ways = math.comb(total, successes)
    low, high = max(0, successes - other_of), min(of, successes)
    chances = [math.comb(of, k) * math.comb(other_of, successes - k) for k in range(low, high + 1)]
    return min(1.0, sum(chance for chance in chances if chance <= chances[hits - low]) / ways)


@lru_cache(_REMEMBERED)
def smallest_of_proportions(hits: int, of: int, other_hits: int, other_of: int) -> float:
    """The smallest p-value that :func:`proportions` can reach with as many successes in all."""
    total = hits + other_hits
    ends = {max(0, total - other_of), min(of, total)}
    return min(proportions(end, of, total - end, other_of) for end in ends)


def which_can_tell(smallest: Sequence[float], level: float) -> list[bool]:
    """Which tests of a family can become significant, by the smallest p-value that each can reach (Tarone 1990).

    The largest set that remains able at ``level`` divided by its size; others need not be made nor corrected for.
    """
    ordered = sorted(smallest)
    for count in range(1, len(smallest) + 1):
        if bisect_right(ordered, level / count) <= count:
            return [p <= level / count for p in smallest]
    return [False] * len(smallest)


def allot(smallest: Sequence[Sequence[float]], shares: Sequence[float], level: float = LEVEL) -> list[list[float]]:
    """The level of each test of several families, by the smallest p-value that it can reach; 0 for those not made.

    Each family has a share of the level, and its tests that can become significant have equal parts of it. The share
    of a family without any goes to the others; first that of families that could not even with all of the level.
    """
    active = [any(which_can_tell(each, level)) for each in smallest]
    while total := sum(share for share, on in zip(shares, active, strict=True) if on):
        levels = [level * share / total * on for share, on in zip(shares, active, strict=True)]
        able = [which_can_tell(each, part) for each, part in zip(smallest, levels, strict=True)]
        before, active = active, [any(each) for each in able]
        if active == before:
            return [[part / max(1, sum(each)) * can for can in each] for each, part in zip(able, levels, strict=True)]
    return [[0.0] * len(each) for each in smallest]


def holm(p_values: Sequence[float], levels: Sequence[float] = ()) -> list[float]:
    """p-values adjusted so that false alarms in all tests together stay below the level (Holm 1979); same order.

    ``levels``: what part of it each test has, more than 0; by default equal parts.
    """
    parts = levels or [1.0] * len(p_values)
    order = sorted(range(len(p_values)), key=lambda place: p_values[place] / parts[place])
    adjusted, least, left = [1.0] * len(p_values), 0.0, math.fsum(parts)
    for position in order:
        least = max(least, min(1.0, p_values[position] / parts[position] * left))
        adjusted[position], left = least, left - parts[position]
    return adjusted


@lru_cache(_REMEMBERED)
def student_tail(statistic: float, freedom: int) -> float:
    """Share of Student's t distribution above a number of at least 0 (Abramowitz and Stegun 1964, 26.7.3, 26.7.4)."""
    angle = math.atan(statistic / math.sqrt(freedom))
    odd, square = freedom % 2, math.cos(angle) ** 2
    term = total = math.sin(angle) * (math.cos(angle) if odd else 1.0) if freedom > 1 else 0.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= square * (k - 1) / k
        total += term
    return max(0.0, (1 - (2 / math.pi * (angle + total) if odd else total)) / 2)


@lru_cache(_REMEMBERED)
def student_quantile(tail: float, freedom: int) -> float:
    """The number of at least 0 that so small a share (at most 0.5) of Student's t distribution exceeds."""
    low, high = 0.0, 1.0
    while student_tail(high, freedom) > tail and high < _FARTHEST:
        low, high = high, 2 * high
    while high - low > TIE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if student_tail(middle, freedom) > tail else (low, middle)
    return high
