"""Each rule of how connections are set up passes some traces and fails others for exactly one reason."""

from dataclasses import replace

import pytest

from quicsat.analysis.functional_tests import http3, multiconnect, retry, version_2, version_negotiation
from quicsat.analysis.functional_tests.handshake import no_retry
from quicsat.analysis.functional_tests.version_2 import VERSION_2
from quicsat.model.outcomes import ErrorCode
from quicsat.traces.columns import Form
from tests.analysis.functional_tests.tables import Fault, Rows, Rules, check
from tests.analysis.test_run_outcome import connection, initial
from tests.quic_builder import NOBODY, Row, columns

# ---- versions -------------------------------------------------------------------------------


def negotiation(scid: str, dcid: str) -> Row:
    return Row(0, True, Form.VERSION_NEGOTIATION, scid=scid, dcid=dcid, version=0)


def handshakes(client: int = VERSION_2, server: int = VERSION_2) -> Rows:
    return [Row(0, side, Form.HANDSHAKE, version=version) for side, version in ((False, client), (True, server))]


UNHEARD = Row(0, False, Form.UNKNOWN, scid="c", dcid="s", version=0x1A2A3A4A)
NEGOTIATION: Rules = {
    "answered": ([UNHEARD, negotiation("s", "c")], None, None),
    "another destination": (
        [UNHEARD, negotiation("s", "x")], (ErrorCode.CONNECTION_IDS, "Negotiation (frame 2) does not"), None,
    ),
    "another source": (
        [UNHEARD, negotiation("x", "c")],
        (ErrorCode.CONNECTION_IDS, "first packet (frame 1)"), (ErrorCode.CONNECTION_IDS, "first packet (frame 1)"),
    ),
    "no answer": (
        [UNHEARD],
        (ErrorCode.VERSION_NEGOTIATION, "1 long headers of the client and no Version Negotiation"),
        (ErrorCode.VERSION_NEGOTIATION, "no Version Negotiation"),
    ),
}  # fmt: skip
FIRST, ANSWER_2 = initial(False, "c", "s"), initial(True, "s", "c", version=VERSION_2)
REFUSED = (ErrorCode.WRONG_VERSION, "server sent no Initial packet of version 0x6b3343cf; there were 0x00000001")
SILENT = (ErrorCode.WRONG_VERSION, "there were none at all")
MIXED = (ErrorCode.WRONG_VERSION, "version 1 after all: frame 5")
SECOND: Rules = {
    "agreed": ([FIRST, ANSWER_2, *handshakes()], None, None),
    "refused": ([FIRST, initial(True, "s", "c"), *handshakes()], REFUSED, REFUSED),
    "begun in version 2": (
        [initial(False, "c", "s", version=VERSION_2), ANSWER_2, *handshakes()],
        (ErrorCode.WRONG_VERSION, "began the connection in version 0x6b3343cf (frame 1), not in version 1"),
        (ErrorCode.WRONG_VERSION, "client sent no Initial packet of version 0x00000001"),
    ),
    "mixed": ([FIRST, ANSWER_2, *handshakes(), handshakes(server=1)[1]], MIXED, MIXED),
    "no answer": ([FIRST], SILENT, SILENT),
    # incompatible version negotiation: a second connection, which begins in version 2 (RFC 9368, section 2.2)
    "in another connection": (
        [
            FIRST, negotiation("s", "c"),
            *(
                replace(row, connection=1)
                for row in (initial(False, "d", "t", version=VERSION_2), ANSWER_2, *handshakes())
            ),
        ],
        (ErrorCode.WRONG_VERSION, "(frame 3), not in version 1"), None,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "ours", "theirs"), NEGOTIATION.values(), ids=NEGOTIATION)
def test_version_negotiation(rows: Rows, ours: Fault, theirs: Fault) -> None:
    check(version_negotiation.standard(columns(*rows)), ours)
    check(version_negotiation.upstream(columns(*rows)), theirs)


@pytest.mark.parametrize(("rows", "ours", "theirs"), SECOND.values(), ids=SECOND)
def test_version_2(rows: Rows, ours: Fault, theirs: Fault) -> None:
    trace = columns(*rows)
    check(version_2.standard(trace, trace), ours)
    check(version_2.upstream(trace, trace), theirs)


# ---- Retry, number of connections -----------------------------------------------------------


def test_no_retry() -> None:
    check(no_retry(columns(*connection(1))), None)
    asked = columns(Row(0, False, Form.RETRY), Row(0, True, Form.RETRY))
    check(no_retry(asked), (ErrorCode.UNEXPECTED_RETRY, "a Retry (frame 2)"))


def asking(number: int, token: str = "", dcid: str = "first") -> Row:
    return initial(False, "c", dcid, number=number, token=token)


def retried(token: str = "t") -> Row:
    return Row(0, True, Form.RETRY, scid="new", dcid="c", token=token)


ANSWER = initial(True, "server", "c")
MISSING = (ErrorCode.RETRY_MISSING, "sent no Retry")
EMPTY = (ErrorCode.RETRY_WITHOUT_TOKEN, "A Retry has no token (frame 2)")
NO_TOKEN = (ErrorCode.RETRY_TOKEN, "No Initial has the token of the Retry (frame 2)")
NOT_ANSWERED = (ErrorCode.RETRY_TOKEN, "did not answer the Initial with the token (frame ")
AGAIN = (ErrorCode.PACKET_NUMBER_RESET, "number is 1 (frame 4), and was 1 before")
RETRIES: Rules = {
    "token": ([asking(0), retried(), asking(1, "t", "new"), ANSWER], None, None),
    "token of an earlier connection": (
        [asking(0, "old"), retried(), asking(1, "t", "new"), ANSWER], None, None,
    ),
    "without it later": ([asking(0), retried(), asking(1, "t", "new"), asking(5), ANSWER], None, None),
    "no Retry": ([asking(0), asking(1, "t")], MISSING, MISSING),
    "empty token": ([asking(0), retried(""), asking(1)], EMPTY, EMPTY),
    "token ignored": ([asking(0), retried(), asking(1)], NO_TOKEN, NO_TOKEN),
    "another token": ([asking(0), retried(), asking(1, "u", "new")], NO_TOKEN, NO_TOKEN),
    "number repeated": ([asking(0), asking(1), retried(), asking(1, "t", "new")], AGAIN, AGAIN),
    "number repeated with another token": (
        [asking(3), retried(), asking(3, "u", "new"), asking(4, "t", "new"), ANSWER], None,
        (ErrorCode.PACKET_NUMBER_RESET, "number is 3 (frame 3), and was 3 before"),
    ),
    "another destination": (
        [asking(0), retried(), asking(1, "t"), ANSWER],
        (ErrorCode.RETRY_CONNECTION_ID, "(frame 3) is not sent to the Retry's connection id"), None,
    ),
    # a client that begins again without the token, and is answered then, has not used it
    "given up": (
        [asking(0), retried(), asking(1, "t", "new"), initial(False, "d", "other"), initial(True, "server", "d")],
        NOT_ANSWERED, None,
    ),
    "answered before": ([asking(0), ANSWER, retried(), asking(1, "t", "new")], NOT_ANSWERED, None),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "ours", "theirs"), RETRIES.values(), ids=RETRIES)
def test_retry(rows: Rows, ours: Fault, theirs: Fault) -> None:
    check(retry.standard(columns(*rows)), ours)
    check(retry.upstream(columns(*rows)), theirs)


def file_over(number: int) -> list[Row]:
    return [*connection(number), Row(0, True, connection=number, frames=[(0, 0, 10)])]


TOGETHER = (ErrorCode.HANDSHAKE_COUNT, "2 files came over 1 connection, not over one each (answered: 2)")
FILES: dict[str, tuple[Rows, Fault]] = {
    "one each": ([*file_over(1), *file_over(2)], None),
    "an attempt given up": ([*file_over(1), *file_over(2), *connection(3)], None),
    "nothing decrypted": ([*connection(1), *connection(2)], None),
    "a key log of the first one alone": (
        [*file_over(1), *connection(2), Row(0, True, connection=2, decrypted=False)], None,
    ),
    "over one": ([*file_over(1), *connection(2)], TOGETHER),
    "asked for and not answered": (
        [*file_over(1), *connection(2), Row(0, False, connection=2, frames=[(0, 0, 10)])], TOGETHER,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "fault"), FILES.values(), ids=FILES)
def test_multiconnect(rows: Rows, fault: Fault) -> None:
    check(multiconnect.standard(columns(*rows), 2), fault)


# ---- HTTP/3 ---------------------------------------------------------------------------------


def streams(*ids: int, from_server: bool = True) -> Row:
    return Row(0, from_server, frames=[(stream, 0, 1) for stream in ids])


CLOSED = Row(0, True, decrypted=False)
HTTP3: dict[str, tuple[Rows, str, Fault]] = {
    "both streams": ([streams(0, 2, 3)], "", None),
    "protocol": ([streams(0, 2, 3)], "h3", None),
    "another protocol": (
        [streams(0, 2, 3)], "hq-interop", (ErrorCode.HTTP3_MISSING, 'agreed on "hq-interop", not on HTTP/3'),
    ),
    "nothing decrypted": ([CLOSED], "", None),
    "the client's packets decrypted": ([CLOSED, streams(0, 2, from_server=False)], "", None),
    "not the client": ([streams(0, 3)], "", (ErrorCode.HTTP3_MISSING, "client opened no unidirectional")),
    "not the server": ([streams(0, 2)], "", (ErrorCode.HTTP3_MISSING, "server opened no unidirectional")),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "protocol", "fault"), HTTP3.values(), ids=HTTP3)
def test_http3(rows: Rows, protocol: str, fault: Fault) -> None:
    check(http3.standard(columns(*rows, connections=[replace(NOBODY, alpn=protocol)])), fault)
