"""Distributions within runs: queueing delay, inflation of the round trip, rate received, and return bytes per MB."""

from collections.abc import Sequence

import numpy as np

from quicsat.analysis.series_metrics import MEGABYTE, WINDOW, queueing_delays, received_rates
from quicsat.model.arrays import Floats
from quicsat.model.units import MBPS, MS
from quicsat.plots.base import Drawing, Group, Panel, Plot, sentences
from quicsat.plots.time_series_base import Curve, draw, overlay, repetitions_in_words, with_curves
from quicsat.plots.transports import few_curves, stem_of
from quicsat.report.pair_series import load_pairs
from quicsat.report.plot_request import PlotRequest
from quicsat.traces.series import Series

KILOBYTE = 1000
NOTE = (
    "Labels name server, client and test case. Queueing delay is what a packet of the server took longer than the "
    "fastest one. Round trips are those at the server. Rates are those of new response "
    f"bytes in windows of {WINDOW:g} s. Return bytes are the UDP payload that the client sent while each MB arrived"
)


def table(request: PlotRequest) -> Sequence[Drawing]:
    """One drawing of four panels; in each, every pair and test case has a curve of the same colour."""
    chosen, few = few_curves(request)
    found = with_curves(load_pairs(chosen), lambda pair: [_shares(_inflations(pair.middle.series))])
    panels = list[Panel]()
    for xlabel, values in (
        ("queueing delay [ms]", lambda series: queueing_delays(series) / MS),
        ("RTT beyond the shortest one [%]", _inflations),
        ("rate received [Mbit/s]", lambda series: received_rates(series) / MBPS),
        ("return bytes per MB [kB]", lambda series: _return_bytes(series) / KILOBYTE),
    ):
        curves = overlay(found, [[_shares(values(pair.middle.series))] for pair in found])
        panels.append(Panel(curves, {"xlabel": xlabel, "ylabel": "share [%]", "legend": not panels}))
    return [
        Drawing(
            stem_of(chosen, found),
            TITLE,
            sentences(repetitions_in_words(found), few, NOTE),
            (tuple(panels[:2]), tuple(panels[2:])),
            (6.6, 6.0),
        )
    ]


def _shares(values: Floats) -> Curve:
    """The share of values, in percent, that is not above each."""
    ordered = np.sort(values)
    return Curve(ordered, 100 * np.arange(1, len(ordered) + 1) / max(len(ordered), 1), "")


def _inflations(series: Series) -> Floats:
    """What each round trip at the server took longer than the shortest one, in percent of it."""
    trips = series.rtt.value
    return 100 * (trips / trips.min() - 1) if len(trips) else trips


def _return_bytes(series: Series) -> Floats:
    """Bytes that the client sent while each MB of new response bytes arrived."""
    data = np.cumsum(series.arrived.new)
    marks = np.arange(0, int(data[-1]) + 1 if len(data) else 0, MEGABYTE)
    times = series.arrived.time[np.minimum(np.searchsorted(data, marks), len(data) - 1)]
    order = np.argsort(series.back.sent, kind="stable")
    sent = np.concatenate([[0], np.cumsum(series.back.size[order])])
    found: Floats = np.diff(sent[np.searchsorted(series.back.sent[order], times, "right")]).astype(np.float64)
    return found


TITLE = "Queueing delay, round trips, rate and return bytes"
PLOT = Plot("delivery", TITLE, Group.DISTRIBUTIONS, "all runs", table, draw)
