"""What has changed between two campaigns, or differs between two test cases of one, with its significance; pure.

Of each pair two things are tested: whether it succeeds as often (Fisher's exact test), and whether the repetitions that
succeeded are as fast (permutation of the logarithms). Of each implementation per role, and of all pairs, it is tested
whether they succeed as often (``reliability``). Holm's correction goes over all of these tests together. Whether all
pairs, and each implementation over all its pairs, are as fast (``group_speed``) has a level of its own, half of it for
all pairs. Two campaigns of the same thing raise an alarm, any alarm, in at most 5 of 100 cases.
See docs/reference/statistics.md for how that was checked.

Where runs repeat exactly, in virtual time, pairs with seeds in common are compared seed by seed instead
(``same_seeds``). Goodput that changed by less than ``SMALLEST_CHANGE`` has not changed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import count

from interop.model.implementation import Role
from interop.model.results import Manifest, ResultSet
from interop.model.test_case import TestCase
from interop.statistics import group_speed
from interop.statistics.other_images import changed_images
from interop.statistics.reliability import ReliabilityGroup, groups
from interop.statistics.reliability import change as change_of_group
from interop.statistics.reliability import smallest as smallest_of_change
from interop.statistics.same_conditions import differing
from interop.statistics.same_seeds import (
    SeedChanges,
    other_processor,
    other_virtual_machine,
    repeatable,
    same_costs,
    seed_changes,
)
from interop.statistics.samples import EFFICIENCY, GOODPUT, Sample, find_case, mean_ratio, positive, samples
from interop.statistics.significance import (
    MOST_EXACT,
    difference,
    holm,
    matched,
    matters,
    proportions,
    smallest_of_proportions,
    smallest_p,
    which_can_tell,
)

LEVEL = 0.025
"""Largest p-value that is significant: half of the promised share of false alarms for pairs and success rates, and half
for the goodput of implementations."""


ALL = "all"
"""Partner and test case in a change of an implementation over all its pairs."""


class Change(StrEnum):
    """What became of a pair, worst first."""

    BROKEN = "new failure"
    """All repetitions succeeded, now none does. Where runs repeat exactly: one seed succeeded, and no longer does."""
    LESS_RELIABLE = "fails more often"
    SLOWER = "slower"
    FASTER = "faster"
    MORE_RELIABLE = "fails less often"
    FIXED = "fixed"
    """None succeeded, now all do. Where runs repeat exactly: one seed succeeds that did not, and none is broken."""
    PERHAPS_BROKEN = "new failure, not significant"
    """As a new failure, but chance may have done it; no alarm."""
    PERHAPS_FIXED = "fixed, not significant"
    NONE = "no change shown"
    FAILING = "fails in both"
    ABSENT = "not in both"
    """At least one of the two has no valid attempt of the pair."""


WORSE = frozenset({Change.BROKEN, Change.LESS_RELIABLE, Change.SLOWER})
BETTER = frozenset({Change.FIXED, Change.MORE_RELIABLE, Change.FASTER})
UNSURE = frozenset({Change.PERHAPS_BROKEN, Change.PERHAPS_FIXED})
"""Shown as what changed, but no alarm."""
_PLACE = {change: place for place, change in enumerate(Change)}


@dataclass(frozen=True)
class PairChange:
    """A pair in both."""

    first: Sample
    second: Sample
    change: Change
    p: float | None
    """Of the test that decided, or the smaller one; corrected for the number of tests. None if there is none."""
    seeds: SeedChanges | None = None
    """If the pair was compared seed by seed, without a test: its runs repeat exactly."""
    over_all: float | None = None
    """By how much an implementation has become faster over all its pairs; None for a pair, and for success rates."""
    blind: bool = False
    """Its goodput is as before, or a test with so few repetitions cannot show that it is not."""
    blind_to_failures: bool = False
    """The same of its success rate."""

    speed: Change = Change.NONE
    """Whether the repetitions that succeeded are slower or faster, whatever became of the others."""

    @cached_property
    def ratio(self) -> float | None:
        """By how much the mean has grown, see ``mean_ratio``."""
        if self.over_all is not None:
            return self.over_all
        return mean_ratio(self.first.values, self.second.values) if self.seeds is None else self.seeds.ratio


@dataclass(frozen=True)
class Comparison:
    """All pairs that one of the two has."""

    pairs: tuple[PairChange, ...]
    """Those that got worse first, then those that got better; the most significant first."""
    tests: int
    """How many tests were made."""
    groups: tuple[PairChange, ...] = ()
    """Implementations whose success rate or goodput changed over all their pairs together, the most significant first.

    Their partner and test case are ``ALL``.
    """
    other_processor: bool = False
    """Runs with the same seeds would be compared seed by seed, had both campaigns run on the same processor."""
    other_virtual_machine: bool = False
    """The same, for virtual machines from the same sources."""
    other_conditions: tuple[tuple[str, str], ...] = ()
    """Names of test cases whose conditions differ, and what differs, in words."""
    changed_images: tuple[str, ...] = ()
    """A line for each image that both have and that differs."""

    @property
    def compared_by_seed(self) -> int:
        """Pairs that were compared seed by seed."""
        return sum(pair.seeds is not None for pair in self.pairs)

    @property
    def tested(self) -> bool:
        """Whether p-values say something: not if all pairs in both were compared seed by seed."""
        in_both = [pair for pair in self.pairs if pair.change is not Change.ABSENT]
        return not in_both or any(pair.seeds is None for pair in in_both)

    @property
    def blind(self) -> int:
        """Pairs with numbers in both, and with too few repetitions for a significant difference in speed."""
        return sum(pair.blind for pair in self.pairs)

    @property
    def lost(self) -> int:
        """Pairs with a conclusive result in the first only."""
        return sum(bool(pair.first.conclusive and not pair.second.conclusive) for pair in self.pairs)

    @property
    def enough(self) -> int:
        """Repetitions from which on a test of the goodput of each pair can be significant."""
        measured = sum(bool(pair.first.values and pair.second.values) for pair in self.pairs)
        return next(n for n in count(2) if smallest_p(n, n) * measured <= LEVEL)

    @property
    def undecided(self) -> bool:
        """Whether something may be worse that could not be found: nothing compared, or a pair lost or blind."""
        unsure = self.counts[Change.PERHAPS_BROKEN] + self.blind + self.lost
        return unsure > 0 or all(pair.change is Change.ABSENT for pair in self.pairs)

    @property
    def counts(self) -> Counter[Change]:
        """Pairs by change."""
        return Counter(pair.change for pair in self.pairs)

    @property
    def alarms(self) -> int:
        """Pairs and implementations that changed."""
        return len(self.groups) + sum(pair.change in WORSE | BETTER for pair in self.pairs)

    @property
    def worse(self) -> bool:
        """Whether a pair or an implementation got worse, with significance."""
        return any(each.change in WORSE for each in (*self.pairs, *self.groups))


@dataclass(frozen=True)
class _Cell:
    first: Sample
    second: Sample

    @property
    def conclusive(self) -> bool:
        return bool(self.first.conclusive and self.second.conclusive)

    @property
    def smallest_location(self) -> float:
        return smallest_p(len(self.first.values), len(self.second.values))

    def location(self, paired: bool) -> float:
        """p-value of the logarithms, or of the values if one is not positive."""
        scale = math.log if positive(self.first.values, self.second.values) else float
        one, other = self.first, self.second
        if paired:
            seeds, others = one.by_seed, other.by_seed
            return matched([scale(seeds[seed]) for seed in seeds], [scale(others[seed]) for seed in seeds])
        return difference([scale(value) for value in one.values], [scale(value) for value in other.values])

    @property
    def reliability(self) -> tuple[int, int, int, int]:
        """Successes and repetitions of both."""
        return self.first.succeeded, self.first.conclusive, self.second.succeeded, self.second.conclusive


def compare(
    first: Iterable[Sample],
    second: Iterable[Sample],
    *,
    repeat: bool = False,
    near: bool = False,
    loss: float | None = None,
) -> Comparison:
    """Compare samples of the same metric; they belong together by server, client and test case.

    With ``repeat``, runs with one seed repeat exactly. Pairs with seeds in common are then compared seed by seed, over
    these seeds, and all others are tested. With ``near``, they repeat except on another processor: pairs whose runs
    are alike with each seed have not changed. ``loss``: pairs are blind that could not show such a loss, as a share.

    Where both have the same seeds, tests compare equal seeds with each other if so few tests are made that this can be
    significant. Else the repetitions are taken as if their seeds differed: it has less power and no more false alarms.
    """
    ours, theirs = _by_pair(first), _by_pair(second)
    keys = dict.fromkeys([*ours, *theirs])
    cells = [_Cell(ours.get(key) or _absent(key), theirs.get(key) or _absent(key)) for key in keys]
    exact = [seed_changes(cell.first, cell.second) if repeat else None for cell in cells]
    tested = _test([cell for cell, seeds in zip(cells, exact, strict=True) if seeds is None], near, loss)
    pairs = [*tested.pairs, *(_judge_seeds(seeds) for seeds in exact if seeds is not None)]
    return replace(tested, pairs=tuple(sorted(pairs, key=_rank)))


def _rank(pair: PairChange) -> tuple[int, float, float, str, str]:
    """Worst first; the most significant first, or the largest changes of pairs without a test."""
    size = abs(pair.ratio or 0.0) if pair.seeds is not None else 0.0
    return _PLACE[pair.change], pair.p or 0.0, -size, pair.first.server, pair.first.client


def _test(cells: Sequence[_Cell], near: bool, loss: float | None) -> Comparison:
    """The pairs in no order, and the implementations that changed, with tests."""
    found = groups([(cell.first, cell.second) for cell in cells])
    smallest = [
        *(cell.smallest_location for cell in cells),
        *(smallest_of_proportions(*cell.reliability) if cell.conclusive else 1.0 for cell in cells),
        *(smallest_of_change(group) for group in found),
    ]
    able = which_can_tell(smallest, LEVEL)
    tests, total = sum(able), len(cells)
    p_values = [
        *(_location(cell, tests) if able[n] else 1.0 for n, cell in enumerate(cells)),
        *(proportions(*cell.reliability) if able[total + n] else 1.0 for n, cell in enumerate(cells)),
        *(change_of_group(group, found[0]) if able[2 * total + n] else 1.0 for n, group in enumerate(found)),
    ]
    corrected = iter(holm([p for p, made in zip(p_values, able, strict=True) if made]))
    adjusted = [next(corrected) if made else 1.0 for made in able]
    pairs = [
        replace(
            _judge(cell, adjusted[n], adjusted[total + n]),
            blind=not (near and _alike(cell)) and _is_blind(cell, tests if able[n] else 0, loss),
            blind_to_failures=not able[total + n],
        )
        for n, cell in enumerate(cells)
    ]
    together = [_judge_group(group, p) for group, p in zip(found, adjusted[2 * total :], strict=True) if p <= LEVEL]
    fast, made = _test_speed(cells)
    together = sorted((*together, *fast), key=lambda each: _rank(each)[:2])
    return Comparison(tuple(pairs), tests + made, tuple(each for each in together if each.change is not Change.NONE))


def _test_speed(cells: Sequence[_Cell]) -> tuple[list[PairChange], int]:
    """Implementations that became faster or slower over all their pairs, and how many tests were made.

    All pairs have half of the level, and all implementations share the other half.
    """
    found = groups(group_speed.measured([(cell.first, cell.second) for cell in cells]))
    changed, made = list[PairChange](), 0
    for family in ([group for group in found if group.role is None], [group for group in found if group.role]):
        able = which_can_tell([group_speed.smallest(group) for group in family], LEVEL / 2)
        tested = [group for group, can in zip(family, able, strict=True) if can]
        results = [group_speed.change(group) for group in tested]
        made += len(tested)
        for group, (ratio, _), p in zip(tested, results, holm([p for _, p in results]), strict=True):
            if 2 * p <= LEVEL and matters(ratio):
                changed.append(_speed_of_group(group, ratio, 2 * p))
    return changed, made


def _alike(cell: _Cell) -> bool:
    """Whether the runs of a pair have seeds in common, and with each of them nothing changed."""
    seeds = seed_changes(cell.first, cell.second)
    return seeds is not None and seeds.unchanged


def _is_blind(cell: _Cell, tests: int, loss: float | None) -> bool:
    """Whether a loss of a pair with numbers, about as widely spread as they are, would not be significant.

    ``tests``: as many are made; 0 if this one can never be significant.
    """
    if not cell.first.values or not cell.second.values:
        return bool(cell.first.values or cell.second.values) and bool(cell.first.succeeded and cell.second.succeeded)
    if not tests or loss is None:
        return not tests
    ratio = mean_ratio(cell.first.values, cell.second.values)
    if ratio is None or ratio <= -1:
        return True
    lost = tuple(value * (1 - loss) / (1 + ratio) for value in cell.second.values)
    return _location(_Cell(cell.first, replace(cell.second, values=lost)), tests) * tests > LEVEL


def _location(cell: _Cell, tests: int) -> float:
    """Equal seeds are paired where that can be significant, which only their number decides."""
    seeds = cell.first.by_seed.keys()
    same = len(seeds) > 0 and seeds == cell.second.by_seed.keys()
    return cell.location(paired=same and len(seeds) <= MOST_EXACT and 2 * tests / 2 ** len(seeds) <= LEVEL)


def _by_pair(many: Iterable[Sample]) -> dict[tuple[str, str, str], Sample]:
    return {(sample.server, sample.client, sample.test_case): sample for sample in many if sample.outcomes}


def _absent(key: tuple[str, str, str]) -> Sample:
    return Sample(*key, values=(), outcomes=())


def _judge(cell: _Cell, location: float, reliability: float) -> PairChange:
    first, second = cell.first, cell.second
    if not cell.conclusive:
        return PairChange(first, second, Change.ABSENT, 1.0)
    if not first.succeeded and not second.succeeded:
        return PairChange(first, second, Change.FAILING, 1.0)
    found = PairChange(first, second, Change.NONE, min(location, reliability))
    if location <= LEVEL and found.ratio is not None and matters(found.ratio):
        found = replace(found, speed=Change.SLOWER if found.ratio < 0 else Change.FASTER)
    change = _reliability(*cell.reliability, sure=reliability <= LEVEL)
    if change is None or _outweighs(found.speed, change):
        return replace(found, change=found.speed, p=found.p if found.speed is Change.NONE else location)
    return replace(found, change=change, p=reliability)


def _outweighs(speed: Change, change: Change) -> bool:
    """Whether a pair became slower, and did not become less reliable: a gain must not hide a loss."""
    return speed in WORSE and change not in WORSE


def _judge_seeds(seeds: SeedChanges) -> PairChange:
    """A seed that newly fails outweighs all else, as it is worse than any change of speed."""
    speed = Change.NONE
    if seeds.reported and seeds.ratio is not None:
        speed = Change.SLOWER if seeds.ratio < 0 else Change.FASTER
    change = speed
    if seeds.broken:
        change = Change.BROKEN
    elif seeds.fixed and not _outweighs(speed, Change.FIXED):
        change = Change.FIXED
    elif not seeds.first.succeeded:
        change = Change.FAILING
    return PairChange(seeds.first, seeds.second, change, None, seeds, speed=speed)


def _speed_of_group(group: ReliabilityGroup, ratio: float, p: float) -> PairChange:
    return PairChange(*_pooled(group), Change.SLOWER if ratio < 0 else Change.FASTER, p, over_all=ratio)


def _pooled(group: ReliabilityGroup) -> tuple[Sample, Sample]:
    """The outcomes of all pairs of a group."""
    server, client = (group.implementation if group.role is role else ALL for role in (Role.SERVER, Role.CLIENT))
    first, second = (
        Sample(server, client, ALL, (), tuple(outcome for each in many for outcome in each.outcomes))
        for many in (group.first, group.second)
    )
    return first, second


def _judge_group(group: ReliabilityGroup, p: float) -> PairChange:
    first, second = _pooled(group)
    change = _reliability(first.succeeded, first.conclusive, second.succeeded, second.conclusive, sure=True)
    return PairChange(first, second, change or Change.NONE, p)


def _reliability(hits: int, of: int, other_hits: int, other_of: int, *, sure: bool) -> Change | None:
    before, after = hits / of, other_hits / other_of
    if (before, after) == (1.0, 0.0):
        return Change.BROKEN if sure else Change.PERHAPS_BROKEN
    if (before, after) == (0.0, 1.0):
        return Change.FIXED if sure else Change.PERHAPS_FIXED
    if sure and before != after:
        return Change.LESS_RELIABLE if after < before else Change.MORE_RELIABLE
    return None


def in_words(change: PairChange) -> str:
    """Which pair, or which implementation over all its pairs."""
    one = change.first
    if one.test_case != ALL:
        return f"{one.test_case}, server {one.server}, client {one.client}"
    if one.server == one.client == ALL:
        return "all pairs together"
    return f"all pairs with the {f'client {one.client}' if one.server == ALL else f'server {one.server}'}"


def geometric_mean_ratio(pairs: Sequence[PairChange]) -> float | None:
    """By how much goodput has grown over all pairs with two means, each counted once; None if there is none."""
    ratios = [1 + pair.ratio for pair in pairs if pair.ratio is not None and pair.ratio > -1]
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) - 1 if ratios else None


@dataclass(frozen=True)
class Goodputs:
    """What a comparison needs to know of a campaign."""

    manifest: Manifest
    samples: Mapping[str, tuple[Sample, ...]]
    """Of goodput, by the name of their test case; functional tests have outcomes only."""


def goodputs(results: ResultSet) -> Goodputs:
    """Those of all test cases of a campaign."""
    cases = results.manifest.test_cases
    return Goodputs(results.manifest, {case.name: samples(results, case.name, GOODPUT) for case in cases})


def campaigns(first: ResultSet, second: ResultSet, cases: Iterable[TestCase], loss: float | None = None) -> Comparison:
    """Goodput in those test cases of ``first`` that ``second`` has too, by name or abbreviation; ``loss``: as above."""
    return of_goodputs(goodputs(first), goodputs(second), cases, loss)


def of_goodputs(first: Goodputs, second: Goodputs, cases: Iterable[TestCase], loss: float | None = None) -> Comparison:
    """The same, for those who compare a campaign with several."""
    theirs = second.manifest.test_cases
    both = [
        (case, other)
        for case in cases
        if (other := find_case(theirs, case.name) or find_case(theirs, case.abbreviation))
    ]
    before = [sample for case, _ in both for sample in first.samples.get(case.name, ())]
    after = [
        sample if other.name == case.name else replace(sample, test_case=case.name)
        for case, other in both
        for sample in second.samples.get(other.name, ())
    ]
    one, two = first.manifest, second.manifest
    by_seed = same_costs(one, two)
    found = compare(before, after, repeat=repeatable(one, two), near=by_seed, loss=loss)
    return replace(
        found,
        other_processor=by_seed and other_processor(one, two),
        other_virtual_machine=by_seed and other_virtual_machine(one, two),
        other_conditions=tuple((case.name, words) for case, other in both if (words := differing(case, other))),
        changed_images=changed_images(one, two),
    )


def links(results: ResultSet, first: TestCase, second: TestCase) -> Comparison:
    """Efficiency in two test cases of one campaign."""
    name = f"{first.abbreviation}, {second.abbreviation}"
    before, after = (
        [replace(sample, test_case=name) for sample in samples(results, case.name, EFFICIENCY)]
        for case in (first, second)
    )
    return compare(before, after)
