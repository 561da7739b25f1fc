"""Whether an implementation is faster or slower than before, over all its pairs together; pure.

A pair with three repetitions tells little. All pairs of an implementation in one role, or all pairs, can: if a change
slows most of them, their changes have one sign.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import starmap

from quicsat.statistics.samples import ReliabilityGroup, Sample, positive
from quicsat.statistics.significance import difference, matched, smallest_p

UNITS = 24
"""Sums into which ratios are put together at most; all choices of their signs are counted in a millisecond."""


def measured(cells: Sequence[tuple[Sample, Sample]]) -> list[tuple[Sample, Sample]]:
    """The pairs whose numbers have logarithms in both campaigns."""
    return [(one, other) for one, other in cells if one.values and other.values and positive(one.values, other.values)]


def smallest(group: ReliabilityGroup) -> float:
    """The smallest p-value that :func:`change` can reach."""
    units = _units(group)
    return smallest_p(*map(len, _blocks(group))) if units is None else min(1.0, 2.0 ** (1 - len(units)))


def change(group: ReliabilityGroup) -> tuple[float, float]:
    """By how much the geometric mean has grown (-0.3: a drop by 30 %), and its two-sided p-value.

    If each pair has seeds in common, runs with equal seeds are compared: without a change, the logarithm of their ratio
    is as likely positive as negative, and what a seed does to all pairs cancels. Signs are flipped (Fisher 1935), of
    ``UNITS`` sums of ratios at most. It takes these ratios to be independent of each other.

    Else whole repetitions are permuted, because all pairs of one share a seed: the means over the pairs, each as its
    distance from the mean of its pair.
    """
    units = _units(group)
    if units is not None:
        mean = math.fsum(units) / sum(len(_common(*cell)) for cell in zip(group.first, group.second, strict=True))
        return math.exp(mean) - 1, matched([0.0] * len(units), units)
    before, after = _blocks(group)
    grown = math.fsum(after) / len(after) - math.fsum(before) / len(before)
    return math.exp(grown) - 1, difference(before, after)


def _common(first: Sample, second: Sample) -> list[float]:
    """Logarithms of the ratios of runs with equal seeds."""
    before, after = first.by_seed, second.by_seed
    return [math.log(after[seed] / before[seed]) for seed in sorted(before.keys() & after.keys())]


def _units(group: ReliabilityGroup) -> list[float] | None:
    """Ratios of runs with equal seeds, as ``UNITS`` sums if they are more; None unless each pair has such runs."""
    cells = list(starmap(_common, zip(group.first, group.second, strict=True)))
    if not all(cells):
        return None
    ratios = [ratio for cell in cells for ratio in cell]
    return [math.fsum(ratios[start::UNITS]) for start in range(min(UNITS, len(ratios)))]


def _blocks(group: ReliabilityGroup) -> tuple[list[float], list[float]]:
    """Of each campaign a number per repetition: the mean distance of its logarithms from those of their pairs."""
    found = list[dict[int, list[float]]](({}, {}))
    for cell in zip(group.first, group.second, strict=True):
        logs = [{number: math.log(value) for number, value in each.by_repetition.items()} for each in cell]
        centre = math.fsum(math.fsum(each.values()) / len(each) for each in logs) / 2
        for repetitions, each in zip(found, logs, strict=True):
            for number, value in each.items():
                repetitions.setdefault(number, []).append(value - centre)
    before, after = ([math.fsum(each) / len(each) for each in repetitions.values()] for repetitions in found)
    return before, after
