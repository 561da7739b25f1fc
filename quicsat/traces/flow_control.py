"""What flow control allows a server to send, as it knows (RFC 9000, section 4), and what it has sent; pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quicsat.model.arrays import Flags, Floats, Integers
from quicsat.traces.columns import Frame, Trace
from quicsat.traces.streams import new_bytes


@dataclass(frozen=True, eq=False)
class Steps:
    """A quantity that only grows: its value from each time on."""

    time: Floats
    """Ascending; the first one is before all others."""
    value: Integers

    def at(self, times: Floats) -> Integers:
        """The value at each of these times; 0 before the first step."""
        found: Integers = np.append(self.value, 0)[np.searchsorted(self.time, times, "right") - 1]
        return found


def busiest_connection(server: Trace) -> int | None:
    """The connection with most new data from the server; None if there is none."""
    ours = server.from_server[server.frames.packet]
    news, connection = new_bytes(server)[ours], server.connection[server.frames.packet[ours]]
    known = connection >= 0
    if not known.any():
        return None
    return int(np.bincount(connection[known], weights=news[known]).argmax())


def data_sent(server: Trace, times: Floats, connection: int, stream: int | None = None) -> Steps:
    """Bytes that the server had sent for the first time, on one stream or on all; ``times``: of the packets."""
    packet = server.frames.packet
    mine = server.from_server[packet] & (server.connection[packet] == connection)
    if stream is not None:
        mine &= server.frames.stream == stream
    return Steps(times[packet[mine]], np.cumsum(new_bytes(server)[mine]))


def connection_limit(server: Trace, times: Floats, connection: int) -> Steps:
    """Up to where the client lets the server send on all streams together, when the server has been told so."""
    initial = server.connections[connection].client_parameters.get("initial_max_data", 0)
    raised = _raised(server, connection, Frame.MAX_DATA)
    return _limit(initial, times[server.signals.packet[raised]], server.signals.first[raised])


def stream_limit(server: Trace, times: Floats, connection: int, stream: int) -> Steps:
    """The same for a stream that the client opened in both directions."""
    initial = server.connections[connection].client_parameters.get("initial_max_stream_data_bidi_local", 0)
    raised = _raised(server, connection, Frame.MAX_STREAM_DATA) & (server.signals.first == stream)
    return _limit(initial, times[server.signals.packet[raised]], server.signals.second[raised])


def _raised(server: Trace, connection: int, kind: Frame) -> Flags:
    signals = server.signals
    of_client = (server.connection[signals.packet] == connection) & ~server.from_server[signals.packet]
    raised: Flags = of_client & (signals.kind == kind)
    return raised


def _limit(initial: int | str, times: Floats, values: Integers) -> Steps:
    start = initial if isinstance(initial, int) else 0
    return Steps(np.append(-np.inf, times), np.maximum.accumulate(np.append(start, values)))
