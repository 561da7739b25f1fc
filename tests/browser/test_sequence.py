"""The sequence diagram: drawn in time, told packet by packet, with an address for each, whatever the packets say."""

import re
import time
from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from quicsat.model.arrays import Floats
from quicsat.model.text import printable
from quicsat.site import packets, sequence
from quicsat.site.serve import server
from quicsat.traces.columns import Frame
from tests.browser.chromium import Site, Watched, watched
from tests.payloads import PAYLOADS
from tests.site import builder

pytestmark = pytest.mark.browser

CELL = "runs/2026-11-21*/p/picoquic/quiche/sat/index.html"
ZOOM = """() => new Promise((done) => {
  document.querySelector("#sequence-view button[aria-label='Zoom out']").click();
  requestAnimationFrame(() => setTimeout(done));
})"""


def many(count: int) -> sequence.Diagram:
    """Datagrams of a server, each with a CONNECTION_CLOSE whose phrase is one of the payloads."""
    rows = np.arange(count)
    kinds = np.tile([sequence.PACKET + 4, Frame.CLOSE], count)
    texts = np.column_stack([0 * rows, 1 + rows % len(PAYLOADS)]).ravel()
    frames = sequence.FrameRows(np.repeat(rows, 2), kinds, np.repeat(rows, 2), 0 * kinds, texts)
    lost: Floats = np.where(rows % 50 == 49, sequence.LOST * sequence.PRECISION, 0.3)
    return sequence.Diagram(
        rows.astype(np.float64) * 0.001, lost, 1 + 0 * rows, 1200 + 0 * rows, frames, ("", *PAYLOADS)
    )


@pytest.fixture(scope="module")
def large(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a cell whose run has 100,000 datagrams."""
    place = tmp_path_factory.mktemp("sequence")
    builder.build(builder.on_disk(place / "results", builder.small()), place / "site")
    [cell] = (place / "site").glob(CELL)
    (cell.parent / "sequence-1.js").write_bytes(packets.script(sequence.encode(many(100_000))))
    with server(place / "site", kept=True) as address:
        yield f"{address}{cell.relative_to(place / 'site')}"


def ready(page: Page) -> None:
    page.locator("#sequence").scroll_into_view_if_needed()
    page.wait_for_selector("#sequence-view[data-ready]")


def test_a_packet_is_pointed_at_chosen_and_linked(page: Watched, site: Site) -> None:
    page.open(site.address + site.pages(CELL)[0])
    ready(page.page)
    canvas = page.page.locator(".sequence canvas")
    box = canvas.bounding_box()
    assert box
    # The client's first packet: from the upper left corner to the server's side 0.3 s later.
    middle = 66 + (box["width"] - 76) / 2
    for y in range(30, 640, 3):
        canvas.hover(position={"x": middle, "y": y})
        if page.page.locator(".tip").is_visible():
            break
    expect(page.page.locator(".tip")).to_contain_text("Client, datagram 1, at 0.000000 s, 1,200 bytes, arrives after")
    canvas.click(position={"x": middle, "y": y})
    page.page.wait_for_url("**?packet=c1")
    page.page.keyboard.press("ArrowRight")
    page.page.focus(".sequence")
    page.page.keyboard.press("l")
    expect(page.page.locator(".told")).to_contain_text("lost")
    address, words = page.page.url, page.page.inner_text(".told")
    assert re.search(r"packet=s\d+$", address)
    page.open(address)
    expect(page.page.locator(".told")).to_have_text(re.compile(re.escape(words.split("\n")[0])))


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("s99999", r"names datagram 99,999 of the server, but the diagram has only \d+ of them"),
        ("c9999", r"names datagram 9,999 of the client, but the diagram has only \d+ of them"),
        ("12", "does not name a packet in the form c12 or s12"),
        ("<b>", "does not name a packet"),
    ],
)
def test_an_address_of_a_packet_that_is_not_there_says_so(page: Watched, site: Site, address: str, told: str) -> None:
    page.open(f"{site.address}{site.pages(CELL)[0]}?packet={address}")
    note = page.page.locator(".told .note")
    expect(note).to_have_text(re.compile(told))
    expect(note).to_be_in_viewport()
    page.page.focus(".sequence")
    page.page.keyboard.press("ArrowRight")
    expect(note).to_have_count(0)


@pytest.mark.parametrize("late", ["packets.js", "sequence.js", "plot.js"])
def test_a_packet_is_shown_in_whatever_order_the_scripts_arrive(page: Watched, site: Site, late: str) -> None:
    def wait(route: Route) -> None:
        time.sleep(0.3)
        route.continue_()

    page.page.route(f"**/{late}", wait)
    page.open(f"{site.address}{site.pages(CELL)[0]}?packet=s3")
    expect(page.page.locator(".told")).to_contain_text("Server, datagram 3")


def test_a_repetition_is_chosen_for_the_diagram_and_the_plots(page: Watched, site: Site) -> None:
    page.open(site.address + site.pages(CELL)[0] + "?packet=s3")
    ready(page.page)
    note = page.page.locator("#sequence-note")
    expect(note).to_have_text(re.compile("^Repetition 1:"))
    page.page.wait_for_selector("#plots[data-ready]")
    page.page.select_option("#sequence-of", "2")
    expect(note).to_have_text(re.compile("^Repetition 2:"))
    assert page.page.input_value("#bright") == "2"
    page.page.wait_for_url(re.compile(r"\?bright=2$"))
    expect(page.page.locator(".sequence")).to_have_count(1)
    page.page.select_option("#bright", "3")
    expect(note).to_have_text(re.compile("^Repetition 3:"))
    assert page.page.input_value("#sequence-of") == "3"
    page.page.locator(".sequence canvas").click(position={"x": 300, "y": 300})
    page.page.wait_for_url(re.compile("bright=3"))
    page.open(page.page.url)
    ready(page.page)
    expect(note).to_have_text(re.compile("^Repetition 3:"))


def test_a_page_without_a_diagram_says_that_there_is_no_packet(page: Watched, site: Site) -> None:
    cell = site.pages("runs/2026-11-21*/p/picoquic/picoquic/sat/index.html")[0]
    page.open(f"{site.address}{cell}?packet=s1")
    expect(page.page.locator("h1 + .note")).to_have_text(re.compile("names a packet, but this page has no sequence"))
    page.open(site.address + cell)
    expect(page.page.locator("h1 + .note")).to_have_count(0)


def test_zoom_of_the_plots_keeps_the_packet(page: Watched, site: Site) -> None:
    page.open(f"{site.address}{site.pages(CELL)[0]}?packet=s3")
    page.page.wait_for_selector("#plots[data-ready]")
    page.page.focus("[data-panel=offset] .plot")
    page.page.keyboard.press("+")
    page.page.wait_for_url(re.compile("packet=s3.*x="))


def test_no_more_lines_are_drawn_than_there_are_pixels(browser: Browser, large: str) -> None:
    with watched(browser) as found:
        found.open(large)
        ready(found.page)
        drawn = []
        for _ in range(12):
            found.page.evaluate(ZOOM)
            drawn.append(int(found.page.get_attribute(".sequence", "data-drawn") or 0))
        box = found.page.locator(".sequence canvas").bounding_box()
        assert box
        assert 300 < drawn[-1] <= max(drawn) < 4 * box["height"]
        found.check()


def test_words_in_packets_stay_words(page: Watched, large: str) -> None:
    page.open(f"{large}?packet=s1")
    page.page.wait_for_selector(".told li")
    found = page.page.evaluate(
        """(count) => Array.from({length: count}, () => {
          const text = document.querySelector(".told").textContent;
          document.querySelector("#sequence-view button[aria-label='Next packet']").click();
          return text;
        })""",
        len(PAYLOADS),
    )
    for bad, text in zip(PAYLOADS, found, strict=True):
        assert printable(bad) in text
    canvas = page.page.locator(".sequence canvas")
    for y in range(40, 600, 40):
        canvas.hover(position={"x": 300, "y": y})
    for bad in PAYLOADS[:5]:
        page.page.goto("about:blank")
        page.open(f"{large}?packet={bad}")
    assert page.page.evaluate("window.pwned === undefined && document.querySelectorAll('h1').length === 1")
