"""Which of many builds in a row changed a metric or an outcome: a binary search over measurements on demand; pure.

Both ends are compared as ``gate`` compares two builds, in up to two looks at different members. What changed most
between them is the change that is looked for. A build between the ends is like the first if at most ``NEAR`` of the
change has happened and the rest is significant, and like the last in the opposite case. What the first look does not
decide, the second one decides alone. All looks at builds between the ends share the level of the tests, since of a
change in one step, each of them makes one comparison of equal builds.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from quicsat.model.errors import InputError
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet
from quicsat.statistics import comparison, confirmation
from quicsat.statistics.comparison import ALL, BETTER, TIMES, WORSE, Cell, Change, Comparison
from quicsat.statistics.conditions import differences, matching
from quicsat.statistics.confirmation import OUTCOME, Claim
from quicsat.statistics.samples import CONCLUSIVE_RUNS, GOODPUT, Sample, inverted, samples

NEAR = 0.25
"""Share of the change up to which a build is like an end, whatever else changed a little on the way."""
SHARED = 0.5
"""Share of another change between the ends that a step explains at least."""
_SIGNIFICANT = WORSE | BETTER
_SPEEDS = frozenset({Change.SLOWER, Change.FASTER})
_TRIALS = CONCLUSIVE_RUNS | {Outcome.UNSUPPORTED}

Measure = Callable[[int, int], ResultSet | None]
"""The results of a build, by its place, in a look; None if it cannot be built."""


class Side(StrEnum):
    """What a build is like."""

    FIRST = "as the first"
    LAST = "as the last"
    BETWEEN = "in between"
    """It differs from both ends."""
    OPEN = "undecided"
    UNTESTABLE = "skipped"
    """It cannot be built, or has no result to judge."""


class BisectionAnswer(StrEnum):
    """What a bisection comes to."""

    STEP = "one step"
    SAME = "no difference"
    SEVERAL = "several steps"
    OPEN = "undecided"
    NOT_REPRODUCIBLE = "not reproducible"


@dataclass(frozen=True)
class Judged:
    """A build that was measured, or could not be."""

    place: int
    side: Side
    reached: float | None = None
    """The share of the change that has happened; None without numbers."""


@dataclass(frozen=True)
class Bisected:
    """What a bisection has found."""

    answer: BisectionAnswer
    ends: Comparison
    """Of the look that decided."""
    before: int
    """Place of the last build that is like the first."""
    after: int
    """Place of the first build that is like the last; the change lies between the two."""
    judged: tuple[Judged, ...]
    """In the order of places, with both ends."""
    look: int = 0
    """The first look at all builds."""
    claim: Claim | None = None
    """The change that was looked for; None if the ends do not differ."""
    elsewhere: tuple[Claim, ...] = ()
    """Other changes between the ends; the step explains less than half of each."""


Told = Callable[[Judged, int], None]
"""Is told of each judgement, and how many builds may still be the one that is looked for."""


def middles(count: int) -> int:
    """The builds between the ends that are measured, at most, if ``count`` builds may have changed something."""
    return (count - 1).bit_length()


def candidate(low: int, high: int, skipped: Sequence[int]) -> int | None:
    """The build to measure next, strictly between two places; None if all of these were skipped.

    The one in the middle; each build that was skipped doubles the distance from there, since builds that are broken
    are often neighbours.
    """
    left = [place for place in range(low + 1, high) if place not in skipped]
    away = 2 ** (high - low - 1 - len(left)) - 1
    return min(left, key=lambda place: abs(abs(place - (low + high) // 2) - away), default=None)


class Bisection:
    """A search among builds at the places 0 to ``count``; the build at 0 does not have the change."""

    def __init__(
        self, count: int, measure: Measure, tested: str, looks: int = 2, told: Told = lambda _judged, _left: None
    ) -> None:
        """``tested``: name of the implementation under test; ``looks``: most looks at a build. ``count``: 1 or more."""
        self._count = count
        self._measure = measure
        self._tested = tested
        self._looks = looks
        self._told = told
        self._share = 1 / (looks * max(1, middles(count)))
        self._judged: list[Judged] = []

    def search(self) -> Bisected:
        """Measure until there is an answer; raises InputError if conditions differ, or the ends have no results."""
        for look in range(self._looks):
            first, last = self._end(0, look), self._end(self._count, look)
            ends = comparison.campaigns(first, last, first.manifest.test_cases, None, self._looks, by_case=True)
            claims = changes(ends, first, last, self._tested)
            if claims:
                return self._located(ends, claims, look)
        if ends.nothing:
            raise InputError("No pair has a valid result with both ends of the range: there is nothing to compare.")
        return Bisected(BisectionAnswer.SAME, ends, 0, self._count, ())

    def _located(self, ends: Comparison, claims: Sequence[Claim], look: int) -> Bisected:
        claim, low, high = claims[0], 0, self._count
        self._judged = [Judged(0, Side.FIRST, 0.0), Judged(self._count, Side.LAST, 1.0)]
        answer = BisectionAnswer.STEP
        while answer is BisectionAnswer.STEP:
            skipped = [each.place for each in self._judged if each.side is Side.UNTESTABLE]
            place = candidate(low, high, skipped)
            if place is None:
                break
            found = self._judge(claim, place, look)
            match found and found.side:
                case None:
                    answer = BisectionAnswer.NOT_REPRODUCIBLE
                case Side.FIRST:
                    low = place
                case Side.LAST:
                    high = place
                case Side.BETWEEN:
                    answer = BisectionAnswer.SEVERAL
                case Side.OPEN:
                    answer = BisectionAnswer.OPEN
            if found:
                self._told(found, high - low)
        both = self._measure(low, look), self._measure(high, look)
        elsewhere = tuple(other for other in claims[1:] if not _explains(other, both[0], both[1]))
        judged = tuple(sorted(self._judged, key=lambda each: each.place))
        return Bisected(
            answer, ends, low, high, judged, look, claim, elsewhere if answer is BisectionAnswer.STEP else ()
        )

    def _judge(self, claim: Claim, place: int, begin: int) -> Judged | None:
        """What a build is like; None if new members of the ends do not differ."""
        found = Judged(place, Side.OPEN)
        for look in range(begin, self._looks):
            first, last = self._end(0, look), self._end(self._count, look)
            if look > begin and not _shows(claim, first, last, 1 / self._looks):
                return None
            results = self._measured(place, look)
            found = replace(judge(claim, (first, results, last), self._share), place=place) if results else Judged(
                place, Side.UNTESTABLE
            )  # fmt: skip
            if found.side not in (Side.OPEN, Side.BETWEEN):
                break
        self._judged.append(found)
        return found

    def _end(self, place: int, look: int) -> ResultSet:
        results = self._measured(place, look)
        assert results is not None
        return results

    def _measured(self, place: int, look: int) -> ResultSet | None:
        results = self._measure(place, look)
        if results is not None and place:
            before, now = self._end(0, look).manifest, results.manifest
            if faults := differences(before, now, matching(before.test_cases, now.test_cases), now.must_include).faults:
                raise InputError(*faults)
        return results


# ---- what changed between the ends ------------------------------------------------------------


def changes(ends: Comparison, first: ResultSet, last: ResultSet, tested: str) -> list[Claim]:
    """What differs between the ends, outcomes first, then the largest change of a metric."""
    outcomes = _changed_outcomes(ends, first, last)
    cells = {cell for claim in outcomes for cell in claim.cells}
    others = [
        claim
        for claim in confirmation.claims(ends, (tested,))
        if claim.metric != OUTCOME or not (outcomes and cells & {*claim.cells})
    ]
    return [*outcomes, *sorted(others, key=lambda each: (each.metric != OUTCOME, -abs(each.shift)))]


def _changed_outcomes(ends: Comparison, first: ResultSet, last: ResultSet) -> list[Claim]:
    """Cells in which all members had one outcome at one end, and another one at the other end; alike ones together."""
    alike = dict[tuple[Outcome, ...], list[Cell]]()
    for pair in ends.pairs:
        cell = pair.second.server, pair.second.client, pair.second.test_case
        before, after = (_outcomes(cell, each) for each in (first, last))
        if len(before) == len(after) == 1 and before != after:
            alike.setdefault((*before, *after), []).append(cell)
    return [
        Claim(*_common(cells), OUTCOME, float((after is Outcome.SUCCEEDED) - (before is Outcome.SUCCEEDED)), (*cells,))
        for (before, after), cells in sorted(alike.items(), key=lambda each: -len(each[1]))
    ]


def _common(cells: Sequence[Cell]) -> Cell:
    """Server, client and test case of all cells; ``ALL`` where they differ."""
    server, client, case = (names.pop() if len(names) == 1 else ALL for names in map(set, zip(*cells, strict=True)))
    return server, client, case


def _outcomes(cell: Cell, results: ResultSet) -> frozenset[Outcome]:
    """The outcomes that the pair of a cell has caused; a timeout is a failure."""
    found = (each for sample in _sample(cell, GOODPUT, results) for each in sample.outcomes if each in _TRIALS)
    return frozenset(Outcome.FAILED if each is Outcome.TIMEOUT else each for each in found)


def _sample(cell: Cell, metric: str, results: ResultSet) -> Iterator[Sample]:
    for sample in samples(results, cell[2], metric):
        if (sample.server, sample.client) == cell[:2]:
            yield inverted(sample) if metric in TIMES else sample


# ---- a build between the ends -----------------------------------------------------------------


@dataclass(frozen=True)
class _Difference:
    """How two builds differ in what a claim is about."""

    shift: float
    significant: bool


def judge(claim: Claim, three: tuple[ResultSet, ResultSet, ResultSet], share: float) -> Judged:
    """What the second of three builds is like; ``share``: of the level of the tests."""
    first, middle, last = three
    if claim.metric == OUTCOME and (side := _by_outcomes(claim, three)) is not None:
        return Judged(0, side)
    whole, risen, rest = (
        _difference(claim, one, other, share) for one, other in ((first, last), (first, middle), (middle, last))
    )
    if not (whole and risen and rest and whole.shift):
        return Judged(0, Side.UNTESTABLE)
    reached = risen.shift / whole.shift
    if reached >= 1 - NEAR and risen.significant:
        return Judged(0, Side.LAST, reached)
    if reached <= NEAR and rest.significant:
        return Judged(0, Side.FIRST, reached)
    return Judged(0, Side.BETWEEN if risen.significant and rest.significant else Side.OPEN, reached)


def _by_outcomes(claim: Claim, three: tuple[ResultSet, ResultSet, ResultSet]) -> Side | None:
    """By the outcomes alone, where each end has only one in each cell; None elsewhere."""
    sides = set[Side]()
    for cell in claim.cells:
        first, middle, last = (_outcomes(cell, each) for each in three)
        if not len(first) == len(last) == 1 or first == last:
            return None
        known = {first: Side.FIRST, last: Side.LAST, first | last: Side.BETWEEN}
        sides.add(known.get(middle, Side.UNTESTABLE))
    if Side.UNTESTABLE in sides:
        return Side.UNTESTABLE
    return sides.pop() if len(sides) == 1 else Side.BETWEEN


def _shows(claim: Claim, one: ResultSet | None, other: ResultSet | None, share: float) -> bool:
    """Whether two builds differ as claimed."""
    if one is None or other is None:
        return False
    if claim.metric == OUTCOME:
        pairs = [[_outcomes(cell, each) for each in (one, other)] for cell in claim.cells]
        if all(len(before) == len(after) == 1 for before, after in pairs):
            return any(before != after for before, after in pairs)
    found = _difference(claim, one, other, share)
    return found is not None and found.significant and found.shift * claim.shift > 0


def _explains(claim: Claim, one: ResultSet | None, other: ResultSet | None) -> bool:
    """Whether at least half of a change lies between two builds."""
    if one is None or other is None or claim.metric == OUTCOME:
        return _shows(claim, one, other, 1.0)
    found = _difference(claim, one, other, 1.0)
    return found is not None and found.shift / claim.shift >= SHARED


def _difference(claim: Claim, one: ResultSet, other: ResultSet, share: float) -> _Difference | None:
    """None if a cell lacks what is to be compared."""
    metric = GOODPUT if claim.metric == OUTCOME else claim.metric
    both = [[sample for cell in claim.cells for sample in _sample(cell, metric, each)] for each in (one, other)]
    counted = all(
        sample.conclusive if claim.metric == OUTCOME else sample.values for many in both for sample in many
    )  # fmt: skip
    if not counted or any(len(many) < len(claim.cells) for many in both):
        return None
    found = comparison.compare(*both, virtual=True, share=share)
    together = found.pairs if len(claim.cells) == 1 else [
        each for each in (*found.groups, *found.unchanged) if each.first.server == each.first.client == ALL
    ]  # fmt: skip
    if claim.metric == OUTCOME:
        rates = [math.fsum(each.succeeded for each in many) / sum(each.conclusive for each in many) for many in both]
        changed = (each.reliability if len(claim.cells) == 1 else each.change for each in together)
        return _Difference(rates[1] - rates[0], any(each in _SIGNIFICANT - _SPEEDS for each in changed))
    rows = [each for each in together if each.effect is not None]
    if not rows:  # the same to the bit
        return _Difference(0.0, significant=False)
    return _Difference(rows[0].effect.shift if rows[0].effect else 0.0, rows[0].speed in _SPEEDS)


def level(claim: Claim, results: ResultSet) -> float | None:
    """Of a build, in what a claim is about: the geometric mean of a metric, or the share of runs that succeed.

    In SI units; None without numbers.
    """
    of_cell = partial(samples, results)
    metric = GOODPUT if claim.metric == OUTCOME else claim.metric
    chosen = [
        sample
        for cell in claim.cells
        for sample in of_cell(cell[2], metric)
        if (sample.server, sample.client) == cell[:2]
    ]
    if claim.metric == OUTCOME:
        trials = sum(outcome in _TRIALS for sample in chosen for outcome in sample.outcomes)
        return sum(sample.succeeded for sample in chosen) / trials if trials else None
    means = [math.fsum(map(math.log, each.values)) / len(each.values) for each in chosen if each.values]
    return math.exp(math.fsum(means) / len(means)) if means and len(means) == len(chosen) else None
