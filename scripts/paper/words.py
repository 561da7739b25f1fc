"""Lists and counts in the report's sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterable


def listed(words: Iterable[str]) -> str:
    """``sat``; ``terrestrial and sat``; ``terrestrial, sat and satloss``."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def counted(number: int, word: str) -> str:
    """``1 run``, ``2 runs``."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def part_of(number: int, every: int, word: str) -> str:
    """``3 of the 4 runs``, ``all 4 runs``, ``the only run``."""
    if number < every:
        return f"{number} of the {counted(every, word)}"
    return f"all {every} {word}s" if every > 1 else f"the only {word}"


def named_campaigns(names: Collection[str]) -> str:
    """``campaign `real```, ``campaigns `limits` and `queues```."""
    return f"{'campaign' if len(names) == 1 else 'campaigns'} {listed(f'`{name}`' for name in names)}"
