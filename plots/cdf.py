"""Distribution of the efficiency, or another number (Fig. 3 of arXiv 2202.08228): one line per test case."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from quicsat.plots import theme
from quicsat.plots.axes import Axes
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
from quicsat.plots.metric_axis import MetricAxis, metric_axis
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.samples import EFFICIENCY, Sample, left_out, samples


class DistributionLine(NamedTuple):
    """A line."""

    name: str
    values: list[float]
    """In ascending order, SI base units."""
    failed: int
    """Repetitions that failed or timed out."""
    style: theme.Style


def _drawing(request: PlotRequest, campaign: CampaignResults) -> Drawing | None:
    shown = metric_axis(request, EFFICIENCY)
    rows, notes = list[DistributionLine](), list[str]()
    for case in request.measured(campaign.results):
        many = samples(campaign.results, case.name, shown.name)
        if any(sample.values for sample in many):
            rows.append(row(request, shown, case.abbreviation, many, theme.of_position(len(rows))))
            notes.append(f"Not shown in {case.abbreviation}: {lost}" if (lost := left_out(many)) else "")
    if not rows:
        return None
    failed = sum(each.failed for each in rows)
    caption = sentences(
        "The figure includes all repetitions of all pairs; "
        f"{failures_in_words(failed, without=not shown.zeros(request))}",
        *notes,
    )
    title = f"Distribution: {shown.words}" if request.metric else PLOT.title
    return Drawing(
        stem(request, campaign, request.metric), title, caption, single_panel(Panel(rows, facts(request, shown)))
    )


def row(
    request: PlotRequest, shown: MetricAxis, name: str, many: Iterable[Sample], style: theme.Style
) -> DistributionLine:
    """The line of these samples."""
    chosen = list(many)
    values = sorted(value for sample in chosen for value in shown.values(request, sample))
    return DistributionLine(name, values, sum(sample.failed for sample in chosen), style)


def facts(request: PlotRequest, shown: MetricAxis) -> Mapping[str, Any]:
    """For all lines."""
    return {"without_failed": not shown.zeros(request), "label": shown.label, "size": shown.size,
            "whole": shown.name == EFFICIENCY}  # fmt: skip


def draw(ax: Axes, panel: Panel) -> None:
    """A step line per row, distinguished by colour and dash."""
    size = panel.facts["size"]
    end = 100.0 if panel.facts["whole"] else 1.02 * max(values[-1] for _, values, *_ in panel.rows) / size
    for name, values, failed, style in panel.rows:
        suffix = "" if panel.facts["without_failed"] else f", {failed} without success"
        shares = [100 * (rank + 1) / len(values) for rank in range(len(values))]
        ax.step([0, *(value / size for value in values), end], [0, *shares, 100], where="post", color=style.colour,
                linestyle=style.dash, label=f"{name} (n = {len(values)}{suffix})")  # fmt: skip
    ax.set(xlabel=panel.facts["label"], ylabel="share of repetitions [%]", xlim=(0, end), ylim=(0, 101))
    theme.legend_above(ax, most=3)


PLOT = Plot(
    "cdf", "Distribution of the efficiency", Group.DISTRIBUTIONS, "results",
    per_campaign(_drawing, "no repetition has such a number."), draw,
)  # fmt: skip
