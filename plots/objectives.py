"""Objectives met or missed (2, 10 and 100 MB within so many seconds), a tile per pair, with margins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from quicsat.model.objective import Objective
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.model.units import MBPS
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import (
    NO_SERIES,
    Drawing,
    Group,
    NothingToDrawError,
    Panel,
    Plot,
    nonempty,
    room,
    sentences,
    stem,
)
from quicsat.report.pair_series import PairSeries, load_pairs
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.objectives import objectives, origin
from quicsat.statistics.samples import left_out, samples


@dataclass(frozen=True)
class _Row:
    """What the tiles of a pair show."""

    server: str
    client: str
    runs: int
    times: tuple[float, ...]
    """Of each objective, the median in seconds; infinite if it was not reached in most runs."""


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per test case, a panel per objective."""
    groups: dict[tuple[str, str], tuple[CampaignResults, TestCase, list[_Row]]] = {}
    cases = (case for each in request.campaigns for case in request.measured(each.results))
    with_objectives = tuple(case.name for case in cases if objectives(case, request.objectives))
    nonempty(with_objectives, "no test case has objectives that its files can meet; --objective sets some.")
    for pair in load_pairs(replace(request, test_cases=with_objectives)):
        key = (pair.campaign.label, pair.case.name)
        groups.setdefault(key, (pair.campaign, pair.case, []))[2].append(_row(request, pair))
    if not groups:
        raise NothingToDrawError(NO_SERIES)
    return [_drawing(request, *group) for group in groups.values()]


def _row(request: PlotRequest, pair: PairSeries) -> _Row:
    """The series themselves are let go: those of all pairs do not fit in memory."""
    wanted = objectives(pair.case, request.objectives)
    times = tuple(median([run.reached(each.size) for run in pair.runs]) for each in wanted)
    return _Row(pair.server, pair.client, len(pair.runs), times)


def _drawing(request: PlotRequest, campaign: CampaignResults, case: TestCase, group: Sequence[_Row]) -> Drawing:
    wanted = objectives(case, request.objectives)
    servers = list(dict.fromkeys(pair.server for pair in group))
    clients = list(dict.fromkeys(pair.client for pair in group))
    panels = tuple(_panel(group, servers, clients, objective, number) for number, objective in enumerate(wanted))
    runs = sum(pair.runs for pair in group)
    lost = left_out(samples(campaign.results, case.name))
    caption = sentences(
        f"The figure shows {origin(request.objectives)} for n = {counted(runs, 'repetition')} of "
        f"{counted(len(group), 'pair')} at "
        f"{case.link.forward.rate / MBPS:g} Mbit/s. Each tile shows the median time in seconds until the data had "
        "arrived and, below it, the remaining time. ✓ means that the median meets the objective, × that it does not, "
        "and 'never' that in most repetitions the data never arrived",
        f"Not shown: {lost}" if lost else "",
    )
    width = max(5.0, 1.6 + len(panels) * (0.4 + 0.5 * len(servers)))
    size = (width + room(clients), 2.2 + 0.42 * len(clients) + room(servers))
    title = f"{case.abbreviation}: objectives met"
    return Drawing(stem(request, campaign, case.abbreviation), title, caption, (panels,), size)


def _panel(group: Sequence[_Row], servers: list[str], clients: list[str], objective: Objective, number: int) -> Panel:
    rows = [
        (servers.index(pair.server), clients.index(pair.client), time, objective.margin(time))
        for pair in group
        for time in pair.times[number : number + 1]
    ]
    met = sum(time <= objective.limit for _, _, time, _ in rows)
    facts = {"servers": servers, "clients": clients, "title": f"{objective.name}: {met} of {len(group)}",
             "limit": objective.limit, "left": number == 0}  # fmt: skip
    return Panel(rows, facts)


def draw(ax: Axes, panel: Panel) -> None:
    """Tiles with sign, seconds and time to spare; the deeper the colour, the more of it there is or is missing."""
    import seaborn

    facts = panel.facts
    shape = (len(facts["clients"]), len(facts["servers"]))
    margins, words = np.full(shape, np.nan), np.full(shape, "", dtype=object)
    for x, y, time, margin in panel.rows:
        sign = "✓" if time <= facts["limit"] else "×"
        margins[y, x] = max(margin / facts["limit"], -1.0)
        words[y, x] = f"{sign} {time:.1f}\n{margin:+.1f}" if np.isfinite(time) else "×\nnever"
    seaborn.heatmap(
        margins, ax=ax, annot=words, fmt="", annot_kws={"fontsize": 6, "color": theme.BLACK}, linewidths=1.5,
        cmap=theme.diverging(), vmin=-1.8, vmax=1.8, cbar=False, mask=np.isnan(margins),
        xticklabels=facts["servers"], yticklabels=facts["clients"] if facts["left"] else False,
    )  # fmt: skip
    ax.set_xticklabels(facts["servers"], rotation=60, ha="right", rotation_mode="anchor")
    if facts["left"]:
        ax.set_yticklabels(facts["clients"], rotation=0)
    ax.set(title=facts["title"], xlabel="server", ylabel="client" if facts["left"] else "")
    ax.grid(visible=False)
    ax.tick_params(length=0)


PLOT = Plot("objectives", "Objectives met", Group.PAIRS, "all runs", table, draw)
