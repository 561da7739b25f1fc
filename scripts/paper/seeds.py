"""Several seeds: how far the results depend on the sequence of losses."""

from __future__ import annotations

from collections.abc import Iterator

from interop.model.implementation import Role
from interop.model.results import ResultSet
from interop.report.table import Column, Table, Unit
from interop.statistics.overview import marginals
from interop.statistics.samples import EFFICIENCY, find, samples
from scripts.paper.goodput import with_timeouts
from scripts.paper.lines import rendered


def seeds(results: ResultSet) -> Iterator[str]:
    """The efficiency of each server over satloss with its interval; nothing with one seed."""
    case = find(results, "satloss")
    count = len({run.evidence.seed for run in results.results if case and run.test_case == case.name})
    if case is None or count < 2:
        return
    yield "## Seeds"
    yield ""
    yield (
        f"Over `satloss`, the link drops other packets with each of {count} seeds. All pairs share the seed of a "
        "repetition. The intervals therefore treat both clients and seeds as random."
    )
    yield ""
    yield from rendered(over_seeds(results))


def over_seeds(results: ResultSet) -> Table:
    """A row for each server."""
    columns = (
        Column("server"), Column("efficiency", Unit.SHARE, 2), Column("low", Unit.SHARE, 2),
        Column("high", Unit.SHARE, 2), Column("clients", Unit.COUNT),
    )  # fmt: skip
    found = marginals(samples(with_timeouts(results), "satloss", EFFICIENCY))
    rows = tuple(
        (each.implementation, each.typical, each.low, each.high, each.pairs)
        for each in found
        if each.role is Role.SERVER and each.typical is not None
    )
    note = (
        "Geometric means over clients and seeds, with the limits of the 95 % confidence interval for further clients "
        "and seeds. Runs that timed out count with what had arrived."
    )
    return Table("seeds", "Servers over satloss", columns, rows, (note,))
