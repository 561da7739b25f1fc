"""Every functional test has its check, and upstream's rules are used where they are asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from aioquic.quic.connection import QuicConnection
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite

from quicsat.analysis.functional_tests.rule import Observation, judge, rules
from quicsat.model.outcomes import Check, ErrorCode, Outcome, Rules, Verdict
from quicsat.traces.columns import Form, Trace
from quicsat.traces.key_log import key_lines
from quicsat.traces.run_traces import CLIENT_TRACE, KEY_LOGS, SERVER_TRACE
from quicsat.traces.trace import read
from tests.analysis.test_run_outcome import CASE, connection, initial, is_fault
from tests.quic_builder import Row, columns
from tests.ready import ready_test_cases
from tests.simulated import Link, transfer

ROOT = Path(__file__).resolve().parents[3]
GOOD = columns(*connection(1))
MOVED = columns(*connection(1), initial(True, "server1b", "c1"))
"""A server that changes its mind about its connection id: one handshake, though upstream counts two."""


def judged(
    check: Check, client: Trace, server: Trace = GOOD, *, upstream: bool = False, files: int = 1
) -> Verdict | None:
    case = replace(CASE, check=check, file_sizes=(1,) * files, rules=Rules.UPSTREAM if upstream else Rules.STANDARD)
    return judge(Observation(case, client, server, keys=True))


def test_every_name_has_a_check_and_every_functional_test_a_name() -> None:
    assert set(rules()) == set(Check)
    known = ready_test_cases().values()
    assert {case.check for case in known} == {None, *Check}


def test_a_measurement_has_nothing_to_pass() -> None:
    assert judge(Observation(CASE, GOOD, GOOD, keys=False)) is None


@pytest.mark.parametrize("check", sorted(each.check for each in rules().values() if each.needs_keys))
def test_what_cannot_be_seen_without_keys_is_unsupported(check: Check) -> None:
    verdict = judge(Observation(replace(CASE, check=check), GOOD, GOOD, keys=False))
    assert is_fault(verdict, Outcome.UNSUPPORTED, ErrorCode.KEY_LOG_MISSING, check)


@pytest.mark.parametrize("check", [Check.HANDSHAKE, Check.TRANSFER, Check.HTTP3, Check.WEBTRANSPORT])
def test_handshakes_are_counted_by_connection_or_as_upstream_does(check: Check) -> None:
    assert judged(check, GOOD) is None
    assert judged(check, GOOD, MOVED) is None
    two = judged(check, columns(*connection(1), *connection(2)))
    assert is_fault(two, Outcome.FAILED, ErrorCode.HANDSHAKE_COUNT, "2 handshakes instead of 1")
    counted = judged(check, GOOD, MOVED, upstream=True)
    assert is_fault(counted, Outcome.FAILED, ErrorCode.HANDSHAKE_COUNT, "2 source connection ids instead of 1")


@pytest.mark.parametrize("check", [Check.RESUMPTION, Check.ZERO_RTT])
def test_a_session_takes_two_handshakes(check: Check) -> None:
    one = judged(check, GOOD)
    assert is_fault(one, Outcome.FAILED, ErrorCode.HANDSHAKE_COUNT, "shows 1 handshake instead of 2")
    ids = judged(check, GOOD, upstream=True)
    assert is_fault(ids, Outcome.FAILED, ErrorCode.HANDSHAKE_COUNT, "have 1 source connection ids instead of 2")


def test_version_1_is_asked_for() -> None:
    second = columns(initial(False, "c", "f"), initial(True, "s", "c", version=2))
    for upstream in (False, True):
        verdict = judged(Check.TRANSFER, second, second, upstream=upstream)
        assert is_fault(verdict, Outcome.FAILED, ErrorCode.WRONG_VERSION, "0x00000002")


def test_a_handshake_goes_without_retry_a_transfer_need_not() -> None:
    asked = columns(*connection(1), Row(0, True, Form.RETRY, scid="n", dcid="c1"))
    assert judged(Check.TRANSFER, asked) is None
    assert is_fault(judged(Check.HANDSHAKE, asked), Outcome.FAILED, ErrorCode.UNEXPECTED_RETRY, "a Retry")


def test_http3_is_looked_for_by_our_rules_only() -> None:
    plain = columns(*connection(1), Row(0, True, frames=[(0, 0, 1)]))
    assert judged(Check.HTTP3, plain, upstream=True) is None
    assert judged(Check.WEBTRANSPORT, plain, upstream=True) is None
    assert is_fault(judged(Check.WEBTRANSPORT, plain), Outcome.FAILED, ErrorCode.HTTP3_MISSING, "not HTTP/3")
    assert is_fault(judged(Check.HTTP3, plain), Outcome.FAILED, ErrorCode.HTTP3_MISSING, "not HTTP/3")


def test_as_many_connections_as_files_exactly_so_for_upstream() -> None:
    two, three = (columns(*(row for n in range(count) for row in connection(n))) for count in (2, 3))
    assert judged(Check.MULTICONNECT, two, two, files=2) is None
    assert judged(Check.MULTICONNECT, three, three, files=2) is None
    assert judged(Check.MULTICONNECT, two, two, files=2, upstream=True) is None
    assert judged(Check.MULTICONNECT, three, three, files=2, upstream=True) is not None
    assert judged(Check.MULTICONNECT, two, two, files=3) is not None


def recorded(name: str, check: Check) -> Verdict | None:
    """A run of aioquic against itself, judged."""
    directory = ROOT / "tests" / "data" / name
    keys = key_lines(*(directory / key_log for key_log in KEY_LOGS))
    client, server = (read(directory / trace, keys) for trace in (CLIENT_TRACE, SERVER_TRACE))
    return judge(Observation(replace(CASE, check=check), client, server, bool(keys)))


def test_recorded_runs() -> None:
    assert recorded("retry", Check.RETRY) is None
    assert recorded("retry", Check.IPV6) is None
    assert recorded("retry", Check.MULTIPLEXING) is None
    assert recorded("lossy", Check.HANDSHAKE) is None
    asked = recorded("retry", Check.HANDSHAKE)
    assert is_fault(asked, Outcome.FAILED, ErrorCode.UNEXPECTED_RETRY, "a Retry (frame 2)")
    plain = recorded("lossy", Check.RETRY)
    assert is_fault(plain, Outcome.FAILED, ErrorCode.RETRY_MISSING, "sent no Retry")
    unmarked = recorded("lossy", Check.ECN)
    assert is_fault(unmarked, Outcome.FAILED, ErrorCode.ECN, "none of its 12 packets")
    still = recorded("many", Check.KEY_UPDATE)
    assert is_fault(still, Outcome.FAILED, ErrorCode.KEY_UPDATE_MISSING, "none of them with updated keys")


def simulated(directory: Path, check: Check, link: Link | None = None, **options: object) -> Verdict | None:
    """Real packets of aioquic over a link in memory, judged."""
    played = link or Link(delay=0.015)
    found = transfer([20_000, 3000], played, **options)  # type: ignore[arg-type]
    found.write(directory)
    keys = key_lines(*(directory / key_log for key_log in KEY_LOGS))
    client, server = (read(directory / trace, keys) for trace in (CLIENT_TRACE, SERVER_TRACE))
    told = CASE.emulated.with_both(delay=played.delay)
    return judge(Observation(replace(CASE, check=check, link=told), client, server, bool(keys)))


TWO_VERSIONS = [QuicProtocolVersion.VERSION_2, QuicProtocolVersion.VERSION_1]


def test_real_packets(tmp_path: Path) -> None:
    assert simulated(tmp_path / "lr", Check.LONG_RTT, Link(delay=0.75)) is None
    slow = Link(delay=0.75), Link(delay=0.75, first_lost=True)
    for number, (link, known) in enumerate((link, known) for link in slow for known in (0.333, 1.5)):
        assert simulated(tmp_path / f"lr{number}", Check.LONG_RTT, link, initial_rtt=known) is None
    assert simulated(tmp_path / "c20", Check.CHACHA20, cipher_suites=[CipherSuite.CHACHA20_POLY1305_SHA256]) is None
    updating = simulated(tmp_path / "u", Check.KEY_UPDATE, midway=QuicConnection.request_key_update)
    assert updating is None
    first = QuicProtocolVersion.VERSION_1
    both = simulated(tmp_path / "v2", Check.VERSION_2, original_version=first, supported_versions=TWO_VERSIONS)
    assert both is None
    assert simulated(tmp_path / "l2", Check.TRANSFER, Link(delay=0.015, loss=0.1)) is None
    assert simulated(tmp_path / "m", Check.MULTIPLEXING) is None


def test_real_packets_that_do_something_else(tmp_path: Path) -> None:
    def code(check: Check, link: Link | None = None) -> ErrorCode | None:
        verdict = simulated(tmp_path / check.name, check, link)
        return verdict.code if verdict else None

    never = simulated(tmp_path / "never", Check.LONG_RTT, Link(delay=0.75, first_lost=True), initial_rtt=1000.0)
    assert never is not None
    assert never.code is ErrorCode.HANDSHAKE_COUNT  # no probe, no connection
    assert code(Check.CHACHA20) is ErrorCode.WRONG_CIPHER
    assert code(Check.KEY_UPDATE) is ErrorCode.KEY_UPDATE_MISSING
    assert code(Check.VERSION_2) is ErrorCode.WRONG_VERSION
    assert code(Check.ECN) is ErrorCode.ECN
    assert code(Check.RESUMPTION) is ErrorCode.HANDSHAKE_COUNT
    assert code(Check.AMPLIFICATION_LIMIT) is ErrorCode.CHAIN_TOO_SHORT
    assert code(Check.REBINDING) is ErrorCode.PATH_UNCHANGED
