"""Data rate over time (Figs. 6, 8 and 11 of the SATCOM paper): sent by the server, and new data at the client."""

from collections.abc import Sequence

import numpy as np

from quicsat.model.units import MBPS, mbit_per_s
from quicsat.plots.time_series_base import Curve, Picked, over_time
from quicsat.report.pair_series import PairSeries, RunSeries
from quicsat.report.plot_request import PlotRequest
from quicsat.traces.series import Samples, Series, window_rate

WINDOW = 1.0
"""Seconds over which a rate is taken, every 0.1 s."""


def _pick(request: PlotRequest, pair: PairSeries, alone: bool) -> Picked:
    """Overlaid, the goodput."""
    series = pair.middle.series
    if not alone:
        return Picked([Curve.of(goodput(series), MBPS, "")])
    others = [Curve.of(goodput(run.series), MBPS, "other") for run in pair.others]
    sent = window_rate(series.forward.sent, series.forward.size, window=WINDOW)
    received = goodput(series)
    curves = [*others, Curve.of(sent, MBPS, "first", "sent"), Curve.of(received, MBPS, "again", "goodput")]
    if request.ideal and len(sent):
        curves += _ideal(pair.forward_rates(pair.middle, 0.0, float(sent.time[-1])), float(sent.time[-1]))
    note = "Each rate is that of the preceding second. Goodput is shifted by the delay of the fastest packet"
    start = _start_up(pair.middle)
    if start is None:
        return Picked(curves, note)
    moment, steady, words = start
    span = np.array([moment, float(received.time[-1])])
    curves.append(Curve(span, np.full(2, steady / MBPS), "steady", "steady rate"))
    return Picked(curves, f"{note}. {words}", [(moment, "a")])


def _ideal(rates: Sequence[tuple[float, float]], end: float) -> list[Curve]:
    """The rate of the link until ``end``, with its steps."""
    times = [*[time for since, _ in rates for time in (since, since)][1:], end]
    values = [rate / MBPS for _, rate in rates for _ in range(2)]
    return [Curve(np.array(times), np.array(values), "ideal", "rate of the link")] if rates else []


def _start_up(run: RunSeries) -> tuple[float, float, str] | None:
    """When it ended (on the axis of the goodput), the steady rate (bit/s), and both in words; None if not known."""
    steady, startup = (run.values.get(name) for name in ("steady_rate", "startup_time"))
    if steady is None or startup is None or not len(run.series.arrived):
        return None
    end = f"{startup:.1f} s after the first byte"
    words = f"At point a, start-up ends {end}; the steady rate is {mbit_per_s(steady)}"
    return float(run.series.arrived.time[0]) - _shift(run.series) + startup, steady, words


def _shift(series: Series) -> float:
    """The shortest one-way delay, seconds."""
    delays = series.forward.delay
    known = delays[np.isfinite(delays)]
    return float(known.min()) if len(known) else 0.0


def goodput(series: Series) -> Samples:
    """New bytes of streams at the client, moved by the shortest one-way delay to when they were sent; bit/s."""
    return window_rate(series.arrived.time - _shift(series), series.arrived.new, window=WINDOW)


PLOT = over_time("data-rate", "Data rate over time", "rate [Mbit/s]", _pick)
