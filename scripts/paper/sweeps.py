"""Sweeps: goodput over the queue, the delay, the loss and the size of the file."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from interop.model.family import SweptValue
from interop.model.outcomes import Outcome
from interop.model.results import ResultSet
from interop.model.test_case import TestCase
from interop.report.table import Column, Table
from interop.statistics.overview import by_family
from scripts.paper.goodput import known, of_case
from scripts.paper.lines import Figure, Line, rendered


def sweeps(results: ResultSet, figures: Sequence[Line]) -> Iterator[Line]:
    """A table, a figure and the range of each sweep."""
    yield "## Sweeps"
    yield ""
    yield (
        f"{', '.join(results.manifest.servers)}, each with itself. Each sweep changes one key of `sat`. Runs that "
        "timed out count with what had arrived; a T marks means that include such runs. The bandwidth-delay product "
        "of `sat` is 1,000 packets of 1,500 bytes."
    )
    yield ""
    for cases in by_family(results.manifest.test_cases).values():
        yield from rendered(by_value(results, cases))
        yield from ranges(results, cases)
        yield ""
        yield from (each for each in figures if isinstance(each, Figure) and each.shows(_abbreviation(cases)))


def _abbreviation(cases: Sequence[TestCase]) -> str:
    return cases[0].family.abbreviation if cases[0].family else ""


def swept(case: TestCase) -> SweptValue:
    """The value that a sweep gives to the test case."""
    assert case.family is not None
    return case.family.values[0]


def by_value(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """Goodput of each implementation, by the value of the swept key."""
    key = swept(cases[0]).key
    columns = (Column("server and client"), *(Column(swept(case).text) for case in cases))
    rows = [(name, *(_cell(results, case, name) for case in cases)) for name in results.manifest.servers]
    return Table(key, f"Goodput in Mbit/s by {key}", columns, tuple(rows))


def _cell(results: ResultSet, case: TestCase, name: str) -> str:
    runs = [run for run in of_case(results, case) if run.server == name]
    values = known(runs)
    late = any(run.verdict.outcome is not Outcome.SUCCEEDED for run in runs)
    return f"{statistics.fmean(values) / 1e6:.2f}{' T' if late else ''}" if values else ""


def ranges(results: ResultSet, cases: Sequence[TestCase]) -> Iterator[str]:
    """How many times as fast the last value of the sweep is, compared with the first."""
    first, last = cases[0], cases[-1]
    ratios = {}
    for name in results.manifest.servers:
        low, high = (known(run for run in of_case(results, case) if run.server == name) for case in (first, last))
        if low and high:
            ratios[name] = statistics.fmean(high) / statistics.fmean(low)
    if not ratios:
        return
    least, most = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    yield (
        f"From {swept(first).text} to {swept(last).text}, goodput changes by a factor of {ratios[least]:.2f} ({least}) "
        f"to {ratios[most]:.2f} ({most})."
    )
