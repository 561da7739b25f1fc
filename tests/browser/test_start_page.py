"""The start page is laid out and painted once, when its matrix is complete."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.browser.chromium import Site, Watched

pytestmark = pytest.mark.browser

PAUSE = 1.0
"""Seconds between the two parts of the page."""
FIRST_PAINT = """() => new Promise((done) => new PerformanceObserver((list) => {
  done(list.getEntriesByName("first-paint")[0].startTime);
}).observe({ type: "paint", buffered: true }))"""


class _InTwoParts(SimpleHTTPRequestHandler):
    """Sends the start page up to its first row, and the rest later."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def copyfile(self, source: Any, outputfile: Any) -> None:
        if self.path != "/":
            shutil.copyfileobj(source, outputfile)
            return
        content = source.read()
        half = content.index(b"</tr>\n<tr>")
        outputfile.write(content[:half])
        outputfile.flush()
        time.sleep(PAUSE)
        outputfile.write(content[half:])


@pytest.fixture(scope="module")
def slow(site: Site) -> Iterator[str]:
    listening = ThreadingHTTPServer(("127.0.0.1", 0), partial(_InTwoParts, directory=str(site.directory)))
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.server_address[1]}/"
    listening.shutdown()
    listening.server_close()
    thread.join()


def test_it_is_painted_when_the_matrix_is_complete(page: Watched, slow: str) -> None:
    page.open(slow)
    assert page.page.evaluate(FIRST_PAINT) > PAUSE * 1000
