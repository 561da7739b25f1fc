"""Checks of functional tests that concern the network: ECN marks, amplification limit, connection ids; pure."""

from __future__ import annotations

import numpy as np

from quicsat.analysis.run_outcome import failed, frames_of
from quicsat.analysis.session_checks import closed, sealed
from quicsat.model.arrays import Flags
from quicsat.model.outcomes import ErrorCode, Verdict
from quicsat.model.text import counted
from quicsat.traces.columns import Form, Trace

ECT_1, ECT_0, CE = 1, 2, 3
"""RFC 3168, section 5."""
SPACES = {
    "Initial": (Form.INITIAL,),
    "Handshake": (Form.HANDSHAKE,),
    "application": (Form.ZERO_RTT, Form.ONE_RTT),
}
"""Packet number spaces (RFC 9000, section 12.3)."""
LIMIT = 3
"""What a server may send for each byte that it has received (RFC 9000, section 8.1)."""
LONG_FLIGHT = 7500
"""Bytes of handshake that prove that the long chain of certificates was sent."""
SAFE_ID = 8
"""Bytes of a connection id that cannot be guessed: 64 bits (RFC 9000, section 8.1)."""


# ---- ECN ------------------------------------------------------------------------------------


def ecn(client: Trace, server: Trace) -> Verdict | None:
    """Whether each side marked packets, and reported the other's marks truly (RFC 9000, section 13.4).

    Nothing on the way marks CE or takes marks off, so a report may not tell of more marked packets than arrived
    (section 13.4.2.1). If marked packets of the application space are acknowledged, a report of them has to be there.
    """
    for sender, receiver, from_server in ((client, server, False), (server, client, True)):
        verdict = marks(sender, np.ones(len(sender), dtype=np.bool_), from_server=from_server) or _reports(
            receiver, from_server
        )
        if verdict is not None:
            return verdict
    return None


def marks(sender: Trace, chosen: Flags, *, from_server: bool) -> Verdict | None:
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


# ---- amplification --------------------------------------------------------------------------


def amplification_limit(server: Trace) -> Verdict | None:
    """Whether the server sent at most three times what it had received, until the client proved its address.

    RFC 9000, section 8.1: all of the client's datagrams count; a Handshake packet proves the address, and so does a
    connection id of the server's choice that cannot be guessed. The flight must have been long enough to come to the
    limit.
    """
    flight = server.crypto
    of_server = server.from_server[flight.packet] & (server.form[flight.packet] == Form.HANDSHAKE)
    if not of_server.any():
        return sealed("the server's Handshake packets")
    if (short := long_flight(server)) is not None:
        return short
    received = sent = 0
    validating = _validating(server)
    for first in np.flatnonzero(server.size > 0).tolist():
        size = int(server.size[first])
        packets = np.flatnonzero(server.frame == server.frame[first])
        if server.from_server[first]:
            sent += size
            if sent > LIMIT * received:
                return amplified(sent, received, int(server.frame[first]))
        elif validating[packets].any():
            return None
        else:
            received += size
    return failed(ErrorCode.AMPLIFICATION, "The client never proved its address.")


def long_flight(server: Trace) -> Verdict | None:
    """Whether the server's handshake is long enough to come to the limit."""
    flight = server.crypto
    of_server = server.from_server[flight.packet] & (server.form[flight.packet] == Form.HANDSHAKE)
    longest = int((flight.offset + flight.length)[of_server].max(initial=0))
    if longest >= LONG_FLIGHT:
        return None
    reason = f"The server's handshake had {counted(longest, 'byte')}, not {LONG_FLIGHT}: too few to come to the limit."
    return failed(ErrorCode.CHAIN_TOO_SHORT, reason)


def amplified(sent: int, received: int, frame: int) -> Verdict:
    """The verdict on a server that sent too much."""
    reason = f"The server had sent {counted(sent, 'byte')} for {received} received, before it knew the client's address"
    return failed(ErrorCode.AMPLIFICATION, f"{reason} (frame {frame}).")


def _validating(server: Trace) -> Flags:
    """Packets that prove the client's address."""
    chosen = [number for number, each in enumerate(server.connection_ids) if len(each) >= 2 * SAFE_ID]
    chosen = sorted({*chosen} & {*server.scid[server.from_server].tolist()})
    proof: Flags = ~server.from_server & ((server.form == Form.HANDSHAKE) | np.isin(server.dcid, chosen))
    return proof
