"""The stored report docs/paper: the claims of the paper."""

from __future__ import annotations

from statistics import fmean

from tests.scripts.stored_paper_report.stored import (
    IN_THE_PAPER,
    all_goodputs,
    cases_of,
    documents,
    goodputs,
    listed,
    manifest,
    matching,
    matrix,
    metric,
    rows,
    succeeded,
    the_findings,
)


def row(words: str) -> list[str]:
    """What this page says about the claim that contains some words, and the comparison."""
    [found] = [each for each in rows("Claims of the paper") if words in each[1]]
    return found[2:]


def test_efficiency_of_each_link() -> None:
    """The rate of each link is 20 Mbit/s."""
    means = [fmean(goodputs(test_case=name)) for name in IN_THE_PAPER]
    ours, told = row(f"{listed([f'{5 * mean:.0f}' for mean in IN_THE_PAPER.values()])} %")
    assert ours == f"{listed([f'{5 * mean:.0f}' for mean in means])} %"
    assert (told == "agrees on the order of the links") == (means == sorted(means, reverse=True))


def test_shares_of_the_server() -> None:
    """The same as in the table of sources; test_influence computes them again."""
    ours, told = row("Both the server")
    for abbreviation, name in zip(("T", "SAT", "SATL"), cases_of("matrix"), strict=True):
        [shares] = [
            each[2:5]
            for each in rows("Sources of the variance of the efficiency")
            if each[:2] == [abbreviation, "server"]
        ]
        assert f"{shares[0]} % ({shares[1]} to {shares[2]} %) over {name}" in ours
    links = told.partition("over ")[2].partition(",")[0]
    assert f"Over {listed([f'`{name}`' for name in links.split(' and ')])}, the goodput of a pair depends mostly" in (
        the_findings()
    )


def test_roles() -> None:
    """At least 90 % of the fastest mean counts as performing well."""
    servers, clients = manifest()["servers"], manifest()["clients"]
    for name, role in (("aioquic", "client"), ("ngtcp2", "server")):
        reached: dict[str, list[float]] = {"server": [], "client": []}
        for case in cases_of("matrix"):
            runs = matching(matrix(), test_case=case)
            means = {each: fmean(all_goodputs(matching(runs, server=each))) for each in servers}
            reached["server"].append(means[name] / max(means.values()))
            good = [each for each in servers if all(map(succeeded, matching(runs, server=each)))]
            mine = [run for run in runs if run["server"] in good]
            means = {each: fmean(all_goodputs(matching(mine, client=each))) for each in clients}
            reached["client"].append(means[name] / max(means.values()))
        ours, told = row(f"{name} performs well as a {role}")
        for each, shares in reached.items():
            numbers = listed([f"{100 * share:.0f}" for share in shares])
            assert f"as a {each}: {numbers} % of the fastest {each}" in ours
        other = "client" if role == "server" else "server"
        agreeing = [
            case
            for number, case in enumerate(cases_of("matrix"))
            if reached[role][number] >= 0.9 > reached[other][number]
        ]
        assert told == (f"agrees over {listed(agreeing)}" if agreeing else "differs")


def test_neqo_over_terrestrial() -> None:
    found = list(map(succeeded, matching(matrix(), client="neqo", test_case="terrestrial")))
    told = [f"{sum(found)} of {len(found)} runs with this client succeeded", "differs: it succeeds"]
    assert row("client of neqo") == told


def test_servers_above_ten_per_cent_are_those_of_the_findings() -> None:
    """test_algorithms counts them again."""
    ours, told = row("Only servers with CUBIC or BBR")
    counts = ours.partition("congestion control: ")[2].replace(" with BBR", " servers with BBR", 1)
    assert f"the mean efficiency exceeds 10 % for {counts} as their default" in the_findings()
    assert "0 of 6 with Reno" in ours
    assert "0 of 7 with CUBIC" in ours
    assert told == "agrees, but no server with CUBIC exceeds it either"


def test_time_of_figure_7() -> None:
    first = documents("matrix")[0]["results"]
    [run] = matching(first, server="picoquic", client="picoquic", test_case="satloss")
    time = metric(run, "completion_time")
    assert time is not None
    assert row("slightly more than 7 s") == [f"{time:.1f} s (seed 1)", f"differs: {time / 7:.1f} times as long"]
