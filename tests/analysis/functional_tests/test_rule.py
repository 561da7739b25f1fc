"""Every functional test has its check, and upstream's rules are used where they are asked for."""

from dataclasses import replace
from pathlib import Path

import pytest
from aioquic.quic.connection import QuicConnection
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite

from quicsat.analysis.functional_tests.rule import Observation, judge, rules
from quicsat.model.outcomes import Check, ErrorCode, Rules, Verdict
from quicsat.traces.columns import Form, Trace
from quicsat.traces.key_log import key_lines
from quicsat.traces.run_traces import CLIENT_TRACE, KEY_LOGS, SERVER_TRACE
from quicsat.traces.trace import read
from tests.analysis.functional_tests.tables import Fault, check
from tests.analysis.test_run_outcome import CASE, connection, initial
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


@pytest.mark.parametrize("name", sorted(each.check for each in rules().values() if each.needs_keys))
def test_what_cannot_be_seen_without_keys_is_unsupported(name: Check) -> None:
    check(judge(Observation(replace(CASE, check=name), GOOD, GOOD, keys=False)), (ErrorCode.KEY_LOG_MISSING, name))


def of_connections(count: int, *more: Row) -> Trace:
    return columns(*(row for number in range(count) for row in connection(number)), *more)


SECOND = columns(initial(False, "c", "f"), initial(True, "s", "c", version=2))
RETRIED = of_connections(1, Row(0, True, Form.RETRY, scid="n", dcid="c1"))
PLAIN = of_connections(1, Row(0, True, frames=[(0, 0, 1)]))
TWO, THREE = of_connections(2), of_connections(3)
TWO_IDS = (ErrorCode.HANDSHAKE_COUNT, "have 2 source connection ids instead of 1")
NO_HTTP3 = (ErrorCode.HTTP3_MISSING, "not HTTP/3")
RETRY = (ErrorCode.UNEXPECTED_RETRY, "a Retry")
OLD = (ErrorCode.WRONG_VERSION, "0x00000002")
JUDGED: list[tuple[Check, Trace, Trace, int, Fault, Fault]] = [
    *(
        case
        for check in (Check.HANDSHAKE, Check.TRANSFER, Check.HTTP3, Check.WEBTRANSPORT)
        for case in (
            (check, GOOD, GOOD, 1, None, None),
            (check, GOOD, MOVED, 1, None, TWO_IDS),
            (check, TWO, TWO, 1, (ErrorCode.HANDSHAKE_COUNT, "2 handshakes instead of 1"), TWO_IDS),
        )
    ),
    *(
        (check, GOOD, GOOD, 1, (ErrorCode.HANDSHAKE_COUNT, "shows 1 handshake instead of 2"),
         (ErrorCode.HANDSHAKE_COUNT, "have 1 source connection ids instead of 2"))
        for check in (Check.RESUMPTION, Check.ZERO_RTT)
    ),
    (Check.TRANSFER, SECOND, SECOND, 1, OLD, OLD),
    # a handshake goes without Retry, a transfer need not
    (Check.TRANSFER, RETRIED, GOOD, 1, None, None),
    (Check.HANDSHAKE, RETRIED, GOOD, 1, RETRY, RETRY),
    # HTTP/3 is looked for by our rules only
    (Check.HTTP3, PLAIN, GOOD, 1, NO_HTTP3, None),
    (Check.WEBTRANSPORT, PLAIN, GOOD, 1, NO_HTTP3, None),
    # at least as many connections as files, exactly so for upstream
    (Check.MULTICONNECT, TWO, TWO, 2, None, None),
    (Check.MULTICONNECT, THREE, THREE, 2, None, (ErrorCode.HANDSHAKE_COUNT, "have 3 source connection ids")),
    (Check.MULTICONNECT, TWO, TWO, 3, (ErrorCode.HANDSHAKE_COUNT, "over 2"), (ErrorCode.HANDSHAKE_COUNT, "have 2")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "client", "server", "files", "ours", "theirs"), JUDGED)
def test_rules_of_both(name: Check, client: Trace, server: Trace, files: int, ours: Fault, theirs: Fault) -> None:
    for upstream, fault in ((False, ours), (True, theirs)):
        check(judged(name, client, server, upstream=upstream, files=files), fault)


def recorded(name: str, check: Check) -> Verdict | None:
    """A run of aioquic against itself, judged."""
    directory = ROOT / "tests" / "data" / name
    keys = key_lines(*(directory / key_log for key_log in KEY_LOGS))
    client, server = (read(directory / trace, keys) for trace in (CLIENT_TRACE, SERVER_TRACE))
    return judge(Observation(replace(CASE, check=check), client, server, bool(keys)))


@pytest.mark.parametrize(
    ("name", "rule", "fault"),
    [
        ("retry", Check.RETRY, None), ("retry", Check.IPV6, None), ("retry", Check.MULTIPLEXING, None),
        ("lossy", Check.HANDSHAKE, None),
        ("retry", Check.HANDSHAKE, (ErrorCode.UNEXPECTED_RETRY, "a Retry (frame 2)")),
        ("lossy", Check.RETRY, (ErrorCode.RETRY_MISSING, "sent no Retry")),
        ("lossy", Check.ECN, (ErrorCode.ECN, "none of its 12 packets")),
        ("many", Check.KEY_UPDATE, (ErrorCode.KEY_UPDATE_MISSING, "none of them with updated keys")),
    ],
)  # fmt: skip
def test_recorded_runs(name: str, rule: Check, fault: Fault) -> None:
    check(recorded(name, rule), fault)


def simulated(directory: Path, check: Check, link: Link | None = None, **options: object) -> Verdict | None:
    """Real packets of aioquic over a link in memory, judged."""
    played = link or Link(delay=0.015)
    found = transfer([20_000, 3000], played, **options)  # type: ignore[arg-type]
    found.write(directory)
    keys = key_lines(*(directory / key_log for key_log in KEY_LOGS))
    client, server = (read(directory / trace, keys) for trace in (CLIENT_TRACE, SERVER_TRACE))
    told = CASE.emulated.with_both(delay=played.delay)
    return judge(Observation(replace(CASE, check=check, link=told), client, server, bool(keys)))


V2: dict[str, object] = {
    "original_version": QuicProtocolVersion.VERSION_1,
    "supported_versions": [QuicProtocolVersion.VERSION_2, QuicProtocolVersion.VERSION_1],
}
CHACHA: dict[str, object] = {"cipher_suites": [CipherSuite.CHACHA20_POLY1305_SHA256]}


@pytest.mark.parametrize(
    ("rule", "link", "options", "code"),
    [
        *((Check.LONG_RTT, Link(delay=0.75, client_drops=frozenset(lost)), {"initial_rtt": known}, None)
          for lost in ((), (1,)) for known in (0.333, 1.5)),
        # no probe, no connection
        (Check.LONG_RTT, Link(delay=0.75, client_drops=frozenset({1})), {"initial_rtt": 1000.0},
         ErrorCode.HANDSHAKE_COUNT),
        (Check.LONG_RTT, Link(delay=0.75), {}, None),
        (Check.CHACHA20, None, CHACHA, None),
        (Check.CHACHA20, None, {}, ErrorCode.WRONG_CIPHER),
        (Check.KEY_UPDATE, None, {"midway": QuicConnection.request_key_update}, None),
        (Check.KEY_UPDATE, None, {}, ErrorCode.KEY_UPDATE_MISSING),
        (Check.VERSION_2, None, V2, None),
        (Check.VERSION_2, None, {}, ErrorCode.WRONG_VERSION),
        (Check.TRANSFER, Link(delay=0.015, loss=0.1), {}, None),
        (Check.MULTIPLEXING, None, {}, None),
        (Check.ECN, None, {}, ErrorCode.ECN),
        (Check.RESUMPTION, None, {}, ErrorCode.HANDSHAKE_COUNT),
        (Check.AMPLIFICATION_LIMIT, None, {}, ErrorCode.CHAIN_TOO_SHORT),
        (Check.REBINDING, None, {}, ErrorCode.PATH_UNCHANGED),
    ],
)  # fmt: skip
def test_real_packets(
    tmp_path: Path, rule: Check, link: Link | None, options: dict[str, object], code: ErrorCode | None
) -> None:
    verdict = simulated(tmp_path, rule, link, **options)
    assert (verdict and verdict.code) is code
