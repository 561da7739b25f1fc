"""Families with one swept key as maps: cells, marks, and one scale for all of them."""

from __future__ import annotations

import pytest

from quicsat.plots.base import NothingToDrawError
from quicsat.plots.sweep_map import PLOT
from tests.plots.drawn import axes, panel, plot_request, texts
from tests.plots.test_sweep import GRID_RESULTS, LINE_RESULTS


def test_a_row_per_pair_and_a_column_per_value() -> None:
    shown = panel(PLOT, plot_request(LINE_RESULTS))
    assert shown.facts["columns"] == ["0", "0.1", "5"]
    assert shown.facts["rows"] == ["a, x", "b, x"]
    values = {(x, y, mark): value for x, y, value, mark in shown.rows}
    assert values[0, 0, ""] == pytest.approx(4e6)
    assert values[2, 0, "T"] == pytest.approx(1e6)
    assert values[0, 1, ""] == pytest.approx(9e6)
    assert values[1, 1, "·"] is None
    assert shown.facts["highest"] == pytest.approx(9e6)


def test_drawn() -> None:
    found = texts(axes(PLOT, panel(PLOT, plot_request(LINE_RESULTS))))
    assert {"9", "1T"} <= set(found)


def test_families_with_two_keys_are_maps_of_the_plot_sweep() -> None:
    with pytest.raises(NothingToDrawError):
        PLOT.table(plot_request(GRID_RESULTS))
