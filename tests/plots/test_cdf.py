"""CDF: failed repetitions count as 0 or are left out, and it is told."""

import numpy as np
import pytest

from quicsat.plots.cdf import PLOT
from tests.plots.drawn import axes, column, panel, plot_request
from tests.results_builder import SAT, SATLOSS, result_set, runs

RESULTS = result_set([*runs(4e6, 2e6, None), *runs(1e6, test_case="satloss")], test_cases=(SAT, SATLOSS))


def test_failed_count_as_nothing() -> None:
    shown = panel(PLOT, plot_request(RESULTS))
    assert [row[:3] for row in shown.rows] == [("SAT", [0.0, 0.1, 0.2], 1), ("SATL", [0.05], 0)]
    assert "the one that failed or timed out counts as 0" in PLOT.table(plot_request(RESULTS))[0].caption


def test_failed_are_left_out() -> None:
    assert column(panel(PLOT, plot_request(RESULTS, without_failed=True)), 1) == [[0.1, 0.2], [0.05]]


def test_lines_end_at_one() -> None:
    ax = axes(PLOT, panel(PLOT, plot_request(RESULTS)))
    first, second = ax.get_lines()
    assert np.asarray(first.get_xdata()).tolist() == pytest.approx([0, 0, 10, 20, 100])
    assert np.asarray(first.get_ydata()).tolist() == pytest.approx([0, 100 / 3, 200 / 3, 100, 100])
    assert (first.get_label(), second.get_label()) == (
        "SAT (n = 3, 1 without success)",
        "SATL (n = 1, 0 without success)",
    )
    assert first.get_color() != second.get_color()
    assert first.get_linestyle() != second.get_linestyle()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("efficiency [%]", "share of repetitions [%]")
