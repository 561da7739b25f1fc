"""Everyone can use the pages: axe finds nothing, a phone shows them, they work without script and from a file."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from playwright.sync_api import Browser

from tests.browser.chromium import Site, Watched, choose, violations, watched

pytestmark = pytest.mark.browser

PAGE_TYPES = {
    "start": "index.html",
    "campaigns": "runs/index.html",
    "campaign": "runs/*/index.html",
    "compare": "compare/index.html",
    "comparison": "compare/2*/*/index.html",
    "side by side": "compare/cells/index.html",
    "trends": "trends/index.html",
    "trend": "trends/sat/index.html",
    "figures": "runs/*/figures/index.html",
    "tables": "runs/*/tables/index.html",
    "failures": "runs/*/failures/index.html",
    "method": "runs/*/method/index.html",
    "data": "runs/*/data/index.html",
    "pair": "runs/*/p/picoquic/quiche/index.html",
    "cell": "runs/*/p/picoquic/quiche/sat/index.html",
    "failed cell": "runs/*/p/picoquic/picoquic/sat/index.html",
    "log": "runs/*/p/picoquic/quiche/sat/log-1-output-txt.html",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", PAGE_TYPES)
def test_axe_finds_nothing(browser: Browser, site: Site, axe: str, kind: str, scheme: Literal["light", "dark"]) -> None:
    with watched(browser, scheme=scheme) as found:
        found.open(site.address + site.pages(PAGE_TYPES[kind])[-1])
        found.page.wait_for_timeout(100)
        assert violations(found.page, axe) == []
        found.check()


@pytest.mark.parametrize("kind", PAGE_TYPES)
def test_a_phone_scrolls_only_within_tables(browser: Browser, site: Site, kind: str) -> None:
    with watched(browser, width=390) as found:
        found.open(site.address + site.pages(PAGE_TYPES[kind])[-1])
        assert found.page.evaluate("document.documentElement.scrollWidth") <= 390
        found.check()


def test_every_page_loads_in_silence(page: Watched, site: Site) -> None:
    for address in site.pages():
        page.open(site.address + address)
        page.check()


def test_pages_work_from_a_file(browser: Browser, site: Site) -> None:
    context = browser.new_context()
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.goto((site.directory / "index.html").as_uri())
    assert page.evaluate("getComputedStyle(document.querySelector('.matrix td')).textAlign") == "center"
    choose(page, "quiche")
    assert "client=quiche" in page.url
    page.click(".matrix td:not(.off) a >> visible=true")
    assert re.search(r"/p/.*/index\.html$", page.url)
    page.locator("#plots-note", has_text="need a web server").wait_for()
    assert complaints == []
    context.close()


def test_pages_can_be_read_without_script(browser: Browser, site: Site) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site.address)
    assert "8.00" in page.locator(".matrix").first.inner_text()
    assert not page.locator("#filters").is_visible()
    context.close()


def test_the_theme_is_chosen_and_remembered(page: Watched, site: Site) -> None:
    page.open(site.address)
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    before = page.page.evaluate(ground)
    page.page.click("#theme")
    after = page.page.evaluate(ground)
    page.open(site.address + "runs/index.html")
    assert before != after == page.page.evaluate(ground)


def test_the_keyboard_reaches_every_cell(page: Watched, site: Site) -> None:
    page.open(site.address)
    page.page.focus(".matrix tbody a")
    page.page.keyboard.press("ArrowDown")
    assert page.page.evaluate("document.activeElement.closest('tr').rowIndex") == 2
    assert page.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.page.keyboard.press("Enter")
    page.page.wait_for_url("**/p/**")


def test_print_shows_the_tables_whole_on_white(page: Watched, site: Site) -> None:
    page.open(site.address)
    page.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.page.emulate_media(media="print")
    assert page.page.evaluate("getComputedStyle(document.querySelector('.scroll')).overflow") == "visible"
    assert not page.page.locator("#filters").is_visible()
    assert page.page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
