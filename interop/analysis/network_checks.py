"""Checks of functional tests that concern the network: ECN marks, amplification limit, connection ids; pure."""

from __future__ import annotations

import numpy as np

from interop.analysis.path_checks import is_ipv4
from interop.analysis.run_outcome import failed, frames_of
from interop.analysis.session_checks import sealed
from interop.model.arrays import Flags
from interop.model.outcomes import ErrorCode, Verdict
from interop.traces.columns import Form, Trace

ECT_1, ECT_0, CE = 1, 2, 3
"""RFC 3168, section 5."""
SPACES = {
    "Initial": (Form.INITIAL,),
    "Handshake": (Form.HANDSHAKE,),
    "application": (Form.ZERO_RTT, Form.ONE_RTT),
}
"""Packet number spaces (RFC 9000, section 12.3)."""
LIMIT, TOLERATED = 3, 4
"""What a server may send for each byte that it has received (RFC 9000, section 8.1); upstream tolerates more."""
LONG_FLIGHT = 7500
"""Bytes of handshake that prove that the long chain of certificates was sent."""
SAFE_ID = 8
"""Bytes of a connection id that cannot be guessed: 64 bits (RFC 9000, section 8.1)."""


# ---- ECN ------------------------------------------------------------------------------------


def ecn(client: Trace, server: Trace, *, upstream: bool = False) -> Verdict | None:
    """Whether each side marked packets, and reported the other's marks truly (RFC 9000, section 13.4).

    Nothing on the way marks CE or takes marks off, so a report may not tell of more marked packets than arrived
    (section 13.4.2.1). Upstream looks at IPv4 only, and not at the numbers.
    """
    for sender, receiver, from_server in ((client, server, False), (server, client, True)):
        verdict = _marks(sender, from_server, upstream) or _reports(sender, receiver, from_server, upstream)
        if verdict is not None:
            return verdict
    return None


def _marks(sender: Trace, from_server: bool, upstream: bool) -> Verdict | None:
    """Whether a side marked packets as ECN capable, and none as having met congestion."""
    sent = (sender.from_server == from_server) & (is_ipv4(sender) if upstream else np.True_)
    side = "server" if from_server else "client"
    congested = np.flatnonzero(sent & (sender.ecn == CE))
    if len(congested):
        reason = f"The {side} sent packets that were marked CE already ({frames_of(sender, congested)})."
        return failed(ErrorCode.ECN, reason)
    if np.isin(sender.ecn[sent], (ECT_0, ECT_1)).any():
        return None
    return failed(ErrorCode.ECN, f"The {side} marked none of its {int(sent.sum())} packets as ECN capable.")


def _reports(sender: Trace, receiver: Trace, from_server: bool, upstream: bool) -> Verdict | None:
    """Whether the other side reported the marks that arrived there."""
    acks, side = receiver.acks, "client" if from_server else "server"
    reported = (receiver.from_server[acks.packet] != from_server) & (acks.ect0 >= 0)
    if not (receiver.decrypted & (receiver.from_server != from_server)).any():
        return sealed(f"the {side}'s packets")
    marked = reported & ((acks.ect0 > 0) | (acks.ect1 > 0) if not upstream else (acks.ect0 > 0))
    if not marked.any():
        return failed(ErrorCode.ECN, f"The {side} acknowledged marked packets, but never reported the marks.")
    if upstream:
        return None
    arrived = (receiver.from_server == from_server) & (receiver.form != Form.UNKNOWN)
    for space, forms in SPACES.items():
        here = reported & np.isin(receiver.form[acks.packet], forms)
        for name, column, mark in (("ECT(0)", acks.ect0, ECT_0), ("ECT(1)", acks.ect1, ECT_1), ("CE", acks.ce, CE)):
            most = int(column[here].max(initial=0))
            there = int((arrived & np.isin(receiver.form, forms) & (receiver.ecn == mark)).sum())
            if most > there:
                where = frames_of(receiver, acks.packet[here & (column == most)][:1])
                reason = (
                    f"The {side} reported {most} packets of the {space} space with {name} ({where}); {there} arrived."
                )
                return failed(ErrorCode.ECN, reason)
    return None


# ---- amplification --------------------------------------------------------------------------


def amplification_limit(server: Trace, *, upstream: bool = False) -> Verdict | None:
    """Whether the server sent at most three times what it had received, until the client proved its address.

    RFC 9000, section 8.1: all of the client's datagrams count; a Handshake packet proves the address, and so does a
    connection id of the server's choice that cannot be guessed. Upstream counts datagrams with an Initial, waits for a
    Handshake packet, and lets up to four times pass. The flight must have been long enough to come to the limit.
    """
    flight = server.crypto
    of_server = server.from_server[flight.packet] & (server.form[flight.packet] == Form.HANDSHAKE)
    if not of_server.any():
        return sealed("the server's Handshake packets")
    longest = int((flight.offset + flight.length)[of_server].max())
    if longest < LONG_FLIGHT:
        reason = f"The server's handshake had {longest} bytes, not {LONG_FLIGHT}: too few to come to the limit."
        return failed(ErrorCode.CHAIN_TOO_SHORT, reason)
    received = sent = 0
    validating, counted = _validating(server, upstream=upstream), _counted(server, upstream=upstream)
    for first in np.flatnonzero(server.size > 0).tolist():
        size = int(server.size[first])
        packets = np.flatnonzero(server.frame == server.frame[first])
        if server.from_server[first]:
            sent += size
            if sent > (TOLERATED if upstream else LIMIT) * received:
                reason = (
                    f"The server had sent {sent} bytes for {received} received, before it knew the client's address "
                    f"(frame {server.frame[first]})."
                )
                return failed(ErrorCode.AMPLIFICATION, reason)
        elif validating[packets].any():
            return None
        elif counted[packets].any():
            received += size
    return failed(ErrorCode.AMPLIFICATION, "The client never proved its address.")


def _validating(server: Trace, *, upstream: bool) -> Flags:
    """Packets that prove the client's address."""
    handshake: Flags = ~server.from_server & (server.form == Form.HANDSHAKE)
    if upstream:
        return handshake
    chosen = [number for number, each in enumerate(server.connection_ids) if len(each) >= 2 * SAFE_ID]
    chosen = sorted({*chosen} & {*server.scid[server.from_server].tolist()})
    by_id: Flags = ~server.from_server & np.isin(server.dcid, chosen)
    return handshake | by_id


def _counted(server: Trace, *, upstream: bool) -> Flags:
    """Packets of the client's that let the server send."""
    counted: Flags = ~server.from_server & ((server.form == Form.INITIAL) if upstream else np.True_)
    return counted
