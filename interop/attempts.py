"""Every attempt at the runs of a campaign: how many there were, which are excluded and why, how each ended; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from interop.model import ErrorCode, Outcome, ResultSet, RunResult, Verdict

Key = tuple[str, str, str]
"""Server, client, test case."""
NOT_MADE = (ErrorCode.NOT_COMPLIANT, ErrorCode.IMAGE_MISSING)
"""Codes of results without an attempt: nothing was started."""
TOLD = (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMEOUT)
"""Outcomes that say whether the pair can do what the test case asks for."""
NOT_STORED = "not stored"
"""Reason of an excluded attempt of which only the number is known: a result.json without ``earlier``."""


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
    told: int
    """Valid attempts that succeeded, failed or timed out."""
    would_pass: int
    """Excluded attempts that would have succeeded if they were valid."""
    would_tell: int
    """Excluded attempts of which it is known that they would have succeeded, failed or timed out."""

    @property
    def excluded(self) -> int:
        """Attempts that do not count, with those that were the last of their run."""
        return sum(self.reasons.values())

    @property
    def valid(self) -> int:
        """Attempts that count, with those that somebody had repeated all the same."""
        return self.attempts - self.excluded


def is_made(result: RunResult) -> bool:
    """Whether a result is that of an attempt; runs that were skipped or could not be started have none."""
    return result.verdict.outcome is not Outcome.SKIPPED and result.verdict.code not in NOT_MADE


def by_cell(result_set: ResultSet) -> dict[Key, list[RunResult]]:
    """Results of all attempts, those that do not count too, by cell; by repetition and number in each."""
    found: dict[Key, list[RunResult]] = {}
    for result in (*result_set.results, *result_set.earlier):
        found.setdefault((result.server, result.client, result.test_case), []).append(result)
    return {key: sorted(each, key=lambda one: (one.repetition, one.attempt)) for key, each in found.items()}


def tally(results: Sequence[RunResult]) -> Tally:
    """Count the attempts among ``results``, which hold all that is known of their runs."""
    made = [result for result in results if is_made(result)]
    excluded = [result for result in made if result.verdict.excluded]
    valid = [result.verdict for result in made if not result.verdict.excluded]
    otherwise = [result.verdict.if_valid for result in excluded if result.verdict.if_valid is not None]
    reasons = Counter(result.verdict.code.value for result in excluded)
    lost = _not_stored(results)
    if lost:
        reasons[NOT_STORED] = lost
    return Tally(
        attempts=len(made) + lost,
        runs=len({_run(result) for result in made}),
        reasons=dict(sorted(reasons.items(), key=lambda each: (-each[1], each[0]))),
        passed=_passed(valid),
        told=_told(valid),
        would_pass=_passed(otherwise),
        would_tell=_told(otherwise),
    )


def _run(result: RunResult) -> tuple[str, str, str, int]:
    return result.server, result.client, result.test_case, result.repetition


def _not_stored(results: Iterable[RunResult]) -> int:
    """Attempts of which no more is known than that there was a later one."""
    numbers: dict[tuple[str, str, str, int], set[int]] = {}
    for result in results:
        numbers.setdefault(_run(result), set()).add(result.attempt)
    return sum(max(0, max(known) - len(known)) for known in numbers.values())


def _passed(verdicts: Iterable[Verdict]) -> int:
    return sum(verdict.outcome is Outcome.SUCCEEDED for verdict in verdicts)


def _told(verdicts: Iterable[Verdict]) -> int:
    return sum(verdict.outcome in TOLD for verdict in verdicts)
