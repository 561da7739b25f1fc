"""Implementation or algorithm: shares that were put in come out, and the interval of their difference holds it."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from paper.crossed import Cells, Crossed, decompose_crossed, with_several_algorithms

DESIGN = ("RC", "RC", "CB", "CB", "RC", "RCB", "RCB", "RC", "RCB", "CB")
"""Algorithms of each implementation, as in the stored variants."""
EFFECTS = {"one fast": (-0.3, 0.1, 0.1), "far apart": (-1.5, 0.0, 1.5), "apart": (-0.55, 0.0, 0.55)}


def made(
    seed: int, spread: tuple[float, float, float], effects: Sequence[float], design: Sequence[str] = DESIGN
) -> Cells:
    """Four clients; deviations of implementation, interaction and single runs, and the effect of each algorithm."""
    rng = np.random.default_rng(seed)
    found = {}
    for number, algorithms in enumerate(design):
        own = rng.normal(0, spread[0])
        for algorithm in algorithms:
            both = own + effects["RCB".index(algorithm)] + rng.normal(0, spread[1])
            for client in range(4):
                found[f"i{number}", algorithm, f"c{client}"] = float(both + rng.normal(0, spread[2]))
    return found


def known(cells: Cells) -> Crossed:
    found = decompose_crossed(cells)
    assert found is not None
    return found


def truth(spread: tuple[float, float, float], effects: Sequence[float]) -> tuple[float, float, float]:
    """Shares of implementation, algorithm and interaction; the three algorithms are all there are."""
    own, both, single = (each**2 for each in spread)
    algorithm = float(np.var(effects, ddof=1))
    whole = own + algorithm + both + single
    return own / whole, algorithm / whole, both / whole


def test_each_source_is_told_apart() -> None:
    """Over many draws, since a single one has its own variances."""
    spread, effects = (0.6, 0.4, 0.2), EFFECTS["apart"]
    found = [known(made(seed, spread, effects)).shares for seed in range(60)]
    mean = {source: float(np.mean([each[source] for each in found])) for source in found[0]}
    for source, share in zip(("implementation", "algorithm", "interaction"), truth(spread, effects), strict=True):
        assert mean[source] == pytest.approx(share, abs=0.06)
    assert all(sum(each.values()) == pytest.approx(1) for each in found)


def test_without_errors_the_effects_are_exact() -> None:
    """Implementations at 0 and 1, algorithms at -1 and 1, nothing else: variances of 0.3 and 2."""
    cells = {
        (f"i{number}", algorithm, client): float(number % 2) + step
        for number in range(6)
        for algorithm, step in (("R", -1.0), ("B", 1.0))
        for client in "xy"
    }
    found = known(cells)
    assert found.shares["implementation"] == pytest.approx(0.3 / 2.3)
    assert found.shares["algorithm"] == pytest.approx(2 / 2.3)
    assert found.difference.value == pytest.approx(-1.7 / 2.3)
    assert found.difference.without.keys() == {f"i{number}" for number in range(6)}


@pytest.mark.parametrize(
    ("spread", "effects"),
    [
        ((0.56, 0.26, 0.24), EFFECTS["one fast"]),
        ((0.0, 0.77, 0.19), EFFECTS["far apart"]),
        ((0.3, 0.3, 0.2), EFFECTS["far apart"]),
        ((0.55, 0.3, 0.2), EFFECTS["apart"]),
    ],
)
def test_the_interval_holds_the_difference_about_as_often_as_it_says(
    spread: tuple[float, float, float], effects: Sequence[float]
) -> None:
    own, algorithm, both = truth(spread, effects)
    held = [0, 0]
    for seed in range(200):
        found = known(made(seed, spread, effects))
        held[0] += found.difference.low <= own - algorithm <= found.difference.high
        held[1] += found.with_interaction.low <= own + both - algorithm <= found.with_interaction.high
    assert 0.88 * 200 <= held[0] <= 0.99 * 200
    assert held[1] >= 0.87 * 200


def test_of_equal_shares_none_is_called_the_larger_one() -> None:
    """More often than an interval of 95 % allows: in at most 20 of 200 draws, where 10 are expected."""
    spread, effects = (0.55, 0.2, 0.2), EFFECTS["apart"]
    assert truth(spread, effects)[0] == pytest.approx(truth(spread, effects)[1])
    found = [known(made(seed, spread, effects)).difference for seed in range(200)]
    assert sum(each.low > 0 or each.high < 0 for each in found) <= 20


def test_implementations_with_one_algorithm_are_left_out() -> None:
    cells = made(1, (0.5, 0.2, 0.1), EFFECTS["apart"], ("RC", "B", "CB"))
    assert {key[0] for key in with_several_algorithms(cells)} == {"i0", "i2"}


@pytest.mark.parametrize("design", [("RC", "CB"), ("RC", "RC", "B"), ("RC", "RC", "RB")])
def test_too_few_implementations_have_no_interval(design: Sequence[str]) -> None:
    """The last one: without the first implementation, each other one is needed to compare the algorithms."""
    cells = made(1, (0.5, 0.2, 0.1), EFFECTS["apart"], design)
    assert decompose_crossed(cells) is None


def test_equal_values_have_no_shares() -> None:
    cells = {(f"i{number}", name, client): math.log(5) for number in range(4) for name in "RC" for client in "xy"}
    assert decompose_crossed(cells) is None
