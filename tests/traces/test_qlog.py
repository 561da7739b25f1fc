"""Dialects of qlog, damaged qlogs, and what is none."""

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quicsat.traces import qlog

WINDOW = {"congestion_window": 12000}


def written(path: Path, content: bytes | str | dict[str, Any]) -> Path:
    text = json.dumps(content) if isinstance(content, dict) else content
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


SEQUENCE = (
    '{"qlog_format": "JSON-SEQ", "trace": {}}',
    '{"time": 250, "name": "recovery:metrics_updated", "data": {"congestion_window": 12000}}',
)
CONTAINED = {"traces": [{"events": [{"time": 250, "name": "recovery:metrics_updated", "data": WINDOW}]}]}


def zstd(content: bytes) -> bytes:
    return bytes(pa.compress(content, codec="zstd", asbytes=True))


@pytest.mark.parametrize(
    "content",
    [
        CONTAINED,
        {
            "traces": [
                {
                    "configuration": {"time_units": "us"},
                    "event_fields": ["relative_time", "category", "event", "data"],
                    "events": [[250000, "recovery", "metrics_updated", WINDOW]],
                }
            ]
        },
        {
            "traces": [
                {
                    "configuration": {"time_units": "us"},
                    "event_fields": ["relative_time", "CATEGORY", "EVENT_TYPE", "DATA"],
                    "events": [["250000", "RECOVERY", "METRIC_UPDATE", WINDOW]],
                }
            ]
        },
        "".join(f"\x1e{record}\n" for record in SEQUENCE),
        "\n".join(SEQUENCE),
        "\n".join(SEQUENCE).replace("recovery:", "quic:"),
        "\n".join(SEQUENCE).replace("recovery:", "quic:recovery_"),
        "\n".join(SEQUENCE).replace("recovery:", "transport:"),
        "\n".join(SEQUENCE[1:]),
        "\n".join(SEQUENCE).replace("recovery:", ""),
        "\n".join(SEQUENCE).replace('"name": "recovery:', '"category": "recovery", "type": "'),
        "\r\n".join(SEQUENCE) + "\r\n",
        "\n".join(SEQUENCE).encode("utf-8-sig"),
        json.dumps(CONTAINED).encode("utf-8-sig"),
        json.dumps(CONTAINED, indent=1).replace("\n", "\r\n"),
        "".join(f"\x1e{record}\r\n" for record in SEQUENCE),
        "".join(f"\x1e{record}" for record in SEQUENCE),
        gzip.compress("\n".join(SEQUENCE).encode()),
        gzip.compress(SEQUENCE[0].encode()) + gzip.compress(f"\n{SEQUENCE[1]}".encode()),
        zstd("\n".join(SEQUENCE).encode()),
    ],
    ids=[
        "json", "event-fields", "draft-00", "sequence", "lines", "quic", "quic-recovery", "transport", "no-header",
        "no-namespace", "category-type", "crlf", "lines-bom", "json-bom", "json-crlf", "sequence-crlf", "sequence-only",
        "gzip", "gzip-members", "zstd",
    ],
)  # fmt: skip
def test_dialects(tmp_path: Path, content: bytes | str | dict[str, Any]) -> None:
    found = qlog.read(written(tmp_path / "a.qlog", content))
    assert (found.events, found.passed_over) == ((qlog.QlogEvent(0.25, "metrics_updated", WINDOW),), {})


TIMES = [
    ({"time_format": "absolute"}, "time", [1500, 1510, 1560]),
    ({"time_format": "relative", "reference_time": 1500}, "time", [0, 10, 60]),
    ({"time_format": "delta", "reference_time": 1500}, "time", [0, 10, 50]),
    ({"time_format": "delta"}, "time", [1500, 10, 50]),
    ({"time_format": "relative_to_epoch", "reference_time": {"epoch": "unknown"}}, "time", [0, 10, 60]),
    ({"time_format": "relative_to_previous_event", "reference_time": {"epoch": "x"}}, "time", [1500, 10, 50]),
    ({"reference_time": 1500}, "relative_time", [0, 10, 60]),
    ({}, "delta_time", [1500, 10, 50]),
    ({}, "time", [1500, 1510, 1560]),
]


@pytest.mark.parametrize("form", ["json", "sequence", "cut"])
@pytest.mark.parametrize(("common", "key", "times"), TIMES)
def test_time_formats(tmp_path: Path, form: str, common: dict[str, Any], key: str, times: list[float]) -> None:
    """Of every draft: the events are 10 and 50 ms apart, also if events of no interest are left out."""
    names = "quic:packet_sent", "quic:packet_sent", "quic:recovery_metrics_updated"
    events = [{key: time, "name": name, "data": {}} for time, name in zip(times, names, strict=True)]
    trace = {"common_fields": common, "events": events}
    content = json.dumps({"qlog_version": "0.4", "traces": [trace]})
    if form == "sequence":
        content = "\n".join(map(json.dumps, [{"trace": {"common_fields": common}}, *events]))
    found = qlog.read(written(tmp_path / "a.qlog", content[:-3] if form == "cut" else content), "metrics_updated")
    assert found.events[-1].time - found.events[0].time == pytest.approx(0.06)
    assert found.passed_over == ({qlog.CUT: 1} if form == "cut" else {})


@pytest.mark.parametrize(
    ("trace", "named"),
    [
        ({"common_fields": {"time_format": "since_boot"}}, 'time format "since_boot"'),
        ({"common_fields": {"time_format": 7}}, 'time format "7"'),
        ({"configuration": {"time_units": "ns"}}, 'time unit "ns"'),
        ({"configuration": {"time_units": ["ms"]}}, "time unit"),
        ({"common_fields": {"time_units": "s"}}, 'time unit "s"'),
    ],
)
@pytest.mark.parametrize("form", ["json", "sequence"])
def test_times_that_are_not_understood_are_not_assumed(
    tmp_path: Path, form: str, trace: dict[str, Any], named: str
) -> None:
    events = [{"time": time, "name": "quic:packet_sent"} for time in (1, 2)]
    content = json.dumps({"traces": [{**trace, "events": events}]})
    if form == "sequence":
        content = "\n".join(map(json.dumps, [{"trace": trace}, *events]))
    with pytest.raises(ValueError, match="events of the unknown time") as error:
        qlog.read(written(tmp_path / "a.qlog", content))
    assert named in str(error.value)
    good = {"traces": [{**trace, "events": events}, {"events": events}]}
    found = qlog.read(written(tmp_path / "b.qlog", good))
    assert len(found.events) == 2
    assert [(named in reason, count) for reason, count in found.passed_over.items()] == [(True, 2)]


def test_a_time_format_of_an_event_alone(tmp_path: Path) -> None:
    common = {"time_format": "relative", "reference_time": 1500}
    events = [
        {"time": 10, "name": "quic:packet_sent"},
        {"time": 1530, "time_format": "absolute", "name": "quic:packet_sent"},
        {"time": 5, "time_format": "relative_to_previous_event", "name": "quic:packet_sent"},
    ]
    found = qlog.read(written(tmp_path / "a.qlog", {"traces": [{"common_fields": common, "events": events}]}))
    assert [event.time for event in found.events] == pytest.approx([0.01, 0.03, 0.035])


DEEP = "[" * 100_000 + "]" * 100_000
ODD = [
    ("9" * 400, qlog.NO_TIME),
    ("9" * 5000, qlog.NO_JSON),
    ("1e999", qlog.NO_TIME),
    ("NaN", qlog.NO_TIME),
    ("-5", qlog.NO_TIME),
    ("true", qlog.NO_TIME),
    ("null", qlog.NO_TIME),
    ('"soon"', qlog.NO_TIME),
    ("1e15", qlog.NO_TIME),
    (DEEP, qlog.NO_JSON),
    ('1, "name": 3', qlog.NO_EVENT),
    ('1, "data": 7', qlog.NO_DATA),
    ("1 1", qlog.NO_JSON),
]


@pytest.mark.parametrize("form", ["json", "sequence"])
@pytest.mark.parametrize(("odd", "reason"), ODD, ids=[f"{odd[:8]}-{len(odd)}" for odd, _ in ODD])
def test_an_odd_event_is_passed_over_and_counted(tmp_path: Path, form: str, odd: str, reason: str) -> None:
    """It costs neither the events before it nor those behind it."""
    names = "quic:packet_sent", "quic:packet_lost", "quic:packet_received"
    events = [f'{{"name": "{name}", "time": {time}}}' for name, time in zip(names, (1, odd, 3), strict=True)]
    content = f'{{"traces": [{{"events": [{",".join(events)}]}}]}}'
    if form == "sequence":
        content = "\n".join(['{"trace": {}}', *events])
    found = qlog.read(written(tmp_path / "a.qlog", content), "packet_lost", "packet_received")
    kept = [event.name for event in found.events]
    assert kept == ["packet_sent", *(["packet_lost"] if reason == qlog.NO_DATA else []), "packet_received"]
    assert found.passed_over == {reason: 1}


def test_times_that_count_from_an_event_that_cannot_be_read_are_not_guessed(tmp_path: Path) -> None:
    common = {"time_format": "relative_to_previous_event"}
    times: list[Any] = [0, 10, "soon", 10, 10]
    events = [{"name": "quic:packet_sent", "time": time} for time in times]
    found = qlog.read(written(tmp_path / "a.qlog", {"traces": [{"common_fields": common, "events": events}]}))
    assert [event.time for event in found.events] == pytest.approx([0, 0.01])
    assert found.passed_over == {qlog.NO_TIME: 1, qlog.AFTER_GAP: 2}


def test_all_events_before_the_cut(tmp_path: Path) -> None:
    """Wherever a file ends, each event that is whole is read; a cut gzip file, too."""
    events = [
        {"time": time, "name": "quic:packet_lost", "data": {"header": {"packet_number": time}}} for time in (1, 2)
    ]
    trace = {"common_fields": {"ODCID": "aa"}, "events": events}
    document = json.dumps({"qlog_version": "0.3", "title": 'a "b', "traces": [trace]})
    ends = [document.index(json.dumps(event)) + len(json.dumps(event)) for event in events]
    for length in range(ends[0], len(document)):
        found = qlog.read(written(tmp_path / "a.qlog", document[:length]))
        assert [event.time for event in found.events] == [0.001, 0.002][: 1 + (length >= ends[1])]
        assert found.passed_over[qlog.CUT] == 1
    lines = "\n".join(['{"trace": {}}', *(json.dumps(event) for event in events * 200)]).encode()
    whole = gzip.compress(lines)
    found = qlog.read(written(tmp_path / "a.qlog.gz", whole[: len(whole) // 2]))
    assert 0 < len(found.events) < 400
    assert found.passed_over == {qlog.CUT: 1}
    many = "\n".join(['{"trace": {}}', *(json.dumps(event) for event in events * 40_000)]).encode()
    whole = zstd(many)
    found = qlog.read(written(tmp_path / "a.qlog.zst", whole[: len(whole) // 2]))
    assert 0 < len(found.events) < 80_000
    assert found.passed_over == {qlog.CUT: 1}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "is empty"),
        (b"\x1f\x8bnot gzip", "is a damaged gzip or zstd file"),
        (b"\x28\xb5\x2f\xfdnot zstd", "is a damaged gzip or zstd file"),
        (b"\xff\xfe", "is no qlog: it does not begin as JSON"),
        (b"\x89PNG\r\n\x1a\n", "is no qlog: it does not begin as JSON"),
        ("some text\n{}\n", "is no qlog: it does not begin as JSON"),
        ("[" * 100_000, "is no qlog that can be read: records that are cut"),
        (f"{DEEP}\n{DEEP}\n", "is no qlog that can be read: records that are no JSON, records that are cut"),
        (f'\x1e{{"file_schema": "known"}}\n\x1e{DEEP}\n', "is no qlog that can be read: records that are cut"),
        ('\x1e{"time": 1, "name": "link:packet_dropped"}\n', "is the qlog of a link"),
        *(
            (content, r"is a qlog of an unknown schema \([^()]+\) or no qlog: no event of QUIC")
            for content in (
                "{}",
                {"traces": 3},
                {"traces": [{"events": "x"}]},
                {"traces": [{"events": [{"name": "loglevel:warning", "time": 1}]}]},
                SEQUENCE[0],
            )
        ),
        ("[]", "records that are no events"),
        ({"traces": [3, {"events": [3, [1], {"name": 5, "data": 3}]}]}, "records that are no events"),
        ({"traces": [{"event_fields": 3, "events": [[1, 2]], "configuration": 4}]}, "records that are no events"),
        ("\x1e[1]\n\x1e[2]\n", "records that are no events"),
    ],
)
def test_what_holds_no_event_of_quic(tmp_path: Path, content: bytes | str | dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=rf"a\.qlog {reason}|a\.qlog is no qlog that can be read: {reason}"):
        qlog.read(written(tmp_path / "a.qlog", content))


def test_an_unknown_schema_is_named(tmp_path: Path) -> None:
    event = {"time": 1, "name": "future\x1b[31m:metrics_updated", "data": WINDOW}
    content = {"file_schema": "urn:ietf:params:qlog:file:contained-9", "traces": [{"events": [event]}]}
    with pytest.raises(ValueError, match=r'file:contained-9", events of "future\\x1b\[31m"'):
        qlog.read(written(tmp_path / "a.qlog", content))


@pytest.mark.parametrize("form", ["lines", "json", "gzip"])
def test_events_beyond_the_limits_are_not_read_and_counted(tmp_path: Path, form: str) -> None:
    """Those before are read; bytes and records count for all files of a run together."""
    events = [{"time": time, "name": "quic:packet_lost", "data": {}} for time in range(100)]
    text = "\n".join(map(json.dumps, [{"trace": {}}, *events]))
    content = json.dumps({"traces": [{"events": events}]}) if form == "json" else text
    path = written(tmp_path / "a.qlog", gzip.compress(text.encode()) if form == "gzip" else content)
    found = qlog.read(path, room=qlog.Room(size=len(content) // 2))
    assert 40 <= len(found.events) <= 50
    assert found.passed_over[qlog.TOO_LARGE] == 1
    room = qlog.Room(records=150)
    assert len(qlog.read(path, room=room).events) == 100
    found = qlog.read(path, room=room)
    assert (len(found.events), found.passed_over) == (50, {qlog.TOO_LARGE: 1})


@pytest.mark.parametrize("form", ["lines", "json"])
def test_a_record_that_is_too_long_is_passed_over(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qlog, "LONGEST_RECORD", 300)
    long = {"time": 1, "name": "quic:packet_lost", "data": {"x": [[]] * 200}}
    events = [{"time": n, "name": "quic:packet_sent", "data": {}} for n in range(9)]
    events[4:4] = [long]
    text = "\n".join(map(json.dumps, [{"trace": {}}, *events]))
    content = json.dumps({"traces": [{"events": events}]}) if form == "json" else text
    found = qlog.read(written(tmp_path / "a.qlog", content))
    assert [event.time for event in found.events] == pytest.approx([n / 1000 for n in range(9)])
    assert found.passed_over == {qlog.NO_JSON: 1}


@pytest.mark.parametrize("chunk", [1, 70, 90, 200, 1000, 10_000])
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("fields", [False, True])
def test_elements_of_a_document_are_told_apart(
    tmp_path: Path, chunk: int, indent: int | None, fields: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with brackets in texts and in arrays, a number that only Python reads, and one that is no JSON."""
    monkeypatch.setattr(qlog, "CHUNK", chunk)
    odd = ["},", '"},{', "],[", "\\", {"a": [{"b": [1, 2]}, {"c": {}}]}, [], {}, "ü", "\n", float("nan")]
    events = [
        {"time": n, "name": "quic:metrics_updated", "data": {"congestion_window": n, "x": [odd[n % len(odd)]] * 2}}
        for n in range(60)
    ]
    rows = [list(event.values()) for event in events] if fields else events
    trace = {"event_fields": ["time", "name", "data"]} if fields else {}
    text = json.dumps({"traces": [{**trace, "events": rows}]}, indent=indent).replace(": 30,", ": 30 30,")
    found = qlog.read(written(tmp_path / "a.qlog", text), "congestion_window", members=["congestion_window"])
    expected = [n for n in range(60) if n != 30]
    assert [event.data["congestion_window"] for event in found.events] == expected
    assert found.passed_over == {qlog.NO_JSON: 1}


def test_members_behind_the_events_of_a_document_count(tmp_path: Path) -> None:
    trace = {"events": [{"time": 250_000, "name": "quic:packet_lost"}], "configuration": {"time_units": "us"}}
    found = qlog.read(written(tmp_path / "a.qlog", {"traces": [trace, trace]}))
    assert [event.time for event in found.events] == [0.25, 0.25]


def test_what_is_kept_of_an_event_does_not_grow_with_its_data(tmp_path: Path) -> None:
    """Of 8 MB of data with empty arrays, which take 20 times as much memory, only the named members are kept."""
    data: dict[str, Any] = {"x": [[]] * 100_000}
    lines = [
        json.dumps({"time": n, "name": "quic:metrics_updated", "data": {"congestion_window": n, **data}})
        for n in range(20)
    ]
    path = written(tmp_path / "a.sqlog", "\n".join(lines))
    tracemalloc.start()
    found = qlog.read(path, "congestion_window", members=["congestion_window"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [event.data for event in found.events] == [{"congestion_window": n} for n in range(20)]
    assert peak < 4 * path.stat().st_size
