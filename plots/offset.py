"""Time-offset figures (Figs. 7-11 of arXiv 2202.08228): where in the file each packet of the server lies, over time."""

from collections.abc import Iterator, Mapping

import numpy as np

from quicsat.model.results import ResultSet
from quicsat.model.run import RunKey
from quicsat.model.units import MIB, seconds
from quicsat.plots.base import sentences
from quicsat.plots.time_series_base import Curve, Picked, over_time, stacked
from quicsat.report.pair_series import PairSeries, RunSeries
from quicsat.report.plot_request import PlotRequest
from quicsat.traces.series import StreamData

LETTERS = "abcde"


def _pick(request: PlotRequest, pair: PairSeries, alone: bool) -> Picked:
    """Alone, with marks of the middle run."""
    middle = pair.middle
    sent = _shown(middle)
    offsets, again = stacked(sent) / MIB, sent.retransmission
    if not alone:
        return Picked([Curve(sent.time, offsets, "", points=True)], _where(pair))
    requests = middle.series.requests.sent
    curves = [Curve(shown.time, stacked(shown) / MIB, "other", points=True) for shown in map(_shown, pair.others)]
    curves += [
        Curve(sent.time[~again], offsets[~again], "first", "first transmission", points=True),
        Curve(sent.time[again], offsets[again], "again", "retransmission", points=True),
        Curve(requests, np.zeros(len(requests)), "request", "request sent", points=True),
    ]
    if request.ideal and len(middle.series.sent):
        curves += _ideal(pair, middle)
    if request.baseline is not None and len(middle.series.sent):
        curves += _before(pair, middle, request.baseline)
    times = _times(middle)
    named = [
        f"({letter}) {name}, at {seconds(time)}" for letter, (name, time) in zip(LETTERS, times.items(), strict=False)
    ]
    marks = [(time, letter) for letter, time in zip(LETTERS, times.values(), strict=False)]
    words = [f"The letters mark these moments: {'; '.join(named)}"] if named else []
    return Picked(curves, sentences(*words, *_delays(times), _where(pair)), marks)


def _shown(run: RunSeries) -> StreamData:
    """What the server sent; without its trace, what arrived at the client."""
    return run.series.sent if len(run.series.sent) else run.series.arrived


def _where(pair: PairSeries) -> str:
    if len(pair.middle.series.sent) or not len(pair.middle.series.arrived):
        return ""
    return "The times are those of arrival at the client, because the trace of the server is missing"


def _before(pair: PairSeries, run: RunSeries, baseline: ResultSet) -> list[Curve]:
    """The transfer of the same repetition in the baseline."""
    size = int((stacked(run.series.sent) + run.series.sent.length).max()) / MIB
    wanted = RunKey(pair.server, pair.client, pair.case.name, run.repetition)
    for result in baseline.results:
        times = result.measurement.sending_times if result.measurement is not None else ()
        if result.key == wanted and times:
            return [Curve(np.array(times), np.linspace(0, size, len(times)), "baseline", "baseline")]
    return []


def _ideal(pair: PairSeries, run: RunSeries) -> list[Curve]:
    """What the link would carry without headers: from the first transmission on at the forward rate."""
    sent = run.series.sent
    size = 8 * int((stacked(sent) + sent.length).max())
    rates = pair.forward_rates(run, float(sent.time.min()), float(sent.time.max()))
    if not rates:  # another runner, which does not state it
        return []
    times, bits = [time for time, _ in rates[:1]], [0.0]
    for (since, rate), after in zip(rates, [*(time for time, _ in rates[1:]), np.inf], strict=True):
        end = min(after, since + (size - bits[-1]) / rate) if rate else after
        if size - bits[-1] >= 1 and np.isfinite(end):
            times.append(end)
            bits.append(bits[-1] + rate * (end - since))
    return [Curve(np.array(times), np.array(bits) / 8 / MIB, "ideal", "rate of the link")]


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
        ("time from the last transmission to the last byte", "last transmission", "last byte"),
    ):
        if start in times and end in times:
            yield f"The {name} is {seconds(times[end] - times[start])}"


PLOT = over_time("offset", "Offset over time", "offset [MiB]", _pick, whole=True)
