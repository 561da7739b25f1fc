"""A metric against the swept keys of a family of test cases: lines for one key, a map of each pair for two."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from typing import Any

import numpy as np

from quicsat.model.family import SweptValue
from quicsat.model.results import Pair
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import (
    FEW,
    OF_MANY,
    Drawing,
    Group,
    Panel,
    Plot,
    draw_spread,
    in_parts,
    nonempty,
    pair_style,
    sentences,
    single_panel,
    spread_of,
    stem,
)
from quicsat.plots.metric_axis import MetricAxis, metric_axis
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.intervals import FEWEST, Mean, of_repetitions
from quicsat.statistics.overview import by_family
from quicsat.statistics.samples import GOODPUT, MARKS, Sample, samples

WIDE = 20.0
"""Numbers whose largest is more than this multiple of the smallest have a logarithmic axis."""
COLUMNS = 4
"""Maps side by side."""
MOST_MAPS = 24
"""Maps in a picture; more are in further pictures."""
QUEUE = re.compile(r"\bqueue( limit)?$")
"""Keys whose numbers without a unit are packets."""


@dataclass(frozen=True)
class Axis:
    """A swept key as an axis."""

    key: str
    values: tuple[SweptValue, ...]
    """In ascending order; words in that of the document."""

    @property
    def is_numeric(self) -> bool:
        """Whether all values are numbers of the same kind."""
        kinds = {value.unit == "" for value in self.values}
        return len(kinds) == 1 and all(value.number is not None for value in self.values)

    @property
    def size(self) -> float:
        """The unit of the axis in SI base units: that of the largest value."""
        return self.values[-1].unit_size if self.is_numeric else 1.0

    @property
    def label(self) -> str:
        """``forward loss [%]``."""
        unit = self.values[-1].unit if self.is_numeric else ""
        if self.is_numeric and not unit and QUEUE.search(self.key):
            unit = "packets"
        return f"{self.key} [{unit}]" if unit else self.key

    def texts(self) -> list[str]:
        """The values as the axis shows them."""
        if not self.is_numeric:
            return [value.text for value in self.values]
        return [f"{(value.number or 0.0) / self.size:g}" for value in self.values]

    def places(self) -> list[float]:
        """Numbers in the unit of the axis; of words 0, 1, …."""
        if not self.is_numeric:
            return [float(number) for number in range(len(self.values))]
        return [(value.number or 0.0) / self.size for value in self.values]


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing for each family; with more than two swept keys one for each combination of the further values."""
    drawings = []
    for campaign in request.campaigns:
        for cases in by_family(request.measured(campaign.results)).values():
            drawings += _drawings(request, campaign, cases)
    return nonempty(drawings, "no family has results of two of its members.")


def _drawings(request: PlotRequest, campaign: CampaignResults, cases: Sequence[TestCase]) -> list[Drawing]:
    axes = [axis for axis in axes_of(cases) if len(axis.values) > 1]
    if not axes:
        return []
    shown, further = axes[:2], axes[2:]
    drawings: list[Drawing] = []
    for chosen in product(*(axis.values for axis in further)):
        mine = [case for case in cases if all(swept_value(case, value.key) == value for value in chosen)]
        members = {tuple(swept_value(case, axis.key) for axis in shown): case for case in mine}
        rest = [f"{value.key} {value.text}" for value in chosen]
        if len(shown) == 2:
            drawings += _maps(request, campaign, shown, members, rest)
        elif drawing := _lines(request, campaign, shown, members, rest):
            drawings.append(drawing)
    return drawings


def axes_of(cases: Sequence[TestCase]) -> list[Axis]:
    """The swept keys of a family, in the order of the document."""
    found: dict[str, dict[SweptValue, None]] = {}
    for case in cases:
        for value in case.family.values if case.family else ():
            found.setdefault(value.key, {})[value] = None
    return [
        Axis(key, tuple(sorted(values, key=lambda value: inf if value.number is None else value.number)))
        for key, values in found.items()
    ]


def swept_value(case: TestCase, key: str) -> SweptValue:
    """The value of a swept key in a member of the family."""
    return next(value for value in (case.family.values if case.family else ()) if value.key == key)


Members = Mapping[tuple[SweptValue, ...], TestCase]


def pairs_of(
    request: PlotRequest, campaign: CampaignResults, members: Members
) -> dict[tuple[str, str], dict[tuple[SweptValue, ...], Sample]]:
    """The samples of each pair that succeeded in a member, by swept values."""
    found: dict[tuple[str, str], dict[tuple[SweptValue, ...], Sample]] = {}
    for values, case in members.items():
        for sample in samples(campaign.results, case.name, metric_axis(request, GOODPUT).name):
            found.setdefault((sample.server, sample.client), {})[values] = sample
    return {pair: mine for pair, mine in found.items() if any(sample.values for sample in mine.values())}


def _lines(
    request: PlotRequest, campaign: CampaignResults, axes: Sequence[Axis], members: Members, rest: Sequence[str]
) -> Drawing | None:
    [axis] = axes
    number = metric_axis(request, GOODPUT)
    pairs = pairs_of(request, campaign, members)
    places = dict(zip(axis.values, axis.places(), strict=True))
    rows: list[tuple[str, list[tuple[float, Mean]], theme.Style]] = []
    for pair, mine in pairs.items():
        means = ((places[key[0]], of_repetitions(sample.values)) for key, sample in mine.items())
        points = sorted((place, mean) for place, mean in means if mean is not None)
        rows.append((", ".join(pair), points, pair_style(campaign.results, pair)))
    if len({place for _, points, _ in rows for place, _ in points}) < 2:
        return None
    facts = {
        "all": spread_of(values_of(rows)), "places": axis.places(), "texts": axis.texts(), "x": axis.label,
        "y": number.label, "size": number.size, "logarithmic": axis.is_numeric and _is_wide(axis.places()),
    }  # fmt: skip
    has_intervals = len(pairs) <= FEW and any(mean.ends is not None for _, points, _ in rows for _, mean in points)
    few = f" (with fewer than {FEWEST} repetitions, their range)"
    spread = f", with its 95 % interval over repetitions{few}" if has_intervals else ""
    return Drawing(
        _stem(request, campaign, members, rest),
        _title(members, number, axes, rest),
        sentences(
            f"Each line shows the mean {number.words} of a pair (server, client){spread}",
            OF_MANY if len(pairs) > FEW else "",
            numbers_in_words(pairs),
        ),
        single_panel(Panel(rows, facts)),
    )


def values_of(rows: Iterable[tuple[str, Sequence[tuple[float, Mean]], theme.Style]]) -> list[list[tuple[float, float]]]:
    """Places and values of each line."""
    return [[(place, mean.value) for place, mean in points] for _, points, _ in rows]


def _maps(
    request: PlotRequest, campaign: CampaignResults, axes: Sequence[Axis], members: Members, rest: Sequence[str]
) -> Iterator[Drawing]:
    everything = pairs_of(request, campaign, members)
    samples_of = (each for mine in everything.values() for each in mine.values())
    highest = max((mean.value for each in samples_of if (mean := of_repetitions(each.values))), default=0.0)
    for part, pairs in in_parts(everything, MOST_MAPS):
        made = _map(request, axes, members, rest, pairs, highest)
        yield replace(made, stem=_stem(request, campaign, members, [*rest, part]))


def _map(
    request: PlotRequest,
    axes: Sequence[Axis],
    members: Members,
    rest: Sequence[str],
    pairs: Mapping[Pair, Mapping[tuple[SweptValue, ...], Sample]],
    highest: float,
) -> Drawing:
    number = metric_axis(request, GOODPUT)
    facts: dict[str, Any] = {
        "columns": axes[0].texts(), "rows": axes[1].texts()[::-1], "x": axes[0].label, "y": axes[1].label,
        "highest": highest, "size": number.size, "label": f"mean {number.label}",
    }  # fmt: skip
    width = min(len(pairs), COLUMNS)
    panels: list[Panel] = []
    for pair, mine in pairs.items():
        rows = [
            map_cell(axes[0].values.index(key[0]), len(axes[1].values) - 1 - axes[1].values.index(key[1]), mine[key])
            for key in product(*(axis.values for axis in axes))
            if key in mine
        ]
        outer = {"left": len(panels) % width == 0, "last": len(panels) % width == width - 1}
        panels.append(Panel(rows, {**facts, **outer, "title": ", ".join(pair)}))
    grid = tuple(tuple(panels[start : start + width]) for start in range(0, len(panels), width))
    size = (2.0 + width * (0.6 + 0.42 * len(axes[0].values)), 1.6 + len(grid) * (1.0 + 0.34 * len(axes[1].values)))
    caption = sentences(
        f"Each panel shows the mean {number.words} of a pair (server, client). Lighter colours mean lower values",
        numbers_in_words(pairs), "T means that at least one repetition timed out, and × that at least one failed",
    )  # fmt: skip
    title = _title(members, number, axes, rest)
    return Drawing("", title, caption, grid, (max(size[0], 5.0), max(size[1], 3.0)))


def map_cell(column: int, row: int, sample: Sample) -> tuple[int, int, float | None, str]:
    """A row of the panel of a map: column and row, mean of the sample in SI base units, and the mark of its outcome."""
    mean = of_repetitions(sample.values)
    return column, row, mean.value if mean else None, MARKS.get(sample.pair_outcome, "")


def _is_wide(places: Sequence[float]) -> bool:
    positive = [place for place in places if place > 0]
    return min(places) >= 0 and len(positive) > 1 and max(positive) > WIDE * min(positive)


def _stem(request: PlotRequest, campaign: CampaignResults, members: Members, rest: Sequence[str]) -> str:
    family = next(case.family for case in members.values() if case.family)
    others = (re.sub(r"[^a-z0-9.]+", "", text.lower().replace("%", "pct")) for text in rest)
    return stem(request, campaign, request.metric, family.abbreviation, *others)


def _title(members: Members, number: MetricAxis, axes: Sequence[Axis], rest: Sequence[str]) -> str:
    family = next(case.family for case in members.values() if case.family)
    keys = " and ".join(axis.key for axis in axes)
    return ", ".join([f"{family.abbreviation}: {number.words} against {keys}", *rest])


def numbers_in_words(pairs: Mapping[tuple[str, str], Mapping[tuple[SweptValue, ...], Sample]]) -> str:
    """Two sentences of a caption: n, and how many repetitions did not succeed."""
    many = [sample for mine in pairs.values() for sample in mine.values()]
    succeeded, conclusive = sum(sample.succeeded for sample in many), sum(sample.conclusive for sample in many)
    lost = conclusive - succeeded
    left = (
        f"{lost} failed or timed out and {'is' if lost == 1 else 'are'} not shown"
        if lost
        else "None failed or timed out"
    )
    return (
        f"The figure includes n = {counted(succeeded, 'successful repetition')} of "
        f"{counted(len(pairs), 'pair')}. {left}"
    )


def draw(ax: Axes, panel: Panel) -> None:
    """Lines with intervals, or a map."""
    if "places" in panel.facts:
        _draw_lines(ax, panel)
    else:
        draw_map(ax, panel)


def _draw_lines(ax: Axes, panel: Panel) -> None:
    facts = panel.facts
    smallest = min((place for place in facts["places"] if place > 0), default=0.0)
    if facts["logarithmic"]:
        ax.set_xscale("symlog", linthresh=smallest, linscale=0.6)
    draw_lines(ax, panel, dict(zip(facts["places"], facts["texts"], strict=True)))
    if facts["logarithmic"]:
        ax.set_xlim(left=-0.08 * smallest if 0 in facts["places"] else 0.8 * smallest)


def draw_lines(ax: Axes, panel: Panel, ticks: Mapping[float, str]) -> None:
    """Lines through means, with intervals where there are repetitions; of many pairs, their spread."""
    from matplotlib.ticker import FixedLocator, NullLocator

    facts, few = panel.facts, len(panel.rows) <= FEW
    if not few:
        draw_spread(ax, values_of(panel.rows), facts["all"], facts["size"])
    for pair, points, style in panel.rows if few else ():
        xs, ys = [place for place, _ in points], [mean.value / facts["size"] for _, mean in points]
        ax.plot(xs, ys, color=style.colour, linestyle=style.dash, marker=style.mark, markersize=4, label=pair)
        _draw_intervals(ax, points, facts["size"], style.colour)
    ax.xaxis.set_major_locator(FixedLocator(list(ticks)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticklabels(ticks.values())
    ax.set(xlabel=facts["x"], ylabel=f"mean {facts['y']}")
    ax.set_ylim(bottom=0)
    if few:
        ax.legend(title="server, client")


def _draw_intervals(ax: Axes, points: Sequence[tuple[float, Mean]], size: float, colour: str) -> None:
    """A bar for the interval of each mean that has one; ``size``: the unit of the axis in SI base units."""
    for place, mean in points:
        if mean.ends is not None:
            ax.plot([place, place], [end / size for end in mean.ends], color=colour, linewidth=3, alpha=0.35,
                    solid_capstyle="butt")  # fmt: skip


def draw_map(ax: Axes, panel: Panel) -> None:
    """A map with its numbers, and a colour bar at the last one of a row."""
    facts = panel.facts
    numbers = np.full((len(facts["rows"]), len(facts["columns"])), np.nan)
    for x, y, value, _ in panel.rows:
        numbers[y, x] = np.nan if value is None else value / facts["size"]
    highest = facts["highest"] / facts["size"] or 1.0
    image = ax.imshow(numbers, cmap=theme.sequential(), vmin=0, vmax=highest, aspect="auto")
    for x, y, value, mark in panel.rows:
        share = 0.0 if value is None else value / facts["size"] / highest
        words = mark if value is None else f"{value / facts['size']:.3g}{mark}"
        ax.text(x, y, words, ha="center", va="center", fontsize=6, color="white" if share > 0.5 else theme.BLACK)
    ax.set_xticks(range(len(facts["columns"])), facts["columns"])
    ax.set_yticks(range(len(facts["rows"])), facts["rows"] if facts["left"] else [""] * len(facts["rows"]))
    ax.set(title=facts["title"], xlabel=facts["x"], ylabel=facts["y"] if facts["left"] else "")
    ax.grid(visible=False)
    ax.tick_params(length=0)
    if facts["last"]:
        ax.figure.colorbar(image, ax=ax, shrink=0.9, aspect=18, label=facts["label"])


PLOT = Plot("sweep", "Families of test cases", Group.PAIRS, "results", table, draw)
