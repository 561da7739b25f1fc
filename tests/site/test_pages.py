"""What templates show: durations, web addresses."""

from __future__ import annotations

import pytest

from interop.site.pages import duration, web_address


@pytest.mark.parametrize(
    ("time", "text"), [(0, "–"), (42.4, "42 s"), (754, "13 min"), (3600, "1 h 0 min"), (7300, "2 h 2 min")]
)
def test_durations_are_as_exact_as_a_reader_wants(time: float, text: str) -> None:
    assert duration(time) == text


@pytest.mark.parametrize("text", ["javascript:alert(1)", "http://a b", "ftp://a.example", 'https://a.example/"'])
def test_what_is_no_plain_web_address_becomes_no_link(text: str) -> None:
    assert web_address(text) == ""
    assert web_address("https://a.example/b") == "https://a.example/b"
