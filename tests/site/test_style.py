"""Colours of the site: every text on its ground has a contrast of at least 4.5 (WCAG 2.1, 1.4.3), every mark of 3."""

import re

import pytest

from tests.site.builder import ROOT

STYLE = (ROOT / "web" / "assets" / "site.css").read_text(encoding="utf-8")
BLOCKS = re.findall(r"\{\s*color-scheme[^}]*\}", STYLE)[:3]
LIGHT, DARK_BY_SYSTEM, DARK = (dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", block)) for block in BLOCKS)
CELL_STATES = ("timeout", "failed", "unsupported", "error", "partial", "succeeded")
TEXTS = [
    *((name, "ground") for name in ("text", "dim", "link")),
    *((name, "soft") for name in ("text", "dim", "link")),
    *((f"on-{state}", state) for state in CELL_STATES),
    *(("on-low", f"e{shade}") for shade in range(6)),
    *(("on-high", f"e{shade}") for shade in range(6, 11)),
]
MARKS = [(name, "ground") for name in ("first", "again", "acks", "lost", "focus")]


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """Between 1 and 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_computed_right() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), TEXTS)
def test_text_can_be_read(theme: dict[str, str], text: str, ground: str) -> None:
    assert contrast(theme[text], theme[ground]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("mark", "ground"), MARKS)
def test_marks_can_be_seen(theme: dict[str, str], mark: str, ground: str) -> None:
    assert contrast(theme[mark], theme[ground]) >= 3


def test_dark_is_the_same_whoever_chose_it() -> None:
    assert DARK_BY_SYSTEM == DARK
    assert LIGHT.keys() == DARK.keys()
