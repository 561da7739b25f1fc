"""Packet numbers over time (slides on quicly over satellite): what the server sends, and what the client sends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quicsat.model.text import counted
from quicsat.plots.base import Drawing, Group, Plot
from quicsat.plots.time_series_base import Curve, Picked, draw, drawings
from quicsat.report.pair_series import PairSeries
from quicsat.report.plot_request import PlotRequest
from quicsat.traces.series import UNKNOWN, Packets, Requests, StreamData

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
        return Picked([_curve(series.forward, _since(series.sent), pair.server, pair.name)], NOTE)
    others = [_curve(run.series.forward, _since(run.series.sent), "other") for run in pair.others]
    forward = _curve(series.forward, _since(series.sent), "first", "from the server")
    back = _curve(series.back, _since(series.requests), "back", "from the client")
    lost = len(series.forward) + len(series.back) - len(forward.x) - len(back.x)
    left_out = (
        f"The figure omits {counted(lost, 'packet that was', 'packets that were')} sent before the first "
        "response or request, or whose number could not be decrypted"
        if lost
        else ""
    )
    return Picked([*others, forward, back], f"{NOTE}. {left_out}".rstrip(". "))


def _since(what: StreamData | Requests) -> float:
    """When the first of them was sent. Packets before are of the handshake and numbered apart (RFC 9000, 12.3)."""
    times = what.time if isinstance(what, StreamData) else what.sent
    return float(times.min(initial=np.inf))


def _curve(packets: Packets, since: float, role: str, label: str = "") -> Curve:
    shown = (packets.number != UNKNOWN) & (packets.sent >= since)
    numbers = packets.number[shown]
    return Curve(packets.sent[shown], numbers - numbers.min(initial=numbers.max(initial=0)), role, label, points=True)


PLOT = Plot("packet-number", "Packet number over time", Group.TIME, "runs", table, draw)
