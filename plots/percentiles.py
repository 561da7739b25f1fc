"""Completion times per size of the files (Fig. 2 of the SATCOM paper): 5th, 25th, 50th, 75th and 95th percentile."""

from collections.abc import Sequence

import numpy as np

from quicsat.model.results import RunResult
from quicsat.model.text import counted
from quicsat.model.units import byte_size
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import WIDTH, Drawing, Group, Panel, Plot, per_campaign, sentences, single_panel, stem
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.samples import value_of

COMPLETION = "completion_time"
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def _drawing(request: PlotRequest, campaign: CampaignResults) -> Drawing | None:
    """The smallest files at the left, a box per test case and protocol."""
    rows = list[tuple[str, str, list[float]]]()
    lost, count = 0, 0
    for case in sorted(request.measured(campaign.results), key=lambda each: each.total_size):
        mine = [result for result in campaign.results.results if result.test_case == case.name]
        for protocol, group in _by_protocol(mine).items():
            times = [time for result in group if (time := value_of(result, COMPLETION)) is not None]
            lost += len(group) - len(times)
            if times:
                label = f"{byte_size(case.total_size)}\n{case.abbreviation}, {protocol}\nn = {len(times)}"
                rows.append((label, protocol, np.quantile(times, LEVELS).tolist()))
                count += len(times)
    if not rows:
        return None
    caption = sentences(
        f"The figure shows the completion times of n = {counted(count, 'repetition')} of all "
        "pairs, from the client's first "
        "packet to the last new byte. Whiskers show the 5th and 95th percentiles, boxes the quartiles, and lines the "
        "medians",
        f"Not shown: {lost} of {counted(count + lost, 'repetition')}, without success or completion time"
        if lost
        else "",
    )
    title = "Completion time per file size"
    size_in = (max(WIDTH, 1.0 * len(rows) + 1), 3.8)
    return Drawing(stem(request, campaign), title, caption, single_panel(Panel(rows)), size_in)


def _by_protocol(results: Sequence[RunResult]) -> dict[str, list[RunResult]]:
    groups: dict[str, list[RunResult]] = {}
    for result in results:
        groups.setdefault(result.protocol.value, []).append(result)
    return groups


def draw(ax: Axes, panel: Panel) -> None:
    """Box-percentile plots on a logarithmic axis."""
    boxes = [theme.box(percentiles) | {"label": label} for label, _, percentiles in panel.rows]
    kinds = list(dict.fromkeys(protocol for _, protocol, _ in panel.rows))
    drawn = ax.bxp(boxes, showfliers=False, patch_artist=True, medianprops={"color": theme.BLACK, "linewidth": 1.5})
    for box, (_, protocol, _) in zip(drawn["boxes"], panel.rows, strict=True):
        number = kinds.index(protocol)
        box.set(facecolor=theme.of_position(number).colour, alpha=0.6, hatch=("", "//", "..")[number % 3])
    theme.logarithmic(ax, "y")
    ax.set(xlabel="size of the files, test case, protocol", ylabel="completion time [s]")
    ax.grid(axis="x", visible=False)
    ax.grid(axis="y", which="minor", linewidth=0.3)


PLOT = Plot(
    "percentiles", "Completion time per size of the files", Group.DISTRIBUTIONS, "results",
    per_campaign(_drawing, "no repetition has a completion time."), draw,
)  # fmt: skip
