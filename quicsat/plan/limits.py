"""How long a campaign may take, and when it may run."""

from dataclasses import dataclass
from datetime import datetime

from quicsat.plan.time_windows import Hours


@dataclass(frozen=True)
class CampaignLimits:
    """Limits that the user sets for a campaign; None is unlimited."""

    hours: Hours | None = None
    """Runs begin only within these hours."""
    deadline: datetime | None = None
    """No run begins that would probably end after this time."""
    most_seconds: float | None = None
    """The same, in seconds from the start of the campaign, on a monotonic clock."""
    breaker: int | None = None
    """After this many stalled runs in a row of an implementation in one role and test case, the rest is skipped."""
    budget: float | None = None
    """Seconds that all runs of one implementation may take together."""
    required: str | None = None
    """Name of the test case without whose success the runs of a pair in other test cases are skipped."""
    skip_on_failure: bool = False
    """After a run of a pair in a test case that did not succeed, their further repetitions are skipped."""
