"""The page of the report docs/paper."""

from __future__ import annotations

from dataclasses import replace

from scripts.paper.page import text
from tests.scripts.paper.campaigns import matrix


def test_the_page_says_what_has_not_been_measured_yet() -> None:
    whole = text(matrix())
    assert "Of 8 planned runs, 8 have a result. " in whole
    part = text(replace(matrix(), results=matrix().results[:6]))
    assert "Of 8 planned runs, 6 have a result; the other runs have not been measured yet." in part
