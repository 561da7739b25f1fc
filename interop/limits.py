"""What whoever starts a campaign allows it to take; a noun."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from interop.hours import Hours


@dataclass(frozen=True)
class Limits:
    """What whoever started the campaign allows it; None for whatever it takes."""

    hours: Hours | None = None
    """No run begins while these are closed."""
    deadline: datetime | None = None
    """No run begins that is not likely to end before."""
    most_seconds: float | None = None
    """The same, counted from the start of the campaign on a clock that nobody sets."""
    breaker: int | None = None
    """Runs of an implementation in a row, in one role and test case, that may stall before it is tried no more."""
    budget: float | None = None
    """Seconds that the runs of one implementation may take together."""
