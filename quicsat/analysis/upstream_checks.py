"""The rules of the QUIC Interop Runner (commit 1d6f655), which judge functional tests with ``--strict-upstream``; pure.

They are that runner's even where the RFCs ask for more or for less. It reads packets with pyshark, which gives only the
first of several fields of the same name in a packet, and only the first QUIC packet of a datagram in some of its rules.
What a rule needs and no key opens fails it. ``path_checks`` has the rules on new paths, with ``upstream``;
docs/reference/functional-tests.md states what these rules cannot copy.
"""

from __future__ import annotations

import numpy as np

from quicsat.analysis import handshake_checks, network_checks, path_checks, run_outcome, session_checks
from quicsat.analysis.run_outcome import failed, frames_of
from quicsat.model.outcomes import ErrorCode, Verdict
from quicsat.model.text import counted
from quicsat.traces.columns import Form, Message, Trace

TOLERATED = 4
"""What a server may send for each byte of the datagrams that begin with an Initial."""
LATE_BYTES = 5000
"""Bytes of 1-RTT payload that the client may send in the 0-RTT test: half of 40 requests of 250 bytes."""


def connections(server: Trace, expected: int = 1) -> Verdict | None:
    """The number of handshakes, and version 1 in all of them."""
    return handshakes(server, expected) or run_outcome.version(server)


def handshakes(server: Trace, expected: int = 1) -> Verdict | None:
    """The number of handshakes, by the source connection ids of the server's Initials."""
    found = len(set(server.scid[server.from_server & (server.form == Form.INITIAL)].tolist()))
    if found == expected:
        return None
    reason = f"The server's Initials have {found} source connection ids instead of {expected}."
    return failed(ErrorCode.HANDSHAKE_COUNT, reason)


def version_negotiation(client: Trace) -> Verdict | None:
    """Whether Version Negotiation has the destination connection id of the client's first packet as its source."""
    ours = np.flatnonzero(~client.from_server & (client.version >= 0))
    answers = np.flatnonzero(client.form == Form.VERSION_NEGOTIATION)
    if not len(ours) or not len(answers):
        return failed(ErrorCode.VERSION_NEGOTIATION, "The client's trace shows no Version Negotiation.")
    if (client.scid[answers] == client.dcid[ours[0]]).any():
        return None
    reason = f"No Version Negotiation answers the client's first packet ({frames_of(client, ours[:1])})."
    return failed(ErrorCode.CONNECTION_IDS, reason)


def long_rtt(client: Trace) -> Verdict | None:
    """Whether the client sent its ClientHello twice."""
    hellos = np.unique(client.crypto.packet[client.crypto.offset == 0])
    hellos = hellos[~client.from_server[hellos] & (client.form[hellos] == Form.INITIAL)]
    if len(hellos) >= 2:
        return None
    reason = f"The client sent its ClientHello {counted(len(hellos), 'time')}, not twice ({frames_of(client, hellos)})."
    return failed(ErrorCode.HELLO_NOT_REPEATED, reason)


def chacha20(client: Trace) -> Verdict | None:
    """Whether the first cipher suite of each ClientHello is ChaCha20."""
    first = [connection.offered[0] for connection in client.connections if connection.offered]
    if {*first} == {session_checks.CHACHA20}:
        return None
    offered = session_checks.suites(sorted({*first}))
    return failed(ErrorCode.WRONG_CIPHER, f"The client offered {offered} first, not 0x1303.")


def multiplexing(client: Trace) -> Verdict | None:
    """Whether the server stated initial_max_streams_bidi, of at most 1000."""
    stated = [each.server_parameters.get("initial_max_streams_bidi") for each in client.connections]
    limits = [int(limit) for limit in stated if limit is not None]
    if not limits:
        return failed(ErrorCode.STREAM_LIMIT, "The trace does not show the server's initial_max_streams_bidi.")
    return session_checks.stream_limit(max(limits))


def retry(client: Trace) -> Verdict | None:
    """Whether an Initial has the token of a Retry, and those with a token have higher numbers than all before them."""
    retries = np.flatnonzero(client.from_server & (client.form == Form.RETRY))
    missing = handshake_checks.retry_token(client, retries)
    if missing is not None:
        return missing
    highest = -1
    for row in np.flatnonzero(~client.from_server & (client.form == Form.INITIAL)).tolist():
        number = int(client.number[row])
        if not client.token[row]:
            highest = max(highest, number)
        elif number <= highest:
            return handshake_checks.number_reset(client, np.array([row]), highest)
        elif client.token[row] in client.token[retries]:
            return None
    return failed(ErrorCode.RETRY_TOKEN, f"No Initial has the token of the Retry ({frames_of(client, retries)}).")


def resumption(client: Trace) -> Verdict | None:
    """Whether certificates came under the first, and not under the last source connection id of Handshake packets."""
    flights = np.flatnonzero(client.from_server & (client.form == Form.HANDSHAKE))
    ids = client.scid[flights]
    if len(flights) and not np.isin(ids, (ids[0], ids[-1])).all():
        reason = f"The server's Handshake packets have {len({*ids.tolist()})} source connection ids instead of 2."
        return failed(ErrorCode.HANDSHAKE_COUNT, reason)
    certificates = client.messages.packet[client.messages.kind == Message.CERTIFICATE]
    certificates = certificates[client.from_server[certificates]]
    first = client.scid[certificates] == (ids[0] if len(ids) else -1)
    if not first.all():
        reason = f"The server sent a certificate in the second handshake ({frames_of(client, certificates[~first])})."
        return failed(ErrorCode.CERTIFICATE_RESENT, reason)
    if not len(certificates):
        return failed(ErrorCode.CERTIFICATE_MISSING, "The trace shows no certificate in the first handshake.")
    return None


def zero_rtt(client: Trace) -> Verdict | None:
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


def key_update(client: Trace, server: Trace) -> Verdict | None:
    """Whether the key phase of all 1-RTT packets can be read, and both sides have some in key phase 1."""
    for trace, from_server, side in ((client, False, "client"), (server, True, "server")):
        packets = np.flatnonzero((trace.from_server == from_server) & (trace.form == Form.ONE_RTT))
        closed = packets[trace.key_phase[packets] < 0]
        if len(closed):
            reason = f"No key shows the key phase of packets of the {side} ({frames_of(trace, closed)})."
            return failed(ErrorCode.KEY_UPDATE_MISSING, reason)
        if not (trace.key_phase[packets] == 1).any():
            return session_checks.not_updated(side, len(packets))
    return None


def ecn(client: Trace, server: Trace) -> Verdict | None:
    """Whether each side marked packets of IPv4, none of them CE, and sent an ACK frame with ECN counts.

    The ACK frame has to be in the first QUIC packet of a datagram. The counts may be 0.
    """
    for trace, from_server in ((client, False), (server, True)):
        verdict = network_checks.marks(trace, path_checks.is_ipv4(trace), from_server=from_server)
        if verdict is not None:
            return verdict
        reports = trace.acks.packet[trace.acks.ect0 >= 0]
        if not ((trace.from_server[reports] == from_server) & (trace.size[reports] > 0)).any():
            side = "server" if from_server else "client"
            return failed(ErrorCode.ECN, f"The {side} sent no ACK frame with ECN counts.")
    return None


def amplification_limit(server: Trace) -> Verdict | None:
    """Whether no datagram of the server's used up four times the bytes of the client's Initials that were left.

    By the first packets of datagrams, until one is a Handshake packet of the client's.
    """
    short = network_checks.long_flight(server)
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
                return network_checks.amplified(sent, received, int(server.frame[row]))
        elif form == Form.HANDSHAKE:
            return None
        elif form == Form.INITIAL:
            received += size
    return failed(ErrorCode.AMPLIFICATION, "No datagram of the client's begins with a Handshake packet.")


def ipv6(server: Trace) -> Verdict | None:
    """Whether the server sent no packet of IPv4."""
    rows = np.flatnonzero(server.from_server & path_checks.is_ipv4(server))
    if not len(rows):
        return None
    reason = (
        f"The server's trace shows {counted(len(rows), 'packet')} of IPv4, the first in frame {server.frame[rows[0]]}."
    )
    return failed(ErrorCode.IPV4_USED, reason)
