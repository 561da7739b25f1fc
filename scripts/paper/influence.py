"""Influence of server and client: their shares of the variance, and how far their means differ."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Mapping

from interop.model.emulated_link import loss_share
from interop.model.outcomes import Outcome
from interop.model.results import ResultSet
from interop.model.test_case import TestCase
from interop.report import campaign_tables
from interop.report.table import Column, Table, Unit
from interop.statistics.overview import family
from interop.statistics.samples import EFFICIENCY, find, samples
from interop.statistics.variance import Share, decompose
from scripts.paper.acknowledgements import acknowledgements
from scripts.paper.goodput import STREAM_GOODPUT, known, mean_of, of_case, with_timeouts
from scripts.paper.lines import rendered
from scripts.paper.matrix import always_successful
from scripts.paper.seeds import percentile
from scripts.paper.words import listed

TEN = 10
"""Ratios from it on have no digit after the point."""


def influence(results: ResultSet, corrected: ResultSet | None = None) -> Iterator[str]:
    """The shares, what they depend on, and the sizes of the effects; ``corrected``: runs of msquic."""
    yield from rendered(campaign_tables.variance(results, results.manifest.test_cases))
    yield (
        "Efficiency is goodput divided by the constant rate of the link, so the shares are the same for the logarithm "
        "of goodput. The intervals are generalized confidence intervals (Weerahandi 1993); see "
        "[Statistics](../reference/statistics.md#intervals). They assume that the effects of servers and clients are "
        "normally distributed. The shares describe these servers and clients; other servers and clients would give "
        "different shares."
    )
    yield ""
    yield from rendered(effects(results))
    yield from _with_other_runs(results)
    yield ""
    yield from rendered(of_clients(results, "sat"))
    yield from acknowledgements(results, corrected)


def of_clients(results: ResultSet, test_case: str) -> Table:
    """The slowest and the fastest client of each server, by the mean goodput over all runs."""
    columns = (
        Column("server"), Column("slowest client"), Column("goodput, slowest", Unit.RATE), Column("fastest client"),
        Column("goodput, fastest", Unit.RATE), Column("fastest / slowest"),
    )  # fmt: skip
    case, rows = find(results, test_case), list[tuple[float | str | None, ...]]()
    for server in results.manifest.servers if case is not None else ():
        runs = [run for run in of_case(results, case) if run.server == server] if case is not None else []
        found = {name: known(run for run in runs if run.client == name) for name in results.manifest.clients}
        means = {name: statistics.fmean(values) for name, values in found.items() if values}
        if len(means) > 1 and min(means.values()) > 0:
            least, most = (choose(means, key=means.__getitem__) for choose in (min, max))
            rows.append((server, least, means[least], most, means[most], f"{means[most] / means[least]:.1f}"))
    note = "Goodput is the mean of all runs of a pair."
    return Table("slowest-client", f"Clients of each server over {test_case}", columns, tuple(rows), (note,))


def share_of_server(
    results: ResultSet, case: TestCase, servers: Collection[str] | None = None, metric: str = EFFICIENCY
) -> Share | None:
    """The server's share of the variance of the logarithm of a metric; ``servers``: only of these."""
    many = [each for each in samples(results, case.name, metric) if servers is None or each.server in servers]
    found = decompose(many)
    return next((part for part in found.shares if part.source == "server"), None) if found else None


def in_words(part: Share) -> str:
    """``72 % (57 to 86 %)``."""
    return f"{100 * part.share:.0f} % ({100 * part.low:.0f} to {100 * part.high:.0f} %)"


def shares_that_one_server_makes(results: ResultSet) -> Iterator[str]:
    """Links over which the server has less than half of the variance without the slowest server, in words."""
    for case in results.manifest.test_cases:
        slowest, share = without_the_slowest(results, case)
        if share is not None and share.share < HALF:
            yield f"Without {slowest}, the server's share over `{case.name}` is {in_words(share)}."


HALF = 0.5


def means_of_servers(results: ResultSet, case: TestCase) -> dict[str, float]:
    """Mean goodput of each server over all runs, bit/s."""
    found = {
        name: known(run for run in of_case(results, case) if run.server == name) for name in results.manifest.servers
    }
    return {name: statistics.fmean(values) for name, values in found.items() if values}


def means_of_clients(results: ResultSet, case: TestCase) -> dict[str, float]:
    """Mean goodput of each client with the servers that succeeded with all clients, bit/s."""
    servers = always_successful(results, case)
    found = {name: mean_of(results, case, servers, client=name) for name in results.manifest.clients}
    return {name: mean for name, mean in found.items() if mean is not None}


def effects(results: ResultSet) -> Table:
    """How far servers and clients differ over each link."""
    columns = (
        Column("test case"), Column("servers: 90th / 10th percentile"), Column("servers", Unit.COUNT),
        Column("clients: 90th / 10th percentile"), Column("clients", Unit.COUNT),
    )  # fmt: skip
    rows = list[tuple[float | int | str | None, ...]]()
    for case in results.manifest.test_cases:
        row: list[str | int] = [case.name]
        for means in (means_of_servers(results, case), means_of_clients(results, case)):
            row += [_ratio(means), len(means)]
        rows.append(tuple(row))
    note = (
        "The percentiles are those of the means of servers and of clients. The mean of a server is over all its runs. "
        "The mean of a client is over its successful runs with the servers whose runs all succeeded."
    )
    return Table("effects", "How far means of servers and clients differ", columns, tuple(rows), (note,))


def _ratio(means: Mapping[str, float]) -> str:
    values = sorted(means.values())
    if not values or values[0] <= 0:
        return ""
    ratio = percentile(values, 90) / percentile(values, 10)
    return f"{ratio:.1f}" if ratio < TEN else f"{ratio:.0f}"


def _with_other_runs(results: ResultSet) -> Iterator[str]:
    """The server's share with timeouts, without the slowest server, and of servers with and without BBR."""
    every, late = with_timeouts(results), []
    for case in results.manifest.test_cases:
        share = share_of_server(every, case)
        if share is not None and any(run.verdict.outcome is Outcome.TIMEOUT for run in of_case(results, case)):
            late.append(f"{in_words(share)} over `{case.name}`")
    if late:
        yield (
            "- If runs that timed out are included, with the bytes that had arrived divided by the client's run time, "
            f"the server's share is {listed(late)}."
        )
    streams = [
        f"{in_words(share)} over `{case.name}`"
        for case in results.manifest.test_cases
        if (share := share_of_server(results, case, metric=STREAM_GOODPUT)) is not None
    ]
    if streams:
        yield f"- For goodput from the first to the last byte of the file, the server's share is {listed(streams)}."
    without = [
        f"{in_words(share)} over `{case.name}` (without {slowest})"
        for case in results.manifest.test_cases
        for slowest, share in [without_the_slowest(results, case)]
        if share is not None
    ]
    if without:
        yield f"- Without the slowest server that succeeded at least once, the server's share is {listed(without)}."
    for case in results.manifest.test_cases:
        if loss_share(case.emulated.forward_loss):
            yield from _by_control(results, case)


def without_the_slowest(results: ResultSet, case: TestCase) -> tuple[str, Share | None]:
    """The server with the lowest mean of its successful runs, and the share of the servers without it."""
    means = {name: mean for name in results.manifest.servers if (mean := mean_of(results, case, [name])) is not None}
    if not means:
        return "", None
    slowest = min(means, key=means.__getitem__)
    return slowest, share_of_server(results, case, means.keys() - {slowest})


def _by_control(results: ResultSet, case: TestCase) -> Iterator[str]:
    implementations = {each.name: each for each in results.manifest.implementations}
    with_bbr = [name for name in results.manifest.servers if family(implementations.get(name)) == "BBR"]
    others = [name for name in results.manifest.servers if name not in with_bbr]
    shares = [share_of_server(results, case, names) for names in (with_bbr, others)]
    if shares[0] is not None and shares[1] is not None:
        yield (
            f"- Over `{case.name}`, the server's share is {in_words(shares[0])} among servers with BBR "
            f"({', '.join(with_bbr)}), and {in_words(shares[1])} among the other servers that succeeded at least once."
        )
