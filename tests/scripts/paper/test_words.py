"""Lists and counts in the report's sentences."""

from __future__ import annotations

from scripts.paper.words import counted, listed


def test_the_last_of_several_words_follows_and() -> None:
    assert [listed("abc"[:number]) for number in (1, 2, 3)] == ["a", "a and b", "a, b and c"]


def test_only_one_is_singular() -> None:
    assert [counted(number, "run") for number in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
