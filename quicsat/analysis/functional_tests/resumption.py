"""R: a second connection resumes the first one's session, without certificates; pure."""

from __future__ import annotations

import numpy as np

from quicsat.analysis.functional_tests.rule import Observation, connections, rule, sealed
from quicsat.analysis.run_outcome import failed, frames_of
from quicsat.model.outcomes import Check, ErrorCode, Verdict
from quicsat.model.text import counted
from quicsat.traces.columns import Form, Message, Trace
from quicsat.traces.http2 import FrameKind
from quicsat.traces.tcp import TcpTrace


@rule(
    Check.RESUMPTION,
    requirement=(
        "the first handshake contains certificates; the second contains none, its ServerHello has pre_shared_key, and"
        " a file arrives over the second connection"
    ),
    rfc="8446: 2.2",
    qir="checks only the certificates, and assigns them by the server's connection IDs",
    needs_keys=True,
)
def resumption(seen: Observation) -> Verdict | None:
    return connections(seen, 2) or (upstream if seen.upstream else standard)(seen.client)


def standard(client: Trace) -> Verdict | None:
    """Whether the server proved itself by certificates first, by the earlier session then, and served files over it.

    RFC 8446, section 2.2.
    """
    flights = client.from_server & (client.form == Form.HANDSHAKE)
    own = client.connection
    seen = list(dict.fromkeys(own[flights].tolist()))
    if len(seen) != 2:
        reason = f"The server's Handshake packets are of {counted(len(seen), 'connection')} instead of 2."
        return failed(ErrorCode.HANDSHAKE_COUNT, reason)
    packets = client.messages.packet[client.messages.kind == Message.CERTIFICATE]
    packets = packets[client.from_server[packets]]
    certified = own[packets].tolist()
    for connection, which in zip(seen, ("first", "second"), strict=True):
        if not client.decrypted[flights & (own == connection)].any():
            return sealed(f"the server's Handshake packets of the {which} connection")
    if seen[0] not in certified:
        return failed(ErrorCode.CERTIFICATE_MISSING, "The server sent no certificate in the first handshake.")
    if seen[1] in certified:
        again = packets[own[packets] == seen[1]]
        reason = f"The server sent its certificate again in the second handshake ({frames_of(client, again)})."
        return failed(ErrorCode.CERTIFICATE_RESENT, reason)
    if not client.connections[seen[1]].resumed:
        reason = "The server did not accept the earlier session: its second ServerHello has no pre_shared_key."
        return failed(ErrorCode.SESSION_NOT_RESUMED, reason)
    answers = client.frames.packet[client.frames.stream % 4 == 0]
    answers = answers[client.from_server[answers]]
    if len(answers) and not (own[answers] == seen[1]).any():
        return failed(ErrorCode.SESSION_NOT_RESUMED, "No part of a file came over the resumed connection.")
    return None


def over_tcp(client: TcpTrace) -> Verdict | None:
    """Whether there are two connections, and the second one resumed the session of the first and brought a file."""
    if len(client.handshakes) != 2:
        reason = f"The trace shows {counted(len(client.handshakes), 'connection')} instead of 2."
        return failed(ErrorCode.HANDSHAKE_COUNT, reason)
    if not all(each.cipher for each in client.handshakes):
        return sealed("the connections")
    if not client.handshakes[1].resumed:
        return failed(ErrorCode.SESSION_NOT_RESUMED, "The server did not accept the earlier session.")
    frames = client.http2
    if frames is None or not ((frames.kind == FrameKind.DATA) & frames.from_server & (frames.connection == 1)).any():
        return failed(ErrorCode.SESSION_NOT_RESUMED, "No part of a file came over the resumed connection with HTTP/2.")
    return None


def upstream(client: Trace) -> Verdict | None:
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
