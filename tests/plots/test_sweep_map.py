"""Families with one swept key as maps: cells, marks, and one scale for all of them."""

import pytest

from quicsat.plots.base import NothingToDrawError
from quicsat.plots.sweep_map import PLOT
from tests.plots.drawn import axes, panel, panels, plot_request, texts
from tests.plots.test_sweep import GRID_RESULTS, LINE, LINE_RESULTS
from tests.results_builder import result_set, runs


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


def test_many_pairs_are_in_several_pictures_with_one_scale() -> None:
    servers = tuple(f"s{number}" for number in range(45))
    many = [
        run
        for case in LINE[1:]
        for number, server in enumerate(servers)
        for run in runs(1e6 + number, server=server, client="x", test_case=case.name)
    ]
    drawings = PLOT.table(plot_request(result_set(many, servers=servers, clients=("x",), test_cases=LINE)))
    assert [drawing.stem for drawing in drawings] == ["LOS", "LOS-2"]
    shown = [panel for drawing in drawings for panel in panels(drawing)]
    assert [len(panel.facts["rows"]) for panel in shown] == [40, 5]
    assert len({panel.facts["highest"] for panel in shown}) == 1


def test_drawn() -> None:
    found = texts(axes(PLOT, panel(PLOT, plot_request(LINE_RESULTS))))
    assert {"9", "1T"} <= set(found)


def test_families_with_two_keys_are_maps_of_the_plot_sweep() -> None:
    with pytest.raises(NothingToDrawError):
        PLOT.table(plot_request(GRID_RESULTS))
