"""The flows of a run over time: the goodput of each, and its share of the goodput of all."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from quicsat.model.flow import flow_directory
from quicsat.model.names import FLOW_SIGN, pair_folder
from quicsat.model.results import Pair, RunResult
from quicsat.model.test_case import TestCase
from quicsat.model.units import MBPS, PERCENT
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import Drawing, Group, Panel, Plot, each_case, nonempty, sentences, slowest, stem
from quicsat.report.flow_tables import flows_of, pair_of, with_flows
from quicsat.report.pair_series import read_series
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.traces.series import Samples, window_rate

WINDOW, STEP = 1.0, 0.1
"""Seconds over which rates are averaged, and between two points."""
TIME = "time since the first packet [s]"
HIGHEST = 102.0
"""Per cent at which the axis ends, so that a line at 100 is whole."""


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per pair and test case with several flows: the repetition with the median share of the first flow."""
    drawings = []
    for campaign, case in each_case(request):
        if campaign.directory is None:
            continue
        of_pairs: dict[Pair, list[RunResult]] = {}
        for run in sorted(with_flows(campaign.results.results, case), key=_share):
            of_pairs.setdefault((run.server, run.client), []).append(run)
        middles = {pair: mine[(len(mine) - 1) // 2] for pair, mine in of_pairs.items()}
        pairs, note = slowest(request, sorted(middles, key=lambda pair: (_share(middles[pair]), pair)))
        for pair in pairs:
            rates = _rates(request, campaign.directory / middles[pair].key.path, middles[pair])
            if rates is not None:
                about = f"The figure shows repetition {middles[pair].repetition}, the one of n = {len(of_pairs[pair])}"
                drawings.append(_drawing(request, campaign, case, middles[pair], rates, (about, note)))
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
    request: PlotRequest,
    campaign: CampaignResults,
    case: TestCase,
    run: RunResult,
    rates: Sequence[Samples],
    notes: tuple[str, str],
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
        f"{notes[0]} with the median share of the first flow. Each value counts the new bytes that arrive at the "
        f"clients within {WINDOW:g} s",
        f"While all flows receive data, Jain's index is {jain:.3f}" if jain is not None else "",
        f"The shares are first within 10 % of fair after {converged:.1f} s"
        if converged is not None
        else "The shares are never within 10 % of fair",
        notes[1],
    )
    first, *others = map(pair_of, flows_of(run))
    beside = others[0] if len(others) == 1 else f"{len(others)} flows"
    title = f"{first} beside {beside}, {case.abbreviation.partition(FLOW_SIGN)[0]}"
    end = max(float(each.time[-1]) for each in rates)
    panels = (
        (Panel(goodput, {"ylabel": "goodput [Mbit/s]", "xlabel": "", "highest": None, "end": end}),),
        (Panel(shares, {"ylabel": "share [%]", "xlabel": TIME, "highest": HIGHEST, "end": end}),),
    )
    name = stem(request, campaign, case.name, pair_folder(run.server, run.client))
    return Drawing(name, title, caption, panels, (6.6, 4.8))


def draw(ax: Axes, panel: Panel) -> None:
    """A line per flow, in the colour and with the dash of its place."""
    for number, (name, x, y) in enumerate(panel.rows):
        style = theme.of_position(number)
        ax.plot(x, y, color=style.colour, linestyle=style.dash, label=name)
    ax.set(xlabel=panel.facts["xlabel"], ylabel=panel.facts["ylabel"])
    ax.set_xlim(0, panel.facts["end"])
    ax.set_ylim(bottom=0, top=panel.facts["highest"])
    if panel.facts["highest"] is None:
        theme.legend_above(ax)


PLOT = Plot("flows", "Flows over time", Group.TIME, "results", table, draw)
