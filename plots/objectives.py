"""Objectives of the SATCOM paper met or missed: 2, 10 and 100 MB within so many seconds, a tile per pair."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from interop.model import TestCase
from interop.pictures import Wish
from interop.statistics.samples import left_out, samples
from interop.units import MBPS
from plots import theme
from plots.base import Drawing, NothingToDrawError, Panel, Plot, found, sentences, stem
from plots.runs import Pair, Run, pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MB = 1_000_000
WITHOUT_LOSS = ((2 * MB, 3.0), (10 * MB, 5.0), (100 * MB, 20.0))
WITH_LOSS = ((2 * MB, 3.0), (10 * MB, 6.0), (100 * MB, 10.0))
"""Bytes and seconds: the paper's for 50/10 Mbit/s without loss, and for 250/3 Mbit/s with 1 %."""


def objectives(case: TestCase) -> tuple[tuple[int, float], ...]:
    """Those that a transfer of this size can meet."""
    known = WITH_LOSS if case.link.forward_loss is not None else WITHOUT_LOSS
    return tuple((size, limit) for size, limit in known if size <= case.total_size)


def table(wish: Wish) -> Sequence[Drawing]:
    """A drawing per test case, a panel per objective."""
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs(wish):
        groups.setdefault((pair.campaign.label, pair.case.name), []).append(pair)
    if not groups:
        raise NothingToDrawError("no run of these pairs has stored series; run.py analyse makes them from its traces.")
    return found(
        [drawing for group in groups.values() if (drawing := _drawing(wish, group)) is not None],
        "the files are smaller than 2 MB.",
    )


def _drawing(wish: Wish, group: Sequence[Pair]) -> Drawing | None:
    campaign, case = group[0].campaign, group[0].case
    wanted = objectives(case)
    if not wanted:
        return None
    servers = list(dict.fromkeys(pair.server for pair in group))
    clients = list(dict.fromkeys(pair.client for pair in group))[::-1]
    panels = tuple(_panel(group, servers, clients, *objective, number) for number, objective in enumerate(wanted))
    runs = sum(len(pair.runs) for pair in group)
    link = "250/3 Mbit/s with 1 % loss" if wanted[0] in WITH_LOSS and case.link.forward_loss else "50/10 Mbit/s"
    lost = left_out(samples(campaign.results, case.name))
    caption = sentences(
        f"n = {runs} repetitions of {len(group)} pairs on {case.link.forward_rate / MBPS:g} Mbit/s; the objectives are "
        f"the SATCOM paper's for {link}. Seconds until so much had arrived, median; ✓ met, × missed by the median or "
        "never reached",
        f"Left out: {lost}" if lost else "",
    )
    size = (max(5.0, 1.3 + len(panels) * (0.5 + 0.45 * len(servers))), 2.1 + 0.4 * len(clients))
    title = f"{case.abbreviation}: objectives met"
    return Drawing(stem(wish, campaign, case.abbreviation), title, caption, (panels,), size)


def _panel(
    group: Sequence[Pair], servers: list[str], clients: list[str], size: int, limit: float, number: int
) -> Panel:
    times = [median([reached(run, size) for run in pair.runs]) for pair in group]
    columns: dict[str, Sequence[object]] = {
        "server": [servers.index(pair.server) for pair in group],
        "client": [clients.index(pair.client) for pair in group],
        "time": times,
        "met": [time <= limit for time in times],
    }
    met = sum(time <= limit for time in times)
    title = f"{size / MB:g} MB in {limit:g} s: {met} of {len(group)}"
    return Panel(columns, {"servers": servers, "clients": clients, "title": title, "left": number == 0})


def reached(run: Run, size: int) -> float:
    """Seconds after the client's first packet at which so many new bytes had arrived; infinite if never."""
    total = np.cumsum(run.series.arrived.new)
    place = int(np.searchsorted(total, size))
    return float(run.series.arrived.time[place]) if place < len(total) else float("inf")


def draw(ax: Axes, panel: Panel) -> None:
    """Tiles with sign and seconds."""
    from matplotlib.patches import Rectangle

    columns, facts = panel.columns, panel.facts
    for x, y, time, met in zip(*(columns[name] for name in ("server", "client", "time", "met")), strict=True):
        colour = theme.SKY if met else theme.ORANGE
        ax.add_patch(Rectangle((x - 0.47, y - 0.47), 0.94, 0.94, facecolor=colour, alpha=0.55, linewidth=0))
        told = f"{time:.1f}" if np.isfinite(time) else "never"
        ax.text(x, y, f"{'✓' if met else '×'}\n{told}", ha="center", va="center", fontsize=6)
    ax.set_xticks(range(len(facts["servers"])), facts["servers"], rotation=60, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(facts["clients"])), facts["clients"] if facts["left"] else [])
    ax.set(
        xlim=(-0.5, len(facts["servers"]) - 0.5), ylim=(-0.5, len(facts["clients"]) - 0.5),
        title=facts["title"], xlabel="server", ylabel="client" if facts["left"] else "",
    )  # fmt: skip
    ax.grid(visible=False)
    ax.tick_params(length=0)


PLOT = Plot("objectives", "Objectives met", "runs", table, draw)
