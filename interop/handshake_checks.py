"""Checks of functional tests that look at how connections are set up: versions, Retry, sessions, HTTP/3; pure."""

from __future__ import annotations

import numpy as np

from interop.checks import failed
from interop.columns import Form, Integers, Trace
from interop.connections import connections, handshakes
from interop.model import ErrorCode, Verdict

VERSION_1, VERSION_2 = 1, 0x6B3343CF
"""RFC 9000, section 15; RFC 9369, section 3.1."""


def _frames(trace: Trace, rows: Integers) -> str:
    """``frame 7`` or ``frames 7, 9, 12 and 4 more``: as Wireshark numbers them."""
    numbers = list(dict.fromkeys(trace.frame[rows].tolist()))
    shown = ", ".join(map(str, numbers[:3])) + (f" and {len(numbers) - 3} more" if len(numbers) > 3 else "")
    return f"frame {shown}" if len(numbers) == 1 else f"frames {shown}"


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
        f"Version Negotiation ({_frames(client, answers)}) does not return the connection ids of the client's first "
        f"packet ({_frames(client, ours[:1])})."
    )
    return failed(ErrorCode.VERSION_NEGOTIATION, reason)


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
            reason = f"The {side} sent Handshake packets of version 1 after all: {_frames(trace, rows[~right])}."
            return failed(ErrorCode.WRONG_VERSION, reason)
    return None


# ---- Retry, number of connections -----------------------------------------------------------


def no_retry(client: Trace) -> Verdict | None:
    """Whether the server did without a Retry, as the endpoint contract asks for in this test."""
    rows = np.flatnonzero(client.from_server & (client.form == Form.RETRY))
    if not len(rows):
        return None
    return failed(ErrorCode.UNEXPECTED_RETRY, f"The server sent a Retry ({_frames(client, rows)}); none was asked for.")


def server_ids(server: Trace, expected: int = 1) -> Verdict | None:
    """Upstream's count of handshakes: different source connection ids in the server's Initials."""
    found = len(set(server.scid[server.from_server & (server.form == Form.INITIAL)].tolist()))
    if found == expected:
        return None
    reason = f"The server's Initials have {found} source connection ids instead of {expected}."
    return failed(ErrorCode.HANDSHAKE_COUNT, reason)


def multiconnect(client: Trace, files: int) -> Verdict | None:
    """Whether each file came over a connection of its own; connections that carried none are nobody's concern.

    Packets are lost in these tests, and a client may give an attempt up and begin another. Where nothing could be
    decrypted the connections that the server answered are counted.
    """
    of = connections(client).of
    packets = client.frames.packet
    answers = packets[client.from_server[packets] & (client.frames.stream % 4 == 0)]
    carrying = len({*of[answers].tolist()} - {-1}) if len(answers) else handshakes(client)
    if carrying >= files:
        return None
    reason = f"{files} files came over {carrying} connections, not over one each ({handshakes(client)} were answered)."
    return failed(ErrorCode.HANDSHAKE_COUNT, reason)


# ---- HTTP/3 ---------------------------------------------------------------------------------


def http3(client: Trace) -> Verdict | None:
    """Whether both sides opened a unidirectional stream, since HTTP/3 needs control streams (RFC 9114, section 6.2.1).

    Nothing is said of a trace of which no stream could be decrypted.
    """
    if not len(client.frames):
        return None
    kinds = {*(client.frames.stream % 4).tolist()}
    for kind, side in ((2, "client"), (3, "server")):
        if kind not in kinds:
            reason = f"The {side} opened no unidirectional stream, so this is not HTTP/3, which begins with one."
            return failed(ErrorCode.HTTP3_MISSING, reason)
    return None
