"""Similar delays: the spread of each pair over them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from interop.model.results import ResultSet
from interop.model.units import MBPS
from scripts.paper.delays import by_server, delays, deviations
from scripts.paper.explicit_defaults import explicit_defaults, in_words
from tests.results_builder import SAT, result_set, runs
from tests.scripts.paper.test_algorithms import with_controls

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


def test_the_spread_of_the_inverse_of_the_delay() -> None:
    """Of 1 / 297, 1 / 300 and 1 / 303."""
    spread = statistics.stdev((300 / 297, 1, 300 / 303)) / statistics.fmean((300 / 297, 1, 300 / 303))
    told = "\n".join(delays(campaign(RATES)))
    assert f"inversely proportional to the round-trip time, its spread would be {100 * spread:.1f} %." in told


def test_runs_that_select_the_default_are_compared() -> None:
    """picoquic's default is BBR; runs with another variant, or with another seed, do not count."""
    own = with_controls(result_set([*runs(4 * MBPS, client="x"), *runs(2 * MBPS, client="y"),
                                    *runs(3 * MBPS, client="z")], clients=CLIENTS), picoquic="bbr")  # fmt: skip
    first = runs(4 * MBPS, server="picoquic:bbr", client="x")
    second = runs(3 * MBPS, server="picoquic:bbr", client="y")
    third = [replace(run, evidence=replace(run.evidence, seed=99)) for run in runs(MBPS, server="picoquic:bbr",
                                                                                  client="z")]  # fmt: skip
    others = runs(9 * MBPS, server="picoquic:cubic", client="x")
    servers = ("picoquic:bbr", "picoquic:cubic")
    variants = result_set([*first, *second, *third, *others], servers=servers, clients=CLIENTS)
    found = explicit_defaults(own, variants, SAT)
    assert {(each.client, round(each.change, 9)) for each in found} == {("x", 0), ("y", 0.5)}
    [told, _] = in_words(own, variants, SAT)
    assert told.endswith(
        "Over `sat`, goodput is exactly the same for 1 of 2 pairs. It differs most for picoquic with y (2.00 and 3.00 "
        "Mbit/s)."
    )
    assert told in "\n".join(delays(campaign(RATES), own, variants))
    assert list(in_words(own, result_set(others, servers=servers), SAT)) == []


def test_one_delay_has_no_section() -> None:
    assert list(delays(result_set(runs(MBPS)))) == []


def test_other_seeds_are_told() -> None:
    results = campaign(RATES)
    first, *rest = results.results
    other = replace(first, evidence=replace(first.evidence, seed=99))
    assert "and the seeds differ." in "\n".join(delays(replace(results, results=(other, *rest))))
