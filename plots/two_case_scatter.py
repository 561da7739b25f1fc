"""Scatter plot of the efficiency in two test cases (Fig. 6 of arXiv 2202.08228), by the server's congestion control."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from quicsat.model.emulated_link import loss_share
from quicsat.model.text import counted
from quicsat.model.units import PERCENT
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import Drawing, Group, Panel, Plot, nonempty, sentences, single_panel, stem
from quicsat.report.plot_request import PlotRequest
from quicsat.statistics.clusters import cluster
from quicsat.statistics.overview import FAMILIES, THRESHOLD, relation


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing for any two wanted test cases, in their order."""
    drawings = []
    for campaign in request.campaigns:
        cases = request.measured(campaign.results)
        for x, y in combinations(cases, 2):
            points = relation(campaign.results, x.name, y.name)
            if not points:
                continue
            lost = len(campaign.results.pairs) - len(points)
            groups = cluster([(point.x, point.y) for point in points])
            lossy = loss_share(y.link.forward.loss) > 0
            caption = sentences(
                "Each point is the mean efficiency of a pair's successful repetitions (n = "
                f"{counted(len(points), 'pair')})",
                f"Not shown: {counted(lost, 'pair that lacks', 'pairs that lack')} a successful repetition in "
                "at least one of the two test cases" if lost else "",
                f"Lines connect the members of a group with its mean (k-means, silhouette {groups.silhouette:.2f}: "
                f"{groups.structure} structure). The dashed line shows equal efficiency" if groups else "",
                f"The dotted line shows the {THRESHOLD / PERCENT:.0f} % boundary between the clusters in arXiv "
                "2202.08228"
                if lossy else "",
            )  # fmt: skip
            facts = {"x": x.abbreviation, "y": y.abbreviation, "groups": groups, "threshold": THRESHOLD * lossy}
            title = f"{x.abbreviation} and {y.abbreviation}, by the server's congestion control"
            name = stem(request, campaign, x.abbreviation, y.abbreviation)
            drawings.append(Drawing(name, title, caption, single_panel(Panel(points, facts)), (4.8, 5.0)))
    return nonempty(drawings, "no pair succeeded in two test cases.")


def draw(ax: Axes, panel: Panel) -> None:
    """Points in colours and marks of the congestion control algorithms, both axes 0 to 100 %."""
    ax.plot([0, 100], [0, 100], color=theme.PALE, linewidth=0.8, linestyle="--")
    if panel.facts["threshold"]:
        ax.axhline(panel.facts["threshold"] / PERCENT, color=theme.GREY, linewidth=0.8, linestyle=":")
    _groups(ax, panel)
    for family in FAMILIES:
        if mine := [point for point in panel.rows if point.family == family]:
            colour, mark = theme.of_family(family)
            ax.scatter(
                [point.x / PERCENT for point in mine], [point.y / PERCENT for point in mine], s=22, c=colour,
                marker=mark, alpha=0.8, linewidths=0.3, edgecolors="white", label=f"{family} ({len(mine)})",
            )  # fmt: skip
    ax.set(
        xlabel=f"efficiency in {panel.facts['x']} [%]", ylabel=f"efficiency in {panel.facts['y']} [%]",
        xlim=(0, 100), ylim=(0, 100), aspect="equal",
    )  # fmt: skip
    ax.legend(loc="best", title="server (pairs)")


def _groups(ax: Axes, panel: Panel) -> None:
    """Lines from the means of groups to their members, under a number."""
    from matplotlib.collections import LineCollection

    groups = panel.facts["groups"]
    if not groups:
        return
    centres = np.array(groups.centres) / PERCENT
    ends = np.array([(point.x, point.y) for point in panel.rows]) / PERCENT
    spokes = np.stack([centres[np.array(groups.labels)], ends], axis=1)
    ax.add_collection(LineCollection(list(spokes), colors=theme.GREY, linewidths=0.5, alpha=0.6, zorder=1.5))
    for number, (x, y) in enumerate(centres, start=1):
        ax.annotate(str(number), (x, y), ha="center", va="center", fontsize=7, zorder=4,
                    bbox={"boxstyle": "circle,pad=0.25", "facecolor": "white", "edgecolor": theme.BLACK,
                          "linewidth": 0.7})  # fmt: skip


PLOT = Plot("two-case-scatter", "Relation of two test cases", Group.PAIRS, "results", table, draw)
