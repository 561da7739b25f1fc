"""Measurements of disturbances: what packets wait for each other."""

import random
from statistics import fmean

import pytest

from bench.disturbances import leaving, red_marks


def test_packets_that_come_at_once_wait_for_each_other() -> None:
    sent = {1: 10.0, 2: 20.0, 3: 20.0, 4: 20.0, 5: 21.0, 6: 30.0}
    assert leaving(sent, 0.5) == pytest.approx({1: 10.5, 2: 20.5, 3: 21.0, 4: 21.5, 5: 22.0, 6: 30.5})


def test_the_order_of_arrival_counts() -> None:
    assert leaving({2: 1.0, 1: 1.25}, 0.5) == pytest.approx({2: 1.5, 1: 2.0})


def test_expected_marks_of_red_are_the_mean_of_what_it_marks() -> None:
    """A queue between 140 and 175 packets, for which 2/3 of the probability is up to 4 % wrong."""
    lengths = [*range(150), *(140 + number % 35 for number in range(5000))]
    drawn = [_marks_of_red(lengths, random.Random(seed)) for seed in range(100)]
    expected = red_marks(lengths, minimum=100, maximum=200, probability=0.2, weight=0.02)
    assert fmean(drawn) == pytest.approx(expected, rel=0.01)


def test_the_mean_distance_between_marks_is_a_mean_of_whole_numbers() -> None:
    """Probability 0.126 (average 163): none within 7 packets, then the 8th to the 15th with equal probability."""
    expected = red_marks([163] * 100_000, minimum=100, maximum=200, probability=0.2, weight=1.0)
    assert expected / 100_000 == pytest.approx(1 / 11.45, rel=0.002)


def test_red_marks_nothing_below_its_minimum() -> None:
    assert red_marks([99] * 1000, minimum=100, maximum=200, probability=0.2, weight=0.02) == 0.0


def _marks_of_red(lengths: list[int], random_numbers: random.Random) -> int:
    average, since, marks = 0.0, -1, 0
    for length in lengths:
        average += 0.02 * (length - average)
        if average < 100:
            since = -1
            continue
        if since < 0:
            since = 1
            continue
        since += 1
        probability = 0.2 * (average - 100) / 100
        if since * probability < 1:
            continue
        if since * probability >= 2 or random_numbers.random() < probability / (2 - since * probability):
            marks, since = marks + 1, 0
    return marks
