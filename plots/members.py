"""The change of goodput of each member from a baseline: a row of points per cell."""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from quicsat.model.results import ResultSet
from quicsat.model.text import counted
from quicsat.model.units import PERCENT
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import (
    MOST_ROWS,
    WIDTH,
    Drawing,
    Group,
    Panel,
    Plot,
    pair_style,
    per_campaign,
    sentences,
    single_panel,
    stem,
)
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.samples import GOODPUT, Sample, samples

HEIGHT, REST = 0.24, 1.2
"""Inches of a row, and of all else."""


class CellChanges(NamedTuple):
    """A cell."""

    label: str
    style: theme.Style
    changes: tuple[float, ...]
    """Of each member that both have, %."""


def _rows(request: PlotRequest, campaign: CampaignResults, before: ResultSet) -> Iterator[CellChanges]:
    for case in request.measured(campaign.results):
        first = {(each.server, each.client): each for each in samples(before, case.name, GOODPUT)}
        for sample in samples(campaign.results, case.name, GOODPUT):
            pair = sample.server, sample.client
            changes = _changes(first[pair], sample) if pair in first else ()
            if changes and (not request.pairs or pair in request.pairs):
                label = f"{case.abbreviation}: {sample.server}, {sample.client}"
                yield CellChanges(label, pair_style(campaign.results, pair), changes)


def _changes(first: Sample, second: Sample) -> tuple[float, ...]:
    before, after = first.by_seed, second.by_seed
    return tuple((after[seed] / before[seed] - 1) / PERCENT for seed in before if before[seed] and seed in after)


def _drawing(request: PlotRequest, campaign: CampaignResults) -> Drawing | None:
    found = list(_rows(request, campaign, request.baseline)) if request.baseline is not None else []
    if not found:
        return None
    rows = found[:MOST_ROWS]
    lost = len(found) - len(rows)
    caption = sentences(
        f"Each point is a member of a test case, a server and a client, n = {sum(len(row.changes) for row in rows)}",
        "Lines show means",
        f"Not shown: {counted(lost, 'cell')}" if lost else "",
    )
    size = (WIDTH, HEIGHT * len(rows) + REST)
    title = "Change of goodput of each member from the baseline"
    return Drawing(stem(request, campaign), title, caption, single_panel(Panel(rows)), size)


def draw(ax: Axes, panel: Panel) -> None:
    """Points of one row are at one height."""
    rows: Sequence[CellChanges] = panel.rows
    ax.axvline(0, color=theme.GREY, linewidth=1)
    for place, row in enumerate(rows):
        heights = [place] * len(row.changes)
        ax.plot(row.changes, heights, linestyle="none", marker=row.style.mark, color=row.style.colour, alpha=0.6)
        mean = fmean(row.changes)
        ax.plot([mean, mean], [place - 0.35, place + 0.35], color=theme.BLACK, linewidth=1.5)
    ax.set_yticks(range(len(rows)), [row.label for row in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel("change of goodput [%]")


PLOT = Plot(
    "members", "Change of each member from a baseline", Group.DISTRIBUTIONS, "results",
    per_campaign(_drawing, "there is no baseline with members of these pairs."), draw,
)  # fmt: skip
