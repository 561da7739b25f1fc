"""Measures the website: a large matrix, filters, a million packets, a large campaign, a history, accessibility.

make bench-site                          everything, in Debian's Chromium without a GPU
.venv/bin/python bench/site.py history   one part: matrix, largest, diagram, million, large, history, accessible

Each part is a process of its own. A build is `./run.py site`: its time is that on the clock, beside its CPU time, and
its memory is that of its largest process.
"""
# ruff: noqa: T201 - a script

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import Browser, sync_playwright

from quicsat.model.outcomes import Check, Outcome
from quicsat.model.results import Measurement, ResultSet, RunResult
from quicsat.model.test_case import TestCase
from quicsat.results.store import write_result_json
from quicsat.site import address, brief, campaign_pages, campaigns, packets, publish, report_pages, reuse
from quicsat.site.pages import Renderer
from quicsat.site.recent import Past
from quicsat.site.serve import server
from quicsat.traces import series
from tests.browser import chromium
from tests.browser.test_access import PAGE_TYPES
from tests.results_builder import SAT, result_set, run_result
from tests.series_builder import Transfer
from tests.series_builder import series as made_series
from tests.site import builder

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


_MEASURED = """
import json, os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, use = os.wait4(child, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), use.ru_utime + use.ru_stime, use.ru_maxrss / 1024]))
"""
"""Starts a program from a small process, since the kernel counts the memory of the process that starts it."""


class Cost(NamedTuple):
    """What a build of a site has cost."""

    wall: float
    """Seconds."""
    cpu: float
    """Seconds of all its processes, user and system."""
    memory: float
    """MiB of its largest process."""


def site_of(place: Path) -> Cost:
    """Build the site of ``place / "results"`` by the command."""
    words = [sys.executable, str(ROOT / "run.py"), "site", str(place / "results"), "-o", str(place / "site")]
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-S", "-c", _MEASURED, *words], check=True, capture_output=True, text=True)
    wall = time.monotonic() - begin
    status, cpu, memory = json.loads(done.stdout.splitlines()[-1])
    if status != 0:
        raise RuntimeError(done.stdout + done.stderr)
    return Cost(wall, cpu, memory)


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
    with built(results, place) as (_, _, served):
        ready, clicks, received, nodes = load_and_click(browser, served)
        later = {"sequence.js", "export.js", "side.js"}
        scripts = sum(path.stat().st_size for path in (place / "site" / "assets").rglob("*.js")
                      if path.name not in later)  # fmt: skip
    return all([
        tell("18 x 18 x 26: matrix ready, median", statistics.median(ready), "ms", 800),
        tell("18 x 18 x 26: filter click, median", statistics.median(clicks), "ms", 300),
        tell("18 x 18 x 26: filter click, worst", max(clicks), "ms", 300),
        tell("18 x 18 x 26: DOM nodes, filters included", nodes, "", 10_000),
        tell("18 x 18 x 26: first page with all that it loads", received / 1000, "kB", 250),
        tell("JavaScript of a cell's page before it is idle", scripts / 1000, "kB", 120),
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
        (run / "output.txt").write_text(LOG)
        if each.measurement and len(made) < 10:
            plain = made_series(Transfer(size=10 << 20, piece=1200, rate=8e6, lost=rng.integers(0, 8000, 80).tolist()))
            times = np.sort(plain.sent.time + rng.exponential(0.002, len(plain.sent)))
            noisy = replace(plain, sent=replace(plain.sent, time=times), forward=replace(plain.forward, sent=times))
            made.append(series.save(noisy, run))
        elif each.measurement:
            (run / series.FILE_NAME).hardlink_to(made[int(rng.integers(len(made)))])
    stored = made[0].stat().st_size / 1000
    first, again = site_of(place), site_of(place)
    size = sum(path.stat().st_size for path in (place / "site").rglob("*") if path.is_file())
    print(
        f"      a run's packets are stored in {stored:,.0f} kB; {first.cpu:.0f} s of CPU time, again {again.cpu:.1f} s"
    )
    return all([
        tell("144 pairs x 3 x 10: built again, unchanged", again.wall, "s", 30),
        tell("144 pairs x 3 x 10: most memory of a process", first.memory, "MiB", 1024),
        tell("144 pairs x 3 x 10: built", first.wall, "s", 60),
        tell("144 pairs x 3 x 10: size", size / 1e6, "MB", 60),
    ])  # fmt: skip


NIGHTS, REAL_NIGHTS, FILES = 200, 10, 300
"""Campaigns of the history; those of them whose results can be read, since the new one is compared with them; files
that stand for the pages of each earlier one."""


def nights(speeds: np.random.Generator) -> Iterator[ResultSet]:
    """30 by 30 implementations and 30 test cases, every night; since 20 nights a tenth of the pairs is half as fast."""
    made = campaign(30, 1, 29, 1)
    usual = {each.key: float(speeds.uniform(2e6, 18e6)) for each in made.results if each.measurement}
    slower = {key for key in usual if speeds.random() < 0.1}
    for night in range(NIGHTS):
        results = []
        for each in made.results:
            if each.measurement:
                half = 0.5 if each.key in slower and night >= NIGHTS - 20 else 1.0
                goodput = usual[each.key] * half * float(speeds.lognormal(0.0, 0.03))
                results.append(
                    replace(each, measurement=Measurement({"goodput": goodput, "efficiency": goodput / 2e7}))
                )
            else:
                results.append(each)
        started = f"{datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=night):%Y-%m-%dT%H:%M:%SZ}"
        yield replace(made, results=tuple(results), manifest=replace(made.manifest, id=f"n{night}", started=started))


def earlier_site(place: Path, earlier: Sequence[campaigns.SiteCampaign]) -> None:
    """A site of the earlier campaigns as a build leaves it, with files that stand for most of its pages."""
    folder, _ = publish.assets(ROOT, print)
    keys = {each.folder: reuse.key(each, ROOT, folder, (False,)) for each in earlier}
    compared = [
        report_pages.Compared(before, after, 27_000, 3, 2, 0, "3 pairs got worse.", ("a line",) * 3)
        for before, after in report_pages.twos(earlier)
    ]
    histories = report_pages.histories(earlier, compared, report_pages.trends_by_clock(earlier))
    contents = {address.MARKER: publish.marker(ROOT, earlier, keys, histories, compared, {})}
    contents |= {each.address: b"compared" for each in compared}
    for each in earlier:
        contents[address.campaign(each.folder)] = b"start"
        contents[PurePosixPath("runs", each.folder, brief.FILE_NAME)] = brief.encode(each.brief)
        contents |= {address.campaign(each.folder, f"p/{number}"): b"page" for number in range(FILES)}
    for each in earlier[: REAL_NIGHTS - 1]:
        contents[PurePosixPath("runs", each.folder, brief.GOODPUTS_NAME)] = brief.encode_goodputs(each.goodputs)
        each.release()
    for name, content in contents.items():
        (place / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "site" / name).write_bytes(content)


def history(browser: Browser, place: Path) -> bool:
    """One more campaign of 30 by 30 by 30, after 199 others; what has not changed must not even be read."""
    earlier: list[campaigns.SiteCampaign] = []
    for number, results in enumerate(nights(np.random.default_rng(5)), 1):
        directory = place / "results" / results.manifest.id
        directory.mkdir(parents=True)
        if number > NIGHTS - REAL_NIGHTS:
            write_result_json(directory, results)
        else:
            (directory / "result.json").write_text("stands for results")
        if number < NIGHTS:
            [name] = address.folders([(results.manifest.id, results.manifest.started)])
            earlier.insert(0, campaigns.SiteCampaign(directory, name, known=brief.brief(results)))
    earlier_site(place, earlier)
    inodes = {path: path.stat().st_ino for path in (place / "site").rglob("index.html")}
    cost = site_of(place)
    kept = sum(path.is_file() and path.stat().st_ino == inode for path, inode in inodes.items())
    print(f"      {cost.cpu:.0f} s of CPU time; {kept} of {len(inodes)} pages of the earlier site are kept")
    begin = time.monotonic()
    again = site_of(place)
    print(f"      built again, unchanged: {time.monotonic() - begin:.1f} s, {again.cpu:.1f} s of CPU time")
    with server(place / "site") as served:
        ready, clicks, received, _ = load_and_click(browser, served)
    return all([
        tell("30 x 30 x 30, 200 campaigns: one more, built", cost.wall, "s", 30),
        tell("30 x 30 x 30, 200 campaigns: most memory of a process", cost.memory, "MiB", 1024),
        tell("30 x 30 x 30, 200 campaigns: pages built again", len(inodes) - kept, "", 40),
        tell("30 x 30 x 30, 200 campaigns: matrix ready, median", statistics.median(ready), "ms", 500),
        tell("30 x 30 x 30, 200 campaigns: filter click, median", statistics.median(clicks), "ms", 50),
        tell("30 x 30 x 30, 200 campaigns: first page", received / 1000, "kB", 300),
    ])  # fmt: skip


WIDTHS = (390, 768, 1440)
"""Pixels: a phone, a tablet, a desktop."""


def accessible(browser: Browser, place: Path) -> bool:
    """Each type of page in both themes at three widths: axe-core, console, other hosts."""
    builder.two_campaigns(place / "results")
    builder.build(place / "results", place / "site", files=True)
    axe, wrong, looked = (ROOT / chromium.AXE).read_text("utf-8"), list[str](), 0
    with server(place / "site", kept=True) as served:
        site = chromium.Site(place / "site", served)
        themes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
        for (kind, pattern), theme, width in product(PAGE_TYPES.items(), themes, WIDTHS):
            with chromium.watched(browser, width, theme) as page:
                page.open(site.address + site.pages(pattern)[-1])
                page.page.wait_for_timeout(100)
                found = [*chromium.violations(page.page, axe), *page.complaints]
                looked += 1
            wrong += [f"{kind}, {theme}, {width} px: {each}" for each in found]
    print("\n".join(wrong), end="\n" if wrong else "")
    name = f"{looked} pages: violations, console errors, external requests"
    return tell(name, len(wrong), "", 0)


WITH_BROWSER: dict[str, Callable[[Browser, Path], bool]] = {
    each.__name__: each for each in (matrix, largest, diagram, million, history, accessible)
}


def part(name: str) -> bool:
    """One part of the measurements."""
    with tempfile.TemporaryDirectory() as place:
        if name == large.__name__:
            return large(Path(place))
        with sync_playwright() as playwright:
            browser = chromium.start(playwright)
            met = WITH_BROWSER[name](browser, Path(place))
            browser.close()
            return met


def main() -> int:
    """All of it, each part in a process of its own, or the parts that are named; exit status 1 if a bar is missed."""
    if sys.argv[1:]:
        met = [part(name) for name in sys.argv[1:]]
    else:
        print(f"packets of a tick of {packets.TICK:g} s; medians of {ROUNDS} loads", flush=True)
        parts = (*WITH_BROWSER, large.__name__)
        met = [subprocess.run([sys.executable, __file__, name], check=False).returncode == 0 for name in parts]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
