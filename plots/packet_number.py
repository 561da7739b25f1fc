"""Packet numbers over time (slides on quicly over satellite): what the server sends, and what the client sends."""

from __future__ import annotations

from collections.abc import Sequence

from interop.pictures import Wish
from interop.traces.series import UNKNOWN, Packets
from plots.base import Drawing, Plot
from plots.runs import Curve, Pair, Picked, draw, drawings


def table(wish: Wish) -> Sequence[Drawing]:
    """A drawing per pair and test case; packets without a readable number are left out and counted."""
    return drawings(wish, _pick, "Packet number over time", "packet number")


def _pick(pair: Pair, alone: bool) -> Picked:
    series = pair.middle.series
    if not alone:
        return Picked([_curve(series.forward, pair.server, pair.name)])
    others = [_curve(run.series.forward, "other") for run in pair.others]
    unread = sum(int((packets.number == UNKNOWN).sum()) for packets in (series.forward, series.back))
    curves = [
        *others, _curve(series.forward, "first", "from the server"), _curve(series.back, "back", "from the client")
    ]  # fmt: skip
    return Picked(curves, f"{unread} packets without a readable number are left out" if unread else "")


def _curve(packets: Packets, role: str, label: str = "") -> Curve:
    known = packets.number != UNKNOWN
    return Curve(packets.sent[known], packets.number[known], role, label, points=True)


PLOT = Plot("packet-number", "Packet number over time", "runs", table, draw)
