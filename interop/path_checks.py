"""Checks of functional tests that look at the addresses between which packets travel; pure."""

from __future__ import annotations

from ipaddress import ip_address

import numpy as np

from interop.checks import failed
from interop.columns import Flags, Trace
from interop.model import ErrorCode, Verdict


def ends(path: str) -> tuple[str, str, str, str]:
    """``193.167.0.100:4433 fd00::1:443`` -> client's address and port, server's address and port."""
    client, server = (end.rpartition(":") for end in path.split(" "))
    return client[0], client[2], server[0], server[2]


def ipv6(client: Trace, server: Trace, *, upstream: bool = False) -> Verdict | None:
    """Whether all packets are of IPv6; upstream looks at what the server sends, where it sends it."""
    seen = ((server, server.from_server, "server's"),)
    everything = ((trace, np.ones(len(trace), dtype=np.bool_), side) for trace, side in _sides(client, server))
    for trace, chosen, side in seen if upstream else everything:
        rows = np.flatnonzero(chosen & _is_ipv4(trace))
        if len(rows):
            reason = f"The {side} trace shows {len(rows)} packets of IPv4, the first in frame {trace.frame[rows[0]]}."
            return failed(ErrorCode.IPV4_USED, reason)
    return None


def _sides(client: Trace, server: Trace) -> tuple[tuple[Trace, str], ...]:
    return (client, "client's"), (server, "server's")


def _is_ipv4(trace: Trace) -> Flags:
    of_path = np.array([ip_address(ends(path)[2]).version == 4 for path in trace.paths], dtype=np.bool_)
    return of_path[trace.path] if len(trace) else np.zeros(0, dtype=np.bool_)
