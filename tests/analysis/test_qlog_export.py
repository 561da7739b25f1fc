"""A run as three qlogs: valid by the drafts' CDDL, with every packet of the traces, and read back by our own reader."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cddl_verifier import Validator

from quicsat.analysis.link_qlog import LinkRun, link_events
from quicsat.analysis.qlog_export import FILES, write_qlogs
from quicsat.model.emulated_link import (
    ClientSide,
    ClientSideDirection,
    ClientSideReport,
    DirectionReport,
    SimulatorReport,
    UniformLoss,
    unknown_link,
)
from quicsat.model.implementation import Protocol
from quicsat.model.product_files import build_folder
from quicsat.traces import qlog
from quicsat.traces.columns import AckFrames, CryptoFrames, Form, Frame, Signals, StreamFrames, Trace
from quicsat.traces.qlog_events import endpoint_events
from quicsat.traces.quic_series import QuicTracePair
from quicsat.traces.run_traces import RunTraces, check_traces, read_run
from quicsat.traces.series import Packets
from tests.series_builder import Transfer, series

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests/data"
DRAFTS = build_folder() / "vendor/qlog"
RUNS = ("lossy", "many", "retry")
EPOCH = 1_750_000_000.0


@cache
def traces(name: str) -> RunTraces:
    directory = DATA / name
    return read_run(directory, Protocol.HQ, unknown_link(), check_traces(directory, Protocol.HQ))


def pair_of(name: str) -> QuicTracePair:
    pair = traces(name).trace_pair
    assert isinstance(pair, QuicTracePair)
    return pair


def exported(name: str, place: Path) -> dict[str, list[dict[str, Any]]]:
    """The records of each file."""
    run = LinkRun(unknown_link(), None, 1, traces(name).start)
    paths = write_qlogs(place, name, traces(name), run)
    assert tuple(path.name for path in paths) == FILES
    return {path.name: list(records(path)) for path in paths}


def records(path: Path) -> Iterator[dict[str, Any]]:
    """JSON-SEQ (RFC 7464)."""
    content = path.read_bytes()
    assert content.startswith(b"\x1e")
    for text in content[1:].split(b"\x1e"):
        assert text.endswith(b"\n")
        yield json.loads(text)


@cache
def validator() -> Validator:
    """The drafts and the schema of the link; JSON does not tell the sizes of floats (RFC 8610, appendix E)."""
    if not (DRAFTS / "version").is_file():
        pytest.skip("`make setup-dev` could not bring the drafts of qlog")
    page = (ROOT / "docs/reference/qlog.md").read_text()
    [own] = re.findall(r"```cddl\n(.*?)```", page, re.DOTALL)
    texts = [(DRAFTS / f"{name}.cddl").read_text() for name in ("main-schema", "quic-events")]
    return Validator(re.sub(r"\bfloat(32|64)\b", "number", "\n".join([*texts, own])))


def faults(event: Mapping[str, Any]) -> list[str]:
    """What is wrong with an event, by its own type and by that of all events."""
    space, _, name = event["name"].partition(":")
    kind = {"quic": "QUIC", "link": "Link"}[space] + "".join(part.capitalize() for part in name.split("_"))
    kind = kind.replace("Alpn", "ALPN").replace("Udp", "UDP")
    found = [*validator().validate(event["data"], root_type=kind).diagnostics]
    shell = {**event, "data": {"message": "of its own type"}}
    found += validator().validate(shell, root_type="Event").diagnostics
    return [each.message for each in found]


@pytest.mark.parametrize("name", RUNS)
def test_files_are_valid_by_the_drafts(name: str, tmp_path: Path) -> None:
    for head, *events in exported(name, tmp_path).values():
        assert validator().validate(head, root_type="QlogFileSeq").valid
        assert [fault for event in events for fault in faults(event)] == []


def test_the_older_form_has_the_same_events_under_their_older_names(tmp_path: Path) -> None:
    sequences = exported("lossy", tmp_path)
    run = LinkRun(unknown_link(), None, 1, traces("lossy").start)
    paths = write_qlogs(tmp_path, "lossy", traces("lossy"), run, older=True)
    assert [path.name for path in paths] == ["client.qlog", "server.qlog", "link.qlog"]
    for path, (_, *events) in zip(paths[:2], list(sequences.values())[:2], strict=True):
        whole = json.loads(path.read_bytes())
        assert whole["qlog_version"] == "0.3"
        [trace] = whole["traces"]
        assert [event["time"] for event in trace["events"]] == [event["time"] for event in events]
        assert all(event["group_id"] for event in trace["events"])
        names = Counter(event["name"] for event in trace["events"])
        newer = Counter(event["name"] for event in events)
        assert names["transport:packet_sent"] == newer["quic:packet_sent"] > 0
        assert names["recovery:metrics_updated"] == newer["quic:recovery_metrics_updated"]
        frames = [frame for event in trace["events"] for frame in event["data"].get("frames", ())]
        assert all("length" in frame for frame in frames if frame["frame_type"] in ("stream", "crypto"))
        assert [len(each.events) for each in qlog.read(path).traces] == [len(events)]


@pytest.mark.parametrize(
    "data",
    [
        {"header": {"packet_type": "1-RTT"}},
        {"header": {"packet_type": "1RTT"}, "frames": [{"frame_type": "max_data"}]},
        {"header": {"packet_type": "1RTT"}, "lost": True},
    ],
)
def test_the_validator_finds_faults(data: Mapping[str, Any]) -> None:
    assert faults({"time": 1.5, "name": "quic:packet_sent", "data": data})


@pytest.mark.parametrize("name", RUNS)
def test_every_packet_and_frame_of_the_trace_is_there(name: str, tmp_path: Path) -> None:
    files = exported(name, tmp_path)
    for file, trace, server in zip(FILES[:2], (pair_of(name).client, pair_of(name).server), (False, True), strict=True):
        events = files[file][1:]
        names = Counter(event["name"] for event in events)
        mine = trace.from_server == server
        assert names["quic:packet_sent"] == mine.sum()
        assert names["quic:packet_received"] == (~mine).sum()
        assert names["quic:connection_started"] == len(trace.connections)
        kinds = Counter(frame["frame_type"] for event in events for frame in event["data"].get("frames", ()))
        assert kinds["stream"] == len(trace.frames)
        assert kinds["ack"] == len(trace.acks)
        assert kinds["crypto"] == len(trace.crypto)
        assert kinds.total() == len(trace.frames) + len(trace.acks) + len(trace.crypto) + len(trace.signals)
        times = [event["time"] for event in events]
        assert times == sorted(times)


def test_a_mark_is_told_where_it_changes() -> None:
    """Datagrams with a short header and the mark of the one before in their direction need no event."""
    trace = pair_of("lossy").client
    marks = trace.ecn.copy()
    last = np.flatnonzero((trace.form == Form.ONE_RTT) & trace.from_server)[-3:]
    marks[last[1]] = 3
    told = [
        data for (_, name, data), _ in endpoint_events(replace(trace, ecn=marks), trace.time, server=False)
        if name == "quic:udp_datagrams_received" and "ecn" in data
    ]  # fmt: skip
    assert [data["ecn"] for data in told] == [["CE"], ["Not-ECT"]]
    assert [data["raw"][0]["length"] for data in told] == trace.size[last[1:]].tolist()


def test_all_files_have_one_clock(tmp_path: Path) -> None:
    files = exported("lossy", tmp_path)
    assert len({json.dumps(head["trace"]["common_fields"]) for head, *_ in files.values()}) == 1
    client, server, link = (files[name][1:] for name in FILES)
    sent = next(event["time"] for event in client if event["name"] == "quic:packet_sent")
    received = next(event["time"] for event in server if event["name"] == "quic:packet_received")
    ways = [event for event in link if event["data"].get("direction") == "return"]
    assert sent == 0.0 == ways[0]["time"]
    departed = next(event["time"] for event in ways if event["name"] == "link:packet_departed")
    assert departed == pytest.approx(received, abs=0.002)
    assert received > 0.01


def test_our_reader_reads_them_back(tmp_path: Path) -> None:
    exported("lossy", tmp_path)
    found = qlog.read(tmp_path / "server.sqlog")
    [trace] = found.traces
    assert trace.vantage_point == "server"
    assert trace.epoch == pytest.approx(traces("lossy").start, abs=1e-5)
    assert found.passed_over == {}
    names = Counter(event.name for event in trace.events)
    assert names["packet_sent"] == pair_of("lossy").server.from_server.sum()
    assert names["metrics_updated"] == len(traces("lossy").series().rtt)


def test_every_frame_has_the_form_of_the_draft() -> None:
    trace = pair_of("lossy").client
    kinds = [kind for kind in Frame if kind is not Frame.BDP]
    texts = ("", "1200", "1200 600", "0123456789abcdef", "ab", "the reason")
    by_kind = {
        Frame.RESET_STREAM: 1, Frame.RESET_STREAM_AT: 2, Frame.PATH_CHALLENGE: 3, Frame.PATH_RESPONSE: 3,
        Frame.NEW_CONNECTION_ID: 3, Frame.NEW_TOKEN: 4, Frame.CLOSE: 5, Frame.CLOSE_APPLICATION: 5,
    }  # fmt: skip
    codes = (0, 0x10, 0x178, 0x1234)
    rows = [(kind, code, by_kind.get(kind, 0)) for kind in kinds for code in codes]
    signals = Signals.of(
        packet=[0] * len(rows),
        kind=[row[0] for row in rows],
        first=[row[1] for row in rows],
        second=[1] * len(rows),
        text=[row[2] for row in rows],
    )
    frames = first_packet(replace(trace, signals=signals, texts=texts))["data"]["frames"]
    told = [frame for frame in frames if frame["frame_type"] not in ("ack", "crypto", "stream")]
    assert len(told) == len(rows)
    for frame in told:
        data = {"header": {"packet_type": "1RTT"}, "frames": [frame]}
        assert faults({"time": 0.0, "name": "quic:packet_sent", "data": data}) == [], frame
    closes = [frame.get("error") for frame in told if frame.get("error_space") == "transport"]
    assert closes == ["no_error", "no_viable_path", "crypto_error_0x178", "unknown"]
    reset = next(frame for frame in told if frame["frame_type"] == "reset_stream_at")
    assert (reset["final_size"], reset["reliable_size"]) == (1200, 600)


def first_packet(trace: Trace) -> dict[str, Any]:
    for (time, name, data), _ in endpoint_events(trace, trace.time, server=False):
        if name == "quic:packet_sent":
            return {"time": time, "data": data}
    raise AssertionError


def test_what_the_link_did_with_each_packet() -> None:
    found = series(Transfer(size=12_000, piece=1000, rate=1e6, lost=[3]))
    report = simulator_report(queue_drops=1)
    events = link_events(LinkRun(unknown_link(), report, 1, EPOCH), found)
    forward = [(name, data) for _, name, data in events if data.get("direction") == "forward"]
    names = Counter(name for name, _ in forward)
    assert names["link:packet_enqueued"] == len(found.forward) == names["link:packet_departed"] + 1
    [dropped] = [data for name, data in forward if name == "link:packet_dropped"]
    assert dropped["trigger"] == "queue"
    assert dropped["packet_number"] == found.forward.number[found.forward.lost][0]


def test_what_the_link_at_the_clients_side_did() -> None:
    """Its losses are not those of the link, and have another reason; together with those, none is known."""
    found = series(Transfer(size=12_000, piece=1000, rate=1e6, lost=[3]))
    lost = ClientSideReport(DirectionReport(12, 11, 0, 1), DirectionReport(12, 12, 0, 0))
    beside = ClientSide(ClientSideDirection(0.002, UniformLoss(0.01), 5e6, 9), ClientSideDirection(0.002))
    link = replace(unknown_link(), client_side=beside)
    for report, reason in ((simulator_report(), "client side loss"), (simulator_report(queue_drops=1), "unknown")):
        events = link_events(LinkRun(link, replace(report, client_side=lost), 1, EPOCH), found)
        assert [data["trigger"] for _, name, data in events if name == "link:packet_dropped"] == [reason]
        assert not [data for *_, data in events if data.get("direction") == "forward" and "queue_packets" in data]
    told = [data for _, name, data in events if name == "link:parameters_set" and "place" in data]
    assert told == [
        {
            "direction": "forward", "place": "client side", "delay": 2.0, "loss": 0.01, "rate": 5_000_000,
            "queue_limit": 9, "queue_unit": "packets", "queue_discipline": "drop-tail",
        },
        {"direction": "return", "place": "client side", "delay": 2.0, "loss": 0.0},
    ]  # fmt: skip


def test_the_depth_of_the_queue() -> None:
    found = series(Transfer(size=12_000, piece=1000, rate=1e6))
    three = Packets.of(
        sent=[0.0, 0.0, 0.0, 0.05, 1.0], arrived=[0.1, 0.2, 0.3, 0.4, 1.1], lost=[False] * 5, number=range(5),
        size=[1000, 1000, 500, 1000, 1000], connection=[0] * 5,
    )  # fmt: skip
    events = link_events(LinkRun(unknown_link(), None, 1, EPOCH), replace(found, forward=three))
    depths = {
        data["packet_number"]: (data["queue_packets"], data["queue_bytes"])
        for _, name, data in events
        if name == "link:packet_enqueued" and data["direction"] == "forward"
    }
    assert depths[3] == (2, 1500)
    assert depths[4] == (0, 0)


def simulator_report(queue_drops: int = 0) -> SimulatorReport:
    counted = DirectionReport(received=20, delivered=19, queue_drops=queue_drops, loss_drops=0)
    return SimulatorReport(EPOCH, True, 0.0, 0.0, 0, counted, DirectionReport(20, 20, 0, 0))


def test_packets_of_padding_alone_have_a_frame() -> None:
    """qvis fails at a packet without frames."""
    seen = pair_of("lossy").client
    empty = replace(seen, frames=StreamFrames.of(), crypto=CryptoFrames.of(), acks=AckFrames.of(), signals=Signals.of())
    events = [data for (_, _, data), _ in endpoint_events(empty, empty.time, server=False) if "frames" in data]
    assert len(events) == int(seen.decrypted.sum())
    assert all(data["frames"] == [{"frame_type": "padding"}] for data in events)
    assert faults({"time": 0.0, "name": "quic:packet_sent", "data": events[0]}) == []
