"""Filters of the matrices: their state is in the address, and Back returns to it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.chromium import Site, Watched, choose, watched

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


def test_another_campaign_keeps_the_filters(start: Watched) -> None:
    page = start.page
    choose(page, "sat")
    page.select_option("#campaigns", index=1)
    page.wait_for_url("**/runs/2026-11-20*/**")
    assert "test=sat" in page.url


def test_text_is_typed_into_one_step_of_the_history(start: Watched) -> None:
    page = start.page
    page.locator("#q").press_sequentially("quiche")
    assert "q=quiche" in page.url
    page.go_back()
    assert "q=" not in page.url
