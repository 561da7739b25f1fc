"""The guard that all browser tests rely on: a page that asks another host for something is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser

from tests.browser.chromium import watched

pytestmark = pytest.mark.browser

PAGE = "<!doctype html><title>x</title><link rel=icon href=data:,>"


@contextmanager
def server(directory: Path) -> Iterator[str]:
    """A server without the policy of the site's own one, which would stop requests before they are noticed."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(directory))) as found:
        thread = Thread(target=found.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{found.server_port}/"
        finally:
            found.shutdown()
            thread.join()


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
    (tmp_path / "index.html").write_text(PAGE)
    with server(tmp_path) as address, watched(browser) as found:
        found.open(address)
        found.check()
        with found.page.expect_request("**"):
            found.page.evaluate(f"() => {{ {request_script}; }}")
        assert any(each.startswith("asked for http") for each in found.complaints)


def test_a_request_to_the_site_itself_is_allowed(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(PAGE)
    with server(tmp_path) as address, watched(browser) as found:
        found.open(address)
        found.page.evaluate("() => fetch('index.html')")
        found.check()
