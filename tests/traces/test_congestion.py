"""The congestion window comes out of each dialect of qlog that servers write, on the clock of the series."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interop.traces.congestion import congestion_window

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
