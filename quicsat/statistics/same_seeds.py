"""What changed between runs that repeat exactly, seed by seed; pure.

In virtual time, a run with a seed repeats whatever the machine does. If its outcome or its goodput changes from one
campaign to the next, something that the run depends on has changed: there is no noise that a test would have to
exclude.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from quicsat.model.outcomes import Outcome
from quicsat.statistics.samples import Sample, mean_ratio, positive
from quicsat.statistics.significance import LEVEL, MOST_EXACT, difference, matched

ROUNDING = 1e-9
"""A loss that is smaller than a limit by less than this is as large as the limit."""


@dataclass(frozen=True)
class SeedChanges:
    """A pair in two campaigns, over the seeds that are conclusive in both."""

    first: Sample
    second: Sample
    """Its runs with these seeds."""
    broken: int
    """Seeds with which it succeeded and no longer does."""
    fixed: int
    """Seeds with which it succeeds and did not."""
    ratio: float | None
    """By how much the mean over the seeds with a number in both has grown, see ``mean_ratio``; None without any."""
    numbers: int
    """Those seeds."""
    agreeing: int
    """Those of them with which the metric changed in the direction of ``ratio``."""
    worst: float
    """The largest loss with a seed, as a relative change: -0.3 for a drop by 30 %; 0 if there is no loss."""
    best: float
    """The largest gain with a seed; 0 if there is none."""
    missing: int
    """Seeds that are conclusive in the first only."""

    @property
    def direction(self) -> str:
        """``4/5``: with how many seeds it changed as the mean did; empty if there is only one."""
        return f"{self.agreeing}/{self.numbers}" if self.numbers > 1 else ""

    @property
    def sure(self) -> bool:
        """Whether the direction of the mean is that of each seed, or of so many that chance would hardly do it."""
        return self.agreeing == self.numbers or self._differ(0.0)

    def may_have_lost(self, share: float) -> bool:
        """Whether a seed lost ``share`` of its number, others did not, and the mean may have lost as much by chance."""
        return _lost(self.worst, share) and not self.sure and not self._differ(share)

    def without_loss(self, share: float) -> bool:
        """Whether each run of the first has one in the second that succeeds as well, and with no ``share`` lost."""
        return not self.missing and not self.broken and not _lost(self.worst, share)

    def _differ(self, share: float) -> bool:
        """Whether the numbers differ significantly from those of the first, less a share of each."""
        seeds = sorted(self.first.by_seed.keys() & self.second.by_seed.keys())
        before, after = ([each.by_seed[seed] for seed in seeds] for each in (self.first, self.second))
        if not positive(before, after) or share >= 1:
            return False
        test = matched if len(seeds) <= MOST_EXACT else difference
        return test([math.log((1 - share) * value) for value in before], list(map(math.log, after))) <= LEVEL


def _lost(change: float, share: float) -> bool:
    return change <= -share + ROUNDING


def seed_changes(first: Sample, second: Sample) -> SeedChanges | None:
    """A pair in two campaigns in which runs repeat; None if no conclusive runs have a seed in common."""
    before, after = first.outcome_by_seed, second.outcome_by_seed
    seeds = before.keys() & after.keys()
    if not seeds:
        return None
    succeeded = [(before[seed] is Outcome.SUCCEEDED, after[seed] is Outcome.SUCCEEDED) for seed in seeds]
    one, other = first.of_seeds(seeds), second.of_seeds(seeds)
    both = sorted(one.by_seed.keys() & other.by_seed.keys())
    values = [(one.by_seed[seed], other.by_seed[seed]) for seed in both]
    ratio = mean_ratio([value for value, _ in values], [value for _, value in values])
    changes = [new / old - 1 if old else new for old, new in values]
    return SeedChanges(
        one,
        other,
        broken=succeeded.count((True, False)),
        fixed=succeeded.count((False, True)),
        ratio=ratio,
        numbers=len(values),
        worst=min((0.0, *changes)),
        best=max((0.0, *changes)),
        missing=len(before.keys() - seeds),
        agreeing=0 if ratio is None else sum(_sign(new - old) == _sign(ratio) for old, new in values),
    )


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
