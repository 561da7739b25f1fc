"""Time over QUIC, relative to TCP behind its proxies, of each server: every test case, and all together."""

import math
from collections.abc import Sequence

from quicsat.model.text import counted
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import WIDTH, Drawing, Group, Panel, Plot, nonempty, sentences, single_panel, stem
from quicsat.report.parity_table import by_server, proxies
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.parity import Ratio, overall, ratios

MARGIN = 1.15
"""Factor between the outermost marks and the ends of the axis."""


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing for each kind of proxies of each campaign, the server that gains most on top."""
    drawings = []
    for campaign in request.campaigns:
        found = ratios(campaign.results, request.measured(campaign.results))
        for behind in dict.fromkeys(proxies(each.case) for each in found):
            mine = [each for each in found if proxies(each.case) == behind]
            drawings.append(_drawing(request, campaign, behind, mine))
    return nonempty(drawings, "no test case has runs over TCP and over QUIC with the same losses.")


def _drawing(request: PlotRequest, campaign: CampaignResults, behind: str, found: Sequence[Ratio]) -> Drawing:
    of_server = {server: mine for (server, _), mine in by_server(found).items()}
    means = {server: overall(mine) for server, mine in of_server.items()}
    order = sorted(means, key=lambda server: -mean.value if (mean := means[server]) else -math.inf)
    rows = [
        (
            mean.value if (mean := means[server]) else None,
            mean.ends if mean else None,
            [each.mean.value for each in of_server[server] if each.mean],
        )
        for server in order
    ]
    counts = {len(each.of_member) for each in found}
    n = f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
    cases = counted(len({(each.case.name, each.size) for each in found}), "test case")
    where = "without proxies" if behind == "none" else f"behind {behind}"
    caption = sentences(
        f"Small marks show the geometric mean of n = {n} repetitions of a pair in a test case. Each repetition has the "
        f"same losses over QUIC and over TCP. Large marks are the geometric means of {cases}, and "
        "lines their 95 % intervals, or ranges if there are too few repetitions. Left of 1, QUIC is faster"
    )
    name = "" if behind == "none" else behind.partition(" (")[0].replace(" ", "-")
    size = (WIDTH, 1.7 + 0.3 * len(order))
    title = f"Time over QUIC, relative to TCP {where}"
    panel = Panel(rows, {"names": order, "x": "time over QUIC / time over TCP [1]"})
    return Drawing(stem(request, campaign, name), title, caption, single_panel(panel), size)


def draw(ax: Axes, panel: Panel) -> None:
    """A row per server on a logarithmic axis, with a line at 1."""
    ax.axvline(1, color=theme.BLACK, linewidth=1, zorder=1)
    shown = [1.0]
    for place, (middle, ends, cells) in enumerate(panel.rows):
        if middle is None:
            continue
        ax.scatter(cells, [place] * len(cells), s=12, c=theme.GREY, alpha=0.6, linewidths=0, zorder=2)
        low, high = ends or (middle, middle)
        ax.plot([low, high], [place, place], color=theme.BLUE, linewidth=2, zorder=3)
        ax.plot([middle], [place], color=theme.BLUE, marker="o", markersize=7, linestyle="none", zorder=4)
        shown += [middle, low, high, *cells]
    ax.set_xlim(min(shown) / MARGIN, max(shown) * MARGIN)
    theme.logarithmic(ax, "x")
    ax.set_yticks(range(len(panel.facts["names"])), panel.facts["names"])
    ax.set(xlabel=panel.facts["x"], ylabel="server", ylim=(-0.6, len(panel.facts["names"]) - 0.4))
    ax.grid(axis="y", visible=False)


PLOT = Plot("parity", "QUIC relative to TCP", Group.PAIRS, "results", table, draw)
