"""How many connections a trace holds, told by connection ids, addresses and packet numbers."""

from __future__ import annotations

import numpy as np

from interop.traces.columns import Form, Trace


def handshakes(trace: Trace) -> int:
    """How many connections the server answered with an Initial, in the order of the client-side trace.

    A connection begins with an Initial of the client to a connection id that no other connection knows. It knows the
    one that the client invented and those that the server gave it, in a Retry or in its Initials, so neither a Retry
    nor a server that changes its mind counts twice (RFC 9000, section 7.2). Connections of one client are told apart
    by the id the client chose for itself, or by the addresses if it chose none; packet numbers that go on tell that a
    client has merely changed to a connection id that the server gave it where no Initial shows it, in
    NEW_CONNECTION_ID.
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
