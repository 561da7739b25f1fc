"""A: the server respects the anti-amplification limit; pure."""

from __future__ import annotations

import numpy as np

from quicsat.analysis.functional_tests.rule import Observation, connections, rule, sealed
from quicsat.analysis.run_outcome import failed
from quicsat.model.arrays import Flags
from quicsat.model.outcomes import Check, ErrorCode, Verdict
from quicsat.model.text import counted
from quicsat.traces.columns import Form, Trace

LIMIT = 3
"""What a server may send for each byte that it has received (RFC 9000, section 8.1)."""
TOLERATED = 4
"""What a server may send for each byte of the datagrams that begin with an Initial."""
LONG_FLIGHT = 7500
"""Bytes of handshake that prove that the long chain of certificates was sent."""
SAFE_ID = 8
"""Bytes of a connection id that cannot be guessed: 64 bits (RFC 9000, section 8.1)."""


@rule(
    Check.AMPLIFICATION_LIMIT,
    requirement=(
        "the server's handshake has at least 7500 bytes, and respects the [anti-amplification limit](#a-anti-"
        "amplification-limit)"
    ),
    rfc="9000: 8.1",
    qir=(
        "looks only at the first packet of each datagram; counts only datagrams that begin with an Initial; accepts "
        "less than four times the received bytes; fails if there is Version Negotiation"
    ),
    needs_keys=True,
)
def amplification_limit(seen: Observation) -> Verdict | None:
    return connections(seen) or (upstream if seen.upstream else standard)(seen.server)


def standard(server: Trace) -> Verdict | None:
    """Whether the server sent at most three times what it had received, until the client proved its address.

    RFC 9000, section 8.1: all of the client's datagrams count; a Handshake packet proves the address, and so does a
    connection id of the server's choice that cannot be guessed. The flight must have been long enough to come to the
    limit.
    """
    flight = server.crypto
    of_server = server.from_server[flight.packet] & (server.form[flight.packet] == Form.HANDSHAKE)
    if not of_server.any():
        return sealed("the server's Handshake packets")
    if (short := _long_flight(server)) is not None:
        return short
    received = sent = 0
    validating = _validating(server)
    for first in np.flatnonzero(server.size > 0).tolist():
        size = int(server.size[first])
        packets = np.flatnonzero(server.frame == server.frame[first])
        if server.from_server[first]:
            sent += size
            if sent > LIMIT * received:
                return _amplified(sent, received, int(server.frame[first]))
        elif validating[packets].any():
            return None
        else:
            received += size
    return failed(ErrorCode.AMPLIFICATION, "The client never proved its address.")


def _long_flight(server: Trace) -> Verdict | None:
    """Whether the server's handshake is long enough to come to the limit."""
    flight = server.crypto
    of_server = server.from_server[flight.packet] & (server.form[flight.packet] == Form.HANDSHAKE)
    longest = int((flight.offset + flight.length)[of_server].max(initial=0))
    if longest >= LONG_FLIGHT:
        return None
    reason = f"The server's handshake had {counted(longest, 'byte')}, not {LONG_FLIGHT}: too few to come to the limit."
    return failed(ErrorCode.CHAIN_TOO_SHORT, reason)


def _amplified(sent: int, received: int, frame: int) -> Verdict:
    """The verdict on a server that sent too much."""
    reason = f"The server had sent {counted(sent, 'byte')} for {received} received, before it knew the client's address"
    return failed(ErrorCode.AMPLIFICATION, f"{reason} (frame {frame}).")


def _validating(server: Trace) -> Flags:
    """Packets that prove the client's address."""
    chosen = [number for number, each in enumerate(server.connection_ids) if len(each) >= 2 * SAFE_ID]
    chosen = sorted({*chosen} & {*server.scid[server.from_server].tolist()})
    proof: Flags = ~server.from_server & ((server.form == Form.HANDSHAKE) | np.isin(server.dcid, chosen))
    return proof


def upstream(server: Trace) -> Verdict | None:
    """Whether no datagram of the server's used up four times the bytes of the client's Initials that were left.

    By the first packets of datagrams, until one is a Handshake packet of the client's.
    """
    short = _long_flight(server)
    if short is not None:
        return short
    received = sent = 0
    for row in np.flatnonzero(server.size > 0).tolist():
        form, size = server.form[row], int(server.size[row])
        if form in (Form.VERSION_NEGOTIATION, Form.UNKNOWN):
            reason = f"The trace shows Version Negotiation, or a packet of unknown kind (frame {server.frame[row]})."
            return failed(ErrorCode.AMPLIFICATION, reason)
        if server.from_server[row]:
            sent += size
            if sent >= TOLERATED * received:
                return _amplified(sent, received, int(server.frame[row]))
        elif form == Form.HANDSHAKE:
            return None
        elif form == Form.INITIAL:
            received += size
    return failed(ErrorCode.AMPLIFICATION, "No datagram of the client's begins with a Handshake packet.")
