"""Which connection each packet of a trace belongs to, told by connection ids, addresses and packet numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from interop.columns import Form, Integers, Trace

LONG = (Form.INITIAL, Form.ZERO_RTT, Form.HANDSHAKE, Form.RETRY)


@dataclass(frozen=True, eq=False)
class Connections:
    """The connections of a trace, counted from 0 in the order in which the client began them."""

    of: Integers
    """Connection of each packet; -1 for packets before the first one."""
    begin: tuple[int, ...]
    """Row of each connection's first packet."""
    answered: tuple[bool, ...]
    """Whether the server answered it with an Initial."""

    def __len__(self) -> int:
        return len(self.begin)


def handshakes(trace: Trace) -> int:
    """How many connections the server answered with an Initial, in the order of the client-side trace."""
    found = _Finder(trace)
    for row in np.flatnonzero((trace.form == Form.INITIAL) | (trace.form == Form.RETRY)).tolist():
        found.take(row)
    return sum(found.answered)


def connections(trace: Trace) -> Connections:
    """Tell the connections of a trace apart.

    A connection begins with an Initial of the client to a connection id that no other connection knows. It knows the
    one that the client invented and those that the server gave it, in a Retry or in its Initials, so neither a Retry
    nor a server that changes its mind counts twice (RFC 9000, section 7.2). Connections of one client are told apart
    by the id the client chose for itself, or by the addresses if it chose none; packet numbers that go on tell that a
    client has merely changed to a connection id that the server gave it where no Initial shows it, in
    NEW_CONNECTION_ID. Short headers have the id of their receiver; one that nobody knows is of the connection that
    was begun last on the same path, or at all.
    """
    found = _Finder(trace)
    of = np.full(len(trace), -1, dtype=np.int64)
    for row in np.flatnonzero(np.isin(trace.form, LONG)).tolist():
        of[row] = found.take(row)
    begin = np.array(found.begin, dtype=np.int64)
    rest = np.flatnonzero(~np.isin(trace.form, LONG))
    last = np.searchsorted(begin, rest) - 1  # the connection begun last before the row
    for place, row in enumerate(rest.tolist()):
        of[row] = found.short(row, int(last[place]))
    return Connections(of, tuple(found.begin), tuple(found.answered))


class _Finder:
    """What is known of the connections so far."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.begin: list[int] = []
        self.answered: list[bool] = []
        self.highest: list[int] = []
        self.known: dict[tuple[object, int], int] = {}
        self.latest: dict[object, int] = {}
        self.ids: dict[tuple[bool, int], int] = {}
        """(whether it is the server's, connection id) -> connection."""
        self.on_path: dict[int, list[int]] = {}

    def take(self, row: int) -> int:
        """The connection of a long header; it begins with it if no other knows it."""
        trace = self.trace
        path, scid, dcid = int(trace.path[row]), int(trace.scid[row]), int(trace.dcid[row])
        if trace.from_server[row]:
            own: object = dcid or ("path", path)
            connection = self.latest.get(own, -1)
            if connection >= 0 and trace.form[row] in (Form.INITIAL, Form.RETRY):
                self.known[own, scid] = connection
                self.ids[True, scid] = connection
                self.answered[connection] |= bool(trace.form[row] == Form.INITIAL)
            return connection
        own = scid or ("path", path)
        if trace.form[row] != Form.INITIAL:
            return self.known.get((own, dcid), self.latest.get(own, -1))
        number, before = int(trace.number[row]), self.latest.get(own, -1)
        if (own, dcid) not in self.known and (before < 0 or number <= self.highest[before]):
            self._begin(row, own)
        connection = self.known.setdefault((own, dcid), self.latest[own])
        self.highest[connection] = max(number, self.highest[connection])
        return connection

    def _begin(self, row: int, own: object) -> None:
        self.latest[own] = len(self.begin)
        self.ids[False, int(self.trace.scid[row])] = len(self.begin)
        self.on_path.setdefault(int(self.trace.path[row]), []).append(len(self.begin))
        self.begin.append(row)
        self.answered.append(False)
        self.highest.append(-1)

    def short(self, row: int, last: int) -> int:
        """The connection of a packet without a long header; ``last`` is the one that was begun last before it."""
        dcid, from_server = int(self.trace.dcid[row]), bool(self.trace.from_server[row])
        if dcid and (not from_server, dcid) in self.ids:
            return self.ids[not from_server, dcid]
        on_path = [each for each in self.on_path.get(int(self.trace.path[row]), ()) if each <= last]
        return on_path[-1] if on_path else last
