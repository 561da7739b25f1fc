"""Influence of server and client: their shares of the variance, and how far their means differ."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence

from interop.model.emulated_link import loss_share
from interop.model.outcomes import Outcome
from interop.model.results import ResultSet
from interop.model.test_case import TestCase
from interop.report import campaign_tables
from interop.report.table import Column, Table, Unit
from interop.statistics.overview import family
from interop.statistics.samples import EFFICIENCY, Sample, find, samples
from interop.statistics.variance import Share, decompose
from scripts.paper.acknowledgements import acknowledgements
from scripts.paper.client_windows import among_small, client_windows, settings, share_of_client
from scripts.paper.goodput import STREAM_GOODPUT, known, mean_of, of_case, with_timeouts
from scripts.paper.lines import rendered
from scripts.paper.matrix import always_successful
from scripts.paper.resampling import RESAMPLES, bootstrapped_share
from scripts.paper.seeds import percentile
from scripts.paper.words import listed

TEN = 10
"""Ratios from it on have no digit after the point."""


def influence(results: ResultSet, corrected: ResultSet | None = None, reason_for_slow_pairs: str = "") -> Iterator[str]:
    """The shares, what they depend on, and the sizes of the effects.

    ``corrected``: runs of msquic. ``reason_for_slow_pairs``: link to the section that explains them, or nothing.
    """
    yield from rendered(campaign_tables.variance(results, results.manifest.test_cases))
    yield (
        "Efficiency is goodput divided by the constant rate of the link, so the shares are the same for the logarithm "
        "of goodput. In the model, this logarithm is the sum of a constant and of random effects of the server, of the "
        "client, of their interaction, of the seed and of the repetition. The variances of these effects are estimated "
        "from mean squares (method of moments), and a negative estimate counts as 0. The intervals are generalized "
        "confidence intervals (Weerahandi 1993); see [Statistics](../reference/statistics.md#intervals). They assume "
        "that the effects of servers and clients are "
        f"normally distributed.{_without_a_distribution(results)} The shares describe these servers and clients; other "
        "servers and clients would give different shares."
    )
    yield ""
    yield from rendered(effects(results))
    yield from _with_other_runs(results)
    yield ""
    yield from rendered(of_clients(results, "sat"))
    yield from far_below(results, "sat", reason_for_slow_pairs)
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


FAR = 3
"""A client is far below the median of a server's clients if it has less than this part of it."""


def far_below(results: ResultSet, test_case: str, reason: str = "") -> Iterator[str]:
    """Clients with which a server is far below its median; nothing if there are none.

    ``reason``: link to the section that explains the difference, or nothing.
    """
    case, pairs, rest, count = find(results, test_case), list[str](), list[str](), 0
    for server in results.manifest.servers if case is not None else ():
        runs = [run for run in of_case(results, case) if run.server == server] if case is not None else []
        found = {name: known(run for run in runs if run.client == name) for name in results.manifest.clients}
        means = {name: statistics.fmean(values) for name, values in found.items() if values}
        limit = statistics.median(means.values()) / FAR if means else 0.0
        slow = {name: mean for name, mean in means.items() if mean < limit}
        others = [mean for name, mean in means.items() if name not in slow]
        if slow:
            count += len(slow)
            clients = listed(f"with {name} ({mean / 1e6:.2f} Mbit/s)" for name, mean in slow.items())
            pairs.append(f"{server} {clients}")
            rest.append(f"{server} reaches {min(others) / 1e6:.2f} to {max(others) / 1e6:.2f} Mbit/s")
    if pairs:
        yield (
            f"Over `{test_case}`, the goodput of the following {'pair' if count == 1 else 'pairs'} is less than a "
            f"third of the median over the server's clients: {'; '.join(pairs)}. With the other clients, "
            f"{listed(rest)}. {reason or 'This report'} {'explains' if reason else 'does not explain'} the difference."
        )
        yield ""


def share_of_server(
    results: ResultSet, case: TestCase, servers: Collection[str] | None = None, metric: str = EFFICIENCY
) -> Share | None:
    """The server's share of the variance of the logarithm of a metric; ``servers``: only of these."""
    many = [each for each in samples(results, case.name, metric) if servers is None or each.server in servers]
    return _share(many, "server")


def share_of_interaction(results: ResultSet, case: TestCase) -> Share | None:
    """The share of the interaction of server and client."""
    return _share(samples(results, case.name, EFFICIENCY), "interaction")


def _share(many: Sequence[Sample], source: str) -> Share | None:
    found = decompose(many)
    return next((part for part in found.shares if part.source == source), None) if found else None


def in_words(part: Share) -> str:
    """``72 % (57 to 86 %)``."""
    return f"{100 * part.share:.0f} % ({100 * part.low:.0f} to {100 * part.high:.0f} %)"


HALF = 0.5


def finding(results: ResultSet, longer: ResultSet | None = None) -> Iterator[str]:
    """Over which links goodput depends mostly on the server, as an item of a list; nothing without shares.

    ``longer``: runs with the queue of the paper's simulator, over links with the names of those of ``results``.
    """
    shares = {case.name: share for case in results.manifest.test_cases if (share := share_of_server(results, case))}
    if not shares:
        return
    mostly = [case for case in results.manifest.test_cases if case.name in shares and mostly_server(results, case)]
    told = list[str]()
    if mostly:
        queues = {case.emulated.forward_queue for case in mostly}
        queue = f" with queues of {queues.pop()} packets" if len(queues) == 1 else ""
        told.append(
            f"Over {listed(f'`{case.name}`' for case in mostly)}{queue}, the goodput of a pair depends mostly on its "
            "server: the server's share of the variance of the logarithm of goodput is "
            f"{listed(f'{with_both_intervals(results, case)} over `{case.name}`' for case in mostly)}. The first "
            "interval in parentheses is the 95 % confidence interval of a bootstrap over servers and clients; the "
            "second one assumes normal distributions. The lower limits also exceed 50 % without the slowest server. "
            f"The interaction of server and client accounts for {_of_interactions(results, mostly)}."
        )
    told += [
        _not_mostly(results, case, shares[case.name])
        for case in results.manifest.test_cases
        if case.name in shares and case not in mostly
    ]
    told += [*_with_the_longer_queue(longer, mostly), *_in_short_by_control(results), _factors(results)]
    told += _of_clients(results)
    yield f"- {' '.join(told)} See [Influence of server and client](#influence-of-server-and-client)."


def with_both_intervals(results: ResultSet, case: TestCase) -> str:
    """``89 % (66 to 97 %; 81 to 95 %)``: of a bootstrap, and of normal distributions; empty if one is not known."""
    share, resampled = share_of_server(results, case), bootstrapped_share(samples(results, case.name, EFFICIENCY))
    if share is None or resampled is None:
        return ""
    return f"{100 * share.share:.0f} % ({_interval(resampled)}; {_interval((share.low, share.high))})"


def _of_interactions(results: ResultSet, cases: Sequence[TestCase]) -> str:
    """``10 % (5 to 18 %) over `sat```."""
    return listed(
        f"{in_words(share)} over `{case.name}`"
        for case in cases
        if (share := share_of_interaction(results, case)) is not None
    )


def _with_the_longer_queue(longer: ResultSet | None, cases: Sequence[TestCase]) -> Iterator[str]:
    """Over which links the data do not show the same with the queue of the paper's simulator."""
    names = [case.name for case in cases]
    for case in longer.manifest.test_cases if longer is not None else ():
        if longer is None or case.name not in names or mostly_server(longer, case):
            continue
        if told := with_both_intervals(longer, case):
            yield (
                f"With the queue of the paper's simulator, the share over `{case.name}` is {told}, so the data do not "
                "show this there."
            )


def _in_short_by_control(results: ResultSet) -> Iterator[str]:
    """The shares among servers with BBR over links with random loss."""
    for case in results.manifest.test_cases:
        told = among_bbr(results, case) if loss_share(case.emulated.forward_loss) else ""
        if told:
            yield f"Among servers with BBR, the shares over `{case.name}` are different: {told}."


def among_bbr(results: ResultSet, case: TestCase) -> str:
    """``the server accounts for 29 % (6 to 94 %), the client for …`` among servers with BBR; empty if not known."""
    names = by_control(results)[0]
    many = [each for each in samples(results, case.name, EFFICIENCY) if each.server in names]
    parts = [_share(many, source) for source in ("server", "client", "interaction")]
    if any(part is None for part in parts):
        return ""
    server, client, both = (in_words(part) for part in parts if part is not None)
    return f"the server accounts for {server}, the client for {client} and their interaction for {both}"


def mostly_server(results: ResultSet, case: TestCase) -> bool:
    """Whether all lower limits of the server's share exceed a half: also without the slowest one, and resampled."""
    lows = [each.low for each in (share_of_server(results, case), without_the_slowest(results, case)[1]) if each]
    resampled = bootstrapped_share(samples(results, case.name, EFFICIENCY))
    return len(lows) == 2 and resampled is not None and min(*lows, resampled[0]) > HALF


def _not_mostly(results: ResultSet, case: TestCase, share: Share) -> str:
    slowest, other = without_the_slowest(results, case)
    resampled = bootstrapped_share(samples(results, case.name, EFFICIENCY))
    intervals = f", with a bootstrap interval of {_interval(resampled)}" if resampled else ""
    without = f" Without {slowest}, this share is {in_words(other)}." if other else ""
    return (
        f"Over `{case.name}`, the data do not show that goodput depends mostly on the server: the server's share is "
        f"{in_words(share)}{intervals}.{without}"
    )


def _factors(results: ResultSet) -> str:
    sizes = [(case, servers, clients) for case, servers, _, clients, _ in effects(results).rows]
    of_servers = listed(f"{servers} times over `{case}`" for case, servers, _ in sizes)
    return (
        "Among the servers whose runs all succeeded, the 90th percentile of the servers' means is "
        f"{of_servers.replace(' times', ' times the 10th percentile', 1)}; for the clients' means over the same runs, "
        f"the factors are {listed(str(clients) for _, _, clients in sizes)}."
    )


def _of_clients(results: ResultSet) -> Iterator[str]:
    """That the client's share is small, and what the windows may have to do with it."""
    found = [
        f"{100 * share.share:.0f} % over `{case.name}`"
        for case in results.manifest.test_cases
        if (share := share_of_client(results, case.name, list(results.manifest.clients))) is not None
    ]
    if found and (why := settings(results)):
        yield f"The client's share is {listed(found)}. Our settings may be one reason: {why}.{among_small(results)}"


def _interval(ends: tuple[float, float]) -> str:
    """``36 to 91 %``."""
    return f"{100 * ends[0]:.0f} to {100 * ends[1]:.0f} %"


def _without_a_distribution(results: ResultSet) -> str:
    """Intervals of the bootstrap, in words."""
    found = [
        f"{_interval(ends)} over `{case.name}`"
        for case in results.manifest.test_cases
        if (ends := bootstrapped_share(samples(results, case.name, EFFICIENCY))) is not None
    ]
    return (
        f" A bootstrap that draws servers and clients with replacement ({RESAMPLES:,} resamples) does not assume this; "
        f"its 95 % intervals of the server's share are {listed(found)}."
        if found
        else ""
    )


def means_of_servers(results: ResultSet, case: TestCase) -> dict[str, float]:
    """Mean goodput of each server over all runs, bit/s."""
    found = {
        name: known(run for run in of_case(results, case) if run.server == name) for name in results.manifest.servers
    }
    return {name: statistics.fmean(values) for name, values in found.items() if values}


def means_of_successful_servers(results: ResultSet, case: TestCase) -> dict[str, float]:
    """Mean goodput of each server that succeeded with all clients, bit/s."""
    servers = always_successful(results, case)
    return {name: mean for name, mean in means_of_servers(results, case).items() if name in servers}


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
        for means in (means_of_successful_servers(results, case), means_of_clients(results, case)):
            row += [_ratio(means), len(means)]
        rows.append(tuple(row))
    note = (
        "The percentiles are those of the means of servers and of clients. The means of servers and those of clients "
        "are over the same runs: the runs of the servers that always succeeded over the link."
    )
    title = "How much the means differ among servers and among clients"
    return Table("effects", title, columns, tuple(rows), (note,))


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
            "- If runs that timed out are included (their goodput is the number of bytes that had arrived, divided by "
            f"the client's run time), the server's share is {listed(late)}."
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
        yield f"- Without the slowest of the servers with a successful run, the server's share is {listed(without)}."
    yield from client_windows(results)
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


def by_control(results: ResultSet) -> tuple[list[str], list[str]]:
    """The servers whose default congestion control is BBR, and the others."""
    implementations = {each.name: each for each in results.manifest.implementations}
    with_bbr = [name for name in results.manifest.servers if family(implementations.get(name)) == "BBR"]
    return with_bbr, [name for name in results.manifest.servers if name not in with_bbr]


def _by_control(results: ResultSet, case: TestCase) -> Iterator[str]:
    with_bbr, others = by_control(results)
    told, share = among_bbr(results, case), share_of_server(results, case, others)
    if told and share is not None:
        yield (
            f"- Over `{case.name}`, among servers with BBR ({', '.join(with_bbr)}), {told}. Among the other servers "
            f"that succeeded at least once, the server accounts for {in_words(share)}."
        )
