"""Nothing that an image, a log, a trace or an address says runs in a page: 60 payloads in every place there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from interop.model.evidence import Evidence, HostFacts
from interop.model.implementation import CongestionControl, Role
from interop.model.outcomes import ErrorCode, Outcome, Verdict
from interop.model.results import Compliance, ImageFacts, Provenance, ResultSet, RunResult
from interop.model.text import printable
from interop.site.serve import server
from tests.browser.chromium import Site, Watched
from tests.payloads import PAYLOADS
from tests.results_builder import SAT, implementation, result_set, run_result
from tests.site import builder

pytestmark = pytest.mark.browser


def _result(number: int, bad: str) -> RunResult:
    base = run_result(None, server=f"s{number}", client="picoquic", test_case=f"t{number}")
    host = HostFacts(bad, bad, 2, 1, bad, 0.0, processor=bad)
    evidence: Evidence = replace(base.evidence, started=bad, fault=bad, host=host, notes=(bad,))
    return replace(base, verdict=Verdict(Outcome.FAILED, ErrorCode.CLIENT_FAILED, bad), evidence=evidence)


def _hostile(number: int, bad: str) -> ResultSet:
    """A campaign of one run in which every text is hostile."""
    names = (f"s{number}", "picoquic")
    case = replace(SAT, name=f"t{number}", abbreviation=f"T{number}", description=bad, source=bad, repetitions=1)
    plain = result_set([_result(number, bad)], servers=names[:1], clients=names[1:], test_cases=(case,))
    control = CongestionControl(bad, (bad,), None, bad, bad)
    described = tuple(
        replace(implementation(name), image=bad, url=bad, licence=bad, language=bad, congestion_control=control)
        for name in names
    )
    facts = ImageFacts(bad, bad, (bad,), bad, 1, bad, bad, Provenance(bad, bad, bad, (bad, bad), bad, bad, bad))
    manifest = replace(
        plain.manifest, id=f"{number}{bad}", started=bad, command=(bad, bad), tool_version=bad,
        implementations=described, images={names[0]: facts, "simulator": facts},
    )  # fmt: skip
    judged = Compliance(names[0], Role.SERVER, False, bad, bad)
    return replace(plain, manifest=manifest, finished=bad, compliance=(judged,))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    place = tmp_path_factory.mktemp("hostile")
    for number, bad in enumerate(PAYLOADS):
        directory = builder.on_disk(place / "results" / str(number), _hostile(number, bad), output=f"{bad}\n")
        run = directory / f"s{number}_picoquic" / f"t{number}" / "1" / "client"
        run.mkdir()
        (run / (bad.replace("/", "|").replace("\0", "")[:200] + ".log")).write_text(bad, encoding="utf-8")
    builder.build(place / "results", place / "site", files=True)
    with server(place / "site", kept=True) as address:
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
