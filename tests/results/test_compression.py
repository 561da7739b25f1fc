"""Qlogs and large logs of an analysed run are compressed, and read as before."""

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quicsat.analysis.endpoint_log_tail import quote
from quicsat.analysis.upstream_outcome import _output as upstream_output
from quicsat.model.evidence import Exit
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.results.compression import compress, plain_name
from quicsat.results.prune import _files
from quicsat.results.qir_logs import find_runs
from quicsat.site.files import downloads
from quicsat.site.logs import logs
from quicsat.traces.congestion import recovery
from tests.analysis.test_run_outcome import CASE, DONE


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
    compress(run)
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
    compress(run)
    after = recovery(run / "server" / "qlog", 0.5)
    assert len(after.window) == 201
    assert np.array_equal(after.window.time, before.window.time)
    assert np.array_equal(after.window.value, before.window.value)
    assert (
        after.notes
        == before.notes
        == ("a.sqlog: passed over of the events on congestion control: events without a usable value (1).",)
    )


def test_the_website_hands_out_the_qlog_itself(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (run / "server/qlog/a.sqlog").read_bytes()
    compress(run)
    found = dict(downloads(run))
    assert found["server-a.sqlog.json"] == before
    assert found["client-taken-qlog-gz.txt"] == b"by the endpoint"  # no gzip file in spite of its name
    monkeypatch.setattr("quicsat.results.compression.LARGEST", len(before) - 1)
    assert "server-a.sqlog.json" not in dict(downloads(run))  # larger than any file of the website


def test_a_qlog_that_cannot_be_compressed_stays(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    before = names(run)
    monkeypatch.setattr("quicsat.results.compression.shutil.copyfileobj", full)
    compress(run)
    assert names(run) == before


LINES = "".join(f"client | 2026-01-01T00:00:{number % 60:02} line {number}\n" for number in range(2500))
PANIC = "client | 2026-01-01T00:01:00 panic: no route\nclient | 2026-01-01T00:01:00 goroutine 1\n"


@pytest.fixture
def loud(tmp_path: Path) -> Path:
    """A run whose endpoints wrote much."""
    run = tmp_path / "a_b" / "sat" / "1"
    for folder in ("client", "server/deep", "sim"):
        (run / folder).mkdir(parents=True)
    (run / "output.txt").write_text(LINES + PANIC)
    for name in ("client/log.txt", "server/deep/app.log", "client/keys.log", "client/data", "sim/log.txt"):
        (run / name).write_text(LINES)
    (run / "server/small.log").write_text("short\n")
    return run


def test_large_logs_of_endpoints_are_compressed(loud: Path) -> None:
    compress(loud)
    assert names(loud) == {
        "output.txt.gz", "client/log.txt.gz", "server/deep/app.log.gz", "server/small.log",
        "client/keys.log", "client/data", "sim/log.txt",
    }  # fmt: skip
    assert (loud / "output.txt.gz").stat().st_size < len(LINES) / 5


def read_by_all(run: Path) -> list[object]:
    """What each reader of logs finds."""
    quoted = quote(Verdict(Outcome.FAILED, ErrorCode.CLIENT_FAILED), replace(DONE, client=Exit(1)), CASE, run)
    stages = {plain_name(path).name: stage for path, _, stage in _files(run.parents[2])}
    [foreign] = find_runs(run).runs
    return [quoted, logs(run, 1000), dict(downloads(run)), stages, foreign.missing, upstream_output(run)]


def test_all_readers_find_the_same_in_both_forms(loud: Path) -> None:
    before = read_by_all(loud)
    assert before[0] == ' The client says: "panic: no route".'
    compress(loud)
    assert read_by_all(loud) == before


def test_a_damaged_log_costs_itself_alone(loud: Path) -> None:
    compress(loud)
    packed = loud / "output.txt.gz"
    packed.write_bytes(packed.read_bytes()[:-20])
    found = {log.name: log.unread for log in logs(loud, 1000)}
    assert found == {"output.txt": True, "client/log.txt": False, "server/small.log": False}
    assert quote(Verdict(Outcome.FAILED, ErrorCode.CLIENT_FAILED), replace(DONE, client=Exit(1)), CASE, loud) == ""
    assert "client-log.txt" in dict(downloads(loud))
