"""Distribution of the efficiency, or another number (Fig. 3 of arXiv 2202.08228): one line per test case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quicsat.plots import theme
from quicsat.plots.base import Drawing, Group, Panel, Plot, failures_in_words, nonempty, sentences, single_panel, stem
from quicsat.plots.metric_axis import metric_axis
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.samples import EFFICIENCY, left_out, samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per campaign."""
    drawings = [drawing for campaign in request.campaigns if (drawing := _drawing(request, campaign)) is not None]
    return nonempty(drawings, "no repetition has such a number.")


def _drawing(request: PlotRequest, campaign: CampaignResults) -> Drawing | None:
    shown = metric_axis(request, EFFICIENCY)
    columns: dict[str, list[object]] = {"case": [], "value": [], "n": [], "failed": []}
    notes = []
    for case in request.measured(campaign.results):
        many = samples(campaign.results, case.name, shown.name)
        values = [v for sample in many for v in shown.values(request, sample)]
        failed = sum(sample.conclusive - sample.succeeded for sample in many)
        if not any(sample.values for sample in many):
            continue
        columns["case"].append(case.abbreviation)
        columns["value"].append(sorted(values))
        columns["n"].append(len(values))
        columns["failed"].append(failed)
        notes.append(f"Not shown in {case.abbreviation}: {lost}" if (lost := left_out(many)) else "")
    if not columns["case"]:
        return None
    total = sum(int(str(count)) for count in columns["failed"])
    caption = sentences(
        "The figure includes all repetitions of all pairs; "
        f"{failures_in_words(total, without=not shown.zeros(request))}",
        *notes,
    )
    facts = {"without_failed": not shown.zeros(request), "label": shown.label, "size": shown.size,
             "whole": shown.name == EFFICIENCY}  # fmt: skip
    title = f"Distribution: {shown.words}" if request.metric else PLOT.title
    return Drawing(stem(request, campaign, request.metric), title, caption, single_panel(Panel(columns, facts)))


def draw(ax: Axes, panel: Panel) -> None:
    """A step line per test case, distinguished by colour and dash."""
    columns = panel.columns
    failed, size = panel.facts["without_failed"], panel.facts["size"]
    end = 100.0 if panel.facts["whole"] else 1.02 * max(each[-1] for each in columns["value"]) / size
    for number, case in enumerate(columns["case"]):
        style = theme.of_position(number)
        values = [value / size for value in columns["value"][number]]
        suffix = "" if failed else f", {columns['failed'][number]} without success"
        label = f"{case} (n = {columns['n'][number]}{suffix})"
        shares = [100 * (rank + 1) / len(values) for rank in range(len(values))]
        ax.step([0, *values, end], [0, *shares, 100], where="post", color=style.colour, linestyle=style.dash,
                label=label)  # fmt: skip
    ax.set(xlabel=panel.facts["label"], ylabel="share of repetitions [%]", xlim=(0, end), ylim=(0, 101))
    longest = max(len(str(text.get_label())) for text in ax.get_lines())
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=max(1, min(3, LEGEND_WIDTH // (longest + HANDLE))))


LEGEND_WIDTH, HANDLE = 130, 9
"""Characters that fit into a row of the legend, and those that a line beside its label takes."""

PLOT = Plot("cdf", "Distribution of the efficiency", Group.DISTRIBUTIONS, "results", table, draw)
