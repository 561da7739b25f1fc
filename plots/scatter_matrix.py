"""Scatter-plot matrix: the mean efficiency of every pair in each test case against every other test case."""

from collections.abc import Mapping, Sequence

import numpy as np

from quicsat.model.units import PERCENT
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import Drawing, Group, Panel, Plot, per_campaign, sentences, stem
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.samples import EFFICIENCY, samples

BINS = 20
Means = Mapping[tuple[str, str], float]


def _drawing(request: PlotRequest, campaign: CampaignResults) -> Drawing | None:
    """Histograms on the diagonal, points below it."""
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
        return Panel(sorted({server for known in means.values() for server, _ in known}), {"kind": "legend"})
    return None


def _histogram(means: Mapping[str, Means], name: str, names: Sequence[str]) -> Panel:
    counts, edges = np.histogram(list(means[name].values()), bins=BINS, range=(0, 1))
    rows = list(zip(edges[:-1].tolist(), counts.tolist(), strict=True))
    return Panel(rows, {"kind": "histogram", "x": name, "bottom": name == names[-1]})


def _points(means: Mapping[str, Means], x: str, y: str, names: Sequence[str]) -> Panel:
    rows = [(pair[0], mean, means[y][pair]) for pair, mean in means[x].items() if pair in means[y]]
    return Panel(rows, {"kind": "points", "x": x, "y": y, "left": x == names[0], "bottom": y == names[-1]})


def draw(ax: Axes, panel: Panel) -> None:
    """A histogram, or points, with labels at the left and at the bottom only."""
    from matplotlib.ticker import MaxNLocator

    facts = panel.facts
    if facts["kind"] == "legend":
        _legend(ax, panel.rows)
        return
    ax.set_xlim(0, 100)
    if facts["kind"] == "histogram":
        ax.bar([start / PERCENT for start, _ in panel.rows], [count for _, count in panel.rows], width=100 / BINS,
               align="edge", color=theme.SKY, edgecolor="white", linewidth=0.4)  # fmt: skip
        ax.set_title(facts["x"], color=theme.GREY)
        ax.set_ylabel("pairs")
        ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    else:
        ax.plot([0, 100], [0, 100], color=theme.GREY, linewidth=0.7, linestyle="--")
        for server in sorted({server for server, *_ in panel.rows}):
            points = [(x / PERCENT, y / PERCENT) for name, x, y in panel.rows if name == server]
            style = theme.of_implementation(server)
            ax.scatter([x for x, _ in points], [y for _, y in points], s=13, c=style.colour, marker=style.mark,
                       linewidths=0.2, edgecolors="white")  # fmt: skip
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


PLOT = Plot(
    "scatter-matrix", "Efficiency in all test cases", Group.PAIRS, "results",
    per_campaign(_drawing, "no pair succeeded in two test cases."), draw,
)  # fmt: skip
