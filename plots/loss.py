"""Goodput against the loss rate of the link (Table 2 of the SATCOM paper): test cases that differ in loss alone."""

from collections.abc import Sequence

from quicsat.model.emulated_link import loss_share
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.model.units import MBPS, PERCENT
from quicsat.plots.axes import Axes
from quicsat.plots.base import (
    FEW,
    OF_MANY,
    Drawing,
    Group,
    Panel,
    Plot,
    draw_spread,
    nonempty,
    pair_style,
    sentences,
    single_panel,
    spread_of,
    stem,
)
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.overview import sweeps
from quicsat.statistics.samples import GOODPUT, samples


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing for each group of test cases that differ in their loss alone."""
    drawings = [
        drawing
        for campaign in request.campaigns
        for cases in sweeps(request.measured(campaign.results))
        if (drawing := _drawing(request, campaign, cases))
    ]
    return nonempty(drawings, "there are no two test cases that differ only in their loss.")


def _drawing(request: PlotRequest, campaign: CampaignResults, cases: Sequence[TestCase]) -> Drawing | None:
    lines: dict[tuple[str, str], list[tuple[float, float]]] = {}
    lost = 0
    for case in cases:
        many = samples(campaign.results, case.name, GOODPUT)
        means = {(sample.server, sample.client): sample.mean for sample in many if sample.mean is not None}
        lost += len(many) - len(means)
        rate = loss_share(case.link.forward.loss) / PERCENT
        for pair, mean in means.items():
            lines.setdefault(pair, []).append((rate, mean))
    everyone = spread_of(lines.values())
    if len(everyone) < 2:
        return None
    caption = sentences(
        f"Each line shows the mean goodput of a pair's successful repetitions (n = {counted(len(lines), 'pair')})",
        "" if len(lines) <= FEW else OF_MANY,
        f"Not shown: {counted(lost, 'value')} of pairs without a successful repetition" if lost else "",
    )
    names = [cases[0].abbreviation, cases[-1].abbreviation]
    title = "Goodput and loss"
    rows = [(", ".join(pair), points, pair_style(campaign.results, pair)) for pair, points in lines.items()]
    panel = Panel(rows, {"all": everyone})
    return Drawing(stem(request, campaign, *names), title, caption, single_panel(panel))


def draw(ax: Axes, panel: Panel) -> None:
    """Lines over a logarithmic axis that has room for no loss at its left."""
    from matplotlib.ticker import FixedLocator, NullLocator

    everyone = panel.facts["all"]
    rates = [rate for rate, *_ in everyone]
    few = len(panel.rows) <= FEW
    if few:
        for pair, points, style in panel.rows:
            ax.plot([rate for rate, _ in points], [mean / MBPS for _, mean in points], color=style.colour,
                    linestyle=style.dash, marker=style.mark, markersize=4, label=pair)  # fmt: skip
    else:
        draw_spread(ax, [points for _, points, _ in panel.rows], everyone, MBPS)
    smallest = min((rate for rate in rates if rate), default=1.0)
    ax.set_xscale("symlog", linthresh=smallest, linscale=0.6)
    ax.xaxis.set_major_locator(FixedLocator(sorted(set(rates))))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticklabels([f"{rate:g}" for rate in sorted(set(rates))])
    ax.set(xlabel="loss of the link, forward [%]", ylabel="mean goodput [Mbit/s]")
    ax.set_xlim(left=-0.08 * smallest)
    ax.set_ylim(bottom=0)
    if few:
        ax.legend(title="server, client")


PLOT = Plot("loss", "Goodput and loss", Group.PAIRS, "results", table, draw)
