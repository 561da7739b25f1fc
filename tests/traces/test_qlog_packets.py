"""The packets of a qlog are those of the trace that it was made from, and a hostile qlog gives a sentence or a note."""

import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quicsat.analysis.link_qlog import LinkRun
from quicsat.analysis.qlog_export import file_names, write_qlogs
from quicsat.model.emulated_link import unknown_link
from quicsat.model.errors import HarnessFault
from quicsat.model.implementation import Protocol, Role
from quicsat.traces import qlog_packets
from quicsat.traces.columns import Form, Frame, Trace
from quicsat.traces.packet_matching import match_contents
from quicsat.traces.qlog_packets import QlogPackets, contents, read_packets
from quicsat.traces.quic_series import QuicTracePair
from quicsat.traces.run_traces import RunTraces, check_traces, read_run

DATA = Path(__file__).parents[1] / "data"
COLUMNS = (
    "from_server", "form", "number", "version", "length", "decrypted", "generation", "key_phase", "spin", "eliciting",
    "connection", "size", "ecn",
)  # fmt: skip
SHAPE = {"name": "transport:packet_sent", "time": 1}


@cache
def traces(name: str) -> RunTraces:
    return read_run(DATA / name, Protocol.HQ, unknown_link(), check_traces(DATA / name, Protocol.HQ))


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("name", ["lossy", "many", "retry"])
def test_what_was_exported_is_read_back(name: str, older: bool, tmp_path: Path) -> None:
    pair = traces(name).trace_pair
    assert isinstance(pair, QuicTracePair)
    write_qlogs(tmp_path, name, traces(name), LinkRun(unknown_link(), None, 1, traces(name).start), older=older)
    ends = ((Role.CLIENT, pair.client, pair.at_client), (Role.SERVER, pair.server, pair.at_server))
    for file, (role, trace, datagrams) in zip(file_names(older=older), ends, strict=False):
        found = read_packets(tmp_path / file, file)
        assert (found.role, found.notes) == (role, ())
        assert len(found.state.datagrams) == len(datagrams)
        own = found.packets
        for column in COLUMNS:
            assert getattr(own, column).tolist() == getattr(trace, column).tolist(), column
        assert np.diff(own.frame).tolist() == np.diff(trace.frame).tolist()
        assert own.time - own.time[0] == pytest.approx(trace.time - trace.time[0], abs=1e-6)
        for table in ("frames", "crypto", "acks", "ack_ranges"):
            columns = {each: values.tolist() for each, values in vars(getattr(trace, table)).items()}
            assert {each: values.tolist() for each, values in vars(getattr(own, table)).items()} == columns
        assert signals(own) == signals(trace)
        assert [each.alpn for each in own.connections] == [each.alpn for each in trace.connections]
        for mine, theirs in zip(own.connections, trace.connections, strict=True):
            assert mine.client_parameters.items() <= theirs.client_parameters.items()
            assert mine.server_parameters["initial_max_data"] == theirs.server_parameters["initial_max_data"]


def signals(trace: Trace) -> list[tuple[Any, ...]]:
    rows = trace.signals.rows("packet", "kind", "first", "second", "text")
    return [(*numbers, trace.texts[text]) for *numbers, text in rows]


# ---- dialects -------------------------------------------------------------------------------


def document(events: Iterable[Any], **members: Any) -> str:
    trace = {"vantage_point": {"type": "server"}, **members, "events": list(events)}
    return json.dumps({"qlog_version": "0.3", "traces": [trace]})


def packet(number: Any = 1, **data: Any) -> dict[str, Any]:
    header = {"packet_type": "1RTT", "packet_number": number}
    return SHAPE | {"data": {"header": header, "raw": {"length": 100}, "frames": [], **data}}


def read_text(tmp_path: Path, text: str | bytes) -> QlogPackets:
    (tmp_path / "a.qlog").write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_packets(tmp_path / "a.qlog", "a.qlog", Role.CLIENT)


def test_the_first_draft(tmp_path: Path) -> None:
    """Types beside the header, numbers as text, sizes in the header, ranges as text, and times in microseconds."""
    header = {"packet_number": "7", "packet_size": 1200, "dcid": "ab"}
    frames = [
        {"frame_type": "ack", "ack_delay": "5", "acked_ranges": [["1", "3"], ["5", "5"]]},
        {"frame_type": "stream", "stream_id": "0", "offset": "10", "length": "20", "fin": True},
    ]
    rows = [["1000", "transport", "packet_sent", {"packet_type": "1RTT", "header": header, "frames": frames}]]
    fields = ["relative_time", "category", "event_type", "data"]
    text = document(rows, event_fields=fields, configuration={"time_units": "us"})
    trace = read_text(tmp_path, text).packets
    assert (trace.form[0], trace.number[0], trace.length[0], trace.from_server[0]) == (Form.ONE_RTT, 7, 1200, True)
    assert trace.frames.offset.tolist() + trace.frames.length.tolist() == [10, 20]
    assert list(trace.ack_ranges.rows("smallest", "largest")) == [(5, 5), (1, 3)]
    assert trace.acks.delay.tolist() == [5000 >> 3]


def test_packets_of_one_datagram_have_one_frame_number(tmp_path: Path) -> None:
    """By their ``datagram_id``, or by their time; nothing follows a short header."""
    long = {"packet_type": "handshake", "packet_number": 0}
    three = [packet(0, header=long, datagram_id=5), packet(1, datagram_id=5), packet(2, datagram_id=6)]
    assert read_text(tmp_path, document(three)).packets.frame.tolist() == [1, 1, 2]
    alike = [packet(0, header=long), packet(1), packet(2)]
    found = read_text(tmp_path, document(alike))
    assert found.packets.frame.tolist() == [1, 1, 2]
    assert found.packets.size.tolist() == [200, 0, 100]
    assert found.state.datagrams.size.tolist() == [200, 100]


def test_datagrams_that_are_announced_have_their_packets_size_and_mark(tmp_path: Path) -> None:
    """Packets of the same time that have no room in the datagram are in others; a mark holds until there is another."""
    long = {"packet_type": "handshake", "packet_number": 0}

    def datagram(**data: Any) -> dict[str, Any]:
        return {"name": "quic:udp_datagrams_sent", "time": 1, "data": data}

    events = [
        datagram(raw=[{"length": 250}], ecn=["ECT(0)"]), packet(0, header=long), packet(1, header=long),
        packet(2, header=long), packet(3), datagram(ecn=["CE"]), packet(4), datagram(raw="x", ecn=["odd", {}]),
        packet(5) | {"name": "transport:packet_received"},
    ]  # fmt: skip
    trace = read_text(tmp_path, document(events)).packets
    assert trace.frame.tolist() == [1, 1, 2, 3, 4, 5]
    assert trace.size.tolist() == [250, 0, 100, 100, 100, 100]
    assert trace.ecn.tolist() == [2, 2, 2, 2, 3, 0]


def test_events_that_are_not_in_order(tmp_path: Path) -> None:
    stream = {"frame_type": "stream", "stream_id": 0, "offset": 0, "raw": {"payload_length": 9}}
    late = packet(2, frames=[stream]) | {"time": 9}
    trace = read_text(tmp_path, document([late, packet(1)])).packets
    assert trace.number.tolist() == [1, 2]
    assert trace.frames.packet.tolist() == [1]


def test_connections_are_told_apart(tmp_path: Path) -> None:
    events = [packet(1) | {"group_id": "a"}, packet(1) | {"group_id": "b"}, packet(2) | {"group_id": "a"}, packet(9)]
    found = read_text(tmp_path, document(events))
    assert found.packets.connection.tolist() == [0, 1, 0, -1]
    assert found.groups == ("a", "b")


def test_frames_of_extensions_are_counted(tmp_path: Path) -> None:
    frames = [{"frame_type": name} for name in ("time_stamp", "ack_frequency", "something")]
    unnamed = {"frame_type": "unknown", "frame_type_bytes": 0x1234}
    trace = read_text(tmp_path, document([packet(1, frames=[*frames, unnamed])])).packets
    assert trace.signals.kind.tolist() == [Frame.TIME_STAMP, Frame.ACK_FREQUENCY, qlog_packets.UNKNOWN_TYPE, 0x1234]


@pytest.mark.parametrize("forward", [True, False])
def test_datagrams_that_ends_log_apart(forward: bool, tmp_path: Path) -> None:
    """A packet that both ends logged has arrived, whichever of the packets beside it one of them left out."""
    sender, receiver = (Role.SERVER, Role.CLIENT) if forward else (Role.CLIENT, Role.SERVER)

    def logged(role: Role, kind: str, *numbers: tuple[str, int, int, int]) -> QlogPackets:
        events = [
            packet(number, header={"packet_type": form, "packet_number": number}, datagram_id=datagram)
            | {"name": f"transport:packet_{kind}", "time": time}
            for form, number, datagram, time in numbers
        ]
        return read_text(tmp_path, document(events, vantage_point={"type": role}))

    sent = logged(
        sender, "sent",
        ("initial", 0, 0, 1), ("handshake", 0, 1, 2), ("initial", 1, 2, 3), ("handshake", 1, 2, 3), ("1RTT", 1, 2, 3),
        ("initial", 2, 3, 4), ("handshake", 2, 3, 4), ("1RTT", 3, 4, 5), ("1RTT", 4, 5, 6),
    )  # fmt: skip
    came = logged(
        receiver, "received",
        ("initial", 0, 0, 1), ("handshake", 0, 0, 1), ("handshake", 1, 1, 3), ("1RTT", 1, 2, 4), ("1RTT", 4, 3, 6),
        ("1RTT", 9, 4, 6),
    )  # fmt: skip
    ends = (contents(each.packets, each.state, each.groups) for each in (sent, came))
    found = match_contents(*ends, forward=forward)
    assert found.arrived.tolist() == [0, 0, 1, -1, -1, 3]
    assert found.lost.tolist() == [False, False, False, True, True, False]
    assert found.unsent.tolist() == [4]


@pytest.mark.parametrize("place", ["before", "behind", "behind-of-two"])
def test_the_order_of_members_does_not_matter(place: str, tmp_path: Path) -> None:
    """Each trace has its own members, whether they stand before or behind its events."""
    members = {"title": "own", "configuration": {"time_units": "us"}, "vantage_point": {"type": "server"}}
    common = {"common_fields": {"ODCID": "ab"}}
    events = {"events": [packet(1) | {"time": 1000}, packet(2) | {"time": 3000}]}
    trace = common | (members | events if place == "before" else events | members)
    other = {"events": [packet(7)], "vantage_point": {"type": "client"}}
    traces = [trace, *([other] if place == "behind-of-two" else [])]
    found = read_text(tmp_path, json.dumps({"traces": traces, "qlog_version": "0.3"}))
    assert (found.role, found.title, found.groups) == (Role.SERVER, "own", ("ab",))
    assert found.packets.time.tolist() == pytest.approx([0.001, 0.003])
    assert found.packets.from_server.tolist() == [True, True]
    assert found.notes == (("a.qlog: events of another vantage point: 1.",) if len(traces) == 2 else ())


@pytest.mark.parametrize("stated", [{}, {"vantage_point": {"type": "unknown"}}])
@pytest.mark.parametrize("given", Role)
@pytest.mark.parametrize("end", Role)
def test_an_end_that_is_not_stated(end: Role, given: Role, stated: dict[str, Any], tmp_path: Path) -> None:
    """The client sends the first packet, an Initial; without it, the end is the one that was asked for, as is noted."""
    first, second = ("sent", "received") if end is Role.CLIENT else ("received", "sent")
    initial = {"packet_type": "initial", "packet_number": 0}
    events = [
        packet(0, header=initial) | {"name": f"transport:packet_{first}"},
        packet(0, header=initial) | {"name": f"transport:packet_{second}", "time": 2},
    ]
    (tmp_path / "a.qlog").write_text(json.dumps({"traces": [stated | {"events": events}]}))
    found = read_packets(tmp_path / "a.qlog", "a.qlog", given)
    assert (found.role, found.packets.from_server.tolist()) == (end, [False, True])
    (tmp_path / "b.qlog").write_text(json.dumps({"traces": [stated | {"events": [packet(1)]}]}))
    without = read_packets(tmp_path / "b.qlog", "b.qlog", given)
    assert (without.role, without.packets.from_server.tolist()) == (given, [given is Role.SERVER])
    assert [len(found.notes), len(without.notes)] == [1, 1]


# ---- hostile --------------------------------------------------------------------------------

HUGE = [2**62, 2**64, 10**400, -1, 1.5, "9" * 30, True, None, [], {}, "\x1b[31m", float("nan"), float("inf"), 1e300]
PLACES: tuple[Callable[[Any], dict[str, Any]], ...] = (
    lambda value: {"frames": [{"frame_type": "stream", "stream_id": value, "offset": 0, "length": 1}]},
    lambda value: {"frames": [{"frame_type": "stream", "stream_id": 0, "offset": value, "length": 1}]},
    lambda value: {"frames": [{"frame_type": "crypto", "offset": 0, "raw": {"payload_length": value}}]},
    lambda value: {"frames": [{"frame_type": "ack", "acked_ranges": [[0, value]], "ack_delay": value}]},
    lambda value: {"frames": [{"frame_type": "ack", "acked_ranges": value}]},
    lambda value: {"frames": [{"frame_type": "max_data", "maximum": value}]},
    lambda value: {"frames": [{"frame_type": "max_streams", "stream_type": value, "maximum": 1}]},
    lambda value: {"frames": [{"frame_type": "new_token", "token": value}]},
    lambda value: {"frames": [{"frame_type": "connection_close", "error": value, "reason": value}]},
    lambda value: {"frames": [{"frame_type": "reset_stream", "stream_id": 1, "error_code": 1, "final_size": value}]},
    lambda value: {"frames": [{"frame_type": "unknown", "frame_type_bytes": value}]},
    lambda value: {"frames": [{"frame_type": value}]},
    lambda value: {"frames": [value]},
    lambda value: {"frames": value},
    lambda value: {"raw": {"length": value}},
    lambda value: {"raw": value},
    lambda value: {"datagram_id": value},
    *(lambda value, name=name: {"header": {"packet_type": "1RTT", "packet_number": 1, name: value}}
      for name in ("packet_number", "key_phase", "spin_bit", "version", "dcid", "token")),
)  # fmt: skip


@pytest.mark.parametrize("place", range(len(PLACES)))
def test_wrong_values_leave_the_other_packets(place: int, tmp_path: Path) -> None:
    wrong = [packet(1, **PLACES[place](value)) for value in HUGE]
    found = read_text(tmp_path, document([packet(0), *wrong, packet(77)]))
    assert {0, 77} <= {*found.packets.number.tolist()}
    assert all("\x1b" not in text for text in (*found.notes, *found.packets.texts))


@pytest.mark.parametrize(
    "data",
    [
        {"initiator": "local", "initial_max_data": 10**400, "max_idle_timeout": "x", "tls_cipher": [1]},
        {"owner": {}, "initial_max_data": 5},
        {"initiator": "remote", "original_destination_connection_id": "zz"},
    ],
)
def test_wrong_parameters(data: dict[str, Any], tmp_path: Path) -> None:
    events = [packet(1), {"time": 1, "name": "quic:parameters_set", "data": data}]
    [connection] = read_text(tmp_path, document(events)).packets.connections
    assert "initial_max_data" not in {**connection.client_parameters, **connection.server_parameters}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (document([packet(1, header={"packet_type": "odd"})]), "has no packets"),
        (document([{"time": 1, "name": "quic:connection_started", "data": {}}]), "has no packets"),
        ("[" * 100_000, "no qlog"),
        ('{"traces": [{"events": [' + '{"a":' * 50_000, "no qlog"),
        (b"\xff\xfe\x00", "no qlog"),
        ("", "is empty"),
    ],
)
def test_a_file_without_packets(text: str | bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=reason):
        read_text(tmp_path, text)


def test_a_file_that_was_cut(tmp_path: Path) -> None:
    found = read_text(tmp_path, document(packet(number) for number in range(10))[:-60])
    assert len(found.packets) == 9
    assert found.notes == ("a.qlog: records that are cut: 1.",)
    assert found.state.reason


def test_more_packets_and_connections_than_a_trace_may_have(tmp_path: Path) -> None:
    (tmp_path / "a.qlog").write_text(document(packet(number) for number in range(11)))
    with pytest.raises(HarnessFault, match="more than 10 QUIC packets"):
        read_packets(tmp_path / "a.qlog", "a.qlog", Role.CLIENT, most=10)
    (tmp_path / "a.qlog").write_text(document(packet(1) | {"group_id": f"{number}"} for number in range(20_000)))
    with pytest.raises(HarnessFault, match="connections"):
        read_packets(tmp_path / "a.qlog", "a.qlog", Role.CLIENT)


def test_events_of_another_end_are_left_out(tmp_path: Path) -> None:
    one, other = ({"vantage_point": {"type": end}, "events": [packet(1)]} for end in ("client", "server"))
    found = read_text(tmp_path, json.dumps({"qlog_version": "0.3", "traces": [one, other]}))
    assert (found.role, len(found.packets)) == (Role.CLIENT, 1)
    assert found.notes == ("a.qlog: events of another vantage point: 1.",)
