"""Sizes of the server's packets over time, and how much of them is no data of streams."""

import numpy as np

from quicsat.model.arrays import Integers
from quicsat.plots.time_series_base import Curve, Picked, over_time
from quicsat.report.pair_series import PairSeries
from quicsat.report.plot_request import PlotRequest
from quicsat.traces.series import UNKNOWN, Series


def _pick(_: PlotRequest, pair: PairSeries, alone: bool) -> Picked:
    series = pair.middle.series
    packets = series.forward
    if not alone:
        return Picked([Curve(packets.sent, packets.size, "", points=True)])
    data = payload(series)
    rest = packets.size - data
    others = [Curve(run.series.forward.sent, run.series.forward.size, "other", points=True) for run in pair.others]
    curves = [
        *others,
        Curve(packets.sent, packets.size, "first", "packet from the server", points=True),
        Curve(packets.sent, rest, "again", "of which no stream data", points=True),
    ]
    return Picked(curves, _note(packets.size, data, rest) if len(packets) else "")


def payload(series: Series) -> Integers:
    """Bytes of stream data in each of the server's packets; those without a readable number hold none."""
    numbers, place = np.unique(series.sent.number, return_inverse=True)
    sums = np.bincount(place, weights=series.sent.length, minlength=len(numbers)).astype(np.int64)
    found = np.searchsorted(numbers, series.forward.number)
    known = (found < len(numbers)) & (series.forward.number != UNKNOWN)
    known[known] &= numbers[found[known]] == series.forward.number[known]
    result = np.zeros(len(series.forward), dtype=np.int64)
    result[known] = sums[found[known]]
    return np.minimum(result, series.forward.size)


def _note(whole: Integers, data: Integers, rest: Integers) -> str:
    parts = (("packet", whole), ("stream data", data), ("other data", rest))
    means = ", ".join(f"{name} {sizes.mean():.0f} ± {sizes.std():.0f}" for name, sizes in parts)
    share = f"{100 * rest.sum() / max(1, whole.sum()):.1f} %"
    return f"The sizes in bytes (mean ± standard deviation) are: {means}. {share} of all bytes are not stream data"


PLOT = over_time("packet-size", "Packet size over time", "size [bytes]", _pick)
