"""By how much the clocks of the two hosts of a real link differ; pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quicsat.model.arrays import Floats


@dataclass(frozen=True)
class ClockOffset:
    """How the clocks of the two traces were brought together."""

    offset: float
    """Seconds that the server's trace is ahead of the client's; has been subtracted from all its times. 0 over an
    emulated link, where one process writes both traces; an estimate over a real one."""
    uncertainty: float
    """The true offset is within so many seconds of it: 0 over an emulated link; infinite if no packet was seen at both
    ends of a real one."""


def clock_offset(forward: Floats, back: Floats) -> ClockOffset:
    """By how much the server's clock is ahead of the client's, and how sure that is: an estimate for two clocks.

    ``forward`` and ``back``: seconds that each packet took by the two clocks, NaN if it did not arrive. No packet is
    faster than its link: delays of the forward packets say that the offset is at least so much, those of the others
    that it is at most so much. The middle is taken: the estimate assumes that the fastest packets took equally long
    both ways. A standing queue in one direction shifts it by half of the queue's delay.
    """
    if np.isnan(forward).all() or np.isnan(back).all():
        return ClockOffset(0.0, float("inf"))
    least, most = -float(np.nanmin(forward)), float(np.nanmin(back))
    return ClockOffset((least + most) / 2, abs(most - least) / 2)
