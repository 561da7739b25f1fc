"""Each rule of the QUIC Interop Runner passes one trace and fails another, and differs from ours where it should."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quicsat.analysis.functional_tests import (
    amplification_limit,
    chacha20,
    ecn,
    ipv6,
    key_update,
    long_rtt,
    multiplexing,
    resumption,
    retry,
    version_negotiation,
    zero_rtt,
)
from quicsat.analysis.functional_tests.chacha20 import CHACHA20
from quicsat.analysis.functional_tests.ecn import CE, ECT_0, ECT_1
from quicsat.analysis.functional_tests.rule import handshakes_by_id
from quicsat.model.outcomes import ErrorCode
from quicsat.traces.columns import Form, Message
from tests.analysis.functional_tests import test_network as network
from tests.analysis.functional_tests import test_paths as paths
from tests.analysis.functional_tests import test_sessions as sessions
from tests.analysis.functional_tests.test_handshakes import ANSWER, UNHEARD, asking, fails, negotiation, retried
from tests.analysis.functional_tests.test_sessions import FULL, RESUMED, SHORT, flight, hello, limited, suites
from tests.analysis.test_run_outcome import connection, initial
from tests.quic_builder import Row, columns


def test_handshakes_are_counted_by_the_ids_of_the_server() -> None:
    two = columns(*connection(1), initial(True, "other", "c1"))
    assert handshakes_by_id(two, 2) is None
    assert fails(handshakes_by_id(two), ErrorCode.HANDSHAKE_COUNT, "2 source connection ids instead of 1")


def test_version_negotiation_is_known_by_its_source_id() -> None:
    half = columns(UNHEARD, negotiation("s", "x"))
    assert version_negotiation.upstream(half) is None
    assert version_negotiation.standard(half) is not None
    assert fails(
        version_negotiation.upstream(columns(UNHEARD, negotiation("x", "c"))), ErrorCode.CONNECTION_IDS, "frame 1"
    )
    assert fails(
        version_negotiation.upstream(columns(UNHEARD)), ErrorCode.VERSION_NEGOTIATION, "no Version Negotiation"
    )


def test_a_ping_is_no_second_client_hello() -> None:
    probed = columns(hello(0), Row(1.0, False, Form.INITIAL, eliciting=True), sessions.ANSWER)
    assert sessions.probed(probed) is None
    assert fails(long_rtt.upstream(probed), ErrorCode.HELLO_NOT_REPEATED, "its ClientHello 1 time, not twice (frame 1)")
    assert long_rtt.upstream(columns(hello(0), hello(1.0))) is None


def test_the_first_cipher_suite_counts() -> None:
    assert chacha20.upstream(suites(CHACHA20)) is None
    more = suites(CHACHA20, 0x1301, cipher=0x1301)
    assert chacha20.upstream(more) is None
    assert chacha20.standard(more) is not None
    greased = suites(0x3A3A, CHACHA20)
    assert fails(chacha20.upstream(greased), ErrorCode.WRONG_CIPHER, "offered 0x3a3a first")
    assert chacha20.standard(greased) is None
    assert fails(chacha20.upstream(columns()), ErrorCode.WRONG_CIPHER, "nothing")


def test_a_stream_limit_has_to_be_stated() -> None:
    assert multiplexing.upstream(limited(initial_max_streams_bidi=1000)) is None
    assert fails(multiplexing.upstream(limited(initial_max_streams_bidi=1001)), ErrorCode.STREAM_LIMIT, "allows 1001")
    for unstated in (limited(initial_max_data=5), limited()):
        assert fails(multiplexing.upstream(unstated), ErrorCode.STREAM_LIMIT, "does not show")
        assert multiplexing.standard(unstated) != multiplexing.upstream(unstated)


def test_retry() -> None:
    assert retry.upstream(columns(asking(0), retried(), asking(1, "t"), ANSWER)) is None
    assert retry.standard(columns(asking(0), retried(), asking(1, "t"), ANSWER)) is not None  # other id
    assert retry.upstream(columns(asking(0, "old"), retried(), asking(1, "t", "new"))) is None
    later = columns(asking(0), retried(), asking(1, "t", "new"), asking(5))
    assert retry.upstream(later) is None
    assert fails(retry.upstream(columns(asking(0))), ErrorCode.RETRY_MISSING, "sent no Retry")
    empty = retry.upstream(columns(asking(0), retried(""), asking(1)))
    assert fails(empty, ErrorCode.RETRY_WITHOUT_TOKEN, "frame 2")
    assert fails(
        retry.upstream(columns(asking(0), retried(), asking(1))), ErrorCode.RETRY_TOKEN, "No Initial has the token"
    )
    again = columns(asking(3), retried(), asking(3, "u", "new"), asking(4, "t", "new"))
    assert fails(retry.upstream(again), ErrorCode.PACKET_NUMBER_RESET, "number is 3 (frame 3), and was 3 before")


def test_resumption_by_certificates() -> None:
    assert resumption.upstream(columns(FULL, SHORT)) is None
    certified = resumption.upstream(columns(FULL, flight(1, Message.CERTIFICATE)))
    assert fails(certified, ErrorCode.CERTIFICATE_RESENT, "(frame 2)")
    for closed in (columns(flight(0, decrypted=False), SHORT), columns()):
        assert fails(resumption.upstream(closed), ErrorCode.CERTIFICATE_MISSING, "no certificate in the first")
    three = resumption.upstream(columns(FULL, flight(2), SHORT))
    assert fails(three, ErrorCode.HANDSHAKE_COUNT, "have 3 source connection ids")
    plain = columns(FULL, SHORT, connections=(RESUMED[0], RESUMED[0]))
    assert resumption.upstream(plain) is None
    assert resumption.standard(plain) is not None


def test_zero_rtt_by_the_bytes_of_the_client() -> None:
    sent = columns(*sessions.EARLY, *[Row(0, False, size=1250, dcid="00" * 8) for _ in range(5)], connections=RESUMED)
    late = zero_rtt.upstream(sent)
    assert fails(late, ErrorCode.EARLY_DATA_LATE, "sent 6200 bytes in 1-RTT packets, more than 5000")
    most = columns(*sessions.EARLY, Row(0, False, size=5010, dcid="00" * 8), connections=RESUMED)
    assert zero_rtt.upstream(most) is None
    assert fails(zero_rtt.upstream(columns(Row(0, False))), ErrorCode.EARLY_DATA_MISSING, "no 0-RTT packet")


def test_what_no_key_opens_has_no_bytes_of_zero_rtt() -> None:
    closed = [
        replace(row, decrypted=False, frames=()) for row in (sessions.EARLY[0], *sessions.late(0, 4), *sessions.SERVED)
    ]
    trace = columns(*[replace(row, size=4000) for row in closed], connections=RESUMED)
    assert zero_rtt.upstream(trace) is None
    assert sessions.unsupported(zero_rtt.standard(trace), "1-RTT packets")


def test_key_phases_that_cannot_be_read_fail() -> None:
    good = columns(sessions.CONFIRMED, sessions.MINE, sessions.THEIRS)
    assert key_update.upstream(good, good) is None
    never = key_update.upstream(columns(sessions.CONFIRMED, Row(1, False, key_phase=0)), good)
    assert fails(never, ErrorCode.KEY_UPDATE_MISSING, "The client sent 1 1-RTT packets, none of them with updated")
    closed = columns(sessions.CONFIRMED, sessions.MINE, sessions.THEIRS, Row(1, False, decrypted=False))
    assert fails(key_update.upstream(closed, good), ErrorCode.KEY_UPDATE_MISSING, "packets of the client (frame 4)")
    assert key_update.standard(closed, good) is None
    hasty = columns(sessions.MINE, sessions.CONFIRMED, sessions.THEIRS)
    assert key_update.upstream(hasty, hasty) is None
    assert key_update.standard(hasty, hasty) is not None


def test_ecn_counts_are_not_compared() -> None:
    def both(mine: list[Row], theirs: list[Row]) -> tuple[bool, bool]:
        trace = columns(*mine, *theirs)
        return ecn.upstream(trace, trace) is None, ecn.standard(trace, trace) is None

    marked = network.marked
    assert both(network.GOOD[False], network.GOOD[True]) == (True, True)
    assert both(network.GOOD[False], marked(True, ECT_0, ECT_0, ect0=4)) == (True, False)
    assert both(network.GOOD[False], marked(True, ECT_0, ECT_0, ect0=0)) == (True, False)
    assert both(network.GOOD[False], marked(True, ECT_0, ECT_0)) == (False, False)
    assert both(network.GOOD[False], marked(True, ECT_0, CE, ect0=3)) == (False, False)
    assert both(*(marked(side, ECT_1, ect0=0, ect1=2) for side in (False, True))) == (True, True)
    assert both(*(marked(side, ECT_0, ect0=2, path=paths.IPV6) for side in (False, True))) == (False, True)
    second = [replace(row, size=0 if row.acks else 1200) for row in network.GOOD[True]]
    assert both(network.GOOD[False], second) == (False, True)


def test_amplification() -> None:
    got, sent, proof = network.got, network.sent, network.PROOF

    def passes(*rows: Row) -> tuple[bool, bool]:
        trace = columns(*rows)
        return amplification_limit.upstream(trace) is None, amplification_limit.standard(trace) is None

    assert passes(got(1200), sent(3600, network.CHAIN), proof) == (True, True)
    assert passes(got(1200), sent(3601, network.CHAIN), proof) == (True, False)
    assert passes(got(1200), sent(4799, network.CHAIN), proof) == (True, False)
    assert passes(got(1200), sent(4800, network.CHAIN), proof) == (False, False)
    by_id = got(1200), sent(3600, network.CHAIN), got(100, dcid=network.SAFE), sent(2000), proof
    assert passes(*by_id) == (False, True)
    coalesced = got(1200), sent(3600, network.CHAIN), got(1200), replace(proof, size=0)
    assert passes(*coalesced) == (False, False)
    together = columns(*coalesced)
    together.frame[3] = together.frame[2]
    assert amplification_limit.standard(together) is None
    assert amplification_limit.upstream(together) is not None


@pytest.mark.parametrize("form", [Form.VERSION_NEGOTIATION, Form.UNKNOWN])
def test_other_packets_fail_the_amplification_test(form: Form) -> None:
    odd = Row(0, form is Form.VERSION_NEGOTIATION, form, size=60)
    trace = columns(network.got(1200), odd, network.sent(3400, network.CHAIN), network.PROOF)
    assert fails(amplification_limit.upstream(trace), ErrorCode.AMPLIFICATION, "(frame 2)")
    assert amplification_limit.standard(trace) is None


def test_the_certificates_have_to_be_seen() -> None:
    closed = columns(network.got(1200), network.sent(1200), network.PROOF)
    assert fails(amplification_limit.upstream(closed), ErrorCode.CHAIN_TOO_SHORT, "had 0 bytes")
    never = columns(network.got(1200), network.sent(1200, network.CHAIN))
    assert fails(amplification_limit.upstream(never), ErrorCode.AMPLIFICATION, "begins with a Handshake packet")


def test_ipv6_is_looked_for_where_the_server_sends() -> None:
    tried = columns(Row(0, False, path=paths.IPV4), Row(0, True, path=paths.IPV6))
    assert ipv6.upstream(tried) is None
    assert ipv6.standard(tried, tried) is not None
    answered = columns(Row(0, True, path=paths.IPV4))
    assert fails(
        ipv6.upstream(answered), ErrorCode.IPV4_USED, "server's trace shows 1 packet of IPv4, the first in frame 1"
    )
