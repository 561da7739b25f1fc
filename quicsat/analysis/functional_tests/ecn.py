"""E: both sides mark packets as ECN capable, and report the other's marks; pure."""

from __future__ import annotations

import numpy as np

from quicsat.analysis.functional_tests.handshake import no_retry
from quicsat.analysis.functional_tests.ipv6 import is_ipv4
from quicsat.analysis.functional_tests.rule import Observation, closed, connections, rule, sealed
from quicsat.analysis.run_outcome import failed, frames_of
from quicsat.model.arrays import Flags
from quicsat.model.outcomes import Check, ErrorCode, Verdict
from quicsat.model.text import counted
from quicsat.traces.columns import Form, Trace

ECT_1, ECT_0, CE = 1, 2, 3
"""RFC 3168, section 5."""
SPACES = {"Initial": (Form.INITIAL,), "Handshake": (Form.HANDSHAKE,), "application": (Form.ZERO_RTT, Form.ONE_RTT)}
"""Packet number spaces (RFC 9000, section 12.3)."""


@rule(
    Check.ECN,
    requirement=(
        "no Retry; both sides mark packets as ECT(0) or ECT(1), and none as CE; both report ECN counts, in 1-RTT "
        "packets if they acknowledge marked 1-RTT packets; in no packet number space do these counts exceed the "
        "number of packets that arrived"
    ),
    rfc="9000: 13.4",
    qir=(
        "accepts only IPv4; requires one ACK frame with ECN counts in the first packet of a datagram, even if the "
        "counts are 0"
    ),
    needs_keys=True,
)
def ecn(seen: Observation) -> Verdict | None:
    return (
        no_retry(seen.client)
        or connections(seen)
        or (upstream if seen.upstream else standard)(seen.client, seen.server)
    )


def standard(client: Trace, server: Trace) -> Verdict | None:
    """Whether each side marked packets, and reported the other's marks truly (RFC 9000, section 13.4).

    Nothing on the way marks CE or takes marks off, so a report may not tell of more marked packets than arrived
    (section 13.4.2.1). If marked packets of the application space are acknowledged, a report of them has to be there.
    """
    for sender, receiver, from_server in ((client, server, False), (server, client, True)):
        verdict = _marks(sender, np.ones(len(sender), dtype=np.bool_), from_server=from_server) or _reports(
            receiver, from_server
        )
        if verdict is not None:
            return verdict
    return None


def _marks(sender: Trace, chosen: Flags, *, from_server: bool) -> Verdict | None:
    """Whether a side marked some of the chosen packets as ECN capable, and none as having met congestion."""
    sent = (sender.from_server == from_server) & chosen
    side = "server" if from_server else "client"
    congested = np.flatnonzero(sent & (sender.ecn == CE))
    if len(congested):
        reason = f"The {side} sent packets that were marked CE already ({frames_of(sender, congested)})."
        return failed(ErrorCode.ECN, reason)
    if np.isin(sender.ecn[sent], (ECT_0, ECT_1)).any():
        return None
    return failed(ErrorCode.ECN, f"The {side} marked none of its {counted(int(sent.sum()), 'packet')} as ECN capable.")


def _reports(receiver: Trace, from_server: bool) -> Verdict | None:
    """Whether the other side reported the marks that arrived there."""
    acks, side = receiver.acks, "client" if from_server else "server"
    reported = (receiver.from_server[acks.packet] != from_server) & (acks.ect0 >= 0)
    if closed(receiver, from_server=not from_server):  # Initials need no key log
        return sealed(f"the {side}'s 1-RTT packets")
    marked = reported & ((acks.ect0 > 0) | (acks.ect1 > 0))
    if not marked.any():
        return failed(ErrorCode.ECN, f"The {side} acknowledged marked packets, but never reported the marks.")
    arrived = (receiver.from_server == from_server) & (receiver.form != Form.UNKNOWN)
    application = np.isin(receiver.form, SPACES["application"])
    capable = arrived & application & receiver.decrypted & np.isin(receiver.ecn, (ECT_0, ECT_1))
    late = (receiver.from_server[acks.packet] != from_server) & application[acks.packet]
    late &= acks.largest >= receiver.number[capable].min(initial=np.iinfo(np.int64).max)
    if late.any() and not (marked & application[acks.packet]).any():
        where = frames_of(receiver, acks.packet[late])
        reason = f"The {side} reported marks during the handshake, and none of the application space ({where})."
        return failed(ErrorCode.ECN, reason)
    for space, forms in SPACES.items():
        here = reported & np.isin(receiver.form[acks.packet], forms)
        for name, column, mark in (("ECT(0)", acks.ect0, ECT_0), ("ECT(1)", acks.ect1, ECT_1), ("CE", acks.ce, CE)):
            most = int(column[here].max(initial=0))
            there = int((arrived & np.isin(receiver.form, forms) & (receiver.ecn == mark)).sum())
            if most > there:
                where = frames_of(receiver, acks.packet[here & (column == most)][:1])
                reason = (
                    f"The {side} reported {counted(most, 'packet')} of the {space} space with "
                    f"{name} ({where}); {there} arrived."
                )
                return failed(ErrorCode.ECN, reason)
    return None


def upstream(client: Trace, server: Trace) -> Verdict | None:
    """Whether each side marked packets of IPv4, none of them CE, and sent an ACK frame with ECN counts.

    The ACK frame has to be in the first QUIC packet of a datagram. The counts may be 0.
    """
    for trace, from_server in ((client, False), (server, True)):
        verdict = _marks(trace, is_ipv4(trace), from_server=from_server)
        if verdict is not None:
            return verdict
        reports = trace.acks.packet[trace.acks.ect0 >= 0]
        if not ((trace.from_server[reports] == from_server) & (trace.size[reports] > 0)).any():
            side = "server" if from_server else "client"
            return failed(ErrorCode.ECN, f"The {side} sent no ACK frame with ECN counts.")
    return None
