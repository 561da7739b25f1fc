"""Goodput of runs, of those that did not succeed, too."""

from __future__ import annotations

import statistics
from collections.abc import Collection

from interop.model.outcomes import Outcome
from interop.model.results import ResultSet, RunResult
from interop.model.test_case import TestCase


def most(run: RunResult, case: TestCase) -> float:
    """Goodput of a run, bit/s, or an upper bound if it did not succeed."""
    if run.verdict.outcome is Outcome.SUCCEEDED and run.measurement is not None:
        return run.measurement.values["goodput"]
    return sum(case.file_sizes) * 8 / case.timeout if run.verdict.outcome is Outcome.TIMEOUT else 0.0


def mean_of(results: ResultSet, case: TestCase, servers: Collection[str], client: str = "") -> float | None:
    """Mean goodput of the successful runs of servers, with one client or all, in a test case, bit/s."""
    found = [
        each.measurement.values["goodput"]
        for each in results.results
        if each.test_case == case.name
        and each.measurement is not None
        and each.verdict.outcome is Outcome.SUCCEEDED
        and each.server in servers
        and (each.client == client or not client)
    ]
    return statistics.fmean(found) if found else None
