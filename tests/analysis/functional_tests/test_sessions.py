"""Each rule that looks into packets passes some traces and fails others for exactly one reason."""

from dataclasses import replace

import pytest

from quicsat.analysis.functional_tests import chacha20, key_update, long_rtt, multiplexing, resumption, zero_rtt
from quicsat.analysis.functional_tests.chacha20 import CHACHA20
from quicsat.model.outcomes import ErrorCode
from quicsat.traces.columns import Connection, Form, Frame, Message
from tests.analysis.functional_tests.tables import Fault, Rows, Rules, check
from tests.quic_builder import NOBODY, Row, columns


def sealed(what: str) -> Fault:
    return ErrorCode.KEY_LOG_MISSING, what


# ---- ClientHello, cipher suite, streams -----------------------------------------------------


def hello(time: float, offset: int = 0) -> Row:
    return Row(time, False, Form.INITIAL, crypto=[(offset, 300)], eliciting=True)


def answer(time: float) -> Row:
    return Row(time, True, Form.INITIAL)


def unrepeated(words: str) -> Fault:
    return ErrorCode.HELLO_NOT_REPEATED, words


NO_PROBE = unrepeated("no probe after its first Initial (frame 1) in 4.6 s; with a")
ONCE = unrepeated("its ClientHello 1 time, not twice (frame 1)")
PROBES: Rules = {
    "second ClientHello": ([hello(0), hello(1.0), answer(1.5)], None, None),
    "PING": ([hello(0), Row(1.0, False, Form.INITIAL, eliciting=True), answer(1.5)], None, ONCE),
    "longer round trip that is known": ([hello(0), answer(1.5)], None, ONCE),
    "late probe": ([hello(0), hello(4.4), answer(6.0)], None, None),
    "second part of a ClientHello": ([hello(0), hello(0.001, 300), answer(4.6)], NO_PROBE, ONCE),
    "second part that is sent late": ([hello(0), hello(0.3, 300), answer(4.6)], NO_PROBE, ONCE),
    "second part twice": ([hello(0), hello(0.3, 300), hello(1.0, 300), answer(4.6)], None, ONCE),
    "first part late": ([hello(0, 300), hello(0.3), hello(1.0, 100), answer(4.6)], None, unrepeated("(frame 2)")),
    "after the answer": ([hello(0), answer(4.6), hello(4.7)], NO_PROBE, None),
    "padding": (
        [hello(0), Row(1.0, False, Form.INITIAL), answer(4.6)],
        unrepeated("the longest first probe time-out is 4.5 s"), ONCE,
    ),
    "no answer": ([hello(0)], unrepeated("and no answer came"), ONCE),
    "nothing": ([], unrepeated("sent no Initial"), unrepeated("0 times")),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "ours", "theirs"), PROBES.values(), ids=PROBES)
def test_long_rtt(rows: Rows, ours: Fault, theirs: Fault) -> None:
    check(long_rtt.standard(columns(*rows), round_trip=1.5), ours)
    check(long_rtt.upstream(columns(*rows)), theirs)


def test_a_short_round_trip_needs_an_early_probe() -> None:
    check(long_rtt.standard(columns(hello(0), answer(1.1)), round_trip=0.03), unrepeated("time-out is 999.0 ms"))


def suites(*offered: int, cipher: int = CHACHA20) -> Connection:
    return replace(NOBODY, offered=offered, cipher=cipher)


def limited(**parameters: int) -> Connection:
    return replace(NOBODY, server_parameters=parameters)


LIMIT = (ErrorCode.STREAM_LIMIT, "allows 1001 streams at first")
UNSTATED = (ErrorCode.STREAM_LIMIT, "does not show")
CHOSEN_LATER = (ErrorCode.WRONG_CIPHER, "server chose 0x1301")
CIPHERS: dict[str, tuple[Connection, Fault, Fault]] = {
    "ChaCha20 alone": (suites(CHACHA20), None, None),
    "another one first": (
        suites(0x1301, CHACHA20),
        (ErrorCode.WRONG_CIPHER, "offered 0x1301, 0x1303, not only 0x1303"), (ErrorCode.WRONG_CIPHER, "offered 0x1301"),
    ),
    "another one behind": (suites(CHACHA20, 0x1301, cipher=0x1301), (ErrorCode.WRONG_CIPHER, "offered 0x1303"), None),
    "reserved (RFC 8701)": (suites(0x3A3A, CHACHA20), None, (ErrorCode.WRONG_CIPHER, "offered 0x3a3a first")),
    "another one chosen": (suites(CHACHA20, cipher=0x1301), CHOSEN_LATER, None),
}  # fmt: skip
LIMITS: dict[str, tuple[Connection, Fault, Fault]] = {
    "most": (limited(initial_max_streams_bidi=1000), None, None),
    "more": (limited(initial_max_streams_bidi=1001), LIMIT, LIMIT),
    "none at first (RFC 9000, section 18.2)": (limited(initial_max_data=5), None, UNSTATED),
    "no keys": (limited(), sealed("the server's transport parameters"), UNSTATED),
}  # fmt: skip


@pytest.mark.parametrize(("connection", "ours", "theirs"), CIPHERS.values(), ids=CIPHERS)
def test_chacha20(connection: Connection, ours: Fault, theirs: Fault) -> None:
    trace = columns(hello(0), connections=[connection])
    check(chacha20.standard(trace), ours)
    check(chacha20.upstream(trace), theirs)


def test_chacha20_that_nobody_offered() -> None:
    check(chacha20.standard(columns()), (ErrorCode.WRONG_CIPHER, "no ClientHello"))
    check(chacha20.upstream(columns()), (ErrorCode.WRONG_CIPHER, "nothing"))


@pytest.mark.parametrize(("connection", "ours", "theirs"), LIMITS.values(), ids=LIMITS)
def test_multiplexing(connection: Connection, ours: Fault, theirs: Fault) -> None:
    trace = columns(hello(0), connections=[connection])
    check(multiplexing.standard(trace), ours)
    check(multiplexing.upstream(trace), theirs)


# ---- sessions -------------------------------------------------------------------------------


def flight(connection: int, *messages: int, decrypted: bool = True) -> Row:
    kinds = [(kind, 100) for kind in messages]
    return Row(
        0, True, Form.HANDSHAKE, scid=f"s{connection}", connection=connection, messages=kinds, decrypted=decrypted
    )


def served(stream: int, connection: int = 1) -> Row:
    return Row(0, True, frames=[(stream, 0, 32)], connection=connection)


FULL = flight(0, Message.ENCRYPTED_EXTENSIONS, Message.CERTIFICATE, Message.FINISHED)
SHORT = flight(1, Message.ENCRYPTED_EXTENSIONS, Message.FINISHED)
RESUMED = (NOBODY, replace(NOBODY, resumed=True, early_data=True))
UNCERTIFIED = (ErrorCode.CERTIFICATE_MISSING, "no certificate in the first handshake")
CERTIFIED = (ErrorCode.CERTIFICATE_RESENT, "in the second handshake (frame 2)")
SESSIONS: Rules = {
    "resumed": ([FULL, SHORT], None, None),
    "certificate twice": ([FULL, flight(1, Message.CERTIFICATE)], CERTIFIED, CERTIFIED),
    "no certificate": ([flight(0), SHORT], UNCERTIFIED, UNCERTIFIED),
    "one handshake": ([FULL], (ErrorCode.HANDSHAKE_COUNT, "of 1 connection instead of 2"), None),
    "three ids": (
        [FULL, flight(2), SHORT],
        (ErrorCode.HANDSHAKE_COUNT, "of 3 connections instead of 2"),
        (ErrorCode.HANDSHAKE_COUNT, "have 3 source connection ids"),
    ),
    "nothing": ([], (ErrorCode.HANDSHAKE_COUNT, "of 0 connections"), UNCERTIFIED),
    "files over the second": ([FULL, served(0, 0), SHORT, served(0)], None, None),
    "files over the first": (
        [FULL, served(0, 0), SHORT],
        (ErrorCode.SESSION_NOT_RESUMED, "No part of a file came over the resumed connection"), None,
    ),
    # a key log of one connection alone does not show a missing certificate
    "no keys of the first": ([flight(0, decrypted=False), SHORT], sealed("of the first connection"), UNCERTIFIED),
    "no keys of the second": ([flight(0), flight(1, decrypted=False)], sealed("of the second connection"), UNCERTIFIED),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "ours", "theirs"), SESSIONS.values(), ids=SESSIONS)
def test_resumption(rows: Rows, ours: Fault, theirs: Fault) -> None:
    check(resumption.standard(columns(*rows, connections=RESUMED)), ours)
    check(resumption.upstream(columns(*rows, connections=RESUMED)), theirs)


def test_a_session_that_was_not_taken_up() -> None:
    plain = columns(FULL, SHORT, connections=(NOBODY, NOBODY))
    check(resumption.standard(plain), (ErrorCode.SESSION_NOT_RESUMED, "no pre_shared_key"))
    check(resumption.upstream(plain), None)


# ---- 0-RTT ----------------------------------------------------------------------------------


def asked(form: Form, stream: int, connection: int = 1, *, decrypted: bool = True, size: int = 250) -> Row:
    frames = [(stream, 0, 100)] if decrypted else []
    return Row(0, False, form, frames=frames, connection=connection, decrypted=decrypted, size=size, dcid="00" * 8)


def late(*streams: int, connection: int = 1) -> list[Row]:
    return [asked(Form.ONE_RTT, stream, connection) for stream in streams]


def too_late(words: str) -> Fault:
    return ErrorCode.EARLY_DATA_LATE, words


OTHERS = "; the client sent others in 1-RTT packets"
FIRST = [asked(Form.ONE_RTT, 0, connection=0), served(0, connection=0)]
EARLY = [asked(Form.ZERO_RTT, stream) for stream in (0, 4, 8)]
CLOSED = [asked(Form.ZERO_RTT, 0, decrypted=False)] * 2
SERVED = [served(stream) for stream in (0, 4, 8)]
NOTHING_EARLY = (ErrorCode.EARLY_DATA_MISSING, "no 0-RTT packet")
REQUESTS: Rules = {
    "all early": ([*FIRST, *EARLY, *SERVED], None, None),
    "half early": ([*FIRST, *EARLY, *SERVED, *late(8)], None, None),
    "few early": (
        [*FIRST, *EARLY, *late(4, 8), *SERVED],
        too_late(f"Only 1 of 4 requests were early{OTHERS} (frames 6, 7)."), None,
    ),
    # what the server answered although no 1-RTT packet asked for it was asked for early
    "no early keys": ([*FIRST, *CLOSED, *SERVED], None, None),
    "no early keys, all late": (
        [*FIRST, *CLOSED, *late(0, 4, 8), *SERVED],
        too_late(f"Only 0 of 4 requests were early{OTHERS} (frames 5, 6, 7)."), None,
    ),
    "nearly all files over the first connection": (
        [row for stream in (0, 4, 8, 12) for row in (asked(Form.ONE_RTT, stream, 0), served(stream, 0))]
        + [EARLY[0], SERVED[0]],
        too_late("Only 1 of 5 requests were early."), None,
    ),
    "no early data": (FIRST, NOTHING_EARLY, NOTHING_EARLY),
    "no keys of the server": (
        [*EARLY, Row(0, True, decrypted=False, connection=1)], sealed("the server's 1-RTT packets"), None,
    ),
    "no keys of the client": (
        [*EARLY, *SERVED, asked(Form.ONE_RTT, 0, decrypted=False, size=9000)], sealed("the client's 1-RTT packets"),
        None,
    ),
    "5000 bytes late": ([*EARLY, *SERVED, asked(Form.ONE_RTT, 0, size=5010)], None, None),
    "more bytes late": (
        [*EARLY, *SERVED, asked(Form.ONE_RTT, 0, size=5011)], None,
        too_late("sent 5001 bytes in 1-RTT packets, more than 5000"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "ours", "theirs"), REQUESTS.values(), ids=REQUESTS)
def test_zero_rtt(rows: Rows, ours: Fault, theirs: Fault) -> None:
    check(zero_rtt.standard(columns(*rows, connections=RESUMED)), ours)
    check(zero_rtt.upstream(columns(*rows, connections=RESUMED)), theirs)


@pytest.mark.parametrize(
    "rows", [[*FIRST, *EARLY, *late(0, 4, 8), *SERVED], [*FIRST, *EARLY, Row(0, True, connection=1)]]
)
def test_zero_rtt_that_was_refused(rows: Rows) -> None:
    trace = columns(*rows, connections=(NOBODY, NOBODY))
    check(zero_rtt.standard(trace), too_late("Only 0 of 4 requests were early; the server did not accept early"))


# ---- key update -----------------------------------------------------------------------------


def early_update(side: str) -> Fault:
    return ErrorCode.KEY_UPDATE_ORDER, f"The {side} updated the keys (frame 1)"


def never_updated(side: str) -> Fault:
    return ErrorCode.KEY_UPDATE_MISSING, f"The {side} sent 1 1-RTT packets, none of them with updated"


CONFIRMED = Row(0, True, key_phase=0, signals=[(Frame.HANDSHAKE_DONE, 0, 0, "")])
MINE, THEIRS = Row(1, False, key_phase=1), Row(2, True, key_phase=1)
UNREAD = Row(1, False, decrypted=False)
GOOD = [CONFIRMED, MINE, THEIRS]
UPDATES: dict[str, tuple[Rows, Rows, Fault, Fault]] = {
    "client first": (GOOD, GOOD, None, None),
    "server first": ([CONFIRMED, THEIRS, MINE], [CONFIRMED, THEIRS, MINE], None, None),
    "server at once": ([replace(CONFIRMED, key_phase=1), MINE], [replace(CONFIRMED, key_phase=1), MINE], None, None),
    "confirmed by an acknowledgement": (
        [Row(0, True, key_phase=0, acks=[(0, -1, -1, -1)]), MINE, THEIRS], GOOD, None, None,
    ),
    "never by the client": (
        [CONFIRMED, Row(1, False, key_phase=0)], GOOD, never_updated("client"), never_updated("client"),
    ),
    "never by the server": (GOOD, [CONFIRMED, MINE], never_updated("server"), never_updated("server")),
    "no keys of the client": (
        [CONFIRMED, UNREAD], GOOD, sealed("the client's 1-RTT packets"),
        (ErrorCode.KEY_UPDATE_MISSING, "packets of the client (frame 2)"),
    ),
    "one packet that no key opens": (
        [*GOOD, UNREAD], GOOD, None, (ErrorCode.KEY_UPDATE_MISSING, "packets of the client (frame 4)"),
    ),
    "early by the client": ([MINE, CONFIRMED, THEIRS], [MINE, CONFIRMED, THEIRS], early_update("client"), None),
    "early by the server": ([THEIRS, CONFIRMED, MINE], [THEIRS, CONFIRMED, MINE], early_update("server"), None),
}  # fmt: skip


@pytest.mark.parametrize(("client", "server", "ours", "theirs"), UPDATES.values(), ids=UPDATES)
def test_key_update(client: Rows, server: Rows, ours: Fault, theirs: Fault) -> None:
    check(key_update.standard(columns(*client), columns(*server)), ours)
    check(key_update.upstream(columns(*client), columns(*server)), theirs)
