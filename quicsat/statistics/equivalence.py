"""Whether virtual time gives the same goodput as real time, within a margin: two one-sided tests; pure.

Schuirmann 1987: the ratio of two geometric means is within the margin if both ends of its 90 % interval are. See
docs/reference/statistics.md for the assumptions, and docs/measurements/statistics.md for level and power.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from quicsat.statistics.significance import proportions, student_quantile

MARGIN = 0.05
"""Relative: ratios from 1 / 1.05 to 1.05 are equivalent."""
LEVEL = 0.05
"""Of each of the one-sided tests; the interval covers 90 %."""
FEWEST_EQUIVALENT = 10
"""Runs with each clock from which on goodputs are called equivalent: fewer may all be on one of two levels."""
FEWEST = 3
"""Repetitions with each clock from which on there is an interval."""
BLOCKS_DIFFER = 2.0
"""Ratio of the mean squares between and within blocks above which blocks count instead of their repetitions."""


class Agreement(StrEnum):
    """Of the ratio of two geometric means."""

    EQUIVALENT = "equivalent"
    """The interval is within the margin."""
    DIFFERENT = "different"
    """The interval is outside of the margin."""
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class MeasuredRun:
    """A run that succeeded."""

    value: float
    """Positive, for example its goodput in bit/s."""
    repetition: str
    """Runs of different pairs with the same name share a state of the machine, or a member."""
    block: str = ""
    """Repetitions with the same name share a machine and a day."""
    seed: int = 0
    """Of its losses."""

    @property
    def logarithm(self) -> float:
        """Of the value."""
        return math.log(self.value)


@dataclass(frozen=True)
class BothClocks:
    """The runs of a pair over a link that succeeded."""

    real: tuple[MeasuredRun, ...]
    virtual: tuple[MeasuredRun, ...]


@dataclass(frozen=True)
class Equivalence:
    """The ratio of the geometric means, virtual to real time, over the pairs that both clocks have."""

    ratio: float
    interval: tuple[float, float] | None
    """90 %; None with fewer than ``FEWEST`` repetitions."""
    real: int
    virtual: int
    """Runs."""

    @property
    def verdict(self) -> Agreement:
        """Within the margin, outside of it, or not known."""
        low, high = self.interval or (0.0, math.inf)
        if low > 1 + MARGIN or high < 1 / (1 + MARGIN):
            return Agreement.DIFFERENT
        if min(self.real, self.virtual) >= FEWEST_EQUIVALENT and low > 1 / (1 + MARGIN) and high < 1 + MARGIN:
            return Agreement.EQUIVALENT
        return Agreement.UNDECIDED


@dataclass(frozen=True)
class _Estimate:
    """The squared error of a mean, and its degrees of freedom."""

    square: float
    freedom: float

    @property
    def half_width(self) -> float:
        """Of the interval."""
        return student_quantile(LEVEL, max(1, math.floor(self.freedom + 1e-9))) * math.sqrt(self.square)


def equivalence(pairs: Iterable[BothClocks], *, same_losses: bool) -> Equivalence | None:
    """Of one pair, or of several pairs of a server, each of which counts once; None without runs with both clocks.

    ``same_losses``: over a link with random loss, only runs with the same losses are compared, one by one. Elsewhere
    both clocks are taken to have the larger one of their variances: both sample the same chaos, and the clock with
    fewer runs may have missed a level. Of the intervals from single runs, from repetitions and, if machines or days
    differ, from these blocks, the widest one is taken.
    """
    known = [each for each in map(_with_same_losses, pairs) if each] if same_losses else list(pairs)
    known = [each for each in known if each.real and each.virtual]
    if not known:
        return None
    counts = (sum(len(each.real) for each in known), sum(len(each.virtual) for each in known))
    if same_losses:
        sides = [[_ratios(each) for each in known]]
    else:
        sides = [[each.virtual for each in known], [each.real for each in known]]
    means = [statistics.fmean(_mean(each) for each in side) for side in sides]
    shift = means[0] - (means[1] if len(means) > 1 else 0.0)
    return Equivalence(math.exp(shift), _interval(shift, sides, blocks_of=sides[-1]), *counts)


def outcomes_differ(real: tuple[int, int], virtual: tuple[int, int]) -> bool:
    """Whether the shares of runs that succeeded differ (Fisher's exact test); each: how many succeeded, and of how
    many."""
    return proportions(*real, *virtual) <= LEVEL


def _with_same_losses(pair: BothClocks) -> BothClocks:
    """The runs with seeds that both clocks have; a seed may have been measured several times in real time."""
    seeds = {each.seed for each in pair.real} & {each.seed for each in pair.virtual}
    real, virtual = (tuple(run for run in runs if run.seed in seeds) for runs in (pair.real, pair.virtual))
    return BothClocks(real, virtual)


def _ratios(pair: BothClocks) -> tuple[MeasuredRun, ...]:
    """Each run in real time with the mean in virtual time of the same seed: their ratio."""
    members = dict[int, list[float]]()
    for run in pair.virtual:
        members.setdefault(run.seed, []).append(run.logarithm)
    return tuple(
        MeasuredRun(math.exp(statistics.fmean(members[run.seed])) / run.value, run.repetition, run.block, run.seed)
        for run in pair.real
    )


def _interval(
    shift: float, sides: Sequence[Sequence[Sequence[MeasuredRun]]], *, blocks_of: Sequence[Sequence[MeasuredRun]]
) -> tuple[float, float] | None:
    """The ends of the ratio's interval; None with too few repetitions."""
    units = [_units(side) for side in sides]
    if min(map(len, units)) < FEWEST:
        return None
    halves = [_of_runs(sides).half_width, _of_groups([list(each.values()) for each in units]).half_width]
    if (blocks := _of_blocks(units, blocks_of)) is not None:
        halves.append(blocks.half_width)
    return math.exp(shift - max(halves)), math.exp(min(shift + max(halves), 700.0))


def _of_runs(sides: Sequence[Sequence[Sequence[MeasuredRun]]]) -> _Estimate:
    """Over pairs whose runs are independent of each other."""
    cells = [_of_groups([[run.logarithm for run in runs] for runs in cell]) for cell in zip(*sides, strict=True)]
    total = math.fsum(each.square for each in cells)
    weights = math.fsum(each.square**2 / each.freedom for each in cells)
    freedom = total**2 / weights if weights else math.fsum(each.freedom for each in cells)
    return _Estimate(total / len(cells) ** 2, freedom)


def _of_groups(groups: Sequence[Sequence[float]]) -> _Estimate:
    """The error of the mean, or of the difference of two means, with the larger variance for both."""
    variance, freedom = max(((_variance(each), len(each) - 1) for each in groups if len(each) > 1),
                            default=(0.0, 1))  # fmt: skip
    return _Estimate(variance * math.fsum(1 / len(each) for each in groups), freedom)


def _units(side: Sequence[Sequence[MeasuredRun]]) -> dict[str, float]:
    """A number per repetition with half of the pairs or more: the mean distance of its logarithms from their pairs'."""
    found = dict[str, list[float]]()
    for runs in side:
        mean = _mean(runs)
        for run in runs:
            found.setdefault(run.repetition, []).append(run.logarithm - mean)
    return {name: math.fsum(each) / len(each) for name, each in found.items() if 2 * len(each) >= len(side)}


def _of_blocks(units: Sequence[dict[str, float]], runs: Sequence[Sequence[MeasuredRun]]) -> _Estimate | None:
    """From the blocks of repetitions in real time; None if they do not differ by more than their repetitions."""
    block_of = {run.repetition: run.block for pair in runs for run in pair}
    blocks = dict[str, list[float]]()
    for repetition, number in units[-1].items():
        blocks.setdefault(block_of[repetition], []).append(number)
    count, within = len(units[-1]), len(units[-1]) - len(blocks)
    if len(blocks) < 2 or not within:
        return None
    mean = statistics.fmean(units[-1].values())
    means = {block: statistics.fmean(each) for block, each in blocks.items()}
    between = math.fsum(len(each) * (means[block] - mean) ** 2 for block, each in blocks.items()) / (len(blocks) - 1)
    rest = math.fsum((number - means[block]) ** 2 for block, each in blocks.items() for number in each) / within
    if between <= BLOCKS_DIFFER * rest:
        return None
    virtual = [list(each.values()) for each in units[:-1]]
    square = between / count + math.fsum(_variance(each) / len(each) for each in virtual)
    return _Estimate(square, len(blocks) - 1)


def _variance(numbers: Sequence[float]) -> float:
    """Of a sample (n - 1)."""
    mean = statistics.fmean(numbers)
    return math.fsum((each - mean) ** 2 for each in numbers) / (len(numbers) - 1)


def _mean(runs: Sequence[MeasuredRun]) -> float:
    return statistics.fmean(run.logarithm for run in runs)
