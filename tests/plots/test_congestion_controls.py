"""Congestion control algorithms of implementations: which servers are shown, and where."""

from dataclasses import replace

import pytest

from quicsat.model.implementation import CongestionControl
from quicsat.model.results import ResultSet
from quicsat.plots.base import NothingToDrawError
from quicsat.plots.congestion_controls import PLOT
from tests.plots.drawn import axes, panel, plot_request
from tests.results_builder import result_set, runs


def variants(*servers: str) -> ResultSet:
    """Each server reaches 1, 2, 3 … Mbit/s with the client x, and four times as much with y."""
    found = [
        run
        for place, server in enumerate(servers, start=1)
        for client, factor in (("x", 1), ("y", 4))
        for run in runs(place * factor * 1e6, server=server, client=client)
    ]
    results = result_set(found, servers=servers, clients=("x", "y"))
    known = tuple(
        replace(each, congestion_control=CongestionControl(each.name.partition(":")[2]))
        for each in results.manifest.implementations
    )
    return replace(results, manifest=replace(results.manifest, implementations=known))


def test_only_implementations_with_two_congestion_controls_are_shown() -> None:
    drawing = PLOT.table(plot_request(variants("a:newreno", "a:bbr", "b:cubic")))[0]
    shown = panel(PLOT, plot_request(variants("a:newreno", "a:bbr", "b:cubic")))
    assert shown.facts["names"] == ["a"]
    assert shown.rows == [(0, "Reno", pytest.approx(2e6), [1e6, 4e6]), (0, "BBR", pytest.approx(4e6), [2e6, 8e6])]
    assert "n = 4 pairs" in drawing.caption


def test_the_fastest_implementation_is_at_the_top() -> None:
    shown = panel(PLOT, plot_request(variants("a:cubic", "b:reno", "b:cubic", "a:bbr", "c:reno", "c:newreno")))
    assert shown.facts["names"] == ["b", "a"]


def test_drawn() -> None:
    ax = axes(PLOT, panel(PLOT, plot_request(variants("a:reno", "a:bbr"))))
    assert ax.get_xscale() == "log"
    assert ax.get_legend_handles_labels()[1] == ["Reno", "BBR"]


def test_without_variants_there_is_nothing_to_draw() -> None:
    with pytest.raises(NothingToDrawError, match="two congestion control algorithms"):
        PLOT.table(plot_request(variants("a", "b")))
