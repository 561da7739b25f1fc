"""Draws a plot on axes that end nowhere, for tests that count what is on them."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quicsat.model.results import ResultSet
from quicsat.plots.base import Panel, Plot
from quicsat.report.plot_request import CampaignResults, PlotRequest


def plot_request(*results: ResultSet, **choices: object) -> PlotRequest:
    """A wish over these campaigns."""
    campaigns = tuple(CampaignResults(f"c{number}", each) for number, each in enumerate(results))
    return PlotRequest(campaigns, Path("unused"), **choices)  # type: ignore[arg-type]


def panel(plot: Plot, plot_request: PlotRequest, number: int = 0) -> Panel:
    """The first panel of one of its drawings."""
    found = plot.table(plot_request)[number].panels[0][0]
    assert found is not None
    return found


def axes(plot: Plot, shown: Panel) -> Axes:
    """What is drawn of a panel."""
    ax = Figure().add_subplot()
    plot.draw(ax, shown)
    return ax


def texts(ax: Axes) -> list[str]:
    """All words inside the axes that are not empty."""
    return [text.get_text() for text in ax.texts if text.get_text()]
