"""QIR's and QIR-SE's own web pages show what ``export`` writes, without an error.

The pages are not part of this repository, and neither are the libraries that they load from other hosts. So this test
needs copies of them, and fetches nothing: the browser's requests are answered from these folders.

    make test-runner-pages QIR_PAGE=quic-interop-runner/web QIR_SE_PAGE=quic-interop-runner-sat-web LIBRARIES=libraries

``LIBRARIES`` is any tree with unpacked npm packages: jquery@3.5.1, popper.js@1.16.1, bootstrap@4.5.2, bootstrap@4.6.0
and bootswatch@4.5.2. A file is found by its hash, which the pages state.
"""

import base64
import hashlib
import json
import mimetypes
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route

from quicsat.model.outcomes import Check, Outcome
from quicsat.model.results import ResultSet
from quicsat.results.qir_export import to_qir, to_qir_se
from tests.results_builder import SAT, SATLOSS, result_set, run_result

pytestmark = pytest.mark.browser

HOST = "http://127.0.0.1:9"
"""Nobody answers there; every request is answered by the test."""
MEMBER = replace(SATLOSS, name="sat@loss=0.1pct+page-p50~same", abbreviation="SAT@0.1pct+P50~same")
"""With every sign that a name may have."""
TEST = replace(SAT, name="handshake", abbreviation="H", check=Check.HANDSHAKE)
CLIENTS, SERVERS = ("quic-go", "picoquic:bbr", "aioquic"), ("quinn", "picoquic:bbr")


@dataclass(frozen=True)
class RunnerPage:
    """A web page of another runner, with the address at which its script expects it."""

    folder: Path
    path: str
    results: str
    """Where it looks for results; ``{}`` is the name of a run."""


def page_of(runner: str) -> RunnerPage:
    """The page of a runner; skips the test if there is no copy."""
    folder = os.environ.get(f"{runner}_PAGE")
    if not folder or not os.environ.get("LIBRARIES"):
        pytest.skip(f"{runner}_PAGE and LIBRARIES name no copies; see this module")
    return (
        RunnerPage(Path(folder), "/quic", "/logs/quic/{}/result.json")
        if runner == "QIR"
        else RunnerPage(Path(folder), "/", "/logs/{}/result.json")
    )


def campaign() -> ResultSet:
    """Measurements and a functional test with every outcome, a variant, and a pair that did not run."""
    outcomes = iter([*Outcome, Outcome.SUCCEEDED, Outcome.TIMEOUT] * 10)
    results = [
        run_result(None if outcome is not Outcome.SUCCEEDED else 5e6, server=server, client=client, outcome=outcome,
                   test_case=case, repetition=repetition)
        for case in ("sat", MEMBER.name, "handshake")
        for server in SERVERS
        for client in CLIENTS
        for repetition in (1, 2)
        if (outcome := Outcome.SUCCEEDED if client == "quic-go" else next(outcomes))
        if (server, client) != ("quinn", "aioquic")
    ]  # fmt: skip
    return result_set(results, servers=SERVERS, clients=CLIENTS, test_cases=(SAT, MEMBER, TEST), repetitions=2)


def library(integrity: str) -> bytes | None:
    """The content of the file below LIBRARIES that has the hash ``sha384-…``."""
    kind, _, digest = integrity.partition("-")
    for path in Path(os.environ["LIBRARIES"]).rglob("*.min.*s"):
        content = path.read_bytes()
        if base64.b64encode(hashlib.new(kind, content).digest()).decode() == digest:
            return content
    return None


def hashes(html: str) -> Iterator[tuple[str, str]]:
    """Address and hash of each file from another host of which the page states one."""
    for tag in re.findall(r"<(?:script|link)\b[^>]*>", html):
        found = dict(re.findall(r'(src|href|integrity)="([^"]*)"', tag))
        if "integrity" in found:
            yield found.get("src") or found["href"], found["integrity"]


@dataclass
class Shown:
    """A page in the browser and its errors."""

    page: Page
    errors: list[str]


def show(browser: Browser, runner: RunnerPage, document: dict[str, Any]) -> Shown:
    """Open the page with ``document`` as the results of its newest run."""
    html = (runner.folder / "index.html").read_text(encoding="utf-8")
    libraries = {address: library(integrity) for address, integrity in hashes(html)}
    assert [address for address, content in libraries.items() if content is None and address.endswith(".js")] == []
    for address, integrity in hashes(html):  # a style sheet that is in no npm package stays empty
        html = html if libraries[address] else html.replace(f'integrity="{integrity}"', "")
    results = {
        runner.results.format("latest"): document,
        runner.results.format("").replace("//result", "/logs"): ["latest"],
    }
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    errors: list[str] = []

    def answer(route: Route) -> None:
        address = route.request.url.partition("?")[0]
        path = address.removeprefix(HOST)
        local = runner.folder / path.lstrip("/")
        kind = mimetypes.guess_type(path)[0] or "text/plain"
        if address in libraries:
            route.fulfill(
                body=libraries[address] or b"", content_type=kind, headers={"Access-Control-Allow-Origin": "*"}
            )
        elif path == runner.path:
            route.fulfill(body=html, content_type="text/html")
        elif path in results:
            route.fulfill(body=json.dumps(results[path]), content_type="application/json")
        elif address.startswith(HOST) and local.is_file():
            route.fulfill(body=local.read_bytes(), content_type=kind)
        else:  # fonts, badges, analytics and figures, without which the page works
            route.fulfill(status=200, body="", content_type=kind)

    page.route("**/*", answer)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda told: errors.append(told.text) if told.type in ("error", "warning") else None)
    page.goto(HOST + runner.path, wait_until="load")
    page.wait_for_function("document.querySelectorAll('#measurements tbody td').length > 0")
    return Shown(page, errors)


def test_qir_shows_an_export(browser: Browser) -> None:
    document = to_qir(campaign(), "latest")
    shown = show(browser, page_of("QIR"), document)
    assert shown.errors == []
    logs = shown.page.locator("#measurements a[href='logs/quic/latest/quinn_quic-go/sat']")
    assert logs.all_inner_texts() == ["SAT: 5000 (± 0) kbps"]
    texts = cells(shown.page.locator("#measurements tbody td .btn"), document["measurements"])
    assert texts.count("SAT: 5000 (± 0) kbps") == 2
    assert set(cells(shown.page.locator("#interop tbody td .btn"), known(document["results"]))) == {"H"}
    shown.page.locator("#client button", has_text="aioquic").click()
    assert shown.errors == []
    assert not shown.page.locator("#measurements .client-aioquic").first.is_visible()


def test_qir_se_shows_an_export(browser: Browser) -> None:
    document = to_qir_se(campaign())
    shown = show(browser, page_of("QIR_SE"), document)
    assert shown.errors == []
    cells(shown.page.locator("#measurements tbody td button"), known(document["measurements"]))
    assert set(cells(shown.page.locator("#interop tbody td button"), known(document["results"]))) == {"H"}


def known(document: list[list[Any]]) -> list[list[Any]]:
    """The results that are not null, which pages leave out."""
    return [[cell for cell in pair if cell["result"]] for pair in document]


def cells(found: Locator, document: list[list[Any]]) -> list[str]:
    """The texts of the results on a page, all of which are to be seen."""
    assert found.count() == sum(map(len, document)) > 3
    assert all(found.nth(place).is_visible() for place in range(found.count()))
    return found.all_inner_texts()
