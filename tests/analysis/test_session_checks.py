"""Each check that looks into packets passes one trace and fails another for exactly one reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interop.analysis import session_checks as checks
from interop.analysis.session_checks import CHACHA20
from interop.model.outcomes import ErrorCode, Outcome, Verdict
from interop.traces.columns import Form, Frame, Message, Trace
from tests.analysis.test_handshake_checks import fails
from tests.analysis.test_run_outcome import is_fault
from tests.quic_builder import NOBODY, Row, columns


def unsupported(verdict: Verdict | None, words: str) -> bool:
    return is_fault(verdict, Outcome.UNSUPPORTED, ErrorCode.KEY_LOG_MISSING, words)


# ---- ClientHello, cipher suite, streams -----------------------------------------------------


def hello(time: float, offset: int = 0) -> Row:
    return Row(time, False, Form.INITIAL, crypto=[(offset, 300)], eliciting=True)


ANSWER = Row(1.5, True, Form.INITIAL)


def long_rtt(trace: Trace, *, upstream: bool = False) -> Verdict | None:
    return checks.long_rtt(trace, round_trip=1.5, upstream=upstream)


def test_long_rtt() -> None:
    for upstream in (False, True):
        assert long_rtt(columns(hello(0), hello(1.0), ANSWER), upstream=upstream) is None
    probed = columns(hello(0), Row(1.0, False, Form.INITIAL, eliciting=True), ANSWER)
    assert long_rtt(probed) is None
    once = long_rtt(probed, upstream=True)
    assert fails(once, ErrorCode.HELLO_NOT_REPEATED, "its ClientHello 1 times, not twice (frame 1)")


def test_a_client_may_know_a_longer_round_trip_and_probe_later() -> None:
    assert long_rtt(columns(hello(0), ANSWER)) is None
    assert long_rtt(columns(hello(0), hello(4.4), Row(6.0, True, Form.INITIAL))) is None
    assert fails(long_rtt(columns(hello(0), ANSWER), upstream=True), ErrorCode.HELLO_NOT_REPEATED, "1 times")


def test_a_client_that_never_probes() -> None:
    late = Row(4.6, True, Form.INITIAL)
    two_parts = long_rtt(columns(hello(0), hello(0.001, 300), late))
    assert fails(two_parts, ErrorCode.HELLO_NOT_REPEATED, "no probe after its first Initial (frame 1) in 4.6 s; with a")
    assert fails(long_rtt(columns(hello(0), late, hello(4.7))), ErrorCode.HELLO_NOT_REPEATED, "no probe")
    padding = columns(hello(0), Row(1.0, False, Form.INITIAL), late)
    assert fails(long_rtt(padding), ErrorCode.HELLO_NOT_REPEATED, "the longest first probe time-out is 4.5 s")
    assert fails(long_rtt(columns(hello(0))), ErrorCode.HELLO_NOT_REPEATED, "and no answer came")
    near = checks.long_rtt(columns(hello(0), Row(1.1, True, Form.INITIAL)), round_trip=0.03)
    assert fails(near, ErrorCode.HELLO_NOT_REPEATED, "time-out is 999.0 ms")
    assert fails(long_rtt(columns()), ErrorCode.HELLO_NOT_REPEATED, "sent no Initial")


def suites(*offered: int, cipher: int = CHACHA20) -> Trace:
    return columns(hello(0), connections=[replace(NOBODY, offered=offered, cipher=cipher)])


def test_chacha20() -> None:
    for upstream in (False, True):
        assert checks.chacha20(suites(CHACHA20), upstream=upstream) is None
        more = checks.chacha20(suites(0x1301, CHACHA20), upstream=upstream)
        assert fails(more, ErrorCode.WRONG_CIPHER, "offered 0x1301, 0x1303, not only 0x1303")
    assert checks.chacha20(suites(0x3A3A, CHACHA20)) is None  # RFC 8701
    assert fails(checks.chacha20(suites(0x3A3A, CHACHA20), upstream=True), ErrorCode.WRONG_CIPHER, "0x3a3a")
    other = suites(CHACHA20, cipher=0x1301)
    assert fails(checks.chacha20(other), ErrorCode.WRONG_CIPHER, "server chose 0x1301")
    assert checks.chacha20(other, upstream=True) is None
    assert fails(checks.chacha20(columns()), ErrorCode.WRONG_CIPHER, "no ClientHello")


def limited(**parameters: int) -> Trace:
    return columns(hello(0), connections=[replace(NOBODY, server_parameters=parameters)])


def test_multiplexing() -> None:
    assert checks.multiplexing(limited(initial_max_streams_bidi=1000)) is None
    assert checks.multiplexing(limited(initial_max_data=5)) is None  # none at first (RFC 9000, section 18.2)
    many = checks.multiplexing(limited(initial_max_streams_bidi=1001))
    assert fails(many, ErrorCode.STREAM_LIMIT, "allows 1001 streams at first")
    assert unsupported(checks.multiplexing(limited()), "the server's transport parameters")


# ---- sessions -------------------------------------------------------------------------------


def flight(connection: int, *messages: int, decrypted: bool = True) -> Row:
    kinds = [(kind, 100) for kind in messages]
    return Row(
        0, True, Form.HANDSHAKE, scid=f"s{connection}", connection=connection, messages=kinds, decrypted=decrypted
    )


FULL = flight(0, Message.ENCRYPTED_EXTENSIONS, Message.CERTIFICATE, Message.FINISHED)
SHORT = flight(1, Message.ENCRYPTED_EXTENSIONS, Message.FINISHED)
RESUMED = (NOBODY, replace(NOBODY, resumed=True, early_data=True))


@pytest.mark.parametrize("upstream", [False, True])
def test_resumption(upstream: bool) -> None:
    assert checks.resumption(columns(FULL, SHORT, connections=RESUMED), upstream=upstream) is None
    certified = flight(1, Message.CERTIFICATE)
    again = checks.resumption(columns(FULL, certified, connections=RESUMED), upstream=upstream)
    assert fails(again, ErrorCode.CERTIFICATE_RESENT, "in the second handshake (frame 2)")
    never = checks.resumption(columns(flight(0), SHORT, connections=RESUMED), upstream=upstream)
    assert fails(never, ErrorCode.CERTIFICATE_MISSING, "no certificate in the first handshake")
    once = checks.resumption(columns(FULL, connections=RESUMED), upstream=upstream)
    assert fails(once, ErrorCode.HANDSHAKE_COUNT, "of 1 connections instead of 2")
    closed = [flight(number, decrypted=False) for number in (0, 1)]
    assert unsupported(checks.resumption(columns(*closed, connections=RESUMED), upstream=upstream), "Handshake packets")


def test_a_session_that_was_not_taken_up() -> None:
    trace = columns(FULL, SHORT, connections=(NOBODY, NOBODY))
    assert fails(checks.resumption(trace), ErrorCode.SESSION_NOT_RESUMED, "no pre_shared_key")
    assert checks.resumption(trace, upstream=True) is None


def asked(form: Form, stream: int, connection: int = 1, size: int = 1200) -> Row:
    return Row(0, False, form, frames=[(stream, 0, 100)], connection=connection, size=size)


EARLY = [asked(Form.ZERO_RTT, stream) for stream in (0, 4, 8, 12)]


def test_zero_rtt() -> None:
    first = asked(Form.ONE_RTT, 0, connection=0)
    assert checks.zero_rtt(columns(first, *EARLY, connections=RESUMED)) is None
    half = [*EARLY[:2], asked(Form.ONE_RTT, 8), asked(Form.ONE_RTT, 12)]
    assert checks.zero_rtt(columns(first, *half, connections=RESUMED)) is None
    most = [*EARLY[:1], *(asked(Form.ONE_RTT, stream) for stream in (4, 8, 12))]
    late = checks.zero_rtt(columns(first, *most, connections=RESUMED))
    assert fails(late, ErrorCode.EARLY_DATA_LATE, "Only 100 of 400 bytes of requests were early")
    assert fails(late, ErrorCode.EARLY_DATA_LATE, "in 1-RTT packets (frames 3, 4, 5).")


def test_zero_rtt_that_was_refused() -> None:
    again = [asked(Form.ONE_RTT, stream) for stream in (0, 4, 8)]
    refused = checks.zero_rtt(columns(*EARLY, *again, connections=(NOBODY, replace(NOBODY, resumed=True))))
    assert fails(refused, ErrorCode.EARLY_DATA_LATE, "Only 100 of 400 bytes")
    assert fails(refused, ErrorCode.EARLY_DATA_LATE, "the server did not accept early data")


def test_zero_rtt_that_is_not_there_or_cannot_be_read() -> None:
    assert fails(checks.zero_rtt(columns(asked(Form.ONE_RTT, 0, 0))), ErrorCode.EARLY_DATA_MISSING, "no 0-RTT packet")
    assert unsupported(checks.zero_rtt(columns(Row(0, False, Form.ZERO_RTT, decrypted=False))), "1 0-RTT packets")


def test_zero_rtt_as_upstream_sees_it() -> None:
    padded = columns(*EARLY, *[Row(0, False, size=1250, dcid="00" * 8) for _ in range(5)], connections=RESUMED)
    assert checks.zero_rtt(padded) is None
    late = checks.zero_rtt_upstream(padded)
    assert fails(late, ErrorCode.EARLY_DATA_LATE, "sent 6200 bytes in 1-RTT packets, more than 5000")
    assert (
        checks.zero_rtt_upstream(columns(*EARLY, Row(0, False, size=5010, dcid="00" * 8), connections=RESUMED)) is None
    )
    assert fails(checks.zero_rtt_upstream(columns(Row(0, False))), ErrorCode.EARLY_DATA_MISSING, "no 0-RTT packet")


# ---- key update -----------------------------------------------------------------------------

CONFIRMED = Row(0, True, key_phase=0, signals=[(Frame.HANDSHAKE_DONE, 0, 0, "")])
MINE, THEIRS = Row(1, False, key_phase=1), Row(2, True, key_phase=1)


def test_key_update() -> None:
    good = columns(CONFIRMED, MINE, THEIRS)
    acknowledged = columns(Row(0, True, key_phase=0, acks=[(0, -1, -1, -1)]), MINE, THEIRS)
    for upstream in (False, True):
        assert checks.key_update(good, good, upstream=upstream) is None
        assert checks.key_update(acknowledged, good, upstream=upstream) is None
        never = checks.key_update(columns(CONFIRMED, Row(1, False, key_phase=0)), good, upstream=upstream)
        assert fails(never, ErrorCode.KEY_UPDATE_MISSING, "The client sent 1 1-RTT packets, none of them with updated")
        alone = checks.key_update(good, columns(CONFIRMED, MINE), upstream=upstream)
        assert fails(alone, ErrorCode.KEY_UPDATE_MISSING, "The server sent 1 1-RTT packets, none of them with updated")
        closed = columns(CONFIRMED, Row(1, False, decrypted=False))
        assert unsupported(checks.key_update(closed, good, upstream=upstream), "the client's 1-RTT packets")


def test_either_side_may_update_the_keys_first() -> None:
    served = columns(CONFIRMED, THEIRS, MINE)
    at_once = columns(Row(0, True, key_phase=1, signals=[(Frame.HANDSHAKE_DONE, 0, 0, "")]), MINE)
    assert checks.key_update(served, served) is None
    assert checks.key_update(at_once, at_once) is None


def test_a_key_update_that_came_too_early() -> None:
    hasty = columns(MINE, CONFIRMED, THEIRS)
    assert fails(checks.key_update(hasty, hasty), ErrorCode.KEY_UPDATE_ORDER, "The client updated the keys (frame 1)")
    rash = columns(THEIRS, CONFIRMED, MINE)
    assert fails(checks.key_update(rash, rash), ErrorCode.KEY_UPDATE_ORDER, "The server updated the keys (frame 1)")
    for trace in (rash, hasty):
        assert checks.key_update(trace, trace, upstream=True) is None
