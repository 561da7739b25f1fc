"""Which earlier campaign a campaign is compared with: the newest that has nearly all of its cells; pure.

A campaign that was killed after a few runs, or that measured something else, must not hide what changed since the one
before it.
"""

from collections.abc import Collection, Sequence, Set

from quicsat.model.results import ResultSet
from quicsat.statistics.samples import CONCLUSIVE_RUNS

LOOKED_BACK = 8
"""Earlier campaigns of the same clock that are looked at."""
NEARLY_ALL = 0.9
"""Of the cells that the best of them has in common with the later campaign."""

Cell = tuple[str, str, str]
"""Server, client and test case."""


def conclusive_cells(results: ResultSet) -> frozenset[Cell]:
    """The cells in which a run succeeded, failed or timed out."""
    return frozenset(
        (each.server, each.client, each.test_case)
        for each in results.results
        if each.verdict.outcome in CONCLUSIVE_RUNS
    )


def most_alike(cells: Set[Cell], earlier: Sequence[Collection[Cell]]) -> int | None:
    """Place of the campaign to compare with; ``earlier``: conclusive cells of each, the newest first.

    None if none of them has a cell in common with ``cells``.
    """
    common = [sum(cell in cells for cell in each) for each in earlier[:LOOKED_BACK]]
    least = max(1.0, NEARLY_ALL * max(common, default=0))
    return next((place for place, count in enumerate(common) if count >= least), None)
