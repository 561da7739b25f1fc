"""Callbacks for someone who watches runs while they are under way; called from the threads of workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quicsat.model.run import Run


@dataclass(frozen=True)
class RunWatcher:
    """What happens to runs at the daemon of this machine; others are not watched."""

    began: Callable[[Run], object]
    """An attempt at a run has begun."""
    received: Callable[[Run, int], object]
    """The client has received so many bytes so far, headers included; told every few seconds, in real time only."""
    ended: Callable[[Run], object]
    """The attempt is over; its result may take longer."""
