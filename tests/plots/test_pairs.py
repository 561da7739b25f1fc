"""Figures and tables of some pairs: neither their numbers nor their words know of the others."""

from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.model.implementation import Protocol
from quicsat.model.results import ResultSet
from quicsat.plots.base import MOST_PICTURES, Drawing, Plot
from quicsat.plots.discovery import draw, plots
from quicsat.plots.drawn_before import content_of
from quicsat.report import campaign_tables
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.report.table import render
from quicsat.statistics.samples import samples
from tests.campaign_builder import LOSSES, NAMES, PAGE, TERRESTRIAL, Shape, campaign
from tests.plots import requests
from tests.plots.drawn import plot_request
from tests.results_builder import SAT, SATLOSS, result_set, runs

OVER_RESULTS = [plot for plot in plots().values() if plot.of != "runs"]
OTHERS = ("aioquic", "picoquic")
PAIR = ("quic-go", "quic-go")


@pytest.fixture(scope="module")
def three_by_three() -> ResultSet:
    return campaign(Shape(NAMES[:3], NAMES[:3], (TERRESTRIAL, SAT, SATLOSS, PAGE, *LOSSES), repetitions=3))


@pytest.mark.parametrize("plot", OVER_RESULTS, ids=lambda plot: plot.name)
def test_no_figure_shows_or_names_other_pairs(
    plot: Plot, three_by_three: ResultSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawings: list[Drawing] = []

    def keep(plot: Plot, drawing: Drawing, *_: object) -> list[Path]:
        drawings.append(drawing)
        return []

    monkeypatch.setattr("quicsat.plots.discovery.save", keep)
    campaigns = tuple(CampaignResults(f"c{number}", three_by_three) for number in range(1 + (plot.of == "campaigns")))
    draw(PlotRequest(campaigns, tmp_path, (plot.name,), pairs=(PAIR,), test_cases=("SAT", "SATL", "SAT-PG")))
    for drawing in drawings:
        assert not any(name in content_of(drawing) for name in OTHERS)
        assert "not run" not in drawing.caption.replace("· not run", "")
        assert " 9 pairs" not in drawing.caption


@pytest.mark.parametrize("name", ["flows", "waterfall"])
def test_pictures_of_many_pairs_are_the_slowest_unless_they_are_named(name: str, tmp_path: Path) -> None:
    plot = plots()[name]
    if name == "flows":
        whole = requests.flows(16, tmp_path)
    else:
        whole = plot_request(campaign(Shape(NAMES[:4], NAMES[:4], (PAGE,), repetitions=1, failing=0)))
    drawings = plot.table(whole)
    assert len(drawings) == MOST_PICTURES
    assert "12 slowest of 16 pairs" in drawings[0].caption
    assert len(plot.table(replace(whole, plots=(name,)))) == 16
    assert [each.stem for each in plot.table(replace(whole, pairs=(PAIR,)))][:12] == [each.stem for each in drawings]


def test_pairs_that_were_not_planned_are_not_missing() -> None:
    """One that ``-i`` left out, and one without a protocol in common."""
    full = result_set(runs(5e6, server="a", client="a"), servers=("a", "b"), clients=("a", "b", "tcp"))
    known = tuple(
        replace(each, protocols=(Protocol.TCP,)) if each.name == "tcp" else each
        for each in full.manifest.implementations
    )
    results = replace(full, manifest=replace(full.manifest, implementations=known, must_include=("a",)))
    assert results.pairs == (("a", "a"), ("b", "a"), ("a", "b"))
    assert [(each.server, each.client) for each in samples(results, "sat")] == list(results.pairs)
    table = render(campaign_tables.pairs(results, results.manifest.test_cases), "latex")
    assert "tcp" not in table
    [cdf] = plots()["cdf"].table(plot_request(results))
    assert "Not shown in SAT: 2 pairs that were not run." in cdf.caption
