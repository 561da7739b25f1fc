"""The runs of a test case that succeeded, and means over them, for tables and figures."""

from collections.abc import Iterable
from statistics import fmean

from quicsat.model.outcomes import Outcome
from quicsat.model.results import RunResult
from quicsat.model.test_case import TestCase


def successes(results: Iterable[RunResult], case: TestCase) -> list[RunResult]:
    """The runs of a test case that succeeded, in the order of ``results``."""
    return [each for each in results if each.test_case == case.name and each.verdict.outcome is Outcome.SUCCEEDED]


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
