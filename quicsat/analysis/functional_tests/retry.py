"""S: the server sends a Retry, and the client comes back with its token; pure."""

from __future__ import annotations

import numpy as np

from quicsat.analysis.functional_tests.rule import Observation, connections, rule
from quicsat.analysis.run_outcome import failed, frames_of
from quicsat.model.arrays import Integers
from quicsat.model.outcomes import Check, ErrorCode, Verdict
from quicsat.traces.columns import Form, Trace


@rule(
    Check.RETRY,
    requirement=(
        "the server sends a Retry with a token; an Initial returns the token to the Retry's source connection ID, "
        "with a higher packet number than before; the server answers this Initial"
    ),
    rfc="9000: 17.2.5",
    qir="checks neither the ID nor the answer",
)
def retry(seen: Observation) -> Verdict | None:
    return connections(seen) or (upstream if seen.upstream else standard)(seen.client)


def standard(client: Trace) -> Verdict | None:
    """Whether the client came back with the token of the server's Retry, counted on, and was answered.

    RFC 9000, section 17.2.5: the token is not empty, the client's next Initials have it and are sent to the Retry's
    source connection id, and their packet numbers go on.
    """
    retries = _retries(client)
    if isinstance(retries, Verdict):
        return retries
    initials = np.flatnonzero(~client.from_server & (client.form == Form.INITIAL))
    before, back = initials[initials < retries[0]], initials[np.isin(client.token[initials], client.token[retries])]
    if not len(back):
        return failed(ErrorCode.RETRY_TOKEN, f"No Initial has the token of the Retry ({frames_of(client, retries)}).")
    first = back[:1]
    highest = int(client.number[before].max()) if len(before) else -1
    if client.number[first[0]] <= highest:
        return _number_reset(client, first, highest)
    if client.dcid[first[0]] not in client.scid[retries]:
        reason = f"The Initial with the token ({frames_of(client, first)}) is not sent to the Retry's connection id."
        return failed(ErrorCode.RETRY_CONNECTION_ID, reason)
    answers = np.flatnonzero(client.from_server & (client.form == Form.INITIAL))
    if not (client.dcid[answers[answers > first[0]]] == client.scid[first[0]]).any():
        reason = f"The server did not answer the Initial with the token ({frames_of(client, back)})."
        return failed(ErrorCode.RETRY_TOKEN, reason)
    return None


def upstream(client: Trace) -> Verdict | None:
    """Whether an Initial has the token of a Retry, and those with a token have higher numbers than all before them."""
    retries = _retries(client)
    if isinstance(retries, Verdict):
        return retries
    highest = -1
    for row in np.flatnonzero(~client.from_server & (client.form == Form.INITIAL)).tolist():
        number = int(client.number[row])
        if not client.token[row]:
            highest = max(highest, number)
        elif number <= highest:
            return _number_reset(client, np.array([row]), highest)
        elif client.token[row] in client.token[retries]:
            return None
    return failed(ErrorCode.RETRY_TOKEN, f"No Initial has the token of the Retry ({frames_of(client, retries)}).")


def _retries(client: Trace) -> Integers | Verdict:
    """The Retries; the verdict if there are none, or one has no token."""
    retries = np.flatnonzero(client.from_server & (client.form == Form.RETRY))
    if not len(retries):
        return failed(ErrorCode.RETRY_MISSING, "The server sent no Retry.")
    if client.token[retries].all():
        return retries
    reason = f"A Retry has no token ({frames_of(client, retries[client.token[retries] == 0])})."
    return failed(ErrorCode.RETRY_WITHOUT_TOKEN, reason)


def _number_reset(client: Trace, row: Integers, highest: int) -> Verdict:
    """The verdict on an Initial whose packet number does not go on after a Retry."""
    reason = (
        f"After the Retry the packet number is {client.number[row[0]]} ({frames_of(client, row)}), and was {highest} "
        "before."
    )
    return failed(ErrorCode.PACKET_NUMBER_RESET, reason)
