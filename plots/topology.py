"""The testbed of each measured test case as it was configured: client, emulated link, server, and places of traces."""

from quicsat.model.emulated_link import Direction, loss_share
from quicsat.model.link_format import client_side_words, format_queue
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.model.units import MBPS, MS, PERCENT, byte_size, seconds
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import Drawing, Group, Panel, Plot, per_case, sentences, single_panel, stem
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.samples import CONCLUSIVE, samples

CLIENT, LINK, SERVER = 0.13, 0.5, 0.87
"""Middles of the boxes, share of the width."""


def _drawing(request: PlotRequest, campaign: CampaignResults, case: TestCase) -> Drawing | None:
    """None without a measured pair."""
    measured = [each for each in samples(campaign.results, case.name) if each.pair_outcome in CONCLUSIVE]
    if case.real or not measured:
        return None
    link, pairs = case.emulated, len(measured)
    rows = [
        (
            way,
            f"{each.rate / MBPS:g} Mbit/s, {each.delay / MS:g} ms, queue of {format_queue(each.queue)}, {_loss(each)}",
        )
        for way, each in (("server to client", link.forward), ("client to server", link.back))
    ]
    facts = {
        "clock": campaign.results.manifest.clock.value,
        "scenario": link.scenario,
        "servers": len({each.server for each in measured}),
        "clients": len({each.client for each in measured}),
    }
    caption = sentences(
        f"{'The pair' if pairs == 1 else f'Each of the {pairs} pairs'} transfers {byte_size(case.total_size)} n = "
        f"{counted(case.repetitions, 'time')}; the time limit of each transfer is "
        f"{seconds(case.timeout)}. Circles show where quicsat captures both traces: before the queue and the losses at "
        "the sender's end, and after them at the receiver's end",
        *(f"Packets also pass another link: {words}" for words in client_side_words(link)),
    )
    title = f"{case.abbreviation}: testbed"
    return Drawing(
        stem(request, campaign, case.abbreviation), title, caption, single_panel(Panel(rows, facts)), (6.3, 2.4)
    )


def _loss(way: Direction) -> str:
    return f"{share / PERCENT:g} % loss" if (share := loss_share(way.loss)) else "no loss"


def draw(ax: Axes, panel: Panel) -> None:
    """Three boxes, an arrow for each direction through the middle one, two circles."""
    from matplotlib.patches import Rectangle

    facts = panel.facts
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.set_axis_off()
    for x, words, colour in (
        (CLIENT, f"client\n{_of(facts['clients'])}", theme.CLIENT),
        (SERVER, f"server\n{_of(facts['servers'])}", theme.SERVER),
    ):
        ax.text(x, 0.45, words, ha="center", va="center", fontsize=8, linespacing=1.5,
                bbox={"boxstyle": "round,pad=0.9", "facecolor": colour, "alpha": 0.3, "edgecolor": colour})  # fmt: skip
    ax.add_patch(Rectangle((0.25, 0.08), 0.5, 0.74, facecolor="#F2F2F2", edgecolor=theme.GREY, linewidth=0.8))
    ax.text(
        LINK, 0.96, f"ns-3 in {facts['clock']} time, scenario {facts['scenario']}", ha="center", va="top", fontsize=8
    )
    for height, (way, words), style in zip((0.62, 0.28), panel.rows, ("<|-", "-|>"), strict=True):
        ax.annotate("", xy=(SERVER - 0.07, height), xytext=(CLIENT + 0.07, height),
                    arrowprops={"arrowstyle": style, "color": theme.BLACK, "linewidth": 1.2})  # fmt: skip
        ax.text(LINK, height + 0.02, words, ha="center", va="bottom", fontsize=7)
        ax.text(LINK, height - 0.03, way, ha="center", va="top", fontsize=6, color=theme.GREY)
    for x in (0.25, 0.75):
        ax.plot([x, x], [0.62, 0.28], "o", color=theme.BLACK, markersize=4.5, linestyle="none")


def _of(count: int) -> str:
    return "one implementation" if count == 1 else f"one of {count}"


PLOT = Plot(
    "topology", "Testbed", Group.PAIRS, "results",
    per_case(_drawing, "no pair was measured over an emulated link."), draw,
)  # fmt: skip
