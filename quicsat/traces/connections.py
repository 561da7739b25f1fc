"""The connections of a trace: how many there are, which is which at the other end, and the packets of one; pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from quicsat.model.arrays import Integers
from quicsat.traces.columns import ColumnTable, Form, Trace


def handshakes(trace: Trace) -> int:
    """How many connections the server answered with an Initial, in the order of the client-side trace.

    A connection begins with an Initial of the client to a connection id that no other connection knows. It knows the
    one that the client invented and those that the server gave it, in a Retry or in its Initials, so neither a Retry
    nor a server that changes its mind counts twice (RFC 9000, section 7.2). The id that the
    client chose for itself identifies a connection of one client, or the addresses if it chose none. If packet numbers
    continue, the client has merely changed to a connection id that the server gave it in NEW_CONNECTION_ID, where no
    Initial shows it.
    """
    initial, retry = trace.form == Form.INITIAL, trace.form == Form.RETRY
    known: dict[tuple[object, int], int] = {}
    latest: dict[object, int] = {}
    answered: set[int] = set()
    highest: dict[int, int] = {}
    count = 0
    for row in np.flatnonzero(initial | retry).tolist():
        path, scid, dcid = int(trace.path[row]), int(trace.scid[row]), int(trace.dcid[row])
        if not trace.from_server[row]:
            own: object = scid or ("path", path)
            number = int(trace.number[row])
            if (own, dcid) not in known and number <= highest.get(latest.get(own, -1), number):
                latest[own] = count
                count += 1
            connection = known.setdefault((own, dcid), latest[own])
            highest[connection] = max(number, highest.get(connection, -1))
            continue
        own = dcid or ("path", path)
        if own in latest:
            known[own, scid] = latest[own]
            if initial[row]:
                answered.add(latest[own])
    return len(answered)


def counterparts(server: Trace, client: Trace) -> Integers:
    """For each connection of the server's trace its number in the client's, -1 if it is not there.

    The two numberings differ where a connection's packets never reached the server. A connection is known by the
    destination connection id of its first packet in either trace: the client keeps the one that it invented until the
    server answers (RFC 9000, section 7.2). Equal ones are matched in their order.
    """
    numbers = {name: number for number, name in enumerate(_names(client))}
    return np.array([numbers.get(name, -1) for name in _names(server)], dtype=np.int64)


def _names(trace: Trace) -> list[tuple[str, int]]:
    """Each connection's first destination connection id, and how many connections before had the same."""
    seen: Counter[str] = Counter()
    names = []
    for number in range(len(trace.connections)):
        rows = np.flatnonzero(trace.connection == number)
        name = trace.connection_ids[int(trace.dcid[rows[0]])] if len(rows) else ""
        names.append((name, seen[name]))
        seen[name] += 1
    return names


def only(trace: Trace, connection: int | None) -> Trace:
    """The packets of one connection, which becomes number 0; a trace without packets for None.

    ``ack_ranges`` and the tables of names stay whole, since other columns count in them.
    """
    rows = np.flatnonzero(trace.connection == connection) if connection is not None else np.zeros(0, dtype=np.int64)
    place = np.full(len(trace), -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    parts: dict[str, Any] = {}
    for name, part in vars(trace).items():
        if isinstance(part, np.ndarray):
            parts[name] = part[rows]
        elif isinstance(part, ColumnTable) and name != "ack_ranges":
            parts[name] = _kept(part, place)
    parts["connection"] = np.zeros(len(rows), dtype=np.int64)
    parts["connections"] = () if connection is None else trace.connections[connection : connection + 1]
    return replace(trace, **parts)


def _kept(table: ColumnTable, place: Integers) -> ColumnTable:
    """The rows whose packet has a new place, with that."""
    columns: dict[str, Any] = dict(vars(table))
    columns["packet"] = place[columns["packet"]]
    kept = columns["packet"] >= 0
    return type(table)(**{name: column[kept] for name, column in columns.items()})
