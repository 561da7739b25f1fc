"""What a run waited for, in all and at each moment, as columns for the browser; pure."""

from collections.abc import Mapping

import numpy as np

from quicsat.analysis.time_shares import SHARES, Stretches
from quicsat.model.time_shares import TimeShare
from quicsat.site.packets import PackedColumn

CELLS = 3000
"""Number of equal steps of time in a band: two for each pixel of a wide screen."""
TICK = 1e-4
"""Seconds."""
AGREEMENT = 0.005
"""Of the transfer's time, by which a share of the band differs from the stored one at most: half of what words show."""


def time_share_columns(found: Stretches | None, stored: Mapping[TimeShare, float]) -> list[PackedColumn]:
    """The ``stored`` seconds of each share, as all outputs state them; and the band: when each stretch begins, with the
    place of its share in ``SHARES``. Its last row is the end. Empty if nothing is stored.

    Each of ``CELLS`` parts of the time has the share that took most of it. There is no band without stretches, or if
    these were found by other rules than the stored shares.
    """
    if not stored:
        return []
    seconds = PackedColumn("share_seconds", np.array([stored[share] for share in SHARES]), TICK)
    if found is None or not _agree(found, stored):
        return [seconds]
    edges = np.linspace(0.0, found.time[-1], CELLS + 1)
    lengths = np.diff(found.time)
    spent = [
        np.interp(edges, found.time, np.append(0.0, np.cumsum(lengths * (found.share == number))))
        for number in range(len(SHARES))
    ]
    most = np.diff(spent).argmax(axis=0)
    first = np.flatnonzero(np.diff(most, prepend=-1))
    return [
        PackedColumn("share_time", np.append(edges[first], edges[-1]), TICK),
        PackedColumn("share", np.append(most[first], most[-1]), 1.0),
        seconds,
    ]


def _agree(found: Stretches, stored: Mapping[TimeShare, float]) -> bool:
    tolerance = AGREEMENT * float(found.time[-1] - found.time[0])
    return all(abs(spent - stored[share]) <= tolerance for share, spent in found.seconds.items())
