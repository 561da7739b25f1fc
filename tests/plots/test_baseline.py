"""The baseline of real links over time: which measurements are shown, and that the axes have their units."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from quicsat.model.real_link import Baseline, CaptureReport, RealDirection, RealLink, RealLinkReport
from quicsat.model.results import ResultSet
from quicsat.plots import baseline
from quicsat.plots.base import NothingToDrawError
from tests.plots.drawn import axes, column, panels, plot_request
from tests.results_builder import SAT, result_set, run_result

DAY = 86400.0
CASE = replace(
    SAT, name="astra", abbreviation="ASTRA", link=RealLink("modem", "far", RealDirection(20e6), RealDirection(2e6), 0.6)
)


def campaign(looks: Sequence[Baseline]) -> ResultSet:
    """A run per baseline."""
    results = []
    for number, look in enumerate(looks, 1):
        made = run_result(test_case="astra", repetition=number)
        report = RealLinkReport("modem", "far", 0.0, CaptureReport(9, 9, 0), CaptureReport(9, 9, 0), look)
        results.append(replace(made, evidence=replace(made.evidence, real_link=report)))
    return result_set(results, test_cases=(CASE,), repetitions=len(looks))


def test_each_measurement_is_shown_once_over_all_campaigns() -> None:
    first = Baseline("2026-11-20T06:00:00Z", (0.6, 0.5, None, 0.9), 0.1, 12e6, 1e6)
    second = Baseline("2026-11-20T06:10:00Z", (None, None), 0.1)
    third = Baseline("2026-11-21T06:00:00Z", (0.7,), 0.1, 10e6)
    found = plot_request(campaign([third]), campaign([first, first, second]))
    [drawing] = baseline.table(found)
    trips, rates = panels(drawing)
    assert [row[1:] for row in trips.rows] == [
        pytest.approx((20777.25 * DAY, 600.0, 500.0, 900.0)), pytest.approx((20778.25 * DAY, 700.0, 700.0, 700.0)),
    ]  # fmt: skip
    assert column(rates, 0) == ["forward", "return", "forward"]
    assert column(rates, 2) == column(rates, 3) == column(rates, 4) == [12.0, 1.0, 10.0]
    assert "n = 3 measurements" in drawing.caption
    assert "3 of 7 packets were lost" in drawing.caption
    shown = [axes(baseline.PLOT, panel) for panel in (trips, rates)]
    assert [ax.get_ylabel() for ax in shown] == ["RTT [ms]", "TCP goodput [Mbit/s]"]
    assert [len(ax.lines) for ax in shown] == [1, 2]


def test_without_throughput_there_is_one_panel() -> None:
    [drawing] = baseline.table(plot_request(campaign([Baseline("2026-11-20T06:00:00Z", (0.6,), 0.1)])))
    assert len(drawing.panels) == 1


def test_emulated_links_have_no_baseline() -> None:
    with pytest.raises(NothingToDrawError):
        baseline.table(plot_request(result_set([run_result()])))
