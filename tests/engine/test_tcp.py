"""TCP at the real engine, with both clocks: initial windows and versions of TLS take effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from quicsat.docker.client import Daemon
from quicsat.model.clock import Clock
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
