"""Measures the website: a large matrix, filters, a million packets, and how long a large campaign takes to build.

make bench-site            everything, in Debian's Chromium without a GPU
"""
# ruff: noqa: T201 - a script

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import Browser, sync_playwright

from interop.model.functional_checks import Check
from interop.model.outcomes import Outcome
from interop.model.results import ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.results.store import write_result_json
from interop.site import campaign_pages, campaigns, packets, publish
from interop.site.pages import Renderer
from interop.site.recent import Past
from interop.site.serve import server
from interop.traces import series
from tests.browser import chromium
from tests.results_builder import SAT, result_set, run_result
from tests.series_builder import Transfer
from tests.series_builder import series as made_series

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 5
LOG = "".join(f"client | {step}: a line as endpoints print them\n" for step in range(100))
READY = (
    """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"""
)
CLICK = """() => new Promise((done) => {
  const begin = performance.now();
  const buttons = document.querySelectorAll("#filters button[data-key]");
  buttons[Math.floor(Math.random() * buttons.length)].click();
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin)));
})"""
ZOOM = """() => new Promise((done) => {
  const begin = performance.now();
  const key = new KeyboardEvent("keydown", {key: Math.random() < 0.6 ? "+" : "-", bubbles: true});
  document.querySelector("[data-panel=offset] .plot").dispatchEvent(key);
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin)));
})"""
STEP = """() => new Promise((done) => {
  const begin = performance.now();
  document.querySelector(`#sequence-view button[aria-label="${Math.random() < 0.5 ? "Later" : "Earlier"}"]`).click();
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin)));
})"""
DRAWN = """() => performance.getEntriesByName("packets-drawn")[0].startTime
  - performance.getEntriesByName("packets-arrived")[0].startTime"""


def names(count: int) -> tuple[str, ...]:
    """Names as long as real ones."""
    return tuple(f"stack-{number:02}" for number in range(count))


def campaign(implementations: int, measured: int, tests: int, repetitions: int) -> ResultSet:
    """Every pair in every test case; of ``tests`` that only pass or fail one repetition each."""
    cases = [replace(SAT, name=f"measured{n}", abbreviation=f"M{n}", repetitions=repetitions) for n in range(measured)]
    cases += [
        replace(SAT, name=f"test{n}", abbreviation=f"T{n}", repetitions=1, check=Check.HANDSHAKE) for n in range(tests)
    ]
    rng = np.random.default_rng(6)
    results = [
        replace(made, measurement=None) if case.name.startswith("test") else made
        for case in cases
        for server_name in names(implementations)
        for client in names(implementations)
        for repetition in range(1, case.repetitions + 1)
        if (made := _run(rng, server_name, client, case, repetition))
    ]
    both = names(implementations)
    return result_set(results, servers=both, clients=both, test_cases=tuple(cases))


def _run(rng: np.random.Generator, server_name: str, client: str, case: TestCase, repetition: int) -> RunResult:
    failed = rng.random() < 0.1
    return run_result(
        None if failed else float(rng.uniform(1e6, 19e6)), server=server_name, client=client, test_case=case.name,
        repetition=repetition, outcome=Outcome.FAILED if failed else None, reason="It failed." if failed else "",
    )  # fmt: skip


@contextmanager
def built(results: ResultSet, place: Path) -> Iterator[tuple[publish.BuiltSite, float, str]]:
    """The site of a campaign: what was built, in how many seconds, and where it is served."""
    begin = time.monotonic()
    made = publish.build(publish.SiteRequest([place / "results"], place / "site", ROOT), print)
    took = time.monotonic() - begin
    with server(place / "site") as address:
        yield made, took, address


def tell(what: str, value: float, unit: str, bar: float) -> bool:
    """Print one line; whether the bar is met."""
    met = value <= bar
    print(f"{'ok' if met else 'OVER':5} {what:58} {value:10,.0f} {unit:6} bar {bar:,.0f}", flush=True)
    return met


def matrix(browser: Browser, place: Path) -> bool:
    """18 by 18 implementations, 26 test cases."""
    results = campaign(18, 3, 23, 1)
    (place / "results").mkdir()
    write_result_json(place / "results", results)
    with built(results, place) as (_, _, address):
        ready, clicks, received, nodes = load_and_click(browser, address)
        on_request = {"sequence.js", "export.js", "side.js"}
        scripts = sum(path.stat().st_size for path in (place / "site" / "assets").rglob("*.js")
                      if path.name not in on_request)  # fmt: skip
    return all([
        tell("18 x 18 x 26: matrix ready, median", statistics.median(ready), "ms", 800),
        tell("18 x 18 x 26: filter click, median", statistics.median(clicks), "ms", 300),
        tell("18 x 18 x 26: filter click, worst", max(clicks), "ms", 300),
        tell("18 x 18 x 26: DOM nodes, filters included", nodes, "", 10_000),
        tell("18 x 18 x 26: first page with all that it loads", received / 1000, "kB", 250),
        tell("JavaScript of a cell's page before somebody asks for more", scripts / 1000, "kB", 120),
    ])  # fmt: skip


def largest(browser: Browser, place: Path) -> bool:
    """The start page of 30 by 30 implementations and 30 test cases; every cell has a past."""
    (place / "results").mkdir()
    write_result_json(place / "results", campaign(30, 1, 29, 1))
    [shown], _ = campaigns.find([place / "results"])
    assets, content = publish.assets(ROOT, print)
    renderer = Renderer(ROOT / "web" / "templates", assets, datetime.now(UTC))
    site = campaign_pages.Site(renderer, place / "site", (shown,), publish.NAVIGATION, uplot=True)
    for name, text in content.items():
        site.put(PurePosixPath(assets, name), text)
    measured = [key for key in shown.cells if key[2] == "measured0"]
    past = {key: Past("▇▆▇▇▃▄▃▃", "") for key in measured}
    past |= {key: Past("▇▆▇▇│▃▄▃▃", "2026-11-20: 16.0 → 8.00 Mbit/s") for key in measured[::10]}
    campaign_pages.write_start(site, shown, campaign_pages.History(past, "12 pairs got worse."), newest=True)
    with server(place / "site") as address:
        ready, clicks, received, nodes = load_and_click(browser, address)
    return all([
        tell("30 x 30 x 30: matrix ready, median", statistics.median(ready), "ms", 500),
        tell("30 x 30 x 30: filter click, median", statistics.median(clicks), "ms", 50),
        tell("30 x 30 x 30: DOM nodes, filters included", nodes, "", 10_000),
        tell("30 x 30 x 30: first page with all that it loads", received / 1000, "kB", 300),
    ])  # fmt: skip


def load_and_click(browser: Browser, address: str) -> tuple[list[float], list[float], int, int]:
    """Of ``ROUNDS`` loads: ms until the matrix is ready, ms per filter click; bytes of a load, and DOM nodes."""
    page = browser.new_page()
    received: dict[str, int] = {}
    page.on("response", lambda answer: received.update({answer.url: int(answer.headers["content-length"])}))
    ready, clicks = [], []
    for _ in range(ROUNDS):
        page.goto(address)
        ready.append(page.evaluate(READY))
        clicks += [page.evaluate(CLICK) for _ in range(6)]
    nodes = page.evaluate("document.querySelectorAll('*').length")
    page.close()
    return ready, clicks, sum(received.values()), nodes


def diagram(browser: Browser, place: Path) -> bool:
    """A sequence diagram of 100,000 datagrams."""
    (place / "results").mkdir()
    write_result_json(place / "results", result_set([run_result(8e6)], repetitions=1))
    run = place / "results" / "picoquic_quiche" / "sat" / "1"
    run.mkdir(parents=True)
    series.save(made_series(Transfer(size=50_000_000, piece=1000, rate=8e7, lost=range(0, 50_000, 97))), run)
    steps, whole = [], []
    with built(result_set([run_result(8e6)], repetitions=1), place) as (_, _, address):
        cell = next((place / "site").glob("runs/*/p/*/*/sat/index.html")).relative_to(place / "site")
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{address}{cell}?packet=s20000")
        page.wait_for_selector("#sequence-view[data-ready]", timeout=60_000)
        steps = [page.evaluate(STEP) for _ in range(20)]
        page.click("#sequence-view button[aria-label='Show all']")
        whole = [page.evaluate(STEP) for _ in range(20)]
        page.close()
    return all([
        tell("sequence of 100,000 datagrams: a step in a part, median", statistics.median(steps), "ms", 60),
        tell("sequence of 100,000 datagrams: all of it drawn, median", statistics.median(whole), "ms", 200),
    ])  # fmt: skip


def million(browser: Browser, place: Path) -> bool:
    """A million points in one time-offset plot."""
    results = result_set([run_result(8e6)], repetitions=1)
    (place / "results").mkdir()
    write_result_json(place / "results", results)
    run = place / "results" / "picoquic_quiche" / "sat" / "1"
    run.mkdir(parents=True)
    many = made_series(Transfer(size=1_000_000_000, piece=1000, rate=8e8, lost=range(0, 1_000_000, 997)))
    jitter = np.sort(many.sent.time + np.random.default_rng(1).exponential(0.002, len(many.sent)))
    series.save(replace(many, sent=replace(many.sent, time=jitter)), run)
    drawn, steps = [], []
    with built(results, place) as (_, _, address):
        cell = next((place / "site").glob("runs/*/p/*/*/sat/index.html")).relative_to(place / "site")
        for _ in range(ROUNDS):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(f"{address}{cell}")
            page.wait_for_selector("#plots[data-ready]", timeout=60_000)
            drawn.append(page.evaluate(DRAWN))
            steps += [page.evaluate(ZOOM) for _ in range(20)]
            page.close()
    return all([
        tell("1,000,000 points: from the file's arrival to the drawing", statistics.median(drawn), "ms", 300),
        tell("1,000,000 points: zoom step, median", statistics.median(steps), "ms", 60),
    ])  # fmt: skip


def large(place: Path) -> bool:
    """144 pairs, 3 measurements, 10 repetitions, each run with 10 MiB worth of packets and a log."""
    results = campaign(12, 3, 0, 10)
    (place / "results").mkdir()
    write_result_json(place / "results", results)
    made: list[Path] = []
    rng = np.random.default_rng(3)
    for each in results.results:
        run = place / "results" / each.key.path
        run.mkdir(parents=True)
        (run / "output.txt").write_text(
            "".join(f"client | {step}: a line as endpoints print them\n" for step in range(100))
        )
        if each.measurement and len(made) < 10:
            plain = made_series(Transfer(size=10 << 20, piece=1200, rate=8e6, lost=rng.integers(0, 8000, 80).tolist()))
            times = np.sort(plain.sent.time + rng.exponential(0.002, len(plain.sent)))
            noisy = replace(plain, sent=replace(plain.sent, time=times), forward=replace(plain.forward, sent=times))
            made.append(series.save(noisy, run))
        elif each.measurement:
            (run / series.FILE_NAME).hardlink_to(made[int(rng.integers(len(made)))])
    with built(results, place) as (site, took, _):
        print(f"      {site.pages} pages; a run's packets are stored in {made[0].stat().st_size / 1000:,.0f} kB")
        begin = time.monotonic()
        publish.build(publish.SiteRequest([place / "results"], place / "site", ROOT), print)
        again = time.monotonic() - begin
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return all([
            tell("144 pairs x 3 x 10: built again, unchanged", again, "s", 30),
            tell("144 pairs x 3 x 10: most memory of a process", memory, "MiB", 1024),
            tell("144 pairs x 3 x 10: built", took, "s", 60),
            tell("144 pairs x 3 x 10: size", site.size / 1e6, "MB", 60),
        ])  # fmt: skip


def main() -> int:
    """All of it; exit status 1 if a bar is missed."""
    print(f"packets of a tick of {packets.TICK:g} s; medians of {ROUNDS} loads")
    met = []
    with sync_playwright() as playwright:
        browser = chromium.start(playwright)
        for measure in (matrix, largest, diagram, million):
            with tempfile.TemporaryDirectory() as place:
                met.append(measure(browser, Path(place)))
        browser.close()
    with tempfile.TemporaryDirectory() as place:
        met.append(large(Path(place)))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
