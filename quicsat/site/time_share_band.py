"""What a run waited for at each moment, as columns for the browser; pure."""

from __future__ import annotations

import numpy as np

from quicsat.analysis.time_shares import SHARES, Stretches
from quicsat.site.packets import PackedColumn

CELLS = 3000
"""Number of equal steps of time in a band: two for each pixel of a wide screen."""
TICK = 1e-4
"""Seconds."""


def time_share_columns(found: Stretches | None) -> list[PackedColumn]:
    """When each stretch begins, with the place of its share in ``SHARES``, the last row is the end; and the seconds of
    each share. Empty without.

    Each of ``CELLS`` parts of the time has the share that took most of it.
    """
    if found is None:
        return []
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
        PackedColumn("share_seconds", np.array([*found.seconds.values()]), TICK),
    ]
