"""Goodput and handshake time of runs over TCP, from packets; pure."""

from __future__ import annotations

from quicsat.analysis.metrics import first_and_last, rate_during
from quicsat.traces.tcp import SYN, TcpTrace, finished_handshake, response_rows


def goodput(client: TcpTrace, size: int) -> float | None:
    """As ``metrics.goodput``, over TCP: from the first to the last segment with payload that the server sent after the
    handshake; bit/s. Like QUIC's 1-RTT packets these hold session tickets besides the response.
    """
    return rate_during(size, goodput_interval(client))


def goodput_interval(client: TcpTrace) -> tuple[float, float] | None:
    """Times of the first and last of these segments, in the client's trace; None if there is none."""
    since = finished_handshake(client)
    return None if since is None else first_and_last(client.time[response_rows(client, since)])


def handshake_time(client: TcpTrace) -> float | None:
    """Seconds from the client's first SYN to its first request: TCP and TLS together."""
    syns = client.time[~client.from_server & (client.flags & SYN > 0)]
    since = finished_handshake(client)
    return since - float(syns.min()) if since is not None and len(syns) else None
