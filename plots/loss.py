"""Goodput against the loss rate of the link (Table 2 of the SATCOM paper): test cases that differ in loss alone."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from quicsat.model.emulated_link import loss_share
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.model.units import MBPS, PERCENT
from quicsat.plots import theme
from quicsat.plots.base import FEW, Drawing, Group, Panel, Plot, nonempty, pair_style, sentences, single_panel, stem
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.overview import sweeps
from quicsat.statistics.samples import GOODPUT, samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    everyone: list[tuple[float, float, float, float]] = []
    lost = 0
    for case in cases:
        many = samples(campaign.results, case.name, GOODPUT)
        means = {(sample.server, sample.client): sample.mean for sample in many if sample.mean is not None}
        lost += len(many) - len(means)
        rate = loss_share(case.link.forward.loss)
        for pair, mean in means.items():
            lines.setdefault(pair, []).append((rate, mean))
        if means:
            low, high = np.quantile(list(means.values()), (0.25, 0.75))
            everyone.append((rate, fmean(means.values()), float(low), float(high)))
    if len({rate for rate, *_ in everyone}) < 2:
        return None
    thick = (
        ""
        if len(lines) <= FEW
        else " The thick line is the mean of all pairs, and the band shows the range between the quartiles."
    )
    caption = sentences(
        "Each line shows the mean goodput of a pair's successful repetitions (n = "
        f"{counted(len(lines), 'pair')}).{thick}",
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
    rates = [rate / PERCENT for rate, *_ in everyone]
    few = len(panel.rows) <= FEW
    for pair, points, style in panel.rows:
        xs, ys = [rate / PERCENT for rate, _ in points], [mean / MBPS for _, mean in points]
        if few:
            ax.plot(xs, ys, color=style.colour, linestyle=style.dash, marker=style.mark, markersize=4, label=pair)
        else:
            ax.plot(xs, ys, color=theme.PALE, linewidth=0.6)
    if not few:
        means, lows, highs = ([row[place] / MBPS for row in everyone] for place in (1, 2, 3))
        ax.fill_between(rates, lows, highs, color=theme.BLUE, alpha=0.2, linewidth=0)
        ax.plot(rates, means, color=theme.BLUE, marker="o", linewidth=2)
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
