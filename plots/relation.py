"""Relation of two test cases (Fig. 6 of arXiv 2202.08228): a point per pair, by the server's congestion control."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from interop.pictures import Wish
from interop.statistics.overview import FAMILIES, THRESHOLD, relation
from interop.units import PERCENT
from plots import theme
from plots.base import Drawing, Panel, Plot, found, measured, one, sentences, stem

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def table(wish: Wish) -> Sequence[Drawing]:
    """A drawing for any two wanted test cases, in their order."""
    drawings = []
    for campaign in wish.campaigns:
        cases = measured(wish, campaign.results)
        for x, y in combinations(cases, 2):
            points = relation(campaign.results, x.name, y.name)
            if not points:
                continue
            columns: dict[str, list[object]] = {
                "x": [point.x for point in points],
                "y": [point.y for point in points],
                "family": [point.family for point in points],
                "server": [point.server for point in points],
                "client": [point.client for point in points],
            }
            pairs = len(campaign.results.manifest.servers) * len(campaign.results.manifest.clients)
            caption = sentences(
                f"n = {len(points)} pairs, mean efficiency of the repetitions that succeeded",
                f"Left out: {pairs - len(points)} pairs without a success in both" if pairs > len(points) else "",
                f"The dotted line is the {THRESHOLD / PERCENT:.0f} % between the paper's two clusters",
            )
            facts = {"x": x.abbreviation, "y": y.abbreviation}
            title = f"{x.abbreviation} and {y.abbreviation}, by the server's congestion control"
            name = stem(wish, campaign, x.abbreviation, y.abbreviation)
            drawings.append(Drawing(name, title, caption, one(Panel(columns, facts)), (4.8, 5.0)))
    return found(drawings, "no pair succeeded in two test cases.")


def draw(ax: Axes, panel: Panel) -> None:
    """Points in colours and marks of the congestion controls, both axes 0 to 100 %."""
    columns = panel.columns
    ax.plot([0, 100], [0, 100], color=theme.PALE, linewidth=0.8, linestyle="--")
    ax.axhline(THRESHOLD / PERCENT, color=theme.GREY, linewidth=0.8, linestyle=":")
    for family in FAMILIES:
        rows = [number for number, name in enumerate(columns["family"]) if name == family]
        if rows:
            colour, mark = theme.of_family(family)
            ax.scatter(
                [columns["x"][row] / PERCENT for row in rows], [columns["y"][row] / PERCENT for row in rows],
                s=22, c=colour, marker=mark, alpha=0.8, linewidths=0.3, edgecolors="white",
                label=f"{family} ({len(rows)})",
            )  # fmt: skip
    ax.set(
        xlabel=f"efficiency in {panel.facts['x']} [%]", ylabel=f"efficiency in {panel.facts['y']} [%]",
        xlim=(0, 100), ylim=(0, 100), aspect="equal",
    )  # fmt: skip
    ax.legend(loc="upper left", title="server (pairs)")


PLOT = Plot("relation", "Relation of two test cases", "results", table, draw)
