"""What each functional test proves: from both traces of a run to a verdict, by the RFCs or by upstream's rules.

docs/reference/functional-tests.md states the rules. That the files arrived whole, and how the endpoints ended, has been
looked at before. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quicsat.analysis import (
    handshake_checks,
    network_checks,
    path_checks,
    run_outcome,
    session_checks,
    upstream_checks,
)
from quicsat.model.functional_checks import Check, Rules
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.test_case import TestCase
from quicsat.traces.columns import Trace


@dataclass(frozen=True, eq=False)
class Observation:
    """What a run of a functional test left, read."""

    case: TestCase
    client: Trace
    """The trace at the client."""
    server: Trace
    """The trace at the server."""
    keys: bool
    """Whether an endpoint wrote a key log."""

    @property
    def upstream(self) -> bool:
        """Whether upstream's rules are asked for."""
        return self.case.rules is Rules.UPSTREAM


Judge = Callable[[Observation], Verdict | None]


def judge(seen: Observation) -> Verdict | None:
    """What is wrong with the run of a functional test; None if it passed.

    ``UNSUPPORTED`` if the test needs to look into packets and no endpoint wrote a key log, as upstream has it.
    """
    check = seen.case.check
    if check is None:
        return None
    if check in NEED_KEYS and not seen.keys:
        return without_keys(check)
    return (UPSTREAM_CHECKS if seen.upstream else CHECKS)[check](seen)


def _one_connection(seen: Observation) -> Verdict | None:
    return run_outcome.handshake_count(seen.client) or run_outcome.version(seen.client)


def _two_connections(seen: Observation) -> Verdict | None:
    return run_outcome.handshake_count(seen.client, 2) or run_outcome.version(seen.client)


def _multiconnect(seen: Observation) -> Verdict | None:
    files = len(seen.case.file_sizes)
    return handshake_checks.multiconnect(seen.client, files) or run_outcome.version(seen.client)


def _rebinding(seen: Observation, *, address: bool = False) -> Verdict | None:
    round_trip = seen.case.link.round_trip_delay
    return path_checks.rebinding(
        seen.client, seen.server, address=address, round_trip=round_trip, upstream=seen.upstream
    )


def _address_rebinding(seen: Observation) -> Verdict | None:
    return _rebinding(seen, address=True)


def _migration(seen: Observation) -> Verdict | None:
    round_trip = seen.case.link.round_trip_delay
    return path_checks.migration(seen.client, seen.server, round_trip=round_trip, upstream=seen.upstream)


def _long_rtt(seen: Observation) -> Verdict | None:
    return session_checks.long_rtt(seen.client, round_trip=seen.case.link.round_trip_delay)


def _after(first: Judge, then: Judge) -> Judge:
    return lambda seen: first(seen) or then(seen)


def _of_client(check: Callable[[Trace], Verdict | None]) -> Judge:
    return lambda seen: check(seen.client)


def _of_server(check: Callable[[Trace], Verdict | None]) -> Judge:
    return lambda seen: check(seen.server)


def _of_both(check: Callable[[Trace, Trace], Verdict | None]) -> Judge:
    return lambda seen: check(seen.client, seen.server)


def without_keys(check: Check) -> Verdict:
    """The verdict if no endpoint wrote a key log that a check needs."""
    reason = f'No endpoint wrote a key log, without which "{check}" cannot be seen.'
    return Verdict(Outcome.UNSUPPORTED, ErrorCode.KEY_LOG_MISSING, reason)


_no_retry = _of_client(handshake_checks.no_retry)
CHECKS: Mapping[Check, Judge] = {
    Check.VERSION_NEGOTIATION: _of_client(handshake_checks.version_negotiation),
    Check.HANDSHAKE: _after(_no_retry, _one_connection),
    Check.TRANSFER: _one_connection,
    Check.LONG_RTT: _after(_one_connection, _long_rtt),
    Check.CHACHA20: _after(_one_connection, _of_client(session_checks.chacha20)),
    Check.MULTIPLEXING: _after(_one_connection, _of_client(session_checks.multiplexing)),
    Check.RETRY: _after(_one_connection, _of_client(handshake_checks.retry)),
    Check.RESUMPTION: _after(_two_connections, _of_client(session_checks.resumption)),
    Check.ZERO_RTT: _after(_two_connections, _of_client(session_checks.zero_rtt)),
    Check.HTTP3: _after(_one_connection, _of_client(handshake_checks.http3)),
    Check.KEY_UPDATE: _after(_one_connection, _of_both(session_checks.key_update)),
    Check.ECN: _after(_after(_no_retry, _one_connection), _of_both(network_checks.ecn)),
    Check.AMPLIFICATION_LIMIT: _after(_one_connection, _of_server(network_checks.amplification_limit)),
    Check.MULTICONNECT: _multiconnect,
    Check.IPV6: _after(_of_both(path_checks.ipv6), _one_connection),
    Check.VERSION_2: _of_both(handshake_checks.version_2),
    Check.REBINDING: _after(_one_connection, _rebinding),
    Check.ADDRESS_REBINDING: _after(_one_connection, _address_rebinding),
    Check.MIGRATION: _after(_one_connection, _migration),
    Check.WEBTRANSPORT: _after(_one_connection, _of_client(handshake_checks.http3)),
}


def _upstream_connections(seen: Observation) -> Verdict | None:
    return upstream_checks.connections(seen.server)


def _upstream_sessions(seen: Observation) -> Verdict | None:
    return upstream_checks.connections(seen.server, 2)


def _upstream_multiconnect(seen: Observation) -> Verdict | None:
    return upstream_checks.connections(seen.server, len(seen.case.file_sizes))


UPSTREAM_CHECKS: Mapping[Check, Judge] = {
    Check.VERSION_NEGOTIATION: _of_client(upstream_checks.version_negotiation),
    Check.HANDSHAKE: _after(_no_retry, _upstream_connections),
    Check.TRANSFER: _upstream_connections,
    Check.LONG_RTT: _after(_upstream_connections, _of_client(upstream_checks.long_rtt)),
    Check.CHACHA20: _after(_upstream_connections, _of_client(upstream_checks.chacha20)),
    Check.MULTIPLEXING: _after(_upstream_connections, _of_client(upstream_checks.multiplexing)),
    Check.RETRY: _after(_upstream_connections, _of_client(upstream_checks.retry)),
    Check.RESUMPTION: _after(_upstream_sessions, _of_client(upstream_checks.resumption)),
    Check.ZERO_RTT: _after(_upstream_sessions, _of_client(upstream_checks.zero_rtt)),
    Check.HTTP3: _upstream_connections,
    Check.KEY_UPDATE: _after(_upstream_connections, _of_both(upstream_checks.key_update)),
    Check.ECN: _after(_after(_no_retry, _upstream_connections), _of_both(upstream_checks.ecn)),
    Check.AMPLIFICATION_LIMIT: _after(_upstream_connections, _of_server(upstream_checks.amplification_limit)),
    Check.MULTICONNECT: _upstream_multiconnect,
    Check.IPV6: _after(_of_server(upstream_checks.ipv6), _upstream_connections),
    Check.VERSION_2: _of_both(handshake_checks.versions_of_v2),
    Check.REBINDING: _after(_upstream_connections, _rebinding),
    Check.ADDRESS_REBINDING: _after(_upstream_connections, _address_rebinding),
    Check.MIGRATION: _after(_upstream_connections, _migration),
    Check.WEBTRANSPORT: _of_server(upstream_checks.handshakes),
}
NEED_KEYS = frozenset(
    {
        Check.MULTIPLEXING,
        Check.RESUMPTION,
        Check.KEY_UPDATE,
        Check.ECN,
        Check.AMPLIFICATION_LIMIT,
        Check.REBINDING,
        Check.ADDRESS_REBINDING,
        Check.MIGRATION,
    }
)
"""Checks that look into packets that only the endpoints' keys open."""
