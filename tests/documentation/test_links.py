"""Every link between the project's Markdown pages leads to a file and a heading that exist."""

import re
from pathlib import Path

import pytest

from tests.documentation.pages import PAGES, ROOT, anchors_of, links_of, slugify, text_of


def broken(page: Path) -> list[str]:
    """Links of a page that lead nowhere."""
    wrong = []
    for link in links_of(page):
        name, _, fragment = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (fragment and target.suffix == ".md" and fragment not in anchors_of(target)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    assert broken(page) == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A b\n[1](#a-b) [2](#b) [3](none.md) [4](page.md#a-b) ![5](none.png) `[6](none.md)`\n")
    assert broken(page) == ["#b", "none.md", "none.png"]


def test_anchors_follow_the_rules_of_github() -> None:
    assert slugify("What's `--seed` for? A, b") == "whats---seed-for-a-b"


def test_links_stay_inside_the_documentation() -> None:
    """The site holds only what lies below docs/."""
    docs = ROOT / "docs"
    outside = [
        (page.name, link)
        for page in PAGES
        if page.is_relative_to(docs)
        for link in links_of(page)
        if not (page.parent / link.partition("#")[0]).resolve().is_relative_to(docs)
    ]
    assert outside == []


def test_every_picture_is_shown() -> None:
    shown = {(page.parent / link).resolve() for page in PAGES for link in links_of(page) if link.endswith(".png")}
    assert {path for path in ROOT.glob("docs/**/*.png") if path not in shown} == set()


def test_pages_have_one_title() -> None:
    assert [page.name for page in PAGES if not text_of(page).startswith("# ")] == []


def uneven(page: Path) -> list[int]:
    """Lines of the page's tables that have more or fewer cells than the table's first row."""
    cells, wrong = 0, []
    for number, line in enumerate(re.sub(r"`[^`\n]*`", "``", text_of(page)).splitlines(), 1):
        found = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        cells = (cells or found) if found else 0
        if found != cells:
            wrong.append(number)
    return wrong


def test_rows_of_a_table_have_as_many_cells_as_its_head() -> None:
    assert {str(page.relative_to(ROOT)): lines for page in PAGES if (lines := uneven(page))} == {}


def test_rows_that_were_joined_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("| a | b |\n|---|---|\n| `|` | \\| |\n| 1 | 2 | | 3 | 4 |\n\n| c |\n|---|\n| 5 |\n")
    assert uneven(page) == [4]
