"""The stored report docs/paper: influence of server and client."""

from __future__ import annotations

import math
import re
from statistics import fmean, geometric_mean, median

import numpy as np
import pytest

from tests.scripts.stored_paper_report.stored import (
    IN_THE_PAPER,
    Run,
    all_goodputs,
    by_client,
    documents,
    goodputs,
    listed,
    manifest,
    matching,
    matrix,
    metric,
    metrics,
    rows,
    runs_of,
    so_far,
    stored_part,
    the_findings,
    the_page,
)
from tests.scripts.stored_paper_report.variance import (
    BOTH,
    NEAR,
    NEAR_RESAMPLED,
    TOLD,
    Variance,
    goodput_of,
    is_mostly,
    of_servers,
    servers_of,
)


def test_effects_of_servers_and_clients() -> None:
    of_servers, of_clients = list[str](), list[str]()
    for test_case, *cells in rows("How much the means differ among servers and among clients"):
        runs = [run for run in matrix() if run["test_case"] == test_case]
        names = {run["server"] for run in runs}
        lost = {run["server"] for run in runs if run["verdict"]["outcome"] != "succeeded"}
        servers = [fmean(all_goodputs(matching(runs, server=name))) for name in names - lost]
        clients = [
            fmean(all_goodputs(run for run in runs if run["client"] == name and run["server"] not in lost))
            for name in {run["client"] for run in runs}
        ]
        for means, cell, count in ((servers, cells[0], cells[1]), (clients, cells[2], cells[3])):
            assert int(count) == len(means)
            ratio = np.quantile(means, 0.9) / np.quantile(means, 0.1)
            assert cell == (f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}")
        of_servers.append(f"{cells[0]} times{'' if of_servers else ' the 10th percentile'} over `{test_case}`")
        of_clients.append(cells[2])
    assert (
        "Among the servers whose runs all succeeded, the 90th percentile of the servers' means is "
        f"{listed(of_servers)}; for the clients' means over the same runs, the factors are {listed(of_clients)}."
    ) in the_findings()


@pytest.mark.parametrize("test_case", IN_THE_PAPER)
def test_shares_of_the_variance(test_case: str) -> None:
    found = Variance(of_servers(test_case, servers_of(test_case)), goodput_of)
    [letters] = {case["abbreviation"] for case in manifest()["test_cases"] if case["name"] == test_case}
    shares, ends = found.shares(), found.ends
    stored = {row[1]: row[2:] for row in rows("Sources of the variance of the efficiency") if row[0] == letters}
    assert stored.keys() == shares.keys()
    for source, (share, low, high, pairs, count) in stored.items():
        assert float(share) == pytest.approx(shares[source], abs=0.51)
        assert (float(low), float(high)) == pytest.approx(ends[source], abs=NEAR)
        assert (int(pairs), int(count)) == (len(found.pairs), len(found.runs))
    [item] = [
        line
        for line in the_findings().splitlines()
        if line.startswith("- ") and "(#influence-of-server-and-client)" in line
    ]
    if mostly(test_case):
        found.assert_both(re.search(rf"share of the variance .*?{BOTH} over `{test_case}`", item))
        [interaction] = re.findall(rf"client accounts for .*?(\d+) % \(\d+ to \d+ %\) over `{test_case}`", item)
        assert int(interaction) == int(stored["interaction"][0])
    else:
        told = rf"Over `{test_case}`, the data do not show that goodput [a-z ]+: the server's share is {TOLD}"
        found.assert_server(re.search(told, item))


def mostly(test_case: str) -> bool:
    """Whether the lower limits of the server's share exceed a half, also without the slowest server, and resampled."""
    return is_mostly(of_servers(test_case, servers_of(test_case)))


@pytest.mark.parametrize("test_case", IN_THE_PAPER)
def test_the_bootstrap_over_servers_and_clients(test_case: str) -> None:
    ends = Variance(of_servers(test_case, servers_of(test_case)), goodput_of).resampled
    [line] = [line for line in the_page().splitlines() if "(2,000 resamples)" in line]
    told = re.search(rf"(\d+) to (\d+) % over `{test_case}`", line.partition("intervals of the server's share are")[2])
    assert told is not None
    assert tuple(map(float, told.groups())) == pytest.approx(ends, abs=NEAR_RESAMPLED)
    if not mostly(test_case):
        assert f", with a bootstrap interval of {told[1]} to {told[2]} %." in the_findings()


def test_links_where_goodput_depends_mostly_on_the_server() -> None:
    links = [f"`{test_case}`" for test_case in IN_THE_PAPER if mostly(test_case)]
    told = f"- Over {listed(links)} with queues of 25 packets, the goodput of a pair depends mostly on its server"
    assert (told in the_findings()) is bool(links)


@pytest.mark.skipif(not stored_part["queues"], reason="the campaign with the longer queue is not stored")
@pytest.mark.parametrize("test_case", ["sat", "satloss"])
def test_the_share_of_the_server_with_the_longer_queue(test_case: str) -> None:
    """In the findings only where it does not exceed a half with all methods."""
    longer = matching(runs_of("queues"), test_case=f"{test_case}-paper-queue")
    told = re.search(
        rf"With the queue of the paper's simulator, the share over `{test_case}` is {BOTH}, so", the_findings()
    )
    assert (told is None) is is_mostly(longer)
    if told is not None:
        Variance(longer, goodput_of).assert_both(told)


def test_the_finding_has_the_share_among_servers_with_bbr() -> None:
    """The same as in the section, which another test computes again."""
    [shares] = re.findall(r"Over `satloss`, among servers with BBR \([^)]+\), (.+?)\. Among the other", the_page())
    assert f"Among servers with BBR, the shares over `satloss` are different: {shares}." in the_findings()


def test_the_share_of_the_server_with_what_had_arrived_before_timeouts() -> None:
    def with_timeouts(run: Run) -> float | None:
        return so_far(run) if run["verdict"]["outcome"] in ("succeeded", "timeout") else None

    [line] = [line for line in the_page().splitlines() if line.startswith("- If runs that timed out are included")]
    late = [name for name in IN_THE_PAPER if any(run["verdict"]["outcome"] == "timeout" for run in matrix()
                                                 if run["test_case"] == name)]  # fmt: skip
    assert line.count("over `") == len(late) > 0
    for test_case in late:
        runs = matching(matrix(), test_case=test_case)
        Variance(runs, with_timeouts).assert_server(re.search(rf"{TOLD} over `{test_case}`", line))


@pytest.mark.parametrize("test_case", IN_THE_PAPER)
def test_the_share_of_the_server_without_the_slowest_one(test_case: str) -> None:
    servers = servers_of(test_case)
    slowest = min(servers, key=lambda name: fmean(goodputs(server=name, test_case=test_case)))
    found = Variance(of_servers(test_case, servers - {slowest}), goodput_of)
    page = the_page()
    found.assert_server(re.search(rf"{TOLD} over `{test_case}` \(without {slowest}\)", page))
    if not mostly(test_case):
        told = rf"Over `{test_case}`, the data do not show that .*?Without {slowest}, this share is {TOLD}"
        found.assert_server(re.search(told, the_findings()))


def test_the_shares_with_and_without_bbr() -> None:
    controls = {row[0]: row[3] for row in rows("Servers and their congestion control")}
    with_bbr = [name for name, control in controls.items() if control.startswith("BBR")]
    names = re.escape(", ".join(with_bbr))
    [line] = [line for line in the_page().splitlines() if re.match(rf"- Over `satloss`, among servers.+{names}", line)]
    found = Variance(of_servers("satloss", with_bbr), goodput_of)
    found.assert_server(re.search(rf"the server accounts for {TOLD}, the client", line))
    for source, told in (("client", f"the client for {TOLD}"), ("interaction", f"their interaction for {TOLD}")):
        numbers = re.search(told, line)
        assert numbers is not None
        share, *ends = map(float, numbers.groups())
        assert share == pytest.approx(found.shares()[source], abs=0.51)
        assert ends == pytest.approx(found.ends[source], abs=NEAR)
    others = Variance(of_servers("satloss", controls.keys() - set(with_bbr)), goodput_of)
    others.assert_server(re.search(rf"at least once, the server accounts for {TOLD}\.", line))


@pytest.mark.parametrize("test_case", IN_THE_PAPER)
def test_the_share_of_the_server_from_the_first_to_the_last_byte(test_case: str) -> None:
    [line] = [line for line in the_page().splitlines() if line.startswith("- For goodput from the first to the last")]
    found = Variance(matching(matrix(), test_case=test_case), lambda run: metric(run, "stream_goodput"))
    found.assert_server(re.search(rf"{TOLD} over `{test_case}`", line))


def test_clients_of_each_server() -> None:
    """Means of all runs of a pair over sat."""
    found = {row[0]: row[1:] for row in rows("Clients of each server over sat")}
    assert list(found) == manifest()["servers"]
    for server, (slow, least, fast, most, ratio) in found.items():
        runs = matching(matrix(), test_case="sat", server=server)
        means = {client: fmean(values) for client, values in by_client(runs).items()}
        assert (means[slow], means[fast]) == (min(means.values()), max(means.values()))
        assert float(least) == pytest.approx(means[slow], abs=0.0051)
        assert float(most) == pytest.approx(means[fast], abs=0.0051)
        assert ratio == f"{means[fast] / means[slow]:.1f}"


def test_clients_far_below_the_median() -> None:
    told, rest, count = list[str](), list[str](), 0
    for server in manifest()["servers"]:
        found = by_client(matching(matrix(), test_case="sat", server=server))
        means = {client: fmean(found[client]) for client in manifest()["clients"] if client in found}
        slow = {client: mean for client, mean in means.items() if 3 * mean < median(means.values())}
        if slow:
            others = [mean for client, mean in means.items() if client not in slow]
            named = listed(f"with {client} ({mean:.2f} Mbit/s)" for client, mean in slow.items())
            told.append(f"{server} {named}")
            rest.append(f"{server} reaches {min(others):.2f} to {max(others):.2f} Mbit/s")
            count += len(slow)
    assert (
        f"Over `sat`, the goodput of the following {'pair' if count == 1 else 'pairs'} is less than a third of the "
        f"median over the server's clients: {'; '.join(told)}. With the other clients, {listed(rest)}. "
    ) in the_page()


ACKNOWLEDGEMENTS = "Goodput and acknowledgements over satloss"


def acknowledgements_and_goodputs(server: str) -> tuple[list[float], list[float]]:
    """Packets returned per packet that arrived (mean), and goodput (geometric mean of all runs), by client."""
    runs = matching(matrix(), test_case="satloss", server=server)
    known = {client: metrics(matching(runs, client=client), "return_packets") for client in manifest()["clients"]}
    goodputs = by_client(runs)
    clients = [client for client, values in known.items() if values]
    return [fmean(known[client]) for client in clients], [geometric_mean(goodputs[client]) for client in clients]


def over_sat_and_goodputs(server: str) -> tuple[list[float], list[float]]:
    """The same, with the client's median over all servers over sat in place of what it returns to this server."""
    over_sat = {
        client: metrics(matching(matrix(), test_case="sat", client=client), "return_packets")
        for client in manifest()["clients"]
    }
    runs = matching(matrix(), test_case="satloss", server=server)
    clients = [client for client in over_sat if metrics(matching(runs, client=client), "return_packets")]
    goodputs = by_client(runs)
    return [median(over_sat[client]) for client in clients], [geometric_mean(goodputs[client]) for client in clients]


def fisher(returned: list[float], goodputs: list[float]) -> tuple[float, float, float]:
    """Correlation of logarithms, with the ends of its 95 % confidence interval."""
    value = float(np.corrcoef(np.log(returned), np.log(goodputs))[0, 1])
    scaled, half = math.atanh(value), 1.95996 / math.sqrt(len(returned) - 3)
    return value, math.tanh(scaled - half), math.tanh(scaled + half)


def test_goodput_and_acknowledgements() -> None:
    found = {row[0]: row[1:] for row in rows(ACKNOWLEDGEMENTS)}
    assert list(found) == [name for name in manifest()["servers"] if name in servers_of("satloss")]
    for server, (*cells, clients, per_packet, ratio, other) in found.items():
        returned, goodputs = acknowledgements_and_goodputs(server)
        value, low, high = fisher(*over_sat_and_goodputs(server))
        assert other == f"{value:.2f} ({low:.2f} to {high:.2f})"
        assert list(map(float, cells)) == pytest.approx(fisher(returned, goodputs), abs=0.0051)
        assert int(clients) == len(returned)
        assert per_packet == f"{100 * min(returned):.0f} to {100 * max(returned):.0f}"
        assert ratio == f"{max(goodputs) / min(goodputs):.1f}"


def test_servers_that_are_faster_or_slower_with_more_acknowledgements() -> None:
    """Those whose interval of the correlation excludes 0 after Bonferroni's correction for the rows of the table."""
    faster, slower, kept, lost = list[str](), list[str](), list[str](), list[str]()
    count = len(rows(ACKNOWLEDGEMENTS))
    for server in manifest()["servers"]:
        returned, goodputs = acknowledgements_and_goodputs(server)
        if len(returned) > 3:
            value, _, _ = fisher(returned, goodputs)
            chance = math.erfc(abs(math.atanh(value)) * math.sqrt(len(returned) - 3) / math.sqrt(2))
            told = f"{server} ({min(goodputs):.2f} to {max(goodputs):.2f} Mbit/s)"
            faster += [told] if value > 0 and chance < 0.05 / count else []
            slower += [told] if value < 0 and chance < 0.05 / count else []
            if chance < 0.05 / count:
                other, _, _ = fisher(*over_sat_and_goodputs(server))
                by_chance = math.erfc(abs(math.atanh(other)) * math.sqrt(len(returned) - 3) / math.sqrt(2))
                (kept if by_chance < 0.05 / count else lost).append(server)
    assert faster
    told = f"{listed(faster)} {'is' if len(faster) == 1 else 'are'} faster with clients that acknowledge more often"
    if slower:
        told += f", and {listed(slower)} {'is' if len(slower) == 1 else 'are'} slower with such clients"
        names = listed(each.partition(" (")[0] for each in slower)
        assert f"We do not explain why {names} {'is' if len(slower) == 1 else 'are'} slower with such" in the_page()
    assert f"Over `satloss`, {told} (geometric means of a client's runs). For " in the_page()
    assert (
        f"the interval still excludes 0 if it is corrected for the {count} intervals of the table (Bonferroni: "
        f"{100 * (1 - 0.05 / count):.2f} % confidence each)."
    ) in the_page()
    assert f"not corrected for the number of intervals ({count})." in the_page()
    sides = (("excludes", kept), ("includes", lost))
    again = listed(f"the corrected interval {verb} 0 for {listed(servers)}" for verb, servers in sides if servers)
    assert f"over `satloss`. With it, {again}.\n" in the_page()
    assert ("For msquic, the source code shows a reason" in the_page()) is any("msquic" in each for each in faster)


def test_intervals_that_include_0_rule_nothing_out() -> None:
    intervals = [fisher(*acknowledgements_and_goodputs(server))[1:] for server in ("quinn", "neqo")]
    assert all(low < 0 < high for low, high in intervals)
    (one, two), (three, four) = intervals
    assert (
        f"The confidence intervals of their correlations ({one:.2f} to {two:.2f} and {three:.2f} to {four:.2f}) do not "
        "rule out a correlation."
    ) in the_page()


@pytest.mark.skipif(not documents("msquic-counter"), reason="msquic without the underflow is not stored")
def test_the_correlation_with_and_without_the_underflow() -> None:
    """Of the same runs."""
    changed = {(run["client"], run["evidence"]["seed"]): run for run in runs_of("msquic-counter")}
    before = {
        (run["client"], run["evidence"]["seed"]): run
        for run in matching(matrix(), server="msquic", test_case="satloss")
        if (run["client"], run["evidence"]["seed"]) in changed
    }
    assert len({client for client, _ in changed}) == len(changed)
    told, ratios = list[str](), list[float]()
    for runs in (before.values(), changed.values()):
        known = [run for run in runs if metric(run, "return_packets") is not None]
        goodputs = [metric(run, "goodput") or 0.0 for run in known]
        value, low, high = fisher([metric(run, "return_packets") or 0.0 for run in known], goodputs)
        told.append(f"{value:.3f} ({low:.3f} to {high:.3f})")
        ratios.append(max(goodputs) / min(goodputs))
    assert (
        f"is {told[0]} with the underflow and {told[1]} without it. The fastest client is {ratios[0]:.1f} times as "
        f"fast as the slowest with the underflow, and {ratios[1]:.1f} times without it. "
    ) in the_page()
    assert ("is therefore not the only cause of the correlation" in the_page()) == (low > 0)


def test_the_seed_of_msquic_without_the_underflow() -> None:
    """One for all runs, and the same as with the underflow."""
    seeds = [each["manifest"]["seed"] for each in documents("msquic-counter")]
    if len(seeds) == 1:
        count = len(runs_of("msquic-counter"))
        assert f"({count} runs each, all with seed {seeds[0]})" in the_page()
        assert (
            f"In {count} runs over `satloss` with the same losses, one for each client, all with seed {seeds[0]}, ms"
            in the_page()
        )
