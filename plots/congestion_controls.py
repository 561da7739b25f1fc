"""Congestion control algorithms of the same implementations, side by side: goodput (or another metric)."""

from quicsat.model.names import base_name
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import WIDTH, Drawing, Group, Panel, Plot, per_case, sentences, single_panel, stem
from quicsat.plots.metric_axis import metric_axis
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.intervals import of_repetitions
from quicsat.statistics.overview import FAMILIES, family
from quicsat.statistics.samples import GOODPUT, Sample, samples


def _drawing(request: PlotRequest, campaign: CampaignResults, case: TestCase) -> Drawing | None:
    number = metric_axis(request, GOODPUT)
    known = {each.name: each for each in campaign.results.manifest.implementations}
    groups: dict[str, dict[str, list[Sample]]] = {}
    for sample in samples(campaign.results, case.name, number.name):
        if sample.mean is not None and sample.mean > 0:
            base, control = base_name(sample.server), family(known.get(sample.server))
            groups.setdefault(base, {}).setdefault(control.replace("NewReno", "Reno"), []).append(sample)
    groups = {name: mine for name, mine in groups.items() if len(mine) > 1}
    if not groups:
        return None
    middles = {
        (name, control): mean.value
        for name, mine in groups.items()
        for control, own in mine.items()
        if (mean := of_repetitions([sample.mean or 0.0 for sample in own]))
    }
    order = sorted(groups, key=lambda name: max(value for key, value in middles.items() if key[0] == name))
    rows = [
        (order.index(name), control, middle, [sample.mean for sample in groups[name][control]])
        for (name, control), middle in middles.items()
    ]
    pairs = sum(len(own) for mine in groups.values() for own in mine.values())
    return Drawing(
        stem(request, campaign, request.metric, case.abbreviation),
        f"{case.abbreviation}: {number.words} by implementation and congestion control",
        sentences(
            f"Large marks show the geometric mean of a server with one congestion control over its clients, and small "
            f"ones the mean of each pair (n = {counted(pairs, 'pair')}). A line connects the congestion "
            "control algorithms of an "
            "implementation",
        ),
        single_panel(Panel(rows, {"names": order, "x": f"mean {number.label}", "size": number.size})),
        (WIDTH, 1.6 + 0.3 * len(order)),
    )


def draw(ax: Axes, panel: Panel) -> None:
    """A row per implementation, a mark per congestion control, the axis logarithmic."""
    rows, facts = panel.rows, panel.facts
    for place in range(len(facts["names"])):
        own = [mean / facts["size"] for row, _, mean, _ in rows if row == place]
        ax.plot([min(own), max(own)], [place, place], color=theme.PALE, linewidth=3, solid_capstyle="round", zorder=1)
    for control in FAMILIES:
        mine = [row for row in rows if row[1] == control]
        if mine:
            colour, mark = theme.of_family(control)
            small = [(value / facts["size"], row) for row, _, _, pairs in mine for value in pairs]
            ax.scatter([x for x, _ in small], [y for _, y in small], s=8, c=colour, marker=mark, alpha=0.5, zorder=2,
                       linewidths=0)  # fmt: skip
            ax.scatter([mean / facts["size"] for _, _, mean, _ in mine], [row for row, *_ in mine], s=48, c=colour,
                       marker=mark, label=control, zorder=3, linewidths=0.5, edgecolors="white")  # fmt: skip
    theme.logarithmic(ax, "x")
    ax.set_yticks(range(len(facts["names"])), facts["names"])
    ax.set(xlabel=facts["x"], ylabel="server", ylim=(-0.6, len(facts["names"]) - 0.4))
    ax.legend(title="congestion control", loc="center left", bbox_to_anchor=(1.01, 0.5))


PLOT = Plot(
    "congestion-controls", "Congestion control algorithms of implementations", Group.PAIRS, "results",
    per_case(_drawing, "no implementation was a server with two congestion control algorithms."), draw,
)  # fmt: skip
