"""Times of a first visit to a server and of a second one that resumes its session, from the client's trace; pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quicsat.model.arrays import Floats, Integers
from quicsat.traces.columns import Connection, Trace
from quicsat.traces.http2 import FrameKind
from quicsat.traces.streams import new_bytes, response_frames
from quicsat.traces.tcp import TcpTrace

MARKS = {"first_byte": 1, "to_100_kb": 100_000, "to_1_mb": 1_000_000}
"""Ends of the names of metrics -> bytes of responses."""


def second_visit(client: Trace | TcpTrace) -> int | None:
    """The first connection after the first one whose session the server resumed; None if there is none."""
    known: Sequence[Connection] = client.handshakes if isinstance(client, TcpTrace) else client.connections
    order = list(dict.fromkeys(client.connection[client.connection >= 0].tolist()))
    return next((each for each in order[1:] if known[each].resumed), None)


def visit_times(client: Trace | TcpTrace) -> dict[str, float]:
    """Seconds from the client's first packet on a connection until so many bytes of responses have arrived on it.

    The first visit is the first connection, the second one that of :func:`second_visit`. Times of a visit with fewer
    bytes are missing; all are if there is no second visit. Over TCP, responses are those of HTTP/2.
    """
    order = list(dict.fromkeys(client.connection[client.connection >= 0].tolist()))
    second = second_visit(client)
    if second is None:
        return {}
    visits = {"first_visit": order[0], "second_visit": second}
    return {
        f"{visit}_{mark}": time
        for visit, connection in visits.items()
        for mark, amount in MARKS.items()
        if (time := _time_to(client, connection, amount)) is not None
    }


def _time_to(client: Trace | TcpTrace, connection: int, amount: int) -> float | None:
    times, sizes = _responses(client, connection)
    reached = np.flatnonzero(sizes.cumsum() >= amount)
    begin = client.time[(client.connection == connection) & ~client.from_server]
    return float(times[reached[0]] - begin[0]) if len(reached) and len(begin) else None


def _responses(client: Trace | TcpTrace, connection: int) -> tuple[Floats, Integers]:
    """When new bytes of responses arrived on a connection, and how many."""
    if isinstance(client, TcpTrace):
        frames = client.http2
        if frames is None:
            return np.empty(0), np.empty(0, dtype=np.int64)
        data = frames.from_server & (frames.kind == FrameKind.DATA) & (frames.connection == connection)
        return frames.time[data], frames.length[data]
    packets = client.frames.packet
    rows = response_frames(client) & (client.connection[packets] == connection)
    return client.time[packets[rows]], new_bytes(client)[rows]
