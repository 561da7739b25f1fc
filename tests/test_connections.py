"""Connections are told apart, whatever ids and addresses their packets have."""

from __future__ import annotations

import pytest

from interop.columns import Form
from interop.connections import connections, handshakes
from tests.test_checks import connection, initial
from tests.traces import Row, columns


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
    assert sum(connections(columns(*rows)).answered) == expected


def one_rtt(from_server: bool, dcid: str, path: str = "p") -> Row:
    return Row(0, from_server, dcid=dcid, path=path)


OF: dict[str, tuple[list[Row], list[int]]] = {
    "by connection id": (
        [*connection(1), *connection(2), *(one_rtt(True, f"c{i}") for i in (1, 2)), one_rtt(False, "server1")],
        [0, 0, 0, 1, 1, 1, 0, 1, 0],
    ),
    "by path": (
        [*connection(1, "", "p"), *connection(2, "", "q"), *(one_rtt(True, "", path) for path in "pqx")],
        [0, 0, 0, 1, 1, 1, 0, 1, 1],
    ),
    "by what was begun last": (
        [*connection(1, ""), one_rtt(True, ""), *connection(2, ""), one_rtt(True, ""), one_rtt(False, "server1")],
        [0, 0, 0, 0, 1, 1, 1, 1, 0],
    ),
    "after an address change": ([*connection(1), one_rtt(False, "new", "other")], [0, 0, 0, 0]),
    "long headers": (
        [
            *connection(1),
            *connection(2),
            Row(0, False, Form.HANDSHAKE, scid="c1", dcid="server1"),
            Row(0, True, Form.HANDSHAKE, scid="server2", dcid="c2"),
            Row(0, False, Form.ZERO_RTT, scid="c2", dcid="first2"),
        ],
        [0, 0, 0, 1, 1, 1, 0, 1, 1],
    ),
    "before any": ([one_rtt(True, "a"), *connection(1)], [-1, 0, 0, 0]),
}


@pytest.mark.parametrize("name", OF)
def test_each_packet_has_its_connection(name: str) -> None:
    rows, expected = OF[name]
    found = connections(columns(*rows))
    assert found.of.tolist() == expected
    assert found.begin == tuple(expected.index(each) for each in range(max(expected) + 1))
