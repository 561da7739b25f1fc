"""What the time of transfers went into: a stacked bar per pair, and one for all pairs of the test case."""

import numpy as np

from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.model.time_shares import TimeShare
from quicsat.model.units import percent
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import WIDTH, Drawing, Group, Panel, Plot, per_case, room, sentences, single_panel, stem
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.report.time_share_tables import ATTRIBUTED, TO_LAST_BYTE, attributed, shares_of, timeouts, with_shares

MOST_PAIRS = 40
"""More pairs have a bar per server."""
ROW = 0.19
"""Inches that a bar takes."""
ALL = "all"
STYLES = {
    TimeShare.HANDSHAKE: ("#BBBBBB", ""),
    TimeShare.REQUEST: ("#DDDDDD", "...."),
    TimeShare.FULL_RATE: (theme.GREEN, ""),
    TimeShare.SLOW_START: (theme.SKY, ""),
    TimeShare.CONGESTION_WINDOW: (theme.BLUE, ""),
    TimeShare.PACING: ("#332288", "////"),
    TimeShare.CONNECTION_FLOW_CONTROL: (theme.ORANGE, ""),
    TimeShare.STREAM_FLOW_CONTROL: (theme.ORANGE, "\\\\\\\\"),
    TimeShare.APPLICATION: (theme.PURPLE, ""),
    TimeShare.RECOVERY: (theme.VERMILION, ""),
    TimeShare.PTO: (theme.VERMILION, "xxxx"),
    TimeShare.OUTAGE: (theme.BLACK, ""),
    TimeShare.TAIL: ("#882255", "----"),
    TimeShare.UNKNOWN: ("#FFFFFF", "xx"),
}
"""Colour and hatch of each share."""
OTHERWISE = "no run has shares of its time; `./run.py analyse` computes them from traces of transfers over QUIC."


def _drawing(request: PlotRequest, campaign: CampaignResults, case: TestCase) -> Drawing | None:
    """The mean seconds of each pair, or of each server if there are many pairs; the longest transfer last."""
    runs = [run for run in campaign.results.results if run.test_case == case.name]
    by_server = len({(run.server, run.client) for run in runs}) > MOST_PAIRS
    known: dict[str, list[list[float]]] = {}
    measured, late = with_shares(campaign.results, case), set[str]()
    for run in measured:
        name = run.server if by_server else f"{run.server} – {run.client}"
        known.setdefault(name, []).append(list(shares_of(run).values()))
        late |= {name} if timeouts([run]) else set()
    without = len(runs) - len(measured)
    if not known:
        return None
    means = {name: np.mean(runs, axis=0) for name, runs in known.items()}
    rows = sorted(((name, [float(x) for x in mean]) for name, mean in means.items()), key=lambda row: sum(row[1]))
    if len(rows) > 1:
        mean = np.mean([[value / sum(spent) for value in spent] for _, spent in rows], axis=0)
        rows.insert(0, (ALL, [float(x) for x in mean]))
    present = [number for number in range(len(TimeShare)) if any(spent[number] for _, spent in rows)]
    of = "server with all clients" if by_server else "pair (server – client)"
    caption = sentences(
        f"The figure shows n = {counted(len(measured), 'run')}; in {attributed(measured)}, at most "
        f"{percent(1 - ATTRIBUTED)} of the time is unknown. A bar is the mean of the runs of a {of}, and the number "
        "behind it the mean time. Each moment of a transfer belongs to exactly one share",
        f'The bar "{ALL}" is the mean of their shares' if len(rows) > 1 else "",
        f'Behind ">", {counted(timeouts(measured), "run")} timed out: {TO_LAST_BYTE}' if late else "",
        f"Not shown: {counted(without, 'run')} whose shares are not known" if without else "",
    )
    size = (WIDTH + room(name for name, _ in rows), 2.3 + ROW * len(rows))
    title = f"{case.abbreviation}: shares of the transfer's time"
    return Drawing(
        stem(request, campaign, case.abbreviation),
        title,
        caption,
        single_panel(Panel(rows, {"shares": present, "late": sorted(late)})),
        size,
    )


def draw(ax: Axes, panel: Panel) -> None:
    """Horizontal bars from 0 to 100 %, with the seconds behind them."""
    rows, shares = panel.rows, tuple(TimeShare)
    parts = np.array([spent for _, spent in rows])
    totals = parts.sum(axis=1, keepdims=True)
    percent = 100 * parts / totals
    left = np.cumsum(percent, axis=1) - percent
    places = np.arange(len(rows))
    for number in panel.facts["shares"]:
        colour, hatch = STYLES[shares[number]]
        ax.barh(
            places, percent[:, number], left=left[:, number], height=0.8, color=colour, hatch=hatch,
            edgecolor="white" if colour != "#FFFFFF" else theme.GREY, linewidth=0.2, label=shares[number].label,
        )  # fmt: skip
    for place, (name, spent) in enumerate(rows):
        if name != ALL:
            ax.text(101, place, f"{'> ' * (name in panel.facts['late'])}{sum(spent):.1f} s", va="center", fontsize=6)
    ax.set_yticks(places, [name for name, _ in rows])
    ax.set(xlabel="share of the time [%]", ylabel="", xlim=(0, 110))
    ax.set_xticks(range(0, 101, 20))
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.grid(axis="y", visible=False)
    theme.legend_above(ax, "", 3)


PLOT = Plot("time-shares", "Shares of the transfer's time", Group.PAIRS, "results", per_case(_drawing, OTHERWISE), draw)
