"""A cell on paper: all plots and the sequence diagram are drawn, in the light theme, whatever was seen on screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.chromium import Site, watched

pytestmark = pytest.mark.browser

CELL = "runs/2026-11-21*/p/picoquic/quiche/sat/index.html"
DRAWN = """() => [...document.querySelectorAll(".panel, #sequence-view")].map((place) => {
  const canvas = place.querySelector("canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const [low, middle, high] = [[0x00, 0x63, 0xb2], [0xc2, 0x54, 0x00], [0x12, 0x80, 0x5c]];
  let count = 0;
  for (let i = 0; i < data.length; i += 4) {
    count += [low, middle, high].some((ink) => ink.every((part, at) => data[i + at] === part));
  }
  return { what: place.dataset.panel || "sequence", count, width: canvas.width };
})"""
"""How many pixels of each picture have an ink of the light theme, and its width."""


def drawn(page: Page, what: str) -> dict[str, tuple[int, int]]:
    return {each["what"]: (each["count"], each["width"]) for each in page.evaluate(what)}


def test_a_page_that_nobody_has_scrolled_is_printed_whole(browser: Browser, site: Site) -> None:
    with watched(browser, scheme="dark") as found:
        found.open(site.address + site.pages(CELL)[0])
        page = found.page
        for place in ("#plots", "#sequence-view"):
            page.wait_for_selector(f"{place}[data-ready]", state="attached")
        assert {count for count, _ in drawn(page, DRAWN).values()} == {0}
        page.evaluate(f"addEventListener('beforeprint', () => {{ window.printed = ({DRAWN})(); }})")
        page.pdf()
        printed = drawn(page, "window.printed")
        assert {"offset", "number", "rate", "rtt", "window", "back", "sequence"} <= printed.keys()
        assert {name for name, (count, _) in printed.items() if count < 50} == set()
        assert {width for _, width in printed.values()} == {700}
        page.wait_for_function(f"() => ({DRAWN})().every(({{ count, width }}) => !count && width > 700)")
        assert page.evaluate("document.documentElement.dataset.theme") == ""
        found.check()


def test_the_rules_of_paper_draw_as_well(browser: Browser, site: Site) -> None:
    with watched(browser) as found:
        found.open(site.address + site.pages(CELL)[0])
        for place in ("#plots", "#sequence-view"):
            found.page.wait_for_selector(f"{place}[data-ready]", state="attached")
        assert drawn(found.page, DRAWN)["back"][0] == 0
        found.page.emulate_media(media="print")
        found.page.wait_for_function(f"() => ({DRAWN})().every(({{ count, width }}) => count > 50 && width === 700)")
        picture = found.page.locator("[data-panel=back] canvas").bounding_box()
        assert picture
        assert picture["width"] / picture["height"] == pytest.approx(700 / 340, rel=0.01)
        found.check()
