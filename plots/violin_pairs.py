"""A violin of the goodput, or another number, for each pair in a test case, the best pair at the top."""

from statistics import median

from quicsat.model.test_case import TestCase, constant_rate
from quicsat.model.text import counted
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import (
    DENSITY_FROM,
    WIDTH,
    Drawing,
    Group,
    Panel,
    Plot,
    axis_start,
    failures_in_words,
    pair_style,
    per_case,
    room,
    sentences,
    single_panel,
    stem,
)
from quicsat.plots.metric_axis import metric_axis
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.samples import GOODPUT, left_out, samples

MOST = 40
"""Pairs that fit on a page."""


def _drawing(request: PlotRequest, campaign: CampaignResults, case: TestCase) -> Drawing | None:
    shown = metric_axis(request, GOODPUT)
    many = samples(campaign.results, case.name, shown.name)
    rows = [
        (f"{each.server}, {each.client} (n = {len(values)})", sorted(values), pair_style(campaign.results, each.pair))
        for each in many
        if (values := shown.values(request, each))
    ]
    if not any(each.values for each in many) or len(rows) > MOST:
        return None
    rows.sort(key=lambda row: median(row[1]), reverse=not shown.higher)
    begin = axis_start([value for _, values, _ in rows for value in values])
    failed = sum(each.failed for each in many)
    rate = constant_rate(case.link) if shown.name == GOODPUT else None
    caption = sentences(
        f"The figure shows n = {counted(sum(len(values) for _, values, _ in rows), 'repetition')} of "
        f"{counted(len(rows), 'pair')} (server, client), ordered by their medians; "
        f"{failures_in_words(failed, without=not shown.zeros(request))}",
        "Marks show the repetitions, lines the medians, and the height the density, if there are at least "
        f"{DENSITY_FROM} repetitions",
        "The axis does not begin at 0" if begin else "",
        f"The link carries {rate / shown.size:g} {shown.unit}" if rate else "",
        f"Not shown: {lost}" if (lost := left_out(many)) else "",
    )
    facts = {"label": shown.label, "size": shown.size, "begin": begin}
    return Drawing(
        stem(request, campaign, request.metric, case.abbreviation),
        f"{case.abbreviation}: {shown.words} of each pair",
        caption,
        single_panel(Panel(rows, facts)),
        (WIDTH + room(name for name, *_ in rows), 1.6 + 0.34 * len(rows)),
    )


def draw(ax: Axes, panel: Panel) -> None:
    """A row per pair: its violin if there are enough repetitions, their marks, and the median."""
    import seaborn

    size = panel.facts["size"]
    for row, (_, values, style) in enumerate(panel.rows):
        shown = [value / size for value in values]
        if len(shown) >= DENSITY_FROM and shown[0] < shown[-1]:
            seaborn.violinplot(
                x=shown, y=[row] * len(shown), orient="h", native_scale=True, density_norm="width", inner=None,
                bw_adjust=0.5, cut=0, width=0.8, color=style.colour, saturation=1, linewidth=0, alpha=0.4, ax=ax,
            )  # fmt: skip
        ax.plot(shown, [row] * len(shown), marker=style.mark, color=style.colour, markersize=4, linestyle="none",
                markeredgecolor="white", markeredgewidth=0.3)  # fmt: skip
        ax.vlines(median(shown), row - 0.36, row + 0.36, color=theme.BLACK, linewidth=1.3)
    ax.set_yticks(range(len(panel.rows)), [name for name, *_ in panel.rows])
    ax.set(xlabel=panel.facts["label"], ylabel="", ylim=(-0.6, len(panel.rows) - 0.4))
    ax.set_xlim(left=panel.facts["begin"] / size)
    ax.grid(axis="y", visible=False)


PLOT = Plot(
    "violin-pairs", "Goodput of each pair", Group.DISTRIBUTIONS, "results",
    per_case(_drawing, f"no test case has results of 1 to {MOST} pairs. Select pairs with --pair."), draw,
)  # fmt: skip
