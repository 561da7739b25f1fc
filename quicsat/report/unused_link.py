"""Why a transfer that succeeded was slow: in which of its phases the link carried less than it could; pure."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from quicsat.model.outcomes import Outcome
from quicsat.model.results import RunResult
from quicsat.model.test_case import TestCase, constant_rate
from quicsat.model.text import counted
from quicsat.model.units import byte_size, percent, seconds
from quicsat.traces.series import Series

USED = 0.9
"""Share of the link from which on a transfer is not slow."""
LEAST = 0.001
"""Seconds that are told."""
HEADERS = 28
"""Bytes of IPv4 and UDP headers of a packet, which the link carries, too."""


@dataclass(frozen=True)
class UnusedTime:
    """A phase of a transfer."""

    seconds: float
    """For which a link that carried the same bytes at its full rate would have been idle."""
    text: str
    """What was going on."""


def why_slow(result: RunResult, case: TestCase, series: Series) -> str:
    """Sentences on the phases of a run that succeeded.

    Empty if the run was fast, or the rate of the link is not constant.
    """
    rate, trip = constant_rate(case.link), case.link.round_trip_delay
    efficiency = result.measurement.values.get("efficiency") if result.measurement else None
    if result.verdict.outcome is not Outcome.SUCCEEDED or rate is None or efficiency is None or efficiency >= USED:
        return ""
    phases = [phase for phase in _phases(series, rate, trip) if phase.seconds > LEAST]
    told = "; ".join(f"{seconds(phase.seconds)} {phase.text}" for phase in phases)
    return f"The transfer used {percent(efficiency)} of the link. The link was idle for {told}." if told else ""


def _phases(series: Series, rate: float, trip: float) -> Iterator[UnusedTime]:
    """``rate``: of the link, bit/s; ``trip``: propagation delay both ways, seconds."""
    arrived = series.arrived
    fresh = arrived.time[arrived.new > 0]
    if not len(fresh):
        return
    first, last = float(fresh.min()), float(fresh.max())
    product = rate * trip / 8
    full = _when_filled(series, product, trip, last)
    yield UnusedTime(_idle(series, 0.0, first, rate), "until the first byte of the response arrived")
    flying = series.in_flight.value
    largest = byte_size(float(flying.max())) if len(flying) else "an unknown amount"
    held = f"{byte_size(product)} that the link holds (bandwidth-delay product)"
    if full is None:
        text = f"from then on: the server never had more than {largest} in flight, of the {held}"
        yield UnusedTime(_idle(series, first, last, rate), text)
        return
    yield UnusedTime(_idle(series, first, full, rate), f"from then on, until the server had in flight the {held}")
    lost = int((series.forward.lost & (series.forward.sent > full - trip / 2)).sum())
    later = flying[series.in_flight.time > full - trip / 2]
    median = byte_size(float(np.median(later))) if len(later) else "nothing"
    yield UnusedTime(
        _idle(series, full, last, rate),
        f"after that, with a median of {median} in flight and {counted(lost, 'lost packet')}",
    )


def _when_filled(series: Series, product: float, trip: float, last: float) -> float | None:
    """When the packet arrives with which as many bytes are in flight as the link holds; None if none does."""
    enough = np.flatnonzero(series.in_flight.value >= product)
    when = float(series.in_flight.time[enough[0]]) + trip / 2 if len(enough) else last
    return when if when < last else None


def _idle(series: Series, since: float, until: float, rate: float) -> float:
    """Seconds between two moments at the client, without those that what arrived meanwhile takes at the full rate."""
    came, sizes = series.forward.arrived, series.forward.size + HEADERS
    if not len(came):  # without the trace of the server
        came, sizes = series.arrived.time, series.arrived.length
    carried = int(sizes[(came > since) & (came <= until)].sum())
    return max(until - since - 8 * carried / rate, 0.0)
