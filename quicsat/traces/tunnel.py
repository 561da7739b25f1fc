"""How many bytes a VPN adds to each packet, from the traces inside and outside its tunnel."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

from quicsat.model.bounds import LEAST_PACKETS
from quicsat.traces.network import ip_size, segment
from quicsat.traces.records import DamagedTraceError, records

SERVER_GATEWAY = ip_address("193.167.100.4").packed
"""Source of the tunnel's packets towards the client."""


def tunnel_overhead(endpoint: Path, tunnel: Path, most: int = LEAST_PACKETS) -> float | None:
    """Mean bytes that the tunnel adds per packet of the server that arrived; None if none did, or a trace is damaged.

    ``endpoint``: trace of the packets that the client receives; ``tunnel``: of the tunnel's packets at the same end of
    the link. The tunnel's packets count since the first packet for the client: those before made the tunnel.
    """
    try:
        packets = size = carried = 0
        first = None
        for record in records(endpoint, most):
            found = segment(record)
            if found is not None and found.from_server:
                first = record.time if first is None else first
                packets += 1
                size += ip_size(record)[1]
        if first is None:
            return None
        before = 0
        for record in records(tunnel, 2 * most):  # a packet of an endpoint may need two in the tunnel
            source, length = ip_size(record)
            if source != SERVER_GATEWAY:
                continue
            if record.time < first:
                before = length  # the last of them carries the first packet
            else:
                carried += length
    except (DamagedTraceError, OSError):
        return None
    return (before + carried - size) / packets
