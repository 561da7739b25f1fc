"""Names of the campaigns in the directory of a gate."""

BASE, CHANGE = "base", "change"
"""Of the build without a change, and of the one with it."""
AGAIN = "-again"
"""What those of the second look end with."""
ALL = tuple(f"{name}{look}" for look in ("", AGAIN) for name in (BASE, CHANGE))
"""Of both looks."""
