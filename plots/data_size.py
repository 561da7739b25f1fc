"""Data over time (Figs. 7, 9 and 10 of the SATCOM paper): what was sent, and what arrived for the first time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quicsat.model.arrays import Floats, Integers
from quicsat.model.units import MIB
from quicsat.plots.base import Drawing, Group, Plot
from quicsat.plots.time_series_base import Curve, Picked, draw, drawings
from quicsat.report.pair_series import PairSeries
from quicsat.report.plot_request import PlotRequest
from quicsat.statistics.objectives import objectives, origin


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per pair and test case; overlaid, the data that arrived.

    Stars are the objectives, unless test cases with others are overlaid.
    """
    cases = {case.name for campaign in request.campaigns for case in request.measured(campaign.results)}
    starless = request.overlaid and len(cases) > 1

    def pick(pair: PairSeries, alone: bool) -> Picked:
        picked = _pick(pair, alone)
        wanted = objectives(pair.case, request.objectives)
        if starless or not wanted:
            return picked
        places = np.array([each.limit for each in wanted]), np.array([each.size for each in wanted]) / MIB
        stars = Curve(*places, "target", "objective", points=True)
        words = f"Stars show {origin(request.objectives)}: {', '.join(each.name for each in wanted)}"
        return Picked([*picked.curves, stars], f"{picked.note}. {words}" if picked.note else words)

    return drawings(request, pick, "Data over time", "data [MiB]")


def _pick(pair: PairSeries, alone: bool) -> Picked:
    series = pair.middle.series
    arrived = (series.arrived.time, series.arrived.new)
    if not alone:
        return Picked([_sum(*arrived, pair.server, pair.name)])
    others = [_sum(run.series.sent.time, run.series.sent.length, "other") for run in pair.others]
    sent = _sum(series.sent.time, series.sent.length, "first", "sent, including retransmissions")
    useful, total = int(series.arrived.new.sum()), int(series.sent.length.sum())
    note = f"The server sent {total / useful:.2f} stream bytes for each one that arrived" if useful else ""
    return Picked([*others, sent, _sum(*arrived, "again", "arrived, each byte once")], note)


def _sum(times: Floats, sizes: Integers, role: str, label: str = "") -> Curve:
    return Curve(times, np.cumsum(sizes) / MIB, role, label)


PLOT = Plot("data-size", "Data over time", Group.TIME, "runs", table, draw)
