"""Each check that looks into packets passes one trace and fails another for exactly one reason."""

from __future__ import annotations

from dataclasses import replace

from quicsat.analysis.functional_tests import chacha20, key_update, long_rtt, multiplexing, resumption, zero_rtt
from quicsat.analysis.functional_tests.chacha20 import CHACHA20
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.traces.columns import Form, Frame, Message, Trace
from tests.analysis.functional_tests.test_handshakes import fails
from tests.analysis.test_run_outcome import is_fault
from tests.quic_builder import NOBODY, Row, columns


def unsupported(verdict: Verdict | None, words: str) -> bool:
    return is_fault(verdict, Outcome.UNSUPPORTED, ErrorCode.KEY_LOG_MISSING, words)


# ---- ClientHello, cipher suite, streams -----------------------------------------------------


def hello(time: float, offset: int = 0) -> Row:
    return Row(time, False, Form.INITIAL, crypto=[(offset, 300)], eliciting=True)


ANSWER = Row(1.5, True, Form.INITIAL)


def probed(trace: Trace) -> Verdict | None:
    return long_rtt.standard(trace, round_trip=1.5)


def test_long_rtt() -> None:
    assert probed(columns(hello(0), hello(1.0), ANSWER)) is None
    assert probed(columns(hello(0), Row(1.0, False, Form.INITIAL, eliciting=True), ANSWER)) is None


def test_a_client_may_know_a_longer_round_trip_and_probe_later() -> None:
    assert probed(columns(hello(0), ANSWER)) is None
    assert probed(columns(hello(0), hello(4.4), Row(6.0, True, Form.INITIAL))) is None


def test_the_second_part_of_a_client_hello_is_no_probe_whenever_it_is_sent() -> None:
    late = Row(4.6, True, Form.INITIAL)
    paced = probed(columns(hello(0), hello(0.3, 300), late))
    assert fails(paced, ErrorCode.HELLO_NOT_REPEATED, "no probe")
    assert probed(columns(hello(0), hello(0.3, 300), hello(1.0, 300), late)) is None
    assert probed(columns(hello(0, 300), hello(0.3), hello(1.0, 100), late)) is None


def test_a_client_that_never_probes() -> None:
    late = Row(4.6, True, Form.INITIAL)
    two_parts = probed(columns(hello(0), hello(0.001, 300), late))
    assert fails(two_parts, ErrorCode.HELLO_NOT_REPEATED, "no probe after its first Initial (frame 1) in 4.6 s; with a")
    assert fails(probed(columns(hello(0), late, hello(4.7))), ErrorCode.HELLO_NOT_REPEATED, "no probe")
    padding = columns(hello(0), Row(1.0, False, Form.INITIAL), late)
    assert fails(probed(padding), ErrorCode.HELLO_NOT_REPEATED, "the longest first probe time-out is 4.5 s")
    assert fails(probed(columns(hello(0))), ErrorCode.HELLO_NOT_REPEATED, "and no answer came")
    near = long_rtt.standard(columns(hello(0), Row(1.1, True, Form.INITIAL)), round_trip=0.03)
    assert fails(near, ErrorCode.HELLO_NOT_REPEATED, "time-out is 999.0 ms")
    assert fails(probed(columns()), ErrorCode.HELLO_NOT_REPEATED, "sent no Initial")


def suites(*offered: int, cipher: int = CHACHA20) -> Trace:
    return columns(hello(0), connections=[replace(NOBODY, offered=offered, cipher=cipher)])


def test_chacha20() -> None:
    assert chacha20.standard(suites(CHACHA20)) is None
    more = chacha20.standard(suites(0x1301, CHACHA20))
    assert fails(more, ErrorCode.WRONG_CIPHER, "offered 0x1301, 0x1303, not only 0x1303")
    assert chacha20.standard(suites(0x3A3A, CHACHA20)) is None  # RFC 8701
    other = chacha20.standard(suites(CHACHA20, cipher=0x1301))
    assert fails(other, ErrorCode.WRONG_CIPHER, "server chose 0x1301")
    assert fails(chacha20.standard(columns()), ErrorCode.WRONG_CIPHER, "no ClientHello")


def limited(**parameters: int) -> Trace:
    return columns(hello(0), connections=[replace(NOBODY, server_parameters=parameters)])


def test_multiplexing() -> None:
    assert multiplexing.standard(limited(initial_max_streams_bidi=1000)) is None
    assert multiplexing.standard(limited(initial_max_data=5)) is None  # none at first (RFC 9000, section 18.2)
    many = multiplexing.standard(limited(initial_max_streams_bidi=1001))
    assert fails(many, ErrorCode.STREAM_LIMIT, "allows 1001 streams at first")
    assert unsupported(multiplexing.standard(limited()), "the server's transport parameters")


# ---- sessions -------------------------------------------------------------------------------


def flight(connection: int, *messages: int, decrypted: bool = True) -> Row:
    kinds = [(kind, 100) for kind in messages]
    return Row(
        0, True, Form.HANDSHAKE, scid=f"s{connection}", connection=connection, messages=kinds, decrypted=decrypted
    )


FULL = flight(0, Message.ENCRYPTED_EXTENSIONS, Message.CERTIFICATE, Message.FINISHED)
SHORT = flight(1, Message.ENCRYPTED_EXTENSIONS, Message.FINISHED)
RESUMED = (NOBODY, replace(NOBODY, resumed=True, early_data=True))


def test_resumption() -> None:
    assert resumption.standard(columns(FULL, SHORT, connections=RESUMED)) is None
    certified = flight(1, Message.CERTIFICATE)
    again = resumption.standard(columns(FULL, certified, connections=RESUMED))
    assert fails(again, ErrorCode.CERTIFICATE_RESENT, "in the second handshake (frame 2)")
    never = resumption.standard(columns(flight(0), SHORT, connections=RESUMED))
    assert fails(never, ErrorCode.CERTIFICATE_MISSING, "no certificate in the first handshake")
    once = resumption.standard(columns(FULL, connections=RESUMED))
    assert fails(once, ErrorCode.HANDSHAKE_COUNT, "of 1 connection instead of 2")
    closed = [flight(number, decrypted=False) for number in (0, 1)]
    assert unsupported(resumption.standard(columns(*closed, connections=RESUMED)), "Handshake packets")


def test_a_key_log_of_one_connection_alone_does_not_show_a_missing_certificate() -> None:
    for which in (0, 1):
        flights = [flight(number, decrypted=number != which) for number in (0, 1)]
        name = ("first", "second")[which]
        assert unsupported(resumption.standard(columns(*flights, connections=RESUMED)), f"of the {name} connection")


def test_a_session_that_was_not_taken_up() -> None:
    trace = columns(FULL, SHORT, connections=(NOBODY, NOBODY))
    assert fails(resumption.standard(trace), ErrorCode.SESSION_NOT_RESUMED, "no pre_shared_key")


def test_a_resumed_connection_carries_files() -> None:
    first, second = (Row(0, True, frames=[(0, 0, 9)], connection=number) for number in (0, 1))
    assert resumption.standard(columns(FULL, first, SHORT, second, connections=RESUMED)) is None
    idle = resumption.standard(columns(FULL, first, first, SHORT, connections=RESUMED))
    assert fails(idle, ErrorCode.SESSION_NOT_RESUMED, "No part of a file came over the resumed connection")


def asked(form: Form, stream: int, connection: int = 1, *, decrypted: bool = True) -> Row:
    frames = [(stream, 0, 100)] if decrypted else []
    return Row(0, False, form, frames=frames, connection=connection, decrypted=decrypted)


def served(stream: int, connection: int = 1) -> Row:
    return Row(0, True, frames=[(stream, 0, 32)], connection=connection)


FIRST = [asked(Form.ONE_RTT, 0, connection=0), served(0, connection=0)]
EARLY = [asked(Form.ZERO_RTT, stream) for stream in (0, 4, 8)]
SERVED = [served(stream) for stream in (0, 4, 8)]


def early(*rows: Row, taken: bool = True) -> Verdict | None:
    second = replace(NOBODY, resumed=True, early_data=taken)
    return zero_rtt.standard(columns(*rows, connections=(NOBODY, second)))


def late(*streams: int, connection: int = 1) -> list[Row]:
    return [asked(Form.ONE_RTT, stream, connection) for stream in streams]


def test_zero_rtt() -> None:
    assert early(*FIRST, *EARLY, *SERVED) is None
    assert early(*FIRST, *EARLY, *SERVED, *late(8)) is None  # half
    few = early(*FIRST, *EARLY, *late(4, 8), *SERVED)
    assert fails(few, ErrorCode.EARLY_DATA_LATE, "Only 1 of 4 requests were early (frames 6, 7).")


def test_zero_rtt_without_early_keys() -> None:
    """What the server answered although no 1-RTT packet asked for it was asked for early."""
    closed = [asked(Form.ZERO_RTT, 0, decrypted=False)] * 2
    assert early(*FIRST, *closed, *SERVED) is None
    few = early(*FIRST, *closed, *late(0, 4, 8), *SERVED)
    assert fails(few, ErrorCode.EARLY_DATA_LATE, "Only 0 of 4 requests were early (frames 5, 6, 7).")


def test_zero_rtt_for_few_of_the_files() -> None:
    """Nearly all files over the first connection."""
    before = [row for stream in (0, 4, 8, 12) for row in (asked(Form.ONE_RTT, stream, 0), served(stream, 0))]
    few = early(*before, EARLY[0], SERVED[0])
    assert fails(few, ErrorCode.EARLY_DATA_LATE, "Only 1 of 5 requests were early.")


def test_zero_rtt_that_was_refused() -> None:
    again = early(*FIRST, *EARLY, *late(0, 4, 8), *SERVED, taken=False)
    assert fails(again, ErrorCode.EARLY_DATA_LATE, "Only 0 of 4 requests were early; the server did not accept early")
    ignored = early(*FIRST, *EARLY, Row(0, True, connection=1), taken=False)
    assert fails(ignored, ErrorCode.EARLY_DATA_LATE, "Only 0 of 4 requests were early; the server did not accept early")


def test_zero_rtt_that_is_not_there_or_cannot_be_read() -> None:
    assert fails(early(*FIRST), ErrorCode.EARLY_DATA_MISSING, "no 0-RTT packet")
    closed = Row(0, True, decrypted=False, connection=1)
    assert unsupported(early(*EARLY, closed), "the server's 1-RTT packets")
    mine = asked(Form.ONE_RTT, 0, decrypted=False)
    assert unsupported(early(*EARLY, *SERVED, mine), "the client's 1-RTT packets")


# ---- key update -----------------------------------------------------------------------------

CONFIRMED = Row(0, True, key_phase=0, signals=[(Frame.HANDSHAKE_DONE, 0, 0, "")])
MINE, THEIRS = Row(1, False, key_phase=1), Row(2, True, key_phase=1)


def test_key_update() -> None:
    good = columns(CONFIRMED, MINE, THEIRS)
    acknowledged = columns(Row(0, True, key_phase=0, acks=[(0, -1, -1, -1)]), MINE, THEIRS)
    assert key_update.standard(good, good) is None
    assert key_update.standard(acknowledged, good) is None
    never = key_update.standard(columns(CONFIRMED, Row(1, False, key_phase=0)), good)
    assert fails(never, ErrorCode.KEY_UPDATE_MISSING, "The client sent 1 1-RTT packets, none of them with updated")
    alone = key_update.standard(good, columns(CONFIRMED, MINE))
    assert fails(alone, ErrorCode.KEY_UPDATE_MISSING, "The server sent 1 1-RTT packets, none of them with updated")
    closed = columns(CONFIRMED, Row(1, False, decrypted=False))
    assert unsupported(key_update.standard(closed, good), "the client's 1-RTT packets")


def test_either_side_may_update_the_keys_first() -> None:
    served = columns(CONFIRMED, THEIRS, MINE)
    at_once = columns(Row(0, True, key_phase=1, signals=[(Frame.HANDSHAKE_DONE, 0, 0, "")]), MINE)
    assert key_update.standard(served, served) is None
    assert key_update.standard(at_once, at_once) is None


def test_a_key_update_that_came_too_early() -> None:
    hasty = columns(MINE, CONFIRMED, THEIRS)
    assert fails(key_update.standard(hasty, hasty), ErrorCode.KEY_UPDATE_ORDER, "The client updated the keys (frame 1)")
    rash = columns(THEIRS, CONFIRMED, MINE)
    assert fails(key_update.standard(rash, rash), ErrorCode.KEY_UPDATE_ORDER, "The server updated the keys (frame 1)")
