"""V2: the connection begins in QUIC version 1, and goes on in version 2; pure."""

from __future__ import annotations

import numpy as np

from quicsat.analysis.functional_tests.rule import Observation, rule
from quicsat.analysis.run_outcome import failed, frames_of
from quicsat.model.outcomes import Check, ErrorCode, Verdict
from quicsat.traces.columns import Form, Trace

VERSION_1, VERSION_2 = 1, 0x6B3343CF
"""RFC 9000, section 15; RFC 9369, section 3.1."""


@rule(
    Check.VERSION_2,
    requirement=(
        "the client's first flight uses version 1; on the same connection, the server sends version 2 Initials, and "
        "all Handshake packets use version 2"
    ),
    rfc="9368: 2.3; 9369: 4.1",
    qir="several connections are possible",
)
def version_2(seen: Observation) -> Verdict | None:
    return (upstream if seen.upstream else standard)(seen.client, seen.server)


def standard(client: Trace, server: Trace) -> Verdict | None:
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
    return upstream(client, server)


def upstream(client: Trace, server: Trace) -> Verdict | None:
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
