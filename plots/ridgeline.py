"""Ridgelines: the distribution of the efficiency of each server, and of each client, one above the other."""

from collections.abc import Sequence
from statistics import fmean

from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.model.units import PERCENT
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import DENSITY_FROM, Drawing, Group, Panel, Plot, axis_start, per_case, room, sentences, stem
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.samples import EFFICIENCY, Sample, left_out, samples

OVERLAP = 1.5
"""Height of a ridge, in distances of two."""
NARROW = 0.5
"""Per cent: ridges that are narrower become a line, or they could not be seen."""

RidgeRow = tuple[float, str, list[float]]
"""Mean, name and values."""


def _drawing(request: PlotRequest, campaign: CampaignResults, case: TestCase) -> Drawing | None:
    """Servers at the left, clients at the right, the best at the top."""
    many = samples(campaign.results, case.name, EFFICIENCY)
    panels = [panel for role in ("server", "client") if (panel := _panel(many, role)) is not None]
    if not panels:
        return None
    rows = max(len(panel.rows) for panel in panels)
    n = sum(len(sample.values) for sample in many)
    caption = sentences(
        f"Each panel shows n = {counted(n, 'successful repetition')}. Rows are ordered by their mean, which is the "
        f"white mark. Bars show the repetitions of rows with fewer than {DENSITY_FROM} of them",
        "The axes do not begin at 0" if panels[0].facts["begin"] else "",
        f"Not shown: {lost}" if (lost := left_out(many)) else "",
    )
    title = f"{case.abbreviation}: efficiency per server and per client"
    width = 6.8 + sum(room(_label(row) for row in panel.rows) for panel in panels)
    name = stem(request, campaign, case.abbreviation)
    return Drawing(name, title, caption, (tuple(panels),), (width, 1.7 + 0.3 * rows))


def _label(row: RidgeRow) -> str:
    return f"{row[1]} (n = {len(row[2])})"


def _panel(many: Sequence[Sample], role: str) -> Panel | None:
    groups: dict[str, list[float]] = {}
    for sample in many:
        groups.setdefault(getattr(sample, role), []).extend(sample.values)
    rows = sorted((fmean(values), name, values) for name, values in groups.items() if values)
    if not rows:
        return None
    everything = [value for _, _, values in rows for value in values]
    return Panel(rows, {"role": role, "begin": axis_start(everything), "limit": 1.02 * max(everything)})


def draw(ax: Axes, panel: Panel) -> None:
    """Upper halves of violins from top to bottom, so that lower ones stand in front."""
    import seaborn

    count = len(panel.rows)
    for row, (mean, name, shares) in reversed(list(enumerate(panel.rows))):
        style = theme.of_implementation(name)
        values = [share / PERCENT for share in shares]
        above = 3 + count - row
        if len(values) < DENSITY_FROM:
            ax.plot(values, [row + 0.08] * len(values), "|", color=style.colour, markersize=9, markeredgewidth=1.2)
        elif max(values) - min(values) < NARROW:
            ax.vlines(fmean(values), row, row + OVERLAP, color=style.colour, linewidth=1.5, zorder=above)
        else:
            seaborn.violinplot(
                x=values, y=[row + OVERLAP / 2] * len(values), hue=["upper"] * len(values),
                hue_order=["lower", "upper"], orient="h", split=True, dodge=False, native_scale=True,
                density_norm="width", inner=None, bw_adjust=0.5, cut=0, width=OVERLAP, palette=[style.colour] * 2,
                saturation=1, linewidth=0.8, linecolor="white", alpha=0.85, legend=False, ax=ax, zorder=above,
            )  # fmt: skip
        ax.plot([mean / PERCENT], [row + 0.08], marker=style.mark, color="white", markersize=4,
                markeredgecolor=theme.BLACK, markeredgewidth=0.5, zorder=5 + count)  # fmt: skip
    ax.set_yticks(range(count), [_label(row) for row in panel.rows])
    ax.set(xlabel="efficiency [%]", ylabel=panel.facts["role"], ylim=(-0.3, count - 0.8 + OVERLAP))
    ax.set_xlim(panel.facts["begin"] / PERCENT, min(100.0, panel.facts["limit"] / PERCENT))
    ax.grid(axis="y", visible=False)


PLOT = Plot(
    "ridgeline", "Efficiency per server and per client", Group.DISTRIBUTIONS, "results",
    per_case(_drawing, "no repetition has an efficiency."), draw,
)  # fmt: skip
