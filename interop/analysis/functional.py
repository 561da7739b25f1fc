"""What each functional test proves: from both traces of a run to a verdict, by the RFCs or by upstream's rules.

docs/reference/functional-tests.md states the rules. That the files arrived whole, and how the endpoints ended, has been
looked at before. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from interop.analysis import handshake_checks, network_checks, path_checks, run_outcome, session_checks
from interop.model.functional_checks import Check, Rules
from interop.model.outcomes import ErrorCode, Outcome, Verdict
from interop.model.test_case import TestCase
from interop.traces.columns import Trace


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
        reason = f'No endpoint wrote a key log, without which "{check}" cannot be seen.'
        return Verdict(Outcome.UNSUPPORTED, ErrorCode.KEY_LOG_MISSING, reason)
    return CHECKS[check](seen)


def _version_1(seen: Observation) -> Verdict | None:
    return run_outcome.version(seen.server if seen.upstream else seen.client)


def _handshakes(seen: Observation, expected: int = 1) -> Verdict | None:
    """Upstream counts the server's connection ids, which a server that changes its mind fools."""
    if seen.upstream:
        return handshake_checks.server_ids(seen.server, expected)
    return run_outcome.handshake_count(seen.client, expected)


def _one_connection(seen: Observation) -> Verdict | None:
    return _handshakes(seen) or _version_1(seen)


def _multiconnect(seen: Observation) -> Verdict | None:
    files = len(seen.case.file_sizes)
    if seen.upstream:
        return _handshakes(seen, files) or _version_1(seen)
    return handshake_checks.multiconnect(seen.client, files) or _version_1(seen)


def _zero_rtt(seen: Observation) -> Verdict | None:
    return session_checks.zero_rtt_upstream(seen.client) if seen.upstream else session_checks.zero_rtt(seen.client)


def _rebinding(seen: Observation, *, address: bool = False) -> Verdict | None:
    round_trip = seen.case.link.round_trip_delay
    return path_checks.rebinding(
        seen.client, seen.server, address=address, round_trip=round_trip, upstream=seen.upstream
    )


def _migration(seen: Observation) -> Verdict | None:
    round_trip = seen.case.link.round_trip_delay
    return path_checks.migration(seen.client, seen.server, round_trip=round_trip, upstream=seen.upstream)


def _long_rtt(seen: Observation) -> Verdict | None:
    round_trip = seen.case.link.round_trip_delay
    return session_checks.long_rtt(seen.client, round_trip=round_trip, upstream=seen.upstream)


def _after(first: Judge, then: Judge) -> Judge:
    return lambda seen: first(seen) or then(seen)


def _two_connections(seen: Observation) -> Verdict | None:
    return _handshakes(seen, 2) or _version_1(seen)


def _webtransport(seen: Observation) -> Verdict | None:
    """Upstream only counts connections."""
    if seen.upstream:
        return _handshakes(seen)
    return _one_connection(seen) or handshake_checks.http3(seen.client)


CHECKS: Mapping[Check, Judge] = {
    Check.VERSION_NEGOTIATION: lambda seen: handshake_checks.version_negotiation(seen.client, upstream=seen.upstream),
    Check.HANDSHAKE: _after(lambda seen: handshake_checks.no_retry(seen.client), _one_connection),
    Check.TRANSFER: _one_connection,
    Check.LONG_RTT: _after(_one_connection, _long_rtt),
    Check.CHACHA20: _after(_one_connection, lambda seen: session_checks.chacha20(seen.client, upstream=seen.upstream)),
    Check.MULTIPLEXING: _after(_one_connection, lambda seen: session_checks.multiplexing(seen.client)),
    Check.RETRY: _after(_one_connection, lambda seen: handshake_checks.retry(seen.client, upstream=seen.upstream)),
    Check.RESUMPTION: _after(
        _two_connections, lambda seen: session_checks.resumption(seen.client, upstream=seen.upstream)
    ),
    Check.ZERO_RTT: _after(_two_connections, _zero_rtt),
    Check.HTTP3: _after(_one_connection, lambda seen: None if seen.upstream else handshake_checks.http3(seen.client)),
    Check.KEY_UPDATE: _after(
        _one_connection, lambda seen: session_checks.key_update(seen.client, seen.server, upstream=seen.upstream)
    ),
    Check.ECN: _after(
        lambda seen: handshake_checks.no_retry(seen.client) or _one_connection(seen),
        lambda seen: network_checks.ecn(seen.client, seen.server, upstream=seen.upstream),
    ),
    Check.AMPLIFICATION_LIMIT: _after(
        _one_connection, lambda seen: network_checks.amplification_limit(seen.server, upstream=seen.upstream)
    ),
    Check.MULTICONNECT: _multiconnect,
    Check.IPV6: _after(
        lambda seen: path_checks.ipv6(seen.client, seen.server, upstream=seen.upstream), _one_connection
    ),
    Check.VERSION_2: lambda seen: handshake_checks.version_2(seen.client, seen.server),
    Check.REBINDING: _after(_one_connection, _rebinding),
    Check.ADDRESS_REBINDING: _after(_one_connection, lambda seen: _rebinding(seen, address=True)),
    Check.MIGRATION: _after(_one_connection, _migration),
    Check.WEBTRANSPORT: _webtransport,
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
