"""The paper's claims beside our measurements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interop.model.emulated_link import EmulatedLink
from interop.model.results import Measurement, ResultSet
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
    return str(row[2]), str(row[4])


@pytest.mark.parametrize(("rates", "told"), [((16, 6, 2), "agrees on the order of the links"), ((16, 2, 6), "differs")])
def test_the_order_of_the_links(rates: tuple[int, int, int], told: str) -> None:
    cases = TERRESTRIAL, SAT, SATLOSS
    found = [run for rate, case in zip(rates, cases, strict=True) for run in runs(rate * MBPS, test_case=case.name)]
    others = [run for case in cases for run in runs(20 * MBPS, server="nginx", test_case=case.name)]
    results = result_set([*found, *others], servers=("picoquic", "nginx"), test_cases=cases, repetitions=1)
    ours = (
        f"{rates[0] * 5}, {rates[1] * 5} and {rates[2] * 5} % over terrestrial, sat and satloss for the 1 server and 1 "
        "client that the paper also measured"
    )
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
    told = {
        claim: compared(results, claim)
        for claim in (
            "aioquic performs well as a client", "aioquic does not perform well as a server",
            "ngtcp2 performs well as a server", "ngtcp2 does not perform well as a client",
        )
    }  # fmt: skip
    assert list(told.values()) == [
        ("100 % of the fastest client over sat", "agrees over sat"),
        ("25 % of the fastest server over sat", "agrees over sat"),
        ("100 % of the fastest server over sat", "agrees over sat"),
        ("95 % of the fastest client over sat", "differs over sat"),
    ]


def test_a_role_is_undecided_if_the_interval_includes_the_limit() -> None:
    """aioquic is at 95 % of the fastest server with each client, or at 95 % on average over clients that differ."""
    names, clients = ("aioquic", "quinn"), ("a", "b", "c", "d")

    def made(*shares: float) -> ResultSet:
        found = [
            run
            for client, share in zip(clients, shares, strict=True)
            for server, rate in (("aioquic", 10 * share), ("quinn", 10))
            for run in runs(rate * MBPS, server=server, client=client)
        ]
        return result_set(found, servers=names, clients=clients, repetitions=1)

    claim = "aioquic does not perform well as a server"
    assert compared(made(0.95, 0.95, 0.95, 0.95), claim) == ("95 % of the fastest server over sat", "differs over sat")
    assert compared(made(0.65, 1, 1, 1), claim)[1] == "undecided over sat"
    assert compared(made(0.65, 0.5, 0.6, 0.55), claim)[1] == "agrees over sat"


def test_both_ends_matter_unless_the_server_has_most_of_the_variance() -> None:
    names = [f"i{number}" for number in range(8)]
    spread = {name: 2.0**number for number, name in enumerate(names)}
    even = {name: 1 + 0.01 * number for number, name in enumerate(names)}
    assert (
        compared(crossed(spread, even), "Both the server")[1]
        == "partly; over sat, goodput depends mostly on the server"
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
        (
            {"picoquic": 7, "quiche": 1, "aioquic": 0.2},
            "agrees, but the mean of no server with CUBIC exceeds it either",
        ),
        ({"picoquic": 7, "quiche": 3, "aioquic": 2.2}, "differs"),
    ],
)
def test_which_servers_exceed_the_threshold(rates: dict[str, float], told: str) -> None:
    found = [run for name, rate in rates.items() for run in runs(rate * MBPS, server=name, test_case="satloss")]
    results = result_set(found, servers=tuple(rates), test_cases=(SATLOSS,), repetitions=1)
    results = with_controls(results, picoquic="bbr", quiche="cubic", aioquic="reno")
    assert compared(results, "Only servers with CUBIC or BBR exceed an efficiency of 10 % over satloss")[1] == told


def with_rates(*rates: float) -> ResultSet:
    """Servers with BBR and CUBIC over satloss, Mbit/s."""
    names = ("picoquic", "quiche", "quinn")
    found = [
        run
        for name, rate in zip(names, rates, strict=True)
        for run in runs(rate * MBPS, server=name, test_case="satloss")
    ]
    results = result_set(found, servers=names, test_cases=(SATLOSS,), repetitions=1)
    return with_controls(results, picoquic="bbr", quiche="cubic", quinn="cubic")


def test_both_queues_are_compared_with_the_claim() -> None:
    def row(longer: ResultSet) -> list[str]:
        [found] = [row for row in claims(with_rates(7, 1, 1), longer).rows if "Only servers with" in str(row[1])]
        return list(map(str, found[2:]))

    first = (
        "Servers whose mean exceeds it, with their default congestion control: 1 of 1 with BBR and 0 of 2 with CUBIC"
    )
    other = f"{first.replace('0 of 2', '1 of 2')} (quiche)"
    verdict = "agrees, but the mean of no server with CUBIC exceeds it either"
    assert row(with_rates(7, 3, 1)) == [
        first, other, f"25 packets: {verdict}. Queues of the paper's simulator: agrees"
    ]  # fmt: skip
    assert row(with_rates(7, 1, 1)) == [first, first, verdict]


def test_all_seeds_of_the_transfer_of_figure_7_count() -> None:
    found = [
        replace(run, measurement=Measurement({"goodput": MBPS, "completion_time": time}))
        for run, time in zip(runs(MBPS, MBPS, client="picoquic", test_case="satloss"), (14.0, 10.5), strict=True)
    ]
    results = result_set(found, clients=("picoquic",), test_cases=(SATLOSS,), repetitions=2)
    told = compared(results, "slightly more than 7 s")
    assert told == ("10.5 to 14.0 s (2 seeds)", "differs: 1.5 to 2.0 times as long")


def test_claims_about_what_was_not_measured_are_left_out() -> None:
    assert claims(result_set()).rows == ()
