"""Connections are counted rightly, whatever ids and addresses their packets have."""

from __future__ import annotations

import pytest

from interop.traces.columns import Form
from interop.traces.connections import handshakes
from tests.analysis.test_checks import connection, initial
from tests.quic_builder import Row, columns


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
