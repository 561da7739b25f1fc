"""What has changed between two campaigns, or differs between two test cases of one, with its significance; pure.

Of each pair two things are tested: whether it succeeds as often (Fisher's exact test), and whether the repetitions that
succeeded are as fast (``significance.difference``). Holm's correction goes over all of these tests together: two
campaigns of the same thing raise an alarm, any alarm, in at most 5 of 100 cases.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from interop.model import ResultSet, TestCase
from interop.statistics.samples import EFFICIENCY, GOODPUT, Sample, find, samples
from interop.statistics.significance import difference, holm, proportions, smallest_p

LEVEL = 0.025
"""Expected share of false alarms; half of what is promised, so that 200 trials keep the promise too."""


class Change(StrEnum):
    """What became of a pair, worst first."""

    BROKEN = "new failure"
    """All repetitions succeeded, now none does; told without a test, for with few repetitions no test could tell."""
    LESS_RELIABLE = "fails more often"
    SLOWER = "slower"
    FASTER = "faster"
    MORE_RELIABLE = "fails less often"
    FIXED = "fixed"
    """None succeeded, now all do."""
    NONE = "no change shown"
    FAILING = "fails in both"
    ABSENT = "only in one"
    """One of the two says nothing about the pair."""


WORSE = frozenset({Change.BROKEN, Change.LESS_RELIABLE, Change.SLOWER})
BETTER = frozenset({Change.FIXED, Change.MORE_RELIABLE, Change.FASTER})


@dataclass(frozen=True)
class PairChange:
    """A pair in both."""

    first: Sample
    second: Sample
    change: Change
    p: float
    """Of the test that decided, or the smaller one; corrected for the number of tests."""

    @property
    def ratio(self) -> float | None:
        """By how much the mean has grown: -0.3 is a drop by 30 %; None where there are no two means."""
        before, after = self.first.mean, self.second.mean
        return after / before - 1 if before and after is not None else None


@dataclass(frozen=True)
class Comparison:
    """All pairs that one of the two has."""

    pairs: tuple[PairChange, ...]
    """Those that got worse first, then those that got better; the most significant first."""
    tests: int
    """Over how many tests the p-values were corrected."""
    blind: int
    """Pairs with numbers in both of which no difference in speed could become significant: too few repetitions."""

    @property
    def counts(self) -> Counter[Change]:
        """Pairs by change."""
        return Counter(pair.change for pair in self.pairs)

    @property
    def alarms(self) -> int:
        """Pairs that changed."""
        return sum(pair.change in WORSE | BETTER for pair in self.pairs)


@dataclass(frozen=True)
class _Tested:
    first: Sample
    second: Sample
    location: float | None
    reliability: float | None
    """p-values as they are; None where no test can say anything."""


def compare(first: Iterable[Sample], second: Iterable[Sample]) -> Comparison:
    """Compare samples of the same metric; they belong together by server, client and test case."""
    ours, theirs = _by_pair(first), _by_pair(second)
    keys = dict.fromkeys([*ours, *theirs])
    tested = [_test(ours.get(key, _absent(key)), theirs.get(key, _absent(key))) for key in keys]
    tests = sum((each.location is not None) + (each.reliability is not None) for each in tested)
    able = [each for each in tested if each.location is not None]
    blind = sum(smallest_p(len(each.first.values), len(each.second.values)) * tests > LEVEL for each in able)
    blind += sum(each.location is None and bool(each.first.values and each.second.values) for each in tested)
    flat = [p for each in tested for p in (each.location, each.reliability) if p is not None]
    adjusted = iter(holm(flat))
    pairs = [_judge(each, *(next(adjusted) if p is not None else 1.0 for p in _both(each))) for each in tested]
    order = list(Change)
    pairs.sort(key=lambda pair: (order.index(pair.change), pair.p, pair.first.server, pair.first.client))
    return Comparison(tuple(pairs), tests, blind)


def _both(tested: _Tested) -> tuple[float | None, float | None]:
    return tested.location, tested.reliability


def _by_pair(many: Iterable[Sample]) -> dict[tuple[str, str, str], Sample]:
    return {(sample.server, sample.client, sample.test_case): sample for sample in many if sample.outcomes}


def _absent(key: tuple[str, str, str]) -> Sample:
    return Sample(*key, values=(), outcomes=())


def _test(first: Sample, second: Sample) -> _Tested:
    """Tests that can never be significant, whatever the numbers are, are not made (Tarone 1990)."""
    able = smallest_p(len(first.values), len(second.values)) <= LEVEL
    successes = first.succeeded + second.succeeded
    varies = first.told and second.told and 0 < successes < first.told + second.told
    return _Tested(
        first,
        second,
        difference(first.values, second.values) if able else None,
        proportions(first.succeeded, first.told, second.succeeded, second.told) if varies else None,
    )


def _judge(tested: _Tested, location: float, reliability: float) -> PairChange:
    first, second = tested.first, tested.second
    if not first.told or not second.told:
        return PairChange(first, second, Change.ABSENT, 1.0)
    if not first.succeeded and not second.succeeded:
        return PairChange(first, second, Change.FAILING, 1.0)
    change = _reliability(first, second, reliability)
    if change is not None:
        return PairChange(first, second, change, reliability)
    means = first.mean, second.mean
    if location <= LEVEL and means[0] is not None and means[1] is not None:
        return PairChange(first, second, Change.SLOWER if means[1] < means[0] else Change.FASTER, location)
    return PairChange(first, second, Change.NONE, min(location, reliability))


def _reliability(first: Sample, second: Sample, p: float) -> Change | None:
    before, after = first.succeeded / first.told, second.succeeded / second.told
    if (before, after) == (1.0, 0.0):
        return Change.BROKEN
    if (before, after) == (0.0, 1.0):
        return Change.FIXED
    if p <= LEVEL:
        return Change.LESS_RELIABLE if after < before else Change.MORE_RELIABLE
    return None


def geometric_mean_ratio(pairs: Sequence[PairChange]) -> float | None:
    """By how much goodput has grown over all pairs with two means, each counted once; None if there is none."""
    ratios = [1 + pair.ratio for pair in pairs if pair.ratio is not None and pair.ratio > -1]
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) - 1 if ratios else None


def campaigns(first: ResultSet, second: ResultSet, cases: Iterable[TestCase]) -> Comparison:
    """Goodput in those test cases of ``first`` that ``second`` has too, by name or abbreviation."""
    both = [(case, other) for case in cases if (other := find(second, case.name) or find(second, case.abbreviation))]
    before = [sample for case, _ in both for sample in samples(first, case.name, GOODPUT)]
    after = [
        replace(sample, test_case=case.name) for case, other in both for sample in samples(second, other.name, GOODPUT)
    ]
    return compare(before, after)


def links(results: ResultSet, first: TestCase, second: TestCase) -> Comparison:
    """Efficiency in two test cases of one campaign."""
    name = f"{first.abbreviation}, {second.abbreviation}"
    before, after = (
        [replace(sample, test_case=name) for sample in samples(results, case.name, EFFICIENCY)]
        for case in (first, second)
    )
    return compare(before, after)
