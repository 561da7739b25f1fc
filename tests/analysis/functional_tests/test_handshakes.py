"""Each check of how connections are set up passes one trace and fails another for exactly one reason."""

from __future__ import annotations

from dataclasses import replace

from quicsat.analysis.functional_tests import http3, multiconnect, retry, version_2, version_negotiation
from quicsat.analysis.functional_tests.handshake import no_retry
from quicsat.analysis.functional_tests.version_2 import VERSION_2
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.traces.columns import Form
from tests.analysis.test_run_outcome import connection, initial, is_fault
from tests.quic_builder import NOBODY, Row, columns


def fails(verdict: Verdict | None, code: ErrorCode, words: str) -> bool:
    return is_fault(verdict, Outcome.FAILED, code, words)


# ---- versions -------------------------------------------------------------------------------

UNHEARD = Row(0, False, Form.UNKNOWN, scid="c", dcid="s", version=0x1A2A3A4A)


def negotiation(scid: str, dcid: str) -> Row:
    return Row(0, True, Form.VERSION_NEGOTIATION, scid=scid, dcid=dcid, version=0)


def test_version_negotiation() -> None:
    assert version_negotiation.standard(columns(UNHEARD, negotiation("s", "c"))) is None
    wrong = columns(UNHEARD, negotiation("s", "x"))
    assert fails(version_negotiation.standard(wrong), ErrorCode.CONNECTION_IDS, "Negotiation (frame 2) does not")
    other = version_negotiation.standard(columns(UNHEARD, negotiation("x", "c")))
    assert fails(other, ErrorCode.CONNECTION_IDS, "first packet (frame 1)")
    none = version_negotiation.standard(columns(UNHEARD))
    assert fails(none, ErrorCode.VERSION_NEGOTIATION, "1 long headers of the client and no Version Negotiation")


def handshake(from_server: bool, version: int = VERSION_2) -> Row:
    return Row(0, from_server, Form.HANDSHAKE, version=version)


def test_version_2() -> None:
    first, answer = initial(False, "c", "s"), initial(True, "s", "c", version=VERSION_2)
    good = columns(first, answer, handshake(False), handshake(True))
    assert version_2.standard(good, good) is None
    refused = columns(first, initial(True, "s", "c"), handshake(False), handshake(True))
    assert fails(
        version_2.standard(refused, refused), ErrorCode.WRONG_VERSION, "server sent no Initial packet of version"
    )
    assert fails(version_2.standard(refused, refused), ErrorCode.WRONG_VERSION, "0x6b3343cf; there were 0x00000001")
    late = columns(initial(False, "c", "s", version=VERSION_2), answer, handshake(False), handshake(True))
    begun = version_2.standard(late, late)
    assert fails(
        begun, ErrorCode.WRONG_VERSION, "began the connection in version 0x6b3343cf (frame 1), not in version 1"
    )
    never = version_2.upstream(late, late)
    assert fails(never, ErrorCode.WRONG_VERSION, "client sent no Initial packet of version 0x00000001")
    mixed = columns(first, answer, handshake(False), handshake(True), handshake(True, 1))
    assert fails(version_2.standard(mixed, mixed), ErrorCode.WRONG_VERSION, "version 1 after all: frame 5")
    assert fails(version_2.standard(columns(first), good), ErrorCode.WRONG_VERSION, "there were none at all")


def test_version_2_is_agreed_on_within_one_connection() -> None:
    """Incompatible version negotiation: a second connection, which begins in version 2 (RFC 9368, section 2.2)."""
    refused = [replace(initial(False, "c", "s"), connection=0), negotiation("s", "c")]
    other = [
        replace(row, connection=1)
        for row in (
            initial(False, "d", "t", version=VERSION_2), initial(True, "u", "d", version=VERSION_2), handshake(False),
            handshake(True),
        )
    ]  # fmt: skip
    trace = columns(*refused, *other)
    assert version_2.upstream(trace, trace) is None
    assert fails(version_2.standard(trace, trace), ErrorCode.WRONG_VERSION, "(frame 3), not in version 1")


# ---- Retry, number of connections -----------------------------------------------------------


def test_no_retry() -> None:
    assert no_retry(columns(*connection(1))) is None
    asked = columns(Row(0, False, Form.RETRY), Row(0, True, Form.RETRY))
    assert fails(no_retry(asked), ErrorCode.UNEXPECTED_RETRY, "a Retry (frame 2)")


def asking(number: int, token: str = "", dcid: str = "first") -> Row:
    return initial(False, "c", dcid, number=number, token=token)


def retried(token: str = "t") -> Row:
    return Row(0, True, Form.RETRY, scid="new", dcid="c", token=token)


ANSWER = initial(True, "server", "c")


def test_retry() -> None:
    assert retry.standard(columns(asking(0), retried(), asking(1, "t", "new"), ANSWER)) is None
    earlier = columns(asking(0, "of an earlier connection"), retried(), asking(1, "t", "new"), ANSWER)
    assert retry.standard(earlier) is None


def test_a_retry_that_fails() -> None:
    none = retry.standard(columns(asking(0), asking(1, "t")))
    assert fails(none, ErrorCode.RETRY_MISSING, "sent no Retry")
    empty = retry.standard(columns(asking(0), retried(""), asking(1)))
    assert fails(empty, ErrorCode.RETRY_WITHOUT_TOKEN, "A Retry has no token (frame 2)")
    ignored = retry.standard(columns(asking(0), retried(), asking(1)))
    assert fails(ignored, ErrorCode.RETRY_TOKEN, "No Initial has the token of the Retry (frame 2)")
    other = retry.standard(columns(asking(0), retried(), asking(1, "u", "new")))
    assert fails(other, ErrorCode.RETRY_TOKEN, "No Initial has the token")
    again = retry.standard(columns(asking(0), asking(1), retried(), asking(1, "t", "new")))
    assert fails(again, ErrorCode.PACKET_NUMBER_RESET, "number is 1 (frame 4), and was 1 before")


def test_the_initial_after_a_retry_goes_to_its_connection_id() -> None:
    elsewhere = columns(asking(0), retried(), asking(1, "t"))
    assert fails(
        retry.standard(elsewhere), ErrorCode.RETRY_CONNECTION_ID, "(frame 3) is not sent to the Retry's connection id"
    )


def test_the_server_goes_on_with_the_initial_that_has_the_token() -> None:
    """A client that begins again without the token, and is answered then, has not used it."""
    again = initial(False, "d", "other", number=0), initial(True, "server", "d")
    abandoned = retry.standard(columns(asking(0), retried(), asking(1, "t", "new"), *again))
    assert fails(abandoned, ErrorCode.RETRY_TOKEN, "did not answer the Initial with the token (frame 3)")
    before = retry.standard(columns(asking(0), ANSWER, retried(), asking(1, "t", "new")))
    assert fails(before, ErrorCode.RETRY_TOKEN, "did not answer")


def file_over(number: int) -> list[Row]:
    return [*connection(number), Row(0, True, connection=number, frames=[(0, 0, 10)])]


def test_multiconnect() -> None:
    two = [*file_over(1), *file_over(2)]
    assert multiconnect.standard(columns(*two), 2) is None
    assert multiconnect.standard(columns(*two, *connection(3)), 2) is None  # an attempt given up
    assert multiconnect.standard(columns(*connection(1), *connection(2)), 2) is None  # nothing decrypted
    unread = Row(0, True, connection=2, decrypted=False)  # a key log of the first connection alone
    assert multiconnect.standard(columns(*file_over(1), *connection(2), unread), 2) is None
    one = multiconnect.standard(columns(*file_over(1), *connection(2)), 2)
    assert fails(one, ErrorCode.HANDSHAKE_COUNT, "2 files came over 1 connection, not over one each (answered: 2)")
    requests = columns(*file_over(1), *connection(2), Row(0, False, connection=2, frames=[(0, 0, 10)]))
    assert multiconnect.standard(requests, 2) is not None  # asked for and not answered


# ---- HTTP/3 ---------------------------------------------------------------------------------


def test_http3() -> None:
    def streams(*ids: int) -> Row:
        return Row(0, True, frames=[(stream, 0, 1) for stream in ids])

    assert http3.standard(columns(streams(0, 2, 3))) is None
    assert http3.standard(columns(streams(0, 2, 3), connections=[replace(NOBODY, alpn="h3")])) is None
    other = http3.standard(columns(streams(0, 2, 3), connections=[replace(NOBODY, alpn="hq-interop")]))
    assert fails(other, ErrorCode.HTTP3_MISSING, 'agreed on "hq-interop", not on HTTP/3')
    assert http3.standard(columns(Row(0, True, decrypted=False))) is None
    assert http3.standard(columns(Row(0, True, decrypted=False), Row(0, False, frames=[(0, 0, 1), (2, 0, 1)]))) is None
    assert fails(http3.standard(columns(streams(0, 3))), ErrorCode.HTTP3_MISSING, "client opened no unidirectional")
    assert fails(http3.standard(columns(streams(0, 2))), ErrorCode.HTTP3_MISSING, "server opened no unidirectional")
