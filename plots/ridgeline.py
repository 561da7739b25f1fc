"""Ridgelines: the distribution of the efficiency of each server, and of each client, one above the other."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from interop.model import TestCase
from interop.pictures import Campaign, Wish
from interop.statistics.samples import EFFICIENCY, Sample, left_out, samples
from interop.units import PERCENT
from plots import theme
from plots.base import Drawing, Panel, Plot, density, each_case, found, sentences, stem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OVERLAP = 1.5
"""Height of the highest ridge, in distances of two."""


def table(wish: Wish) -> Sequence[Drawing]:
    """A drawing per test case: servers at the left, clients at the right, the best at the top."""
    drawings = [drawing for campaign, case in each_case(wish)
                if (drawing := _drawing(wish, campaign, case)) is not None]  # fmt: skip
    return found(drawings, "no repetition has an efficiency.")


def _drawing(wish: Wish, campaign: Campaign, case: TestCase) -> Drawing | None:
    many = samples(campaign.results, case.name, EFFICIENCY)
    panels = [panel for role in ("server", "client") if (panel := _panel(many, role)) is not None]
    if not panels:
        return None
    rows = max(len(panel.columns["name"]) for panel in panels)
    n = sum(len(sample.values) for sample in many)
    caption = sentences(
        f"n = {n} repetitions that succeeded, in each panel; ordered by the mean, which is the white mark",
        f"Left out: {lost}" if (lost := left_out(many)) else "",
    )
    title = f"{case.abbreviation}: efficiency per server and per client"
    return Drawing(stem(wish, campaign, case.abbreviation), title, caption, (tuple(panels),), (6.8, 1.7 + 0.3 * rows))


def _panel(many: Sequence[Sample], role: str) -> Panel | None:
    groups: dict[str, list[float]] = {}
    for sample in many:
        groups.setdefault(getattr(sample, role), []).extend(sample.values)
    known = sorted((fmean(values), name, values) for name, values in groups.items() if values)
    if not known:
        return None
    curves = [density(values, 0.0, 1.0, 0.3) for _, _, values in known]
    highest = max(float(heights.max()) for _, heights in curves)
    columns: dict[str, list[object]] = {
        "name": [name for _, name, _ in known],
        "mean": [mean for mean, _, _ in known],
        "n": [len(values) for _, _, values in known],
        "places": [places.tolist() for places, _ in curves],
        "heights": [(OVERLAP * np.sqrt(heights / highest)).tolist() for _, heights in curves],
    }
    return Panel(columns, {"role": role, "limit": 1.05 * max(max(values) for _, _, values in known)})


def draw(ax: Axes, panel: Panel) -> None:
    """Ridges from top to bottom, so that lower ones stand in front."""
    columns = panel.columns
    count = len(columns["name"])
    for row in reversed(range(count)):
        style = theme.of_implementation(columns["name"][row])
        places = np.array(columns["places"][row]) / PERCENT
        heights = row + np.array(columns["heights"][row])
        if len(places) == 1:
            places, heights = np.repeat(places, 2) + np.array([-0.2, 0.2]), np.repeat(heights, 2)
        above = 3 + count - row
        ax.fill_between(places, row, heights, color=style.colour, alpha=0.75, linewidth=0, zorder=above)
        ax.plot(places, heights, color="white", linewidth=0.8, zorder=above)
        ax.plot([columns["mean"][row] / PERCENT], [row + 0.08], marker=style.mark, color="white", markersize=4,
                markeredgecolor=theme.BLACK, markeredgewidth=0.5, zorder=5 + count)  # fmt: skip
    ax.set_yticks(range(count), columns["name"])
    ax.set(xlabel="efficiency [%]", ylabel=panel.facts["role"], ylim=(-0.3, count - 0.8 + OVERLAP))
    ax.set_xlim(0, min(100.0, panel.facts["limit"] / PERCENT))
    ax.grid(axis="y", visible=False)


PLOT = Plot("ridgeline", "Efficiency per server and per client", "results", table, draw)
