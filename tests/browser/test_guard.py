"""The guard that all browser tests rely on: a page that asks another host for something is noticed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.chromium import Watched, plain_server, watched

pytestmark = pytest.mark.browser


@contextmanager
def opened(browser: Browser, place: Path) -> Iterator[Watched]:
    """A page in silence; the policy of the site's own server would stop requests before they are noticed."""
    (place / "index.html").write_text("<!doctype html><title>x</title><link rel=icon href=data:,>")
    with plain_server(place) as address, watched(browser) as found:
        found.open(address)
        found.check()
        yield found


@pytest.mark.parametrize(
    "request_script",
    [
        "new Image().src = 'http://198.51.100.2/x.png'",
        "fetch('https://example.invalid/')",
        "navigator.sendBeacon('http://example.invalid/')",
        "document.head.append(Object.assign(document.createElement('script'), {src: '//example.invalid/x.js'}))",
    ],
)
def test_a_request_to_another_host_is_noticed(browser: Browser, tmp_path: Path, request_script: str) -> None:
    with opened(browser, tmp_path) as found:
        with found.page.expect_request("**"):
            found.page.evaluate(f"() => {{ {request_script}; }}")
        assert any(each.startswith("asked for http") for each in found.complaints)


def test_a_request_to_the_site_itself_is_allowed(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, tmp_path) as found:
        found.page.evaluate("() => fetch('index.html')")
        found.check()
