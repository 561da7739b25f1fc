"""3, and tests of WebTransport: the endpoints use HTTP/3; pure."""

from __future__ import annotations

from quicsat.analysis.functional_tests.rule import Observation, closed, connections, handshakes_by_id, rule
from quicsat.analysis.run_outcome import failed
from quicsat.model.outcomes import Check, ErrorCode, Verdict
from quicsat.model.text import escaped
from quicsat.traces.columns import Trace


@rule(
    Check.HTTP3,
    requirement="the endpoints negotiate HTTP/3, and both sides open a unidirectional stream",
    rfc="9114: 3.1, 6.2.1",
    qir="not checked",
)
def http3(seen: Observation) -> Verdict | None:
    return connections(seen) or (None if seen.upstream else standard(seen.client))


@rule(
    Check.WEBTRANSPORT,
    requirement="the same as for 3; see [WebTransport](#webtransport)",
    rfc="9114: 3.1, 6.2.1",
    qir="checks only the number of connections",
)
def webtransport(seen: Observation) -> Verdict | None:
    return handshakes_by_id(seen.server) if seen.upstream else http3(seen)


def standard(client: Trace) -> Verdict | None:
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
