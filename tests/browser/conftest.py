"""A Chromium without a GPU, pages that watch for what must not happen, and sites to look at."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from quicsat.site.serve import server
from tests.browser import chromium
from tests.site import builder

expect.set_options(timeout=chromium.PATIENCE * 1000)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests; its user data are in a directory of its own that goes away."""
    if not shutil.which(chromium.PROGRAM):
        pytest.skip(f"{chromium.PROGRAM} is not here: scripts/setup --dev installs it")
    with sync_playwright() as playwright:
        started = chromium.start(playwright)
        yield started
        started.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Site]:
    """A small site with every page type, over HTTP."""
    place = tmp_path_factory.mktemp("site")
    builder.two_campaigns(place / "results")
    builder.build(place / "results", place / "site", files=True)
    with server(place / "site", kept=True) as address:
        yield chromium.Site(place / "site", address)


@pytest.fixture
def page(browser: Browser) -> Iterator[chromium.Watched]:
    """A fresh page that must not ask anything of another host nor complain."""
    with chromium.watched(browser) as found:
        yield found
        found.check()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core."""
    path = builder.ROOT / chromium.AXE
    if not path.is_file():
        pytest.skip("axe-core is not here: scripts/setup --dev brings it")
    return path.read_text(encoding="utf-8")
