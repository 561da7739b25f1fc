"""Each check of how connections are set up passes one trace and fails another for exactly one reason."""

from __future__ import annotations

import pytest

from interop.analysis import handshake_checks as checks
from interop.analysis.handshake_checks import VERSION_2
from interop.model.outcomes import ErrorCode, Outcome, Verdict
from interop.traces.columns import Form
from tests.analysis.test_run_outcome import connection, initial, is_fault
from tests.quic_builder import Row, columns


def fails(verdict: Verdict | None, code: ErrorCode, words: str) -> bool:
    return is_fault(verdict, Outcome.FAILED, code, words)


# ---- versions -------------------------------------------------------------------------------

UNHEARD = Row(0, False, Form.UNKNOWN, scid="c", dcid="s", version=0x1A2A3A4A)


def negotiation(scid: str, dcid: str) -> Row:
    return Row(0, True, Form.VERSION_NEGOTIATION, scid=scid, dcid=dcid, version=0)


def test_version_negotiation() -> None:
    assert checks.version_negotiation(columns(UNHEARD, negotiation("s", "c"))) is None
    wrong = columns(UNHEARD, negotiation("s", "x"))
    assert fails(checks.version_negotiation(wrong), ErrorCode.CONNECTION_IDS, "Negotiation (frame 2) does not")
    assert checks.version_negotiation(wrong, upstream=True) is None
    other = checks.version_negotiation(columns(UNHEARD, negotiation("x", "c")), upstream=True)
    assert fails(other, ErrorCode.CONNECTION_IDS, "first packet (frame 1)")
    none = checks.version_negotiation(columns(UNHEARD))
    assert fails(none, ErrorCode.VERSION_NEGOTIATION, "1 long headers of the client and no Version Negotiation")


def handshake(from_server: bool, version: int = VERSION_2) -> Row:
    return Row(0, from_server, Form.HANDSHAKE, version=version)


def test_version_2() -> None:
    first, answer = initial(False, "c", "s"), initial(True, "s", "c", version=VERSION_2)
    good = columns(first, answer, handshake(False), handshake(True))
    assert checks.version_2(good, good) is None
    refused = columns(first, initial(True, "s", "c"), handshake(False), handshake(True))
    assert fails(
        checks.version_2(refused, refused), ErrorCode.WRONG_VERSION, "server sent no Initial packet of version"
    )
    assert fails(checks.version_2(refused, refused), ErrorCode.WRONG_VERSION, "0x6b3343cf; there were 0x00000001")
    late = columns(initial(False, "c", "s", version=VERSION_2), answer, handshake(False), handshake(True))
    assert fails(
        checks.version_2(late, late), ErrorCode.WRONG_VERSION, "client sent no Initial packet of version 0x00000001"
    )
    mixed = columns(first, answer, handshake(False), handshake(True), handshake(True, 1))
    assert fails(checks.version_2(mixed, mixed), ErrorCode.WRONG_VERSION, "version 1 after all: frame 5")
    assert fails(checks.version_2(columns(first), good), ErrorCode.WRONG_VERSION, "there were none at all")


# ---- Retry, number of connections -----------------------------------------------------------


def test_no_retry() -> None:
    assert checks.no_retry(columns(*connection(1))) is None
    asked = columns(Row(0, False, Form.RETRY), Row(0, True, Form.RETRY))
    assert fails(checks.no_retry(asked), ErrorCode.UNEXPECTED_RETRY, "a Retry (frame 2)")


def asking(number: int, token: str = "", dcid: str = "first") -> Row:
    return initial(False, "c", dcid, number=number, token=token)


def retry(token: str = "t") -> Row:
    return Row(0, True, Form.RETRY, scid="new", dcid="c", token=token)


def test_retry() -> None:
    good = columns(asking(0), retry(), asking(1, "t", "new"))
    assert checks.retry(good) is None
    assert checks.retry(good, upstream=True) is None
    earlier = columns(asking(0, "of an earlier connection"), retry(), asking(1, "t", "new"))
    assert checks.retry(earlier) is None
    assert fails(checks.retry(earlier, upstream=True), ErrorCode.RETRY_TOKEN, "No Initial has the token")


@pytest.mark.parametrize("upstream", [False, True])
def test_a_retry_that_fails(upstream: bool) -> None:
    none = checks.retry(columns(asking(0), asking(1, "t")), upstream=upstream)
    assert fails(none, ErrorCode.RETRY_MISSING, "sent no Retry")
    empty = checks.retry(columns(asking(0), retry(""), asking(1)), upstream=upstream)
    assert fails(empty, ErrorCode.RETRY_WITHOUT_TOKEN, "A Retry has no token (frame 2)")
    ignored = checks.retry(columns(asking(0), retry(), asking(1)), upstream=upstream)
    assert fails(ignored, ErrorCode.RETRY_TOKEN, "No Initial has the token of the Retry (frame 2)")
    other = checks.retry(columns(asking(0), retry(), asking(1, "u", "new")), upstream=upstream)
    assert fails(other, ErrorCode.RETRY_TOKEN, "No Initial has the token")
    again = checks.retry(columns(asking(0), asking(1), retry(), asking(1, "t", "new")), upstream=upstream)
    assert fails(again, ErrorCode.PACKET_NUMBER_RESET, "number is 1 (frame 4), and was 1 before")


def test_the_initial_after_a_retry_goes_to_its_connection_id() -> None:
    elsewhere = columns(asking(0), retry(), asking(1, "t"))
    assert fails(
        checks.retry(elsewhere), ErrorCode.RETRY_CONNECTION_ID, "(frame 3) is not sent to the Retry's connection id"
    )
    assert checks.retry(elsewhere, upstream=True) is None


def test_ids_of_the_server() -> None:
    two = columns(*connection(1), initial(True, "other", "c1"))
    assert checks.server_ids(two, 2) is None
    assert fails(checks.server_ids(two), ErrorCode.HANDSHAKE_COUNT, "2 source connection ids instead of 1")


def file_over(number: int) -> list[Row]:
    return [*connection(number), Row(0, True, connection=number, frames=[(0, 0, 10)])]


def test_multiconnect() -> None:
    two = [*file_over(1), *file_over(2)]
    assert checks.multiconnect(columns(*two), 2) is None
    assert checks.multiconnect(columns(*two, *connection(3)), 2) is None  # an attempt given up
    assert checks.multiconnect(columns(*connection(1), *connection(2)), 2) is None  # nothing decrypted
    one = checks.multiconnect(columns(*file_over(1), *connection(2)), 2)
    assert fails(one, ErrorCode.HANDSHAKE_COUNT, "2 files came over 1 connections, not over one each (2 were answered)")
    requests = columns(*file_over(1), *connection(2), Row(0, False, connection=2, frames=[(0, 0, 10)]))
    assert checks.multiconnect(requests, 2) is not None  # asked for and not answered


# ---- HTTP/3 ---------------------------------------------------------------------------------


def test_http3() -> None:
    def streams(*ids: int) -> Row:
        return Row(0, True, frames=[(stream, 0, 1) for stream in ids])

    assert checks.http3(columns(streams(0, 2, 3))) is None
    assert checks.http3(columns(Row(0, True, decrypted=False))) is None
    assert fails(checks.http3(columns(streams(0, 3))), ErrorCode.HTTP3_MISSING, "client opened no unidirectional")
    assert fails(checks.http3(columns(streams(0, 2))), ErrorCode.HTTP3_MISSING, "server opened no unidirectional")
