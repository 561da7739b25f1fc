"""Packet numbers over time (slides on quicly over satellite): what the server sends, and what the client sends."""

from __future__ import annotations

from collections.abc import Sequence

from quicsat.model.text import counted
from quicsat.plots.base import Drawing, Group, Plot
from quicsat.plots.time_series_base import Picked, draw, drawings, packet_numbers
from quicsat.report.pair_series import PairSeries
from quicsat.report.plot_request import PlotRequest

NOTE = (
    "Packet numbers are relative to the first response and the first request, because some implementations begin with "
    "a random number"
)


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per pair and test case; packets without a readable number are left out and counted."""
    return drawings(request, _pick, "Packet number over time", "packet number")


def _pick(pair: PairSeries, alone: bool) -> Picked:
    series = pair.middle.series
    if not alone:
        return Picked([packet_numbers(series.forward, series.sent.time, pair.server, pair.name)], NOTE)
    others = [packet_numbers(run.series.forward, run.series.sent.time, "other") for run in pair.others]
    forward = packet_numbers(series.forward, series.sent.time, "first", "from the server")
    back = packet_numbers(series.back, series.requests.sent, "back", "from the client")
    lost = len(series.forward) + len(series.back) - len(forward.x) - len(back.x)
    left_out = (
        f"The figure omits {counted(lost, 'packet that was', 'packets that were')} sent before the first "
        "response or request, or whose number could not be decrypted"
        if lost
        else ""
    )
    return Picked([*others, forward, back], f"{NOTE}. {left_out}".rstrip(". "))


PLOT = Plot("packet-number", "Packet number over time", Group.TIME, "runs", table, draw)
