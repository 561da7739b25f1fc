"""The baseline of real links over time: which measurements are shown, and that the axes have their units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from quicsat.model.real_link import Baseline, CaptureReport, RealDirection, RealLink, RealLinkReport
from quicsat.model.results import ResultSet
from quicsat.plots import baseline
from quicsat.plots.base import NothingToDrawError
from tests.plots.drawn import axes, plot_request
from tests.results_builder import SAT, result_set, run_result

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
    [[trips], [rates]] = drawing.panels
    assert trips is not None
    assert rates is not None
    day = 86400.0
    assert [time / day for time in trips.columns["time"]] == [20777.25, 20778.25]
    assert trips.columns["value"] == pytest.approx([600.0, 700.0])
    assert trips.columns["low"] == pytest.approx([500.0, 700.0])
    assert trips.columns["high"] == pytest.approx([900.0, 700.0])
    assert list(zip(rates.columns["direction"], rates.columns["value"], strict=True)) == [
        ("forward", 12.0),
        ("return", 1.0),
        ("forward", 10.0),
    ]
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
