"""Each check of what a network sees passes one trace and fails another for exactly one reason."""

from __future__ import annotations

from collections.abc import Sequence

from quicsat.analysis.functional_tests import amplification_limit, ecn
from quicsat.analysis.functional_tests.ecn import CE, ECT_0, ECT_1
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.traces.columns import Form
from tests.analysis.functional_tests.test_handshakes import fails
from tests.analysis.functional_tests.test_paths import IPV4, IPV6
from tests.analysis.test_run_outcome import is_fault
from tests.quic_builder import Row, columns

# ---- ECN ------------------------------------------------------------------------------------


def marked(from_server: bool, *marks: int, ect0: int = -1, ect1: int = -1, ce: int = -1, path: str = IPV4) -> list[Row]:
    """Packets with these marks, the last of which reports."""
    rows = [Row(0, from_server, ecn=mark, path=path) for mark in marks]
    return [*rows, Row(0, from_server, ecn=marks[-1], path=path, acks=[(9, ect0, ect1, ce)])]


def both(mine: list[Row], theirs: list[Row]) -> Verdict | None:
    trace = columns(*mine, *theirs)
    return ecn.standard(trace, trace)


GOOD = {from_server: marked(from_server, ECT_0, ECT_0, ect0=3, ect1=0, ce=0) for from_server in (False, True)}


def test_ecn() -> None:
    assert both(GOOD[False], GOOD[True]) is None
    unmarked = both(marked(False, 0, 0, ect0=3), GOOD[True])
    assert fails(unmarked, ErrorCode.ECN, "The client marked none of its 3 packets")
    congested = both(GOOD[False], marked(True, ECT_0, CE, ect0=3))
    assert fails(congested, ErrorCode.ECN, "The server sent packets that were marked CE already (frames 5, 6)")
    silent = both(GOOD[False], marked(True, ECT_0, ECT_0))
    assert fails(silent, ErrorCode.ECN, "The server acknowledged marked packets, but never reported the marks")
    initial = Row(0, True, Form.INITIAL, ecn=ECT_0, path=IPV4, acks=[(0, -1, -1, -1)])  # readable without a key log
    closed = [initial, Row(0, True, ecn=ECT_0, path=IPV4, decrypted=False)]
    verdict = both(GOOD[False], closed)
    assert is_fault(verdict, Outcome.UNSUPPORTED, ErrorCode.KEY_LOG_MISSING, "the server's 1-RTT packets")


def test_reports_of_more_marks_than_arrived() -> None:
    bragging = marked(True, ECT_0, ECT_0, ect0=4)
    verdict = both(GOOD[False], bragging)
    assert fails(verdict, ErrorCode.ECN, "The server reported 4 packets of the application space with ECT(0)")
    assert fails(verdict, ErrorCode.ECN, "(frame 6); 3 arrived")
    assert fails(both(GOOD[False], marked(True, ECT_0, ect0=3, ce=1)), ErrorCode.ECN, "with CE (frame 5); 0 arrived")


def test_marks_are_counted_per_packet_number_space() -> None:
    initials = [Row(0, False, Form.INITIAL, ecn=ECT_0, path=IPV4) for _ in range(5)]
    verdict = both([*initials, *GOOD[False]], marked(True, ECT_0, ECT_0, ect0=4))
    assert fails(verdict, ErrorCode.ECN, "4 packets of the application space with ECT(0) (frame 11); 3 arrived")


def test_ecn_over_ipv6_and_with_ect_1() -> None:
    six = [marked(side, ECT_0, ECT_0, ect0=3, path=IPV6) for side in (False, True)]
    assert both(*six) is None
    l4s = [marked(side, ECT_1, ect0=0, ect1=2) for side in (False, True)]
    assert both(*l4s) is None


def test_reports_during_the_handshake_only() -> None:
    """The counts are missing where the sender validates them for its data (RFC 9000, section 13.4.2.1)."""
    early = Row(0, True, Form.INITIAL, ecn=ECT_0, path=IPV4, acks=[(0, 1, 0, 0)])
    mine = [Row(0, False, Form.INITIAL, ecn=ECT_0, path=IPV4, number=0), *GOOD[False]]
    silent = both(mine, [early, *marked(True, ECT_0, ECT_0)])
    assert fails(silent, ErrorCode.ECN, "The server reported marks during the handshake, and none of the application")
    unmarked = [mine[0], Row(0, False, path=IPV4, acks=[(9, 3, 0, 0)])]
    assert both(unmarked, [early, *marked(True, ECT_0, ECT_0)]) is None


# ---- amplification --------------------------------------------------------------------------

CHAIN = [(0, 4000), (4000, 4000)]
SAFE, SHORT = "01" * 8, "01" * 7


def sent(size: int, crypto: Sequence[tuple[int, int]] = (), scid: str = SAFE) -> Row:
    return Row(0, True, Form.HANDSHAKE, size=size, crypto=crypto, scid=scid)


def got(size: int, form: Form = Form.INITIAL, dcid: str = "first") -> Row:
    return Row(0, False, form, size=size, dcid=dcid)


PROOF = got(100, Form.HANDSHAKE, SHORT)


def amplified(*rows: Row) -> Verdict | None:
    return amplification_limit.standard(columns(*rows))


def test_amplification_limit() -> None:
    assert amplified(got(1200), sent(3600, CHAIN), PROOF, sent(9000)) is None
    more = amplified(got(1200), sent(3600, CHAIN), sent(1201), PROOF)
    assert fails(more, ErrorCode.AMPLIFICATION, "had sent 4801 bytes for 1200 received")
    assert fails(more, ErrorCode.AMPLIFICATION, "address (frame 3)")
    few = amplified(got(1200), sent(3600, CHAIN[:1]), PROOF)
    assert fails(few, ErrorCode.CHAIN_TOO_SHORT, "had 4000 bytes, not 7500")
    never = amplified(got(1200), sent(1200, CHAIN))
    assert fails(never, ErrorCode.AMPLIFICATION, "never proved its address")
    closed = amplified(got(1200), sent(1200))
    assert is_fault(closed, Outcome.UNSUPPORTED, ErrorCode.KEY_LOG_MISSING, "Handshake packets")


def test_what_counts_towards_the_amplification_limit() -> None:
    slightly = [got(1200), sent(3601, CHAIN), PROOF]
    assert fails(amplified(*slightly), ErrorCode.AMPLIFICATION, "3601 bytes for 1200")
    by_id = [got(1200), sent(3600, CHAIN), got(100, dcid=SAFE), sent(2000), PROOF]
    assert amplified(*by_id) is None
    guessed = [got(1200), sent(3600, CHAIN, SHORT), got(100, dcid=SHORT), sent(2000, scid=SHORT), PROOF]
    assert fails(amplified(*guessed), ErrorCode.AMPLIFICATION, "5600 bytes for 1300")
    early = [got(1200), got(100, Form.ZERO_RTT), sent(3900, CHAIN), sent(1000), PROOF]
    assert fails(amplified(*early), ErrorCode.AMPLIFICATION, "4900 bytes for 1300")
    refused = [got(1200, Form.UNKNOWN), Row(0, True, Form.VERSION_NEGOTIATION, size=60), got(1200)]
    assert amplified(*refused, sent(7100, CHAIN), PROOF) is None
    assert fails(amplified(*refused, sent(7141, CHAIN), PROOF), ErrorCode.AMPLIFICATION, "7201 bytes for 2400")
