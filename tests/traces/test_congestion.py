"""The congestion window comes out of each dialect of qlog that servers write, on the clock of the series."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interop.traces.congestion import congestion_window, recovery

EVENTS: list[dict[str, Any]] = [
    {"time": 5000.0, "name": "transport:packet_received", "data": {}},
    {"time": 5001.0, "name": "recovery:metrics_updated", "data": {"cwnd": 12000}},
    {"time": 5002.0, "name": "recovery:metrics_updated", "data": {"cwnd": 12000, "latest_rtt": 3}},
    {"time": 5003.0, "name": "quic:packet_sent", "data": {}},
    {"time": 5102.0, "name": "recovery:metrics_updated", "data": {"congestion_window": 24000}},
]


@pytest.mark.parametrize("form", ["document", "sequence", "lines"])
def test_changes_of_the_window(tmp_path: Path, form: str) -> None:
    header = {"qlog_version": "0.3", "trace": {"vantage_point": {"type": "server"}}}
    texts = [json.dumps(each) for each in [header, *EVENTS]]
    content = {
        "document": json.dumps({"qlog_version": "0.3", "traces": [{"events": EVENTS}]}),
        "sequence": "".join(f"\x1e{text}\n" for text in texts),
        "lines": "\n".join(texts),
    }
    (tmp_path / "one.sqlog").write_text(content[form])
    (tmp_path / "other.txt").write_text("not a qlog")
    (tmp_path / "broken.qlog").write_text("{")
    found = congestion_window(tmp_path, 0.3)
    assert found.time.tolist() == pytest.approx([0.301, 0.402])
    assert found.value.tolist() == [12000, 24000]


def test_no_qlog(tmp_path: Path) -> None:
    assert len(congestion_window(tmp_path, 0.0)) == 0
    assert len(congestion_window(tmp_path / "none", 0.0)) == 0


def test_what_a_server_tells_of_its_recovery(tmp_path: Path) -> None:
    """A threshold that stands for none is left out, repeated ones too; words of the stack are printable and short."""
    events: list[dict[str, Any]] = [
        {"time": 0.0, "name": "transport:packet_received", "data": {}},
        {"time": 1.0, "name": "recovery:metrics_updated", "data": {"ssthresh": 2**63 - 1}},
        {"time": 2.0, "name": "recovery:congestion_state_updated", "data": {"new": "slow_start"}},
        {"time": 300.0, "name": "recovery:packet_lost", "data": {"header": {"packet_number": 7}}},
        {"time": 301.0, "name": "recovery:metrics_updated", "data": {"ssthresh": 24000}},
        {"time": 302.0, "name": "recovery:metrics_updated", "data": {"ssthresh": 24000}},
        {"time": 302.5, "name": "recovery:congestion_state_updated", "data": {"new": "721665"}},  # as picoquic does
        {"time": 303.0, "name": "recovery:congestion_state_updated", "data": {"new": "\x1b[31m" + "x" * 99}},
    ]
    (tmp_path / "one.qlog").write_text(json.dumps({"qlog_version": "0.3", "traces": [{"events": events}]}))
    found = recovery(tmp_path, 1.0)
    assert found.given_up.tolist() == pytest.approx([1.3])
    assert (found.threshold.time.tolist(), found.threshold.value.tolist()) == (pytest.approx([1.301]), [24000])
    assert [time for time, _ in found.states] == pytest.approx([1.002, 1.303])
    first, second = (word for _, word in found.states)
    assert first == "slow_start"
    assert len(second) <= 40
    assert second.isprintable()
    assert len(recovery(tmp_path / "none", 0.0).given_up) == 0
