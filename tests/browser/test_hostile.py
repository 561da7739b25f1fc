"""Nothing that an image, a log, a trace or an address says runs in a page: 60 payloads in every place there is."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from quicsat.model.text import printable
from quicsat.site.serve import server
from tests.browser.chromium import Site, Watched
from tests.payloads import PAYLOADS
from tests.site import builder, hostile

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    place = tmp_path_factory.mktemp("hostile")
    with server(hostile.site(place), kept=True) as address:
        yield Site(place / "site", address)


def _look(page: Watched, address: str) -> None:
    """Open a page; nothing runs, nothing is blocked because nothing tries, and the page is whole."""
    page.open(address)
    state = page.page.evaluate("""() => [window.pwned === undefined, document.querySelectorAll("h1").length,
      document.querySelectorAll("script:not([src]):not([type='application/json']), iframe, object, embed, form, style")
        .length, document.querySelector("footer") !== null]""")
    assert state == [True, 1, 0, True], address
    page.check()


def test_there_are_sixty() -> None:
    assert len(set(PAYLOADS)) == len(PAYLOADS) >= 60


@pytest.mark.parametrize(
    "pattern",
    ["runs/*/index.html", "runs/*/failures/*.html", "runs/*/method/*.html", "runs/*/p/*/*/t*/log-*.html",
     "{index,runs/index,compare/index,trends/index}.html"],
)  # fmt: skip
def test_words_in_results_stay_words(page: Watched, site: Site, pattern: str) -> None:
    if pattern.startswith("{"):
        found = ["index.html", "runs/index.html", "compare/index.html", "trends/index.html"]
    else:
        found = site.pages(pattern)
        assert len(found) >= len(PAYLOADS)
    for address in found:
        _look(page, site.address + quote(address))


def test_files_of_runs_and_figures_only_show_something(page: Watched, site: Site) -> None:
    """Every fifth file; `make bench-text-sinks` opens all of them, on four web servers."""
    found = hostile.files(site.directory)
    assert len(found) >= 4 * len(PAYLOADS)
    for address in found[::5]:
        page.page.goto(site.address + quote(address), wait_until="load")
        assert page.page.evaluate("window.pwned") is None, address


def test_words_of_a_cell_stay_words_and_its_reason_is_shown_to_the_letter(page: Watched, site: Site) -> None:
    for number, bad in enumerate(PAYLOADS):
        [address] = site.pages(f"runs/*/p/s{number}/picoquic/t{number}/index.html")
        _look(page, site.address + quote(address))
        text = page.page.locator(".reason").first.text_content() or ""
        assert printable(bad) in text


def test_words_in_the_address_stay_words(page: Watched, site: Site) -> None:
    for bad in PAYLOADS:
        query = "&".join(f"{key}={quote(bad)}" for key in ("client", "server", "test", "outcome", "cc", "q"))
        page.page.goto("about:blank")
        _look(page, f"{site.address}index.html?{query}#{quote(bad)}")


def test_words_of_two_cells_side_by_side_stay_words(page: Watched, site: Site) -> None:
    """Two cells a page; addresses that name no cell are refused before anything is done with them."""
    cells = [quote(each.removesuffix("/index.html"), safe="") for each in site.pages("runs/*/p/*/*/t*/index.html")]
    for bad, first, second in zip(PAYLOADS[::2], cells[::2], cells[1::2], strict=True):
        _look(page, f"{site.address}compare/cells/index.html?a={first}&b={second}&x={quote(bad)}")
        page.page.wait_for_selector("#sides-facts td")
    for bad in PAYLOADS[:5]:
        _look(page, f"{site.address}compare/cells/index.html?a={quote(bad)}&b={quote(bad)}")
        assert "does not name two cells" in page.page.inner_text("#side-note")


def test_words_in_the_address_of_a_plot_stay_words(page: Watched, site: Site, tmp_path: Path) -> None:
    builder.build(builder.on_disk(tmp_path / "results", builder.small()), tmp_path / "site")
    [cell] = (tmp_path / "site").glob("runs/*/p/picoquic/quiche/sat/index.html")
    with server(tmp_path / "site", kept=True) as address:
        for bad in PAYLOADS:
            query = "&".join(f"{key}={quote(bad)}" for key in ("x", "rep", "bright"))
            _look(page, f"{address}{cell.relative_to(tmp_path / 'site')}?{query}")
