"""U: one side updates the keys, and the other follows; pure."""

from __future__ import annotations

import numpy as np

from quicsat.analysis.functional_tests.rule import Observation, connections, rule, sealed
from quicsat.analysis.run_outcome import failed, frames_of
from quicsat.model.arrays import Flags
from quicsat.model.outcomes import Check, ErrorCode, Verdict
from quicsat.traces.columns import Form, Frame, Trace


@rule(
    Check.KEY_UPDATE,
    requirement=(
        "both sides send packets with updated keys, and the first such packet is not sent before the handshake is "
        "confirmed"
    ),
    rfc="9001: 4.1.2, 6.1, 6.2",
    qir="requires key phase 1 from both sides, in any order, and that every key phase is readable",
    needs_keys=True,
)
def key_update(seen: Observation) -> Verdict | None:
    return connections(seen) or (upstream if seen.upstream else standard)(seen.client, seen.server)


def standard(client: Trace, server: Trace) -> Verdict | None:
    """Whether one side updated the keys once it might, and the other followed (RFC 9001, sections 6.1 and 6.2).

    It might when the handshake was confirmed (section 4.1.2): the client by HANDSHAKE_DONE, or an acknowledgement in a
    1-RTT packet; the server when it could send HANDSHAKE_DONE. Which of them begins does not matter.
    """
    for trace, from_server, side in ((client, False, "client"), (server, True, "server")):
        if not _updated(trace, from_server=from_server).any():
            packets = (trace.from_server == from_server) & (trace.form == Form.ONE_RTT)
            if not trace.decrypted[packets].any():
                return sealed(f"the {side}'s 1-RTT packets")
            return _not_updated(side, int(packets.sum()))
    mine, theirs = (np.flatnonzero(_updated(client, from_server=side)) for side in (False, True))
    by_server = bool(len(theirs) and theirs[0] < mine[0])
    trace, side = (server, "server") if by_server else (client, "client")
    first = np.flatnonzero(_updated(trace, from_server=by_server))[:1]
    confirmations = trace.signals.packet[trace.signals.kind == Frame.HANDSHAKE_DONE]
    if not by_server:
        acks = trace.acks.packet[trace.form[trace.acks.packet] == Form.ONE_RTT]
        confirmations = np.concatenate([confirmations, acks])
    confirmations = confirmations[trace.from_server[confirmations]]
    if len(confirmations) and confirmations.min() < first[0] + by_server:
        return None
    reason = f"The {side} updated the keys ({frames_of(trace, first)}) before the handshake was confirmed."
    return failed(ErrorCode.KEY_UPDATE_ORDER, reason)


def _updated(trace: Trace, *, from_server: bool) -> Flags:
    updated: Flags = (trace.from_server == from_server) & trace.decrypted & (trace.generation > 0)
    return updated


def _not_updated(side: str, packets: int) -> Verdict:
    """The verdict on a side that never used new keys."""
    reason = f"The {side} sent {packets} 1-RTT packets, none of them with updated keys."
    return failed(ErrorCode.KEY_UPDATE_MISSING, reason)


def upstream(client: Trace, server: Trace) -> Verdict | None:
    """Whether the key phase of all 1-RTT packets can be read, and both sides have some in key phase 1."""
    for trace, from_server, side in ((client, False, "client"), (server, True, "server")):
        packets = np.flatnonzero((trace.from_server == from_server) & (trace.form == Form.ONE_RTT))
        closed = packets[trace.key_phase[packets] < 0]
        if len(closed):
            reason = f"No key shows the key phase of packets of the {side} ({frames_of(trace, closed)})."
            return failed(ErrorCode.KEY_UPDATE_MISSING, reason)
        if not (trace.key_phase[packets] == 1).any():
            return _not_updated(side, len(packets))
    return None
