"""Tests of significance: exact values worked out by hand, and by trying every arrangement."""

import math
from itertools import combinations, product

import numpy as np
import pytest

from quicsat.statistics.significance import (
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


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_signs_of_differences_are_all_tried(size: int) -> None:
    rng = np.random.default_rng(size)
    one, other = rng.integers(0, 6, (2, size)).astype(float)
    differences = other - one
    sums = [abs(float(np.dot(signs, differences))) for signs in product((1, -1), repeat=size)]
    expected = np.mean([each >= abs(float(differences.sum())) - 1e-12 for each in sums])
    assert matched(list(one), list(other)) == pytest.approx(expected)
    assert matched([], []) == 1.0


def test_signs_of_many_differences_are_counted() -> None:
    levels = [0.0] * 30 + [0.22] * 14 + [-0.22] * 4  # 18 coins
    assert matched([0.0] * 48, levels) == pytest.approx(2 * sum(math.comb(18, k) for k in range(14, 19)) / 2**18)
    rng = np.random.default_rng(1)
    for size in (33, 200, 600):
        differences = rng.normal(0.15, 1, size)
        signs = rng.choice([-1.0, 1.0], (20_000, size))
        share = float(np.mean(np.abs(signs @ differences) >= abs(differences.sum())))
        found = matched([0.0] * size, list(differences))
        assert found == pytest.approx(share, abs=4 * math.sqrt(share / 20_000))
        assert matched([0.0] * size, list(rng.permutation(differences))) == pytest.approx(found)
    assert matched([0.0] * 48, [0.0] * 48) == matched([0.0] * 48, [-1e-9, 1e-9] * 24) == 1.0


def test_tests_that_can_never_be_significant_together_are_not_made() -> None:
    assert which_can_tell([0.01, 0.001, 0.5], 0.025) == [True, True, False]
    assert which_can_tell([0.01] * 3 + [0.001], 0.025) == [False, False, False, True]
    assert which_can_tell([0.02] * 3, 0.025) == [False] * 3
    assert which_can_tell([], 0.025) == []


def test_smallest_p_of_shares_keeps_the_successes() -> None:
    assert smallest_of_proportions(10, 10, 0, 10) == proportions(10, 10, 0, 10)
    assert smallest_of_proportions(1, 1, 0, 1) == 1.0
    assert smallest_of_proportions(5, 10, 5, 10) == proportions(10, 10, 0, 10)


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
