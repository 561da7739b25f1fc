"""Similar delays: how far the goodput of a pair changes with a delay that hardly differs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from interop.model.results import ResultSet
from interop.model.test_case import TestCase
from interop.report.table import Column, Table, Unit
from interop.statistics.samples import GOODPUT, samples
from scripts.paper.lines import rendered
from scripts.paper.seeds import percentile

Pair = tuple[str, str]
"""Server and client."""


def delays(results: ResultSet) -> Iterator[str]:
    """The spread of each server, and with which uncertainty single runs are to be read; nothing with one delay."""
    cases = sorted(results.manifest.test_cases, key=lambda case: case.emulated.forward_delay)
    found = deviations(results, cases)
    if not found:
        return
    manifest = results.manifest
    steps = [1000 * case.emulated.forward_delay for case in cases]
    middle = (steps[0] + steps[-1]) / 2
    yield "## Sensitivity to the delay"
    yield ""
    yield (
        f"{len(manifest.servers)} servers and {len(manifest.clients)} clients over `sat`, with {len(cases)} one-way "
        f"delays: {', '.join(f'{step:g}' for step in steps)} ms, which is {middle:g} ms ± "
        f"{100 * (steps[-1] / middle - 1):.2g} %. Nothing else of the link differs, and the seeds {_seeds(results)}."
    )
    yield ""
    yield from rendered(by_server(results, found))
    values, most = sorted(found.values()), worst(found)
    yield (
        f"The goodput of a pair has a standard deviation over the delays of {100 * statistics.median(values):.1f} % of "
        f"its mean at the median, {100 * percentile(values, 90):.1f} % at the 90th percentile, and "
        f"{100 * values[-1]:.1f} % at most ({most[0]} with {most[1]}). Read single runs over `sat` on this page with "
        "this uncertainty: a difference of two pairs that is not larger may be due to the exact delay."
    )
    yield ""


def _seeds(results: ResultSet) -> str:
    """Whether each pair has the same seed with all delays."""
    found: dict[tuple[str, str, int], set[int | None]] = {}
    for run in results.results:
        found.setdefault((run.server, run.client, run.repetition), set()).add(run.evidence.seed)
    return "are the same" if all(len(each) == 1 for each in found.values()) else "differ"


def deviations(results: ResultSet, cases: Sequence[TestCase]) -> dict[Pair, float]:
    """Relative standard deviation over the delays, of each pair that succeeded with all of them."""
    means: dict[Pair, list[float]] = {}
    for case in cases:
        for sample in samples(results, case.name, GOODPUT):
            if sample.values:
                means.setdefault((sample.server, sample.client), []).append(statistics.fmean(sample.values))
    return {
        pair: statistics.stdev(found) / statistics.fmean(found)
        for pair, found in means.items()
        if len(found) == len(cases) > 1
    }


def worst(found: Mapping[Pair, float]) -> Pair:
    """The pair with the largest spread."""
    return max(found, key=lambda pair: found[pair])


def by_server(results: ResultSet, found: Mapping[Pair, float]) -> Table:
    """A row for each server, and one for all."""
    columns = (
        Column("server"), Column("pairs", Unit.COUNT), Column("median", Unit.SHARE, 1),
        Column("largest", Unit.SHARE, 1), Column("client with the largest"),
    )  # fmt: skip
    rows = list[tuple[float | int | str | None, ...]]()
    for server in results.manifest.servers:
        mine = {pair: value for pair, value in found.items() if pair[0] == server}
        if mine:
            values = mine.values()
            rows.append((server, len(mine), statistics.median(values), max(values), worst(mine)[1]))
    note = (
        "Standard deviation of the goodput over the delays, divided by its mean, for each pair that succeeded with all "
        "delays."
    )
    return Table("similar-delays", "Spread of the goodput over similar delays", columns, tuple(rows), (note,))
