"""Conditions of the endpoints: windows, payloads, acknowledgements."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from interop.model.implementation import CongestionControl, CpuCost
from interop.model.negotiated import Negotiated
from interop.model.results import ImageFacts, Measurement, Provenance, ResultSet, RunResult
from scripts.paper.endpoints import (
    OWN_PROGRAMS,
    SETTINGS,
    conditions,
    factor_of_stream_goodput,
    of_clients,
    of_servers,
    programs,
)
from tests.results_builder import result_set, run_result

ROOT = Path(__file__).resolve().parents[3]


def run(client: str, window: int, flying: float, returned: float) -> RunResult:
    limits = {"initial_max_data": window, "initial_max_stream_data_bidi_local": 2**52, "max_ack_delay": 20}
    values = {"goodput": 1e6, "in_flight_max": flying, "return_packets": returned, "longest_burst": flying / 1000}
    negotiated = Negotiated(1, 0x1301, "hq-interop", client=limits, server={})
    return replace(run_result(1e6, client=client), measurement=Measurement(values, negotiated=negotiated))


def campaign() -> ResultSet:
    found = [run("x", 1024, 1000, 0.1), run("y", 4096, 2048, 0.5), run("z", 1024, 3072, 0.5)]
    return result_set(found, clients=("x", "y", "z"))


def test_servers_have_medians() -> None:
    [row] = of_servers(campaign(), campaign().results).rows
    assert row == ("picoquic", "unknown", None, None, 2, 2, "")


def test_goodput_from_the_first_to_the_last_byte_is_compared() -> None:
    def made(stream: float) -> RunResult:
        return replace(run_result(1e6), measurement=Measurement({"goodput": 1e6, "stream_goodput": stream}))

    assert factor_of_stream_goodput([made(1.1e6), made(1.3e6), made(1.2e6)]) == pytest.approx(1.2)
    assert factor_of_stream_goodput([run_result(1e6)]) is None


def test_bbr_needs_no_hystart_to_leave_slow_start() -> None:
    def told(control: CongestionControl) -> str:
        results = campaign()
        known = tuple(replace(each, congestion_control=control) for each in results.manifest.implementations)
        [row] = of_servers(replace(results, manifest=replace(results.manifest, implementations=known)), ()).rows
        return str(row[1])

    shown = [told(CongestionControl(name, hystart=on)) for name, on in (("bbr", None), ("bbr", True), ("cubic", False))]
    assert shown == ["BBR", "yes", "no"]


def test_clients_have_their_windows() -> None:
    rows = of_clients(campaign(), campaign().results).rows
    assert rows[0] == ("x", "1 KiB", "no limit", "65527", "20", "10 to 10")


def test_windows_that_grew_and_windows_that_were_full() -> None:
    told = "\n".join(conditions(campaign()))
    assert "All runs used QUIC v1 with the application protocol hq-interop." in told
    assert "In 1 of 3 successful runs over `sat`, the server had more than 110 % of the client's smaller" in told
    assert "In 1 run, the maximum in flight was 85 to 110 % of the smaller initial window" in told
    assert "limited the server: picoquic with x. We use this range" in told


def test_slightly_more_than_a_window_in_flight_is_a_full_window() -> None:
    """UDP payload includes headers."""
    for flying, expected in ((880, True), (1100, True), (860, False), (1200, False)):
        told = "\n".join(conditions(result_set([run("x", 1024, flying, 0.1)], clients=("x",))))
        assert ("picoquic with x" in told) is expected


def test_programs_of_our_own_are_those_that_their_builds_name() -> None:
    """The first line of each Dockerfile says so."""
    names = {entry.parent.name for entry in (ROOT / "endpoints").glob("*/Dockerfile")}
    ours = {
        name
        for name in names
        if "wrapper of our own" in (ROOT / "endpoints" / name / "Dockerfile").read_text("utf-8").splitlines()[0]
    }
    assert not ours & set(OWN_PROGRAMS)
    assert names - ours - set(OWN_PROGRAMS) == {"TEMPLATE", "base", "base-rust", "curl"}


def test_settings_of_ours_are_named() -> None:
    """Those that change windows and buffers, in our programs and in files of settings."""
    setting = re.compile(r"\bWINDOW\b|^const window|http3_stream_buffer_size|conn-tx-buffers", re.M)
    found = {
        path.relative_to(ROOT / "endpoints").parts[0]
        for path in (ROOT / "endpoints").glob("*/**/*")
        if path.suffix in {".rs", ".go", ".java", ".js", ".conf", ""} and path.is_file()
        if setting.search(path.read_text("utf-8"))
    }
    assert found - {"base-rust"} == {*SETTINGS}


def test_programs_have_their_sources() -> None:
    images = {
        name: ImageFacts(name, "", version=version, provenance=Provenance(source=source))
        for name, version, source in (("picoquic", "1.1", "PyPI a 6"), ("lsquic", "bun-1.4", "npm b"))
    }
    results = result_set(servers=("picoquic", "lsquic"), images=images)
    first, *others = results.manifest.implementations
    measured = (replace(first, cpu_cost=CpuCost(1e-6, None)), *others)
    rows = programs(replace(results, manifest=replace(results.manifest, implementations=measured))).rows
    assert rows == (
        ("picoquic", "1.1", "PyPI a 6", "its own", "measured", "", ""),
        ("lsquic", "in Bun 1.4", "npm b", "ours", "default", "", "receive windows of 32 MiB"),
    )
