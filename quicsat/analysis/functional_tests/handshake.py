"""H and DC: one connection, in H without a Retry; pure."""

from __future__ import annotations

import numpy as np

from quicsat.analysis.functional_tests.rule import Observation, connections, rule
from quicsat.analysis.run_outcome import failed, frames_of
from quicsat.model.outcomes import Check, ErrorCode, Verdict
from quicsat.traces.columns import Form, Trace


@rule(Check.HANDSHAKE, requirement="the server does not send a Retry")
def handshake(seen: Observation) -> Verdict | None:
    return no_retry(seen.client) or connections(seen)


@rule(
    Check.TRANSFER,
    requirement="only the common requirements",
    qir="B: the times of the blackhole are measured from the start of the simulator",
)
def transfer(seen: Observation) -> Verdict | None:
    return connections(seen)


def no_retry(client: Trace) -> Verdict | None:
    """Whether the server did without a Retry, as the endpoint contract asks for in this test."""
    rows = np.flatnonzero(client.from_server & (client.form == Form.RETRY))
    if not len(rows):
        return None
    return failed(
        ErrorCode.UNEXPECTED_RETRY, f"The server sent a Retry ({frames_of(client, rows)}); none was asked for."
    )
