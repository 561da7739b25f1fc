"""Heatmap: circles, T and ×, scales."""

from dataclasses import replace

import pytest
from matplotlib.collections import EllipseCollection

from quicsat.model.outcomes import Check, Outcome
from quicsat.model.results import Measurement
from quicsat.plots.base import NothingToDrawError
from quicsat.plots.discovery import with_clock
from quicsat.plots.heatmap import PLOT
from tests.plots.drawn import axes, column, panel, panels, plot_request, texts
from tests.results_builder import SAT, SATLOSS, result_set, run_result, runs, virtual_only

RESULTS = result_set(
    [
        *runs(4e6, 4e6, server="a", client="x"),
        *runs(1e6, None, server="b", client="x"),
        *runs(None, None, server="a", client="y"),
        run_result(None, server="b", client="y", outcome=Outcome.FAILED),
        run_result(None, server="c", client="x", outcome=Outcome.UNSUPPORTED),
        *runs(16e6, server="a", client="x", test_case="satloss"),
    ],
    servers=("a", "b", "c"),
    clients=("x", "y"),
    test_cases=(SAT, SATLOSS),
)


def test_table() -> None:
    shown = panel(PLOT, plot_request(RESULTS))
    assert shown.rows == [
        (0, 1, 4e6, pytest.approx(0.45), "", "", False),
        (1, 1, 1e6, pytest.approx(0.225), "T", "1/2", False),
        (0, 0, None, 0.0, "T", "", False),
        (1, 0, None, 0.0, "×", "", False),
    ]
    assert shown.facts == {
        "servers": ["a", "b"],
        "clients": ["y", "x"],
        "colours": (0.0, 16e6),
        "label": "mean goodput [Mbit/s]",
        "size": 1e6,
    }


def test_pairs_that_hold_in_virtual_time_only_are_marked() -> None:
    request = plot_request(virtual_only(RESULTS, "x", server="a"))
    [drawing, other] = PLOT.table(request)
    assert [circle.virtual_only for circle in panels(drawing)[0].rows] == [True, False, False, False]
    assert texts(axes(PLOT, panel(PLOT, request))).count("†") == 1
    assert ("†" in drawing.caption, "†" in other.caption) == (True, False)
    assert "1 pair over a link holds in virtual time only" in with_clock(drawing, request).caption
    assert "holds in" not in with_clock(drawing, plot_request(virtual_only(RESULTS))).caption


def test_own_scale() -> None:
    shown = panel(PLOT, plot_request(RESULTS, own_scale=True))
    assert shown.rows[0].diameter == pytest.approx(0.9)
    assert shown.facts["colours"] == (0.0, 4e6)


def test_colours_of_the_paper_go_from_lowest_to_highest_and_areas_are_shared() -> None:
    [drawing, *_] = PLOT.table(plot_request(RESULTS, own_colours=True))
    [shown] = panels(drawing)
    assert column(shown, "diameter") == column(panel(PLOT, plot_request(RESULTS)), "diameter")
    assert shown.facts["colours"] == (1e6, 4e6)
    assert "colour goes from the lowest to the highest in this test case" in drawing.caption
    [circles] = [each for each in axes(PLOT, shown).collections
                 if isinstance(each, EllipseCollection)]  # fmt: skip
    assert circles.get_clim() == (1.0, 4.0)


def test_all_test_cases_have_one_scale_of_colours() -> None:
    assert {panels(each)[0].facts["colours"] for each in PLOT.table(plot_request(RESULTS))} == {(0.0, 16e6)}


def test_caption_tells_what_is_left_out() -> None:
    caption = PLOT.table(plot_request(RESULTS))[0].caption
    assert "n = 3 successful repetitions" in caption
    assert "Not shown, because there is no result: c as server." in caption
    assert "7/10 means that seven of ten repetitions succeeded." in caption


def test_the_caption_explains_counts_only_if_there_are_some() -> None:
    [drawing] = PLOT.table(plot_request(result_set(runs(4e6, 4e6) + runs(None, client="x"), clients=("quiche", "x"))))
    assert "T means timed out" in drawing.caption
    assert "7/10" not in drawing.caption


def test_artists() -> None:
    ax = axes(PLOT, panel(PLOT, plot_request(RESULTS)))
    [circles] = [each for each in ax.collections if isinstance(each, EllipseCollection)]
    assert circles.get_offsets().tolist() == [[0, 1], [1, 1]]  # type: ignore[union-attr]
    assert texts(ax) == ["T 1/2", "T", "×"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["y", "x"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("server", "client")


def test_functional_tests_are_drawn_only_by_a_metric_that_was_measured_in_them() -> None:
    case = replace(SAT, check=Check.RESUMPTION)
    measured = replace(run_result(), measurement=Measurement({"second_visit_first_byte": 0.6}))
    results = result_set([measured], test_cases=(case,))
    assert column(panel(PLOT, plot_request(results, metric="second_visit_first_byte")), "value") == [0.6]
    with pytest.raises(NothingToDrawError):
        PLOT.table(plot_request(results))


def test_a_metric_that_no_run_has_is_not_drawn() -> None:
    with pytest.raises(NothingToDrawError, match="no pair has a result with a value for the CPU time of the server"):
        PLOT.table(plot_request(RESULTS, metric="server_cpu_per_mib"))
    timeouts = result_set(runs(None, None))
    assert column(panel(PLOT, plot_request(timeouts, metric="server_cpu_per_mib")), "mark") == ["T"]
