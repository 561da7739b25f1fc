"""k-means: groups that are there are found, in their order, and their clearness is that of Rousseeuw's definition."""

import numpy as np
import pytest

from quicsat.statistics.clusters import cluster, standardised


def blobs(*centres: tuple[float, float], each: int = 20, spread: float = 0.02) -> list[list[float]]:
    rng = np.random.default_rng(1)
    return [row.tolist() for centre in centres for row in rng.normal(centre, spread, (each, 2))]


def test_three_groups_are_three_the_highest_first() -> None:
    found = cluster(blobs((0.1, 0.1), (0.5, 0.9), (0.9, 0.5)))
    assert found.labels == (2,) * 20 + (0,) * 20 + (1,) * 20
    assert found.centres[0] == pytest.approx((0.5, 0.9), abs=0.02)
    assert found.structure == "strong"


def test_the_silhouette_of_four_points_by_hand() -> None:
    found = cluster([[0.0], [1.0], [10.0], [11.0]], most=2)
    assert found.labels == (1, 1, 0, 0)
    # Outer points: (10.5 - 1) / 10.5, inner ones: (9.5 - 1) / 9.5.
    assert found.silhouette == pytest.approx((2 * 9.5 / 10.5 + 2 * 8.5 / 9.5) / 4)


def test_no_structure_is_called_so() -> None:
    found = cluster(np.random.default_rng(3).uniform(size=(300, 6)).tolist())
    assert found.structure == "no"


@pytest.mark.parametrize("points", [[], [[1.0, 1.0]], [[1.0, 1.0]] * 5 + [[2.0, 2.0]] * 5])
def test_too_few_different_points_are_no_groups(points: list[list[float]]) -> None:
    assert cluster(points) is None


def test_a_point_far_away_is_a_group_of_its_own() -> None:
    found = cluster([*blobs((0.1, 0.1)), [0.9, 0.9]])
    assert found.labels.count(0) == 1


def test_standardised_columns_have_one_size() -> None:
    rows = standardised([[1.0, 1e6, 3.0], [2.0, 3e6, 3.0], [3.0, 5e6, 3.0]])
    assert rows.std(axis=0).tolist() == pytest.approx([1, 1, 0])
    assert rows.mean(axis=0).tolist() == pytest.approx([0, 0, 0])
