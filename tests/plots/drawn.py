"""Draws a plot on axes that end nowhere, for tests that count what is on them."""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quicsat.model.results import ResultSet
from quicsat.plots.base import Drawing, Panel, Plot
from quicsat.report.plot_request import CampaignResults, PlotRequest


def plot_request(*results: ResultSet, **choices: object) -> PlotRequest:
    """A wish over these campaigns."""
    campaigns = tuple(CampaignResults(f"c{number}", each) for number, each in enumerate(results))
    return PlotRequest(campaigns, Path("unused"), **choices)  # type: ignore[arg-type]


def panels(drawing: Drawing) -> list[Panel]:
    """Its panels, row by row."""
    return [panel for row in drawing.panels for panel in row if panel is not None]


def panel(plot: Plot, plot_request: PlotRequest) -> Panel:
    """The first panel of its first drawing."""
    return panels(plot.table(plot_request)[0])[0]


def column(shown: Panel, place: int | str) -> list[Any]:
    """One value of each row, by its place in the row or its name."""
    return [getattr(row, place) if isinstance(place, str) else row[place] for row in shown.rows]


def axes(plot: Plot, shown: Panel) -> Axes:
    """What is drawn of a panel."""
    ax = Figure().add_subplot()
    plot.draw(ax, shown)
    return ax


def texts(ax: Axes) -> list[str]:
    """All words inside the axes that are not empty."""
    return [text.get_text() for text in ax.texts if text.get_text()]
