"""What has changed between two campaigns, or differs between two test cases of one, with its significance; pure.

Of each pair two things are tested: whether it succeeds as often (Fisher's exact test), and whether the repetitions that
succeeded are as fast (permutation of the logarithms). Of each implementation per role, and of all pairs, it is tested
whether they succeed as often (``reliability``). Holm's correction goes over all of these tests together. Whether all
pairs, and each implementation over all its pairs, are as fast (``group_speed``) has a level of its own, half of it for
all pairs. Two campaigns of the same thing raise an alarm, any alarm, in at most 5 of 100 cases.
See docs/reference/statistics.md for how that was checked.

Where runs repeat exactly, in virtual time, pairs with seeds in common are compared seed by seed instead
(``same_seeds``). Goodput that changed by less than ``SMALLEST_CHANGE`` has not changed.

``baseline check``, ``compare``, the website, its feed and nightly messages all follow what is found here: a pair is
worse, may be worse (``PairChange.open``), or neither.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import count

from quicsat.model.implementation import Role
from quicsat.model.outcomes import Outcome
from quicsat.model.results import Manifest, ResultSet
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.plan.order import is_named
from quicsat.statistics import group_speed
from quicsat.statistics.conditions import changed_images, differences, matching, repeatable, same_costs
from quicsat.statistics.reliability import change as change_of_group
from quicsat.statistics.reliability import groups
from quicsat.statistics.reliability import smallest as smallest_of_change
from quicsat.statistics.same_seeds import (
    SeedChanges,
    seed_changes,
)
from quicsat.statistics.samples import EFFICIENCY, GOODPUT, ReliabilityGroup, Sample, mean_ratio, positive, samples
from quicsat.statistics.significance import (
    LEVEL,
    MOST_EXACT,
    SMALLEST_CHANGE,
    difference,
    holm,
    matched,
    matters,
    proportions,
    smallest_of_proportions,
    smallest_p,
    which_can_tell,
)

Cell = tuple[str, str, str]
"""Server, client and test case."""
ALL = "all"
"""Partner and test case in a change of an implementation over all its pairs."""


class Change(StrEnum):
    """What became of a pair, worst first."""

    BROKEN = "new failure"
    """All repetitions succeeded, now none does. Where runs repeat exactly: one seed succeeded, and no longer does."""
    LESS_RELIABLE = "fails more often"
    SLOWER = "slower"
    UNSUPPORTED = "no longer supported"
    """It had a conclusive result."""
    LOST = "no valid result any more"
    """It is still planned, and all runs ended with faults of ours, were skipped, or are missing."""
    PERHAPS_BROKEN = "new failure, not significant"
    """As a new failure, but chance may have done it; no alarm."""
    PERHAPS_LESS_RELIABLE = "fails more often, not significant"
    PARTLY_SLOWER = "slower with some seeds"
    """Slower in the mean, or with one seed so much that the mean may be, but not with each: chance may have done it."""
    FIXED = "fixed"
    """None succeeded, now all do. Where runs repeat exactly: one seed succeeds that did not, and none is broken."""
    MORE_RELIABLE = "fails less often"
    FASTER = "faster"
    PERHAPS_FIXED = "fixed, not significant"
    PARTLY_FASTER = "faster with some seeds"
    NONE = "no change shown"
    FAILING = "fails in both"
    ABSENT = "not in both"
    """At least one of the two has no valid attempt of the pair."""


class Doubt(StrEnum):
    """Why a pair may be worse, although no change shows it."""

    BLIND = "blind"
    """A loss of goodput could be due to chance: there are too few repetitions, or they differ too much."""
    MISSING = "seeds missing"
    """Runs repeat exactly, and some seeds have a result in the first only; or some repetitions are unsupported."""
    NO_NUMBER = "goodput unknown"
    """It succeeded, and not all goodputs are known."""
    NEW_FAILURE = "failure of a new cell"
    """It failed, and the first has no valid result of it."""
    PROTOCOL = "other protocol"
    """Its runs used another application protocol than in the first."""


class Conclusion(StrEnum):
    """What a campaign comes to, compared with another one or with expectations; reports and exit status follow it."""

    UNLIKE = "the campaigns cannot be compared, because their conditions differ"
    WORSE = "something is worse than expected"
    UNFINISHED = "the campaign is unfinished"
    ERRORS = "some runs have no valid result"
    UNDECIDED = "undecided, because something may be worse that the results cannot show"
    FINE = "nothing is worse than expected"


def conclude(*, unlike: bool = False, worse: bool, unfinished: bool, errors: bool, undecided: bool) -> Conclusion:
    """The first that applies."""
    found = (
        (unlike, Conclusion.UNLIKE),
        (worse, Conclusion.WORSE),
        (unfinished, Conclusion.UNFINISHED),
        (errors, Conclusion.ERRORS),
        (undecided, Conclusion.UNDECIDED),
    )
    return next((conclusion for holds, conclusion in found if holds), Conclusion.FINE)


WORSE = frozenset({Change.BROKEN, Change.LESS_RELIABLE, Change.SLOWER, Change.UNSUPPORTED})
BETTER = frozenset({Change.FIXED, Change.MORE_RELIABLE, Change.FASTER})
PERHAPS_WORSE = frozenset({Change.LOST, Change.PERHAPS_BROKEN, Change.PERHAPS_LESS_RELIABLE, Change.PARTLY_SLOWER})
UNSURE = PERHAPS_WORSE | {Change.PERHAPS_FIXED, Change.PARTLY_FASTER}
"""Shown as what changed, but no alarm."""
CHANGED = WORSE | BETTER | UNSURE
WITHOUT_RESULT = frozenset({Change.ABSENT, Change.LOST, Change.UNSUPPORTED})
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
    doubts: frozenset[Doubt] = frozenset()
    speed: Change = Change.NONE
    """Whether the repetitions that succeeded are slower or faster, whatever became of the others."""
    reliability: Change = Change.NONE
    """Whether it fails more or less often, whatever became of its speed. ``change`` is the worse of the two."""
    by_seed: bool = False
    """Tested runs with the same seeds that nearly repeat: none is worse, so none of the tests is needed."""

    @property
    def perhaps_worse(self) -> bool:
        """Whether something suggests that it is worse, which chance may have done."""
        return self.change in PERHAPS_WORSE or (self.change not in WORSE and Doubt.MISSING in self.doubts)

    @property
    def open(self) -> bool:
        """Whether it may be worse, and the results cannot show it."""
        return self.perhaps_worse or bool(self.doubts)

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
    unlike: tuple[str, ...] = ()
    """Differences of their conditions because of which the campaigns cannot be compared, a sentence each."""
    notes: tuple[str, ...] = ()
    """What else differs or is unknown of their conditions, a sentence each."""
    changed_images: tuple[str, ...] = ()
    """A line for each image that both have and that differs."""
    gaps: tuple[str, ...] = ()
    """What one of the campaigns has not measured, a sentence each."""
    gone: int = 0
    """Cells with a result in the first campaign that are not part of the second."""
    fresh: int = 0
    """Cells with a result in the second campaign, and with none in the first."""
    unfinished: str = ""
    """``4 of 9 runs measured; unfinished.``: of the second campaign; empty if it has all of its runs."""
    errors: bool = False
    """Whether a run of the second campaign ended with a fault of quicsat or of the machine."""

    @property
    def compared_by_seed(self) -> int:
        """Pairs that were compared seed by seed."""
        return sum(pair.seeds is not None for pair in self.pairs)

    @property
    def tested(self) -> bool:
        """Whether p-values say something: not if all pairs in both were compared seed by seed."""
        in_both = [pair for pair in self.pairs if pair.change not in WITHOUT_RESULT]
        return not in_both or any(pair.seeds is None for pair in in_both)

    def with_doubt(self, doubt: Doubt) -> list[PairChange]:
        """The pairs that may be worse for this reason."""
        return [pair for pair in self.pairs if doubt in pair.doubts]

    @property
    def blind(self) -> int:
        """Pairs with numbers in both, and with too few repetitions for a significant difference in speed."""
        return len(self.with_doubt(Doubt.BLIND))

    @property
    def enough(self) -> int:
        """Repetitions from which on a test of the goodput of each pair can be significant."""
        measured = sum(bool(pair.first.values and pair.second.values) for pair in self.pairs)
        return next(n for n in count(2) if smallest_p(n, n) * measured <= LEVEL)

    @property
    def nothing(self) -> bool:
        """Whether no pair has a valid result in both."""
        return all(pair.change in WITHOUT_RESULT for pair in self.pairs)

    @property
    def undecided(self) -> bool:
        """Whether something may be worse that could not be found."""
        incomplete = bool(self.unlike or self.gaps or self.unfinished or self.errors)
        return self.nothing or incomplete or any(pair.open for pair in self.pairs)

    @property
    def conclusion(self) -> Conclusion:
        """Of all pairs and implementations together."""
        return conclude(
            unlike=bool(self.unlike),
            worse=self.worse,
            unfinished=bool(self.unfinished),
            errors=self.errors,
            undecided=self.undecided,
        )

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
    measured: Collection[str] = (),
) -> Comparison:
    """Compare samples of the same metric; they belong together by server, client and test case.

    With ``repeat``, runs with one seed repeat exactly. Pairs with seeds in common are then compared seed by seed, over
    these seeds, and all others are tested. With ``near``, they repeat except on another processor: pairs whose runs
    with no seed worse have passed. ``loss``: the smallest loss of goodput that counts, as a share; pairs that could not
    show it are blind. ``measured``: test cases in which each run that succeeded should have a number.

    Where both have the same seeds, tests compare equal seeds with each other if so few tests are made that this can be
    significant. Else the repetitions are taken as if their seeds differed: it has less power and no more false alarms.
    """
    ours, theirs = _by_pair(first), _by_pair(second)
    keys = dict.fromkeys([*ours, *theirs])
    cells = [_Cell(ours.get(key) or _absent(key), theirs.get(key) or _absent(key)) for key in keys]
    exact = [seed_changes(cell.first, cell.second) if repeat else None for cell in cells]
    tested = _test([cell for cell, seeds in zip(cells, exact, strict=True) if seeds is None], near, loss)
    by_seed = [_judge_seeds(cell, seeds, loss) for cell, seeds in zip(cells, exact, strict=True) if seeds is not None]
    pairs = [_with_doubts(pair, ours, theirs, measured) for pair in (*tested.pairs, *by_seed)]
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
    pairs = []
    for n, cell in enumerate(cells):
        found_of = _judge(cell, adjusted[n], adjusted[total + n])
        alike = near and _no_seed_is_worse(cell, loss)
        doubt = _doubt(cell, tests if able[n] else 0, loss, alike=alike)
        pairs.append(replace(found_of, by_seed=alike, doubts=frozenset(filter(None, [doubt]))))
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


def _least(loss: float | None) -> float:
    """The smallest loss of goodput that counts, as a share."""
    return max(loss or 0.0, SMALLEST_CHANGE)


def _no_seed_is_worse(cell: _Cell, loss: float | None) -> bool:
    """Whether each run of the first has one with the same seed in the second that is not worse."""
    seeds = seed_changes(cell.first, cell.second)
    return seeds is not None and seeds.without_loss(_least(loss))


def _unknown_number(first: Sample, second: Sample, measured: bool) -> bool:
    """Whether goodputs are unknown of runs that succeeded: of some in the second, or of all in the first."""
    if not second.succeeded or not (measured or first.values or second.values):
        return False
    return len(second.values) < second.succeeded or (first.succeeded > 0 and not first.values)


def _with_doubts(
    pair: PairChange, ours: Mapping[Cell, Sample], theirs: Mapping[Cell, Sample], measured: Collection[str]
) -> PairChange:
    """A pair with the doubts that do not depend on how it was compared; a number that is unknown makes it not blind."""
    key = (pair.first.server, pair.first.client, pair.first.test_case)
    first, second = ours.get(key) or _absent(key), theirs.get(key) or _absent(key)  # with all seeds
    unknown = _unknown_number(first, second, key[2] in measured) or _unknown_number(pair.first, pair.second, False)
    holding = {
        Doubt.NO_NUMBER: unknown,
        Doubt.NEW_FAILURE: second.failed and not first.conclusive,
        Doubt.PROTOCOL: first.conclusive and second.conclusive and first.protocols != second.protocols,
    }
    found = pair.doubts - {Doubt.BLIND} if unknown else pair.doubts
    return replace(pair, doubts=found | {doubt for doubt, holds in holding.items() if holds})


def _doubt(cell: _Cell, tests: int, loss: float | None, *, alike: bool) -> Doubt | None:
    """Of a tested pair; ``alike``: no test is needed; ``tests``: as many are made; 0 if this one cannot be significant.

    A pair is blind if a loss of goodput, with numbers about as widely spread as they are, would not be significant.
    """
    unsupported, before = (each.outcomes.count(Outcome.UNSUPPORTED) for each in (cell.second, cell.first))
    if cell.conclusive and unsupported > before:
        return Doubt.MISSING
    if alike or not cell.first.values or not cell.second.values:
        return None
    if not tests or loss is None:
        return None if tests else Doubt.BLIND
    ratio = mean_ratio(cell.first.values, cell.second.values)
    if ratio is None or ratio <= -1:
        return Doubt.BLIND
    # A gain makes a loss less likely: the mean is then as far above that loss as the gain and the loss together.
    scale = (1 - loss) / (1 + ratio) / (1 + max(0.0, ratio))
    found = _location(_Cell(cell.first, cell.second.scaled(scale)), tests) * tests
    return Doubt.BLIND if found > LEVEL else None


def _location(cell: _Cell, tests: int) -> float:
    """Equal seeds are paired where that can be significant, which only their number decides."""
    seeds = cell.first.by_seed.keys()
    same = len(seeds) > 0 and seeds == cell.second.by_seed.keys()
    return cell.location(paired=same and len(seeds) <= MOST_EXACT and 2 * tests / 2 ** len(seeds) <= LEVEL)


def _by_pair(many: Iterable[Sample]) -> dict[tuple[str, str, str], Sample]:
    return {(sample.server, sample.client, sample.test_case): sample for sample in many if sample.outcomes}


def _absent(key: tuple[str, str, str]) -> Sample:
    return Sample(*key, ())


def _judge(cell: _Cell, location: float, reliability: float) -> PairChange:
    first, second = cell.first, cell.second
    if not cell.conclusive:
        gone = Change.UNSUPPORTED if Outcome.UNSUPPORTED in second.outcomes else Change.LOST
        return PairChange(first, second, gone if first.conclusive else Change.ABSENT, 1.0)
    if not first.succeeded and not second.succeeded:
        return PairChange(first, second, Change.FAILING, 1.0)
    found, speed = PairChange(first, second, Change.NONE, min(location, reliability)), Change.NONE
    if location <= LEVEL and found.ratio is not None and matters(found.ratio):
        speed = Change.SLOWER if found.ratio < 0 else Change.FASTER
    fails = _reliability(*cell.reliability, sure=reliability <= LEVEL)
    change = _worse(fails, speed)
    p = found.p if change is Change.NONE else location if change is speed else reliability
    return replace(found, change=change, p=p, speed=speed, reliability=fails)


def _worse(one: Change, other: Change) -> Change:
    return min(one, other, key=_PLACE.__getitem__)


def _judge_seeds(cell: _Cell, seeds: SeedChanges, loss: float | None) -> PairChange:
    """A seed that newly fails outweighs all else, as it is worse than any change of speed."""
    speed, fails = Change.NONE, Change.NONE
    if seeds.ratio is not None and matters(seeds.ratio):
        slower, faster = (Change.SLOWER, Change.FASTER) if seeds.sure else (Change.PARTLY_SLOWER, Change.PARTLY_FASTER)
        speed = slower if seeds.ratio < 0 else faster
    if seeds.may_have_lost(_least(loss)):
        speed = Change.PARTLY_SLOWER
    if seeds.broken:
        fails = Change.BROKEN
    elif cell.second.failed > seeds.second.failed:  # with a seed that the first does not have
        fails = Change.PERHAPS_LESS_RELIABLE if seeds.first.succeeded else Change.FAILING
    elif seeds.fixed:
        fails = Change.FIXED
    elif not seeds.first.succeeded:
        fails = Change.FAILING
    found = frozenset({Doubt.MISSING} if seeds.missing else ())
    change = fails if speed is Change.NONE else _worse(fails, speed)
    return PairChange(seeds.first, seeds.second, change, None, seeds, doubts=found, speed=speed, reliability=fails)


def _speed_of_group(group: ReliabilityGroup, ratio: float, p: float) -> PairChange:
    return PairChange(*_pooled(group), Change.SLOWER if ratio < 0 else Change.FASTER, p, over_all=ratio)


def _pooled(group: ReliabilityGroup) -> tuple[Sample, Sample]:
    """The outcomes of all pairs of a group."""
    server, client = (group.implementation if group.role is role else ALL for role in (Role.SERVER, Role.CLIENT))
    first, second = (
        Sample(server, client, ALL, tuple(repetition for each in many for repetition in each.repetitions))
        for many in (group.first, group.second)
    )
    return first, second


def _judge_group(group: ReliabilityGroup, p: float) -> PairChange:
    first, second = _pooled(group)
    change = _reliability(first.succeeded, first.conclusive, second.succeeded, second.conclusive, sure=True)
    return PairChange(first, second, change, p)


def _reliability(hits: int, of: int, other_hits: int, other_of: int, *, sure: bool) -> Change:
    """A smaller share of successes is never no change: chance may have done it, or not."""
    before, after = hits / of, other_hits / other_of
    if (before, after) == (1.0, 0.0):
        return Change.BROKEN if sure else Change.PERHAPS_BROKEN
    if (before, after) == (0.0, 1.0):
        return Change.FIXED if sure else Change.PERHAPS_FIXED
    if after < before:
        return Change.LESS_RELIABLE if sure else Change.PERHAPS_LESS_RELIABLE
    return Change.MORE_RELIABLE if sure and after > before else Change.NONE


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
    unfinished: str = ""
    """See ``progress``."""
    skipped: frozenset[Cell] = frozenset()
    """Cells in which runs were skipped."""

    def plans(self, cell: Cell) -> bool:
        """Whether the cell is part of the campaign, measured or not."""
        server, client, test_case = cell
        manifest = self.manifest
        return (
            self.tests(server, client)
            and server in manifest.servers
            and client in manifest.clients
            and any(case.name == test_case for case in manifest.test_cases)
        )

    def tests(self, server: str, client: str) -> bool:
        """Whether one of the two is under test; all are if the campaign does not say which are."""
        required = self.manifest.must_include
        return not required or is_named(server, required) or is_named(client, required)


def goodputs(results: ResultSet) -> Goodputs:
    """Those of all test cases of a campaign."""
    cases = results.manifest.test_cases
    return Goodputs(
        results.manifest,
        {case.name: samples(results, case.name, GOODPUT) for case in cases},
        progress(results),
        frozenset(
            (each.server, each.client, each.test_case)
            for each in results.results
            if each.verdict.outcome is Outcome.SKIPPED
        ),
    )


def progress(results: ResultSet) -> str:
    """``4 of 9 runs measured; unfinished.``; empty if the campaign has all of its runs."""
    done, planned = len(results.done), results.manifest.planned_runs
    return (
        f"{done} of {counted(planned, 'run')} measured; unfinished."
        if results.finished is None and done < planned
        else ""
    )


def campaigns(first: ResultSet, second: ResultSet, cases: Iterable[TestCase], loss: float | None = None) -> Comparison:
    """Goodput in those test cases of ``first`` that ``second`` has too, by name or abbreviation; ``loss``: as above."""
    return of_goodputs(goodputs(first), goodputs(second), cases, loss)


def of_goodputs(first: Goodputs, second: Goodputs, cases: Iterable[TestCase], loss: float | None = None) -> Comparison:
    """The same, for those who compare a campaign with several."""
    one, two = first.manifest, second.manifest
    chosen = list(cases)
    both = matching(chosen, two.test_cases)
    before = [sample for case, _ in both for sample in first.samples.get(case.name, ())]
    after = [
        replace(sample, test_case=case.name) for case, other in both for sample in second.samples.get(other.name, ())
    ]
    found = compare(
        before,
        after,
        repeat=repeatable(one, two),
        near=same_costs(one, two),
        loss=loss,
        measured={case.name for case, _ in both if not (case.functional or case.partly_known)},
    )
    names = {case.name: other.name for case, other in both}
    pairs = [_in_second(pair, second, names[pair.first.test_case]) for pair in found.pairs]
    # Without test cases of the user's choice, those that the second campaign alone has count, too.
    alone = [] if len(chosen) < len(one.test_cases) else [n for n in second.samples if n not in names.values()]
    gone = [pair.first for pair in pairs if not second.plans(_cell(pair.second))]
    gone += [sample for case in chosen if case.name not in names for sample in first.samples.get(case.name, ())]
    fresh = [
        pair.second for pair in pairs if not pair.first.conclusive and Outcome.UNSUPPORTED not in pair.first.outcomes
    ]
    fresh += [sample for name in alone for sample in second.samples[name]]
    lost, new = (
        sum(each.conclusive > 0 and second.tests(each.server, each.client) for each in some) for some in (gone, fresh)
    )
    skipped = sum(
        _cell(pair.second) in second.skipped and pair.second.succeeded == pair.second.conclusive for pair in pairs
    )
    differ = differences(one, two, both, two.must_include or (*two.servers, *two.clients))
    return replace(
        found,
        pairs=tuple(sorted(pairs, key=_rank)),
        unlike=differ.faults,
        notes=differ.notes,
        changed_images=changed_images(one, two),
        gaps=tuple(_gaps(lost, new, skipped)),
        gone=lost,
        fresh=new,
        unfinished=second.unfinished,
        errors=any(Outcome.ERROR in sample.outcomes for sample in after),
    )


def _cell(sample: Sample) -> Cell:
    return sample.server, sample.client, sample.test_case


def _in_second(pair: PairChange, second: Goodputs, test_case: str) -> PairChange:
    """With the name that the test case has in the second campaign; a pair that is not part of it is not lost."""
    pair = replace(pair, second=replace(pair.second, test_case=test_case))
    gone = pair.change is Change.LOST and not second.plans(_cell(pair.second))
    return replace(pair, change=Change.ABSENT) if gone else pair


def _gaps(gone: int, fresh: int, skipped: int) -> Iterator[str]:
    """What one of two campaigns has not measured, of these numbers of cells."""
    if gone:
        yield f"The second campaign does not contain {counted(gone, 'cell')} of the first."
    if fresh:
        yield f"The first campaign has no valid result of {counted(fresh, 'cell')} that the second has."
    if skipped:
        yield f"The second campaign skipped runs of {counted(skipped, 'cell')}."


def links(results: ResultSet, first: TestCase, second: TestCase) -> Comparison:
    """Efficiency in two test cases of one campaign."""
    name = f"{first.abbreviation}, {second.abbreviation}"
    before, after = (
        [replace(sample, test_case=name) for sample in samples(results, case.name, EFFICIENCY)]
        for case in (first, second)
    )
    return compare(before, after)
