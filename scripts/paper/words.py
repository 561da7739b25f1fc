"""Lists and counts in the report's sentences."""

from __future__ import annotations

from collections.abc import Iterable


def listed(words: Iterable[str]) -> str:
    """``sat``; ``terrestrial and sat``; ``terrestrial, sat and satloss``."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def counted(number: int, word: str) -> str:
    """``1 run``, ``2 runs``."""
    return f"{number} {word}{'' if number == 1 else 's'}"
