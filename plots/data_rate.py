"""Data rate over time (Figs. 6, 8 and 11 of the SATCOM paper): sent by the server, and new data at the client."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from interop.pictures import Wish
from interop.traces.series import Samples, Series, window_rate
from interop.units import MBPS
from plots.base import Drawing, Plot
from plots.runs import Curve, Pair, Picked, draw, drawings

WINDOW = 1.0
"""Seconds over which a rate is taken, every 0.1 s."""


def table(wish: Wish) -> Sequence[Drawing]:
    """A drawing per pair and test case; overlaid, the goodput."""

    def pick(pair: Pair, alone: bool) -> Picked:
        series = pair.middle.series
        if not alone:
            return Picked([_curve(goodput(series), pair.server, pair.name)])
        others = [_curve(goodput(run.series), "other") for run in pair.others]
        sent = window_rate(series.forward.sent, series.forward.size, window=WINDOW)
        curves = [*others, _curve(sent, "first", "sent"), _curve(goodput(series), "again", "goodput")]
        rate = pair.case.link.forward_rate
        if wish.ideal and rate and len(sent):
            span = np.array([0.0, float(sent.time[-1])])
            curves.append(Curve(span, np.full(2, rate / MBPS), "ideal", "rate of the link"))
        note = "Over the second before; the goodput is shown as much earlier as the fastest packet needed"
        return Picked(curves, note)

    return drawings(wish, pick, "Data rate over time", "rate [Mbit/s]")


def goodput(series: Series) -> Samples:
    """New bytes of streams at the client, moved by the shortest one-way delay to when they were sent; bit/s."""
    delays = series.forward.delay
    known = delays[np.isfinite(delays)]
    shift = float(known.min()) if len(known) else 0.0
    return window_rate(series.arrived.time - shift, series.arrived.new, window=WINDOW)


def _curve(rate: Samples, role: str, label: str = "") -> Curve:
    return Curve(rate.time, rate.value / MBPS, role, label)


PLOT = Plot("data-rate", "Data rate over time", "runs", table, draw)
