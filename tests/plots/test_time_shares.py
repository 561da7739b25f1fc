"""Stacked bars of what the time of transfers went into."""

from dataclasses import replace

import pytest
from matplotlib.patches import Rectangle

from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import Measurement, ResultSet
from quicsat.model.time_shares import TimeShare
from quicsat.plots import time_shares
from quicsat.plots.base import NothingToDrawError
from quicsat.plots.render import figure
from tests.campaign_builder import NAMES, Shape, campaign
from tests.plots.drawn import panels, plot_request
from tests.results_builder import SAT

FEW = campaign(Shape(NAMES[:2], NAMES[:2], (SAT,), repetitions=2, failing=0))


def with_values(results: ResultSet, **values: float) -> ResultSet:
    """All runs with these numbers only."""
    told = tuple(replace(each, measurement=Measurement(values)) for each in results.results)
    return replace(results, results=told)


def test_a_bar_per_pair_and_one_for_all() -> None:
    spent = {share.metric: 1.0 for share in TimeShare} | {TimeShare.FULL_RATE.metric: 7.0}
    [drawing] = time_shares.PLOT.table(plot_request(with_values(FEW, **spent)))
    [panel] = panels(drawing)
    names = [name for name, _ in panel.rows]
    assert names[0] == time_shares.ALL
    assert sorted(names[1:]) == sorted(f"{server} – {client}" for server in NAMES[:2] for client in NAMES[:2])
    assert panel.rows[1][1] == list(spent.values())
    assert sum(panel.rows[0][1]) == pytest.approx(1)
    assert "n = 8 runs; in 8," in drawing.caption
    [ax] = figure(time_shares.PLOT, drawing).axes
    assert len(ax.patches) == len(names) * len(TimeShare)
    bars = [bar for bar in ax.patches if isinstance(bar, Rectangle)]
    assert max(bar.get_x() + bar.get_width() for bar in bars) == pytest.approx(100)


def test_the_time_of_transfers_that_timed_out_is_marked() -> None:
    spent = {share.metric: 1.0 for share in TimeShare}
    told = with_values(FEW, **spent)
    verdict = Verdict(Outcome.TIMEOUT, ErrorCode.TIMEOUT, "Late.")
    runs = [replace(each, verdict=verdict) if each.client == NAMES[0] else each for each in told.results]
    [drawing] = time_shares.PLOT.table(plot_request(replace(told, results=tuple(runs))))
    [ax] = figure(time_shares.PLOT, drawing).axes
    times = [text.get_text() for text in ax.texts]
    assert sorted(times) == ["14.0 s"] * 2 + ["> 14.0 s"] * 2
    assert "4 runs timed out" in drawing.caption


def test_shares_that_no_run_has_are_not_drawn() -> None:
    spent = {share.metric: 0.0 for share in TimeShare} | {TimeShare.FULL_RATE.metric: 7.0}
    [drawing] = time_shares.PLOT.table(plot_request(with_values(FEW, **spent)))
    [panel] = panels(drawing)
    assert panel.facts["shares"] == [list(TimeShare).index(TimeShare.FULL_RATE)]


def test_many_pairs_have_a_bar_per_server() -> None:
    many = campaign(Shape(NAMES[:7], NAMES[:7], (SAT,), repetitions=1, failing=0))
    [drawing] = time_shares.PLOT.table(plot_request(many))
    [panel] = panels(drawing)
    assert sorted(name for name, _ in panel.rows) == sorted([*NAMES[:7], time_shares.ALL])


def test_results_without_shares() -> None:
    with pytest.raises(NothingToDrawError, match="analyse"):
        time_shares.PLOT.table(plot_request(with_values(FEW, goodput=1e6)))
