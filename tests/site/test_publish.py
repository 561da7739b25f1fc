"""The whole site, without a browser: pages, links, what is escaped, what is missing."""

import json
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from quicsat.model.emulated_link import DirectionLateness, DirectionReport, Lateness, SimulatorReport
from quicsat.model.errors import InputError, MachineError
from quicsat.model.outcomes import Check, ErrorCode, Outcome, Verdict
from quicsat.model.results import Versions
from quicsat.model.run import RunKey
from quicsat.site import cell_pages, publish
from quicsat.traces.series import FILE_NAME
from tests.results_builder import result_set, run_result
from tests.site import builder, hostile

PAIR = ("picoquic", "quiche")
HOSTILE = 'javascript:../../"><script>window.pwned=1</script><img src=x onerror=alert(1)>'


class Links(HTMLParser):
    """What a page leads to and loads."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.base = ""
        self.found: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if tag == "base":
            self.base = told["href"] or ""
        elif target := told.get("href") or told.get("src"):
            self.found.append((tag, target))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    builder.build(builder.on_disk(place / "results" / "one", builder.small()), place / "site", files=True)
    return place / "site"


def test_what_images_are_made_from_is_shown(site: Path) -> None:
    shown = [text for text in builder.pages(site).values() if "PyPI aiopquic 0.6" in text]
    assert shown
    assert all("<td>wake, path</td>" in text and "<code>c0ffee</code>" in text for text in shown)


def test_every_link_leads_somewhere(site: Path) -> None:
    lost = []
    for name, text in builder.pages(site).items():
        links = Links(text)
        for tag, target in links.found:
            if re.match(r"https?://", target):
                assert tag == "a", f"{name} loads {target}"
                continue
            path = (site / name).parent / links.base / target.partition("#")[0]
            if target.partition("#")[0] and not path.resolve().is_file():
                lost.append((name, target))
    assert lost == []


def test_every_page_is_complete(site: Path) -> None:
    for name, text in builder.pages(site).items():
        assert text.count("<h1") == 1, name
        assert text.count("<main") == text.count("</main>") == 1, name
        assert "script-src 'self'" in text, name
        assert not re.search(r"<script(?![^>]*(src=|type=\"application/json\"))", text), name
        assert not re.search(r"\son[a-z]+=|\sstyle=|javascript:", text), name


def test_the_matrix_is_there_without_script(site: Path) -> None:
    text = (site / "index.html").read_text()
    assert "8.00 <small>40 % ≈</small>" in text
    assert "1/3 2T" in text


def test_a_failed_cell_tells_why_and_proves_it(site: Path) -> None:
    [page] = site.glob("runs/*/p/picoquic/picoquic/sat/index.html")
    text = page.read_text()
    assert builder.REASON in text
    assert '<a href="log-1-output-txt.html#L1">1</a> client | hello' in text


def test_a_cell_leads_to_the_command_that_explains_its_runs(site: Path, tmp_path: Path) -> None:
    builder.build(builder.on_disk(tmp_path / "results", builder.small()), tmp_path / "site")
    for pages in (builder.pages(site), builder.pages(tmp_path / "site")):
        cells = [text for text in pages.values() if 'href="../pair.csv"' in text]
        assert cells
        assert all("<code>./run.py explain RUN</code>" in text and "RUN FRAME" not in text for text in cells)


def test_a_failed_cell_tells_a_long_reason_to_its_end(tmp_path: Path) -> None:
    reason = f"{'The path lost packets. ' * 60}This is the cause."
    assert reason in builder.cell_page(tmp_path, result_set([run_result(None, reason=reason)], repetitions=1))


def test_a_cell_tells_which_attempt_was_repeated_on_request(tmp_path: Path) -> None:
    results = replace(result_set([run_result(8e6, attempt=2)], repetitions=1), earlier=(run_result(None, reason="R"),))
    assert builder.cell_page(tmp_path, results).count("Repeated with <code>--retry</code>. R</td>") == 1


def test_a_cell_shows_how_late_frames_left_the_simulator(tmp_path: Path) -> None:
    """Of old reports, which do not tell it, the largest lag alone."""
    way = DirectionLateness(1000, 5, 0.025, 0.0001, 0.001, 0.02)
    counters = DirectionReport(1000, 1000, 0, 0)
    old = SimulatorReport(0.0, True, 0.0, 0.007, 0, counters, counters)
    new = replace(old, lateness=Lateness(0.01, 10.0, 0.025, 1, 0.025, way, replace(way, frames=0, late=0)))
    small = builder.small()
    told = [
        replace(each, evidence=replace(each.evidence, simulator=new if each.repetition == 1 else old))
        for each in small.results
    ]
    page = builder.cell_page(tmp_path, replace(small, results=tuple(told)))
    rows = {
        name: re.findall(r"<td[^>]*>([^<]*)</td>", row)
        for name, row in re.findall(r'<th scope="row">([^<]*)</th>(.*)</tr>', page)
    }
    assert rows["Frames that left the simulator late"] == ["0.50 %", "–", "–"]
    assert rows["Time in which late frames waited"] == ["0.25 %", "–", "–"]
    assert rows["The simulator's largest lag"] == ["25.0 ms", "7.0 ms", "7.0 ms"]


def test_a_large_campaign_says_where_the_logs_are_that_it_does_not_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_pages, "MOST_BYTES", 0)
    text = builder.cell_page(tmp_path, builder.small())
    assert "only the logs of repetition 1, which is the median" in text
    assert "below <code>picoquic_quiche/sat</code>" in text
    assert (text.count('href="log-'), text.count(">not shown<")) == (2, 1)
    assert {each["number"]: "sequence" in each for each in _repetitions(text)} == {1: True, 2: True, 3: False}


def _repetitions(page: str) -> list[dict[str, Any]]:
    """What the page of a cell says of the packets of each repetition."""
    found = re.search(r'id="repetitions">(.*?)</script>', page)
    told: list[dict[str, Any]] = json.loads(found[1])
    return told


def test_the_packets_of_each_repetition_are_shown(tmp_path: Path) -> None:
    told = _repetitions(builder.cell_page(tmp_path, builder.small()))
    assert [(each["number"], each["median"], each["sequence"]) for each in told] == [
        (1, True, "sequence-1.js"), (2, False, "sequence-2.js"), (3, False, "sequence-3.js"),
    ]  # fmt: skip


def test_a_cell_leads_to_the_figures_of_its_runs(tmp_path: Path) -> None:
    directory = builder.on_disk(tmp_path / "results", builder.small())
    (directory / "plots").mkdir()
    for name in ("offset-picoquic_quiche-SAT.svg", "offset-quiche_quiche-SAT.svg", "offset-picoquic_quiche-SATL.svg"):
        (directory / "plots" / name).write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    builder.build(directory, tmp_path / "site")
    [page] = tmp_path.glob("site/runs/*/p/picoquic/quiche/sat/index.html")
    assert re.findall(r"figures/index.html#([^\"]*)", page.read_text()) == ["offset-picoquic_quiche-SAT"]


@pytest.mark.parametrize("processes", [False, True])
def test_a_run_whose_series_are_damaged_is_named_and_has_no_packets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: bool
) -> None:
    monkeypatch.setattr(cell_pages, "WORTHWHILE", 0 if processes else 1000)
    directory = builder.on_disk(tmp_path / "results", builder.small())
    damaged = directory / "picoquic_quiche/sat/2" / FILE_NAME
    damaged.write_bytes(b"no parquet")
    said: list[str] = []
    publish.build(publish.SiteRequest([directory], tmp_path / "site", builder.ROOT), said.append)
    [told] = [text for text in said if "uPlot" not in text]
    assert str(damaged) in told
    [page] = tmp_path.glob("site/runs/*/p/picoquic/quiche/sat/index.html")
    assert "does not show the packets of repetition 2," in page.read_text()
    assert {path.name for path in page.parent.glob("packets-*")} == {"packets-1.js", "packets-3.js"}


@pytest.mark.parametrize("program", ["quicsat", "./run.py"])
def test_pages_and_scripts_name_commands_as_they_are_called_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr("quicsat.model.product_files.PROGRAM", program)
    monkeypatch.setattr("quicsat.model.text.PROGRAM", program)
    builder.build(builder.on_disk(tmp_path / "results", builder.small()), tmp_path / "site")
    files = [path for path in (tmp_path / "site").rglob("*") if path.suffix in (".html", ".js")]
    named = {path.suffix for path in files if f"{program} site" in path.read_text()}
    assert named == {".html", ".js"}
    assert any("./run.py" in path.read_text() for path in files) == (program == "./run.py")


def test_words_from_outside_stay_words(tmp_path: Path) -> None:
    builder.build(builder.on_disk(tmp_path / "results", hostile.campaign(0, HOSTILE), HOSTILE), tmp_path / "site")
    assert {path.name for path in tmp_path.iterdir()} == {"results", "site"}
    pages = builder.pages(tmp_path / "site")
    assert sum("window.pwned=1" in text for text in pages.values()) > 3
    for name, text in pages.items():
        assert "<script>window" not in text, name
        assert "<img src=x" not in text, name
        assert 'href="javascript:' not in text, name


def test_the_method_names_the_versions_of_the_programs(tmp_path: Path) -> None:
    results = builder.small()
    old = builder.on_disk(tmp_path / "old", results)
    versions = Versions("1b7f8ea-dirty", "28.1", "2", "Debian libns3-dev 3.43")
    manifest = replace(results.manifest, versions=versions)
    new = builder.on_disk(tmp_path / "new", replace(results, manifest=manifest))
    for directory, shown in ((old, False), (new, True)):
        builder.build(directory, tmp_path / f"site-{shown}")
        [page] = (tmp_path / f"site-{shown}").glob("runs/*/method/index.html")
        assert ("quicsat 0.1.0 (1b7f8ea-dirty)" in page.read_text()) is shown
        assert ("version 2, Debian libns3-dev 3.43" in page.read_text()) is shown


@pytest.fixture
def without_uplot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """scripts/setup has not brought it; the build says so."""
    monkeypatch.setattr(publish, "build_folder", lambda: tmp_path / "missing")


def test_without_its_library_the_site_is_built_and_says_so(tmp_path: Path, without_uplot: None) -> None:
    (tmp_path / "web").symlink_to(builder.ROOT / "web")
    said: list[str] = []
    directory = builder.on_disk(tmp_path / "results", builder.small())
    publish.build(publish.SiteRequest([directory], tmp_path / "site", tmp_path), said.append)
    assert any("uPlot is not here" in text for text in said)
    [page] = (tmp_path / "site").glob("runs/*/p/picoquic/quiche/sat/index.html")
    assert "uPlot was not installed when the site was built" in page.read_text()


def test_a_directory_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no campaign"):
        builder.build(tmp_path, tmp_path / "site")


def test_a_campaign_that_runs_says_how_far_it_is(tmp_path: Path) -> None:
    results = replace(builder.small(), finished=None)
    builder.build(builder.on_disk(tmp_path / "results", results), tmp_path / "site")
    assert "Not finished: 12 of 24 runs" in (tmp_path / "site" / "index.html").read_text()


def test_attempts_that_are_excluded_are_shown_wherever_the_cell_is(tmp_path: Path) -> None:
    results = builder.small()
    late = "The simulator was late."
    verdict = Verdict(Outcome.ERROR, ErrorCode.SIMULATOR_LAG, late, if_valid=Verdict(Outcome.TIMEOUT))
    repeated = [each for each in results.results if each.key in (RunKey(*PAIR, "sat", 1), RunKey(*PAIR, "satloss", 1))]
    sat, satloss = results.manifest.test_cases
    results = replace(
        results,
        manifest=replace(results.manifest, test_cases=(sat, replace(satloss, check=Check.TRANSFER))),
        results=tuple(replace(each, attempt=2) if each in repeated else each for each in results.results),
        earlier=tuple(replace(each, verdict=verdict, measurement=None) for each in repeated),
    )
    cell = builder.cell_page(tmp_path, results)
    shown = builder.pages(tmp_path / "site")
    start = shown["index.html"]
    assert 'title="4 attempts, 1 excluded"' in start
    assert "SATL: 2 attempts, 1 excluded" in start
    assert "3 excluded</a>" in start, "one of them is the error of ours that was there before"
    for told in ("4 attempts, 1 excluded", "<code>simulator-lag</code>", '<td class="line">timeout</td>', late):
        assert told in cell
    pair = next(text for name, text in shown.items() if name.endswith("p/picoquic/quiche/index.html"))
    assert 'href="sat/index.html#attempts">4 attempts, 1 excluded</a>' in pair
    other = next(text for name, text in shown.items() if name.endswith("p/quiche/quiche/sat/index.html"))
    assert 'id="attempts"' not in other
    [table] = [text for name, text in shown.items() if name.endswith("tables/index.html")]
    assert 'id="attempts"' in table
    files = [each for each in (tmp_path / "site").rglob("attempts.csv") if each.parent.name != "tables"]
    [lines] = [each.read_text().splitlines() for each in files]
    assert lines[0].startswith("server,client,test case,repetition,attempt,valid,outcome,code,reason,outcome if valid")
    assert any(",1,no,error,simulator-lag,The simulator was late.,timeout," in line for line in lines)


def test_builds_of_one_site_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build takes over pages of the old site, which must not go meanwhile."""
    active, most = list[int](), list[int]()

    def find(*_: object) -> None:
        active.append(1)
        most.append(len(active))
        time.sleep(0.05)
        active.pop()
        raise InputError("nothing")

    monkeypatch.setattr("quicsat.site.campaigns.find", find)
    request = publish.SiteRequest((tmp_path,), tmp_path / "site", builder.ROOT)

    def build(_: int) -> None:
        with pytest.raises(InputError):
            publish.build(request, print)

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(build, range(5)))
    assert most == [1] * 5


@pytest.mark.parametrize("change", [" ", "{% no such tag", None])
def test_a_program_that_changes_during_a_build_makes_no_site(
    tmp_path: Path, without_uplot: None, change: str | None
) -> None:
    """Its pages may be of two versions, and the next build would keep them as those of the later one."""
    shutil.copytree(builder.ROOT / "web", tmp_path / "web")
    template = tmp_path / "web/templates/campaigns.html"
    directory = builder.on_disk(tmp_path / "results", builder.small())

    def update(_: str) -> None:
        template.unlink() if change is None else template.write_text(template.read_text() + change)

    with pytest.raises(MachineError, match="quicsat has changed"):
        publish.build(publish.SiteRequest([directory], tmp_path / "site", tmp_path), update)
    assert {path.name for path in tmp_path.iterdir()} == {"results", "web"}
