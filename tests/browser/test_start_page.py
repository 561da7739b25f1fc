"""The start page is laid out and painted once, when its matrix is complete; what is far below comes after it."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from quicsat.model.outcomes import Check
from quicsat.site.serve import server
from tests.browser.chromium import Site, Watched, plain_server
from tests.results_builder import SAT, result_set, run_result
from tests.site import builder

pytestmark = pytest.mark.browser

PAUSE = 1.0
"""Seconds between the two parts of the page."""
FIRST_PAINT = """() => new Promise((done) => new PerformanceObserver((list) => {
  done(list.getEntriesByName("first-paint")[0].startTime);
}).observe({ type: "paint", buffered: true }))"""

SKIPPED = """window.skipped = [];
document.addEventListener("contentvisibilityautostatechange", ({ skipped }) => { window.skipped.push(skipped); });"""
SHOWN = "() => document.querySelector('.tests td').checkVisibility({ contentVisibilityAuto: true })"


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
    with plain_server(site.directory, _InTwoParts) as address:
        yield address


def test_it_is_painted_when_the_matrix_is_complete(page: Watched, slow: str) -> None:
    page.open(slow)
    assert page.page.evaluate(FIRST_PAINT) > PAUSE * 1000


@pytest.fixture
def below(page: Watched, tmp_path: Path) -> Iterator[str]:
    """A start page with tests below its matrix, and a window of 270 pixels in which they are not seen."""
    case = replace(SAT, name="test", abbreviation="N", check=Check.HANDSHAKE)
    done = [run_result(8e6), replace(run_result(8e6, test_case=case.name), measurement=None)]
    builder.on_disk(tmp_path / "results", result_set(done, test_cases=(SAT, case), repetitions=1))
    builder.build(tmp_path / "results", tmp_path / "site")
    page.page.set_viewport_size({"width": 1280, "height": 270})
    with server(tmp_path / "site", kept=True) as address:
        yield address


def test_tests_below_the_first_screen_are_shown_after_it(page: Watched, below: str) -> None:
    page.page.add_init_script(SKIPPED)
    page.open(below)
    page.page.wait_for_function("() => window.skipped.length")
    assert page.page.evaluate("window.skipped[0]")
    page.page.wait_for_function(SHOWN)
    assert page.page.evaluate("scrollY") == 0


def test_tests_are_shown_to_a_reader_who_comes_near(page: Watched, below: str) -> None:
    page.page.add_init_script("window.setTimeout = () => 0")
    page.open(below)
    top = page.page.evaluate("document.querySelector('#tests').getBoundingClientRect().top")
    assert 270 + 225 < top < 270 * 2.5
    assert not page.page.evaluate(SHOWN)
    page.page.evaluate(f"scrollTo({{ top: {top - 270 - 200}, behavior: 'instant' }})")
    page.page.wait_for_function(SHOWN)
