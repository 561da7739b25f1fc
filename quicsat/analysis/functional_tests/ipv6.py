"""6: all packets are of IPv6; pure."""

from __future__ import annotations

from ipaddress import ip_address

import numpy as np

from quicsat.analysis.functional_tests.rule import Observation, connections, rule
from quicsat.analysis.run_outcome import failed
from quicsat.model.arrays import Flags
from quicsat.model.outcomes import Check, ErrorCode, Verdict
from quicsat.model.text import counted
from quicsat.traces.columns import Trace


@rule(
    Check.IPV6,
    requirement="neither trace contains IPv4 packets",
    qir="checks only the packets from the server in the server's trace",
)
def ipv6(seen: Observation) -> Verdict | None:
    return (upstream(seen.server) if seen.upstream else standard(seen.client, seen.server)) or connections(seen)


def standard(client: Trace, server: Trace) -> Verdict | None:
    """Whether all packets are of IPv6."""
    for trace, side in ((client, "client's"), (server, "server's")):
        rows = np.flatnonzero(is_ipv4(trace))
        if len(rows):
            reason = (
                f"The {side} trace shows {counted(len(rows), 'packet')} of IPv4, the first in frame "
                f"{trace.frame[rows[0]]}."
            )
            return failed(ErrorCode.IPV4_USED, reason)
    return None


def upstream(server: Trace) -> Verdict | None:
    """Whether the server sent no packet of IPv4."""
    rows = np.flatnonzero(server.from_server & is_ipv4(server))
    if not len(rows):
        return None
    reason = (
        f"The server's trace shows {counted(len(rows), 'packet')} of IPv4, the first in frame {server.frame[rows[0]]}."
    )
    return failed(ErrorCode.IPV4_USED, reason)


def is_ipv4(trace: Trace) -> Flags:
    """Which packets are of IPv4."""
    of_path = np.array([ip_address(ends(path)[2]).version == 4 for path in trace.paths], dtype=np.bool_)
    return of_path[trace.path] if len(trace) else np.zeros(0, dtype=np.bool_)


def ends(path: str) -> tuple[str, str, str, str]:
    """``193.167.0.100:4433 fd00::1:443`` -> client's address and port, server's address and port."""
    client, server = (end.rpartition(":") for end in path.split(" "))
    return client[0], client[2], server[0], server[2]
