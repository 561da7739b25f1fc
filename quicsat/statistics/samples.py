"""One metric of all repetitions of a pair in a test case: the input of figures and statistics; pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from quicsat.model.implementation import Protocol, Role
from quicsat.model.outcomes import Outcome
from quicsat.model.results import Pair, ResultSet, RunResult
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted

EFFICIENCY, GOODPUT, STREAM_GOODPUT = "efficiency", "goodput", "stream_goodput"


class PairOutcome(StrEnum):
    """The outcome of a pair in a test case over all its repetitions."""

    SUCCEEDED = "succeeded"
    """Every conclusive repetition succeeded."""
    TIMEOUT = "timeout"
    FAILED = "failed"
    """The first repetition that did not succeed timed out, or failed."""
    UNSUPPORTED = "unsupported"
    ERROR = "error"
    """All attempts ended with a fault of the test harness."""
    NOT_RUN = "not run"


CONCLUSIVE = frozenset({PairOutcome.SUCCEEDED, PairOutcome.TIMEOUT, PairOutcome.FAILED})
CONCLUSIVE_RUNS = frozenset({Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMEOUT})
MARKS = {
    PairOutcome.TIMEOUT: "T",
    PairOutcome.FAILED: "×",
    PairOutcome.UNSUPPORTED: "–",
    PairOutcome.ERROR: "!",
    PairOutcome.NOT_RUN: "·",
}
"""As in Fig. 4 of arXiv 2202.08228, and in the matrices of the terminal."""


@dataclass(frozen=True)
class SampledRun:
    """One repetition of a pair in a test case that has a result and was not skipped."""

    number: int
    outcome: Outcome
    value: float | None = None
    """The metric, in its SI unit; None unless the repetition succeeded and has it."""
    seed: int | None = None
    """Of its losses; None if it is unknown. All pairs of a test case share the seed of a repetition."""


@dataclass(frozen=True)
class Sample:
    """One pair in one test case."""

    server: str
    client: str
    test_case: str
    repetitions: tuple[SampledRun, ...]
    """In their order."""
    protocols: frozenset[Protocol] = frozenset()
    """Application protocols of the conclusive runs."""

    @classmethod
    def of(
        cls,
        server: str,
        client: str,
        test_case: str,
        values: Sequence[float],
        outcomes: Sequence[Outcome],
        *,
        numbers: Sequence[int] = (),
        seeds: Sequence[int | None] = (),
    ) -> Sample:
        """From ``outcomes`` of repetitions, by default 1, 2, …; ``values`` are those of the first that succeeded."""
        left = iter(values)
        rows = zip(numbers or range(1, len(outcomes) + 1), outcomes, seeds or [None] * len(outcomes), strict=True)
        return cls(
            server,
            client,
            test_case,
            tuple(
                SampledRun(number, outcome, next(left, None) if outcome is Outcome.SUCCEEDED else None, seed)
                for number, outcome, seed in rows
            ),
        )

    @property
    def pair(self) -> Pair:
        """Server and client."""
        return self.server, self.client

    @cached_property
    def values(self) -> tuple[float, ...]:
        """The metric of the repetitions that have it."""
        return tuple(each.value for each in self.repetitions if each.value is not None)

    @cached_property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcome of each repetition."""
        return tuple(each.outcome for each in self.repetitions)

    @property
    def by_repetition(self) -> dict[int, float]:
        """The values by the number of their repetition."""
        return {each.number: each.value for each in self.repetitions if each.value is not None}

    @property
    def by_seed(self) -> dict[int, float]:
        """The values by their seed; empty if seeds are unknown or repeat."""
        having = [each for each in self.repetitions if each.value is not None]
        values = {each.seed: each.value for each in having if each.seed is not None and each.value is not None}
        return values if len(values) == len(having) else {}

    @property
    def outcome_by_seed(self) -> dict[int, Outcome]:
        """The conclusive outcomes by their seed; empty if seeds are unknown or repeat."""
        conclusive = [each for each in self.repetitions if each.outcome in CONCLUSIVE_RUNS]
        outcomes = {each.seed: each.outcome for each in conclusive if each.seed is not None}
        return outcomes if len(outcomes) == len(conclusive) else {}

    @property
    def mean(self) -> float | None:
        """Of the repetitions that succeeded; None if none did."""
        return math.fsum(self.values) / len(self.values) if self.values else None

    @cached_property
    def conclusive(self) -> int:
        """Number of conclusive repetitions: succeeded, failed or timed out."""
        return sum(outcome in CONCLUSIVE_RUNS for outcome in self.outcomes)

    @cached_property
    def succeeded(self) -> int:
        """Repetitions that succeeded, with or without a number."""
        return self.outcomes.count(Outcome.SUCCEEDED)

    @property
    def failed(self) -> int:
        """Conclusive repetitions that did not succeed."""
        return self.conclusive - self.succeeded

    @property
    def pair_outcome(self) -> PairOutcome:
        """The first conclusive repetition that did not succeed decides. Without any, the pair succeeded; without a
        conclusive one, it is unsupported or ended in errors."""
        theirs = [outcome for outcome in self.outcomes if outcome in CONCLUSIVE_RUNS]
        if theirs:
            return PairOutcome(
                next((each for each in theirs if each is not Outcome.SUCCEEDED), Outcome.SUCCEEDED).value
            )
        if Outcome.UNSUPPORTED in self.outcomes:
            return PairOutcome.UNSUPPORTED
        return PairOutcome.ERROR if self.outcomes else PairOutcome.NOT_RUN


def find(result_set: ResultSet, name: str) -> TestCase | None:
    """The test case with this name or abbreviation, upper and lower case being alike."""
    return find_case(result_set.manifest.test_cases, name)


def find_case(cases: Iterable[TestCase], name: str) -> TestCase | None:
    """Of these, the one with this name or abbreviation, upper and lower case being alike."""
    wanted = name.casefold()
    return next((case for case in cases if wanted in (case.name.casefold(), case.abbreviation.casefold())), None)


def samples(result_set: ResultSet, test_case: str, metric: str = EFFICIENCY) -> tuple[Sample, ...]:
    """Every pair of ``result_set.pairs`` in ``test_case``, in their order; of filtered results, those with a run."""
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for result in result_set.by_test_case.get(test_case, ()):
        if result.verdict.outcome is not Outcome.SKIPPED:
            groups.setdefault((result.server, result.client), []).append(result)
    return tuple(
        _sample(server, client, test_case, groups.get((server, client), ()), metric)
        for server, client in result_set.pairs
        if not result_set.filtered or (server, client) in groups
    )


def _sample(server: str, client: str, test_case: str, results: Sequence[RunResult], metric: str) -> Sample:
    ordered = sorted(results, key=lambda result: result.repetition) if len(results) > 1 else results
    known = all(result.evidence.seed for result in ordered)
    return Sample(
        server,
        client,
        test_case,
        tuple(
            SampledRun(
                result.repetition,
                result.verdict.outcome,
                value_of(result, metric),
                result.evidence.seed if known else None,
            )
            for result in ordered
        ),
        frozenset(result.protocol for result in ordered if result.verdict.outcome in CONCLUSIVE_RUNS),
    )


def value_of(result: RunResult, metric: str) -> float | None:
    """A number of one repetition; None unless it succeeded and has it."""
    if result.verdict.outcome is not Outcome.SUCCEEDED or result.measurement is None:
        return None
    return result.measurement.values.get(metric)


def positive(*values: Sequence[float]) -> bool:
    """Whether there are values, and all are positive, so that their logarithms exist."""
    return min((value for each in values for value in each), default=0.0) > 0


def mean_ratio(before: Sequence[float], after: Sequence[float]) -> float | None:
    """By how much the geometric mean has grown: -0.3 is a drop by 30 %; None where there are no two means.

    Of arithmetic means if a number is not positive.
    """
    if not before or not after:
        return None
    if positive(before, after):
        return math.exp(_mean(map(math.log, after), len(after)) - _mean(map(math.log, before), len(before))) - 1
    one, other = _mean(before, len(before)), _mean(after, len(after))
    return other / one - 1 if one else None


def _mean(values: Iterable[float], count: int) -> float:
    return math.fsum(values) / count


def inverted(sample: Sample) -> Sample:
    """The inverse of each value, without repetitions that have none: of times, speeds (1/s)."""
    runs = (replace(run, value=1 / run.value) for run in sample.repetitions if run.value)
    return replace(sample, repetitions=tuple(runs))


def with_zeros(sample: Sample) -> tuple[float, ...]:
    """The values, and 0 for every repetition that failed or timed out, as Fig. 3 of arXiv 2202.08228 counts them."""
    return sample.values + (0.0,) * (sample.conclusive - sample.succeeded)


def left_out(many: Iterable[Sample]) -> str:
    """Pairs that a figure leaves out: ``2 unsupported pairs, 1 pair that was not run``; empty if none."""
    return inconclusive(Counter(sample.pair_outcome for sample in many))


def without_number(many: Iterable[Sample]) -> str:
    """Pairs that a figure of means leaves out: as ``left_out``, and pairs without a successful repetition."""
    known = tuple(many)
    failed = sum(sample.mean is None and sample.pair_outcome in CONCLUSIVE for sample in known)
    without = f"{counted(failed, 'pair')} without a successful repetition" if failed else ""
    return ", ".join(part for part in (without, left_out(known)) if part)


def inconclusive(counts: Mapping[PairOutcome, int]) -> str:
    """How many pairs are inconclusive, and why; empty if none are."""
    words = {
        PairOutcome.UNSUPPORTED: ("unsupported pair", "unsupported pairs"),
        PairOutcome.ERROR: ("pair with only harness errors", "pairs with only harness errors"),
        PairOutcome.NOT_RUN: ("pair that was not run", "pairs that were not run"),
    }
    return ", ".join(
        counted(count, one, several) for outcome, (one, several) in words.items() if (count := counts.get(outcome))
    )


@dataclass(frozen=True)
class ReliabilityGroup:
    """The samples of an implementation in one role in two campaigns, cell by cell; or all samples."""

    role: Role | None
    """None: all pairs."""
    implementation: str
    """Empty: all pairs."""
    first: tuple[Sample, ...]
    second: tuple[Sample, ...]
    test_case: str = ""
    """The only test case of the samples, if they are apart from those of others; empty for all test cases."""

    @cached_property
    def succeeded(self) -> tuple[int, int]:
        """Repetitions that succeeded, in the first and in the second campaign."""
        return sum(each.succeeded for each in self.first), sum(each.succeeded for each in self.second)

    @cached_property
    def conclusive(self) -> tuple[int, int]:
        """Conclusive repetitions in both."""
        return sum(each.conclusive for each in self.first), sum(each.conclusive for each in self.second)

    @cached_property
    def repetitions(self) -> tuple[int, int]:
        """Number of repetitions of each campaign."""
        first, second = (
            {run.number for each in many for run in each.repetitions} for many in (self.first, self.second)
        )
        return len(first), len(second)
