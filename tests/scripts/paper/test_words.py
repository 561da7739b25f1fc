"""Lists and counts in the report's sentences."""

from __future__ import annotations

from scripts.paper.words import counted, listed, named_campaigns, part_of


def test_the_last_of_several_words_follows_and() -> None:
    assert [listed("abc"[:number]) for number in (1, 2, 3)] == ["a", "a and b", "a, b and c"]


def test_only_one_is_singular() -> None:
    assert [counted(number, "run") for number in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]


def test_all_of_some_runs_are_no_part_of_them() -> None:
    numbers = ((0, 1), (1, 1), (1, 2), (2, 2))
    told = ["0 of the 1 run", "the only run", "1 of the 2 runs", "all 2 runs"]
    assert [part_of(number, every, "run") for number, every in numbers] == told


def test_names_of_campaigns_are_marked() -> None:
    assert [named_campaigns(["a", "b"][:number]) for number in (1, 2)] == ["campaign `a`", "campaigns `a` and `b`"]
