"""A table that is wider than the terminal is wrapped, split by columns, or written row by row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quicsat.report.drawing import Text, draw, fill

SENTENCE = "The transfer took longer than 60 s, so that nothing was judged."


def widest(text: str) -> int:
    return max(map(len, text.splitlines()))


def test_rows_become_blocks_if_a_word_does_not_fit_beside_the_keys() -> None:
    drawn = draw(["name", "digest"], [["x" * 20, "0" * 64], ["y", ""]], width=80)
    assert drawn == f"name    {'x' * 20}\ndigest  {'0' * 64}\n\nname    y"


def test_image_references_are_wrapped_after_a_slash() -> None:
    assert fill("pull registry.example/folder/image:latest now", 24).splitlines() == [
        "pull registry.example/", "folder/image:latest now",
    ]  # fmt: skip


@pytest.mark.parametrize("markdown", [False, True])
def test_without_a_terminal_a_table_is_as_wide_as_it_is(markdown: bool) -> None:
    rows = [["a", SENTENCE * 4]]
    assert SENTENCE * 4 in draw(["pair", "reason"], rows, markdown=markdown, width=40 if markdown else None)


TEXTS = st.text(st.sampled_from("ab 1/"), max_size=30)


@given(
    table=st.integers(1, 9).flatmap(lambda size: st.lists(st.lists(TEXTS, min_size=size, max_size=size), max_size=4)),
    width=st.integers(60, 120),
    keys=st.integers(1, 3),
    wrap=st.booleans(),
)
def test_every_table_fits(table: list[list[str]], width: int, keys: int, wrap: bool) -> None:
    size = len(table[0]) if table else 1
    rows = [[Text(field, "red") for field in row] for row in table]
    drawn = draw([f"c{number}" for number in range(size)], rows, width=width, keys=keys, wrap=wrap)
    assert widest(drawn or " ") <= width
    assert all(word in drawn for row in table for field in row for word in field.replace("/", "/ ").split())
