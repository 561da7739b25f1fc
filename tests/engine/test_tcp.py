"""TCP at the real engine, with both clocks: initial windows and versions of TLS take effect."""

from pathlib import Path

import pytest

from quicsat.docker.client import Daemon
from quicsat.model.clock import Clock
from quicsat.model.negotiated import EarlyData
from tests.engine.conftest import need
from tests.engine.test_command import measure
from tests.engine.test_gateways import value, window

LINK = """\
name: straight
abbreviation: ST
description: 100 kB over a long link
link: {scenario: simple-p2p, delay: 200 ms, rate: 20 Mbit/s, queue: 1000}
file size: 100 kB
repetitions: 1
timeout: 60 s
"""
ROUND_TRIP = 0.4
VISITS = """\
name: returns
abbreviation: RET
description: Two visits over a long link
extends: resumption
link: {scenario: simple-p2p, delay: 200 ms, rate: 20 Mbit/s, queue: 1000, endpoint tcp: {fast open: true}}
file sizes: [5 kB, 5 kB]
"""


@pytest.mark.parametrize("clock", Clock)
def test_initial_windows_and_versions_of_tls(clock: Clock, daemon: Daemon, tmp_path: Path) -> None:
    need(daemon, "simulator", "nginx", "curl", *(("virtual-time",) if clock is Clock.VIRTUAL else ()))
    path = tmp_path / "link.yaml"
    path.write_text(LINK)
    clients = ("curl:tls12",) if clock is Clock.REAL else ("curl", "curl:tls12")  # in real time, runs take longer
    words = ("-s", "nginx-tcp:iw10", "nginx-tcp:iw20", "-c", *clients, "-t", path)
    results = measure(tmp_path / "r", *words, "--skip-compliance-check", "--clock", clock, "--parallel", "2")
    assert len(results) == 2 * len(clients)
    for result in results:
        older = result.client == "curl:tls12"
        trips = 3 if older else 2  # TCP, and TLS with one round trip or two
        assert value(result, "handshake_time") == pytest.approx(trips * ROUND_TRIP, abs=0.1), result.key
        assert window(tmp_path / "r" / result.key.path) == (20 if result.server.endswith("iw20") else 10)


PAGE = """\
name: page
abbreviation: PG
description: A small page over a long link
extends: straight
workload:
  objects:
    page: {type: html, files: 12 KiB}
    style: {type: css, files: 2 × 8 KiB, after: page}
    picture: {type: image, files: [20 KiB, 60 KiB], after: style}
"""


def test_objects_over_http2(daemon: Daemon, tmp_path: Path) -> None:
    """All at once, as a page, and each over a connection of its own; both versions of TLS."""
    need(daemon, "simulator", "nginx", "haproxy", "curl", "virtual-time")
    path = tmp_path / "link.yaml"
    path.write_text(f"{LINK.replace('60 s', '240 s')}---\n{PAGE}")
    words = ("-s", "nginx-tcp", "haproxy-tcp", "-c", "curl", "curl:tls12")
    tests = ("-t", path, "straight+objects", "straight+connections")
    options = ("--skip-compliance-check", "--clock", "virtual", "--repetitions", "1", "--parallel", "2")
    results = [each for each in measure(tmp_path / "r", *words, *tests, *options) if each.test_case != "straight"]
    assert len(results) == 3 * 4
    for result in results:
        assert result.measurement is not None, result.verdict
        objects = result.measurement.objects
        assert len(objects) == {"page": 5}.get(result.test_case, 50)
        assert value(result, "completion_time") == pytest.approx(max(each.finished for each in objects), abs=1e-5)
        trips = {"page": 1, "straight+connections": 3 + (result.client == "curl:tls12")}
        if result.test_case in trips:
            least = min(each.duration for each in objects)
            assert least == pytest.approx(trips[result.test_case] * ROUND_TRIP, abs=0.1), result.key
        if result.test_case == "page":
            page, *styles = sorted(objects, key=lambda each: each.requested)[:3]
            assert all(each.requested >= page.finished for each in styles)


@pytest.mark.parametrize("clock", Clock)
def test_second_visits_save_round_trips(daemon: Daemon, tmp_path: Path, clock: Clock) -> None:
    """Early data and TCP Fast Open, as the packets show them."""
    need(daemon, "simulator", "nginx", "haproxy", "curl", "virtual-time")
    path = tmp_path / "link.yaml"
    path.write_text(VISITS)
    clients = ("curl", "curl:tls12", "curl:early-data", "curl:fast-open", "curl:fast-open-early-data")
    words = ("-s", "nginx-tcp", "haproxy-tcp", "-c", *clients, "-t", path, "--skip-compliance-check")
    found = measure(tmp_path / "r", *words, "--clock", clock, "--repetitions", "1", "--parallel", "2")
    assert len(found) == 2 * len(clients)
    for result in found:
        assert result.measurement is not None, result.verdict
        known = result.measurement.negotiated
        early, fast = "early-data" in result.client, "fast-open" in result.client
        assert known.resumed
        assert known.early_data is (EarlyData.ACCEPTED if early else EarlyData.NONE), result.key
        assert known.fast_open is (EarlyData.ACCEPTED if fast else EarlyData.NONE), result.key
        times = result.measurement.values
        first = 3 + (result.client == "curl:tls12")
        assert times["first_visit_first_byte"] == pytest.approx(first * ROUND_TRIP, abs=0.1), result.key
        trips = 3 - fast - (early and result.server == "nginx-tcp")  # HAProxy answers after the handshake
        assert times["second_visit_first_byte"] == pytest.approx(trips * ROUND_TRIP, abs=0.1), result.key
