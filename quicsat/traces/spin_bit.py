"""Round trips that an observer on the path reads from the spin bit, beside those that the path had; pure.

The client inverts the bit of the newest packet of the server, and the server returns the client's: in each direction,
the bit changes once per round trip (RFC 9000, section 17.4; RFC 9312, section 4.2). It is not encrypted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from quicsat.model.arrays import Floats
from quicsat.traces.columns import Form, Trace
from quicsat.traces.series import Packets, Samples, Series

LEAST_PERIODS = 3
LEAST_TRIP = 0.5
"""Share of the path's shortest round trip. A bit does not spin if half of its periods are shorter than this: endpoints
that disable the bit may set it at random (RFC 9000, section 17.4)."""


class SpinRoundTrips(NamedTuple):
    """Round trips from the same moments on."""

    observed: Samples
    """Periods of the spin bit, at their ends; seconds."""
    path: Floats
    """Of each: the delay of a packet that the server sent at its begin, and of the client's packets when it arrived."""


def spin_periods(server: Trace, times: Floats) -> Samples:
    """Seconds between two changes of the bit in packets from the server at its end of the link, at the second one.

    ``times``: of its packets. Of several paths, the one with most packets counts.
    """
    rows = np.flatnonzero(server.from_server & (server.form == Form.ONE_RTT))
    if not len(rows):
        return Samples.of()
    rows = rows[server.path[rows] == np.bincount(server.path[rows]).argmax()]
    changes = times[rows[1:]][np.diff(server.spin[rows]) != 0]
    return Samples(changes[1:], np.diff(changes))


def spin_round_trips(series: Series) -> SpinRoundTrips | None:
    """The round trips of a run; None if its bits do not spin."""
    observed = series.spin
    if len(observed) < LEAST_PERIODS:
        return None
    begin = observed.time - observed.value
    path = _delays(series.back, begin + _delays(series.forward, begin)) + _delays(series.forward, begin)
    if np.isnan(path).any() or np.median(observed.value) < LEAST_TRIP * path.min():
        return None
    return SpinRoundTrips(observed, path)


def _delays(packets: Packets, times: Floats) -> Floats:
    """The delay of packets that are sent at these times, seconds; NaN if none arrived."""
    came = ~np.isnan(packets.arrived)
    if not came.any():
        return np.full(len(times), np.nan)
    order = np.argsort(packets.sent[came], kind="stable")
    found: Floats = np.interp(times, packets.sent[came][order], packets.delay[came][order])
    return found
