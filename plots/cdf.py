"""Distribution of the efficiency, or another number (Fig. 3 of arXiv 2202.08228): one line per test case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quicsat.plots import theme
from quicsat.plots.base import (
    Drawing,
    Group,
    Panel,
    Plot,
    failures_in_words,
    per_campaign,
    sentences,
    single_panel,
    stem,
)
from quicsat.plots.metric_axis import metric_axis
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.samples import EFFICIENCY, left_out, samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _drawing(request: PlotRequest, campaign: CampaignResults) -> Drawing | None:
    shown = metric_axis(request, EFFICIENCY)
    rows, notes = list[tuple[str, list[float], int]](), list[str]()
    for case in request.measured(campaign.results):
        many = samples(campaign.results, case.name, shown.name)
        if any(sample.values for sample in many):
            values = sorted(value for sample in many for value in shown.values(request, sample))
            rows.append((case.abbreviation, values, sum(sample.conclusive - sample.succeeded for sample in many)))
            notes.append(f"Not shown in {case.abbreviation}: {lost}" if (lost := left_out(many)) else "")
    if not rows:
        return None
    failed = sum(failed for *_, failed in rows)
    caption = sentences(
        "The figure includes all repetitions of all pairs; "
        f"{failures_in_words(failed, without=not shown.zeros(request))}",
        *notes,
    )
    facts = {"without_failed": not shown.zeros(request), "label": shown.label, "size": shown.size,
             "whole": shown.name == EFFICIENCY}  # fmt: skip
    title = f"Distribution: {shown.words}" if request.metric else PLOT.title
    return Drawing(stem(request, campaign, request.metric), title, caption, single_panel(Panel(rows, facts)))


def draw(ax: Axes, panel: Panel) -> None:
    """A step line per test case, distinguished by colour and dash."""
    size = panel.facts["size"]
    end = 100.0 if panel.facts["whole"] else 1.02 * max(values[-1] for _, values, _ in panel.rows) / size
    for number, (case, values, failed) in enumerate(panel.rows):
        style = theme.of_position(number)
        suffix = "" if panel.facts["without_failed"] else f", {failed} without success"
        shares = [100 * (rank + 1) / len(values) for rank in range(len(values))]
        ax.step([0, *(value / size for value in values), end], [0, *shares, 100], where="post", color=style.colour,
                linestyle=style.dash, label=f"{case} (n = {len(values)}{suffix})")  # fmt: skip
    ax.set(xlabel=panel.facts["label"], ylabel="share of repetitions [%]", xlim=(0, end), ylim=(0, 101))
    longest = max(len(str(text.get_label())) for text in ax.get_lines())
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=max(1, min(3, LEGEND_WIDTH // (longest + HANDLE))))


LEGEND_WIDTH, HANDLE = 130, 9
"""Characters that fit into a row of the legend, and those that a line beside its label takes."""

PLOT = Plot(
    "cdf", "Distribution of the efficiency", Group.DISTRIBUTIONS, "results",
    per_campaign(_drawing, "no repetition has such a number."), draw,
)  # fmt: skip
