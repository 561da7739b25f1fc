"""Summary statistics per pair and test case; pure."""

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from quicsat.model.implementation import Protocol
from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.test_case import TestCase
from quicsat.results.attempts import Tally, by_cell, tally

FRAGILE = 0.05
"""Share of the mean above which a standard deviation makes the goodput of a pair fragile."""
FRAGILE_MARK = "≈"
"""In matrices."""
VIRTUAL_ONLY_MARK = "†"
"""In matrices and figures."""
IN_REAL_TIME = (
    "runs in real time differ by more than 5 % or in their outcome, or vary too much to show that they do not "
    "(docs/measurements/virtual-time.md)"
)
VIRTUAL_ONLY = f"holds in virtual time only: {IN_REAL_TIME}"
"""Of a pair over a link."""


@dataclass(frozen=True)
class Figures:
    """Distribution of the values of the repetitions that succeeded; same unit as the values."""

    mean: float
    standard_deviation: float | None
    """Of a sample (n - 1); None for a single value."""
    median: float
    min: float
    max: float

    @property
    def fragile(self) -> bool:
        """Whether the values spread so much that a small difference of conditions may change their mean."""
        return self.standard_deviation is not None and self.standard_deviation > FRAGILE * abs(self.mean)


@dataclass(frozen=True)
class Cell:
    """One pair in one test case. Every repetition has an outcome or is still to run."""

    server: str
    client: str
    test_case: str
    planned: int
    """Repetitions that the test case asks for."""
    n: int
    """Repetitions that say something about the pair: all that have a result but ``error`` and ``skipped``."""
    succeeded: int
    failed: int
    timeout: int
    unsupported: int
    error: int
    """Repetitions that ended with a harness error."""
    goodput: Figures | None
    """bit/s; None if no repetition succeeded."""
    efficiency: Figures | None
    """Share of the forward rate, 0..1."""
    protocol: Protocol = Protocol.HQ
    skipped: int = 0
    """Repetitions that were skipped to save time."""
    attempts: int = 0
    """Attempts at all repetitions, valid or not."""
    excluded: int = 0
    """Excluded attempts."""
    time: Figures | None = None
    """Seconds, by the main metric of the workload; None without a workload, or if goodput is its main metric."""
    sealed: int = 0
    """Of the unsupported repetitions, those that cannot be judged because no logged key opens their packets."""
    virtual_only: bool = False
    """Goodput in real time is known to differ by more than 5 %, or the outcome."""

    @property
    def repeated(self) -> int:
        """Attempts beyond one at each repetition that has a result."""
        return max(0, self.attempts - self.n - self.error)

    @property
    def not_run(self) -> int:
        """Repetitions without a result."""
        return max(0, self.planned - self.n - self.error - self.skipped)


def figures(numbers: Sequence[float]) -> Figures | None:
    """None if there are no values or their mean is not finite."""
    try:
        found = Figures(
            mean=statistics.fmean(numbers),
            standard_deviation=statistics.stdev(numbers) if len(numbers) > 1 else None,
            median=statistics.median(numbers),
            min=min(numbers),
            max=max(numbers),
        )
    except (statistics.StatisticsError, OverflowError):
        return None
    numeric = (found.mean, found.median, found.standard_deviation or 0.0)
    return found if all(math.isfinite(number) for number in numeric) else None


def summarise(result_set: ResultSet) -> tuple[Cell, ...]:
    """A cell for each pair and test case that has a result, in the order of the results."""
    cases = {test_case.name: test_case for test_case in result_set.manifest.test_cases}
    groups: dict[tuple[str, str, str], list[RunResult]] = {}
    for result in result_set.results:
        groups.setdefault((result.server, result.client, result.test_case), []).append(result)
    attempts = by_cell(result_set)
    return tuple(
        replace(
            _cell(results, cases.get(key[2]), tally(attempts[key])),
            virtual_only=key in result_set.virtual_only,
        )
        for key, results in groups.items()
    )


def _cell(results: list[RunResult], case: TestCase | None, attempts: Tally) -> Cell:
    workload = case.workload if case else None
    outcomes = Counter(result.verdict.outcome for result in results)
    return Cell(
        server=results[0].server,
        client=results[0].client,
        test_case=results[0].test_case,
        planned=case.repetitions if case else 0,
        n=len(results) - outcomes[Outcome.ERROR] - outcomes[Outcome.SKIPPED],
        succeeded=outcomes[Outcome.SUCCEEDED],
        failed=outcomes[Outcome.FAILED],
        timeout=outcomes[Outcome.TIMEOUT],
        unsupported=outcomes[Outcome.UNSUPPORTED],
        error=outcomes[Outcome.ERROR],
        goodput=figures(_of_successes(results, "goodput")),
        efficiency=figures(_of_successes(results, "efficiency")),
        protocol=results[0].protocol,
        skipped=outcomes[Outcome.SKIPPED],
        attempts=attempts.attempts,
        excluded=attempts.excluded,
        sealed=sum(result.verdict.code is ErrorCode.KEY_LOG_MISSING for result in results),
        time=figures(_of_successes(results, workload.main_metric)) if workload and not workload.duration else None,
    )


def _of_successes(results: Sequence[RunResult], metric: str) -> list[float]:
    """One number per repetition that succeeded and has it."""
    return [
        result.measurement.values[metric]
        for result in results
        if result.verdict.outcome is Outcome.SUCCEEDED
        and result.measurement is not None
        and metric in result.measurement.values
    ]
