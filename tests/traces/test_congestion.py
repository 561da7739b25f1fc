"""The congestion window comes out of each dialect of qlog that servers write, on the clock of the series."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quicsat.traces.congestion import MOST_NAMES, MOST_NOTES, recovery

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
    found = recovery(tmp_path, 0.3).window
    assert found.time.tolist() == pytest.approx([0.301, 0.402])
    assert found.value.tolist() == [12000, 24000]


NAMES = {
    "draft-01": ("recovery:metrics_updated", "recovery:congestion_state_updated", "recovery:packet_lost"),
    "draft-13": ("quic:recovery_metrics_updated", "quic:congestion_state_updated", "quic:packet_lost"),
    "between": ("quic:metrics_updated", "quic:recovery_congestion_state_updated", "quic:recovery_packet_lost"),
    "transport": ("transport:metrics_updated", "transport:congestion_state_updated", "transport:packet_lost"),
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_every_draft_says_the_same(tmp_path: Path, names: tuple[str, str, str]) -> None:
    metrics, state, lost = names
    events: list[dict[str, Any]] = [
        {"time": 0.0, "name": f"{lost.partition(':')[0]}:packet_received", "data": {}},
        {"time": 10.0, "name": metrics, "data": {"congestion_window": 12000, "ssthresh": 50000}},
        {"time": 20.0, "name": state, "data": {"old": "slow_start", "new": "recovery"}},
        {"time": 30.0, "name": lost, "data": {"header": {"packet_number": 3}}},
        {"time": 40.0, "name": metrics, "data": {"congestion_window": "6000", "ssthresh": 6000}},
    ]
    (tmp_path / "a.sqlog").write_text("\n".join(map(json.dumps, [{"trace": {}}, *events])))
    found = recovery(tmp_path, 0.0)
    assert (found.window.time.tolist(), found.window.value.tolist()) == (pytest.approx([0.01, 0.04]), [12000, 6000])
    assert found.threshold.value.tolist() == [50000, 6000]
    assert found.given_up.tolist() == pytest.approx([0.03])
    assert found.states == ((0.02, "recovery"),)
    assert found.notes == ()


@pytest.mark.parametrize("odd", ["9" * 400, "1e999", "NaN", "-1", "true", "{}", '"many"'])
def test_a_value_that_is_none_is_passed_over_and_counted(tmp_path: Path, odd: str) -> None:
    lines = [json.dumps({"trace": {}}), *map(json.dumps, EVENTS)]
    odd_event = f'{{"time": 5002, "name": "recovery:metrics_updated", "data": {{"cwnd": {odd}, "ssthresh": {odd}}}}}'
    (tmp_path / "a.sqlog").write_text("\n".join([*lines[:3], odd_event, *lines[3:]]))
    found = recovery(tmp_path, 0.0)
    assert found.window.value.tolist() == [12000, 24000]
    assert found.notes == (
        "a.sqlog: passed over of the events on congestion control: events without a usable value (2).",
    )


def test_a_qlog_that_cannot_be_read_costs_no_other_one(tmp_path: Path) -> None:
    """Each is named, but not each of hundreds."""
    (tmp_path / "z.qlog").write_text(json.dumps({"traces": [{"events": EVENTS}]}))
    bad = MOST_NOTES + MOST_NAMES
    for number in range(10, 10 + bad):
        (tmp_path / f"{number}.qlog").write_text('{"qlog_version": "9"}')
    found = recovery(tmp_path, 0.0)
    assert found.window.value.tolist() == [12000, 24000]
    assert len(found.notes) == MOST_NOTES + 1
    assert all(f"{number}.qlog" in " ".join(found.notes) for number in range(10, 10 + bad))
    (tmp_path / "x.qlog").write_text("{}")
    assert f"{MOST_NAMES + 1} more" in (last := recovery(tmp_path, 0.0).notes[-1])
    assert last.endswith("and 1 more.")


def test_no_qlog(tmp_path: Path) -> None:
    assert len(recovery(tmp_path, 0.0).window) == 0
    assert len(recovery(tmp_path / "none", 0.0).window) == 0


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


def traced(windows: Sequence[int], **members: Any) -> dict[str, Any]:
    """A trace whose window changes each 10 ms, the first time 10 ms after it begins."""
    name, data = "recovery:metrics_updated", [{}, *({"congestion_window": window} for window in windows)]
    events = [{"time": 10 * number, "name": name, "data": each} for number, each in enumerate(data)]
    return {**members, "events": events}


def place(name: str) -> dict[str, Any]:
    return {"vantage_point": {"type": name}}


def relative(reference: int) -> dict[str, Any]:
    return {"common_fields": {"time_format": "relative", "reference_time": reference}}


TRACES: dict[str, tuple[list[dict[str, Any]], list[float], list[int], list[str]]] = {
    "client and server": (
        [traced([99], **place("client")), traced([12, 13], **place("server"))],
        [0.01, 0.02], [12, 13], ["a.qlog holds 2 traces; only those of the server are read."],
    ),
    "two connections that are dated": (
        [traced([12, 13], **relative(1_600_000_000_000)), traced([20], **relative(1_600_000_000_500))],
        [0.01, 0.02, 0.51], [12, 13, 20], [],
    ),
    "two connections that are not": (
        [traced([12, 13]), traced([20])],
        [0.01, 0.01, 0.02], [12, 20, 13],
        ["a.qlog holds 2 traces; each is taken to begin with the client's first packet."],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", TRACES)
@pytest.mark.parametrize("form", ["json", "sequence"])
def test_several_traces_of_a_file_are_told_apart(tmp_path: Path, form: str, kind: str) -> None:
    traces, times, windows, notes = TRACES[kind]
    content = json.dumps({"traces": traces})
    if form == "sequence":
        heads = [{name: value for name, value in trace.items() if name != "events"} for trace in traces]
        records = [[{"trace": head}, *trace["events"]] for head, trace in zip(heads, traces, strict=True)]
        content = "\n".join(json.dumps(record) for part in records for record in part)
    (tmp_path / "a.qlog").write_text(content)
    found = recovery(tmp_path, 0.0)
    assert found.window.time.tolist() == pytest.approx(times)
    assert found.window.value.tolist() == windows
    assert list(found.notes) == notes


def test_a_qlog_that_is_compressed_otherwise_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.qlog").write_text(json.dumps({"traces": [traced([12])]}))
    (tmp_path / "b.sqlog.xz").write_bytes(b"\xfd7zXZ")
    found = recovery(tmp_path, 0.0)
    assert found.window.value.tolist() == [12]
    assert found.notes == ("b.sqlog.xz is not read: of compressed qlogs, only those of gzip and zstd are.",)


def test_links_and_special_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.qlog").write_text(json.dumps({"traces": [traced([12])]}))
    (tmp_path / "b.qlog").symlink_to("a.qlog")
    (tmp_path / "of").mkdir()
    os.mkfifo(tmp_path / "of/c.sqlog.gz")
    (tmp_path / "log.txt").symlink_to("a.qlog")
    found = recovery(tmp_path, 0.0)
    assert found.window.value.tolist() == [12]
    assert found.notes == (
        "b.qlog is not read: it is a symbolic link.", "of/c.sqlog is not read: it is no regular file."
    )  # fmt: skip


def test_qlogs_in_folders_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "server/of-today"
    folder.mkdir(parents=True)
    (folder / "a.qlog").write_text(json.dumps({"traces": [traced([12])]}))
    packed = pa.compress(json.dumps({"traces": [traced([13])]}).encode(), codec="zstd", asbytes=True)
    (folder / "b.qlog.zst").write_bytes(packed)
    (folder / "c.qlog.zst").write_bytes(packed[:-8])
    found = recovery(tmp_path, 0.0)
    assert sorted(found.window.value.tolist())[:2] == [12, 13]
    assert all(note.startswith("server/of-today/c.qlog.zst") for note in found.notes)
    assert len(found.notes) == 1
