"""Times of day as result files hold them."""

from datetime import UTC, datetime

YEARS = range(1990, 2200)
"""Of which a run or an image can be; calendars end, and time zones do not reach beyond them."""


def moment(text: str) -> datetime | None:
    """A time of RFC 3339 with its zone, in UTC; None for anything else, and for other years than ``YEARS``."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo and found.year in YEARS else None
