"""Similar delays: how far the goodput of a pair changes with a delay that hardly differs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from interop.model.results import ResultSet
from interop.model.test_case import TestCase
from interop.report.table import Column, Table, Unit
from interop.statistics.samples import GOODPUT, find, samples
from scripts.paper.explicit_defaults import in_words as explicit_defaults
from scripts.paper.lines import rendered
from scripts.paper.seeds import percentile
from scripts.paper.words import counted, listed

Pair = tuple[str, str]
"""Server and client."""


def delays(
    results: ResultSet,
    matrix: ResultSet | None = None,
    variants: ResultSet | None = None,
    windows: ResultSet | None = None,
) -> Iterator[str]:
    """The spread of each server, and with which uncertainty single runs are to be read; nothing with one delay.

    ``matrix``, ``variants``: they have runs that differ only in an option which selects the default. ``windows``: runs
    without this option.
    """
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
        f"We measured {counted(len(manifest.servers), 'server')} and {counted(len(manifest.clients), 'client')} over "
        f"`sat` with {len(cases)} one-way delays: {listed(f'{step:g}' for step in steps)} ms, that is, {middle:g} ms ± "
        f"{100 * (steps[-1] / middle - 1):.2g} %. The links do not differ otherwise, and the seeds {_seeds(results)}."
    )
    yield ""
    yield from rendered(by_server(results, found))
    values, most = sorted(found.values()), worst(found)
    yield (
        f"Over all pairs, the median of this spread is {100 * statistics.median(values):.1f} %, the 90th percentile "
        f"is {100 * percentile(values, 90):.1f} %, and the maximum is {100 * values[-1]:.1f} % ({most[0]} with "
        f"{most[1]}). Single runs over `sat` on this page should be read with this uncertainty in mind. The difference "
        "between two such runs has a standard deviation of √2 times the spread, so a difference of up to 2.8 times the "
        "spread may be due to the exact delay (95 % of differences, if they are normally distributed). If goodput were "
        f"inversely proportional to the round-trip time, its spread would be {100 * _of_the_delay(steps):.1f} %."
    )
    yield ""
    case = find(matrix, "sat") if matrix is not None else None
    if matrix is not None and variants is not None and case is not None:
        yield from explicit_defaults(matrix, variants, case, windows)


def _of_the_delay(steps: Sequence[float]) -> float:
    """Relative standard deviation of the inverse of delays."""
    inverse = [1 / step for step in steps]
    return statistics.stdev(inverse) / statistics.fmean(inverse)


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
        "The spread of a pair is the standard deviation of its goodput over the delays, divided by the mean. The table "
        "includes the pairs that succeeded with all delays."
    )
    return Table("similar-delays", "Spread of the goodput over similar delays", columns, tuple(rows), (note,))
