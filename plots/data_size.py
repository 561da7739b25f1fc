"""Data over time (Figs. 7, 9 and 10 of the SATCOM paper): what was sent, and what arrived for the first time."""

import numpy as np

from quicsat.model.arrays import Floats, Integers
from quicsat.model.units import MIB
from quicsat.plots.time_series_base import Curve, Picked, over_time
from quicsat.report.pair_series import PairSeries
from quicsat.report.plot_request import PlotRequest
from quicsat.statistics.objectives import objectives, origin


def _with_objectives(request: PlotRequest, pair: PairSeries, alone: bool) -> Picked:
    """Stars are the objectives, unless test cases with others are overlaid."""
    picked = _pick(pair, alone)
    wanted = objectives(pair.case, request.objectives)
    cases = {case.name for campaign in request.campaigns for case in request.measured(campaign.results)}
    if not wanted or (request.overlaid and len(cases) > 1):
        return picked
    places = np.array([each.limit for each in wanted]), np.array([each.size for each in wanted]) / MIB
    stars = Curve(*places, "target", "objective", points=True)
    words = f"Stars show {origin(request.objectives)}: {', '.join(each.name for each in wanted)}"
    return Picked([*picked.curves, stars], f"{picked.note}. {words}" if picked.note else words)


def _pick(pair: PairSeries, alone: bool) -> Picked:
    """Overlaid, the data that arrived."""
    series = pair.middle.series
    arrived = (series.arrived.time, series.arrived.new)
    if not alone:
        return Picked([_sum(*arrived, "")])
    others = [_sum(run.series.sent.time, run.series.sent.length, "other") for run in pair.others]
    sent = _sum(series.sent.time, series.sent.length, "first", "sent, including retransmissions")
    useful, total = int(series.arrived.new.sum()), int(series.sent.length.sum())
    note = f"The server sent {total / useful:.2f} stream bytes for each one that arrived" if useful else ""
    return Picked([*others, sent, _sum(*arrived, "again", "arrived, each byte once")], note)


def _sum(times: Floats, sizes: Integers, role: str, label: str = "") -> Curve:
    return Curve(times, np.cumsum(sizes) / MIB, role, label)


PLOT = over_time("data-size", "Data over time", "data [MiB]", _with_objectives)
