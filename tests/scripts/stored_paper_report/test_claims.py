"""The stored report docs/paper: the claims of the paper."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import fmean

import numpy as np
import pytest

from tests.scripts.stored_paper_report.stored import (
    IN_BOTH,
    IN_THE_PAPER,
    Run,
    all_goodputs,
    cases_of,
    in_both,
    listed,
    manifest,
    matching,
    matrix,
    metrics,
    rows,
    runs_of,
    stored_part,
    succeeded,
    the_findings,
)
from tests.scripts.stored_paper_report.variance import BOTH, Variance, goodput_of, is_mostly

pytestmark = pytest.mark.skipif(not stored_part["queues"], reason="the campaign with the longer queue is not stored")


def row(words: str) -> tuple[str, str, str]:
    """What this page says about the claim that contains some words, with both queues, and the comparison."""
    [found] = [each for each in rows("Claims of the paper") if words in each[1]]
    first, longer, comparison = found[2:]
    return first, longer, comparison


def with_queues(test_case: str) -> list[Run]:
    """The runs with the longer queue over a link."""
    return matching(runs_of("queues"), test_case=f"{test_case}-paper-queue")


LONGER = ("sat", "satloss")


def both(first: str, longer: str) -> str:
    return first if first == longer else f"25 packets: {first}. Queues of the paper's simulator: {longer}"


def test_efficiency_of_each_link() -> None:
    """The rate of each link is 20 Mbit/s; of servers and clients that the paper measured, too."""
    means = [fmean(metrics(in_both(matrix(), name), "goodput")) / 1e6 for name in IN_THE_PAPER]
    with_longer = [
        fmean(metrics(in_both(runs_of("queues"), f"{name}-paper-queue"), "goodput")) / 1e6 for name in LONGER
    ]
    ours, longer, told = row(f"{listed([f'{5 * mean:.0f}' for mean in IN_THE_PAPER.values()])} %")
    whose = f"for the {len(IN_BOTH)} servers and {len(IN_BOTH)} clients that the paper also measured"
    for found, values, names in ((ours, means, [*IN_THE_PAPER]), (longer, with_longer, LONGER)):
        assert found == f"{listed([f'{5 * mean:.0f}' for mean in values])} % over {listed(names)} {whose}"
        assert values == sorted(values, reverse=True)
    assert told == "agrees on the order of the links"


def test_shares_of_the_server() -> None:
    """Those of 25 packets are the same as in the table of sources; test_influence computes them again."""
    ours, longer, told = row("Both the server")
    for abbreviation, name in zip(("T", "SAT", "SATL"), cases_of("matrix"), strict=True):
        [shares] = [
            each[2:5]
            for each in rows("Sources of the variance of the efficiency")
            if each[:2] == [abbreviation, "server"]
        ]
        assert re.search(rf"{shares[0]} % \(\d+ to \d+ %; {shares[1]} to {shares[2]} %\) over {name}", ours)
    for name in LONGER:
        Variance(with_queues(name), goodput_of).assert_both(re.search(rf"{BOTH} over {name}\b", longer))
    links = [
        [name for name in names if is_mostly(runs_over(name))]
        for names, runs_over in (
            (cases_of("matrix"), lambda name: matching(matrix(), test_case=name)), (LONGER, with_queues)
        )
    ]  # fmt: skip
    assert told == both(*(f"partly; over {listed(names)}, goodput depends mostly on the server" for names in links))


def reached(runs: Sequence[Run], name: str, role: str) -> float:
    """Share of the fastest mean: of servers over all runs, of clients over those of servers that always succeeded."""
    servers, clients = manifest()["servers"], manifest()["clients"]
    if role == "client":
        good = [each for each in servers if all(map(succeeded, matching(runs, server=each)))]
        runs = [run for run in runs if run["server"] in good]
    names = servers if role == "server" else clients
    means = {each: fmean(all_goodputs(run for run in runs if run[role] == each)) for each in names}
    return means[name] / max(means.values())


def matching_of_link(longer: bool) -> Callable[[str], list[Run]]:
    """The runs over a link with the longer queue, or with 25 packets."""
    return with_queues if longer else lambda name: matching(matrix(), test_case=name)


def resampled(runs: Sequence[Run], name: str, role: str) -> tuple[float, float]:
    """Ends of the interval of the share of the fastest mean, over resampled partners."""
    other = "client" if role == "server" else "server"
    if role == "client":
        lost = {run["server"] for run in runs if not succeeded(run)}
        runs = [run for run in runs if run["server"] not in lost]
    values = defaultdict[tuple[str, str], list[float]](list)
    for run in runs:
        values[run[role], run[other]] += all_goodputs([run])
    names, partners = (sorted({key[place] for key in values}) for place in (0, 1))
    table = np.array([[fmean(values[one, two]) if values[one, two] else np.nan for two in partners] for one in names])
    random, shares = np.random.default_rng(5), []
    fastest = int(np.argmax(np.nanmean(table, axis=1)))
    for _ in range(4_000):
        means = np.nanmean(table[:, random.choice(len(partners), len(partners))], axis=1)
        shares.append(means[names.index(name)] / means[fastest])
    low, high = np.quantile(shares, (0.025, 0.975))
    return float(low), float(high)


@pytest.mark.parametrize(
    ("name", "role", "well"),
    [
        ("aioquic", "client", True),
        ("aioquic", "server", False),
        ("ngtcp2", "server", True),
        ("ngtcp2", "client", False),
    ],
)
def test_roles(name: str, role: str, well: bool) -> None:
    """At least 90 % of the fastest mean counts as performing well."""
    verb = "performs well" if well else "does not perform well"
    ours, longer, told = row(f"{name} {verb} as a {role}")
    verdicts = []
    for text, shares in (
        (ours, {each: reached(matching(matrix(), test_case=each), name, role) for each in cases_of("matrix")}),
        (longer, {each: reached(with_queues(each), name, role) for each in LONGER}),
    ):
        numbers = listed([f"{100 * share:.0f}" for share in shares.values()])
        assert text == f"{numbers} % of the fastest {role} over {listed(shares)}"
        over = matching_of_link(text is longer)
        found = defaultdict[str, list[str]](list)
        for each in shares:
            low, high = resampled(over(each), name, role)
            if low < 0.9 <= high:
                found["undecided"].append(each)
            else:
                found["agrees" if (low >= 0.9) is well else "differs"].append(each)
        verdicts.append(", ".join(f"{verdict} over {listed(names)}" for verdict, names in found.items()))
    assert told == both(*verdicts)


def test_neqo_over_terrestrial() -> None:
    found = list(map(succeeded, matching(matrix(), client="neqo", test_case="terrestrial")))
    told = (f"{sum(found)} of {len(found)} runs with this client succeeded", "", "differs: it succeeds")
    assert row("client of neqo") == told


def test_servers_above_ten_per_cent_are_those_of_the_findings() -> None:
    """test_algorithms counts them again."""
    ours, longer, told = row("Only servers with CUBIC or BBR")
    counts = ours.partition("congestion control: ")[2].replace(" with BBR", " servers with BBR", 1)
    assert f"the mean efficiency exceeds 10 % for {counts} as their default" in the_findings()
    assert "0 of 6 with Reno" in ours
    assert "0 of 7 with CUBIC" in ours
    assert longer.endswith(": 3 of 3 with BBR, 1 of 7 with CUBIC (quiche) and 0 of 6 with Reno")
    assert told == both("agrees, but the mean of no server with CUBIC exceeds it either", "agrees")


def test_time_of_figure_7() -> None:
    """With all seeds."""
    pair = {"server": "picoquic", "client": "picoquic"}
    found = [
        metrics(matching(runs, **pair), "completion_time")
        for runs in (matching(matrix(), test_case="satloss"), with_queues("satloss"))
    ]
    told, verdicts = [], []
    for times in found:
        ends = dict.fromkeys(f"{time:.1f}" for time in (min(times), max(times)))
        ratios = dict.fromkeys(f"{time / 7:.1f}" for time in (min(times), max(times)))
        told.append(f"{' to '.join(ends)} s ({len(times)} seed{'' if len(times) == 1 else 's'})")
        verdicts.append(f"differs: {' to '.join(ratios)} times as long")
    assert row("slightly more than 7 s") == (*told, both(*verdicts))
