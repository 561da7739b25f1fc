"""By how much goodput changed, how sure that is, and how large a change would have been found; pure.

A *member* is a repetition. Members with the same seed have the same losses and, in virtual time, the same
perturbations: without a change, it is chance which of the two runs is faster.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import starmap

from quicsat.statistics.intervals import FEWEST, around, quantile
from quicsat.statistics.samples import ReliabilityGroup, Sample, positive
from quicsat.statistics.significance import MOST_EXACT, difference, matched, smallest_p, student_quantile, student_tail

POWER = 0.8
"""Of the tests, for the size of a change that would have been found."""
CORRELATED = 0.5
"""Correlation of equal members of a base and its placebo from which on equal members are paired."""
FEWEST_CORRELATED = 4
"""Members that both have, from which on their correlation is looked at."""
FEWEST_BLOCKS = 3
"""Members of either, from which on blocks are tested: two that happen to be alike are too common."""
FEWEST_MATCHED_BLOCKS = 4
"""Members with the same seeds, from which on their blocks are matched: fewer leave too few degrees of freedom."""
SAME = 1e-9
"""Relative: goodputs that differ by less are the same."""


@dataclass(frozen=True)
class Effect:
    """A change of the logarithm of goodput."""

    shift: float
    error: float
    """Its standard error."""
    freedom: int
    """Degrees of freedom of the error."""
    p: float
    """Two-sided, not corrected."""
    smallest: float
    """The smallest p-value that the test can reach with these numbers."""
    possible: float
    """The same if all members had changed."""
    agreeing: int = 0
    """Members that changed in this direction, of those with the same seeds in both."""
    members: int = 0
    """With the same seeds in both."""
    around: tuple[float, float] | None = None
    """How far the ends of the 95 % interval of ``shift`` are below and above it."""

    @property
    def ratio(self) -> float:
        """By how much the geometric mean has grown: -0.3 is a drop by 30 %."""
        return math.expm1(self.shift)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of ``ratio``, 95 %; None with so few numbers that one of two levels is often not among them."""
        if self.around is None:
            return None
        low, high = self.around
        return math.expm1(self.shift + low), math.expm1(min(self.shift + high, 700.0))

    def detectable(self, level: float) -> float:
        """The share lost that a test at this level would have found with ``POWER``; 1.0 if none would have been."""
        if not self.freedom or self.possible > level:
            return 1.0
        quantiles = student_quantile(level / 2, self.freedom) + student_quantile(1 - POWER, self.freedom)
        return -math.expm1(-quantiles * self.error)


def identical(first: Sample, second: Sample) -> bool:
    """Whether all members that both have are the same in outcome and number, and there are some."""
    before, after = first.outcome_by_seed, second.outcome_by_seed
    both = before.keys() & after.keys()
    ours, theirs = first.by_seed, second.by_seed
    numbers = [(ours[seed], theirs[seed]) for seed in ours.keys() & theirs.keys()]
    same = all(math.isclose(one, other, rel_tol=SAME) for one, other in numbers)  # 0 has no ratio
    return bool(both) and all(before[seed] is after[seed] for seed in both) and same


def comparable(first: Sample, second: Sample) -> bool:
    """Whether both have numbers, and logarithms of them."""
    return bool(first.values and second.values) and positive(first.values, second.values)


def correlated(first: Sample, placebo: Sample) -> bool:
    """Whether equal members of the same thing, measured twice, are alike, so that pairing them carries information."""
    before, after = first.by_seed, placebo.by_seed
    seeds = sorted(before.keys() & after.keys())
    logs = [[math.log(each[seed]) for seed in seeds] for each in (before, after)]
    if len(seeds) < FEWEST_CORRELATED or any(max(each) - min(each) < SAME for each in logs):
        return False
    return statistics.correlation(*logs) >= CORRELATED


def same_members(first: Sample, second: Sample) -> bool:
    """Whether both have the same seeds, few enough for the exact test of signs."""
    seeds = first.by_seed.keys()
    return 0 < len(seeds) <= MOST_EXACT and seeds == second.by_seed.keys()


def of_cell(first: Sample, second: Sample, *, paired: bool) -> Effect:
    """Exact test of the logarithms: of the signs of the changes of equal members if ``paired``, else permutation."""
    changes = _changes(first, second)
    if paired:
        return _of_ratios(changes, changes)
    before, after = (list(map(math.log, each.values)) for each in (first, second))
    sizes = len(before), len(after)
    found = _of_groups(before, after, smallest_p(*sizes), difference(before, after), changes)
    return replace(found, around=around(after, [-each for each in before]))


def of_group(group: ReliabilityGroup, *, paired: bool) -> Effect | None:
    """The change over all cells of a group, whose numbers must have logarithms; None if it cannot be tested.

    ``paired``: what the machine does to a member, it does to the equal member of the other campaign, too (in virtual
    time, and where builds run in turns). If each cell then has members in common, these are compared: without a change,
    the logarithm of the ratio of two runs is as likely positive as negative, and what a seed does to all cells cancels.
    Their signs are flipped (Fisher 1935); the ratios are taken to be independent of each other. Two members are
    compared in this way in any case, because two blocks could show nothing.

    Else members are blocks, because the cells of one repetition share a state of the machine: Student's t test of their
    means over the cells, each as its distance from the mean of its cell, with ``FEWEST_BLOCKS`` members in both, or of
    the changes of these means, with ``FEWEST_MATCHED_BLOCKS`` members with the same seeds. Its error is at least that
    of the mean of the cells' changes: few blocks that happen to be alike understate it if goodput has two levels.
    """
    cells = list(starmap(_changes, zip(group.first, group.second, strict=True)))
    members, (before, after) = _of_members(group), _blocks(group)
    few = min(len(before), len(after)) < FEWEST_BLOCKS
    if all(cells) and (paired or (few and len(members) > 1)):
        return _of_ratios([ratio for cell in cells for ratio in cell], members)
    if few:
        return None
    if len(before) >= FEWEST_MATCHED_BLOCKS and _same_seeds(group):
        changes = [after[repetition] - before[repetition] for repetition in before]
        found = _effect(statistics.fmean(changes), _error_of_mean(changes), len(changes) - 1, 1.0, 0.0, members)
    else:
        found = _of_groups([*before.values()], [*after.values()], 0.0, 1.0, members)
    count = min(sum(len(each.values) for each in many) for many in (group.first, group.second))
    shifts = [_mean_log(other) - _mean_log(one) for one, other in zip(group.first, group.second, strict=True)]
    error = max(found.error, _error_of_mean(shifts))
    statistic = abs(found.shift) / error if error else math.inf if found.shift else 0.0
    half = quantile(found.freedom) * error
    ends = (-half, half) if count >= FEWEST and half > SAME else None
    return replace(found, error=error, p=2 * student_tail(statistic, found.freedom), around=ends)


def _same_seeds(group: ReliabilityGroup) -> bool:
    """Whether both have the same repetitions with the same seeds, in each cell."""
    pairs = zip(group.first, group.second, strict=True)
    return all(
        first.by_repetition.keys() == second.by_repetition.keys() and first.by_seed.keys() == second.by_seed.keys()
        for first, second in pairs
    )


def _mean_log(sample: Sample) -> float:
    return statistics.fmean(map(math.log, sample.values))


def _changes(first: Sample, second: Sample) -> list[float]:
    """Logarithms of the ratios of equal members; ratios that differ from 1 by rounding alone are 1."""
    before, after = first.by_seed, second.by_seed
    if not comparable(first, second):
        return []
    logs = [math.log(after[seed] / before[seed]) for seed in sorted(before.keys() & after.keys())]
    return [each if abs(each) > SAME else 0.0 for each in logs]


def _of_ratios(ratios: Sequence[float], members: Sequence[float]) -> Effect:
    """The test flips the signs of the ratios."""
    smallest = min(1.0, 2.0 ** (1 - sum(each != 0 for each in ratios)))
    p = matched([0.0] * len(ratios), ratios)
    effect = _effect(statistics.fmean(ratios), _error_of_mean(ratios), len(ratios) - 1, p, smallest, members)
    return replace(effect, possible=2.0 ** (1 - len(ratios)), around=around(ratios))


def _squares(numbers: Sequence[float]) -> float:
    """Sum of the squared distances from the mean."""
    mean = statistics.fmean(numbers)
    return math.fsum((each - mean) ** 2 for each in numbers)


def _error_of_mean(numbers: Sequence[float]) -> float:
    """Standard error; 0 of a single number."""
    return math.sqrt(_squares(numbers) / max(1, len(numbers) - 1) / len(numbers))


def _of_groups(
    before: Sequence[float], after: Sequence[float], smallest: float, p: float, members: Sequence[float]
) -> Effect:
    """Of two groups with one variance."""
    shift = statistics.fmean(after) - statistics.fmean(before)
    freedom = len(before) + len(after) - 2
    squares = _squares(before) + _squares(after)
    error = math.sqrt(squares / freedom * (1 / len(before) + 1 / len(after))) if freedom else 0.0
    return _effect(shift, error, freedom, p, smallest, members)


def _effect(shift: float, error: float, freedom: int, p: float, smallest: float, members: Sequence[float]) -> Effect:
    return Effect(shift, error, freedom, p, smallest, smallest, sum(each * shift > 0 for each in members), len(members))


def _of_members(group: ReliabilityGroup) -> list[float]:
    """The change of each member that cells have in common, over these cells."""
    found = dict[int, float]()
    for one, other in zip(group.first, group.second, strict=True):
        seeds = sorted(one.by_seed.keys() & other.by_seed.keys())
        for seed, change in zip(seeds, _changes(one, other), strict=True):
            found[seed] = found.get(seed, 0.0) + change
    return list(found.values())


def _blocks(group: ReliabilityGroup) -> tuple[dict[int, float], dict[int, float]]:
    """Of each campaign a number per repetition: the mean distance of its logarithms from those of their cells."""
    found = list[dict[int, list[float]]](({}, {}))
    for cell in zip(group.first, group.second, strict=True):
        logs = [{number: math.log(value) for number, value in each.by_repetition.items()} for each in cell]
        centre = math.fsum(math.fsum(each.values()) / len(each) for each in logs) / 2
        for repetitions, each in zip(found, logs, strict=True):
            for number, value in each.items():
                repetitions.setdefault(number, []).append(value - centre)
    before, after = (
        {number: math.fsum(each) / len(each) for number, each in repetitions.items()} for repetitions in found
    )
    return before, after
