"""Two cells, chosen from matrices by two clicks, side by side with the same axes."""

import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.chromium import Site, Watched, pixels

pytestmark = pytest.mark.browser

CELL = ".numbers a[href$='p/picoquic/quiche/sat/index.html']"
PAIRS = ("picoquic/quiche", "quiche/quiche")
"""The images of the second pair are not known."""


@pytest.fixture
def sides(page: Watched, site: Site) -> Page:
    """The same pair in both campaigns: the later one at 8 Mbit/s first, then the earlier one at 16."""
    page.open(site.address)
    page.page.click("#two")
    page.page.click(CELL)
    expect(page.page.locator("#picking")).to_contain_text("First: picoquic to quiche, sat")
    page.page.focus("#campaigns")
    expect(page.page.locator("#campaigns option")).to_have_count(2)
    page.page.select_option("#campaigns", index=1)
    page.page.wait_for_url("**/runs/2026-11-20*/**")
    page.page.click(CELL)
    page.page.wait_for_url("**/compare/cells/index.html?a=*&b=*")
    page.page.wait_for_selector("[data-ready]")
    return page.page


def test_two_clicks_show_two_cells_with_the_same_axes(sides: Page) -> None:
    assert "+100 %" in sides.inner_text("#sides-metrics")
    assert "≠ campaign" in sides.inner_text("#sides-facts")
    assert "≠ client" not in sides.inner_text("#sides-facts")
    sides.locator("[data-panel=offset]").first.scroll_into_view_if_needed()
    slow, fast = (np.array(pixels(sides, "first", at)) for at in (0, 1))
    assert slow[:, 0].min() == pytest.approx(fast[:, 0].min(), abs=1)  # both begin at 0.9 s
    assert slow[:, 1].min() == pytest.approx(fast[:, 1].min(), abs=1)  # the same file
    assert np.ptp(slow[:, 0]) == pytest.approx(2 * np.ptp(fast[:, 0]), rel=0.1)


def test_both_zoom_and_the_address_is_a_permanent_link(sides: Page) -> None:
    sides.focus("[data-panel=offset] .plot >> nth=1")
    sides.keyboard.press("+")
    sides.wait_for_url(re.compile("a=.*&b=.*&x="))
    shown = [pixels(sides, "first", at) for at in (0, 1)]
    sides.reload()
    sides.wait_for_selector("[data-ready]")
    assert [pixels(sides, "first", at) for at in (0, 1)] == shown
    assert shown[0] != shown[1]


def test_a_cell_is_the_first_of_two(page: Watched, site: Site) -> None:
    page.open(site.address + site.pages("runs/2026-11-21*/p/picoquic/quiche/sat/index.html")[0])
    page.page.click("#pick")
    page.page.wait_for_selector(".numbers a.chosen")
    page.page.click(".numbers a[href$='p/quiche/quiche/sat/index.html']")
    page.page.wait_for_selector("#sides-facts td")
    assert "≠ server" in page.page.inner_text("#sides-facts")


def test_what_is_not_known_of_a_cell_is_not_marked(page: Watched, site: Site) -> None:
    first, second = (site.pages(f"runs/2026-11-21*/p/{pair}/sat")[0] for pair in PAIRS)
    page.open(f"{site.address}compare/cells/index.html?a={first}&b={second}")
    row = page.page.locator("#sides-facts tr", has_text="server's image")
    expect(row.locator("th")).to_have_text("server's image")
    expect(row.locator("td").first).to_contain_text("1.2 sha256:")
    expect(row.locator("td").last).to_have_text("not known")
