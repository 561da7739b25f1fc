"""qvis opens exported qlogs without an error, and shows as many packets as the traces have.

qvis is not part of this repository. This test needs the folder ``dist`` of a build of its sources, and fetches nothing:

    make test-qvis QVIS=qvis/visualizations/dist RUNS="results/latest/*/terrestrial/1"

Without RUNS, it takes runs of tests/data.
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page

from quicsat.analysis.link_qlog import LinkRun
from quicsat.analysis.qlog_export import FILES, write_qlogs
from quicsat.analysis.reanalysis import planned
from quicsat.cli.stored_run import stored_run
from quicsat.model.emulated_link import unknown_link
from quicsat.traces.quic_series import QuicTracePair
from quicsat.traces.run_traces import RunTraces, check_traces, read_run
from tests.analysis.test_qlog_export import RUNS, traces
from tests.browser.chromium import plain_server

pytestmark = pytest.mark.browser

VIEWS = ("sequence", "congestion", "multiplexing", "packetization", "stats")
ESTIMATES = ("multiplexing", "packetization")
"""Views that estimate the sizes of frames, and log each estimate as an error."""
PATIENCE = 120_000
"""Milliseconds."""
_LOADED = """(count) => {
  const found = document.querySelector("#app").__vue__.$store.state.connections;
  return found.outstandingRequests === 0 && found.grouplist.length === count;
}"""
_PACKETS = """() => document.querySelector("#app").__vue__.$store.state.connections.grouplist.map((group) => {
  const names = group.getConnections().flatMap((each) => each.getEvents().map((event) => each.parseEvent(event).name));
  const count = (name) => names.filter((each) => each === name).length;
  return [group.filename, count("packet_sent"), count("packet_received")];
})"""


def _stored(directory: Path) -> tuple[RunTraces, LinkRun]:
    results, result, place, _ = stored_run(directory, "test-qvis RUN")
    case = planned(results.manifest, result).under(result.evidence.perturbation).test_case
    found = read_run(place, result.protocol, case.link, check_traces(place, result.protocol))
    return found, LinkRun(case.link, result.evidence.simulator, result.evidence.seed, found.start)


def _runs() -> Iterator[tuple[str, RunTraces, LinkRun]]:
    stored = os.environ.get("RUNS", "").split()
    for name in stored:
        yield name, *_stored(Path(name))
    for name in () if stored else RUNS:
        yield name, traces(name), LinkRun(unknown_link(), None, 1, traces(name).start)


@dataclass
class _Complaints:
    view: str = "files"
    found: list[str] = field(default_factory=list)

    def hear(self, message: ConsoleMessage) -> None:
        if message.type == "error" and self.view not in ESTIMATES:
            self.found.append(f"{self.view}: {message.text[:200]}")


def test_qvis_shows_the_packets_of_a_run(browser: Browser, tmp_path: Path) -> None:
    place = os.environ.get("QVIS")
    if not place:
        pytest.skip("QVIS names no build of qvis; see this module")
    with plain_server(Path(place)) as address:
        for name, told, link in _runs():
            folder = tmp_path / str(len(list(tmp_path.iterdir())))
            folder.mkdir()
            shown = _shown(browser, address, write_qlogs(folder, name, told, link, older=True))
            print(name, shown)  # noqa: T201 - what was shown, with pytest -s
            assert shown == _truth(told), name


def _truth(told: RunTraces) -> dict[str, tuple[int, int]]:
    """Packets that client and server sent and received, by the traces."""
    pair = told.trace_pair
    assert isinstance(pair, QuicTracePair)
    counts = {
        role: Counter(trace.from_server.tolist()) for role, trace in (("client", pair.client), ("server", pair.server))
    }
    return {role: (count[role == "server"], count[role == "client"]) for role, count in counts.items()}


def _go(page: Page, view: str) -> None:
    page.evaluate("(view) => { location.hash = `#/${view}`; }", view)


def _load(page: Page, files: list[str], before: int) -> None:
    """Import files beside so many others."""
    page.set_input_files("#fileUpload", files)
    page.get_by_role("button", name="Import").click()
    page.wait_for_function(_LOADED, arg=before + len(files))


def _shown(browser: Browser, address: str, files: list[Path]) -> dict[str, tuple[int, int]]:
    """The same by qvis, after all its views were shown."""
    assert len(files) == len(FILES)
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE)
    complaints = _Complaints()
    page.on("pageerror", lambda error: complaints.found.append(f"{complaints.view}: {error}"))
    page.on("console", complaints.hear)
    page.goto(f"{address}index.html#/files", wait_until="load")
    *ends, link = map(str, files)
    _load(page, ends, 0)
    loaded: list[list[Any]] = page.evaluate(_PACKETS)  # the views make further traces
    for complaints.view in VIEWS:
        _go(page, complaints.view)
        page.wait_for_timeout(1000)
    complaints.view = "files"
    _go(page, complaints.view)
    _load(page, [link], len(ends))  # the views have nothing to show of it
    page.context.close()
    assert complaints.found == []
    return {str(name).partition(".")[0]: (int(sent), int(received)) for name, sent, received in loaded}
