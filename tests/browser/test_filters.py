"""Filters of the matrices: their state is in the address, and Back returns to it."""

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, expect

from quicsat.model.outcomes import Check, Outcome
from quicsat.site import summary_tables
from quicsat.site.serve import server
from tests.browser.chromium import Site, Watched, choose, watched
from tests.results_builder import SAT, result_set, run_result
from tests.site import builder

pytestmark = pytest.mark.browser

KNOWN = {
    "client": ["picoquic", "quiche"],
    "server": ["picoquic", "quiche"],
    "test": ["sat", "satloss"],
    "outcome": ["succeeded", "partial", "timeout", "failed", "unsupported", "error", "missing"],
}
STATE = """() => ({
  pressed: [...document.querySelectorAll("#filters button[aria-pressed=true]")]
    .map((button) => `${button.dataset.key}=${button.value}`),
  q: document.getElementById("q").value,
  shown: [...document.querySelectorAll(".matrix td a")]
    .filter((link) => link.checkVisibility({checkVisibilityCSS: true})).length,
})"""
WALK = """async ([address, button]) => {
  const state = STATE;
  const moved = (step) => new Promise((done) => { addEventListener("popstate", done, {once: true}); history[step](); });
  history.pushState(null, "", address);
  dispatchEvent(new PopStateEvent("popstate"));
  const first = state();
  document.querySelectorAll("#filters button[data-key]")[button].click();
  const clicked = [location.href, state()];
  await moved("back");
  const back = [location.href, state()];
  await moved("forward");
  return {first, clicked, back, forward: [location.href, state()]};
}""".replace("STATE", STATE)


@pytest.fixture
def start(browser: Browser, site: Site) -> Iterator[Watched]:
    with watched(browser) as found:
        found.open(site.address)
        yield found
        found.check()


def test_two_hundred_states_go_through_the_address_and_back(start: Watched, site: Site) -> None:
    chance = random.Random(6)
    for number in range(200):
        words = [(key, name) for key, names in KNOWN.items() for name in names if chance.random() < 0.3]
        text = chance.choice(["", "", "quiche", "pico sat", "é & = % + #", "timeout"])
        query = urlencode(words + ([("q", text)] if text else []))
        address = f"{site.address}index.html{'?' if query else ''}{query}"
        found = start.page.evaluate(WALK, [address, chance.randrange(13)])
        assert found["first"]["pressed"] == [f"{key}={name}" for key, name in words], number
        assert found["first"]["q"] == text
        assert parse_qs(urlsplit(found["clicked"][0]).query) != parse_qs(query)
        assert found["back"] == [address, found["first"]]
        assert found["forward"] == found["clicked"]
        if number % 20 == 0:  # the same from a cold start
            start.open(found["clicked"][0])
            assert start.page.evaluate(STATE) == found["clicked"][1]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 6), ("client=quiche", 4), ("server=picoquic&test=sat", 2), ("outcome=timeout", 1), ("outcome=partial", 4),
        ("q=quiche+satloss", 2), ("q=nothing", 0), ("cc=unknown", 6), ("client=unheard&server=%3Cb%3E", 6),
    ],
)  # fmt: skip
def test_what_is_shown_is_what_was_asked_for(start: Watched, site: Site, query: str, count: int) -> None:
    start.open(f"{site.address}index.html?{query}")
    assert start.page.evaluate(STATE)["shown"] == count


def test_show_all_and_copy(start: Watched) -> None:
    page = start.page
    choose(page, "timeout")
    assert page.evaluate(STATE)["shown"] == 1
    page.click("#all")
    assert page.evaluate(STATE)["shown"] == 6
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    choose(page, "failed")
    page.click("#copy")
    expect(page.locator("#told")).to_contain_text("clipboard")
    assert page.evaluate("navigator.clipboard.readText()") == page.url


def test_a_menu_tells_what_is_chosen_and_closes(start: Watched) -> None:
    page = start.page
    choose(page, "timeout")
    menu = page.locator("#filters details", has=page.locator("button[value=timeout]"))
    expect(menu.locator("summary")).to_have_text("Outcome: timeout")
    page.keyboard.press("Escape")
    expect(menu).not_to_have_attribute("open", "")
    menu.locator("summary").click()
    page.click("h1")
    expect(menu).not_to_have_attribute("open", "")


def test_tests_that_are_only_counted_are_filtered_by_name(
    page: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a large campaign, those that succeeded are all that are not named."""
    monkeypatch.setattr(summary_tables, "MOST_NAMED", 0)
    ends = [None, None, Outcome.FAILED]
    cases = [
        replace(SAT, name=f"test{n}", abbreviation=f"N{n}", repetitions=1, check=Check.HANDSHAKE) for n in (0, 1, 2)
    ]
    done = [
        replace(run_result(8e6, test_case=case.name, outcome=end), measurement=None)
        for case, end in zip(cases, ends, strict=True)
    ]
    builder.on_disk(tmp_path / "results", result_set(done, test_cases=tuple(cases)))
    builder.build(tmp_path / "results", tmp_path / "site")
    with server(tmp_path / "site", kept=True) as address:
        page.open(address)
        cell = page.page.locator(".tests td a")
        expect(cell).to_have_text("✓ 2 × N2")
        page.open(f"{address}index.html?test=test1")
        expect(cell).to_have_text("✓ 1")
        page.open(f"{address}index.html?test=test2")
        expect(cell).to_have_text("× N2")


def test_a_matrix_is_saved_as_it_is_shown(start: Watched, site: Site) -> None:
    page = start.page
    start.open(f"{site.address}index.html?server=picoquic&test=sat")
    saved = {}
    for form, suffix in (("CSV", "csv"), ("LaTeX", "tex"), ("SVG", "svg"), ("PNG", "png")):
        with page.expect_download() as download:
            page.click(f"[data-test=sat] .forms button:text('{form}')")
        assert download.value.suggested_filename == f"sat-2026-11-21.{suffix}"
        saved[form] = download.value.path().read_bytes()
    assert saved["CSV"].decode().splitlines() == [
        "server,client,test case,outcome,value,note",
        "picoquic,picoquic,sat,timeout,,",
        "picoquic,quiche,sat,succeeded,8.00,40 % ≈",
    ]
    assert "quiche & 8.00 (40 \\% $\\approx$)" in saved["LaTeX"].decode()
    root = ElementTree.fromstring(saved["SVG"])
    words = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "8.00" in words
    assert "4.00" not in words
    assert saved["PNG"].startswith(b"\x89PNG")


def test_reasons_are_searched(start: Watched, site: Site) -> None:
    page = start.page
    start.open(f"{site.address}index.html?q=ended+with")  # "It ended with 1." of one cell
    expect(page.locator("#told")).to_have_text("1 cell matches")
    start.open(f"{site.address}{site.pages('runs/2026-11-21*/failures/index.html')[0]}?q=ended+client-failed")
    expect(page.locator("#told")).to_have_text(re.compile("^1 of "))
    page.fill("#words", "simulator lagged")
    page.wait_for_url("**?q=simulator*")
    assert "The simulator lagged." in page.locator("td.text:visible").all_inner_texts()


def test_another_campaign_keeps_the_filters(start: Watched) -> None:
    page = start.page
    choose(page, "sat")
    expect(page.locator("#campaigns option")).to_have_count(1)
    page.focus("#campaigns")
    expect(page.locator("#campaigns option")).to_have_count(2)
    assert "2026-11-21 06:00" in page.locator("#campaigns option:checked").inner_text()
    page.select_option("#campaigns", index=1)
    page.wait_for_url("**/runs/2026-11-20*/**")
    assert "test=sat" in page.url


def test_text_is_typed_into_one_step_of_the_history(start: Watched) -> None:
    page = start.page
    page.locator("#q").press_sequentially("quiche")
    assert "q=quiche" in page.url
    page.go_back()
    assert "q=" not in page.url
