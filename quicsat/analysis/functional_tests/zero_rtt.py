"""Z: a second connection asks for its files in 0-RTT packets; pure."""

from __future__ import annotations

import numpy as np

from quicsat.analysis.functional_tests.rule import Observation, connections, rule, sealed
from quicsat.analysis.run_outcome import failed, frames_of
from quicsat.model.arrays import Flags
from quicsat.model.outcomes import Check, ErrorCode, Verdict
from quicsat.model.text import counted
from quicsat.traces.columns import Form, Trace

EARLY_SHARE = 0.5
"""Share of the requests that must be early."""
LATE_BYTES = 5000
"""Bytes of 1-RTT payload that the client may send in the 0-RTT test: half of 40 requests of 250 bytes."""


@rule(
    Check.ZERO_RTT,
    requirement=(
        "the second connection has 0-RTT packets; on it, the server answers at least half of all requests without any"
        " part of them in a 1-RTT packet; see [Z](#z-0-rtt)"
    ),
    rfc="9001: 4.6",
    qir="limits the client's 1-RTT payload in both connections to 5000 bytes",
)
def zero_rtt(seen: Observation) -> Verdict | None:
    return connections(seen, 2) or (upstream if seen.upstream else standard)(seen.client)


def standard(client: Trace) -> Verdict | None:
    """Whether most requests were early, and the server took them (RFC 9001, section 4.6).

    A request is early if the server answered it on a connection with 0-RTT packets, and the client sent no byte of it
    in a 1-RTT packet, as it does with all of them if the server refuses. Packets that only the early keys open are not
    needed for that: not every endpoint logs these keys. A client may run into its congestion window or the remembered
    limits, so half of the requests of both connections is enough.
    """
    sent = ~client.from_server & (client.form == Form.ZERO_RTT)
    if not sent.any():
        return failed(ErrorCode.EARLY_DATA_MISSING, "The client sent no 0-RTT packet.")
    second = np.isin(client.connection, client.connection[sent]) & (client.form == Form.ONE_RTT)
    for side, packets in (("server", second & client.from_server), ("client", second & ~client.from_server)):
        if packets.any() and not (packets & client.decrypted).any():
            return sealed(f"the {side}'s 1-RTT packets")
    packets, frames = client.frames.packet, client.frames
    of_client = ~client.from_server[packets]
    late = of_client & second[packets] & (frames.length > 0)
    asked = _requests(client, frames.stream % 4 == 0)
    early = _requests(client, second[packets] & ~of_client) - _requests(client, late)
    if len(early) >= EARLY_SHARE * len(asked):
        return None
    taken = any(client.connections[number].early_data for number in {*client.connection[sent].tolist()} - {-1})
    refused = "" if taken else "; the server did not accept early data"
    where = f"; the client sent others in 1-RTT packets ({frames_of(client, packets[late])})" if late.any() else ""
    reason = f"Only {len(early)} of {counted(len(asked), 'request was', 'requests were')} early{refused}{where}."
    return failed(ErrorCode.EARLY_DATA_LATE, reason)


def _requests(client: Trace, chosen: Flags) -> set[tuple[int, int]]:
    """Connection and stream of the chosen STREAM frames that belong to requests."""
    rows = chosen & (client.frames.stream % 4 == 0)
    return set(
        zip(client.connection[client.frames.packet[rows]].tolist(), client.frames.stream[rows].tolist(), strict=True)
    )


def upstream(client: Trace) -> Verdict | None:
    """Whether there is a 0-RTT packet, and at most 5000 bytes of 1-RTT payload of the client's, whatever it is.

    The payload is what follows flags, connection id and a packet number of one byte. Packets that no key opens have
    none.
    """
    own = ~client.from_server
    if not (own & (client.form == Form.ZERO_RTT)).any():
        return failed(ErrorCode.EARLY_DATA_MISSING, "The client sent no 0-RTT packet.")
    late = np.flatnonzero(own & (client.form == Form.ONE_RTT) & client.decrypted)
    ids = np.array([len(each) // 2 for each in client.connection_ids], dtype=np.int64)
    payload = int((client.length[late] - ids[client.dcid[late]] - 2).sum())
    if payload <= LATE_BYTES:
        return None
    reason = f"The client sent {payload} bytes in 1-RTT packets, more than {LATE_BYTES} ({frames_of(client, late)})."
    return failed(ErrorCode.EARLY_DATA_LATE, reason)
