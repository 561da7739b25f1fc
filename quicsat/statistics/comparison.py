"""What has changed between two campaigns, or differs between two test cases of one, with its significance; pure.

Goodput is tested at three levels (``effects``): of all cells together, of each implementation in a role over its cells,
and of each cell. Success rates are tested for each cell (Fisher's exact test), and for implementations and all cells
(``reliability``). Holm's correction goes over all of these tests together: two campaigns of the same thing raise an
alarm, any alarm, in at most 5 of 100 cases, in both clocks. Members that are the same to the bit need no test, and
changes of less than ``SMALLEST_CHANGE`` are none. See docs/reference/statistics.md for how that was checked.

``baseline check``, ``compare``, the website, its feed and nightly messages all follow what is found here: a pair is
worse, may be worse (``PairChange.open``), or neither.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from quicsat.model.clock import Clock
from quicsat.model.implementation import Role
from quicsat.model.names import is_named
from quicsat.model.outcomes import Outcome
from quicsat.model.results import Manifest, ResultSet, RunResult
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.model.units import percent, told_apart
from quicsat.statistics import effects
from quicsat.statistics.conditions import changed_images, differences, matching
from quicsat.statistics.effects import Effect
from quicsat.statistics.reliability import change as change_of_group
from quicsat.statistics.reliability import groups
from quicsat.statistics.reliability import smallest as smallest_of_change
from quicsat.statistics.samples import EFFICIENCY, GOODPUT, ReliabilityGroup, Sample, inverted, mean_ratio, samples
from quicsat.statistics.significance import (
    LEVEL,
    SMALLEST_CHANGE,
    allot,
    holm,
    matters,
    proportions,
    smallest_of_proportions,
    smallest_p,
)

SHARES = (0.25, 0.25, 0.0, 0.5)
"""Of the level: for the goodput of all cells together, of implementations over all test cases, of implementations in
each test case, and of cells, with all success rates."""
SHARES_BY_CASE = (0.25, 0.125, 0.125, 0.5)
"""The same where implementations are also compared in each of several test cases."""
USED = 0.8
"""Of the level: the tests are exact, so that without a margin, half of all simulations would be above it."""
TIMES = {"completion_time": "time to the last byte", "time_to_2_mb": "time to 2 MB"}
"""Metrics that are tested beside goodput, as speeds (1/s); time to 2 MB is far less chaotic."""
SHARE_OF_A_TIME = 0.1
"""Of the level, for each of them; goodput and success rates have the rest."""
SUSPECT = 0.05
"""p-value, not corrected, up to which a loss that matters leaves a cell open; if it can be so small."""
COARSEST = 0.1
"""A cell is blind if neither a loss of it nor one of an implementation of it by so much would have been found."""
Cell = tuple[str, str, str]
"""Server, client and test case."""
ALL = "all"
"""Partner and test case in a change of an implementation over all its pairs."""


class Change(StrEnum):
    """What became of a pair, worst first."""

    BROKEN = "new failure"
    """All repetitions succeeded, now none does."""
    LESS_RELIABLE = "fails more often"
    SLOWER = "slower"
    UNSUPPORTED = "no longer supported"
    """It had a conclusive result."""
    LOST = "no valid result any more"
    """It is still planned, and all runs ended with faults of ours, were skipped, or are missing."""
    PERHAPS_BROKEN = "new failure, not significant"
    """As a new failure, but chance may have done it; no alarm."""
    PERHAPS_LESS_RELIABLE = "fails more often, not significant"
    PERHAPS_SLOWER = "slower, not significant"
    """By what matters, and chance would do so in fewer than 1 of 20 cases, or the cell cannot show more."""
    FIXED = "fixed"
    """None succeeded, now all do."""
    MORE_RELIABLE = "fails less often"
    FASTER = "faster"
    PERHAPS_FIXED = "fixed, not significant"
    NONE = "no change shown"
    FAILING = "fails in both"
    ABSENT = "not in both"
    """At least one of the two has no valid attempt of the pair."""


class Doubt(StrEnum):
    """Why a pair may be worse, although no change shows it."""

    BLIND = "blind"
    """A loss of ``COARSEST`` would not have been found: there are too few repetitions, or they differ too much."""
    MISSING = "repetitions missing"
    """More repetitions are unsupported than in the first."""
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
PERHAPS_WORSE = frozenset({Change.LOST, Change.PERHAPS_BROKEN, Change.PERHAPS_LESS_RELIABLE, Change.PERHAPS_SLOWER})
UNSURE = PERHAPS_WORSE | {Change.PERHAPS_FIXED}
"""Shown as what changed, but no alarm."""
CHANGED = WORSE | BETTER | UNSURE
WITHOUT_RESULT = frozenset({Change.ABSENT, Change.LOST, Change.UNSUPPORTED})
_PLACE = {change: place for place, change in enumerate(Change)}


@dataclass(frozen=True)
class PairChange:
    """A pair in both; or an implementation, or all pairs, whose other names are ``ALL``."""

    first: Sample
    second: Sample
    change: Change
    p: float | None
    """Of the test that decided, or the smaller one; corrected for the number of tests. None if there is none."""
    effect: Effect | None = None
    """Of goodput; None if it has not been compared."""
    detectable: float | None = None
    """The share of goodput whose loss would have been found, see ``Effect.detectable``; None without an effect."""
    doubts: frozenset[Doubt] = frozenset()
    speed: Change = Change.NONE
    """Whether the repetitions that succeeded are slower or faster, whatever became of the others."""
    reliability: Change = Change.NONE
    """Whether it fails more or less often, whatever became of its speed. ``change`` is the worse of the two."""
    metric: str = GOODPUT
    """What was compared; of a time its inverse, so that slower is less."""
    identical: bool = False
    """In virtual time: all members that both have are the same to the bit."""
    over: str = ""
    """The one test case in which an implementation was compared; empty for all of them."""

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
        if self.identical and self.second.values:
            return 0.0
        return mean_ratio(self.first.values, self.second.values) if self.effect is None else self.effect.ratio

    @property
    def over_all(self) -> float | None:
        """By how much an implementation has become faster over all its pairs; None for a pair and for success rates."""
        return self.effect.ratio if self.effect is not None and self.first.test_case == ALL else None

    @property
    def members(self) -> str:
        """``4/5``: how many members with the same seeds changed in this direction; empty if there are none."""
        return f"{self.effect.agreeing}/{self.effect.members}" if self.effect and self.effect.members else ""


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
    times: tuple[PairChange, ...] = ()
    """Significant changes of ``TIMES``: of implementations, or else of pairs, unless their goodput changed alike."""
    unchanged: tuple[PairChange, ...] = ()
    """The others whose goodput was tested."""
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
    under_test: tuple[str, ...] = ()
    """The implementations that the second campaign names as those under test; empty for all."""

    @property
    def metric(self) -> str:
        """What was compared beside the times."""
        return next((pair.metric for pair in self.pairs), GOODPUT)

    @property
    def identical(self) -> int:
        """Pairs whose members are the same to the bit."""
        return sum(pair.identical for pair in self.pairs)

    def suspects(self, loss: float | None = None) -> frozenset[Cell]:
        """The cells that are open, or whose estimate is a loss that matters; by the names of the second campaign."""
        return frozenset(
            cell_of(pair.second)
            for pair in self.pairs
            if pair.open or (pair.effect and pair.effect.ratio < 0 and matters(pair.effect.ratio, _least(loss)))
        )

    def decided_by(self, later: Comparison) -> Comparison:
        """With what a later look at other members says of the cells that it has.

        A later look at some cells of an implementation cannot show less than the earlier one at all of them.
        """
        known = {cell_of(pair.second): pair for pair in later.pairs if pair.change not in WITHOUT_RESULT}
        pairs = [_decided(pair, known.get(cell_of(pair.second), pair)) for pair in self.pairs]
        return replace(
            self,
            pairs=tuple(sorted(pairs, key=_rank)),
            tests=self.tests + later.tests,
            groups=self.groups + later.groups,
            times=self.times + later.times,
            errors=self.errors or later.errors,
        )

    def with_doubt(self, doubt: Doubt) -> list[PairChange]:
        """The pairs that may be worse for this reason."""
        return [pair for pair in self.pairs if doubt in pair.doubts]

    @property
    def blind(self) -> int:
        """Pairs with numbers in both, and with too few repetitions for a significant difference in speed."""
        return len(self.with_doubt(Doubt.BLIND))

    @property
    def detectable(self) -> tuple[float | None, float | None, float | None]:
        """The share of goodput whose loss would have been found, of 1.0 if none would have been; None if not tested.

        The three numbers are those of all cells together, of the implementation under test with the largest one, and
        of the median cell.
        """
        tested = [each for each in (*self.groups, *self.unchanged) if each.detectable is not None]
        everything = [each.detectable for each in tested if each.first.server == each.first.client]
        implementations = [
            each.detectable
            for each in tested
            if each.first.server != each.first.client
            and not each.over
            and is_named(
                each.first.client if each.first.server == ALL else each.first.server,
                self.under_test or (each.first.client, each.first.server),
            )
        ]
        cells = sorted(each.detectable for each in self.pairs if each.detectable is not None)
        return (
            everything[0] if everything else None,
            max(filter(None, implementations), default=None),
            cells[len(cells) // 2] if cells else None,
        )

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
        return len(self.groups) + len(self.times) + sum(pair.change in WORSE | BETTER for pair in self.pairs)

    @property
    def worse(self) -> bool:
        """Whether a pair or an implementation got worse, with significance."""
        return any(each.change in WORSE for each in (*self.pairs, *self.groups, *self.times))


@dataclass(frozen=True)
class _Cell:
    first: Sample
    second: Sample
    placebo: Sample | None
    virtual: bool

    @property
    def conclusive(self) -> bool:
        return bool(self.first.conclusive and self.second.conclusive)

    @cached_property
    def base(self) -> Sample:
        """The first, with the members of a placebo where these are no more alike than any others."""
        if self.placebo is None or self.alike:
            return self.first
        return replace(self.first, repetitions=(*self.first.repetitions, *self.placebo.repetitions))

    @cached_property
    def alike(self) -> bool:
        """Whether a placebo shows that equal members are alike."""
        return self.placebo is not None and effects.correlated(self.first, self.placebo)

    @cached_property
    def identical(self) -> bool:
        """Whether a member repeats to the bit, and all that both have are the same."""
        return self.virtual and effects.identical(self.first, self.second)

    @cached_property
    def tested(self) -> bool:
        """Whether there is goodput to test."""
        return effects.comparable(self.first, self.second) and not self.identical

    @property
    def smallest(self) -> float:
        """The smallest p-value that a test of its goodput can reach."""
        return smallest_p(len(self.base.values), len(self.second.values)) if self.tested else 1.0

    def effect(self, level: float) -> Effect | None:
        """The change of goodput, tested at this level."""
        if not self.tested:
            return None
        signs = effects.same_members(self.first, self.second) and 2.0 ** (1 - len(self.first.values)) <= level
        if signs and (self.placebo is None or self.alike):
            return effects.of_cell(self.first, self.second, paired=True)
        return effects.of_cell(self.base, self.second, paired=False)

    @property
    def reliability(self) -> tuple[int, int, int, int]:
        """Successes and repetitions of both."""
        return self.first.succeeded, self.first.conclusive, self.second.succeeded, self.second.conclusive


def compare(
    first: Iterable[Sample],
    second: Iterable[Sample],
    *,
    virtual: bool = False,
    placebo: Iterable[Sample] = (),
    loss: float | None = None,
    measured: Collection[str] = (),
    share: float = 1.0,
    by_case: bool = False,
) -> Comparison:
    """Compare samples of the same metric; they belong together by server, client and test case.

    ``virtual``: runs with one seed have the same conditions, whatever the machine does. ``placebo``: the first,
    measured again. ``loss``: the smallest loss of goodput that counts, as a share. ``measured``: test cases in which
    each run that succeeded should have a number. ``share``: of the level, for all tests of this metric. ``by_case``:
    test implementations in each test case, too.

    How a cell is tested is decided before its change is looked at: with a placebo, equal members are paired where
    those of the first and of the placebo are alike, and elsewhere the placebo counts as further members of the first;
    without one, they are paired if both have the same and so many that the test of signs can be significant.
    """
    ours, theirs, placebos = _by_pair(first), _by_pair(second), _by_pair(placebo)
    keys = dict.fromkeys([*ours, *theirs])
    cells = [
        _Cell(ours.get(key) or _absent(key), theirs.get(key) or _absent(key), placebos.get(key), virtual)
        for key in keys
    ]
    found = _test(cells, virtual, loss, share * USED, by_case)
    pairs = [_with_doubts(pair, measured) for pair in found.pairs]
    return replace(found, pairs=tuple(sorted(pairs, key=_rank)))


def _rank(pair: PairChange) -> tuple[int, float, float, str, str]:
    """Worst first; the most significant first, and of these the largest."""
    return _PLACE[pair.change], pair.p or 0.0, -abs(pair.ratio or 0.0), pair.first.server, pair.first.client


def _test(cells: Sequence[_Cell], virtual: bool, loss: float | None, share: float, by_case: bool) -> Comparison:
    """The pairs in no order, and the implementations that changed."""
    rates = groups([(cell.first, cell.second) for cell in cells])
    comparable = [(cell.first, cell.second) for cell in cells if effects.comparable(cell.first, cell.second)]
    speeds = [*groups(comparable), *(_groups_by_case(comparable) if by_case else ())]
    together = [(group, effects.of_group(group, paired=virtual)) for group in speeds]
    families = [
        [(group, effect) for group, effect in together if effect and (bool(group.role), bool(group.test_case)) == kind]
        for kind in ((False, False), (True, False), (True, True))
    ]
    shares = SHARES_BY_CASE if families[2] else SHARES
    smallest = [[effect.smallest for _, effect in family] for family in families]
    smallest.append(
        [
            *(cell.smallest for cell in cells),
            *(smallest_of_proportions(*cell.reliability) if cell.conclusive else 1.0 for cell in cells),
            *(smallest_of_change(group) for group in rates),
        ]
    )
    levels = allot(smallest, shares, LEVEL * share)
    total, flat = len(cells), [level for family in levels for level in family]
    of_cells, of_rates, of_groups = levels[3][:total], levels[3][total : 2 * total], levels[3][2 * total :]
    found = [cell.effect(level) for cell, level in zip(cells, of_cells, strict=True)]
    p_values = [
        *(effect.p for family in families for _, effect in family),
        *(effect.p if effect else 1.0 for effect in found),
        *(proportions(*cell.reliability) if level else 1.0 for cell, level in zip(cells, of_rates, strict=True)),
        *(change_of_group(group, rates[0]) if level else 1.0 for group, level in zip(rates, of_groups, strict=True)),
    ]
    made = [place for place, level in enumerate(flat) if level]
    adjusted = [1.0] * len(flat)
    for place, p in zip(made, holm([p_values[n] for n in made], [flat[n] for n in made]), strict=True):
        adjusted[place] = min(1.0, p / share)
    corrected = iter(adjusted)
    tested = [
        # a test that is not made because hardly any member changed would have been made if all had
        _speed_of_group(group, effect, next(corrected), level or LEVEL * share * part / len(family))
        for family, parts, part in zip(families, levels[:3], shares[:3], strict=True)
        for (group, effect), level in zip(family, parts, strict=True)
    ]
    speed, fails = ([next(corrected) for _ in cells] for _ in range(2))
    rated = [_judge_group(group, p) for group, p in zip(rates, corrected, strict=True) if p <= LEVEL]
    everywhere = {(each.first.server, each.first.client, each.change) for each in tested if not each.over}
    changed = [
        each
        for each in (*tested, *rated)
        if each.change is not Change.NONE
        and not (each.over and (each.first.server, each.first.client, each.change) in everywhere)
    ]
    pairs = [
        _blinded(_judge(*each, loss), tested, loss) for each in zip(cells, found, of_cells, speed, fails, strict=True)
    ]
    return Comparison(
        tuple(pairs),
        len(made),
        tuple(sorted(changed, key=lambda each: _rank(each)[:2])),
        unchanged=tuple(each for each in tested if each.change is Change.NONE),
    )


def _groups_by_case(cells: Sequence[tuple[Sample, Sample]]) -> Iterator[ReliabilityGroup]:
    """Implementations in each of several test cases."""
    cases = dict.fromkeys(one.test_case for one, _ in cells)
    for case in cases if len(cases) > 1 else ():
        own = groups([cell for cell in cells if cell[0].test_case == case])
        yield from (replace(group, test_case=case) for group in own if group.role is not None)


def _least(loss: float | None) -> float:
    """The smallest loss of goodput that counts, as a share."""
    return max(loss or 0.0, SMALLEST_CHANGE)


def _blinded(pair: PairChange, tested: Sequence[PairChange], loss: float | None) -> PairChange:
    """With what the results cannot show: a large loss of the pair, or of an implementation of it; else of all pairs."""
    unsupported, before = (each.outcomes.count(Outcome.UNSUPPORTED) for each in (pair.second, pair.first))
    if pair.first.conclusive and pair.second.conclusive and unsupported > before:
        return replace(pair, doubts=frozenset({Doubt.MISSING}))
    if pair.identical or not (pair.first.values and pair.second.values):
        return pair
    server, client = pair.first.server, pair.first.client
    own = [
        each
        for each in tested
        if (each.first.server == server or each.first.client == client) and each.over in ("", pair.first.test_case)
    ]
    sizes = [each.detectable for each in (pair, *(own or tested[:1])) if each.detectable is not None]
    blind = pair.effect is None or min(sizes, default=1.0) > max(COARSEST, loss or 0.0)
    return replace(pair, doubts=frozenset({Doubt.BLIND})) if blind else pair


def _decided(pair: PairChange, later: PairChange) -> PairChange:
    """What a later look says of a pair, which is blind only if it was before.

    A later look makes no failure undone: a pair that fails more often in both together remains open.
    """
    later = later if Doubt.BLIND in pair.doubts else replace(later, doubts=later.doubts - {Doubt.BLIND})
    first, second = (
        replace(one, repetitions=one.repetitions + other.repetitions)
        for one, other in ((pair.first, later.first), (pair.second, later.second))
    )
    fails = _reliability(first.succeeded, first.conclusive, second.succeeded, second.conclusive, sure=False)
    if pair.reliability not in PERHAPS_WORSE or later.reliability in WORSE or fails not in PERHAPS_WORSE:
        return later
    change = min(later.change, fails, key=_PLACE.__getitem__)
    return replace(later, first=first, second=second, reliability=fails, change=change)


def _unknown_number(first: Sample, second: Sample, measured: bool) -> bool:
    """Whether goodputs are unknown of runs that succeeded: of some in the second, or of all in the first."""
    if not second.succeeded or not (measured or first.values or second.values):
        return False
    return len(second.values) < second.succeeded or (first.succeeded > 0 and not first.values)


def _with_doubts(pair: PairChange, measured: Collection[str]) -> PairChange:
    """A pair with the doubts that do not depend on the tests; a number that is unknown makes it not blind."""
    first, second = pair.first, pair.second
    unknown = _unknown_number(first, second, first.test_case in measured)
    holding = {
        Doubt.NO_NUMBER: unknown,
        Doubt.NEW_FAILURE: second.failed and not first.conclusive,
        Doubt.PROTOCOL: first.conclusive and second.conclusive and first.protocols != second.protocols,
    }
    found = pair.doubts - {Doubt.BLIND} if unknown else pair.doubts
    return replace(pair, doubts=found | {doubt for doubt, holds in holding.items() if holds})


def _by_pair(many: Iterable[Sample]) -> dict[tuple[str, str, str], Sample]:
    return {(sample.server, sample.client, sample.test_case): sample for sample in many if sample.outcomes}


def _absent(key: tuple[str, str, str]) -> Sample:
    return Sample(*key, ())


def _judge(
    cell: _Cell, effect: Effect | None, level: float, location: float, reliability: float, loss: float | None
) -> PairChange:
    """``level``: of the test of its goodput; the p-values are corrected."""
    first, second = cell.first, cell.second
    if not cell.conclusive:
        gone = Change.UNSUPPORTED if Outcome.UNSUPPORTED in second.outcomes else Change.LOST
        return PairChange(first, second, gone if first.conclusive else Change.ABSENT, 1.0)
    if not first.succeeded and not second.succeeded:
        return PairChange(first, second, Change.FAILING, 1.0)
    size = effect.detectable(level) if effect else None
    least = min(location, reliability)
    found = PairChange(first, second, Change.NONE, least, effect, size, identical=cell.identical)
    speed = _speed(effect, location, loss)
    fails = _reliability(*cell.reliability, sure=reliability <= LEVEL)
    change = min(fails, speed, key=_PLACE.__getitem__)
    p = least if change is Change.NONE else location if change is speed else reliability
    return replace(found, change=change, p=p, speed=speed, reliability=fails)


def _speed(effect: Effect | None, p: float, loss: float | None = None, *, single: bool = True) -> Change:
    """``p``: corrected; ``single``: of a cell, which a loss that chance explains leaves open."""
    if effect is None or not matters(effect.ratio):
        return Change.NONE
    if p <= LEVEL:
        return Change.SLOWER if effect.ratio < 0 else Change.FASTER
    lost = effect.ratio < 0 and matters(effect.ratio, _least(loss))
    suspect = effect.p <= max(SUSPECT, effect.smallest)
    return Change.PERHAPS_SLOWER if single and lost and suspect else Change.NONE


def _speed_of_group(group: ReliabilityGroup, effect: Effect, p: float, level: float) -> PairChange:
    speed = _speed(effect, p, single=False)
    return PairChange(*_pooled(group), speed, p, effect, effect.detectable(level), speed=speed, over=group.test_case)


def _pooled(group: ReliabilityGroup) -> tuple[Sample, Sample]:
    """The outcomes of all pairs of a group; no numbers, for those of other pairs are left when some fail."""
    server, client = (group.implementation if group.role is role else ALL for role in (Role.SERVER, Role.CLIENT))
    first, second = (
        Sample(server, client, ALL, tuple(replace(run, value=None) for each in many for run in each.repetitions))
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
    over = f" in {change.over}" if change.over else ""
    return f"all pairs with the {f'client {one.client}' if one.server == ALL else f'server {one.server}'}{over}"


def change_in_words(change: Change, metric: str) -> str:
    """``slower``, or of efficiency ``less efficient``: a faster link may be used worse."""
    if metric != EFFICIENCY:
        return change.value
    return change.value.replace("slower", "less efficient").replace("faster", "more efficient")


def effect_in_words(change: PairChange) -> str:
    """``-10.0 % (95 % interval -14.2 to -5.5 %; 9/10 members)``; only what is known. Of a time, its own change."""
    interval = change.effect.interval if change.effect is not None else None
    ends = sorted(_shown(change, end) for end in interval or ())
    low, high = told_apart(lambda digits: tuple(f"{end * 100:+.{digits}f}" for end in ends), 1) if ends else ("", "")
    known = [f"95 % interval {low} to {high} %"] if low else []
    known += [f"{change.members} members"] if change.members else []
    details = f" ({'; '.join(known)})" if known else ""
    return f"{_shown(change, change.ratio or 0.0) * 100:+.1f} %{details}"


def _shown(change: PairChange, ratio: float) -> float:
    return inverse(ratio) if change.metric in TIMES else ratio


def inverse(ratio: float) -> float:
    """By how much a time has grown if the speed has grown by this; infinite if the speed has fallen to nothing."""
    return 1 / (1 + ratio) - 1 if ratio > -1 else math.inf


def time_in_words(change: PairChange) -> str:
    """``The time to 2 MB of all pairs together changed by +13.6 %``; without an end."""
    return f"The {TIMES[change.metric]} of {in_words(change)} changed by {effect_in_words(change)}"


def detectable_in_words(found: Comparison) -> str:
    """Which loss would have been found at each level: a sentence; empty if no number was tested."""
    names = ("in all cells", "in all cells of an implementation", "in a single cell (median)")
    sizes = [
        f"{'not even a total loss' if size >= 1 else percent(max(size, SMALLEST_CHANGE), 1)} {name}"
        for size, name in zip(found.detectable, names, strict=True)
        if size is not None
    ]
    if not sizes or all(pair.effect is None for pair in found.pairs):  # with equal runs, any loss would have been
        return ""
    return f"Loss of {found.metric} that would have been found with 80 % power: {', '.join(sizes)}."


def geometric_mean_ratio(pairs: Sequence[PairChange]) -> float | None:
    """By how much goodput has grown over all pairs with numbers in both, each counted once.

    -1 if one of them has fallen to 0; None if one has grown from 0, or there are none.
    """
    both = [pair for pair in pairs if pair.first.values and pair.second.values]
    ratios = [1 + pair.ratio for pair in both if pair.ratio is not None]
    if not ratios or len(ratios) < len(both):
        return None
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) - 1 if min(ratios) > 0 else -1.0


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
    placebo: Mapping[str, tuple[Sample, ...]] = field(default_factory=dict)
    """``samples`` of its placebo."""

    def plans(self, cell: Cell) -> bool:
        """Whether the cell is part of the campaign, measured or not."""
        server, client, test_case = cell
        manifest = self.manifest
        return (
            manifest.tests(server, client)
            and server in manifest.servers
            and client in manifest.clients
            and any(case.name == test_case for case in manifest.test_cases)
        )


def goodputs(results: ResultSet) -> Goodputs:
    """Those of all test cases of a campaign."""
    cases, again = results.manifest.test_cases, replace(results, results=results.placebo)
    return Goodputs(
        results.manifest,
        {case.name: samples(results, case.name, GOODPUT) for case in cases},
        progress(results),
        frozenset(
            (each.server, each.client, each.test_case)
            for each in results.results
            if each.verdict.outcome is Outcome.SKIPPED
        ),
        {case.name: samples(again, case.name, GOODPUT) for case in cases if results.placebo},
    )


def progress(results: ResultSet) -> str:
    """``4 of 9 runs measured; unfinished.``; empty if the campaign has all of its runs."""
    lacking, planned = results.lacking, results.manifest.planned_runs
    return f"{planned - lacking} of {counted(planned, 'run')} measured; unfinished." if lacking else ""


def campaigns(
    first: ResultSet,
    second: ResultSet,
    cases: Iterable[TestCase],
    loss: float | None = None,
    looks: int = 1,
    *,
    by_case: bool = False,
) -> Comparison:
    """Goodput in those test cases of ``first`` that ``second`` has too, by name or abbreviation; ``loss``: as above.

    The times of transfers are tested as well, where both have them. ``looks``: comparisons of different members that
    share the level. ``by_case``: as above.
    """
    chosen = list(cases)
    both = matching(chosen, second.manifest.test_cases)
    speeds = {metric: [_speeds(results, both, metric) for results in (first, second)] for metric in TIMES}
    speeds = {metric: two for metric, two in speeds.items() if all(two)}
    share = 1 - SHARE_OF_A_TIME * len(speeds)
    found = of_goodputs(goodputs(first), goodputs(second), chosen, loss, share / looks, by_case=by_case)
    virtual = first.manifest.clock is second.manifest.clock is Clock.VIRTUAL
    known = {(cell_of(each.first), each.over, each.change) for each in (*found.groups, *found.pairs)}
    times = list[PairChange]()
    for metric, (before, after) in speeds.items():
        of_metric = compare(before, after, virtual=virtual, share=SHARE_OF_A_TIME / looks, by_case=by_case)
        changed = of_metric.groups or [
            each for each in of_metric.pairs if each.change in (Change.SLOWER, Change.FASTER)
        ]
        times += [
            replace(each, metric=metric)
            for each in changed
            if (cell_of(each.first), each.over, each.change) not in known
        ]
    return replace(found, times=tuple(times))


def _speeds(results: ResultSet, both: Sequence[tuple[TestCase, TestCase]], metric: str) -> list[Sample]:
    """The inverse of a time in test cases that two campaigns have, by the name of the first; without other runs."""
    names = {case.name for case in results.manifest.test_cases}
    found = list[Sample]()
    for case, other in both:
        for sample in samples(results, case.name if case.name in names else other.name, metric):
            speeds = replace(inverted(sample), test_case=case.name)
            found += [speeds] if speeds.repetitions else []
    return found


def of_goodputs(
    first: Goodputs,
    second: Goodputs,
    cases: Iterable[TestCase],
    loss: float | None = None,
    share: float = 1.0,
    *,
    by_case: bool = False,
    paired: bool = True,
) -> Comparison:
    """Goodput alone, for those who compare a campaign with several; ``share``: of the level; ``by_case``: as above.

    ``paired``: in virtual time, equal members have the same conditions.
    """
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
        virtual=paired and one.clock is two.clock is Clock.VIRTUAL,
        placebo=[sample for case, _ in both for sample in first.placebo.get(case.name, ())],
        loss=loss,
        share=share,
        by_case=by_case,
        measured={case.name for case, _ in both if not (case.functional or case.partly_known)},
    )
    names = {case.name: other.name for case, other in both}
    pairs = [_in_second(pair, second, names[pair.first.test_case]) for pair in found.pairs]
    # Without test cases of the user's choice, those that the second campaign alone has count, too.
    alone = [] if len(chosen) < len(one.test_cases) else [n for n in second.samples if n not in names.values()]
    gone = [pair.first for pair in pairs if not second.plans(cell_of(pair.second))]
    gone += [sample for case in chosen if case.name not in names for sample in first.samples.get(case.name, ())]
    fresh = [
        pair.second for pair in pairs if not pair.first.conclusive and Outcome.UNSUPPORTED not in pair.first.outcomes
    ]
    fresh += [sample for name in alone for sample in second.samples[name]]
    lost, new = (
        sum(each.conclusive > 0 and second.manifest.tests(each.server, each.client) for each in some)
        for some in (gone, fresh)
    )
    skipped = sum(
        cell_of(pair.second) in second.skipped and pair.second.succeeded == pair.second.conclusive for pair in pairs
    )
    differ = differences(one, two, both, two.must_include or (*two.servers, *two.clients))
    return replace(
        found,
        pairs=tuple(sorted(pairs, key=_rank)),
        unlike=differ.faults,
        notes=differ.notes,
        changed_images=changed_images(one, two),
        gaps=tuple(_gaps(first.unfinished, lost, new, skipped)),
        gone=lost,
        fresh=new,
        unfinished=second.unfinished,
        errors=any(Outcome.ERROR in sample.outcomes for sample in after),
        under_test=two.must_include,
    )


def cell_of(each: Sample | RunResult) -> Cell:
    """The cell of a sample or of a run."""
    return each.server, each.client, each.test_case


def _in_second(pair: PairChange, second: Goodputs, test_case: str) -> PairChange:
    """With the name that the test case has in the second campaign; a pair that is not part of it is not lost."""
    pair = replace(pair, second=replace(pair.second, test_case=test_case))
    gone = pair.change is Change.LOST and not second.plans(cell_of(pair.second))
    return replace(pair, change=Change.ABSENT) if gone else pair


def _gaps(unfinished: str, gone: int, fresh: int, skipped: int) -> Iterator[str]:
    """What one of two campaigns has not measured: runs of the first, and these numbers of cells."""
    if unfinished:
        yield f"First campaign: {unfinished}"
    if gone:
        yield f"The second campaign does not contain {counted(gone, 'cell')} of the first."
    if fresh:
        yield f"The first campaign has no valid result of {counted(fresh, 'cell')} that the second has."
    if skipped:
        yield f"The second campaign skipped runs of {counted(skipped, 'cell')}."


def links(results: ResultSet, first: TestCase, second: TestCase, other: ResultSet | None = None) -> Comparison:
    """Efficiency in two test cases of one campaign, or in the second one of an ``other`` campaign."""
    case = replace(first, name=f"{first.abbreviation}, {second.abbreviation}")
    later = other or results
    one, two = _efficiencies(results, first.name, case), _efficiencies(later, second.name, case)
    found = of_goodputs(one, two, [case], paired=False)
    pairs, groups, unchanged = (
        tuple(replace(each, metric=EFFICIENCY) for each in many)
        for many in (found.pairs, found.groups, found.unchanged)
    )
    gaps = tuple(each.replace("campaign", "test case") for each in found.gaps)
    notes = () if later is results else found.notes
    return replace(found, pairs=pairs, groups=groups, unchanged=unchanged, gaps=gaps, notes=notes)


def _efficiencies(results: ResultSet, test_case: str, case: TestCase) -> Goodputs:
    """What a comparison needs to know of one test case, as if it were ``case``."""
    made = [replace(each, test_case=case.name) for each in samples(results, test_case, EFFICIENCY)]
    whole = goodputs(results)
    return replace(
        whole,
        manifest=replace(results.manifest, test_cases=(case,)),
        samples={case.name: tuple(made)},
        skipped=frozenset((server, client, case.name) for server, client, name in whole.skipped if name == test_case),
        placebo={},
    )
