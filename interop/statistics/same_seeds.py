"""What changed between runs that repeat exactly, seed by seed; pure.

In virtual time, a run with a seed repeats whatever the machine does. If its outcome or its goodput changes from one
campaign to the next, something that the run depends on has changed: there is no noise that a test would have to
exclude.
"""

from __future__ import annotations

from dataclasses import dataclass

from interop.model.clock import Clock
from interop.model.implementation import CpuCost
from interop.model.outcomes import Outcome
from interop.model.results import Manifest
from interop.statistics.samples import Sample, mean_ratio
from interop.statistics.significance import matters

VIRTUAL_MACHINE = "virtual-time"
"""Image of the virtual machine among those of a campaign; its name changes with its source."""
FEWEST = 3
"""Seeds of a pair from which on their common direction is reported."""


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
    largest: float
    """The largest relative change of a seed, in either direction."""

    @property
    def direction(self) -> str:
        """``4/5``: with how many seeds it changed as the mean did; empty if they are too few to tell."""
        return f"{self.agreeing}/{self.numbers}" if self.numbers >= FEWEST else ""

    @property
    def without_number(self) -> bool:
        """Whether both succeeded, and with no seed do both have a number."""
        return not self.numbers and bool(self.first.succeeded and self.second.succeeded)

    @property
    def reported(self) -> bool:
        """Whether the mean changed enough to be reported."""
        return matters(self.ratio)

    @property
    def unchanged(self) -> bool:
        """Whether no seed has another outcome, or another number as far as it matters."""
        return not self.broken and not self.fixed and not matters(self.largest)


def repeatable(first: Manifest, second: Manifest) -> bool:
    """Whether a run with a seed repeats exactly in both campaigns.

    It does in virtual time with the same CPU costs in the same virtual machine, and on the same processor, as far as
    these are known.
    """
    others = other_virtual_machine(first, second) or other_processor(first, second)
    return same_costs(first, second) and not others


def other_virtual_machine(first: Manifest, second: Manifest) -> bool:
    """Whether both are known to have used virtual machines from different sources."""
    before, after = first.images.get(VIRTUAL_MACHINE), second.images.get(VIRTUAL_MACHINE)
    return before is not None and after is not None and before.reference != after.reference


def other_processor(first: Manifest, second: Manifest) -> bool:
    """Whether both are known to have run on different processors."""
    return bool(first.processor and second.processor) and first.processor != second.processor


def same_costs(first: Manifest, second: Manifest) -> bool:
    """Whether both use virtual time with the same CPU costs."""
    if not first.clock is second.clock is Clock.VIRTUAL or first.cpu_cost != second.cpu_cost:
        return False
    before, after = _own_cpu_costs(first), _own_cpu_costs(second)
    return first.own_cpu_costs is second.own_cpu_costs and all(
        before[name] == after[name] for name in before.keys() & after.keys()
    )


def _own_cpu_costs(manifest: Manifest) -> dict[str, CpuCost]:
    return {each.name: each.cpu_cost for each in manifest.implementations}


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
    return SeedChanges(
        one,
        other,
        broken=succeeded.count((True, False)),
        fixed=succeeded.count((False, True)),
        ratio=ratio,
        numbers=len(values),
        largest=max((abs(new / old - 1) if old else abs(new) for old, new in values), default=0.0),
        agreeing=0 if ratio is None else sum(_sign(new - old) == _sign(ratio) for old, new in values),
    )


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
