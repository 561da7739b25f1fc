"""Confidence intervals: known values, when there is none, and how often they hold the truth."""

import math
from dataclasses import replace

import numpy as np
import pytest

from bench.coverage import SHAPES, changes, extremes, marginal, repeated, shares
from quicsat.analysis.metrics import METRICS
from quicsat.site.pages import ends
from quicsat.statistics.intervals import Mean, additive, around, of_repetitions, over_partners, quantile

GOODPUT = next(each for each in METRICS if each.name == "goodput")


def test_interval_of_known_numbers() -> None:
    # without skewness, Student's t: 7 ± 2.1788 · 3.894440 / √13; and the same of logarithms
    found = of_repetitions([*range(13)])
    assert (found.low, found.high) == pytest.approx((6 - 2.353327, 6 + 2.353327), abs=1e-4)
    assert not found.geometric
    found = of_repetitions([2.0**number for number in range(13)])
    assert found.low is not None and found.high is not None
    assert (found.value, math.log2(found.low), math.log2(found.high)) == pytest.approx(
        (64, 3.646673, 8.353327), abs=1e-4
    )


def test_interval_of_a_difference_of_known_numbers() -> None:
    # Welch's t: variances of the means 1.16667 and 4.66667, 17.6 degrees of freedom, so 2.100922 · √5.83333
    assert around([*range(13)], [-2.0 * number for number in range(13)]) == pytest.approx((-5.074205, 5.074205))
    low, high = around([*[1.0] * 12, 0.0], [0.0] * 13) or (0, 0)
    assert (low, high) == pytest.approx(around([*[1.0] * 12, 0.0]))
    assert -low > high
    assert around([1.0] * 13, [2.0] * 13) is around([*range(13)], [*range(12)]) is None


def test_few_repetitions_have_a_range() -> None:
    found = of_repetitions([1, 2, 3, 4, 5])
    assert (found.low, found.ends, found.why) == (None, (1, 5), "n = 5")
    assert ends(GOODPUT, replace(found, least=1e6, greatest=5e6)) == "range of n = 5: 1.00 Mbit/s to 5.00 Mbit/s"


def test_skewed_numbers_have_a_longer_end_on_the_side_of_the_few() -> None:
    found = of_repetitions([*[10.0] * 11, *[10.1] * 5, *[7.0] * 4])
    assert found is not None and found.low is not None and found.high is not None
    assert found.value - found.low > found.high - found.value


@pytest.mark.parametrize("numbers", [[1.6], [1.6, 1.6, 1.6], [0.1 + 0.2, 0.3]])
def test_without_spread_there_is_no_interval(numbers: list[float]) -> None:
    one = of_repetitions(numbers)
    assert (one.low, one.high) == (None, None)
    many = over_partners([{1: number} for number in numbers])
    assert (many.low, many.high) == (None, None)
    assert ends(GOODPUT, one) == f"no interval: {'n = 1' if len(numbers) == 1 else 'no spread'}"


def test_without_numbers_there_is_no_mean() -> None:
    assert of_repetitions([]) is None
    assert over_partners([{}, {}]) is None


def test_ends_that_round_to_the_same_number_are_shown_as_one() -> None:
    mean = Mean(1.6e6, 1_600_001.0, 1_600_002.0, geometric=True, count=3)
    assert ends(GOODPUT, mean) == "1.60 Mbit/s at both ends"
    assert ends(GOODPUT, Mean(1.6e6, 1.5e6, 1.7e6, geometric=True, count=3)) == "1.50 Mbit/s to 1.70 Mbit/s"


def test_quantiles_go_on_beyond_the_table() -> None:
    assert quantile(31) == pytest.approx(2.0395, abs=1e-3)
    assert quantile(1000) == pytest.approx(1.9623, abs=1e-3)


def test_seeds_that_cannot_be_told_from_runs_leave_no_interval() -> None:
    """With t over these partners 82 % of the intervals would hold the truth, if seeds have an effect."""
    shared = over_partners([{1: 1.0}, {1: 2.0}, {2: 3.0}, {3: 4.0}, {2: 5.0}])
    assert (shared.low, shared.high, shared.count) == (None, None, 5)
    for rows in ([{1: 1.0}, {2: 2.0}, {3: 3.0}], [{1: 1.0, 2: 2.0}, {1: 3.0}]):
        found = over_partners(rows)
        assert found.low is not None


def test_one_repetition_is_t_over_the_partners() -> None:
    found = over_partners([{1: 1.0}, {1: math.e}])
    assert found.low == pytest.approx(math.exp(0.5 - 12.706205 / 2))


@pytest.mark.parametrize("partners", [2, 3, 5, 14])
@pytest.mark.parametrize("repetitions", [3, 10])
@pytest.mark.parametrize(("seed", "spread"), [(0.0, 0.05), (0.0, 1.0), (0.3, 0.05), (0.3, 0.35)])
def test_intervals_over_partners_hold_the_truth(partners: int, repetitions: int, seed: float, spread: float) -> None:
    """93 to 97 %, and three standard errors of 1,000 trials."""
    assert 0.906 <= marginal(partners, repetitions, seed, spread, 1000) <= 0.987


@pytest.mark.parametrize(("partners", "repetitions"), [(2, 3), (2, 10), (3, 3), (5, 3), (14, 10)])
def test_whatever_spreads_intervals_over_partners_hold_the_truth(partners: int, repetitions: int) -> None:
    """At 49 pairs of ratios of variances. With two partners up to 98 %: their spread has one degree of freedom."""
    least, greatest = extremes(partners, repetitions, 4000)
    assert least >= 0.925
    assert greatest <= (0.985 if partners == 2 else 0.975)


@pytest.mark.parametrize(
    ("partners", "repetitions", "seed", "spread"),
    [(2, 3, 0.0, 0.05), (2, 3, 0.3, 0.05), (3, 3, 0.0, 0.05), (5, 3, 0.0, 0.05)],
)
def test_few_partners_do_not_widen_intervals(partners: int, repetitions: int, seed: float, spread: float) -> None:
    """Generalized intervals (Weerahandi 1993) hold the truth in 98 to 99 % here."""
    assert marginal(partners, repetitions, seed, spread, 1500) <= 0.98


def test_intervals_over_partners_scale_with_the_numbers() -> None:
    rows = [{1: 1.0, 2: 1.5}, {1: 2.0, 2: 2.2}, {1: 4.0, 2: 5.0}]
    one, other = over_partners(rows), over_partners([{r: 100 * x for r, x in row.items()} for row in rows])
    assert one is not None and other is not None and one.low is not None and other.low is not None
    assert other.low == pytest.approx(100 * one.low)


@pytest.mark.parametrize("repetitions", [13, 16, 17, 18, 19, 20, 21, 22, 27, 30])
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_of_repetitions_hold_the_truth(repetitions: int, shape: str) -> None:
    assert 0.93 <= repeated(repetitions, shape, 4000) <= 0.975


@pytest.mark.parametrize("repetitions", [3, 5, 10])
@pytest.mark.parametrize("shape", ["normal", "two levels", "25 % apart, spread 5 %"])
def test_intervals_of_means_of_runs_hold_the_truth(repetitions: int, shape: str) -> None:
    assert 0.93 <= repeated(repetitions, shape, 4000, runs=12) <= 0.97
    assert repeated(repetitions, shape, 10, runs=11) == 0.0  # there is none


@pytest.mark.parametrize("sizes", [(13, 13), (16, 16), (18, 18), (25, 25)])
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("shape", ["two levels", "two levels, spread 2 %"])
def test_intervals_of_changes_hold_a_level_that_only_one_build_has(
    sizes: tuple[int, int], shape: str, *, paired: bool
) -> None:
    """95 % less and more 2 percentage points, and three standard errors of 1,000 trials."""
    assert 0.91 <= changes(sizes, shape, 1000, paired=paired, before=0.0) <= 0.99


def test_intervals_of_changes_hold_a_level_that_a_larger_base_does_not_have() -> None:
    """As with a placebo; one variance for both would hold 74 %."""
    assert changes((26, 13), "two levels", 1000, paired=False, before=0.0) >= 0.91


@pytest.mark.parametrize(("size", "repetitions", "seed"), [(2, 3, 0.3), (3, 3, 0.0), (5, 3, 0.3), (5, 10, 0.3)])
def test_intervals_of_shares_hold_the_truth(size: int, repetitions: int, seed: float) -> None:
    """95 % less three standard errors of 100 trials."""
    assert min(shares(size, repetitions, seed, 0.5, 100).values()) >= 0.885


def test_effects_of_rows_and_columns_are_those_of_least_squares() -> None:
    """Also if values are missing, and others come twice."""
    rng = np.random.default_rng(3)
    cells = [(row, column) for row in range(6) for column in range(4) for _ in range(rng.integers(0, 3))]
    cells += [(row, 0) for row in range(6)] + [(0, column) for column in range(4)]
    rows, columns = (list(each) for each in zip(*cells, strict=True))
    values = rng.normal(size=len(cells))
    design = np.hstack([np.eye(6)[rows], np.eye(4)[columns]])
    solution = np.linalg.lstsq(design, values, rcond=None)[0]
    by_column, by_row, residuals = additive(rows, columns, values)
    assert residuals == pytest.approx(values - design @ solution)
    assert by_column == pytest.approx(solution[6:] - solution[6:].mean())
    assert by_row == pytest.approx(solution[:6] + solution[6:].mean())


def test_rows_without_a_common_column_have_their_own_residuals() -> None:
    rows, columns = [0, 0, 1, 2, 2, 3], [0, 1, 1, 2, 3, 3]
    values = np.array([1.0, 2.0, 5.0, 3.0, 7.0, 4.0])
    assert additive(rows, columns, values)[2] == pytest.approx(np.zeros(6))
