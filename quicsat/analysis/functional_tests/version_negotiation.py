"""V: a version that the server does not know is answered with Version Negotiation; pure."""

from __future__ import annotations

import numpy as np

from quicsat.analysis.functional_tests.rule import Observation, rule
from quicsat.analysis.run_outcome import failed, frames_of
from quicsat.model.outcomes import Check, ErrorCode, Verdict
from quicsat.traces.columns import Form, Trace


@rule(
    Check.VERSION_NEGOTIATION,
    requirement=(
        "the server responds to the client's first packet with Version Negotiation, in which the source and "
        "destination connection IDs are swapped"
    ),
    rfc="9000: 6, 17.2.1",
    qir="checks only the source connection ID",
)
def version_negotiation(seen: Observation) -> Verdict | None:
    return (upstream if seen.upstream else standard)(seen.client)


def standard(client: Trace) -> Verdict | None:
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


def upstream(client: Trace) -> Verdict | None:
    """Whether Version Negotiation has the destination connection id of the client's first packet as its source."""
    ours = np.flatnonzero(~client.from_server & (client.version >= 0))
    answers = np.flatnonzero(client.form == Form.VERSION_NEGOTIATION)
    if not len(ours) or not len(answers):
        return failed(ErrorCode.VERSION_NEGOTIATION, "The client's trace shows no Version Negotiation.")
    if (client.scid[answers] == client.dcid[ours[0]]).any():
        return None
    reason = f"No Version Negotiation answers the client's first packet ({frames_of(client, ours[:1])})."
    return failed(ErrorCode.CONNECTION_IDS, reason)
