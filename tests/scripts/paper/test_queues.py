"""The longer queue of the paper's simulator: the same runs, compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from interop.model.results import Measurement, ResultSet
from interop.model.test_case import TestCase
from interop.model.units import MBPS
from scripts.paper.queues import (
    both,
    bursts,
    by_server,
    finding,
    queues,
    rank_correlation,
    ratios,
    reason,
    same_runs,
)
from tests.results_builder import SAT, SATLOSS, result_set, runs

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
    assert "the same pairs with seeds 1, 2." in "\n".join(queues(one, other))


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
        "1 of 3 servers are faster with the longer queue (95 % interval over clients above 1), and 1 are slower "
        "(interval below 1: b). These runs have one seed, and the intervals are not corrected"
    ) in sentence
    assert "\n".join(queues(*many)).count("| a ") == 1


def lossy(factors: Mapping[str, float], drops: Mapping[str, float | None]) -> tuple[ResultSet, ResultSet]:
    """One run of each server with each queue over satloss; without a share of drops, it has none."""

    def made(case: TestCase, rates: Mapping[str, float]) -> ResultSet:
        found = [run for server, rate in rates.items() for run in runs(rate * MBPS, server=server, test_case=case.name)]
        with_drops = [
            replace(run, measurement=Measurement({"goodput": rates[run.server] * MBPS, "queue_loss": share}))
            if (share := drops[run.server]) is not None
            else run
            for run in found
        ]
        return result_set(with_drops, servers=tuple(rates), test_cases=(case,))

    longer = replace(SATLOSS, name="satloss-paper-queue", abbreviation="SATLPQ")
    return made(SATLOSS, dict.fromkeys(factors, 1.0)), with_seed(made(longer, factors), 99)


def with_seed(results: ResultSet, seed: int) -> ResultSet:
    """The same results with another seed."""
    kept = (replace(run, evidence=replace(run.evidence, seed=seed)) for run in results.results)
    return replace(results, results=tuple(kept))


def test_over_a_link_with_loss_other_losses_change_goodput_too() -> None:
    """Servers whose queues drop nothing differ by 10 % at most, so that only those beyond that are named."""
    factors = {"a": 1.05, "b": 0.9, "c": 1.12, "d": 1.1, "e": 0.8}
    many = lossy(factors, {"a": 0.0, "b": 0.0004, "c": 0.03, "d": 0.03, "e": None})
    told = "\n".join(reason(*many, "satloss-paper-queue"))
    assert "For 2 servers (a, b), both queues dropped less than 0.05 % of the packets." in told
    assert "b has the factor that is furthest from 1, 0.90" in told
    assert told.endswith("Servers with factors further from 1: c (1.12), e (0.80).")
    assert "are faster" not in told
    assert "Cells of e are empty, since no run succeeded" in by_server(*many, "satloss-paper-queue").notes[1]


def test_with_the_same_losses_servers_are_counted_over_a_link_with_loss_too() -> None:
    one, other = lossy({"a": 1.05}, {"a": 0.0})
    same = with_seed(one, 99), other
    assert "and over `satloss` also in the sequence of losses." in "\n".join(queues(one, other))
    assert "from the matrix in the queue. The tables" in "\n".join(queues(*same))
    told = "\n".join(reason(*same, "satloss-paper-queue"))
    assert "Over `satloss`, 0 of 1 servers are faster" in told
    assert "other loss sequence" not in told


def test_the_finding_compares_servers_and_clients_of_the_paper() -> None:
    """Goodput is doubled, to 10.1 Mbit/s; a server that the paper did not measure does not count."""
    one = runs(5.05 * MBPS, client="quiche") + runs(MBPS, server="quinn", client="quiche")
    other = runs(10.1 * MBPS, client="quiche", test_case=LONGER.name)
    servers = ("picoquic", "quinn")
    [told] = finding(result_set(one, servers=servers), result_set(other, servers=servers, test_cases=(LONGER,)))
    assert "the mean of our runs of the 1 server and 1 client of the paper over `sat` rises by 100 %." in told
    assert "differs from the paper's mean by +100 %; with 25 packets, it differs by +0 %." in told
    assert list(finding(result_set(), result_set())) == []


def test_servers_that_gain_much_and_their_bursts() -> None:
    """The queue of sat holds 25 packets."""
    one, other = campaigns()

    def with_bursts(longest: float) -> ResultSet:
        values = {"goodput": MBPS, "longest_burst": longest}
        kept = (replace(run, measurement=Measurement({**values, "goodput": run.measurement.values["goodput"]}))
                for run in one.results if run.measurement)  # fmt: skip
        return replace(one, results=tuple(kept))

    [told] = bursts(with_bursts(26), ratios(one, other, LONGER.name), "sat")
    assert told.startswith("- picoquic gains a factor of 2 or more. The longest bursts of picoquic (26) have more")
    [told] = bursts(with_bursts(25), ratios(one, other, LONGER.name), "sat")
    assert "longest bursts" not in told
    assert list(bursts(one, {}, "sat")) == []
    assert told in "\n".join(queues(with_bursts(25), other))


def test_the_order_of_servers_with_both_queues() -> None:
    assert rank_correlation({"a": 1, "b": 2, "c": 3}, {"a": 10, "b": 20, "c": 30, "d": 1}) == pytest.approx(1)
    assert rank_correlation({"a": 1, "b": 2, "c": 3}, {"a": 30, "b": 20, "c": 10}) == pytest.approx(-1)
    assert rank_correlation({"a": 1, "b": 2}, {"a": 1, "b": 2}) is None


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
    assert re.search(r"The server has (9\d|100) % \(.* with 25 packets, and \d % \(.* with the longer queue", told)
    assert "of the means of servers with both queues is 1.00." in told


def test_drops_and_bytes_in_flight() -> None:
    one, other = campaigns()

    def measured(results: ResultSet, dropped: float, flying: float) -> ResultSet:
        values = {"goodput": MBPS, "queue_loss": dropped, "in_flight_max": flying}
        return replace(results, results=tuple(replace(run, measurement=Measurement(values)) for run in results.results))

    _, told = reason(measured(one, 0.02, 1000.0), measured(other, 0.05, 2500.0), LONGER.name)
    assert told == (
        "- The queues drop 2.0 and 5.0 % of the packets on average. The most bytes in flight are 2.50 times as many "
        "with the longer queue (median of the pairs)."
    )


def test_a_link_without_runs_has_no_table() -> None:
    one, other = campaigns()
    more = replace(LONGER, name="satloss-paper-queue")
    manifest = replace(other.manifest, test_cases=(LONGER, more))
    exact = replace(one.manifest, test_cases=(SAT, replace(SAT, name="satloss")))
    told = "\n".join(queues(replace(one, manifest=exact), replace(other, manifest=manifest)))
    assert "longer queue over sat\n" in told
    assert "longer queue over satloss\n" not in told
