"""Variance components of a complete design: by hand, and unbiased by simulation."""

import numpy as np
import pytest

from paper.complete_design import REST, components, shares
from quicsat.model.arrays import Floats

SIZES = (11, 14, 5)
VARIANCES = {
    ("server",): 4.0, ("client",): 0.5, ("seed",): 0.3, ("server", "client"): 1.0, ("server", "seed"): 0.4,
    ("client", "seed"): 0.0, (REST,): 0.2,
}  # fmt: skip
SHAPES = {
    ("server",): (11, 1, 1), ("client",): (1, 14, 1), ("seed",): (1, 1, 5), ("server", "client"): (11, 14, 1),
    ("server", "seed"): (11, 1, 5), ("client", "seed"): (1, 14, 5), (REST,): SIZES,
}  # fmt: skip


def drawn(generator: np.random.Generator) -> Floats:
    """A design with these variances."""
    parts = [generator.normal(0, np.sqrt(VARIANCES[source]), shape) for source, shape in SHAPES.items()]
    return np.asarray(sum(parts) + np.zeros(SIZES))


def test_components_are_unbiased() -> None:
    generator = np.random.default_rng(1)
    many = [components(drawn(generator)) for _ in range(1500)]
    for source, variance in VARIANCES.items():
        values = [each[source] for each in many]
        error = float(np.std(values)) / np.sqrt(len(values))
        assert np.mean(values) == pytest.approx(variance, abs=4 * error), source


def test_only_one_source_varies() -> None:
    by_server_and_seed = np.array([[1.0, -1.0], [-1.0, 1.0]])
    values = np.broadcast_to(by_server_and_seed[:, None, :], (2, 3, 2))
    # The mean square of the combination is 3 clients x 4 / 1 degree of freedom: a component of 4.
    assert components(values)["server", "seed"] == pytest.approx(4)
    assert shares(values)["server", "seed"] == pytest.approx(1)


def test_nothing_varies() -> None:
    assert set(shares(np.ones((2, 2, 2))).values()) == {0.0}
