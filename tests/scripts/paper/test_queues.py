"""The longer queue of the paper's simulator: the same runs, compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from interop.model.results import Measurement, ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.model.units import MBPS
from interop.statistics.intervals import Mean
from scripts.paper.queues import (
    both,
    bursts,
    by_server,
    corrected_for_servers,
    faster_and_slower,
    finding,
    more_of_both,
    over_the_same_links,
    queues,
    rank_correlation,
    ratios,
    reason,
    same_runs,
    same_without_drops,
    with_other_seeds,
)
from tests.results_builder import SAT, SATLOSS, result_set, runs
from tests.scripts.paper.test_seeds import with_drops

LONGER = replace(SAT, name="sat-paper-queue", abbreviation="SATPQ")


def campaigns() -> tuple[ResultSet, ResultSet]:
    """One server is twice and eight times as fast with the longer queue, another as fast as before."""
    clients = ("x", "y", "z")
    rates = {"picoquic": (1.0, 2.0, 8.0), "quinn": (4.0, 3.9, 4.1)}
    one = [
        run
        for server, rate in (("picoquic", 1.0), ("quinn", 4.0))
        for client in clients
        for run in runs(rate * MBPS, server=server, client=client)
    ]
    other = [
        run
        for server, found in rates.items()
        for client, rate in zip(clients[:2] if server == "picoquic" else clients, found[-2:], strict=False)
        for run in runs(rate * MBPS, server=server, client=client, test_case=LONGER.name)
    ]
    servers = ("picoquic", "quinn")
    return (
        result_set(one, servers=servers, clients=clients),
        result_set(other, servers=servers, clients=clients, test_cases=(LONGER,)),
    )


def test_only_runs_that_both_have_are_compared() -> None:
    one, other = same_runs(*campaigns())
    assert len(one.results) == len(other.results) == 4
    exact, longer, paper = both(one, other).rows
    assert exact[:4] == ("sat", "25 packets", 2.5 * MBPS, 2.5 * MBPS)
    assert longer[2] == pytest.approx((2 + 8 + 3.9 + 4.1) / 4 * MBPS)
    assert paper[2] == 5.05 * MBPS


def test_the_factor_is_the_geometric_mean_over_clients() -> None:
    found = ratios(*campaigns(), LONGER.name)
    assert found["picoquic"].value == pytest.approx(4)
    assert found["picoquic"].count == 2
    assert found["quinn"].value == pytest.approx((3.9 * 4.1 / 16) ** 0.5)


def test_a_client_counts_once_whatever_the_number_of_seeds() -> None:
    """Twice and eight times as fast with two seeds: four times."""
    one = result_set(runs(MBPS, MBPS, client="x") + runs(MBPS, client="y"), clients=("x", "y"))
    longer = runs(2 * MBPS, 8 * MBPS, client="x", test_case=LONGER.name)
    longer += runs(MBPS, client="y", test_case=LONGER.name)
    other = result_set(longer, clients=("x", "y"), test_cases=(LONGER,))
    found = ratios(one, other, LONGER.name)["picoquic"]
    assert found.value == pytest.approx(2)
    assert found.count == 2
    assert "the same pairs with seeds 1 and 2." in "\n".join(queues(one, other))


@pytest.mark.parametrize(
    ("faster", "told"),
    [
        (0, "none of 3 servers is faster with the longer queue (no 95 % confidence interval is above 1), and 3 are "),
        (2, " 2 of 3 servers are faster with the longer queue (their 95 % confidence intervals are above 1), and 1 "),
        (3, "confidence intervals are above 1), and none is slower (no interval is below 1). These runs"),
    ],
)
def test_words_for_servers_above_and_below_1(faster: int, told: str) -> None:
    """The intervals of the others are below it."""
    means = {
        name: Mean(1.0, *((1.1, 1.2) if place < faster else (0.8, 0.9)), geometric=True, count=2)
        for place, name in enumerate(("a", "b", "c"))
    }
    assert told in faster_and_slower(campaigns()[1], LONGER.name, means)


def test_servers_with_an_interval_above_or_below_1_are_counted() -> None:
    servers, clients = ("a", "b", "c"), ("x", "y", "z")
    factors = {"a": (2.0, 2.1, 2.2), "b": (0.5, 0.51, 0.52), "c": (0.9, 1.0, 1.1)}
    one = [run for server in servers for client in clients for run in runs(MBPS, server=server, client=client)]
    other = [
        run
        for server in servers
        for client, factor in zip(clients, factors[server], strict=True)
        for run in runs(factor * MBPS, server=server, client=client, test_case=LONGER.name)
    ]
    many = (
        result_set(one, servers=servers, clients=clients),
        result_set(other, servers=servers, clients=clients, test_cases=(LONGER,)),
    )
    [sentence] = reason(*many, LONGER.name)
    assert (
        "1 of 3 servers is faster with the longer queue (its 95 % confidence interval is above 1), and 1 is slower "
        "(its interval is below 1: b). These runs have one seed. The intervals are over the clients, and are not"
    ) in sentence
    assert "\n".join(queues(*many)).count("| a ") == 1


def with_seed(results: ResultSet, seed: int) -> ResultSet:
    """The same results with another seed."""
    kept = (replace(run, evidence=replace(run.evidence, seed=seed)) for run in results.results)
    return replace(results, results=tuple(kept))


def test_runs_with_other_random_numbers_are_not_compared() -> None:
    one, other = campaigns()
    assert [each.results for each in same_runs(one, with_seed(other, 99))] == [(), ()]
    assert len(same_runs(with_seed(one, 99), with_seed(other, 99))[1].results) == 4


def test_a_server_without_a_success_has_no_drops() -> None:
    one, other = campaigns()
    assert "Cells of picoquic and quinn are empty where" in by_server(one, other, LONGER.name).notes[1]


def test_the_finding_compares_servers_and_clients_of_the_paper() -> None:
    """Goodput is doubled, to 10.1 Mbit/s; a server that the paper did not measure does not count."""
    one = runs(5.05 * MBPS, client="quiche") + runs(MBPS, server="quinn", client="quiche")
    other = runs(10.1 * MBPS, client="quiche", test_case=LONGER.name)
    servers = ("picoquic", "quinn")
    [told] = finding(result_set(one, servers=servers), result_set(other, servers=servers, test_cases=(LONGER,)))
    assert "over `sat` rises by 100 % for the 1 server and 1 client that are also in the paper. Our mean is" in told
    assert "100 % above the paper's mean; with 25 packets, it is 0 % below the paper's mean." in told
    assert list(finding(result_set(), result_set())) == []


def test_servers_that_gain_much_and_their_bursts() -> None:
    """The queue of sat holds 25 packets."""
    one, other = campaigns()

    def with_bursts(longest: float) -> ResultSet:
        values = {"goodput": MBPS, "longest_burst": longest}
        kept = (replace(run, measurement=Measurement({**values, "goodput": run.measurement.values["goodput"]}))
                for run in one.results if run.measurement)  # fmt: skip
        return replace(one, results=tuple(kept))

    told, also = bursts(with_bursts(26), ratios(one, other, LONGER.name), "sat")
    assert told == (
        "- picoquic gains a factor of 2 or more. The longest bursts of picoquic (26) contain more packets than the "
        "shorter queue (medians). In contrast, quinn (26, factor 1.00) gains less, although its longest bursts do not "
        "fit into the shorter queue."
    )
    assert also.startswith("- For some servers, a lack of pacing may explain the gain.")
    told, _ = bursts(with_bursts(25), ratios(one, other, LONGER.name), "sat")
    assert told == (
        "- picoquic gains a factor of 2 or more. Bursts do not explain the gain of picoquic (25), whose longest bursts "
        "fit into the shorter queue."
    )
    assert list(bursts(one, {}, "sat")) == []
    assert told in "\n".join(queues(with_bursts(25), other))


def test_the_order_of_bursts_and_factors() -> None:
    """The server with the longest bursts gains least."""
    longest, factors = {"a": 30.0, "b": 10.0, "c": 10.0, "d": 5.0}, {"a": 1.0, "b": 2.5, "c": 3.0, "d": 4.0}
    found = [
        replace(run, measurement=Measurement({"goodput": MBPS, "longest_burst": longest[name]}))
        for name in longest
        for run in runs(MBPS, server=name)
    ]
    means = {name: Mean(value, None, None, geometric=True, count=1) for name, value in factors.items()}
    told, _ = bursts(result_set(found, servers=tuple(longest)), means, "sat")
    assert told.endswith("between the longest burst and the factor is -0.95 over 4 servers.")


def test_servers_with_more_goodput_and_more_drops() -> None:
    """picoquic is faster, and its queue drops more; quinn is not faster."""
    one, other = campaigns()
    more = [
        run
        for client, rate in (("x", 2.0), ("y", 2.1), ("z", 2.2))
        for run in runs(rate * MBPS, server="picoquic", client=client, test_case=LONGER.name)
    ]
    other = replace(other, results=(*more, *(run for run in other.results if run.server == "quinn")))

    def measured(results: ResultSet, dropped: float) -> ResultSet:
        kept = (
            replace(run, measurement=Measurement({**run.measurement.values, "queue_loss": dropped}))
            for run in results.results
            if run.measurement
        )
        return replace(results, results=tuple(kept))

    [told] = more_of_both(measured(one, 0.02), measured(other, 0.05), LONGER.name)
    assert told == (
        "- Of the 1 server with an interval above 1, 1 also has a larger share of dropped packets with the longer "
        "queue. A smaller share therefore cannot explain why goodput is higher; a later first drop might."
    )
    assert told in "\n".join(queues(measured(one, 0.02), measured(other, 0.05)))
    assert list(more_of_both(measured(one, 0.05), measured(other, 0.02), LONGER.name)) == []


def test_the_order_of_servers_with_both_queues() -> None:
    assert rank_correlation({"a": 1, "b": 2, "c": 3}, {"a": 10, "b": 20, "c": 30, "d": 1}) == pytest.approx(1)
    assert rank_correlation({"a": 1, "b": 2, "c": 3}, {"a": 30, "b": 20, "c": 10}) == pytest.approx(-1)
    assert rank_correlation({"a": 1, "b": 2}, {"a": 1, "b": 2}) is None


def test_equal_values_have_the_mean_of_their_ranks() -> None:
    """scipy.stats.spearmanr."""
    found = rank_correlation({"a": 1, "b": 1, "c": 2, "d": 3}, {"a": 1, "b": 2, "c": 3, "d": 4})
    assert found == pytest.approx(0.9486833)


def test_shares_of_the_server_with_both_queues() -> None:
    """Servers differ with the short queue only."""
    servers, clients = ("a", "b", "c"), ("x", "y", "z")

    def made(rates: Mapping[str, float], case: TestCase) -> ResultSet:
        found = [
            run
            for server, rate in rates.items()
            for number, client in enumerate(clients)
            for run in runs((rate + 0.1 * number) * MBPS, server=server, client=client, test_case=case.name)
        ]
        return result_set(found, servers=servers, clients=clients, test_cases=(case,))

    told = "\n".join(
        reason(made({"a": 1, "b": 5, "c": 9}, SAT), made({"a": 1, "b": 1.01, "c": 1.02}, LONGER), LONGER.name)
    )
    share = r"% \(\d+ to \d+ %; \d+ to \d+ %\)"
    assert re.search(
        rf"accounts for (9\d|100) {share} of .* 25 packets, and for \d {share} with the longer queue", told
    )
    assert "between the servers' means with the two queues is 1.00." in told


def test_drops_and_bytes_in_flight() -> None:
    one, other = campaigns()

    def measured(results: ResultSet, dropped: float, flying: float) -> ResultSet:
        values = {"goodput": MBPS, "queue_loss": dropped, "in_flight_max": flying}
        return replace(results, results=tuple(replace(run, measurement=Measurement(values)) for run in results.results))

    _, told = reason(measured(one, 0.02, 1000.0), measured(other, 0.05, 2500.0), LONGER.name)
    assert told == (
        "- On average, the shorter queue drops 2.0 % of the packets, and the longer queue 5.0 %. The maximum in flight "
        "is 2.50 times as high with the longer queue (median of the pairs)."
    )


def test_a_link_without_runs_has_no_table() -> None:
    one, other = campaigns()
    more = replace(LONGER, name="satloss-paper-queue")
    manifest = replace(other.manifest, test_cases=(LONGER, more))
    exact = replace(one.manifest, test_cases=(SAT, replace(SAT, name="satloss")))
    told = "\n".join(queues(replace(one, manifest=exact), replace(other, manifest=manifest)))
    assert "longer queue over sat\n" in told
    assert "longer queue over satloss\n" not in told


def test_factors_nearer_to_1_than_real_time_hold_in_virtual_time_only() -> None:
    """Real time is 10 % slower than virtual time: quinn's factor is within this error, and picoquic's is not."""
    one, other = campaigns()
    theirs = replace(one, results=tuple(faster(run, 0.9) for run in one.results))
    told = "\n".join(queues(one, other, theirs))
    assert (
        "For 1 of 2 servers (quinn), the factor differs from 1 by no more than the goodput of the same server in "
        "virtual time differs from real time with 25 packets (RMS over the clients; "
    ) in told
    assert "in real time over `sat`" not in told
    assert "did not measure the longer queue" not in "\n".join(queues(one, other))
    assert "For none of 2 servers, the factor" in "\n".join(queues(one, other, one))


def test_servers_without_runs_in_real_time_are_named() -> None:
    one, other = campaigns()
    few = replace(one, results=tuple(faster(run, 0.9) for run in one.results if run.server == "quinn"))
    told = "\n".join(queues(one, other, few))
    assert "For 1 of 1 server (quinn), the factor" in told
    assert "For picoquic, there are no runs in real time over `sat`." in told


def without_returning_drops(run: RunResult) -> RunResult:
    """The run, whose queue from the client to the server dropped nothing."""
    report = run.evidence.simulator
    assert report is not None
    back = replace(report.back, queue_drops=0)
    return replace(run, evidence=replace(run.evidence, simulator=replace(report, back=back)))


def test_runs_in_which_no_queue_dropped_a_packet() -> None:
    """Of three pairs of runs, one has the same goodput, one has another one, and in one the shorter queue drops."""

    def made(case: TestCase, rates: tuple[float, ...], drops: tuple[int, ...]) -> ResultSet:
        found = [
            without_returning_drops(with_drops(run, count))
            for client, rate, count in zip(("x", "y", "kwik"), rates, drops, strict=True)
            for run in runs(rate * MBPS, client=client, test_case=case.name)
        ]
        return result_set(found, clients=("x", "y", "kwik"), test_cases=(case,), repetitions=1)

    told = same_without_drops(made(SAT, (1, 2, 4), (0, 3, 0)), made(LONGER, (1, 5, 4.2), (0, 0, 0)))
    assert told.startswith(
        "In 2 pairs of these runs, neither queue dropped a packet. Goodput is then exactly the same in 1 of them (0 of "
        "1 with aioquic or kwik, and 1 of 1 without them). It differs by more than 0.5 % in 1, at most by 5.0 % "
        "(picoquic with kwik)."
    )
    assert told in "\n".join(queues(made(SAT, (1, 2, 4), (0, 3, 0)), made(LONGER, (1, 5, 4.2), (0, 0, 0))))
    assert same_without_drops(made(SAT, (1, 2, 4), (1, 1, 1)), made(LONGER, (1, 5, 4.2), (0, 0, 0))) == ""


def test_the_longer_queue_over_links_with_the_names_of_the_matrix() -> None:
    found = over_the_same_links(campaigns()[1])
    assert [case.name for case in found.manifest.test_cases] == ["sat"]
    assert {run.test_case for run in found.results} == {"sat"}


def faster(run: RunResult, factor: float) -> RunResult:
    """The run with so many times its goodput."""
    assert run.measurement is not None
    return replace(run, measurement=Measurement({"goodput": factor * run.measurement.values["goodput"]}))


def test_drops_with_other_seeds_limit_the_factors() -> None:
    """The queue drops packets of a with another seed only, of b with each seed, and of c with none."""
    dropped = {"a": (0, 5), "b": (5, 5), "c": (0, 0)}
    found = [
        with_drops(run, drops)
        for server, counts in dropped.items()
        for client in ("x", "y", "z")
        for run, drops in zip(runs(MBPS, MBPS, server=server, client=client, test_case="satloss"), counts, strict=True)
    ]
    matrix = result_set(found, servers=tuple(dropped), clients=("x", "y", "z"), test_cases=(SATLOSS,))
    first = replace(matrix, results=tuple(run for run in matrix.results if run.repetition == 1))
    [told] = with_other_seeds(matrix, first, "satloss")
    assert told == (
        "- All runs over `satloss` in this section have seed 1, so their results hold for one sequence of losses only. "
        "For a, the queue of 25 packets drops packets in fewer than half of the runs with seed 1, but in more than "
        "half of the runs with at least one other seed. The numbers of runs with drops (for seed 1; for seed 2) are: a "
        "(0; 3). For this server, a factor near 1 may not hold with other seeds. For c, the queue of 25 packets drops "
        "no packets with any seed. See [Queue drops by seed over satloss](#queue-drops-by-seed-over-satloss)."
    )
    assert list(with_other_seeds(matrix, matrix, "satloss")) == []
    longer = replace(SATLOSS, name="satloss-paper-queue")
    same = (replace(run, test_case=longer.name) for run in first.results)
    assert told in "\n".join(
        queues(matrix, replace(first, results=tuple(same), manifest=replace(first.manifest, test_cases=(longer,))))
    )


def test_a_server_counts_as_faster_only_if_the_number_of_servers_allows_it() -> None:
    """With ten clients, all factors above 1 have p = 2/1024; with six, p = 1/32, too large for three servers."""
    above, mixed = [1.1, 1.2, 1.3, 1.4, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6], [0.9, 1.1] * 5
    told = corrected_for_servers({"a": above, "b": above[:6], "c": mixed})
    assert "corrected for the 3 servers (Holm 1979, level 5 %), 1 server (a) is faster, and none is slower." in told
    told = corrected_for_servers({"a": above, "b": [1 / each for each in above]})
    assert told.endswith("1 server (a) is faster, and 1 is slower (b).")
    assert corrected_for_servers({"a": mixed}).endswith("no server is faster, and none is slower.")
    assert not corrected_for_servers({})
