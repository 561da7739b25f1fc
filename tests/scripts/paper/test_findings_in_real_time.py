"""Findings with both clocks: repetitions, outcomes and shares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from interop.model.outcomes import Outcome
from interop.model.results import ResultSet
from interop.model.units import MBPS
from scripts.paper.findings_in_real_time import (
    between_repetitions,
    findings_in_real_time,
    left_out,
    outcomes_with_both_clocks,
    shares_with_both_clocks,
)
from tests.results_builder import SAT, SATLOSS, result_set, run_result, runs


def test_each_repetition_takes_the_place_of_virtual_time() -> None:
    """Of 4, 5 and 6 Mbit/s, only 5 is within the range of the others; two repetitions are too few."""
    results = result_set([*runs(4 * MBPS, 5 * MBPS, 6 * MBPS), *runs(1 * MBPS, 9 * MBPS, client="x")])
    ratios = [4 / 5.5, 5 / 5, 6 / 4.5]
    assert [each.ratio for each in left_out(results, SAT)] == pytest.approx(ratios)
    error = 100 * math.sqrt(sum(math.log(ratio) ** 2 for ratio in ratios) / 3)
    assert f"of its pair, 1 of the 3 repetitions over `sat` (RMS {error:.1f} %) agree." in between_repetitions(results)


def test_repetitions_with_different_losses_are_not_compared() -> None:
    results = result_set(runs(MBPS, MBPS, MBPS, test_case="satloss"), test_cases=(SATLOSS,))
    assert left_out(results, SATLOSS) == []
    assert between_repetitions(results) == ""


def with_seeds(results: ResultSet, seeds: Mapping[int, int]) -> ResultSet:
    """The results, with the seed of each repetition."""
    return replace(
        results,
        results=tuple(
            replace(run, evidence=replace(run.evidence, seed=seeds[run.repetition])) for run in results.results
        ),
    )


def test_outcomes_are_compared_with_the_same_losses() -> None:
    """Repetition 2 has other losses; an invalid run does not count."""
    mine = with_seeds(result_set(runs(MBPS, None, test_case="satloss"), test_cases=(SATLOSS,)), {1: 10, 2: 20})
    failed = run_result(None, test_case="satloss", outcome=Outcome.FAILED)
    invalid = run_result(None, test_case="satloss", outcome=Outcome.ERROR)
    theirs = with_seeds(result_set([failed], test_cases=(SATLOSS,)), {1: 10})
    assert outcomes_with_both_clocks(mine, theirs).startswith(
        "The outcome is the same with both clocks in 0 of the 1 run that can be compared. It differs for picoquic "
        "with quiche over `satloss` (failed in real time, succeeded in virtual time)."
    )
    assert outcomes_with_both_clocks(mine, with_seeds(theirs, {1: 99})) == ""
    assert outcomes_with_both_clocks(mine, with_seeds(result_set([invalid], test_cases=(SATLOSS,)), {1: 10})) == ""
    assert "in all 2 runs that can be compared. Virtual time" in outcomes_with_both_clocks(mine, mine)
    good = replace(mine, results=mine.results[:1])
    assert "can be compared. All of these runs succeeded, so they do not" in outcomes_with_both_clocks(good, good)


def of_rates(rates: Mapping[str, Mapping[str, float]]) -> ResultSet:
    """One run of each server (outer key) with each client."""
    found = [
        run
        for server, clients in rates.items()
        for client, rate in clients.items()
        for run in runs(rate * MBPS, server=server, client=client)
    ]
    return result_set(found, servers=tuple(rates), clients=("x", "y", "z"))


def test_shares_and_order_of_the_same_pairs() -> None:
    """A server with one client in real time, and a pair that is missing there, are left out."""
    mine = of_rates({
        "a": {"x": 1, "y": 1.1, "z": 90}, "b": {"x": 2, "y": 2.3}, "c": {"x": 4, "y": 4.5}, "d": {"x": 50, "y": 60}
    })  # fmt: skip
    theirs = of_rates({
        "a": {"x": 1, "y": 1.1}, "b": {"x": 8, "y": 8.3}, "c": {"x": 4, "y": 4.5}, "d": {"x": 50}
    })  # fmt: skip
    [row] = shares_with_both_clocks(mine, theirs).rows
    assert row[:3] == ("sat", 3, 2)
    assert row[5] == pytest.approx(0.5)
    assert [str(share).partition(" (")[0] for share in row[3:5]] == ["99 %", "100 %"]
    assert "Influence of the server with both clocks" in "\n".join(findings_in_real_time(mine, theirs))


def test_nothing_in_common() -> None:
    assert list(findings_in_real_time(result_set(), result_set(runs(MBPS)))) == []
