"""Packet number, round-trip time and congestion window over time, of several pairs and test cases in one picture.

It compares transports: TCP, TCP through a VPN, and QUIC.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from quicsat.model.names import pair_folder
from quicsat.model.test_case import TestCase
from quicsat.model.units import KIB, MS
from quicsat.plots.base import Drawing, Group, Panel, Plot, sentences
from quicsat.plots.rtt import WINDOWS, medians
from quicsat.plots.time_series_base import Curve, draw, overlay, packet_numbers, repetitions_in_words, with_curves
from quicsat.report.pair_series import PairSeries, cells, load_pairs
from quicsat.report.plot_request import PlotRequest

NOTE = (
    "Labels name server, client and test case. The server's packet numbers are relative to its first response. Windows "
    "come from its qlog or, over TCP, from its kernel, and apply until the next value or the server's last packet. "
    f"Round-trip times are the medians of {WINDOWS} equal stretches of time"
)
MOST_CURVES = 8
"""Pairs and test cases of a picture for which none was selected."""
LONGEST_STEM = 120
"""Letters of a file name; a longer one ends with a digest instead."""


def table(request: PlotRequest) -> Sequence[Drawing]:
    """One drawing of three panels; in each, every pair and test case has a curve of the same colour."""
    chosen, few = few_curves(request)
    found = with_curves(load_pairs(chosen), lambda pair: [_numbers(pair), _window(pair)])
    numbers = overlay(found, [[_numbers(pair)] for pair in found])
    trips = overlay(found, [[Curve.of(medians(pair.middle.series.rtt), MS, "")] for pair in found])
    windows = overlay(found, [[_window(pair)] for pair in found])
    missing = [curve.label for curve in windows if not len(curve.x)]
    rows = (
        Panel(numbers, {"ylabel": "packet number"}),
        Panel(trips, {"ylabel": "RTT [ms]", "from_zero": False, "legend": False}),
        Panel(windows, {"ylabel": "window [KiB]", "legend": False}),
    )
    return [
        Drawing(
            stem_of(chosen, found),
            "Packet number, round-trip time and congestion window",
            sentences(
                repetitions_in_words(found),
                few,
                NOTE,
                f"There is no window for: {'; '.join(missing)}" if missing else "",
            ),
            tuple((each,) for each in rows),
            (6.6, 8.0),
        )
    ]


def few_curves(request: PlotRequest) -> tuple[PlotRequest, str]:
    """The same request; if it selects nothing, with as many of the pairs and test cases as curves can be told apart,
    and a note for the caption."""
    everything = cells(request)
    chosen = request if request.plots or request.pairs else _few(request, everything)
    return (
        chosen,
        "" if chosen is request else f"Of {len(everything)} pairs and test cases, these are the slowest pairs",
    )


def _few(request: PlotRequest, everything: Sequence[tuple[TestCase, tuple[str, str]]]) -> PlotRequest:
    """As many of the pairs and test cases as curves can be told apart; the same request if these are all."""
    cases = tuple(dict.fromkeys(case.name for case, _ in everything))
    pairs = tuple(dict.fromkeys(pair for _, pair in everything))
    if len(cases) * len(pairs) <= MOST_CURVES:
        return request
    return replace(request, test_cases=cases[:MOST_CURVES], pairs=pairs[: max(1, MOST_CURVES // len(cases))])


def stem_of(request: PlotRequest, found: Sequence[PairSeries]) -> str:
    """The selected pairs and test cases; empty if all are drawn."""
    pairs = dict.fromkeys(pair_folder(pair.server, pair.client) for pair in found) if request.pairs else ()
    cases = dict.fromkeys(pair.case.abbreviation for pair in found) if request.test_cases else ()
    words = "-".join((*pairs, *cases))
    if len(words) <= LONGEST_STEM:
        return words
    return f"{words[:LONGEST_STEM]}-{hashlib.sha256(words.encode()).hexdigest()[:8]}"


def _numbers(pair: PairSeries) -> Curve:
    return packet_numbers(pair.middle.series.forward, pair.middle.series.sent.time, "")


def _window(pair: PairSeries) -> Curve:
    """The congestion window in steps: qlogs and kernels tell only its changes."""
    window, packets = pair.middle.series.cwnd, pair.middle.series.forward
    if not len(window):
        return Curve.of(window, KIB, "")
    times = np.append(window.time, max(float(window.time[-1]), packets.sent.max(initial=0.0)))
    return Curve(np.repeat(times, 2)[1:-1], np.repeat(window.value, 2) / KIB, "")


PLOT = Plot("transports", "Packet number, round-trip time and window", Group.TIME, "all runs", table, draw)
