"""The stored report docs/paper: the queue of the paper's simulator."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from itertools import product
from statistics import fmean, geometric_mean, median

import numpy as np
import pytest

from tests.scripts.stored_paper_report.stored import (
    IN_BOTH,
    IN_THE_PAPER,
    Run,
    all_goodputs,
    documents,
    geometric_interval,
    listed,
    manifest,
    matching,
    matrix,
    metric,
    metrics,
    rows,
    section_of,
    so_far,
    stored_part,
    succeeded,
    the_findings,
    the_page,
)
from tests.scripts.stored_paper_report.test_real_time import agreement, rms
from tests.scripts.stored_paper_report.variance import BOTH, Variance, goodput_of

pytestmark = pytest.mark.skipif(not stored_part["queues"], reason="the campaign with the longer queue is not stored")

LINKS = ("sat", "satloss")


def with_both_queues(test_case: str) -> list[tuple[Run, Run]]:
    """Runs of the same pair and seed with 25 packets and with the longer queue."""
    before = {
        (run["server"], run["client"], each["manifest"]["seed"]): run
        for each in documents("matrix")
        for run in matching(each["results"], test_case=test_case)
    }
    return [
        (before[key], run)
        for each in documents("queues")
        for run in matching(each["results"], test_case=f"{test_case}-paper-queue")
        if (key := (run["server"], run["client"], each["manifest"]["seed"])) in before
    ]


def factors(test_case: str) -> dict[str, list[float]]:
    """Goodput with the longer queue over that with 25 packets, by server: of each client the mean over seeds."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for before, longer in with_both_queues(test_case):
        one, two = so_far(before), so_far(longer)
        if one and two:
            found[before["server"]][before["client"]].append(two / one)
    return {server: list(map(geometric_mean, each.values())) for server, each in found.items()}


def heading_of(test_case: str) -> str:
    return f"Goodput with the longer queue over {test_case}"


@pytest.mark.parametrize("test_case", LINKS)
def test_numbers_of_the_longer_queue(test_case: str) -> None:
    found = {row[0]: row[1:] for row in rows(heading_of(test_case))}
    assert found.keys() == factors(test_case).keys()
    for server, values in factors(test_case).items():
        *cells, clients, dropped, dropped_by_longer = found[server]
        assert int(clients) == len(values)
        assert list(map(float, cells)) == pytest.approx(geometric_interval(values), abs=0.0051)
        for cell, place in ((dropped, 0), (dropped_by_longer, 1)):
            mine = [pair[place] for pair in with_both_queues(test_case) if pair[0]["server"] == server]
            shares = metrics(mine, "queue_loss")
            assert (cell != "") == bool(shares)
            assert not cell or float(cell) == pytest.approx(100 * fmean(shares), abs=0.051)


def is_or_are(servers: list[str]) -> str:
    return "are" if len(servers) > 1 else "is"


def intervals_of(servers: list[str]) -> str:
    return {0: "no interval is", 1: "its interval is"}.get(len(servers), "their intervals are")


@pytest.mark.parametrize("test_case", LINKS)
def test_servers_that_are_faster_with_the_longer_queue(test_case: str) -> None:
    intervals = {server: geometric_interval(values) for server, values in factors(test_case).items()}
    faster = [server for server, (_, low, _) in intervals.items() if low > 1]
    slower = [server for server, (_, _, high) in intervals.items() if high < 1]
    named = f": {', '.join(slower)}" if slower else ""
    seeds = len({longer["evidence"]["seed"] for _, longer in with_both_queues(test_case)})
    told = (
        f"- Over `{test_case}`, {len(faster) or 'none'} of {len(intervals)} servers {is_or_are(faster)} faster with "
        f"the longer queue ({intervals_of(faster).replace('interval', '95 % confidence interval')} above 1), and "
        f"{len(slower) or 'none'} {is_or_are(slower)} slower ({intervals_of(slower)} below 1{named}). These runs have "
        f"{'one seed' if seeds == 1 else f'{seeds} seeds'}. The"
    )
    assert told in section_of(heading_of(test_case))
    assert "beyond doubt" not in section_of(heading_of(test_case))


def p_of_signs(logs: list[float]) -> float:
    """Share of all 2^n choices of signs whose sum is at least as far from 0."""
    signs = np.array(list(product((-1, 1), repeat=len(logs))))
    sums = np.abs(signs @ np.array(logs))
    return float((sums >= abs(sum(logs)) * (1 - 1e-9)).mean())


@pytest.mark.parametrize("test_case", LINKS)
def test_servers_that_are_faster_if_their_number_is_taken_into_account(test_case: str) -> None:
    logs = {server: [math.log(value) for value in values] for server, values in factors(test_case).items()}
    ordered, known = sorted((p_of_signs(each), server) for server, each in logs.items()), set()
    for rank, (p, server) in enumerate(ordered):
        if p * (len(ordered) - rank) > 0.05:
            break
        known.add(server)
    faster = [server for server, each in logs.items() if server in known and sum(each) > 0]
    slower = [server for server, each in logs.items() if server in known and sum(each) < 0]
    named = f" ({listed(slower)})" if slower else ""
    assert (
        f"(Holm 1979, level 5 %), {len(faster)} servers ({listed(faster)}) are faster, and {len(slower) or 'none'} "
        f"{is_or_are(slower)} slower{named}."
    ) in section_of(heading_of(test_case))


@pytest.mark.parametrize("test_case", LINKS)
def test_differences_from_the_paper_with_both_queues(test_case: str) -> None:
    paper, means = IN_THE_PAPER[test_case], mean_with_both_queues(test_case)
    changes = [100 * (mean / paper - 1) for mean in means]
    shorter, longer = (f"{abs(change):.0f} % {'above' if change > 0 else 'below'}" for change in changes)
    names = f"or the {len(IN_BOTH)} servers and {len(IN_BOTH)} clients that are also in the paper"
    told = f"our mean with 25 packets is {shorter} the paper's mean, and our mean with the longer queue is {longer} it."
    assert f"- F{names}, {told}\n" in section_of(heading_of(test_case))
    if test_case == "sat":
        shared = [pair for pair in with_both_queues("sat") if {pair[0]["server"], pair[0]["client"]} <= IN_BOTH]
        every = [fmean(all_goodputs(runs)) for runs in zip(*shared, strict=True)]
        assert (
            f"over `sat` rises by {100 * (means[1] / means[0] - 1):.0f} % f{names} (successful runs; "
            f"{100 * (every[1] / every[0] - 1):.0f} % for all runs). Our mean is then {longer} the paper's mean; with "
            f"25 packets, it is {shorter} the paper's mean. The paper's"
        ) in the_findings()


def mean_with_both_queues(test_case: str) -> list[float]:
    """Of the servers and clients that both measured, Mbit/s."""
    shared = [pair for pair in with_both_queues(test_case) if {pair[0]["server"], pair[0]["client"]} <= IN_BOTH]
    return [fmean(metrics(runs, "goodput")) / 1e6 for runs in zip(*shared, strict=True)]


@pytest.mark.parametrize("test_case", LINKS)
def test_table_ii_with_both_queues(test_case: str) -> None:
    table = [row[2:] for row in rows("Table II with both queues") if row[0] == test_case]
    assert table[2][0] == f"{IN_THE_PAPER[test_case]:.2f}"
    for cells, runs in zip(table[:2], zip(*with_both_queues(test_case), strict=True), strict=True):
        good, every = [value / 1e6 for value in metrics(runs, "goodput")], all_goodputs(runs)
        for cell, expected in zip(cells[:3], (fmean(good), fmean(every), median(every)), strict=True):
            assert float(cell) == pytest.approx(expected, abs=0.0051)
        assert float(cells[3]) == pytest.approx(max(good), abs=0.051)
        lost = {(run["server"], run["client"]) for run in runs if not succeeded(run)}
        assert int(cells[4]) + int(cells[5]) == len(lost)
        assert int(cells[6]) == len({(run["server"], run["client"]) for run in runs})


@pytest.mark.parametrize("test_case", LINKS)
def test_drops_and_bytes_in_flight_with_both_queues(test_case: str) -> None:
    pairs = with_both_queues(test_case)
    dropped = [100 * fmean(metrics(runs, "queue_loss")) for runs in zip(*pairs, strict=True)]
    growth = [
        many / few
        for before, longer in pairs
        if (few := metric(before, "in_flight_max")) and (many := metric(longer, "in_flight_max"))
    ]
    assert (
        f"- On average, the shorter queue drops {dropped[0]:.1f} % of the packets, and the longer queue "
        f"{dropped[1]:.1f} %. The maximum in flight is {median(growth):.2f} times as high with the longer queue "
        "(median of the pairs)."
    ) in section_of(heading_of(test_case))


@pytest.mark.parametrize("test_case", LINKS)
def test_the_share_of_the_server_with_both_queues(test_case: str) -> None:
    before, longer = zip(*with_both_queues(test_case), strict=True)
    section = section_of(heading_of(test_case))
    told = rf"- The server accounts for {BOTH} of the variance of the logarithm of goodput with 25 packets, and"
    Variance(before, goodput_of).assert_both(re.search(told, section))
    told = rf"25 packets, and for {BOTH} with the longer queue\."
    Variance(longer, goodput_of).assert_both(re.search(told, section))


@pytest.mark.parametrize("test_case", LINKS)
def test_the_order_of_servers_with_both_queues(test_case: str) -> None:
    """Spearman's correlation of means of all runs."""
    means = [
        [fmean(all_goodputs(matching(runs, server=server))) for server in manifest()["servers"]]
        for runs in zip(*with_both_queues(test_case), strict=True)
    ]
    squares = sum(((np.argsort(np.argsort(means[0])) - np.argsort(np.argsort(means[1]))) ** 2).tolist())
    count = len(means[0])
    correlation = 1 - 6 * squares / (count * (count**2 - 1))
    told = f"The rank correlation between the servers' means with the two queues is {correlation:.2f}."
    assert told in section_of(heading_of(test_case))


def test_servers_that_gain_much_and_their_bursts() -> None:
    """Over the link without random loss: a factor of 2 or more, and bursts of more than 25 packets with 25 packets."""
    most = [server for server, values in factors("sat").items() if geometric_mean(values) >= 2]
    bursts = {
        server: median(metrics(matching(matrix(), server=server, test_case="sat"), "longest_burst")) for server in most
    }
    large = [f"{server} ({packets:.0f})" for server, packets in bursts.items() if packets > 25]
    small = [f"{server} ({packets:.0f})" for server, packets in bursts.items() if packets <= 25]
    assert (
        f"- {listed(most)} gain a factor of 2 or more. The longest bursts of {listed(large)} contain more packets than "
        f"the shorter queue (medians). Bursts do not explain the gain of {listed(small)}, whose longest bursts fit "
        "into the shorter queue. "
    ) in section_of(heading_of("sat"))
    assert " gain a factor of 2 or more." not in section_of(heading_of("satloss"))
    assert {"nginx", "haproxy", "quiche", "ngtcp2"} <= set(most)
    [packets] = re.findall(
        r"up to 64 KiB at once \(`ngtcp2_conn.c`\), which is (\d+) packets", section_of(heading_of("sat"))
    )
    assert int(packets) == int(bursts["ngtcp2"])


def mean_ranks(values: list[float]) -> list[float]:
    """From 0 on; equal values share the mean of their ranks."""
    order = sorted(values)
    return [fmean(place for place, each in enumerate(order) if each == value) for value in values]


def test_bursts_and_factors() -> None:
    """Spearman's correlation over sat, and servers with long bursts that gain less than a factor of 2."""
    means = {server: geometric_mean(values) for server, values in factors("sat").items()}
    longest = {
        server: median(metrics(matching(matrix(), server=server, test_case="sat"), "longest_burst")) for server in means
    }
    order = np.corrcoef(mean_ranks(list(longest.values())), mean_ranks(list(means.values())))[0, 1]
    section = section_of(heading_of("sat"))
    assert f"between the longest burst and the factor is {order:.2f} over {len(means)} servers.\n" in section
    little = [
        f"{server} ({longest[server]:.0f}, factor {mean:.2f})"
        for server, mean in means.items()
        if longest[server] > 25 and mean < 2
    ]
    told = f"In contrast, {listed(little)} {'gains' if len(little) == 1 else 'gain'} less" if little else ""
    assert told in section
    assert ("In contrast" in section) == bool(little)


def test_servers_with_more_goodput_and_more_drops() -> None:
    """Over sat, of servers whose interval is above 1."""
    both = faster = 0
    for server, values in factors("sat").items():
        if geometric_interval(values)[1] <= 1:
            continue
        runs = zip(*[pair for pair in with_both_queues("sat") if pair[0]["server"] == server], strict=True)
        before, after = (fmean(metrics(each, "queue_loss")) for each in runs)
        faster, both = faster + 1, both + (after > before)
    assert (
        f"- Of the {faster} servers with an interval above 1, {both} also have a larger share of dropped packets with "
        "the longer queue."
    ) in section_of(heading_of("sat"))


def test_seeds_of_the_longer_queue() -> None:
    seeds = [each["manifest"]["seed"] for each in documents("queues")]
    named = f"{'seed' if len(seeds) == 1 else 'seeds'} {listed(map(str, seeds))}"
    assert f"the same pairs with {named}." in the_page()


def test_the_losses_with_both_queues_are_the_same() -> None:
    told = "the runs in this section differ from the matrix only in the queue: the random numbers are the same"
    assert told in the_page()
    for test_case in LINKS:
        assert all(one["evidence"]["seed"] == two["evidence"]["seed"] for one, two in with_both_queues(test_case))


def test_servers_whose_runs_all_failed_have_no_drops() -> None:
    """Over satloss."""
    found = rows("Goodput with the longer queue over satloss")
    empty = [row[0] for row in found if not row[5] or not row[6]]
    told = f"Cells of {listed(empty)} are empty where no run succeeded."
    assert (told in section_of("Goodput with the longer queue over satloss")) == bool(empty)
    for place in (0, 1):
        runs = [pair[place] for pair in with_both_queues("satloss")]
        good = {run["server"] for run in runs if metric(run, "goodput") is not None}
        assert {row[0] for row in found if not row[5 + place]} == {row[0] for row in found} - good


@pytest.mark.skipif(not stored_part["real"], reason="the campaign in real time is not stored")
@pytest.mark.parametrize("test_case", LINKS)
def test_factors_that_hold_in_virtual_time_only(test_case: str) -> None:
    """No further from 1 than the typical ratio of the two clocks of the same server."""
    means = {server: geometric_mean(values) for server, values in factors(test_case).items()}
    errors = {server: rms(ratios) for server in means if (ratios := agreement(test_case, {server})[0])}
    near = [server for server, error in errors.items() if abs(math.log(means[server])) <= error]
    named = f" ({listed(near)})" if near else ""
    section = section_of(heading_of(test_case))
    assert (
        f"For {len(near) or 'none'} of {len(errors)} servers{named}, the factor differs from 1 by no more than the "
        "goodput of the same server in virtual time differs from real time with 25 packets (RMS over the clients;"
    ) in section
    missing = [server for server in means if server not in errors]
    told = f" For {listed(missing or ['-'])}, there are no runs in real time over `{test_case}`."
    assert (told in section) == bool(missing)


def test_drops_with_seeds_that_the_longer_queue_does_not_have() -> None:
    """Over satloss, in how many runs with 25 packets."""
    seeds = [each["manifest"]["seed"] for each in documents("queues")]
    runs = {each["manifest"]["seed"]: matching(each["results"], test_case="satloss") for each in documents("matrix")}
    assert len(seeds) == 1
    assert {*seeds} < runs.keys()
    few, never = dict[str, str](), list[str]()
    for server in manifest()["servers"]:
        drops = {
            seed: [run["evidence"]["simulator"]["forward"]["queue_drops"] > 0 for run in matching(each, server=server)]
            for seed, each in runs.items()
        }
        mine, others = drops.pop(seeds[0]), list(drops.values())
        if fmean(mine) < 0.5 < max(map(fmean, others)):
            few[server] = f"{sum(mine)}; {', '.join(str(sum(each)) for each in others)}"
        never += [] if any(map(any, (mine, *others))) else [server]
    rest = listed(str(seed) for seed in runs if seed not in seeds)
    section = section_of(heading_of("satloss"))
    assert f"- All runs over `satloss` in this section have seed {seeds[0]}, so their results hold for one" in section
    assert (
        f" For {listed(few)}, the queue of 25 packets drops packets in fewer than half of the runs with seed "
        f"{seeds[0]}, but in more than half of the runs with at least one other seed. The numbers of runs with drops "
        f"(for seed {seeds[0]}; for seeds {rest}) are: "
        f"{listed(f'{server} ({counts})' for server, counts in few.items())}. For "
    ) in section
    assert f" For {listed(never)}, the queue of 25 packets drops no packets with any seed." in section


def test_runs_in_which_neither_queue_dropped_a_packet() -> None:
    def drops(run: Run) -> bool:
        report = run["evidence"]["simulator"]
        return any(report[direction]["queue_drops"] for direction in ("forward", "back"))

    pairs = [
        pair
        for test_case in LINKS
        for pair in with_both_queues(test_case)
        if not any(map(drops, pair)) and all(map(so_far, pair))
    ]
    changes = [abs(float(so_far(longer) or 0) / float(so_far(before) or 1) - 1) for before, longer in pairs]
    sensitive = [bool({run["server"], run["client"]} & {"aioquic", "kwik"}) for run, _ in pairs]
    groups = [
        [change for change, each in zip(changes, sensitive, strict=True) if each is known] for known in (True, False)
    ]
    worst, _ = pairs[changes.index(max(changes))]
    assert (
        f"In {len(pairs)} pairs of these runs, neither queue dropped a packet. Goodput is then exactly the same in "
        f"{changes.count(0)} of them ({groups[0].count(0)} of {len(groups[0])} with aioquic or kwik, and "
        f"{groups[1].count(0)} of {len(groups[1])} without them). It differs by more than 0.5 % in "
        f"{sum(change > 0.005 for change in changes)}, at most by {100 * max(changes):.1f} % ({worst['server']} with "
        f"{worst['client']})."
    ) in the_page()
