"""Virtual beside real time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from interop.model.implementation import CpuCost
from interop.model.results import ResultSet
from interop.model.units import MBPS
from scripts.paper.real_time import agreement, agreement_in_words, both_clocks, by_pair, real_time, repetitions_of
from tests.results_builder import SAT, SATLOSS, result_set, run_result, runs, virtual

CLIENTS = ("a", "b", "c", "d")
REAL = result_set(
    [
        *runs(4 * MBPS, 6 * MBPS, client="a"),
        *runs(4 * MBPS, 4 * MBPS, client="b"),
        *runs(4 * MBPS, 4 * MBPS, client="c"),
        run_result(None, client="d"),
    ],
    clients=CLIENTS,
)
VIRTUAL = virtual(
    result_set(
        [run for client, rate in zip(CLIENTS, (6, 4.1, 5, 3), strict=True) for run in runs(rate * MBPS, client=client)],
        clients=CLIENTS,
    )
)


def test_a_pair_agrees_within_the_range_or_close_to_the_mean() -> None:
    found = {each.client: each for each in both_clocks(VIRTUAL, REAL, SAT)}
    assert {client: each.agrees for client, each in found.items()} == {"a": True, "b": True, "c": False}


def test_missing_repetitions_are_told() -> None:
    assert repetitions_of(REAL, SAT) == "4 pairs with 2 repetitions over `sat` (7 of 8 runs so far)"
    whole = result_set(runs(4 * MBPS, 5 * MBPS), clients=("quiche",))
    assert repetitions_of(whole, SAT) == "1 pair with 2 repetitions over `sat`"


def test_numbers_of_the_tables() -> None:
    [row] = agreement(VIRTUAL, REAL).rows
    assert row[:6] == ("sat", "default", 3, 2, 1, 1)
    assert row[6] == pytest.approx((6 / 5 * 4.1 / 4 * 5 / 4) ** (1 / 3))
    assert row[9:] == pytest.approx((4.1 / 4, 5 / 4))
    ratios = "is 1.154 over `sat` (1.02 to 1.25 for individual pairs)."
    assert agreement_in_words(VIRTUAL, REAL).endswith(ratios)
    assert agreement_in_words(VIRTUAL, result_set()) == ""
    assert by_pair(VIRTUAL, REAL, SAT).rows == (("picoquic", "1.20", "1.02", "1.25 *", ""),)


def test_servers_with_a_measured_cost_have_a_row_of_their_own() -> None:
    def made(rates: Mapping[str, float]) -> ResultSet:
        found = [run for server, rate in rates.items() for run in runs(rate * MBPS, server=server)]
        return result_set(found, servers=tuple(rates))

    theirs, mine = made({"a": 1, "b": 1}), virtual(made({"a": 1, "b": 1.05}))
    first, *rest = mine.manifest.implementations
    costly = replace(first, cpu_cost=CpuCost(1e-5))
    mine = replace(mine, manifest=replace(mine.manifest, implementations=(costly, *rest)))
    found = [row[:6] for row in agreement(mine, theirs).rows]
    assert found == [("sat", "measured", 1, 1, 1, 1), ("sat", "default", 1, 0, 0, 1)]
    assert "for 1 of 2 pairs over `sat`." in agreement_in_words(mine, theirs)


def over_losses(rates: Mapping[int, float]) -> ResultSet:
    """Runs of a pair over satloss, a rate (Mbit/s) for each seed."""
    made = runs(*(rate * MBPS for rate in rates.values()), test_case="satloss")
    seeded = [
        replace(run, evidence=replace(run.evidence, seed=seed)) for run, seed in zip(made, rates, strict=True)
    ]  # fmt: skip
    return result_set(seeded, test_cases=(SATLOSS,))


def test_over_random_loss_only_the_same_sequences_of_losses_are_compared() -> None:
    mine, theirs = over_losses({1: 4, 2: 9, 3: 8}), over_losses({1: 5, 7: 100, 3: 8})
    [both] = both_clocks(mine, theirs, SATLOSS)
    assert (both.virtual, both.real) == (6 * MBPS, (5 * MBPS, 8 * MBPS))
    assert "repetition numbers 1 and 3." in "\n".join(real_time(mine, theirs))
    assert "the same seed" not in "\n".join(real_time(VIRTUAL, REAL))


def test_without_a_common_sequence_of_losses_nothing_is_compared() -> None:
    mine, theirs = over_losses({1: 4}), over_losses({2: 5})
    assert both_clocks(mine, theirs, SATLOSS) == []
    assert "No run in real time has such a seed." in "\n".join(real_time(mine, theirs))
