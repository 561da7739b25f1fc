"""Similar delays: the spread of each pair over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from interop.model.results import ResultSet
from interop.model.units import MBPS
from scripts.paper.delays import by_server, delays, deviations
from tests.results_builder import SAT, result_set, runs

CASES = tuple(
    replace(
        SAT,
        name=f"paper-similar-delays@delay={delay:g}ms",
        abbreviation=f"PJ{number}",
        link=replace(SAT.emulated, forward_delay=delay / 1000, return_delay=delay / 1000),
    )
    for number, delay in enumerate((297, 300, 303))
)
SERVERS, CLIENTS = ("picoquic", "quiche"), ("x", "y", "z")


def campaign(rates: Mapping[tuple[str, str], Sequence[float | None]]) -> ResultSet:
    """Goodput of pairs over three delays, Mbit/s; None if a run did not succeed."""
    found = [
        run
        for (server, client), mine in rates.items()
        for case, rate in zip(CASES, mine, strict=True)
        for run in runs(None if rate is None else rate * MBPS, server=server, client=client, test_case=case.name)
    ]
    return result_set(found, servers=SERVERS, clients=CLIENTS, test_cases=CASES, repetitions=1)


RATES = {
    ("picoquic", "x"): (9, 10, 11), ("picoquic", "y"): (8, 10, 12), ("picoquic", "z"): (6, 10, 14),
    ("quiche", "x"): (5, 5, 5), ("quiche", "y"): (1, 2, None),
}  # fmt: skip


def test_a_pair_counts_if_it_succeeded_with_all_delays() -> None:
    found = deviations(campaign(RATES), CASES)
    assert found == pytest.approx(
        {("picoquic", "x"): 0.1, ("picoquic", "y"): 0.2, ("picoquic", "z"): 0.4, ("quiche", "x"): 0.0}
    )
    first, second = by_server(campaign(RATES), found).rows
    assert list(first) == ["picoquic", 3, pytest.approx(0.2), pytest.approx(0.4), "z"]
    assert second == ("quiche", 1, 0.0, 0.0, "x")


def test_the_text_has_the_delays_and_the_spread_of_all_pairs() -> None:
    """The 90th percentile of 0, 10, 20 and 40 %: at seven tenths of the way from the third to the fourth."""
    told = "\n".join(delays(campaign(RATES)))
    assert "3 clients over `sat` with 3 one-way delays: 297, 300 and 303 ms, that is, 300 ms ± 1 %." in told
    assert "The links do not differ otherwise, and the seeds are the same." in told
    assert (
        "median of this spread is 15.0 %, the 90th percentile is 34.0 %, and the maximum is 40.0 % (picoquic with z)."
    ) in told


def test_one_delay_has_no_section() -> None:
    assert list(delays(result_set(runs(MBPS)))) == []


def test_other_seeds_are_told() -> None:
    results = campaign(RATES)
    first, *rest = results.results
    other = replace(first, evidence=replace(first.evidence, seed=99))
    assert "and the seeds differ." in "\n".join(delays(replace(results, results=(other, *rest))))
