"""Checks of functional tests that look at how connections are set up: versions, Retry, sessions, HTTP/3; pure."""

from __future__ import annotations

import numpy as np

from interop.analysis.run_outcome import failed, frames_of
from interop.model.outcomes import ErrorCode, Verdict
from interop.traces.columns import Form, Trace
from interop.traces.connections import handshakes

VERSION_1, VERSION_2 = 1, 0x6B3343CF
"""RFC 9000, section 15; RFC 9369, section 3.1."""


# ---- versions -------------------------------------------------------------------------------


def version_negotiation(client: Trace, *, upstream: bool = False) -> Verdict | None:
    """Whether the server answered the client's first packet with Version Negotiation, and both ids in their places.

    RFC 9000, section 17.2.1: source and destination connection id are those of the packet it answers, exchanged.
    Upstream's rule looks at the source connection id alone.
    """
    ours = np.flatnonzero(~client.from_server & (client.version >= 0))
    answers = np.flatnonzero(client.from_server & (client.form == Form.VERSION_NEGOTIATION))
    if not len(ours) or not len(answers):
        reason = f"The client's trace shows {len(ours)} long headers of the client and no Version Negotiation."
        return failed(ErrorCode.VERSION_NEGOTIATION, reason)
    first = ours[0]
    fits = client.scid[answers] == client.dcid[first]
    if not upstream:
        fits &= client.dcid[answers] == client.scid[first]
    if fits.any():
        return None
    reason = (
        f"Version Negotiation ({frames_of(client, answers)}) does not return the connection ids of the client's first "
        f"packet ({frames_of(client, ours[:1])})."
    )
    return failed(ErrorCode.CONNECTION_IDS, reason)


def version_2(client: Trace, server: Trace) -> Verdict | None:
    """Whether the connection began in version 1 and both sides went on in version 2 (RFC 9368, 2.3; RFC 9369, 4.1)."""
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


def retry(client: Trace, *, upstream: bool = False) -> Verdict | None:
    """Whether the client came back with the token of the server's Retry, and went on counting its packets.

    RFC 9000, section 17.2.5: the token is not empty, the client's next Initials have it and are sent to the Retry's
    source connection id, and their packet numbers go on. Upstream does not look at the id; for it, all Initials without
    a token were sent before the Retry.
    """
    retries = np.flatnonzero(client.from_server & (client.form == Form.RETRY))
    if not len(retries):
        return failed(ErrorCode.RETRY_MISSING, "The server sent no Retry.")
    if not client.token[retries].all():
        reason = f"A Retry has no token ({frames_of(client, retries[client.token[retries] == 0])})."
        return failed(ErrorCode.RETRY_WITHOUT_TOKEN, reason)
    initials = np.flatnonzero(~client.from_server & (client.form == Form.INITIAL))
    before = initials[client.token[initials] == 0] if upstream else initials[initials < retries[0]]
    wanted = client.token[initials] != 0 if upstream else np.isin(client.token[initials], client.token[retries])
    back = initials[wanted]
    if not len(back) or client.token[back[0]] not in client.token[retries]:
        return failed(ErrorCode.RETRY_TOKEN, f"No Initial has the token of the Retry ({frames_of(client, retries)}).")
    highest = int(client.number[before].max()) if len(before) else -1
    if client.number[back[0]] <= highest:
        now, where = client.number[back[0]], frames_of(client, back[:1])
        reason = f"After the Retry the packet number is {now} ({where}), and was {highest} before."
        return failed(ErrorCode.PACKET_NUMBER_RESET, reason)
    if not upstream and client.dcid[back[0]] not in client.scid[retries]:
        reason = f"The Initial with the token ({frames_of(client, back[:1])}) is not sent to the Retry's connection id."
        return failed(ErrorCode.RETRY_CONNECTION_ID, reason)
    return None


def server_ids(server: Trace, expected: int = 1) -> Verdict | None:
    """Upstream's count of handshakes: different source connection ids in the server's Initials."""
    found = len(set(server.scid[server.from_server & (server.form == Form.INITIAL)].tolist()))
    if found == expected:
        return None
    reason = f"The server's Initials have {found} source connection ids instead of {expected}."
    return failed(ErrorCode.HANDSHAKE_COUNT, reason)


def multiconnect(client: Trace, files: int) -> Verdict | None:
    """Whether each file came over a connection of its own; connections that carried none are ignored.

    Packets are lost in these tests, and a client may give an attempt up and begin another. Where nothing could be
    decrypted the connections that the server answered are counted.
    """
    packets = client.frames.packet
    answers = packets[client.from_server[packets] & (client.frames.stream % 4 == 0)]
    carrying = len({*client.connection[answers].tolist()} - {-1}) if len(answers) else handshakes(client)
    if carrying >= files:
        return None
    reason = f"{files} files came over {carrying} connections, not over one each ({handshakes(client)} were answered)."
    return failed(ErrorCode.HANDSHAKE_COUNT, reason)


# ---- HTTP/3 ---------------------------------------------------------------------------------


def http3(client: Trace) -> Verdict | None:
    """Whether both sides opened a unidirectional stream, since HTTP/3 needs control streams (RFC 9114, section 6.2.1).

    There is no verdict on a trace without a stream that could be decrypted.
    """
    if not len(client.frames):
        return None
    kinds = {*(client.frames.stream % 4).tolist()}
    for kind, side in ((2, "client"), (3, "server")):
        if kind not in kinds:
            reason = f"The {side} opened no unidirectional stream, so this is not HTTP/3, which begins with one."
            return failed(ErrorCode.HTTP3_MISSING, reason)
    return None
