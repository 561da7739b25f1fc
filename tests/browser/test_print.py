"""On paper, a cell has all plots and the sequence diagram in the light theme, and the start page has whole tables."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path, PurePosixPath

import pytest
from playwright.sync_api import Browser, Page

from quicsat.model.outcomes import Check, Outcome
from quicsat.results.store import write_result_json
from quicsat.site import campaign_pages, campaigns, construction, publish
from quicsat.site.pages import Renderer
from quicsat.site.recent import Past
from quicsat.site.serve import server
from tests.browser.chromium import Site, watched
from tests.results_builder import SAT, result_set, run_result
from tests.site import builder

pytestmark = pytest.mark.browser

CELL = "runs/2026-11-21*/p/picoquic/quiche/sat/index.html"
LOG = "runs/2026-11-21*/p/picoquic/quiche/sat/log-1-output-txt.html"
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


def test_a_long_log_is_printed_whole(browser: Browser, site: Site) -> None:
    with watched(browser) as found:
        found.open(site.address + site.pages(LOG)[0])
        page = found.page
        hidden = """() => {
          const log = document.querySelector(".log");
          log.textContent = "a line\\n".repeat(500) + "x".repeat(2000);
          return [log.scrollHeight - log.clientHeight, log.scrollWidth - log.clientWidth];
        }"""
        assert page.evaluate(hidden)[0] > 0
        page.emulate_media(media="print")
        assert page.evaluate(hidden) == [0, 0]
        found.check()


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


A4, A4_LANDSCAPE, A3_LANDSCAPE = (703, 1032), (1032, 703), (1497, 1032)
"""Pixels between the margins."""
TABLES = """() => [...document.querySelectorAll(".matrix")].map((table) => {
  const { left, right, top, bottom } = table.getBoundingClientRect();
  const lines = (cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return range.getClientRects().length;
  };
  const broken = [...table.querySelectorAll("tbody th")].filter((name) => lines(name) > 1);
  return { left, right, top, bottom, head: table.tHead.offsetHeight, broken: broken.map((name) => name.textContent) };
})"""
CUT = """() => [...document.querySelectorAll(".matrix, .matrix *")].flatMap((part) => {
  const cutting = part.parentElement.closest("section, .scroll, .below, td");
  const [inner, outer] = [part, cutting].map((each) => each.getBoundingClientRect());
  return inner.right > outer.right + 1 || inner.bottom > outer.bottom + 1 ? [part.outerHTML.slice(0, 80)] : [];
})"""
"""Parts of tables that reach out of their cell, or out of the box that holds the table."""

AROUND = """() => [...document.querySelectorAll(".matrix")].flatMap((table) => {
  const boxes = [];
  for (let box = table; box !== document.body; box = box.parentElement) boxes.push(getComputedStyle(box));
  return boxes.flatMap(({ overflow, contain, contentVisibility }) => [overflow, contain, contentVisibility]);
})"""
"""How the boxes around the tables cut them, and whether they keep them from being divided between pages."""


def start_page(place: Path, size: int) -> Path:
    """A start page of ``size`` by ``size`` implementations with long names; every cell has a past."""
    test = replace(SAT, name="test", abbreviation="LONGER", check=Check.HANDSHAKE)
    names = tuple(f"picoquic:window-{number}k" for number in range(101, 101 + size))
    results = [
        run_result(
            None if case == test else 18.9e6, server=one, client=other, test_case=case.name, repetition=1,
            outcome=Outcome.FAILED if case == test else None, reason="It failed." if case == test else "",
        )
        for one, other, case in product(names, names, (SAT, test))
    ]  # fmt: skip
    cases = tuple(replace(each, repetitions=1) for each in (SAT, test))
    (place / "results").mkdir()
    write_result_json(place / "results", result_set(results, servers=names, clients=names, test_cases=cases))
    [campaign], _ = campaigns.find([place / "results"])
    assets, content = publish.assets(builder.ROOT, lambda text: None)
    renderer = Renderer(builder.ROOT / "web" / "templates", assets, datetime.now(UTC))
    site = construction.Site(renderer, place / "site", (campaign,), publish.NAVIGATION, uplot=False)
    for name, text in content.items():
        site.put(PurePosixPath(assets, name), text)
    past = {key: Past("▇▆▇▇│▃▄▃▃", "") for key in campaign.cells if key[2] == SAT.name}
    campaign_pages.write_start(site, campaign, campaign_pages.History(past), newest=True)
    return place / "site"


@pytest.fixture(scope="module", params=[6, 15, 30])
def matrices(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server(start_page(tmp_path_factory.mktemp("matrices"), request.param), kept=True) as address:
        yield address


@pytest.mark.parametrize("paper", [A4, A4_LANDSCAPE, A3_LANDSCAPE], ids=["A4", "A4 landscape", "A3 landscape"])
def test_matrices_are_printed_whole(browser: Browser, matrices: str, paper: tuple[int, int]) -> None:
    width, height = paper
    with watched(browser, width) as found:
        found.page.set_viewport_size({"width": width, "height": height})
        found.open(matrices)
        found.page.emulate_media(media="print")
        numbers, tests = found.page.evaluate(TABLES)
        assert numbers["bottom"] <= tests["top"]
        for table in (numbers, tests):
            assert 0 <= table["left"] < table["right"] <= width
            assert table["broken"] == []
            # Chromium repeats a head on each page if it needs at most a quarter of it.
            assert table["head"] <= height / 4
        assert found.page.evaluate(CUT) == []
        assert set(found.page.evaluate(AROUND)) == {"visible", "none"}
        found.check()
