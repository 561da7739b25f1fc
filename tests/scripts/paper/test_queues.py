"""The longer queue of the paper's simulator: the same runs, compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interop.model.results import ResultSet
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
    [sentence] = reason(*many, LONGER.name)
    assert "1 of 3 servers are faster with the longer queue beyond doubt, and 1 are slower (b)." in sentence
    assert "\n".join(queues(*many)).count("| a ") == 1
