"""Figures of flows: shares per pair of pairs, and rates over time, exactly."""

from pathlib import Path

import numpy as np
import pytest

from quicsat.model.flow import flow_directory
from quicsat.model.results import ResultSet
from quicsat.plots import fairness, flows
from quicsat.plots.base import NothingToDrawError
from quicsat.plots.render import figure
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.traces.series import save
from tests.flows_builder import BESIDE, competing
from tests.plots.drawn import axes, column, panel, panels, plot_request, texts
from tests.results_builder import result_set, runs
from tests.series_builder import Transfer, series


def results(*shares: tuple[float, ...]) -> ResultSet:
    names = tuple("abcdef"[: len(shares)])
    return result_set(competing(*shares), servers=names, test_cases=(BESIDE,), repetitions=len(shares[0]))


def test_a_cell_per_pair_of_pairs() -> None:
    request = plot_request(results((0.3, 0.4, 0.2), (0.6, 0.6, 0.6)))
    [drawing] = fairness.table(request)
    assert drawing.title == "SAT: share of the first of two flows"
    assert "n = 3 successful repetitions" in drawing.caption
    shown = panel(fairness.PLOT, request)
    assert shown.rows == [(0, 0, pytest.approx(0.3), "20–40"), (1, 0, pytest.approx(0.6), "60–60")]
    assert shown.facts == {"firsts": ["a/quiche", "b/quiche"], "seconds": ["nginx-tcp/curl"]}
    ax = axes(fairness.PLOT, shown)
    assert texts(ax) == ["30", "20–40", "60", "60–60"]
    [image] = ax.get_images()
    assert np.asarray(image.get_array()).tolist() == [[pytest.approx(30)], [pytest.approx(60)]]


def test_nothing_is_drawn_without_two_flows(tmp_path: Path) -> None:
    with pytest.raises(NothingToDrawError):
        fairness.table(plot_request(result_set(runs(5e6))))
    with pytest.raises(NothingToDrawError):
        flows.table(PlotRequest((CampaignResults("c", result_set(runs(5e6)), tmp_path),), tmp_path))


def test_rates_and_shares_over_time(tmp_path: Path) -> None:
    found = results((0.3, 0.5, 0.4))
    for run, rate in zip(found.results, (6e6, 8e6, 4e6), strict=True):
        for number, own in enumerate((rate, 4e6), start=1):
            place = flow_directory(tmp_path / run.key.path, number)
            place.mkdir(parents=True)
            save(series(Transfer(size=2_000_000, rate=own)), place)
    request = PlotRequest((CampaignResults("c", found, tmp_path),), tmp_path)
    [drawing] = flows.table(request)
    assert "repetition 3, the one of n = 3" in drawing.caption
    goodput, shares = panels(drawing)
    assert column(goodput, 0) == ["1: a/quiche", "2: nginx-tcp/curl"]
    at = column(goodput, 1)[0].tolist().index(pytest.approx(3.0))
    assert [y[at] for y in column(goodput, 2)] == pytest.approx([4.0, 4.0], rel=0.01)
    assert [y[at] for y in column(shares, 2)] == pytest.approx([50.0, 50.0], rel=0.01)
    first, second = figure(flows.PLOT, drawing).axes
    assert [len(ax.get_lines()) for ax in (first, second)] == [2, 2]
    assert (first.get_ylabel(), second.get_ylabel()) == ("goodput [Mbit/s]", "share [%]")
