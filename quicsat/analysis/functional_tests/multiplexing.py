"""M: many files although the server allows at most 1000 streams at first; pure."""

from __future__ import annotations

from quicsat.analysis.functional_tests.rule import Observation, connections, rule, sealed
from quicsat.analysis.run_outcome import failed
from quicsat.model.outcomes import Check, ErrorCode, Verdict
from quicsat.model.text import counted
from quicsat.traces.columns import Trace

MOST_STREAMS = 1000
"""Streams that a server may allow at first in the multiplexing test."""


@rule(
    Check.MULTIPLEXING,
    requirement="the server's initial_max_streams_bidi is at most 1000; if it is missing, it counts as 0",
    rfc="9000: 4.6, 18.2",
    qir="requires the parameter",
    needs_keys=True,
)
def multiplexing(seen: Observation) -> Verdict | None:
    return connections(seen) or (upstream if seen.upstream else standard)(seen.client)


def standard(client: Trace) -> Verdict | None:
    """Whether the server allowed at most 1000 streams at first (initial_max_streams_bidi; RFC 9000, 4.6 and 18.2)."""
    parameters = next((each.server_parameters for each in client.connections if each.server_parameters), None)
    if parameters is None:
        return sealed("the server's transport parameters")
    return _stream_limit(int(parameters.get("initial_max_streams_bidi", 0)))


def _stream_limit(limit: int) -> Verdict | None:
    """Whether a client may have to wait before it opens 2000 streams."""
    if limit <= MOST_STREAMS:
        return None
    reason = (
        f"The server allows {counted(limit, 'stream')} at first, more than {MOST_STREAMS}, so that "
        "none ever has to wait."
    )
    return failed(ErrorCode.STREAM_LIMIT, reason)


def upstream(client: Trace) -> Verdict | None:
    """Whether the server stated initial_max_streams_bidi, of at most 1000."""
    stated = [each.server_parameters.get("initial_max_streams_bidi") for each in client.connections]
    limits = [int(limit) for limit in stated if limit is not None]
    if not limits:
        return failed(ErrorCode.STREAM_LIMIT, "The trace does not show the server's initial_max_streams_bidi.")
    return _stream_limit(max(limits))
