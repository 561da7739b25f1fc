"""Callbacks for whoever follows a campaign; those about runs are called from the threads of workers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quicsat.model.results import RunResult
from quicsat.model.run import Run


def _ignore(_: object) -> None:
    """Nothing wants to know."""


@dataclass(frozen=True)
class Observer:
    """What happens in a campaign. Runs under way are followed only at the daemon of this machine."""

    say: Callable[[str], None] = _ignore
    """Gets messages for the user."""
    done: Callable[[RunResult], object] = _ignore
    """Gets each result, one at a time."""
    planned: Callable[[Sequence[Run]], object] = _ignore
    """Gets the runs that are to be made, before the first one."""
    began: Callable[[Run], object] = _ignore
    """An attempt at a run has begun."""
    received: Callable[[Run, int], object] | None = None
    """The client has received so many bytes so far, headers included; told every few seconds, in real time only."""
    ended: Callable[[Run], object] = _ignore
    """The attempt is over; its result may take longer."""
