"""Split violins per implementation (Fig. 5 of arXiv 2202.08228): left as server, right as client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from interop.model import Role, TestCase
from interop.pictures import Campaign, Wish
from interop.statistics.samples import GOODPUT, left_out, samples
from interop.units import MBPS
from plots import theme
from plots.base import WIDTH, Drawing, Panel, Plot, density, each_case, found, one, sentences, stem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST = 5
"""Values of which a density is drawn; fewer are drawn as points."""


def table(wish: Wish) -> Sequence[Drawing]:
    """A drawing per test case."""
    drawings = [drawing for campaign, case in each_case(wish)
                if (drawing := _drawing(wish, campaign, case)) is not None]  # fmt: skip
    return found(drawings, "no repetition has a goodput.")


def _drawing(wish: Wish, campaign: Campaign, case: TestCase) -> Drawing | None:
    many = samples(campaign.results, case.name, GOODPUT)
    groups: dict[tuple[str, Role], list[float]] = {}
    for sample in many:
        groups.setdefault((sample.server, Role.SERVER), []).extend(sample.values)
        groups.setdefault((sample.client, Role.CLIENT), []).extend(sample.values)
    names = sorted({name for (name, _), values in groups.items() if values})
    if not names:
        return None
    most = max(len(values) for values in groups.values())
    highest = max(max(values) for values in groups.values() if values)
    columns: dict[str, list[object]] = {"implementation": [], "role": [], "values": [], "quartiles": [], "shape": []}
    for name in names:
        for role in (Role.SERVER, Role.CLIENT):
            values = sorted(groups.get((name, role), []))
            if not values:
                continue
            columns["implementation"].append(names.index(name))
            columns["role"].append(role)
            columns["values"].append(values)
            columns["quartiles"].append([float(q) for q in np.quantile(values, (0.25, 0.5, 0.75))])
            columns["shape"].append(_shape(values, most, highest))
    n = sum(len(sample.values) for sample in many)
    silent = sorted({name for name, _ in groups} - {*names})
    caption = sentences(
        f"n = {n} repetitions that succeeded, each at its server and at its client. The width tells how many; lines "
        f"are quartiles; fewer than {FEWEST} repetitions are points",
        f"Without any: {', '.join(silent)}" if silent else "",
        f"Left out: {lost}" if (lost := left_out(many)) else "",
    )
    facts = {"names": names, "rate": case.link.forward_rate}
    size = (max(WIDTH, 1.2 + 0.55 * len(names)), 3.8)
    title = f"{case.abbreviation}: goodput per implementation"
    return Drawing(stem(wish, campaign, case.abbreviation), title, caption, one(Panel(columns, facts)), size)


def _shape(values: Sequence[float], most: int, highest: float) -> list[tuple[float, float]] | None:
    """(goodput, half width): the area tells the number of values; None where points are drawn."""
    if len(values) < FEWEST:
        return None
    places, heights = density(values, 0.0, highest)
    widths = 0.42 * heights / heights.max() * (0.35 + 0.65 * len(values) / most)
    return [(float(place), float(width)) for place, width in zip(places, widths, strict=True)]


def draw(ax: Axes, panel: Panel) -> None:
    """Halves of violins with quartile lines; the right axis tells the efficiency."""
    from matplotlib.patches import Patch

    facts = panel.facts
    for number in range(len(panel.columns["implementation"])):
        _half(ax, {name: column[number] for name, column in panel.columns.items()})
    names = facts["names"]
    ax.set_xticks(range(len(names)), names, rotation=35, ha="right", rotation_mode="anchor")
    ax.set(ylabel="goodput [Mbit/s]", xlim=(-0.6, len(names) - 0.4))
    ax.set_ylim(bottom=0)
    ax.grid(axis="x", visible=False)
    if facts["rate"]:
        scale = 100 * MBPS / facts["rate"]
        right = ax.secondary_yaxis("right", functions=(lambda value: value * scale, lambda value: value / scale))
        right.set_ylabel("efficiency [%]")
    handles = [
        Patch(color=theme.SERVER, label="as server (left)"),
        Patch(color=theme.CLIENT, label="as client (right)"),
    ]
    ax.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _half(ax: Axes, row: dict[str, object]) -> None:
    left = row["role"] is Role.SERVER
    colour, sign = (theme.SERVER, -1) if left else (theme.CLIENT, 1)
    middle, shape = row["implementation"], row["shape"]
    assert isinstance(middle, int)
    if not isinstance(shape, list):
        values = np.array(row["values"]) / MBPS
        ax.plot(np.full(len(values), middle + 0.12 * sign), values, "<" if left else ">", color=colour, markersize=3)
        return
    places = np.array([place for place, _ in shape]) / MBPS
    widths = np.array([width for _, width in shape])
    if len(places) == 1:
        ax.hlines(places, middle, middle + sign * widths, color=colour, linewidth=2)
        return
    ax.fill_betweenx(places, middle, middle + sign * widths, color=colour, alpha=0.75, linewidth=0.5)
    for level, dash in zip(np.array(row["quartiles"]) / MBPS, (":", "-", ":"), strict=True):
        width = float(np.interp(level, places, widths))
        ax.hlines(level, middle, middle + sign * width, color=theme.BLACK, linewidth=0.7, linestyle=dash)


PLOT = Plot("violin", "Goodput per implementation", "results", table, draw)
