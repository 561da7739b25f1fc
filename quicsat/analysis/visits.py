"""Times of a first visit to a server and of a second one that resumes its session, from the client's trace; pure."""

from __future__ import annotations

import numpy as np

from quicsat.traces.columns import Trace
from quicsat.traces.streams import new_bytes, response_frames

MARKS = {"first_byte": 1, "to_100_kb": 100_000, "to_1_mb": 1_000_000}
"""Ends of the names of metrics -> bytes of responses."""


def visit_times(client: Trace) -> dict[str, float]:
    """Seconds from the client's first packet on a connection until so many bytes of responses have arrived on it.

    The first visit is the first connection, the second one the next connection whose session the server resumed. Times
    of a visit with fewer bytes are missing; all are if there is no second visit.
    """
    order = list(dict.fromkeys(client.connection[client.connection >= 0].tolist()))
    second = next((each for each in order[1:] if client.connections[each].resumed), None)
    if second is None:
        return {}
    visits = {"first_visit": order[0], "second_visit": second}
    return {
        f"{visit}_{mark}": time
        for visit, connection in visits.items()
        for mark, amount in MARKS.items()
        if (time := _time_to(client, connection, amount)) is not None
    }


def _time_to(client: Trace, connection: int, amount: int) -> float | None:
    packets = client.frames.packet
    rows = response_frames(client) & (client.connection[packets] == connection)
    reached = np.flatnonzero(new_bytes(client)[rows].cumsum() >= amount)
    begin = client.time[(client.connection == connection) & ~client.from_server]
    if not len(reached) or not len(begin):
        return None
    return float(client.time[packets[rows][reached[0]]] - begin[0])
