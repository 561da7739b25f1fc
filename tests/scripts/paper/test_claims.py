"""The paper's claims beside our measurements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interop.model.emulated_link import EmulatedLink
from interop.model.results import ResultSet
from interop.model.units import MBPS
from scripts.paper.claims import claims
from tests.results_builder import SAT, SATLOSS, result_set, runs
from tests.scripts.paper.test_algorithms import with_controls

TERRESTRIAL = replace(
    SAT,
    name="terrestrial",
    abbreviation="T",
    link=EmulatedLink("simple-p2p", 0.015, 0.015, 20 * MBPS, 20 * MBPS, 25, 25),
)


def compared(results: ResultSet, claim: str) -> tuple[str, str]:
    """What we measured, and the comparison, for the claim that contains some words."""
    [row] = [row for row in claims(results).rows if claim in str(row[1])]
    return str(row[2]), str(row[3])


@pytest.mark.parametrize(("rates", "told"), [((16, 6, 2), "agrees on the order of the links"), ((16, 2, 6), "differs")])
def test_the_order_of_the_links(rates: tuple[int, int, int], told: str) -> None:
    cases = TERRESTRIAL, SAT, SATLOSS
    found = [run for rate, case in zip(rates, cases, strict=True) for run in runs(rate * MBPS, test_case=case.name)]
    results = result_set(found, test_cases=cases, repetitions=1)
    ours = f"{rates[0] * 5}, {rates[1] * 5} and {rates[2] * 5} %"
    assert compared(results, "terrestrial, sat and satloss: 76, 25 and 15 %") == (ours, told)


def crossed(of_servers: dict[str, float], of_clients: dict[str, float]) -> ResultSet:
    """Each pair reaches the product of its two numbers over sat, Mbit/s."""
    names = tuple(of_servers)
    found = [
        run
        for server in names
        for client in names
        for run in runs(of_servers[server] * of_clients[client] * MBPS, server=server, client=client)
    ]
    return result_set(found, servers=names, clients=names, repetitions=1)


def test_an_implementation_can_perform_well_in_one_role_only() -> None:
    """aioquic is slow as a server and fast as a client, as in the paper; ngtcp2 performs well in both roles."""
    results = crossed(
        {"aioquic": 1, "ngtcp2": 4, "quinn": 3, "quiche": 2},
        {"aioquic": 1.4, "ngtcp2": 1.33, "quinn": 1.2, "quiche": 1},
    )
    ours = "Mean goodput over sat, as a server: 25 % of the fastest server; as a client: 100 % of the fastest client"
    assert compared(results, "aioquic performs well as a client, but not as a server") == (ours, "agrees")
    ours = "Mean goodput over sat, as a server: 100 % of the fastest server; as a client: 95 % of the fastest client"
    assert compared(results, "ngtcp2 performs well as a server") == (ours, "differs")


def test_both_ends_matter_unless_the_server_has_most_of_the_variance() -> None:
    names = [f"i{number}" for number in range(8)]
    spread = {name: 2.0**number for number, name in enumerate(names)}
    even = {name: 1 + 0.01 * number for number, name in enumerate(names)}
    assert (
        compared(crossed(spread, even), "Both the server")[1]
        == "partly: over sat, mostly the server; single pairs can differ much"
    )
    assert compared(crossed(spread, spread), "Both the server")[1] == "agrees"


def test_neqo_as_client_over_terrestrial() -> None:
    found = runs(16 * MBPS, None, client="neqo", test_case="terrestrial")
    results = result_set(found, clients=("neqo",), test_cases=(TERRESTRIAL,), repetitions=2)
    told = compared(results, "The client of neqo fails over terrestrial")
    assert told == ("1 of 2 runs with this client succeeded", "differs: it succeeds")


@pytest.mark.parametrize(
    ("rates", "told"),
    [
        ({"picoquic": 7, "quiche": 3, "aioquic": 0.2}, "agrees"),
        ({"picoquic": 7, "quiche": 1, "aioquic": 0.2}, "agrees, but no server with CUBIC exceeds it either"),
        ({"picoquic": 7, "quiche": 3, "aioquic": 2.2}, "differs"),
    ],
)
def test_which_servers_exceed_the_threshold(rates: dict[str, float], told: str) -> None:
    found = [run for name, rate in rates.items() for run in runs(rate * MBPS, server=name, test_case="satloss")]
    results = result_set(found, servers=tuple(rates), test_cases=(SATLOSS,), repetitions=1)
    results = with_controls(results, picoquic="bbr", quiche="cubic", aioquic="reno")
    assert compared(results, "Only servers with CUBIC or BBR exceed an efficiency of 10 % over satloss")[1] == told


def test_claims_about_what_was_not_measured_are_left_out() -> None:
    assert claims(result_set()).rows == ()
