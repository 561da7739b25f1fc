"""Statistics of the attempts at the runs of a campaign: count, exclusions with reasons, outcomes; pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import ResultSet, RunResult

CellKey = tuple[str, str, str]
"""Server, client, test case."""
NEVER_ATTEMPTED = (ErrorCode.NOT_COMPLIANT, ErrorCode.IMAGE_MISSING)
"""Codes of results without an attempt: nothing was started."""
DECISIVE = (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMEOUT)
"""Outcomes that show whether the pair passes the test case."""
NOT_STORED = "not stored"
"""Reason of an excluded attempt whose result is not stored: a result.json without ``earlier``."""


@dataclass(frozen=True)
class Tally:
    """Attempts at the runs of a cell, or of several."""

    attempts: int
    runs: int
    """Runs with at least one attempt."""
    reasons: Mapping[str, int]
    """How many attempts are excluded, by error code."""
    passed: int
    """Valid attempts that succeeded."""
    decisive: int
    """Valid attempts that succeeded, failed or timed out."""
    would_pass: int
    """Excluded attempts that would have succeeded if they were valid."""
    would_decide: int
    """Excluded attempts that would have succeeded, failed or timed out if they were valid."""
    retried: int
    """Valid attempts that were repeated on request."""

    @property
    def excluded(self) -> int:
        """Excluded attempts, also if they were the last of their run."""
        return sum(self.reasons.values())

    @property
    def valid(self) -> int:
        """Valid attempts, also if they were repeated on request."""
        return self.attempts - self.excluded


def was_attempted(result: RunResult) -> bool:
    """Whether a result comes from an attempt; skipped runs and runs that could not start have none."""
    return result.verdict.outcome is not Outcome.SKIPPED and result.verdict.code not in NEVER_ATTEMPTED


def by_cell(result_set: ResultSet) -> dict[CellKey, list[RunResult]]:
    """Results of all attempts, excluded ones too, by cell; in each by repetition and number of the attempt."""
    found: dict[CellKey, list[RunResult]] = {}
    for result in (*result_set.results, *result_set.earlier):
        found.setdefault((result.server, result.client, result.test_case), []).append(result)
    return {key: sorted(each, key=lambda one: (one.repetition, one.attempt)) for key, each in found.items()}


def retried(made: Sequence[RunResult]) -> list[RunResult]:
    """The valid ones of these attempts at which a later one followed, which only ``resume --retry`` causes."""
    last = {each.repetition: each.attempt for each in sorted(made, key=lambda one: one.attempt)}
    return [each for each in made if each.attempt < last[each.repetition] and not each.verdict.excluded]


def tally(results: Sequence[RunResult]) -> Tally:
    """Count the attempts among ``results`` of one cell, which must contain all stored attempts of their runs."""
    made = [result for result in results if was_attempted(result)]
    excluded = [result for result in made if result.verdict.excluded]
    valid = [result.verdict for result in made if not result.verdict.excluded]
    otherwise = [result.verdict.if_valid for result in excluded if result.verdict.if_valid is not None]
    reasons = Counter(result.verdict.code.value for result in excluded)
    lost = _not_stored(results)
    if lost:
        reasons[NOT_STORED] = lost
    return Tally(
        attempts=len(made) + lost,
        runs=len({result.repetition for result in made}),
        reasons=_most_first(reasons),
        passed=_passed(valid),
        decisive=_decisive(valid),
        would_pass=_passed(otherwise),
        would_decide=_decisive(otherwise),
        retried=len(retried(made)),
    )


def together(tallies: Sequence[Tally]) -> Tally:
    """The sum over several cells."""
    if len(tallies) == 1:
        return tallies[0]
    reasons = Counter[str]()
    for each in tallies:
        reasons.update(each.reasons)
    counts = ("attempts", "runs", "passed", "decisive", "would_pass", "would_decide", "retried")
    sums = {name: sum(getattr(each, name) for each in tallies) for name in counts}
    return Tally(reasons=_most_first(reasons), **sums)


def _most_first(reasons: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(reasons.items(), key=lambda each: (-each[1], each[0])))


def _not_stored(results: Iterable[RunResult]) -> int:
    """Number of attempts without a stored result, inferred from the numbers of later ones."""
    numbers: dict[int, set[int]] = {}
    for result in results:
        numbers.setdefault(result.repetition, set()).add(result.attempt)
    return sum(max(0, max(known) - len(known)) for known in numbers.values())


def _passed(verdicts: Iterable[Verdict]) -> int:
    return sum(verdict.outcome is Outcome.SUCCEEDED for verdict in verdicts)


def _decisive(verdicts: Iterable[Verdict]) -> int:
    return sum(verdict.outcome in DECISIVE for verdict in verdicts)
