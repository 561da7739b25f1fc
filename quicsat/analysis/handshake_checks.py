"""Checks of functional tests that look at how connections are set up: versions, Retry, sessions, HTTP/3; pure."""

from __future__ import annotations

import numpy as np

from quicsat.analysis.run_outcome import failed, frames_of
from quicsat.analysis.session_checks import closed
from quicsat.model.arrays import Integers
from quicsat.model.outcomes import ErrorCode, Verdict
from quicsat.model.text import counted, escaped
from quicsat.traces.columns import Form, Trace
from quicsat.traces.connections import handshakes

VERSION_1, VERSION_2 = 1, 0x6B3343CF
"""RFC 9000, section 15; RFC 9369, section 3.1."""


# ---- versions -------------------------------------------------------------------------------


def version_negotiation(client: Trace) -> Verdict | None:
    """Whether the server answered the client's first packet with Version Negotiation, and both ids in their places.

    RFC 9000, section 17.2.1: source and destination connection id are those of the packet it answers, exchanged.
    """
    ours = np.flatnonzero(~client.from_server & (client.version >= 0))
    answers = np.flatnonzero(client.from_server & (client.form == Form.VERSION_NEGOTIATION))
    if not len(ours) or not len(answers):
        reason = f"The client's trace shows {len(ours)} long headers of the client and no Version Negotiation."
        return failed(ErrorCode.VERSION_NEGOTIATION, reason)
    first = ours[0]
    if ((client.scid[answers] == client.dcid[first]) & (client.dcid[answers] == client.scid[first])).any():
        return None
    reason = (
        f"Version Negotiation ({frames_of(client, answers)}) does not return the connection ids of the client's first "
        f"packet ({frames_of(client, ours[:1])})."
    )
    return failed(ErrorCode.CONNECTION_IDS, reason)


def version_2(client: Trace, server: Trace) -> Verdict | None:
    """Whether the connection began in version 1 and both sides went on in version 2 (RFC 9368, 2.3; RFC 9369, 4.1).

    A client that begins again in version 2, after Version Negotiation for example, made another connection.
    """
    own = np.flatnonzero(client.from_server & (client.form == Form.HANDSHAKE) & (client.version == VERSION_2))
    begun = np.flatnonzero(~client.from_server & (client.form == Form.INITIAL))
    if len(own):
        begun = begun[client.connection[begun] == client.connection[own[0]]]
    if len(own) and len(begun) and client.version[begun[0]] != VERSION_1:
        reason = (
            f"The client began the connection in version 0x{client.version[begun[0]]:08x} "
            f"({frames_of(client, begun[:1])}), not in version 1."
        )
        return failed(ErrorCode.WRONG_VERSION, reason)
    return versions_of_v2(client, server)


def versions_of_v2(client: Trace, server: Trace) -> Verdict | None:
    """Whether Initials of version 1 and 2 are there, and all Handshake packets are of version 2."""
    for trace, from_server, form, wanted in (
        (client, False, Form.INITIAL, VERSION_1),
        (server, True, Form.INITIAL, VERSION_2),
        (client, False, Form.HANDSHAKE, VERSION_2),
        (server, True, Form.HANDSHAKE, VERSION_2),
    ):
        side, kind = ("server", "client")[not from_server], form.name.capitalize()
        rows = np.flatnonzero((trace.from_server == from_server) & (trace.form == form))
        right = trace.version[rows] == wanted
        if not right.any():
            found = ", ".join(f"0x{number:08x}" for number in sorted({*trace.version[rows].tolist()})) or "none at all"
            reason = f"The {side} sent no {kind} packet of version 0x{wanted:08x}; there were {found}."
            return failed(ErrorCode.WRONG_VERSION, reason)
        if form is Form.HANDSHAKE and not right.all():
            reason = f"The {side} sent Handshake packets of version 1 after all: {frames_of(trace, rows[~right])}."
            return failed(ErrorCode.WRONG_VERSION, reason)
    return None


# ---- Retry, number of connections -----------------------------------------------------------


def no_retry(client: Trace) -> Verdict | None:
    """Whether the server did without a Retry, as the endpoint contract asks for in this test."""
    rows = np.flatnonzero(client.from_server & (client.form == Form.RETRY))
    if not len(rows):
        return None
    return failed(
        ErrorCode.UNEXPECTED_RETRY, f"The server sent a Retry ({frames_of(client, rows)}); none was asked for."
    )


def retry(client: Trace) -> Verdict | None:
    """Whether the client came back with the token of the server's Retry, counted on, and was answered.

    RFC 9000, section 17.2.5: the token is not empty, the client's next Initials have it and are sent to the Retry's
    source connection id, and their packet numbers go on.
    """
    retries = np.flatnonzero(client.from_server & (client.form == Form.RETRY))
    missing = retry_token(client, retries)
    if missing is not None:
        return missing
    initials = np.flatnonzero(~client.from_server & (client.form == Form.INITIAL))
    before, back = initials[initials < retries[0]], initials[np.isin(client.token[initials], client.token[retries])]
    if not len(back):
        return failed(ErrorCode.RETRY_TOKEN, f"No Initial has the token of the Retry ({frames_of(client, retries)}).")
    first = back[:1]
    highest = int(client.number[before].max()) if len(before) else -1
    if client.number[first[0]] <= highest:
        return number_reset(client, first, highest)
    if client.dcid[first[0]] not in client.scid[retries]:
        reason = f"The Initial with the token ({frames_of(client, first)}) is not sent to the Retry's connection id."
        return failed(ErrorCode.RETRY_CONNECTION_ID, reason)
    answers = np.flatnonzero(client.from_server & (client.form == Form.INITIAL))
    if not (client.dcid[answers[answers > first[0]]] == client.scid[first[0]]).any():
        reason = f"The server did not answer the Initial with the token ({frames_of(client, back)})."
        return failed(ErrorCode.RETRY_TOKEN, reason)
    return None


def retry_token(client: Trace, retries: Integers) -> Verdict | None:
    """Whether there are Retries, and all of them have tokens."""
    if not len(retries):
        return failed(ErrorCode.RETRY_MISSING, "The server sent no Retry.")
    if client.token[retries].all():
        return None
    reason = f"A Retry has no token ({frames_of(client, retries[client.token[retries] == 0])})."
    return failed(ErrorCode.RETRY_WITHOUT_TOKEN, reason)


def number_reset(client: Trace, row: Integers, highest: int) -> Verdict:
    """The verdict on an Initial whose packet number does not go on after a Retry."""
    reason = (
        f"After the Retry the packet number is {client.number[row[0]]} ({frames_of(client, row)}), and was {highest} "
        "before."
    )
    return failed(ErrorCode.PACKET_NUMBER_RESET, reason)


def multiconnect(client: Trace, files: int) -> Verdict | None:
    """Whether each file came over a connection of its own; connections that carried none are ignored.

    Packets are lost in these tests, and a client may give an attempt up and begin another. Connections whose 1-RTT
    packets no key opens are taken to have carried a file. Where nothing could be decrypted the connections that the
    server answered are counted.
    """
    packets = client.frames.packet
    answers = packets[client.from_server[packets] & (client.frames.stream % 4 == 0)]
    protected = client.from_server & (client.form == Form.ONE_RTT)
    closed = {*client.connection[protected].tolist()} - {*client.connection[protected & client.decrypted].tolist()}
    known = ({*client.connection[answers].tolist()} | closed) - {-1}
    carrying = len(known) if len(answers) else handshakes(client)
    if carrying >= files:
        return None
    reason = (
        f"{counted(files, 'file')} came over {counted(carrying, 'connection')}, not over one each "
        f"(answered: {handshakes(client)})."
    )
    return failed(ErrorCode.HANDSHAKE_COUNT, reason)


# ---- HTTP/3 ---------------------------------------------------------------------------------


def http3(client: Trace) -> Verdict | None:
    """Whether the endpoints agreed on HTTP/3 and opened their control streams (RFC 9114, sections 3.1 and 6.2.1).

    There is no verdict on the protocol or the streams of a side whose packets could not be decrypted.
    """
    other = next((each.alpn for each in client.connections if each.alpn and not each.alpn.startswith("h3")), None)
    if other is not None:
        return failed(ErrorCode.HTTP3_MISSING, f'The endpoints agreed on "{escaped(other, 40)}", not on HTTP/3.')
    if not len(client.frames):
        return None
    kinds = {*(client.frames.stream % 4).tolist()}
    for kind, side in ((2, "client"), (3, "server")):
        if kind not in kinds and not closed(client, from_server=side == "server"):
            reason = f"The {side} opened no unidirectional stream, so this is not HTTP/3, which begins with one."
            return failed(ErrorCode.HTTP3_MISSING, reason)
    return None
