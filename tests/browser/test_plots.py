"""The packets of a cell: drawn, zoomed, measured, and in the address."""

import json
import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import Page

from quicsat.analysis.time_shares import run_time_shares
from quicsat.model.implementation import Protocol
from quicsat.model.results import Measurement
from quicsat.model.time_shares import TimeShare
from quicsat.site.serve import server
from quicsat.traces import series
from quicsat.traces.run_traces import check_traces, read_run
from tests.browser.chromium import Site, Watched, pixels
from tests.results_builder import SAT, result_set, runs
from tests.series_builder import Transfer
from tests.series_builder import series as made_series
from tests.simulated import transfer
from tests.site import builder

pytestmark = pytest.mark.browser

CELL = "runs/2026-11-21*/p/picoquic/quiche/sat/index.html"


@pytest.fixture
def cell(page: Watched, site: Site) -> Page:
    page.open(site.address + site.pages(CELL)[0])
    page.page.wait_for_selector("#plots[data-ready]")
    page.page.locator("[data-panel=offset]").scroll_into_view_if_needed()
    return page.page


def test_the_line_of_first_transmissions_rises_and_the_retransmission_stands_apart(cell: Page) -> None:
    first = np.array(pixels(cell, "first"))
    again = np.array(pixels(cell, "again"))
    assert len(first) > 300
    assert np.corrcoef(first[:, 0], -first[:, 1])[0, 1] > 0.999
    assert 0 < len(again) <= 30
    assert again[:, 0].min() > first[:, 0].max()


def test_keys_zoom_and_the_address_keeps_the_view(cell: Page) -> None:
    cell.focus("[data-panel=offset] .plot")
    cell.keyboard.press("+")
    cell.wait_for_url("**?x=*")
    zoomed = cell.url
    cell.keyboard.press("ArrowRight")
    cell.wait_for_url(lambda url: url != zoomed)
    address, shown = cell.url, pixels(cell, "first")
    cell.goto(address)
    cell.wait_for_selector("#plots[data-ready]")
    assert pixels(cell, "first") == shown
    cell.focus("[data-panel=offset] .plot")
    cell.keyboard.press("0")
    cell.wait_for_url(re.compile(r"\.html$"))


def test_dragging_zooms_all_panels(cell: Page) -> None:
    box = cell.locator("[data-panel=offset] .u-over").bounding_box()
    assert box
    cell.mouse.move(box["x"] + 100, box["y"] + 50)
    cell.mouse.down()
    cell.mouse.move(box["x"] + 300, box["y"] + 60, steps=3)
    cell.mouse.up()
    cell.wait_for_url("**?x=*")
    cell.mouse.dblclick(box["x"] + 200, box["y"] + 50)
    cell.wait_for_url(re.compile(r"\.html$"))


def test_the_pointer_tells_the_nearest_packet_and_the_ruler_the_rate(cell: Page) -> None:
    cell.focus("[data-panel=offset] .plot")
    [x, y] = pixels(cell, "first")[150]
    box = cell.locator("[data-panel=offset] canvas").bounding_box()
    assert box
    cell.mouse.move(box["x"] + x, box["y"] + y)
    told = cell.locator("[data-panel=offset] > p")
    assert "MiB, repetition 1" in told.inner_text()
    cell.keyboard.press("r")
    [x, y] = pixels(cell, "first")[-150]
    cell.mouse.move(box["x"] + x, box["y"] + y)
    rate = float(told.inner_text().split(",")[-1].split()[0])
    assert rate == pytest.approx(8, rel=0.05)  # the transfer of tests.site.builder


def test_repetitions_are_switched_off_and_chosen(cell: Page) -> None:
    assert len(pixels(cell, "grey")) > 50
    cell.click("button[aria-label='Repetition 2']")
    cell.click("button[aria-label='Repetition 3']")
    assert pixels(cell, "grey") == []
    cell.wait_for_url("**?rep=1")
    cell.select_option("#bright", "2")
    cell.wait_for_url("**bright=2")
    assert len(pixels(cell, "grey")) > 50


def test_a_plot_is_saved_as_vectors_as_a_picture_and_as_numbers(cell: Page) -> None:
    saved = {}
    for form in ("SVG", "PNG", "CSV"):
        with cell.expect_download() as download:
            cell.click(f"[data-panel=offset] button:text('{form}')")
        assert download.value.suggested_filename == f"picoquic_quiche-sat-offset.{form.lower()}"
        saved[form] = download.value.path().read_bytes()
    root = ElementTree.fromstring(saved["SVG"])
    curves = root.findall(".//{http://www.w3.org/2000/svg}path")
    assert "picoquic to quiche, sat" in root.findtext("{http://www.w3.org/2000/svg}title", "")
    assert sum((each.get("d") or "").count("M") for each in curves) > 300
    assert saved["PNG"].startswith(b"\x89PNG")
    assert saved["CSV"].count(b"\n") > 300


def test_the_nearest_packet_is_marked(cell: Page) -> None:
    [x, y] = pixels(cell, "first")[150]
    canvas = cell.locator("[data-panel=offset] canvas").bounding_box()
    assert canvas
    cell.mouse.move(canvas["x"] + x + 3, canvas["y"] + y + 3)
    ring = cell.locator("[data-panel=offset] .nearest").bounding_box()
    assert ring
    assert ring["x"] + ring["width"] / 2 == pytest.approx(canvas["x"] + x, abs=4)
    assert ring["y"] + ring["height"] / 2 == pytest.approx(canvas["y"] + y, abs=4)


def test_a_line_of_a_log_has_an_address(page: Watched, site: Site) -> None:
    page.open(site.address + site.pages("runs/2026-11-21*/p/picoquic/quiche/sat/log-1-*.html")[0])
    page.page.click("#L1")
    assert page.page.url.endswith("#L1")


STATES = {300.0: "slow_start", 400.0: "application_limited", 900.0: "recovery"}
"""Of a congestion controller, by milliseconds; the second one has no room beside the first."""
NOTED = """
window.words = {};
const { fillText, moveTo } = CanvasRenderingContext2D.prototype;
let line = 0;
CanvasRenderingContext2D.prototype.moveTo = function (x, y) {
  line = x;
  moveTo.call(this, x, y);
};
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  const before = { left: 0, start: 0, center: 0.5, right: 1, end: 1 }[this.textAlign] * this.measureText(text).width;
  words[text] = x - before - line;
  fillText.call(this, text, x, y);
};
"""
"""Where each word begins, to the right of the last line that has been begun, in pixels."""


def test_states_of_the_congestion_control_stand_beside_their_lines(page: Watched, tmp_path: Path) -> None:
    directory = builder.on_disk(tmp_path / "results", result_set(runs(8e6)))
    events = [{"time": 0.0, "name": "transport:packet_received", "data": {}}]
    events += [
        {"time": time, "name": "recovery:congestion_state_updated", "data": {"new": state}}
        for time, state in STATES.items()
    ]
    qlog = directory / "picoquic_quiche/sat/1/server/qlog/one.qlog"
    qlog.parent.mkdir(parents=True)
    qlog.write_text(json.dumps({"qlog_version": "0.3", "traces": [{"events": events}]}))
    builder.build(directory, tmp_path / "site")
    [path] = (tmp_path / "site").glob(CELL)
    page.page.add_init_script(NOTED)
    with server(tmp_path / "site", kept=True) as address:
        page.open(address + str(path.relative_to(tmp_path / "site")))
        panel = page.page.locator("[data-panel=window]")
        panel.scroll_into_view_if_needed()
        while "recovery" not in (words := page.page.evaluate("words")):  # the page allows no text as a script
            page.page.wait_for_timeout(50)
    assert "application limited" not in words
    assert 0 < words["slow start"] < 10
    assert 0 < words["recovery"] < 10


COLOURS = """panel => {
  const canvas = panel.querySelector("canvas"), ratio = devicePixelRatio;
  const over = panel.querySelector(".u-over").getBoundingClientRect(), box = canvas.getBoundingClientRect();
  const row = Math.round((over.bottom - box.top - 4) * ratio);
  const { data } = canvas.getContext("2d").getImageData(0, row, canvas.width, 1);
  const hex = value => value.toString(16).padStart(2, "0");
  return Array.from({ length: canvas.width }, (_, x) => "#" + [...data.slice(4 * x, 4 * x + 3)].map(hex).join(""));
}"""
"""The colours of a line of pixels in the band of time shares."""


def test_a_band_shows_what_the_transfer_waited_for(page: Watched, tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    endpoints = transfer([600_000], pause=(100_000, 8.0), max_data=10_000_000, max_stream_data=10_000_000)
    endpoints.write(made)
    traces = read_run(made, Protocol.HQ, SAT.link, check_traces(made, Protocol.HQ))
    [run] = runs(8e6)
    found = run_time_shares(traces, traces.series(), SAT, run.evidence)
    assert found
    assert run.measurement
    shares = {share.metric: spent for share, spent in found.seconds.items()}
    analysed = replace(run, measurement=Measurement(run.measurement.values | shares))
    directory = builder.on_disk(tmp_path / "results", result_set([analysed]))
    place = directory / "picoquic_quiche/sat/1"
    endpoints.write(place)
    series.save(traces.series(), place)
    (place / "server/older.qlog").write_text('{"qlog_version": "0.3", "qlog_format": "JSON", "traces": []}')
    builder.build(directory, tmp_path / "site", files=True)
    [path] = (tmp_path / "site").glob(CELL)
    page.open(path.as_uri())
    for name in ("run-client.sqlog.json", "run-server.sqlog.json", "run-link.sqlog.json", "run.pcapng"):
        assert page.page.locator(f"a[href='files-1/{name}'][download]").count() == 1
        assert (path.parent / "files-1" / name).stat().st_size > 10_000
    logged = page.page.locator("a[data-qvis]").evaluate_all("links => links.map(link => link.textContent)")
    assert logged == ["server-older.qlog.json"]
    page.page.wait_for_selector("#plots[data-ready]")
    panel = page.page.locator("[data-panel=offset]")
    panel.scroll_into_view_if_needed()
    names = dict(page.page.evaluate("() => timeShares"))
    assert list(names) == [share.label for share in TimeShare]
    shown = np.array(panel.evaluate(COLOURS))
    band = np.flatnonzero(np.isin(shown, list(names.values())))
    told = dict(each.strip().rsplit(" ", 2)[:2] for each in panel.locator(".shares span").all_inner_texts())
    assert {"application", "handshake"} <= told.keys()
    part = (shown == names["application"]).sum() / (band[-1] - band[0] + 1)
    assert part == pytest.approx(int(told["application"]) / 100, abs=0.02)
    box = panel.locator(".u-over").bounding_box()
    assert box
    page.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10)
    assert "waits for: application" in panel.locator("> p").inner_text()


def without_packets(found: Any) -> Any:
    """Series, or a part of them, of a run in which nothing was sent."""
    if isinstance(found, np.ndarray):
        return found[:0]
    if not is_dataclass(found) or isinstance(found, type):
        return found
    return replace(found, **{each.name: without_packets(getattr(found, each.name)) for each in fields(found)})


@pytest.mark.parametrize("empty", [(1, 2, 3), (1, 2), ()])
def test_panels_without_a_point_take_no_room(page: Watched, tmp_path: Path, empty: tuple[int, ...]) -> None:
    directory = builder.on_disk(tmp_path / "results", result_set(runs(8e6, 7e6, 9e6)))
    for number in empty:
        series.save(without_packets(made_series(Transfer())), directory / f"picoquic_quiche/sat/{number}")
    builder.build(directory, tmp_path / "site")
    [path] = (tmp_path / "site").glob(CELL)
    page.open(path.as_uri())
    page.page.wait_for_selector("#plots[data-ready]", state="attached")
    shown = page.page.locator(".panel:visible")
    everything = len(empty) < 3
    assert (shown.count() >= 5) is everything
    assert (shown.count() == 0) is not everything
    assert page.page.locator(".jump [href='#more']").count() == everything
    assert page.page.locator("[aria-label=Repetitions]").count() == everything
    if everything:
        page.page.locator("[data-panel=offset]").scroll_into_view_if_needed()
        while len(pixels(page.page, "first" if len(empty) < 2 else "grey")) <= 50:
            page.page.wait_for_timeout(50)
