"""What the bench of variants makes of what servers sent."""

from __future__ import annotations

import numpy as np
import pytest

from bench.variants import distance, effects


def test_distance_is_the_mean_difference_of_what_was_sent() -> None:
    assert distance(np.array([0.0, 50, 100]), np.array([0.0, 50, 100])) == 0
    assert distance(np.array([0.0, 100, 100, 100]), np.array([0.0, 50, 100, 100])) == pytest.approx(0.125)
    assert distance(np.array([100.0]), np.array([0.0, 0, 100])) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("other", "shown"),
    [((1.0, 1.0), False), ((1.01, 1.02), False), ((2.0, 2.05), True), ((2.0, 4.0), False)],
)
def test_an_effect_is_what_chance_does_not_explain(other: tuple[float, float], shown: bool) -> None:
    def curve(seconds: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.minimum(np.arange(0, 10, 0.05) / seconds, 1) * 5e6

    runs = {"a:one": [curve(1.0), curve(1.01)], "a:two": [curve(each) for each in other], "a": [curve(1.0)] * 2}
    one, two, plain = effects(runs)
    assert (one.shown, two.shown) == (shown, shown)
    assert (one.nearest, plain.nearest, plain.shown) == ("a:two", "a:one", False)
    assert effects({"a:one": [curve(1), curve(1)], "a": [curve(1), curve(1)]})[0].nearest == "a:one"
