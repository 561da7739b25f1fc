"""Qlogs of an analysed run are compressed, and read as before."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interop.results.compression import compress_qlogs
from interop.site.files import downloads
from interop.traces.congestion import recovery


def qlog(values: Sequence[Any]) -> str:
    """A qlog of congestion windows, of which the second is damaged."""
    events = [
        {"time": 10 * number, "name": "recovery:metrics_updated", "data": {"congestion_window": value}}
        for number, value in enumerate(values)
    ]
    return "\n".join(map(json.dumps, [{"qlog_version": "0.3", "trace": {}}, *events]))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with a qlog, others that are not compressed, and another log."""
    for folder in ("server/qlog", "client/qlog", "flow-2/server"):
        (tmp_path / folder).mkdir(parents=True)
    text = qlog([12_000, "?", *(6000 + number for number in range(200))])
    for name in ("server/qlog/a.sqlog", "flow-2/server/b.qlog", "server/log.txt", "client/taken.qlog"):
        (tmp_path / name).write_text(text)
    (tmp_path / "client" / "taken.qlog.gz").write_text("by the endpoint")
    (tmp_path / "client" / "small.qlog").write_text("{}")
    (tmp_path / "client" / "link.qlog").symlink_to("../server/log.txt")
    return tmp_path


def names(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*") if not path.is_dir()}


def test_qlogs_are_compressed_and_nothing_else(run: Path) -> None:
    before = (run / "server/qlog/a.sqlog").read_bytes()
    compress_qlogs(run)
    assert names(run) == {
        "server/qlog/a.sqlog.gz",
        "flow-2/server/b.qlog.gz",
        "server/log.txt",
        "client/taken.qlog",
        "client/taken.qlog.gz",
        "client/small.qlog",
        "client/link.qlog",
    }
    packed = run / "server/qlog/a.sqlog.gz"
    assert gzip.decompress(packed.read_bytes()) == before
    assert packed.stat().st_size < len(before) / 5
    assert packed.read_bytes() == (run / "flow-2/server/b.qlog.gz").read_bytes()  # neither name nor time in it


def test_a_compressed_qlog_reads_as_before(run: Path) -> None:
    before = recovery(run / "server" / "qlog", 0.5)
    compress_qlogs(run)
    after = recovery(run / "server" / "qlog", 0.5)
    assert len(after.window) == 201
    assert np.array_equal(after.window.time, before.window.time)
    assert np.array_equal(after.window.value, before.window.value)
    assert after.notes == before.notes == ("a.sqlog: passed over: events without a usable value (1).",)


def test_the_website_hands_out_the_qlog_itself(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (run / "server/qlog/a.sqlog").read_bytes()
    compress_qlogs(run)
    found = dict(downloads(run))
    assert found["server-a.sqlog.json"] == before
    assert found["client-taken-qlog-gz.txt"] == b"by the endpoint"  # no gzip file in spite of its name
    monkeypatch.setattr("interop.site.files._LARGEST", len(before) - 1)
    assert "server-a.sqlog.json" not in dict(downloads(run))  # larger than any file of the website


def test_a_qlog_that_cannot_be_compressed_stays(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    before = names(run)
    monkeypatch.setattr("interop.results.compression.shutil.copyfileobj", full)
    compress_qlogs(run)
    assert names(run) == before
