"""Everyone can use the pages: axe finds nothing, a phone shows them, they work without script and from a file."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Request

from quicsat.results.store import write_result_json
from tests.browser.chromium import Site, Watched, choose, pixels, plain_server, violations, watched
from tests.results_builder import result_set, runs
from tests.site import builder

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


SIDES = (("server", 16), ("client", 14))
SEEN = """() => {
  const table = document.querySelector(".matrix.numbers");
  const name = table.querySelector("thead th").getBoundingClientRect().right;
  const cells = (list) => [...list].map((cell) => cell.getBoundingClientRect());
  const links = [...table.querySelectorAll("td > a")];
  return {
    columns: cells(table.rows[1].cells).filter(({ left, right }) => left >= name - 1 && right <= innerWidth).length,
    rows: cells(table.rows).filter(({ height }) => height < 40).length,
    clipped: links.filter((link) => link.scrollWidth > link.clientWidth + 1).length,
  };
}"""
"""Columns of a matrix that are seen whole beside the names, rows that are not tall, and cells that are cut."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", PAGE_TYPES)
def test_axe_finds_nothing(browser: Browser, site: Site, axe: str, kind: str, scheme: Literal["light", "dark"]) -> None:
    with watched(browser, scheme=scheme) as found:
        found.open(site.address + site.pages(PAGE_TYPES[kind])[-1])
        found.page.wait_for_timeout(100)
        assert violations(found.page, axe) == []
        found.check()


@pytest.mark.parametrize("kind", ["cell", "failed cell"])
def test_a_cell_page_is_small_before_its_plots(browser: Browser, site: Site, kind: str) -> None:
    """Its plots fetch their data later."""
    done = list[Request]()
    with watched(browser) as found:
        found.page.on("requestfinished", lambda each: done.append(each))
        found.open(site.address + site.pages(PAGE_TYPES[kind])[-1])
        before = [each for each in done if each.resource_type != "fetch"]
        size = sum(each.sizes()["responseBodySize"] for each in before)
        found.check()
    assert {each.resource_type for each in before} >= {"document", "stylesheet", "script"}
    assert 20_000 < size <= 300_000


@pytest.mark.parametrize("kind", PAGE_TYPES)
def test_a_phone_scrolls_only_within_tables(browser: Browser, site: Site, kind: str) -> None:
    with watched(browser, width=390) as found:
        found.open(site.address + site.pages(PAGE_TYPES[kind])[-1])
        assert found.page.evaluate("document.documentElement.scrollWidth") <= 390
        found.check()


def test_a_phone_shows_most_of_a_large_matrix(browser: Browser, tmp_path: Path) -> None:
    servers, clients = ([f"{kind}-stack-{number:02}" for number in range(count)] for kind, count in SIDES)
    found = [run for server in servers for client in clients for run in runs(9.24e6, server=server, client=client)]
    made = result_set(found, servers=tuple(servers), clients=tuple(clients), repetitions=1)
    place = tmp_path / "results"
    place.mkdir()
    write_result_json(place, made)
    builder.build(place, tmp_path / "site")
    loaded = [tmp_path / "site/index.html", *(tmp_path / "site/assets").glob("*/*")]
    assert sum(path.stat().st_size for path in loaded) <= 300_000
    with watched(browser, width=390) as phone:
        phone.open((tmp_path / "site/index.html").as_uri())
        assert phone.page.evaluate("document.documentElement.scrollWidth") <= 390
        phone.page.locator(".matrix").scroll_into_view_if_needed()
        seen = phone.page.evaluate(SEEN)
        assert seen["columns"] >= 9
        assert seen["rows"] >= 12
        assert seen["clipped"] == 0
        phone.check()


def test_every_page_loads_in_silence(page: Watched, site: Site) -> None:
    for address in site.pages():
        page.open(site.address + address)
        page.check()


@contextmanager
def opened(way: str, site: Site) -> Iterator[str]:
    """Address of a site that was opened from a file, from the root of a server, or from a folder of it."""
    if way == "file":
        yield f"{site.directory.as_uri()}/"
    elif way == "root":
        yield site.address
    else:
        with plain_server(site.directory.parent) as address:
            yield f"{address}{site.directory.name}/"


@pytest.mark.parametrize("way", ["file", "root", "folder"])
def test_a_cell_shows_its_packets_however_it_is_opened(browser: Browser, site: Site, axe: str, way: str) -> None:
    with opened(way, site) as address, watched(browser) as found:
        found.open(address + site.pages(PAGE_TYPES["cell"])[-1])
        page = found.page
        for place in ("#plots", "#sequence-view"):
            page.wait_for_selector(f"{place}[data-ready]", state="attached")
        page.locator("[data-panel=offset]").scroll_into_view_if_needed()
        assert len(pixels(page, "first")) > 300
        page.locator("#sequence").scroll_into_view_if_needed()
        page.wait_for_function("Number(document.querySelector('.sequence').dataset.drawn) > 10")
        found.check()  # before axe, which asks for style sheets again, and gets none from a file
        assert violations(page, axe) == []


def test_a_cell_begins_with_what_happened(page: Watched, site: Site) -> None:
    page.open(site.address + site.pages(PAGE_TYPES["cell"])[-1])
    page.page.wait_for_selector("#plots[data-ready]")
    parts = "[...document.querySelectorAll('.outcome, .panel, h2')]"
    found = page.page.evaluate(f"{parts}.map((each) => each.dataset.panel || each.id || each.className)")
    assert found[found.index("packets") : found.index("number")] == [
        "packets", "offset", "repetitions-table", "numbers", "more",
    ]  # fmt: skip
    assert found.index("outcome") < found.index("packets")


@pytest.mark.parametrize("way", ["file", "folder"])
def test_pages_load_in_silence_however_they_are_opened(page: Watched, site: Site, way: str) -> None:
    with opened(way, site) as address:
        for kind in PAGE_TYPES.values():
            page.open(address + site.pages(kind)[-1])
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
    page.wait_for_selector("#plots[data-ready]", state="attached")
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
