"""Round-trip time, congestion window and bytes in flight over time, at the server (slides on quicly over satellite)."""

from collections.abc import Sequence

import numpy as np

from quicsat.model.units import KIB, MS
from quicsat.plots.base import Drawing, Group, Panel, Plot, sentences, stem
from quicsat.plots.time_series_base import (
    Curve,
    common_title,
    draw,
    overlay,
    overlay_stem,
    pair_caption,
    pairs_caption,
    with_curves,
)  # fmt: skip
from quicsat.report.pair_series import PairSeries, load_pairs
from quicsat.report.plot_request import PlotRequest
from quicsat.traces.series import Samples
from quicsat.traces.spin_bit import spin_round_trips

WINDOWS = 150
"""Stretches of time of which a line shows the medians."""
SPIN = (
    "Each cross is a period of the spin bit at the server, and the path is the delay of a packet that the server sends "
    "when this period begins, plus that of a packet that the client sends when it arrives"
)


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per pair and test case: round-trip time above, window and bytes in flight below; or all in one."""
    found = with_curves(load_pairs(request), lambda pair: [curve for curves in _alone(pair) for curve in curves])
    if request.overlaid:
        title, caption = common_title("Round-trip time and bytes in flight", found), sentences(pairs_caption(found))
        return [_drawing(overlay_stem(found), title, caption, *_overlaid(found))]
    return [
        _drawing(
            stem(request, pair.campaign, pair.folder),
            f"Round-trip time and window: server {pair.server}, client {pair.client}, {pair.case.abbreviation}",
            sentences(
                pair_caption(pair),
                f"Medians are those of {WINDOWS} equal stretches of time",
                SPIN if spin_round_trips(pair.middle.series) else "",
                ""
                if len(pair.middle.series.cwnd)
                else "No congestion window: neither a qlog nor the server's kernel tells it",
            ),
            *_alone(pair),
        )
        for pair in found
    ]


def _drawing(name: str, title: str, caption: str, above: Sequence[Curve], below: Sequence[Curve]) -> Drawing:
    several = name.startswith("overlaid")
    panels = (
        (Panel(above, {"ylabel": "RTT [ms]", "from_zero": False}),),
        (Panel(below, {"ylabel": "window, in flight [KiB]", "legend": not several}),),
    )
    return Drawing(name, title, caption, panels, (6.6, 5.6))


def medians(samples: Samples) -> Samples:
    """The median of each of ``WINDOWS`` equal stretches of time that has samples; of few samples all of them.

    Samples of acknowledgements that alternate, such as delayed and immediate ones, would fill the area between them.
    """
    if len(samples) <= WINDOWS:
        return samples
    edges = np.linspace(samples.time[0], samples.time[-1], WINDOWS + 1)
    place = np.clip(np.searchsorted(edges, samples.time, "right") - 1, 0, WINDOWS - 1)
    found = np.unique(place)
    middles = (edges[found] + edges[found + 1]) / 2
    return Samples(middles, np.array([np.median(samples.value[place == each]) for each in found]))


def _overlaid(found: Sequence[PairSeries]) -> tuple[list[Curve], list[Curve]]:
    series = [(pair, pair.middle.series) for pair in found]
    return (
        overlay(found, [[Curve.of(medians(each.rtt), MS, "")] for pair, each in series]),
        overlay(found, [[Curve.of(each.in_flight, KIB, "")] for pair, each in series]),
    )


def _alone(pair: PairSeries) -> tuple[list[Curve], list[Curve]]:
    middle = pair.middle.series
    above = [
        Curve(middle.rtt.time, middle.rtt.value / MS, "sample", "samples", points=True),
        *(Curve.of(medians(run.series.rtt), MS, "other") for run in pair.others),
        Curve.of(medians(middle.rtt), MS, "first", "median of the samples"),
    ]
    if (spin := spin_round_trips(middle)) is not None:
        above.append(Curve(spin.observed.time, spin.path / MS, "steady", "path"))
        above.append(Curve(spin.observed.time, spin.observed.value / MS, "again", "spin bit", points=True))
    if len(middle.rtt):
        span = np.array([0.0, float(middle.rtt.time[-1])])
        above.append(Curve(span, np.full(2, pair.case.link.round_trip_delay / MS), "ideal", "delay of the link"))
    below = [
        *(Curve.of(run.series.in_flight, KIB, "other") for run in pair.others),
        Curve.of(middle.in_flight, KIB, "first", "in flight"),
    ]
    if len(middle.cwnd):
        below.append(Curve.of(middle.cwnd, KIB, "again", "congestion window"))
    return above, below


PLOT = Plot("rtt", "Round-trip time and window", Group.TIME, "runs", table, draw)
