"""Tests of significance: exact values worked out by hand, and by trying every arrangement."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest

from quicsat.statistics.significance import (
    alike,
    allot,
    difference,
    holm,
    mann_whitney,
    matched,
    permutation,
    proportions,
    ranks,
    smallest_of_proportions,
    smallest_p,
    spread,
    stratified,
    which_can_tell,
)


def by_trying(first: list[float], second: list[float]) -> float:
    """The permutation test as its definition says."""
    pooled = first + second
    observed = abs(sum(first) / len(first) - sum(second) / len(second))
    hits = total = 0
    for chosen in combinations(range(len(pooled)), len(first)):
        mine = [pooled[i] for i in chosen]
        rest = [pooled[i] for i in range(len(pooled)) if i not in chosen]
        total += 1
        hits += abs(sum(mine) / len(mine) - sum(rest) / len(rest)) >= observed - 1e-12
    return hits / total


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (3, 3), (4, 2), (5, 5), (1, 6)])
def test_permutation_counts_every_arrangement(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(sizes))
    for _ in range(20):
        first, second = (list(map(float, rng.integers(0, 8, size))) for size in sizes)
        assert permutation(first, second) == pytest.approx(by_trying(first, second))


def test_ten_against_ten_that_do_not_overlap_reach_the_smallest_p() -> None:
    first, second = list(range(10)), list(range(100, 110))
    assert permutation(first, second) == smallest_p(10, 10) == 2 / math.comb(20, 10)


def test_same_numbers_say_nothing() -> None:
    assert difference([5.0] * 10, [5.0] * 10) == 1.0
    assert difference([], [1.0]) == 1.0


def test_p_values_of_the_exact_test_are_uniform_or_above() -> None:
    rng = np.random.default_rng(3)
    found = [difference(list(rng.normal(size=6)), list(rng.normal(size=6))) for _ in range(400)]
    assert np.mean(np.array(found) <= 0.05) <= 0.08


def test_many_numbers_are_ranked() -> None:
    first, second = [float(n) for n in range(0, 40, 2)], [float(n) for n in range(1, 41, 2)]
    assert difference(first, second) == mann_whitney(first, second) == pytest.approx(0.7972, abs=0.0005)
    assert difference(first, [n + 100 for n in second]) < 1e-6


def test_mann_whitney_knows_ties() -> None:
    assert mann_whitney([1.0] * 20, [1.0] * 20) == 1.0
    assert list(ranks([3.0, 1.0, 3.0, 2.0])) == [3.5, 1.0, 3.5, 2.0]


def test_proportions_are_fishers() -> None:
    assert proportions(3, 4, 1, 4) == pytest.approx(34 / 70)  # the lady tasting tea, two-sided
    assert proportions(10, 10, 0, 10) == pytest.approx(2 / math.comb(20, 10))
    assert proportions(0, 0, 5, 10) == 1.0
    assert proportions(10, 10, 10, 10) == 1.0


def test_holm_multiplies_the_smallest_by_all_and_never_falls() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_one_stratum_is_the_permutation_test() -> None:
    first, second = [1.0, 1.2, 0.9, 1.1], [1.3, 1.25, 1.4, 1.15]
    change, p = stratified([first], [second])
    assert change == pytest.approx((np.mean(second) - np.mean(first)) / np.mean(first + second))
    assert p == pytest.approx(permutation(first, second), abs=0.01)


def test_strata_together_show_what_none_shows_alone() -> None:
    rng = np.random.default_rng(5)
    levels = [1e6 * (1 + i) for i in range(16)]
    first = [list(level * rng.normal(1, 0.02, 3)) for level in levels]
    second = [list(level * rng.normal(1.03, 0.02, 3)) for level in levels]
    assert min(difference(one, other) for one, other in zip(first, second, strict=True)) >= smallest_p(3, 3)
    change, p = stratified(first, second)
    assert change == pytest.approx(0.03, abs=0.01)
    assert p < 0.001


def test_strata_that_do_not_differ_are_seldom_said_to() -> None:
    rng = np.random.default_rng(6)
    draws = [[list(rng.normal(5, 1, 3)) for _ in range(8)] for _ in range(80)]
    found = [stratified(one, other)[1] for one, other in zip(draws[::2], draws[1::2], strict=True)]
    assert sum(p < 0.05 for p in found) <= 5


def test_strata_without_numbers_say_nothing() -> None:
    assert stratified([], []) == (0.0, 1.0)
    assert stratified([[], [0.0, 0.0]], [[1.0], [0.0]]) == (0.0, 1.0)
    assert stratified([[1.0, 1.0]], [[1.0, 1.0]]) == (0.0, 1.0)


def test_a_wider_spread_about_the_same_mean_is_found() -> None:
    rng = np.random.default_rng(2)
    narrow, same, wide = (rng.normal(10, width, (16, 5)).tolist() for width in (0.1, 0.1, 0.4))
    change, p = spread(narrow, wide)
    assert change > 0.5
    assert p < 0.001
    assert stratified(narrow, wide)[1] > 0.05
    assert spread(narrow, same)[1] > 0.05
    assert spread([[]], [[]]) == (0.0, 1.0)


def test_means_are_close_or_not_whatever_chance_does() -> None:
    assert alike([[1.0, 1.0], [1.0], []], [[1.0, 1.0], [2.0], [1.0]], 0.02) == (1, 1, 1)
    assert alike([[100.0]], [[102.0]], 0.02)[0] == 1
    assert alike([[100.0]], [[102.1]], 0.02)[0] == 0


def test_numbers_that_are_spread_wide_seldom_have_means_that_are_close() -> None:
    rng = np.random.default_rng(7)
    first, second = ([list(rng.normal(1, 0.1, 3)) for _ in range(16)] for _ in range(2))
    close, low, high = alike(first, second, 0.02)
    assert low <= close <= high < 10


def test_a_shift_of_all_leaves_fewer_means_close_than_chance_would() -> None:
    rng = np.random.default_rng(8)
    first = [list(rng.normal(1, 0.001, 3)) for _ in range(16)]
    second = [list(rng.normal(1.05, 0.001, 3)) for _ in range(16)]
    close, low, _ = alike(first, second, 0.02)
    assert close == 0 < low


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_signs_of_differences_are_all_tried(size: int) -> None:
    rng = np.random.default_rng(size)
    one, other = rng.integers(0, 6, (2, size)).astype(float)
    differences = other - one
    sums = [abs(float(np.dot(signs, differences))) for signs in product((1, -1), repeat=size)]
    expected = np.mean([each >= abs(float(differences.sum())) - 1e-12 for each in sums])
    assert matched(list(one), list(other)) == pytest.approx(expected)
    assert matched([], []) == 1.0


def test_tests_that_can_never_be_significant_together_are_not_made() -> None:
    assert which_can_tell([0.01, 0.001, 0.5], 0.025) == [True, True, False]
    assert which_can_tell([0.01] * 3 + [0.001], 0.025) == [False, False, False, True]
    assert which_can_tell([0.02] * 3, 0.025) == [False] * 3
    assert which_can_tell([], 0.025) == []


def test_smallest_p_of_shares_keeps_the_successes() -> None:
    assert smallest_of_proportions(10, 10, 0, 10) == proportions(10, 10, 0, 10)
    assert smallest_of_proportions(1, 1, 0, 1) == 1.0
    assert smallest_of_proportions(5, 10, 5, 10) == proportions(10, 10, 0, 10)


def test_seeds_that_all_strata_share_are_arranged_as_a_whole() -> None:
    rng = np.random.default_rng(3)
    alarms = {False: 0, True: 0}
    for _ in range(30):
        seeds = rng.normal(1, 0.2, (2, 6))
        one, other = ((rng.normal(1, 0.02, (16, 6)) * seeds[group]).tolist() for group in (0, 1))
        for whole in alarms:
            alarms[whole] += stratified(one, other, whole=whole)[1] <= 0.05
    assert alarms[True] <= 4
    assert alarms[False] >= 10  # what it would be if strata were independent


def test_a_shift_of_whole_repetitions_is_found() -> None:
    rng = np.random.default_rng(3)
    one, other = ((level * rng.normal(1, 0.02, (16, 6))).tolist() for level in (1.0, 1.05))
    assert stratified(one, other, whole=True)[1] < 0.01


@pytest.mark.parametrize(
    ("smallest", "expected"),
    [
        ([[0.001], [0.001, 0.002]], [[0.02], [0.015, 0.015]]),
        ([[0.04], [0.001]], [[0.0], [0.05]]),
        ([[], [0.04, 1.0]], [[], [0.05, 0.0]]),
        ([[1.0], [0.04]], [[0.0], [0.05]]),
        ([[0.06], [0.06]], [[0.0], [0.0]]),
    ],
    ids=["both can", "one cannot with its share", "one has no tests", "one never can", "neither ever can"],
)
def test_what_a_family_cannot_use_of_the_level_goes_to_the_others(
    smallest: list[list[float]], expected: list[list[float]]
) -> None:
    assert allot(smallest, (0.4, 0.6), 0.05) == [pytest.approx(levels) for levels in expected]
