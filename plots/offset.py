"""Time-offset figures (Figs. 7-11 of arXiv 2202.08228): where in the file each packet of the server lies, over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from interop.model.units import MIB, seconds
from interop.report.pair_series import PairSeries, RunSeries
from interop.report.plot_request import PlotRequest
from plots.base import Drawing, Plot
from plots.time_series_base import Curve, Picked, draw, drawings, stacked

LETTERS = "abcde"


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per pair and test case, with marks of the middle run, or one with all of them."""

    def pick(pair: PairSeries, alone: bool) -> Picked:
        return _alone(pair, ideal=request.ideal) if alone else _overlaid(pair)

    return drawings(request, pick, "Offset over time", "offset [MiB]", whole=True)


def _overlaid(pair: PairSeries) -> Picked:
    sent = pair.middle.series.sent
    return Picked([Curve(sent.time, stacked(sent) / MIB, pair.server, pair.name, points=True)])


def _alone(pair: PairSeries, *, ideal: bool) -> Picked:
    middle = pair.middle
    sent = middle.series.sent
    offsets, again = stacked(sent) / MIB, sent.retransmission
    requests = middle.series.requests.sent
    curves = [Curve(run.series.sent.time, stacked(run.series.sent) / MIB, "other", points=True) for run in pair.others]
    curves += [
        Curve(sent.time[~again], offsets[~again], "first", "first transmission", points=True),
        Curve(sent.time[again], offsets[again], "again", "retransmission", points=True),
        Curve(requests, np.zeros(len(requests)), "request", "request sent", points=True),
    ]
    if ideal and len(sent) and pair.case.link.forward_rate:
        curves.append(_ideal(pair, middle))
    times = _times(middle)
    named = [f"{letter} {name} {seconds(time)}" for letter, (name, time) in zip(LETTERS, times.items(), strict=False)]
    marks = [(time, letter) for letter, time in zip(LETTERS, times.values(), strict=False)]
    return Picked(curves, ", ".join([*named, *_delays(times)]), marks)


def _ideal(pair: PairSeries, run: RunSeries) -> Curve:
    """What the link would carry without headers: from the first transmission on at the forward rate."""
    sent = run.series.sent
    size = int((stacked(sent) + sent.length).max())
    start = float(sent.time.min())
    end = start + 8 * size / pair.case.link.forward_rate
    return Curve(np.array([start, end]), np.array([0.0, size / MIB]), "ideal", "rate of the link")


def _times(run: RunSeries) -> dict[str, float]:
    """Moments that are known, in seconds."""
    series = run.series
    moments = {
        "request": series.requests.sent.min(initial=np.inf),
        "first transmission": series.sent.time.min(initial=np.inf),
        "first byte": series.requests.first_byte[np.isfinite(series.requests.first_byte)].min(initial=np.inf),
        "last transmission": series.sent.time.max(initial=-np.inf),
        "last byte": run.completion,
    }
    return {name: float(time) for name, time in moments.items() if np.isfinite(time)}


def _delays(times: Mapping[str, float]) -> Iterator[str]:
    """What the paper's arrows span."""
    for name, start, end in (
        ("response delay", "request", "first byte"),
        ("last transmission to last byte", "last transmission", "last byte"),
    ):
        if start in times and end in times:
            yield f"{name} {seconds(times[end] - times[start])}"


PLOT = Plot("offset", "Offset over time", "runs", table, draw)
