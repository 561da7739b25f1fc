"""The testbed of each test case, as it was configured: client, emulated link, server, and where traces are taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quicsat.model.emulated_link import loss_share
from quicsat.model.link_format import client_side_words, format_queue
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.model.units import MBPS, MS, PERCENT, byte_size, seconds
from quicsat.plots import theme
from quicsat.plots.base import Drawing, Group, Panel, Plot, each_case, nonempty, sentences, single_panel, stem
from quicsat.report.plot_request import CampaignResults, PlotRequest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLIENT, LINK, SERVER = 0.13, 0.5, 0.87
"""Middles of the boxes, share of the width."""


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per test case, from the plan of the campaign."""
    emulated = [_drawing(request, campaign, case) for campaign, case in each_case(request) if not case.real]
    return nonempty(emulated, "no test case measures anything over an emulated link.")


def _drawing(request: PlotRequest, campaign: CampaignResults, case: TestCase) -> Drawing:
    link, manifest = case.emulated, campaign.results.manifest
    ways = (
        ("server to client", link.forward.rate, link.forward.delay, link.forward.queue, link.forward.loss),
        ("client to server", link.back.rate, link.back.delay, link.back.queue, link.back.loss),
    )
    columns: dict[str, list[object]] = {
        "way": [way for way, *_ in ways],
        "words": [
            f"{rate / MBPS:g} Mbit/s, {delay / MS:g} ms, queue of {format_queue(queue)}, "
            f"{f'{loss_share(loss) / PERCENT:g} % loss' if loss_share(loss) else 'no loss'}"
            for _, rate, delay, queue, loss in ways
        ],
    }
    facts = {
        "clock": manifest.clock.value,
        "scenario": link.scenario,
        "servers": len(manifest.servers),
        "clients": len(manifest.clients),
    }
    pairs = len(manifest.servers) * len(manifest.clients)
    caption = sentences(
        f"{'The pair' if pairs == 1 else f'Each of the {pairs} pairs'} transfers {byte_size(case.total_size)} n = "
        f"{counted(case.repetitions, 'time')}; the time limit of each transfer is "
        f"{seconds(case.timeout)}. Circles show where quicsat captures both traces: before the queue and the losses at "
        "the sender's end, and after them at the receiver's end",
        *(f"Packets also pass another link: {words}" for words in client_side_words(link)),
    )
    title = f"{case.abbreviation}: testbed"
    return Drawing(
        stem(request, campaign, case.abbreviation), title, caption, single_panel(Panel(columns, facts)), (6.3, 2.4)
    )


def draw(ax: Axes, panel: Panel) -> None:
    """Three boxes, an arrow for each direction through the middle one, two circles."""
    from matplotlib.patches import Rectangle

    columns, facts = panel.columns, panel.facts
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
    for height, words, way, style in zip((0.62, 0.28), columns["words"], columns["way"], ("<|-", "-|>"), strict=True):
        ax.annotate("", xy=(SERVER - 0.07, height), xytext=(CLIENT + 0.07, height),
                    arrowprops={"arrowstyle": style, "color": theme.BLACK, "linewidth": 1.2})  # fmt: skip
        ax.text(LINK, height + 0.02, words, ha="center", va="bottom", fontsize=7)
        ax.text(LINK, height - 0.03, way, ha="center", va="top", fontsize=6, color=theme.GREY)
    for x in (0.25, 0.75):
        ax.plot([x, x], [0.62, 0.28], "o", color=theme.BLACK, markersize=4.5, linestyle="none")


def _of(count: int) -> str:
    return "one implementation" if count == 1 else f"one of {count}"


PLOT = Plot("topology", "Testbed", Group.PAIRS, "results", table, draw)
