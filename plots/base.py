"""The types of a plot: its name, the function that selects its numbers, and the function that draws them on axes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np

from quicsat.model.results import Pair, ResultSet
from quicsat.model.test_case import TestCase
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.report.plot_request import CampaignResults, PlotRequest

T = TypeVar("T")
Row = TypeVar("Row")
USUAL_LETTERS, LETTER_WIDTH = 12, 0.055
"""Letters of a label for which figures have room, and the inches that one more takes."""
FAR = 0.6
"""An axis starts above 0 if the lowest value is at least this share of the highest."""
DENSITY_FROM = 8
"""Values of which a density is drawn; fewer are drawn as points."""
FEW = 8
"""Pairs that have a colour and an entry of the legend each; more of them are grey."""
WIDTH = 6.3
"""Inches: the text width of an A4 page."""
MOST_ROWS = 40
"""Rows of a picture with a row for each pair."""
MOST_PICTURES = 12
"""Pictures of single pairs in a test case if neither plots nor pairs are named."""


class Group(StrEnum):
    """The headings under which a reader looks for figures, in their order."""

    PAIRS = "Pairs and links"
    DISTRIBUTIONS = "Distributions"
    TIME = "Over time"
    CAMPAIGNS = "Over many campaigns"


OF_MANY = "The thick line is the mean of all pairs, and the band shows the range between the quartiles"
NO_SERIES = "no run of these pairs has series, which traces give. `./run.py analyse` makes those of runs of quicsat."


class NothingToDrawError(Exception):
    """The numbers for a plot are missing; the message is one sentence that says why."""


@dataclass(frozen=True)
class Panel:
    """The numbers of one pair of axes."""

    rows: Sequence[Any]
    """What is drawn one by one: points, curves, boxes."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Values for all rows: scales, limits, labels."""


@dataclass(frozen=True)
class Drawing:
    """One picture: rows of panels; None leaves a place empty."""

    stem: str
    """Last part of the file name; empty if the plot has a single picture."""
    title: str
    caption: str
    """One or more sentences: n, and what is left out."""
    panels: tuple[tuple[Panel | None, ...], ...]
    size: tuple[float, float] = (WIDTH, 4.0)
    """Width and height, inches."""
    share_y: bool = False
    widths: tuple[float, ...] = ()
    """Relative widths of the columns of panels; equal if empty."""


@dataclass(frozen=True)
class Plot:
    """A kind of figure; ``plots/<name>.py`` defines it as ``PLOT``."""

    name: str
    title: str
    group: Group
    of: str
    """What it shows: ``results`` of one campaign, several ``campaigns``, or stored series: of the ``runs`` of each pair
    in a test case, a picture for each, or of ``all runs`` together."""
    table: Callable[[PlotRequest], Sequence[Drawing]]
    """Selects the numbers, without matplotlib; raises NothingToDrawError."""
    draw: Callable[[Axes, Panel], None]
    """Draws a panel on axes; makes no decision about the numbers."""


def single_panel(panel: Panel) -> tuple[tuple[Panel, ...], ...]:
    """A picture of one panel."""
    return ((panel,),)


def sentences(*parts: str) -> str:
    """Parts that are not empty, as sentences."""
    return " ".join(part if part.endswith(".") else f"{part}." for part in parts if part)


def each_case(request: PlotRequest) -> Iterator[tuple[CampaignResults, TestCase]]:
    """Every requested measurement of every campaign, as (campaign, test case)."""
    for campaign in request.campaigns:
        for case in request.measured(campaign.results):
            yield campaign, case


def per_campaign(
    drawing: Callable[[PlotRequest, CampaignResults], Drawing | None], otherwise: str
) -> Callable[[PlotRequest], Sequence[Drawing]]:
    """The table of a plot with at most one drawing per campaign; ``otherwise``: why there are none."""

    def table(request: PlotRequest) -> Sequence[Drawing]:
        found = (drawing(request, campaign) for campaign in request.campaigns)
        return nonempty([each for each in found if each is not None], otherwise)

    return table


def per_case(
    drawing: Callable[[PlotRequest, CampaignResults, TestCase], Drawing | None], otherwise: str
) -> Callable[[PlotRequest], Sequence[Drawing]]:
    """The table of a plot with at most one drawing per measurement; ``otherwise``: why there are none."""

    def table(request: PlotRequest) -> Sequence[Drawing]:
        found = (drawing(request, campaign, case) for campaign, case in each_case(request))
        return nonempty([each for each in found if each is not None], otherwise)

    return table


def stem(request: PlotRequest, campaign: CampaignResults, *parts: str) -> str:
    """Last part of a file name; includes the campaign's label if there are several campaigns."""
    named = [campaign.label] if len(request.campaigns) > 1 else []
    return "-".join(part for part in (*named, *parts) if part)


def slowest(request: PlotRequest, ranked: Sequence[Pair]) -> tuple[Sequence[Pair], str]:
    """The pairs that get a picture, and a note if others get none; ``ranked``: all, from the slowest one on."""
    if request.plots or request.pairs or len(ranked) <= MOST_PICTURES:
        return ranked, ""
    return ranked[:MOST_PICTURES], f"This is one of the {MOST_PICTURES} slowest of {len(ranked)} pairs; --pair selects"


def pair_style(results: ResultSet, pair: Pair) -> theme.Style:
    """The same in all figures of a campaign, or of a selection of its pairs if all have more than there are colours."""
    few = next((each for each in (results.planned, results.pairs) if len(each) <= len(theme.PAIR_COLOURS)), None)
    if few is not None:
        return theme.of_pair(few.index(pair), 0, len(few), len(few))
    servers, clients = results.manifest.servers, results.manifest.clients
    return theme.of_pair(servers.index(pair[0]), clients.index(pair[1]), len(servers), len(servers) * len(clients))


Spread = tuple[float, float, float, float]
"""A place on an axis, and of the values there the mean and both quartiles."""


def spread_of(lines: Iterable[Sequence[tuple[float, float]]]) -> list[Spread]:
    """Of all lines of places and values together."""
    values: dict[float, list[float]] = {}
    for line in lines:
        for place, value in line:
            values.setdefault(place, []).append(value)
    found = []
    for place, many in sorted(values.items()):
        low, high = np.quantile(many, (0.25, 0.75))
        found.append((place, float(np.mean(many)), float(low), float(high)))
    return found


def draw_spread(
    ax: Axes, lines: Iterable[Sequence[tuple[float, float]]], spread: Sequence[Spread], size: float
) -> None:
    """Pale lines, a thick one for their mean, and a band between the quartiles; ``size``: the unit of the axis."""
    for line in lines:
        ax.plot([place for place, _ in line], [value / size for _, value in line], color=theme.PALE, linewidth=0.6,
                zorder=1)  # fmt: skip
    places = [place for place, *_ in spread]
    means, lows, highs = ([row[number] / size for row in spread] for number in (1, 2, 3))
    ax.fill_between(places, lows, highs, color=theme.BLUE, alpha=0.3, linewidth=0, zorder=1.5)
    ax.plot(places, means, color=theme.BLUE, marker="o", linewidth=2)


def room(names: Iterable[str]) -> float:
    """Inches that the longest of these labels takes beyond those of ``USUAL_LETTERS``."""
    return LETTER_WIDTH * max(0, max(map(len, names), default=0) - USUAL_LETTERS)


def in_parts(rows: Mapping[Row, T], most: int) -> list[tuple[str, dict[Row, T]]]:
    """At most so many rows each, with the end of the name of the picture: empty for the first."""
    every = list(rows.items())
    starts = range(0, len(every), most)
    return [
        (str(number) if number > 1 else "", dict(every[start : start + most]))
        for number, start in enumerate(starts, start=1)
    ]


def nonempty(values: Sequence[T], otherwise: str) -> Sequence[T]:
    """The values; raises NothingToDrawError with ``otherwise`` if there are none."""
    if not values:
        raise NothingToDrawError(otherwise)
    return values


def axis_start(values: Sequence[float]) -> float:
    """Start of the axis of a distribution: 0, or just below the values if all of them are far from 0."""
    lowest, highest = min(values), max(values)
    return 0.0 if lowest < FAR * highest else max(0.0, lowest - 0.3 * (highest - lowest) - 0.01 * highest)


def failures_in_words(count: int, *, without: bool) -> str:
    """The part of a caption that says whether failed repetitions count as 0 or are left out."""
    if not count:
        return "none failed or timed out"
    if count == 1:
        return f"the one that failed or timed out {'is not shown' if without else 'counts as 0'}"
    return f"the {count} that failed or timed out {'are not shown' if without else 'count as 0'}"
