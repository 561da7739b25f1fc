"""Scatter-plot matrix: the mean efficiency of every pair in each test case against every other test case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from quicsat.model.units import PERCENT
from quicsat.plots import theme
from quicsat.plots.base import Drawing, Group, Panel, Plot, nonempty, sentences, stem
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.samples import EFFICIENCY, samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 20
Means = Mapping[tuple[str, str], float]


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per campaign that has two test cases: histograms on the diagonal, points below it."""
    drawings = [drawing for campaign in request.campaigns if (drawing := _drawing(request, campaign)) is not None]
    return nonempty(drawings, "no pair succeeded in two test cases.")


def _drawing(request: PlotRequest, campaign: CampaignResults) -> Drawing | None:
    means: dict[str, Means] = {}
    for case in request.measured(campaign.results):
        many = samples(campaign.results, case.name, EFFICIENCY)
        known = {(sample.server, sample.client): sample.mean for sample in many if sample.mean is not None}
        if known:
            means[case.abbreviation] = known
    names = list(means)
    if len(names) < 2:
        return None
    rows = tuple(tuple(_cell(means, (row, column), names) for column in range(len(names))) for row in range(len(names)))
    *others, last = (f"{len(means[name])}{'' if number else ' pairs'} in {name}" for number, name in enumerate(names))
    caption = sentences(
        f"The figure shows the mean efficiency of each pair's successful repetitions, for n = {', '.join(others)} and "
        f"{last}. Marks show the server. Dashed lines show equal efficiency",
    )
    size = 1.3 + 1.55 * len(names)
    return Drawing(
        stem(request, campaign), "Efficiency in all test cases", caption, rows, (max(5.0, size), max(4.6, size))
    )


def _cell(means: Mapping[str, Means], place: tuple[int, int], names: Sequence[str]) -> Panel | None:
    row, column = place
    if row == column:
        return _histogram(means, names[row], names)
    if column < row:
        return _points(means, names[column], names[row], names)
    if place == (0, len(names) - 1):
        return Panel({"legend": sorted({server for known in means.values() for server, _ in known})})
    return None


def _facts(x: str, y: str, names: Sequence[str]) -> dict[str, object]:
    return {"x": x, "y": y, "left": x == names[0], "bottom": y == names[-1]}


def _histogram(means: Mapping[str, Means], name: str, names: Sequence[str]) -> Panel:
    counts, edges = np.histogram(list(means[name].values()), bins=BINS, range=(0, 1))
    return Panel({"count": counts.tolist(), "start": edges[:-1].tolist()}, _facts(name, name, names))


def _points(means: Mapping[str, Means], x: str, y: str, names: Sequence[str]) -> Panel:
    both = [pair for pair in means[x] if pair in means[y]]
    columns: dict[str, list[object]] = {
        "x": [means[x][pair] for pair in both],
        "y": [means[y][pair] for pair in both],
        "server": [server for server, _ in both],
    }
    return Panel(columns, _facts(x, y, names))


def draw(ax: Axes, panel: Panel) -> None:
    """A histogram, or points, with labels at the left and at the bottom only."""
    from matplotlib.ticker import MaxNLocator

    columns, facts = panel.columns, panel.facts
    if "legend" in columns:
        _legend(ax, columns["legend"])
        return
    ax.set_xlim(0, 100)
    if "count" in columns:
        ax.bar([start / PERCENT for start in columns["start"]], columns["count"], width=100 / BINS, align="edge",
               color=theme.SKY, edgecolor="white", linewidth=0.4)  # fmt: skip
        ax.set_title(facts["x"], color=theme.GREY)
        ax.set_ylabel("pairs")
        ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    else:
        ax.plot([0, 100], [0, 100], color=theme.GREY, linewidth=0.7, linestyle="--")
        for server in sorted(set(columns["server"])):
            rows = [number for number, name in enumerate(columns["server"]) if name == server]
            style = theme.of_implementation(server)
            ax.scatter([columns["x"][row] / PERCENT for row in rows], [columns["y"][row] / PERCENT for row in rows],
                       s=13, c=style.colour, marker=style.mark, linewidths=0.2, edgecolors="white")  # fmt: skip
        ax.set_ylim(0, 100)
        if facts["left"]:
            ax.set_ylabel(f"{facts['y']} [%]")
    if facts["bottom"]:
        ax.set_xlabel(f"{facts['x']} [%]")


def _legend(ax: Axes, servers: Sequence[str]) -> None:
    ax.set_axis_off()
    for server in servers:
        style = theme.of_implementation(server)
        ax.plot([], [], marker=style.mark, color=style.colour, linestyle="none", markersize=4, label=server)
    ax.legend(title="server", loc="upper center", ncols=2 if len(servers) > 8 else 1)


PLOT = Plot("scatter-matrix", "Efficiency in all test cases", Group.PAIRS, "results", table, draw)
