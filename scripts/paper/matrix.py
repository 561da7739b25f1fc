"""Table II, servers and clients: what all pairs reached over each link, beside the paper."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace

from interop.model.outcomes import Outcome
from interop.model.results import ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.report.table import Column, Table, Unit
from interop.statistics.clusters import MOST_CLUSTERS
from interop.statistics.overview import Scenario, family, scenario
from interop.statistics.samples import GOODPUT, value_of
from scripts.paper.endpoints import version_in_words
from scripts.paper.goodput import goodput_so_far, known, mean_of, of_case
from scripts.paper.lines import Line, rendered
from scripts.paper.published import PAPER_CONGESTION_CONTROL, PAPER_PAIRS, PAPER_TIME_LIMITS, TABLE_II, PaperRow
from scripts.paper.theory import below_the_limit
from scripts.paper.words import counted, listed


def beside_the_paper(results: ResultSet) -> Table:
    """Table II: our rows and those of the paper."""
    columns = (
        Column("test case"), Column("measured by"), Column("mean", Unit.RATE), Column("mean, all runs", Unit.RATE),
        Column("median, all runs", Unit.RATE), Column("max", Unit.RATE, 1), Column("T", Unit.COUNT),
        Column("×", Unit.COUNT), Column("pairs", Unit.COUNT),
    )  # fmt: skip
    rows = list[tuple[float | int | str | None, ...]]()
    shared = common(results)
    for case in results.manifest.test_cases:
        rows.append((case.name, "quicsat, all servers", *row_of(results, case)))
        if shared.results:
            rows.append((case.name, f"quicsat, {in_common(results)} of the paper", *row_of(shared, case)))
        if paper := TABLE_II.get(case.name):
            lost = (paper.timeouts, paper.failures, PAPER_PAIRS)
            rows.append((case.name, "paper", paper.mean, None, None, paper.maximum, *lost))
    means = (
        "Means and maxima are over successful runs. *All runs* also includes unsuccessful runs; their goodput is the "
        f"number of bytes that had arrived, divided by the client's run time.{_without_file(results)}"
    )
    counts = (
        "A pair with at least one unsuccessful repetition counts once: as T if the first such repetition timed out, "
        "and as × if it failed. More repetitions therefore lead to higher counts; the paper has ten per pair."
    )
    return Table("table-ii", "Table II", columns, tuple(rows), (means, counts))


def row_of(results: ResultSet, case: TestCase) -> tuple[float | int | None, ...]:
    """Mean, mean and median of all runs, maximum, timeouts, failures and pairs in a test case."""
    row, every = scenario(results, case), known(of_case(results, case))
    mean, median = (statistics.fmean(every), statistics.median(every)) if every else (None, None)
    return row.mean, mean, median, row.maximum, row.timeouts, row.failures, row.pairs


def common(results: ResultSet) -> ResultSet:
    """The results of the servers and clients that the paper measured, too."""
    manifest = results.manifest
    servers, clients = (
        tuple(name for name in names if name in PAPER_CONGESTION_CONTROL)
        for names in (manifest.servers, manifest.clients)
    )
    kept = tuple(each for each in results.results if each.server in servers and each.client in clients)
    return replace(results, results=kept, manifest=replace(manifest, servers=servers, clients=clients))


def in_common(results: ResultSet) -> str:
    """``9 servers and 9 clients``."""
    manifest = common(results).manifest
    return f"{counted(len(manifest.servers), 'server')} and {counted(len(manifest.clients), 'client')}"


def _without_file(results: ResultSet) -> str:
    """How many runs have no goodput at all."""
    lost = sum(goodput_so_far(each) is None for each in results.results)
    return f" *All runs* omits {counted(lost, 'run')} for which we do not know what had arrived." if lost else ""


def congestion_controls(results: ResultSet) -> Table:
    """The default congestion control of each server, then and now, and its mean efficiency over each link."""
    known = {each.name: each for each in results.manifest.implementations}
    cases = results.manifest.test_cases
    columns = (
        Column("server"), Column("version"), Column("congestion control, paper"), Column("congestion control, now"),
        *(Column(case.name, Unit.RATE) for case in cases), Column("succeeded"),
    )  # fmt: skip
    rows = [
        (
            name,
            version_in_words(results.manifest.images[name].version) if name in results.manifest.images else "",
            PAPER_CONGESTION_CONTROL.get(name, "not measured"),
            family(known.get(name)),
            *(mean_of(results, case, [name]) for case in cases),
            _succeeded([each for each in results.results if each.server == name]),
        )
        for name in results.manifest.servers
    ]
    note = (
        "Goodput is the mean of the successful runs of a server with all clients; a cell is empty if none succeeded. "
        "Some implementations call the same algorithm Reno, and others NewReno."
    )
    return Table("servers", "Servers and their congestion control", columns, tuple(rows), (note,))


def clients(results: ResultSet) -> Table:
    """The mean goodput of each client over each link, with the servers that always succeeded there."""
    cases = results.manifest.test_cases
    columns = (Column("client"), *(Column(case.name, Unit.RATE) for case in cases), Column("succeeded"))
    servers = {case.name: always_successful(results, case) for case in cases}
    rows = [
        (
            name,
            *(mean_of(results, case, servers[case.name], client=name) for case in cases),
            _succeeded([each for each in results.results if each.client == name]),
        )
        for name in results.manifest.clients
    ]
    counts = listed(f"{len(servers[case.name])} over `{case.name}`" for case in cases)
    note = f"Goodput is the mean over the servers whose runs all succeeded ({counts})."
    return Table("clients", "Clients", columns, tuple(rows), (note,))


def always_successful(results: ResultSet, case: TestCase) -> list[str]:
    """The servers that succeeded with all clients over a link."""
    return [name for name in results.manifest.servers if _always(results, case, name)]


def _always(results: ResultSet, case: TestCase, server: str) -> bool:
    found = [each for each in results.results if each.server == server and each.test_case == case.name]
    return bool(found) and all(each.verdict.outcome is Outcome.SUCCEEDED for each in found)


def _succeeded(runs: Sequence[RunResult]) -> str:
    return f"{sum(each.verdict.outcome is Outcome.SUCCEEDED for each in runs)} of {len(runs)}"


def differences(results: ResultSet) -> Iterator[str]:
    """A sentence per link, from the numbers of common servers and clients alone."""
    shared = common(results)
    rows = [(case, scenario(shared, case), TABLE_II.get(case.name)) for case in results.manifest.test_cases]
    if not shared.results:
        return
    servers, clients = shared.manifest.servers, shared.manifest.clients
    named = ", ".join(servers) if set(servers) == set(clients) else f"{', '.join(servers)}; {', '.join(clients)}"
    yield (
        f"We compare our runs of the {in_common(results)} that are also in the paper ({named}) with all of the paper's "
        "servers and clients, because the paper does not give values for individual pairs. There are no confidence "
        "intervals for the differences. A pair with ten repetitions, as in the paper, is more likely to count as T or "
        "× than a pair with fewer."
    )
    yield ""
    for case, row, paper in rows:
        if paper is None or row.mean is None or row.maximum is None:
            continue
        yield (
            f"- **{case.name}**: the mean goodput is {row.mean / 1e6:.2f} Mbit/s, "
            f"{relative(row.mean, paper.mean)} the paper's mean. The maximum is {row.maximum / 1e6:.1f} Mbit/s, "
            f"{relative(row.maximum, paper.maximum)} the paper's. {_outcomes(row, paper)}"
            f"{_with_timeouts(shared, case, row)}"
        )


def relative(value: float, other: float) -> str:
    """``16 % above``."""
    change = 100 * (value / other - 1)
    return f"{abs(change):.0f} % {'above' if change > 0 else 'below'}"


def _outcomes(row: Scenario, paper: PaperRow) -> str:
    ours = 100 * (row.timeouts + row.failures) / row.pairs
    theirs = 100 * (paper.timeouts + paper.failures) / PAPER_PAIRS
    return (
        f"Of our pairs, {ours:.1f} % timed out or failed; in the paper, at least one of ten repetitions did so in "
        f"{theirs:.1f} % of the pairs."
    )


def _with_timeouts(results: ResultSet, case: TestCase, row: Scenario) -> str:
    """The mean of all runs."""
    every = known(of_case(results, case))
    if not row.timeouts + row.failures or not every:
        return ""
    return f" Including unsuccessful runs, our mean is {statistics.fmean(every) / 1e6:.2f} Mbit/s."


def time_limits(results: ResultSet) -> Iterator[str]:
    """Runs that reached the time limit, and medians that do not depend on it."""
    columns = (
        Column("test case"), Column("time limit", Unit.SECONDS, 0), Column("in the paper", Unit.SECONDS, 0),
        Column("runs", Unit.COUNT), Column("reached the limit", Unit.COUNT),
        Column("longest success", Unit.SECONDS, 0), Column("file size / limit", Unit.RATE),
        Column("median with runs at the limit", Unit.RATE),
    )  # fmt: skip
    rows = []
    for case in results.manifest.test_cases:
        runs = of_case(results, case)
        times = [value for run in runs if (value := value_of(run, "completion_time")) is not None]
        least, paper = 8 * sum(case.file_sizes) / case.timeout, PAPER_TIME_LIMITS.get(case.name)
        late = sum(run.verdict.outcome is Outcome.TIMEOUT for run in runs)
        longest, median = max(times, default=None), _median_with_slowest(runs, late)
        rows.append((case.name, case.timeout, paper, len(runs), late, longest, least, median))
    yield from rendered(Table("limits", "Time limits", columns, tuple(rows)))
    yield (
        "The paper's limits include the time to start and stop the containers, whereas ours begin when the client "
        "starts. The goodput of a run that reaches the limit is below the file size divided by the limit. Means over "
        "successful runs omit such runs, and are therefore too high. The medians in the last column rank runs at the "
        "limit below all successful runs. They do not depend on the limit as long as fewer than half of the runs reach "
        "it; otherwise, the cell is empty."
    )
    yield ""
    servers, rates = below_the_limit(results)
    if servers:
        yield (
            f"Over `satloss`, a run {rates} for {listed(servers)}. We attribute the timeouts of "
            f"{'this server' if len(servers) == 1 else 'these servers'} over this link to the time limit rather than "
            "to defects. See [Reasons for failures](#reasons-for-failures)."
        )
        yield ""


def _median_with_slowest(runs: Sequence[RunResult], slowest: int) -> float | None:
    """Median goodput of the successful runs and of so many that are slower; None if it is one of the latter."""
    values = [0.0] * slowest + [value for run in runs if (value := value_of(run, GOODPUT)) is not None]
    return statistics.median(values) if len(values) > 2 * slowest else None


def about_groups(figures: Sequence[Line]) -> Iterator[str]:
    """How the groups of the following figures are found, and that the report does not use them."""
    if figures:
        yield (
            "In the next figures, the groups come from k-means. Each figure uses the number of groups, from 2 to "
            f"{MOST_CLUSTERS}, that has the largest silhouette score. The groups only describe the points; we draw no "
            "conclusions from them."
        )
        yield ""
