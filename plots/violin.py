"""Split violins per implementation (Fig. 5 of arXiv 2202.08228): left as server, right as client."""

from collections.abc import Sequence

from quicsat.model.implementation import Role
from quicsat.model.test_case import TestCase, constant_rate
from quicsat.model.text import counted
from quicsat.model.units import MBPS
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
    per_case,
    sentences,
    single_panel,
    stem,
)
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.samples import GOODPUT, left_out, samples


def _drawing(request: PlotRequest, campaign: CampaignResults, case: TestCase) -> Drawing | None:
    many = samples(campaign.results, case.name, GOODPUT)
    groups: dict[tuple[str, Role], list[float]] = {}
    for sample in many:
        groups.setdefault((sample.server, Role.SERVER), []).extend(sample.values)
        groups.setdefault((sample.client, Role.CLIENT), []).extend(sample.values)
    names = sorted({name for (name, _), values in groups.items() if values})
    if not names:
        return None
    rows = [
        (name, role, values)
        for name in names
        for role in (Role.SERVER, Role.CLIENT)
        if (values := sorted(groups.get((name, role), [])))
    ]
    n = sum(len(sample.values) for sample in many)
    begin = axis_start([value for sample in many for value in sample.values])
    silent = sorted({name for name, _ in groups} - {*names})
    caption = sentences(
        f"Each of the n = {counted(n, 'successful repetition')} appears twice: once for its server and "
        "once for its client. The "
        "width shows the density, and lines show the quartiles. If there are fewer than "
        f"{DENSITY_FROM} repetitions, they are shown as points",
        f"Without successful repetitions: {', '.join(silent)}" if silent else "",
        "The axis does not begin at 0" if begin else "",
        f"Not shown: {lost}" if (lost := left_out(many)) else "",
    )
    facts = {"names": names, "rate": constant_rate(case.link), "begin": begin}
    size = (max(WIDTH, 1.2 + 0.55 * len(names)), 3.8)
    title = f"{case.abbreviation}: goodput per implementation"
    return Drawing(stem(request, campaign, case.abbreviation), title, caption, single_panel(Panel(rows, facts)), size)


def draw(ax: Axes, panel: Panel) -> None:
    """Halves of violins with quartile lines, or points; the right axis shows the efficiency."""
    from matplotlib.patches import Patch

    facts = panel.facts
    names = facts["names"]
    _violins(ax, names, [row for row in panel.rows if len(row[2]) >= DENSITY_FROM])
    for name, role, values in (row for row in panel.rows if len(row[2]) < DENSITY_FROM):
        left = role is Role.SERVER
        ax.plot([names.index(name) + (-0.12 if left else 0.12)] * len(values), [value / MBPS for value in values],
                "<" if left else ">", color=theme.SERVER if left else theme.CLIENT, markersize=3)  # fmt: skip
    ax.set_xticks(range(len(names)), names, rotation=35, ha="right", rotation_mode="anchor")
    ax.set(xlabel="", ylabel="goodput [Mbit/s]", xlim=(-0.6, len(names) - 0.4))
    ax.set_ylim(bottom=facts["begin"] / MBPS)
    ax.grid(axis="x", visible=False)
    if facts["rate"]:
        scale = 100 * MBPS / facts["rate"]
        right = ax.secondary_yaxis("right", functions=(lambda value: value * scale, lambda value: value / scale))
        right.set_ylabel("efficiency [%]")
    handles = [
        Patch(color=theme.SERVER, label="as server (left)"),
        Patch(color=theme.CLIENT, label="as client (right)"),
    ]
    theme.legend_above(ax, handles=handles)


def _violins(ax: Axes, names: Sequence[str], rows: Sequence[tuple[str, Role, Sequence[float]]]) -> None:
    """As seaborn draws them, no part beyond the values; half of its usual bandwidth, as in the paper's figure."""
    import seaborn

    if not rows:
        return
    roles = (Role.SERVER, Role.CLIENT)
    seaborn.violinplot(
        x=[name for name, _, values in rows for _ in values],
        y=[value / MBPS for _, _, values in rows for value in values],
        hue=[role.value for _, role, values in rows for _ in values],
        order=names, hue_order=[role.value for role in roles], palette=[theme.SERVER, theme.CLIENT], saturation=1,
        split=True, dodge=True, density_norm="count", inner="quart", bw_adjust=0.5, cut=0, width=0.9, gap=0.04,
        linewidth=0.8, legend=False, ax=ax,
    )  # fmt: skip


PLOT = Plot(
    "violin", "Goodput per implementation", Group.DISTRIBUTIONS, "results",
    per_case(_drawing, "no repetition has a goodput."), draw,
)  # fmt: skip
