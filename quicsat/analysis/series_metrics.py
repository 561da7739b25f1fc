"""Metrics from the series of a run, for QUIC and TCP alike; ``analysis.metrics`` defines them; pure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from quicsat.model.arrays import Flags, Floats, Integers
from quicsat.traces.series import Packets, Series, window_rate
from quicsat.traces.spin_bit import spin_round_trips

MEGABYTE = 1_000_000
MARKS = {"time_to_2_mb": 2, "time_to_10_mb": 10, "time_to_100_mb": 100}
"""Sizes of the objectives of "QUIC: Opportunities and threats in SATCOM" (Kuhn et al., 2020), in megabytes."""
STEADY_PERCENTILE, STEADY_SHARE = 90, 0.8
SHARES = 25
"""Of a response, for ``Measurement.sending_times``."""
WINDOW, STEP = 1.0, 0.1
"""Seconds over which a rate is taken, and after which it is taken again."""
BURST_RATE = 4
"""A sender bursts if it sends faster than so many times the link's rate.

Those that pace are slower: up to 1.25 times the link's rate (RFC 9002, section 7.7), twice in slow start (Linux), 2.77
times in the start-up of BBR (draft-ietf-ccwg-bbr).
"""
FIRST_WINDOW = 0.9
"""Share of a round trip in which no acknowledgement of the response can have come back."""


def series_metrics(series: Series, forward_rate: float) -> dict[str, float]:
    """All numbers that can be known, by their names in ``METRICS``; SI units.

    ``forward_rate``: the highest of the link, bit/s.
    """
    found: dict[str, float | None] = {
        **_stream(series),
        **_rates(series),
        **_delays(series),
        **_sending(series),
        "longest_burst": longest_burst(series.forward, forward_rate),
        **{f"gilbert_{name}": value for name, value in gilbert(series.forward.judged).items()},
        "clock_uncertainty": series.clock.uncertainty if np.isfinite(series.clock.uncertainty) else None,
    }
    return {name: float(value) for name, value in found.items() if value is not None}


def sending_times(series: Series) -> tuple[float, ...]:
    """When the server had sent the first new byte, and each of ``SHARES`` equal shares of all; seconds, to 0.1 ms."""
    rows = series.sent.new > 0
    if not rows.any():
        return ()
    order = np.argsort(series.sent.time[rows], kind="stable")
    times, data = series.sent.time[rows][order], np.cumsum(series.sent.new[rows][order])
    places = np.searchsorted(data, np.linspace(0, data[-1], SHARES + 1))
    return tuple(round(float(time), 4) for time in times[places])


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _stream(series: Series) -> Mapping[str, float | None]:
    """What was sent again, and what arrived again."""
    sent, arrived = series.sent, series.arrived
    times, data = arrived.time[arrived.new > 0], np.cumsum(arrived.new[arrived.new > 0])
    reached = {name: int(np.searchsorted(data, mark * MEGABYTE)) for name, mark in MARKS.items()}
    return {
        "retransmitted": _share(int((sent.length - sent.new).sum()), int(sent.length.sum())),
        "spurious": _share(int((arrived.length - arrived.new).sum()), int(arrived.length.sum())),
        **{name: float(times[row]) if row < len(times) else None for name, row in reached.items()},
    }


def received_rates(series: Series) -> Floats:
    """Bit/s of new response bytes in windows of 1 s from the first byte on; none of a response shorter than two."""
    arrived = series.arrived
    if not len(arrived) or arrived.time[-1] - arrived.time[0] < 2 * WINDOW:
        return np.zeros(0)
    rate = window_rate(arrived.time - float(arrived.time[0]), arrived.new, window=WINDOW, step=STEP)
    return rate.value[rate.time >= WINDOW]


def queueing_delays(series: Series) -> Floats:
    """What queues added to the delay of the fastest packet forward, of each packet that arrived; seconds."""
    delay = series.forward.delay[~np.isnan(series.forward.delay)]
    return delay - delay.min() if len(delay) else delay


def _rates(series: Series) -> Mapping[str, float | None]:
    """The steady rate, lower quantiles, and how long it took to get there; only of responses longer than two windows.

    Start-up ends where the received bytes are furthest behind a transfer at the share of the steady rate, which is
    where its rate most likely changed (cumulative sum; Page 1954, Hinkley 1971). From then on, the mean rate up to any
    later time is at least this share. None if less than a window is left.
    """
    arrived, rates = series.arrived, received_rates(series)
    if not len(rates):
        return {}
    low, median, steady = np.percentile(rates, (10, 50, STEADY_PERCENTILE)).tolist()
    times = arrived.time - float(arrived.time[0])
    behind = 8 * (np.cumsum(arrived.new) - arrived.new) - STEADY_SHARE * steady * times
    start = float(times[behind.argmin()])
    return {
        "steady_rate": steady,
        "rate_10": low,
        "rate_median": median,
        "startup_time": start if times[-1] - start >= WINDOW else None,
    }


def _delays(series: Series) -> Mapping[str, float | None]:
    """Round trips at the server, and queueing delays."""
    queueing = queueing_delays(series)
    shortest = float(series.rtt.value.min()) if len(series.rtt) else None
    return {
        "rtt_min": shortest,
        "rtt_median": _percentile(series.rtt.value, 50),
        "rtt_95": _percentile(series.rtt.value, 95),
        "rtt_inflation": _share(_percentile(series.rtt.value, 95) or 0.0, shortest) if shortest else None,
        "queueing_delay_median": _percentile(queueing, 50),
        "queueing_delay_95": _percentile(queueing, 95),
        **_spin(series),
        "reordered_forward": _reordered(series.forward),
        "reordered_return": _reordered(series.back),
    }


def _spin(series: Series) -> Mapping[str, float | None]:
    """What an observer on the path reads from the spin bit; nothing if it does not spin."""
    found = spin_round_trips(series)
    if found is None:
        return {}
    observed, path = found
    return {
        "spin_rtt": _percentile(observed.value, 50),
        "spin_rtt_error": _percentile(np.abs(observed.value - path) / path, 50),
    }


def _percentile(values: Floats, percentage: float) -> float | None:
    return float(np.percentile(values, percentage)) if len(values) else None


def _reordered(packets: Packets) -> float | None:
    """Share of the packets that arrived after one that had been sent later (RFC 4737)."""
    arrived = packets.arrived[~np.isnan(packets.arrived)]
    earliest_later = np.minimum.accumulate(arrived[::-1])[::-1]
    return _share(int((arrived[:-1] > earliest_later[1:]).sum()), len(arrived))


def _sending(series: Series) -> Mapping[str, float | None]:
    """How the server sends, and how often the client answers."""
    there = int((~np.isnan(series.forward.arrived)).sum())
    window = None
    if len(series.sent) and len(series.rtt):
        early = series.sent.time < series.sent.time[0] + FIRST_WINDOW * series.rtt.value.min()
        window = float(series.sent.length[early].sum())
    return {
        "initial_window": window,
        "in_flight_max": float(series.in_flight.value.max()) if len(series.in_flight) else None,
        "return_packets": _share(len(series.back), there),
        "return_bytes": _share(int(series.back.size.sum()), int(series.arrived.new.sum())),
    }


def longest_burst(packets: Packets, rate: float) -> float | None:
    """Most packets in one burst at the sender's end of the link; 1 if all are paced.

    A link with ``BURST_RATE`` times the ``rate``, bit/s, cannot keep up with a burst: of the packets (UDP payload; TCP:
    header and payload) that would wait for each other there, those until the queue is longest. This queue is the
    burstiness of the sender at such a rate (Cruz 1991). So short pauses do not end a burst, and packets that are paced
    more slowly do not belong to it. Times are those of the capture. None without packets or rate.
    """
    if not len(packets) or rate <= 0:
        return None
    order = np.argsort(packets.sent, kind="stable")
    times, taken = packets.sent[order], 8 * packets.size[order] / (BURST_RATE * rate)
    before = np.cumsum(taken) - taken
    done = np.maximum.accumulate(times - before) + before + taken
    begins = np.flatnonzero(np.concatenate([[True], times[1:] >= done[:-1]]))
    waiting = done - times
    longest = np.repeat(np.maximum.reduceat(waiting, begins), np.diff(np.append(begins, len(times))))
    peaks = np.flatnonzero(waiting == longest)
    first = peaks[np.searchsorted(peaks, begins)]
    return float((first - begins).max() + 1)


def _runs(flags: Flags) -> Integers:
    """Lengths of the runs of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    lengths: Integers = edges[1::2] - edges[::2]
    return lengths


def gilbert(bad: Flags) -> dict[str, float | None]:
    """Parameters of the Gilbert model of the loss (Gilbert 1960): P(next|this) of good (g) and bad (b), longest burst.

    ``bad``: whether a packet was lost, in the order of sending.
    """
    before, after = bad[:-1], bad[1:]
    good_good, good_bad = int((~before & ~after).sum()), int((~before & after).sum())
    bad_bad, bad_good = int((before & after).sum()), int((before & ~after).sum())
    return {
        "gg": _share(good_good, good_good + good_bad),
        "bg": _share(good_bad, good_good + good_bad),
        "bb": _share(bad_bad, bad_bad + bad_good),
        "gb": _share(bad_good, bad_bad + bad_good),
        "longest_burst": float(_runs(bad).max(initial=0)) if len(bad) else None,
    }
