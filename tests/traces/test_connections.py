"""Connections are counted rightly, whatever ids and addresses their packets have."""

from pathlib import Path

import pytest

from quicsat.model.emulated_link import Direction, EmulatedLink
from quicsat.model.implementation import Protocol
from quicsat.traces.columns import Form, Frame
from quicsat.traces.connections import counterparts, handshakes, only
from quicsat.traces.run_traces import CLIENT_TRACE, KEY_LOGS, SERVER_TRACE, check_traces, read_run
from tests.analysis.test_run_outcome import connection, initial
from tests.quic_builder import NOBODY, Connection, Packet, Row, columns, pcap, stream_frame


def nameless(*numbers: int) -> list[Row]:
    """Initials of a client without ids of its own, each to another id, with these packet numbers, and the answers."""
    rows = [(initial(False, "", f"id{i}", number=n), initial(True, f"s{i}", "")) for i, n in enumerate(numbers)]
    return [row for pair in rows for row in pair]


RETRY = [
    initial(False, "c", "first"),
    Row(0, True, Form.RETRY, scid="new", dcid="c"),
    initial(False, "c", "new"),
    initial(True, "server", "c"),
]
HANDSHAKES: dict[str, tuple[list[Row], int]] = {
    "one": (connection(1), 1),
    "repeated Initials": (connection(1) * 2, 1),
    "after a Retry": (RETRY, 1),
    "two of one client": (connection(1) + connection(2), 2),
    "two without own ids on two paths": (connection(1, "", "p") + connection(2, "", "q"), 2),
    "two without own ids on one path": (connection(1, "") + connection(2, ""), 2),
    "not answered": ([initial(False, "c", "first"), initial(False, "c", "first")], 0),
    "given up and begun again": ([initial(False, "c9", "first9"), *connection(1)], 1),
    "address changed under way": ([*connection(1)[:2], initial(False, "c1", "server1", path="other")], 1),
    "server answers twice with another id": ([*connection(1), initial(True, "server1b", "c1")], 1),
    "id taken from NEW_CONNECTION_ID": (nameless(0, 1), 1),
    "two without own ids, numbered": (nameless(0, 0), 2),
    "version negotiated": (
        [initial(False, "c1", "first1"), Row(0, True, Form.VERSION_NEGOTIATION, scid="first1"), *connection(1)],
        1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HANDSHAKES)
def test_handshakes_are_counted(name: str) -> None:
    rows, expected = HANDSHAKES[name]
    assert handshakes(columns(*rows)) == expected


# ---- which is which -------------------------------------------------------------------------


def test_connections_are_known_by_the_id_that_the_client_invented() -> None:
    first, second, third = (Row(n, False, Form.INITIAL, dcid=f"id{n}", connection=n) for n in range(3))
    client = columns(first, second, third, connections=[NOBODY] * 3)
    late = Row(9, False, Form.INITIAL, dcid="id2", connection=0), Row(9, False, Form.INITIAL, dcid="x", connection=1)
    assert counterparts(columns(*late, connections=[NOBODY] * 2), client).tolist() == [2, -1]
    assert counterparts(client, client).tolist() == [0, 1, 2]


def test_the_packets_of_one_connection() -> None:
    trace = columns(
        Row(0, False, frames=[(0, 0, 9)], connection=0),
        Row(1, True, frames=[(0, 0, 50), (4, 0, 60)], connection=1, acks=[(7, 0, 0, 0)]),
        Row(2, True, signals=[(Frame.CLOSE, 1, 0, "why")], connection=1),
        connections=[NOBODY, NOBODY],
    )
    shown = only(trace, 1)
    assert (shown.time.tolist(), shown.connection.tolist(), len(shown.connections)) == ([1, 2], [0, 0], 1)
    assert (shown.frames.packet.tolist(), shown.frames.length.tolist()) == ([0, 0], [50, 60])
    assert (shown.acks.packet.tolist(), shown.signals.packet.tolist()) == ([0], [1])
    assert shown.texts[int(shown.signals.text[0])] == "why"
    assert len(only(trace, None)) == len(only(trace, None).connections) == 0


def test_events_of_a_connection_whose_predecessor_never_reached_the_server(tmp_path: Path) -> None:
    lost, made = Connection(b"lost----", b"client-0"), Connection()
    exchange = [
        (1.0, False, made.client_hello()), (1.1, True, made.server_hello()),
        (1.3, False, made.one_rtt(0, stream_frame(0, b"GET /", fin=True), from_server=False)),
        (1.4, True, made.one_rtt(0, stream_frame(0, b"12345", fin=True), from_server=True)),
    ]  # fmt: skip
    at_client = [Packet(0, False, lost.client_hello())]
    at_client += [Packet(time + 0.1 * side, side, data) for time, side, data in exchange]
    at_server = [Packet(time + 0.1 * (not side), side, data) for time, side, data in exchange]
    for path, content in ((CLIENT_TRACE, pcap(at_client)), (SERVER_TRACE, pcap(at_server))):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    (tmp_path / KEY_LOGS[1]).parent.mkdir()
    (tmp_path / KEY_LOGS[1]).write_text(made.key_log)
    link = EmulatedLink.symmetric("simple-p2p", Direction(0.1, 1e7, 25))
    found = read_run(tmp_path, Protocol.HQ, link, check_traces(tmp_path, Protocol.HQ)).series()
    assert found.back.connection.tolist() == [0, 1, 1]
    assert found.forward.connection.tolist() == [1, 1]
    assert (
        found.sent.connection.tolist() == found.arrived.connection.tolist() == found.requests.connection.tolist() == [1]
    )
    assert found.requests.arrived.tolist() == pytest.approx([1.4])
    assert found.requests.last_byte.tolist() == pytest.approx([1.5])
