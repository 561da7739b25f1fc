"""Histogram of completion times: how long the pairs took on average, with the shortest, mean, median and deadline."""

from statistics import fmean, median

import numpy as np

from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.model.units import seconds
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import Drawing, Group, Panel, Plot, per_case, sentences, single_panel, stem
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.samples import samples, without_number

COMPLETION = "completion_time"
LINES = {
    "shortest": (theme.GREEN, ":"), "mean": (theme.BLACK, "--"), "median": (theme.BLACK, "-"),
    "deadline": (theme.VERMILION, "-."),
}  # fmt: skip


def _drawing(request: PlotRequest, campaign: CampaignResults, case: TestCase) -> Drawing | None:
    many = samples(campaign.results, case.name, COMPLETION)
    means = [sample.mean for sample in many if sample.mean is not None]
    if not means:
        return None
    counts, edges = np.histogram(means, bins=min(40, max(5, round(2 * len(means) ** 0.5))))
    facts = {
        "width": float(edges[1] - edges[0]),
        "marks": {"shortest": min(means), "mean": fmean(means), "median": median(means)},
        "timeout": case.timeout if case.timeout <= 1.3 * max(means) else None,
    }
    caption = sentences(
        "The figure shows the mean completion time of the successful repetitions of n = "
        f"{counted(len(means), 'pair')}, from the "
        f"client's first packet to the last new byte. The time limit is {seconds(case.timeout)}",
        f"Not shown: {lost}" if (lost := without_number(many)) else "",
    )
    title = f"{case.abbreviation}: completion times"
    return Drawing(
        stem(request, campaign, case.abbreviation),
        title,
        caption,
        single_panel(Panel(list(zip(edges[:-1].tolist(), counts.tolist(), strict=True)), facts)),
        (6.3, 3.4),
    )


def draw(ax: Axes, panel: Panel) -> None:
    """Bars and lines."""
    from matplotlib.ticker import MaxNLocator

    starts, counts = zip(*panel.rows, strict=True)
    ax.bar(starts, counts, width=panel.facts["width"], align="edge", color=theme.SKY, edgecolor="white", linewidth=0.5)
    marks = dict(panel.facts["marks"])
    if panel.facts["timeout"] is not None:
        marks["deadline"] = panel.facts["timeout"]
    for name, time in marks.items():
        colour, dash = LINES[name]
        ax.axvline(time, color=colour, linestyle=dash, label=f"{name}: {seconds(time)}")
    ax.set(xlabel="completion time [s]", ylabel="pairs")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(axis="x", visible=False)
    theme.legend_above(ax)


PLOT = Plot(
    "histogram", "Completion times", Group.DISTRIBUTIONS, "results",
    per_case(_drawing, "no repetition has a completion time."), draw,
)  # fmt: skip
