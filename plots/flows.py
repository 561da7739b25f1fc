"""The flows of a run over time: the goodput of each, and its share of the goodput of all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quicsat.model.flow import flow_directory
from quicsat.model.names import pair_folder
from quicsat.model.results import RunResult
from quicsat.model.test_case import TestCase
from quicsat.model.units import MBPS, PERCENT
from quicsat.plots import theme
from quicsat.plots.base import Drawing, Group, Panel, Plot, each_case, nonempty, sentences, stem
from quicsat.report.flow_tables import flows_of, pair_of, with_flows
from quicsat.report.pair_series import read_series
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.traces.series import Samples, window_rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WINDOW, STEP = 1.0, 0.1
"""Seconds over which rates are averaged, and between two points."""


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per pair and test case with several flows: the repetition with the median share of the first flow."""
    drawings = []
    for campaign, case in each_case(request):
        if campaign.directory is None:
            continue
        runs = with_flows(campaign.results.results, case)
        for pair in dict.fromkeys((each.server, each.client) for each in runs):
            mine = sorted((each for each in runs if (each.server, each.client) == pair), key=_share)
            shown = mine[(len(mine) - 1) // 2]
            if (rates := _rates(request, campaign.directory / shown.key.path, shown)) is not None:
                drawings.append(_drawing(request, campaign, case, shown, rates, len(mine)))
    return nonempty(drawings, "no run with several flows has stored series.")


def _share(run: RunResult) -> float:
    return flows_of(run)[0].share or 0.0


def _rates(request: PlotRequest, directory: Path, run: RunResult) -> list[Samples] | None:
    """Goodput of each flow in windows of one second, all at the same times; None if a flow has no series."""
    found = flows_of(run)
    until = max(flow.last_byte or 0.0 for flow in found) + WINDOW
    rates = []
    for number, flow in enumerate(found, start=1):
        series = read_series(request, flow_directory(directory, number))
        if series is None:
            return None
        arrived = series.arrived
        rates.append(window_rate(arrived.time + flow.start, arrived.new, window=WINDOW, step=STEP, until=until))
    return rates


def _drawing(
    request: PlotRequest, campaign: CampaignResults, case: TestCase, run: RunResult, rates: Sequence[Samples], n: int
) -> Drawing:
    total = np.sum([each.value for each in rates], axis=0)
    names = [f"{number}: {pair_of(flow)}" for number, flow in enumerate(flows_of(run), start=1)]
    named = list(zip(names, rates, strict=True))
    goodput = [(name, each.time, each.value / MBPS) for name, each in named]
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = [(name, each.time, np.where(total > 0, each.value / total, np.nan) / PERCENT) for name, each in named]
    values = run.measurement.values if run.measurement else {}
    jain, converged = values.get("jain_index"), values.get("convergence_time")
    caption = sentences(
        f"The figure shows repetition {run.repetition}, the one of n = {n} with the median share of the first flow. "
        f"Each value counts the new bytes that arrive at the clients within {WINDOW:g} s",
        f"While all flows receive data, Jain's index is {jain:.3f}" if jain is not None else "",
        f"The shares are first within 10 % of fair after {converged:.1f} s"
        if converged is not None
        else "The shares are never within 10 % of fair",
    )
    first = flows_of(run)[0]
    title = f"Flows, {case.abbreviation}: {pair_of(first)}"
    panels = (
        (Panel(goodput, {"ylabel": "goodput [Mbit/s]", "xlabel": "", "highest": None}),),
        (Panel(shares, {"ylabel": "share [%]", "xlabel": "time since the first packet [s]", "highest": 100}),),
    )
    name = stem(request, campaign, case.name, pair_folder(run.server, run.client))
    return Drawing(name, title, caption, panels, (6.6, 4.8))


def draw(ax: Axes, panel: Panel) -> None:
    """A line per flow, in the colour and with the dash of its place."""
    for number, (name, x, y) in enumerate(panel.rows):
        style = theme.of_position(number)
        ax.plot(x, y, color=style.colour, linestyle=style.dash, label=name)
    ax.set(xlabel=panel.facts["xlabel"], ylabel=panel.facts["ylabel"])
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0, top=panel.facts["highest"])
    if panel.facts["highest"] is None:
        theme.legend_above(ax)


PLOT = Plot("flows", "Flows over time", Group.TIME, "results", table, draw)
