"""The longer queue of the paper's simulator: the same runs, compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interop.model.results import Measurement, ResultSet
from interop.model.units import MBPS
from scripts.paper.queues import both, queues, ratios, reason, same_runs
from tests.results_builder import SAT, result_set, runs

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


def test_servers_that_are_certainly_faster_are_counted() -> None:
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
    sentence, paper = reason(*many, LONGER.name)
    assert "1 of 3 servers are faster with the longer queue beyond doubt, and 1 are slower (b)." in sentence
    assert paper.startswith("- The mean differs from the paper's by -80 % with 25 packets, and by -76 %")
    assert "\n".join(queues(*many)).count("| a ") == 1


def test_drops_and_bytes_in_flight() -> None:
    one, other = campaigns()

    def measured(results: ResultSet, dropped: float, flying: float) -> ResultSet:
        values = {"goodput": MBPS, "queue_loss": dropped, "in_flight_max": flying}
        return replace(results, results=tuple(replace(run, measurement=Measurement(values)) for run in results.results))

    _, told, _ = reason(measured(one, 0.02, 1000.0), measured(other, 0.05, 2500.0), LONGER.name)
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
