"""Groups among points (k-means), how many there are, and how clear they are; the same for the same points; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quicsat.model.arrays import Floats, Integers

MOST_CLUSTERS = 6
_ROUNDS = 100
_STRUCTURES = ((0.71, "strong"), (0.51, "reasonable"), (0.26, "weak"))


@dataclass(frozen=True)
class Clustering:
    """Points in groups; group 0 is the one whose centre lies highest in the last dimension."""

    labels: tuple[int, ...]
    """Group of each point."""
    centres: tuple[tuple[float, ...], ...]
    """In the unit of the points."""
    silhouette: float
    """Mean silhouette width (Rousseeuw 1987), -1..1: 1 if the groups lie far apart."""

    @property
    def structure(self) -> str:
        """The silhouette in the words of Kaufman and Rousseeuw (1990)."""
        return next((word for least, word in _STRUCTURES if self.silhouette >= least), "no")


def cluster(points: Sequence[Sequence[float]], most: int = MOST_CLUSTERS) -> Clustering | None:
    """The partition by k-means (Lloyd 1982), of 2 to ``most`` groups, with the largest silhouette.

    Points are rows; distances are Euclidean, so that dimensions must be comparable. None with fewer than three
    different points. It begins with the points that lie farthest from each other (Gonzalez 1985), not at random.
    """
    rows = np.array(points, dtype=np.float64)
    different = len(np.unique(rows, axis=0)) if len(rows) else 0
    if different < 3:
        return None
    distances = np.sqrt(((rows[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2))
    found = [_kmeans(rows, distances, count) for count in range(2, min(most, different - 1) + 1)]
    widths = [_silhouette(distances, labels) for labels in found]
    best = int(np.argmax(widths))
    return _ordered(rows, found[best], widths[best])


def standardised(points: Sequence[Sequence[float]]) -> Floats:
    """Each column with mean 0 and standard deviation 1, so that units do not matter; constant columns are 0."""
    rows = np.array(points, dtype=np.float64)
    spread = rows.std(axis=0)
    result: Floats = (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return result


def _kmeans(rows: Floats, distances: Floats, count: int) -> Integers:
    """Group of each row."""
    centres = rows[_far_apart(rows, distances, count)]
    labels: Integers = np.zeros(len(rows), dtype=np.int64)
    for _ in range(_ROUNDS):
        before = labels
        labels = ((rows[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
        if (labels == before).all():
            break
        centres = np.array([rows[labels == n].mean(axis=0) if (labels == n).any() else centres[n]
                            for n in range(count)])  # fmt: skip
    return labels


def _far_apart(rows: Floats, distances: Floats, count: int) -> list[int]:
    """Rows to begin with: the one farthest from the mean, then always the one farthest from those chosen."""
    chosen = [int(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).argmax())]
    while len(chosen) < count:
        chosen.append(int(distances[:, chosen].min(axis=1).argmax()))
    return chosen


def _silhouette(distances: Floats, labels: Integers) -> float:
    """Mean over all points; a point alone in its group counts 0."""
    names, sizes = np.unique(labels, return_counts=True)
    if len(names) < 2:
        return -1.0
    sums = np.stack([distances[:, labels == name].sum(axis=1) for name in names], axis=1)
    own = np.searchsorted(names, labels)
    rows = np.arange(len(labels))
    inside = sums[rows, own] / np.maximum(sizes[own] - 1, 1)
    means = sums / sizes
    means[rows, own] = np.inf
    outside = means.min(axis=1)
    larger = np.maximum(inside, outside)
    widths = np.where((sizes[own] > 1) & (larger > 0), (outside - inside) / np.where(larger > 0, larger, 1.0), 0.0)
    return float(widths.mean())


def _ordered(rows: Floats, labels: Integers, width: float) -> Clustering:
    names = np.unique(labels)
    centres = {int(name): tuple(float(x) for x in rows[labels == name].mean(axis=0)) for name in names}
    order = sorted(centres, key=lambda name: (-centres[name][-1], centres[name]))
    place = {name: number for number, name in enumerate(order)}
    return Clustering(tuple(place[int(label)] for label in labels), tuple(centres[name] for name in order), width)
