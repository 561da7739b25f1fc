"""A run that is read from its exported qlogs has the numbers of its traces."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from quicsat.analysis.foreign_runs import QLOG, Findings, examine
from quicsat.analysis.link_qlog import LinkRun
from quicsat.analysis.qlog_export import write_qlogs
from quicsat.analysis.series_metrics import series_metrics
from quicsat.analysis.time_shares import link_conditions, time_shares
from quicsat.model.emulated_link import Direction, DirectionReport, EmulatedLink, Interval, SimulatorReport
from quicsat.model.implementation import Protocol, Role
from quicsat.model.time_shares import TimeShare
from quicsat.model.whole_file import scratch_directory
from quicsat.results.qir_logs import QLOGS, find_runs
from quicsat.traces.quic_series import QuicTracePair
from quicsat.traces.run_traces import RunTraces, check_traces, read_run
from quicsat.traces.series import load
from tests.simulated import Link, transfer

SIZE = 2_000_000
OUTAGE = (2.0, 3.0)
LINK = EmulatedLink("asymmetric-p2p", Direction(0.3, 20e6, 100), Direction(0.3, 20e6, 100))


@cache
def files() -> dict[str, bytes]:
    """The traces and keys of a transfer with losses and an outage."""
    with scratch_directory() as place:
        simulated = transfer([SIZE], Link(loss=0.01, outage=OUTAGE), max_data=10_000_000, max_stream_data=10_000_000)
        simulated.write(place)
        return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.fixture
def traces(tmp_path: Path) -> RunTraces:
    for name, content in files().items():
        (tmp_path / "run" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / name).write_bytes(content)
    return read_run(tmp_path / "run", Protocol.HQ, LINK, check_traces(tmp_path / "run", Protocol.HQ))


@pytest.fixture
def run(traces: RunTraces) -> LinkRun:
    pair = traces.trace_pair
    lost = int(pair.forward.lost.sum())
    forward = DirectionReport(len(pair.forward.sent), len(pair.forward.sent) - lost, 0, lost)
    dark = Interval(traces.start + OUTAGE[0], traces.start + OUTAGE[1])
    report = SimulatorReport(traces.start, True, 0.0, 0.0, 0, forward, DirectionReport(9, 9, 0, 0), (dark,))
    return LinkRun(LINK, report, 1, traces.start)


def staged(place: Path, files: list[Path]) -> Path:
    for number, file in enumerate(files):
        (place / QLOGS / str(number)).mkdir(parents=True)
        file.rename(place / QLOGS / str(number) / file.name)
    return place


def findings(place: Path, size: int | None = None) -> Findings:
    [found] = find_runs(place).runs
    return examine(found, size)


@pytest.mark.parametrize("older", [False, True])
def test_the_numbers_are_those_of_the_traces(traces: RunTraces, run: LinkRun, older: bool, tmp_path: Path) -> None:
    """Counts are equal, the shares of the time are to 1 µs, in whatever order the files are named."""
    found = findings(staged(tmp_path / "a_b/c/1", write_qlogs(tmp_path, "a", traces, run, older=older)[::-1]))
    pair, series = traces.trace_pair, traces.series()
    assert isinstance(pair, QuicTracePair)
    assert (found.outcome, found.size, found.size_from, found.clock) == ("streams complete", SIZE, "streams", QLOG)
    assert (found.rate, found.complete) == (20e6, True)
    assert any("does not state the congestion window" in note for note in found.notes)
    conditions = link_conditions(LINK, run.report, 1, traces.start, 100.0)
    shares = time_shares(pair, series, conditions)
    assert shares.seconds[TimeShare.OUTAGE] > 0.5
    assert shares.seconds[TimeShare.RECOVERY] > 0.5
    assert {share: found.values[share.metric] for share in TimeShare} == pytest.approx(shares.seconds, abs=1e-6)
    expected = series_metrics(series, 20e6)
    assert {name: found.values[name] for name in expected} == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert found.loss_forward == pair.forward.loss
    assert found.loss_return == pair.back.loss
    counts = found.counts
    for trace, end in ((pair.client, Role.CLIENT), (pair.server, Role.SERVER)):
        frames = len(trace.frames) + len(trace.acks) + len(trace.crypto) + len(trace.signals)
        assert counts[f"frames at the {end}, without padding"] == frames
        sent = int((trace.from_server == (end is Role.SERVER)).sum())
        assert counts[f"QUIC packets that the {end} sent"] == sent
        assert counts[f"QUIC packets that the {end} received"] == len(trace) - sent
    dropped = sum(
        count for name, count in counts.items() if name.startswith("datagrams that the link dropped, forward")
    )
    assert dropped == pair.forward.lost.sum() == counts["datagrams that were lost, forward"]


@pytest.mark.parametrize(("older", "name"), [(False, "server.sqlog"), (True, "server.qlog"), (False, "QLOG.JSON")])
def test_the_servers_window_is_that_of_the_run(
    traces: RunTraces, run: LinkRun, older: bool, name: str, tmp_path: Path
) -> None:
    (tmp_path / "run/server/qlog").mkdir(parents=True)
    events = [{"time": 1000.0 + 50 * number, "name": "recovery:metrics_updated",
               "data": {"congestion_window": 20_000 + number % 7}} for number in range(60)]  # fmt: skip
    header = {"qlog_version": "0.3", "qlog_format": "JSON-SEQ", "trace": {"vantage_point": {"type": "server"}}}
    records = (f"\x1e{json.dumps(record)}\n" for record in (header, *events))
    (tmp_path / "run/server/qlog/own.sqlog").write_text("".join(records))
    knowing = read_run(tmp_path / "run", Protocol.HQ, LINK, check_traces(tmp_path / "run", Protocol.HQ))
    expected = knowing.series().cwnd
    assert len(expected) == 60
    files = write_qlogs(tmp_path, "a", knowing, run, older=older)
    files[1] = files[1].rename(tmp_path / name)
    [found] = find_runs(staged(tmp_path / "a_b/c/1", files)).runs
    assert not any("congestion window" in note for note in examine(found, None, tmp_path / "series").notes)
    read = load(tmp_path / "series").cwnd
    assert read.value.tolist() == expected.value.tolist()
    assert read.time == pytest.approx(expected.time, abs=1e-6)


def test_without_the_link_there_are_no_shares(traces: RunTraces, run: LinkRun, tmp_path: Path) -> None:
    found = findings(staged(tmp_path / "a_b/c/1", write_qlogs(tmp_path, "a", traces, run)[:2]))
    assert found.goodput == pytest.approx(findings_of_traces(tmp_path).goodput, rel=1e-6)
    assert (found.rate, found.efficiency) == (None, None)
    assert not [share for share in TimeShare if share.metric in found.values]
    assert any("Without a qlog of the link" in note for note in found.notes)


def findings_of_traces(tmp_path: Path) -> Findings:
    (tmp_path / "x_y/z").mkdir(parents=True)
    (tmp_path / "run").rename(tmp_path / "x_y/z/1")
    return findings(tmp_path / "x_y")


def test_one_end_alone(traces: RunTraces, run: LinkRun, tmp_path: Path) -> None:
    client, server, _ = write_qlogs(tmp_path, "a", traces, run)
    found = findings(staged(tmp_path / "a_b/c/1", [client]))
    assert found.goodput is not None
    assert (found.loss_forward, found.loss_return) == (None, None)
    of_server = findings(staged(tmp_path / "a_b/d/1", [server]).parent)
    assert of_server.goodput is None
    assert any("need what the client saw" in note for note in of_server.notes)


def test_clocks_of_their_own_are_estimated(traces: RunTraces, run: LinkRun, tmp_path: Path) -> None:
    """Other titles: an endpoint wrote the server's qlog, whose clock is an hour ahead."""
    client, server, link = write_qlogs(tmp_path, "a", traces, run)
    head, *events = server.read_bytes().split(b"\n")
    header = json.loads(head[1:])
    header["trace"] |= {"title": "own", "common_fields": {"reference_time": {"epoch": "2030-01-01T00:00:00Z"}}}
    server.write_bytes(b"\n".join([b"\x1e" + json.dumps(header).encode(), *events]))
    found = findings(staged(tmp_path / "a_b/c/1", [client, server, link]))
    pair = traces.trace_pair
    assert found.loss_forward == pair.forward.loss
    assert found.values["rtt_min"] == pytest.approx(series_metrics(traces.series(), 20e6)["rtt_min"])
    assert found.values["clock_uncertainty"] > 0


def test_names_of_connections_of_their_own_do_not_matter(traces: RunTraces, run: LinkRun, tmp_path: Path) -> None:
    files = write_qlogs(tmp_path, "a", traces, run)
    text = files[1].read_text()
    [group] = {json.loads(record).get("group_id") for record in text.split("\x1e")[2:3]}
    files[1].write_text(text.replace(f'"group_id":"{group}"', '"group_id":"mine"'))
    assert findings(staged(tmp_path / "a_b/c/1", files)).loss_forward == traces.trace_pair.forward.loss


def test_several_connections_have_no_goodput(traces: RunTraces, run: LinkRun, tmp_path: Path) -> None:
    """Also if the qlog names no connection IDs, as those of some endpoints."""
    client, *_ = write_qlogs(tmp_path, "a", traces, run)
    head, *events = (json.loads(record) for record in client.read_text().split("\x1e")[1:])
    for event in events:
        for name in ("dcid", "scid"):
            event["data"].get("header", {}).pop(name, None)
    more = [event | {"group_id": "other", "time": event["time"] + 70_000} for event in events]
    client.write_text("".join(f"\x1e{json.dumps(record)}\n" for record in (head, *events)))
    assert findings(staged(tmp_path / "a_b/c/1", [client])).goodput is not None
    client.write_text("".join(f"\x1e{json.dumps(record)}\n" for record in (head, *events, *more)))
    found = findings(staged(tmp_path / "a_b/d/1", [client]).parent)
    assert found.goodput is None
    assert any("2 handshakes" in note for note in found.notes)


def test_packets_that_the_sender_did_not_log_are_not_lost(traces: RunTraces, run: LinkRun, tmp_path: Path) -> None:
    files = write_qlogs(tmp_path, "a", traces, run)
    records = files[1].read_text().split("\x1e")[1:]
    silent = [record for record in records if '"quic:packet_sent"' in record][10:15]
    files[1].write_text("".join(f"\x1e{record}" for record in records if record not in silent))
    found = findings(staged(tmp_path / "a_b/c/1", files))
    assert found.counts["datagrams that were lost, forward"] == int(traces.trace_pair.forward.lost.sum())
    assert "5 packets that arrived forward are not in the server's qlog." in found.notes


@pytest.mark.parametrize("named", [True, False])
def test_drops_of_the_link_decide_what_is_lost(named: bool, traces: RunTraces, run: LinkRun, tmp_path: Path) -> None:
    """Packets that arrived and that the client did not log are not lost, if the link tells what it dropped."""
    files = write_qlogs(tmp_path, "a", traces, run)
    records = files[0].read_text().split("\x1e")[1:]
    silent = [record for record in records if "packet_received" in record][40:50]
    files[0].write_text("".join(f"\x1e{record}" for record in records if record not in silent))
    if not named:
        files[2].write_text(files[2].read_text().replace('"packet_number"', '"x"'))
    found = findings(staged(tmp_path / "a_b/c/1", files))
    lost = int(traces.trace_pair.forward.lost.sum())
    assert found.counts["datagrams that were lost, forward"] == lost + (0 if named else len(silent))


def test_sizes_that_ends_log_differently_are_noted(traces: RunTraces, run: LinkRun, tmp_path: Path) -> None:
    """The note names the end whose datagrams differ in size, here by the authentication tag."""
    files = write_qlogs(tmp_path, "a", traces, run)
    records = [json.loads(record) for record in files[0].read_text().split("\x1e")[1:]]
    for record in records:
        if record.get("name") == "quic:packet_sent":
            record["data"]["raw"]["length"] -= 16
    kept = [record for record in records if "udp_datagrams" not in record.get("name", "")]
    files[0].write_text("".join(f"\x1e{json.dumps(record)}\n" for record in kept))
    notes = [note for note in findings(staged(tmp_path / "a_b/c/1", files)).notes if note.startswith("Most datagrams")]
    assert len(notes) == 1
    assert "of the client have 16 B more" in notes[0]


def without_parameters(content: bytes) -> bytes:
    return b"\x1e".join(record for record in content.split(b"\x1e") if b"parameters_set" not in record)


def test_shares_need_the_clients_transport_parameters(traces: RunTraces, run: LinkRun, tmp_path: Path) -> None:
    """From either qlog: the limits of flow control begin with them, and must not be taken for 0."""
    expected = time_shares(
        traces.trace_pair, traces.series(), link_conditions(run.link, run.report, 1, traces.start, 99)
    )
    assert expected is not None
    files = write_qlogs(tmp_path, "a", traces, run)
    changed(files[1], without_parameters)
    found = findings(staged(tmp_path / "a_b/c/1", files))
    taken = {share: found.values[share.metric] for share in TimeShare}
    assert taken == pytest.approx(expected.seconds, abs=1e-6)
    files = write_qlogs(tmp_path, "a", traces, run)
    changed(files[0], without_parameters)
    changed(files[1], without_parameters)
    found = findings(staged(tmp_path / "a_b/d/1", files).parent)
    assert not [share for share in TimeShare if share.metric in found.values]
    assert any("transport parameters" in note for note in found.notes)


# ---- hostile --------------------------------------------------------------------------------


def changed(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (lambda content: content[:200_000], "records that are cut"),
        (lambda content: gzip.compress(content)[:-2000], "records that are cut"),
        (lambda content: content.replace(b'"length":', b'"length":1e400,"x":'), "packets without their size"),
        (lambda content: content.replace(b'"offset":', b'"offset":NaN,"x":'), "frames with impossible values"),
        (lambda content: content.replace(b'"packet_type":"1RTT"', b'"packet_type":7'), "packets of an unknown type"),
        (lambda content: content.replace(b'{"time":1', b'{"time":-1'), "without a usable time"),
        (lambda content: content.replace(b'"name":"quic:alpn_information"', b'"name":'), "records that are no JSON: 1"),
        (lambda content: b"", "is empty"),
        (lambda content: content.replace(b'"type":"client"', b'"type":"server"'), "a second qlog of the server"),
    ],
    ids=["cut", "cut-gzip", "size", "offset", "type", "time", "other-event", "empty", "two-of-one-end"],
)  # fmt: skip
def test_a_damaged_qlog_is_named(
    change: Callable[[bytes], bytes], note: str, traces: RunTraces, run: LinkRun, tmp_path: Path
) -> None:
    files = write_qlogs(tmp_path, "a", traces, run)
    changed(files[0], change)
    found = findings(staged(tmp_path / "a_b/c/1", files))
    assert any(note in each for each in found.notes), found.notes


@pytest.mark.parametrize("value", ["NaN", "1e400", "-5", '"x"', "[]", "{}", '"\\u001b[2J"'])
def test_a_hostile_link(value: str, traces: RunTraces, run: LinkRun, tmp_path: Path) -> None:
    files = write_qlogs(tmp_path, "a", traces, run)
    content = files[2].read_bytes()
    for name in (b"rate", b"trigger", b"new", b"place", b"direction"):
        content = content.replace(b'"%b":' % name, b'"%b":%b,"x":' % (name, value.encode()))
    files[2].write_bytes(content)
    found = findings(staged(tmp_path / "a_b/c/1", files))
    assert found.goodput is not None
    assert found.rate is None
    assert all("\x1b" not in name for name in found.counts)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b'"direction":"forward"', b'"direction":7'),
        lambda content: content.replace(b'"new":"outage"', b'"new":[]'),
        lambda content: content.replace(b'"rate":', b'"rate":-'),
        lambda content: content.replace(b'{"time":1', b'{"time":-1'),
    ],
    ids=["cut", "direction", "outage", "rate", "time"],
)
def test_a_damaged_qlog_of_the_link_is_named_and_not_used(
    change: Callable[[bytes], bytes], traces: RunTraces, run: LinkRun, tmp_path: Path
) -> None:
    """It may lack drops: then packets that were lost would be taken for packets that were not logged."""
    files = write_qlogs(tmp_path, "a", traces, run)
    changed(files[2], change)
    found = findings(staged(tmp_path / "a_b/c/1", files))
    assert any(note.startswith("link.sqlog: ") and "not used" in note for note in found.notes)
    assert found.loss_forward == traces.trace_pair.forward.loss
    assert (found.rate, found.efficiency, found.knows_link) == (None, None, False)
    assert not [share for share in TimeShare if share.metric in found.values]


@pytest.mark.parametrize(
    ("place", "content", "reason"),
    [
        ("9/server.sqlog", b"garbage", "server.sqlog is no qlog"),
        ("9/z.sqlog", b"", "z.sqlog is empty"),
        ("9/link2.sqlog", None, "link2.sqlog: a second qlog of the link"),
    ],
)
def test_no_file_is_passed_over(
    place: str, content: bytes | None, reason: str, traces: RunTraces, run: LinkRun, tmp_path: Path
) -> None:
    """Also behind a good qlog of the link."""
    files = write_qlogs(tmp_path, "a", traces, run)
    link = files[2].read_bytes()
    more = staged(tmp_path / "a_b/c/1", files) / QLOGS / place
    more.parent.mkdir()
    more.write_bytes(link if content is None else content)
    assert any(reason in note for note in findings(tmp_path / "a_b").notes)


def test_a_record_that_is_cut_is_counted_once(traces: RunTraces, run: LinkRun, tmp_path: Path) -> None:
    """The server's qlog is read for its packets and for its congestion control."""
    files = write_qlogs(tmp_path, "a", traces, run)
    update = {"time": 2000.0, "name": "recovery:metrics_updated", "data": {"congestion_window": -3}}
    middle = b"\n\x1e" + json.dumps(update).encode() + b"\n\x1e"
    changed(files[1], lambda content: content[:400_000] + middle + content[-100_000:-50])
    notes = findings(staged(tmp_path / "a_b/c/1", files)).notes
    assert sum("records that are cut" in note for note in notes) == 1
    assert sum("records that are no JSON" in note for note in notes) == 1
    assert sum("events without a usable value (1)" in note for note in notes) == 1


def test_packets_are_not_acknowledged_before_they_are_sent(traces: RunTraces, run: LinkRun, tmp_path: Path) -> None:
    """A client may claim so, but no round trip is negative."""
    files = write_qlogs(tmp_path, "a", traces, run)
    head, *records = files[1].read_text().split("\x1e")[1:]
    events = [json.loads(record) for record in records]
    acks = [frame for event in events for frame in event["data"].get("frames", []) if frame.get("frame_type") == "ack"]
    acks[20]["acked_ranges"] = [[0, 10**9]]
    files[1].write_text("".join(f"\x1e{record}\n" for record in (head, *map(json.dumps, events))))
    [found] = find_runs(staged(tmp_path / "a_b/c/1", files)).runs
    examine(found, None, tmp_path / "series")
    series = load(tmp_path / "series")
    assert len(series.rtt)
    assert (series.rtt.value > 0).all()
    assert (series.in_flight.value >= 0).all()


def test_times_of_days_are_bounded(traces: RunTraces, run: LinkRun, tmp_path: Path) -> None:
    files = write_qlogs(tmp_path, "a", traces, run)
    late: dict[str, Any] = json.loads(files[0].read_text().rstrip().rsplit("\x1e", 1)[1])
    late["time"] = 29 * 86_400_000.0
    changed(files[0], lambda content: content + b"\x1e" + json.dumps(late).encode() + b"\n")
    found = findings(staged(tmp_path / "a_b/c/1", files))
    assert found.goodput is not None
