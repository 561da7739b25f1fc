"""Several seeds: how far the results depend on the sequence of losses."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from interop.model.implementation import Role
from interop.model.results import ResultSet, RunResult
from interop.report.table import Column, Table, Unit
from interop.statistics.overview import Marginal, marginals
from interop.statistics.samples import EFFICIENCY, find, samples
from scripts.paper.goodput import with_timeouts
from scripts.paper.lines import rendered
from scripts.paper.words import listed


def seeds(results: ResultSet, spread: ResultSet | None) -> Iterator[str]:
    """The efficiency of each server with its interval, and the spread; nothing with one seed.

    ``spread``: runs of the other links with further seeds.
    """
    case = find(results, "satloss")
    count = len({run.evidence.seed for run in results.results if case and run.test_case == case.name})
    if case is None or count < 2:
        return
    yield "## Seeds"
    yield ""
    yield (
        f"Over `satloss`, the link drops different packets with each of {count} seeds. In a repetition, all pairs have "
        "the same seed. The confidence intervals therefore treat both clients and seeds as random."
    )
    yield ""
    yield from rendered(with_intervals(results))
    runs = (*results.results, *(spread.results if spread else ()))
    yield from rendered(spreads(runs, [case.name for case in results.manifest.test_cases]))


def spreads(runs: Sequence[RunResult], cases: Sequence[str]) -> Table:
    """A row for each link: how far the goodputs of a pair differ from seed to seed."""
    columns = (
        Column("link"), Column("pairs", Unit.COUNT), Column("seeds", Unit.COUNT), Column("median", Unit.SHARE, 1),
        Column("90th percentile", Unit.SHARE, 1), Column("largest", Unit.SHARE, 1), Column("pair with the largest"),
    )  # fmt: skip
    found = dict[tuple[str, str, str], dict[int | None, float | None]]()
    for run in runs:
        goodput = run.measurement.values.get("goodput") if run.measurement else None
        key = run.test_case, run.server, run.client
        found.setdefault(key, {})[run.evidence.seed] = goodput
    rows = list[tuple[float | int | str | None, ...]]()
    for case in cases:
        mine = {key[1:]: list(values.values()) for key, values in found.items() if key[0] == case}
        most = max(map(len, mine.values()), default=0)
        deviations = {
            pair: statistics.stdev(known) / statistics.mean(known)
            for pair, values in mine.items()
            if len(values) == most > 1 and len(known := [value for value in values if value is not None]) == most
        }
        if deviations:
            worst = max(deviations, key=lambda pair: deviations[pair])
            values = sorted(deviations.values())
            middle, ninety = statistics.median(values), percentile(values, 90)
            rows.append((case, len(values), most, middle, ninety, values[-1], f"{worst[0]} with {worst[1]}"))
    notes = [
        (
            "The spread of a pair is the standard deviation over the seeds, divided by the mean. The table includes "
            "the pairs that succeeded with all seeds. Without random loss, a seed determines only the random numbers "
            "of the endpoints."
        )
    ]
    return Table("spread", "Spread of the goodput of a pair over seeds", columns, tuple(rows), tuple(notes))


def percentile(values: Sequence[float], number: int) -> float:
    """Of at least one value; ``number``: a multiple of 10."""
    return statistics.quantiles(values, n=10, method="inclusive")[number // 10 - 1] if len(values) > 1 else values[0]


def with_intervals(results: ResultSet) -> Table:
    """A row for each server: its efficiency over each link, with its interval."""
    cases = results.manifest.test_cases
    every = with_timeouts(results)
    found = {
        (case.name, each.implementation): each
        for case in cases
        for each in marginals(samples(every, case.name, EFFICIENCY))
        if each.role is Role.SERVER
    }
    columns = (Column("server"), *(Column(f"{case.name} [%]") for case in cases))
    rows = tuple(
        (server, *(_in_words(found.get((case.name, server))) for case in cases)) for server in results.manifest.servers
    )
    few = [f"`{case.name}`" for case in cases if case.repetitions == 1]
    note = (
        "The table shows geometric means, with the limits of the 95 % confidence interval generalized to other clients "
        f"and seeds{_for_clients_only(few)}. For runs that timed out, goodput is based on the "
        "bytes that had arrived."
    )
    return Table("intervals", "Efficiency of servers, with confidence intervals", columns, rows, (note,))


def _for_clients_only(links: Sequence[str]) -> str:
    return f" (over {listed(links)}, there is one seed, so only to other clients)" if links else ""


def _in_words(each: Marginal | None) -> str:
    """``35.2 (29.3 to 42.3)``."""
    if each is None or each.typical is None:
        return ""
    limits = "" if each.low is None or each.high is None else f" ({_percent(each.low)} to {_percent(each.high)})"
    return f"{_percent(each.typical)}{limits}"


def _percent(share: float) -> str:
    """With three digits: ``39.0``, ``100``."""
    return f"{100 * share:#.3g}".removesuffix(".")
