"""Each rule of what a network sees passes some traces and fails others for exactly one reason."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from quicsat.analysis.functional_tests import amplification_limit, ecn, ipv6
from quicsat.analysis.functional_tests.ecn import CE, ECT_0, ECT_1
from quicsat.model.outcomes import ErrorCode
from quicsat.traces.columns import Form
from tests.analysis.functional_tests.tables import Fault, Rows, Rules, check
from tests.quic_builder import Row, columns

IPV4, IPV6 = "193.167.0.100:4433 193.167.100.100:443", "fd00:cafe:cafe::100:4433 fd00:cafe:cafe:100::100:443"

# ---- IPv6 -----------------------------------------------------------------------------------


def test_ends_of_a_path() -> None:
    assert ipv6.ends(IPV6) == ("fd00:cafe:cafe::100", "4433", "fd00:cafe:cafe:100::100", "443")


SERVER_4 = (ErrorCode.IPV4_USED, "server's trace shows 1 packet of IPv4, the first in frame 2")
ADDRESSES: dict[str, tuple[Rows, Rows, Fault, Fault]] = {
    "all of IPv6": ([Row(0, False, path=IPV6)], [Row(0, True, path=IPV6)], None, None),
    "nothing": ([], [], None, None),
    "tried": (
        [Row(0, False, path=IPV4)], [Row(0, False, path=IPV4)],
        (ErrorCode.IPV4_USED, "client's trace shows 1 packet of IPv4"), None,
    ),
    "answered": ([], [Row(0, True, path=IPV6), Row(0, True, path=IPV4)], SERVER_4, SERVER_4),
}  # fmt: skip


@pytest.mark.parametrize(("client", "server", "ours", "theirs"), ADDRESSES.values(), ids=ADDRESSES)
def test_ipv6(client: Rows, server: Rows, ours: Fault, theirs: Fault) -> None:
    check(ipv6.standard(columns(*client), columns(*server)), ours)
    check(ipv6.upstream(columns(*server)), theirs)


# ---- ECN ------------------------------------------------------------------------------------


def marked(from_server: bool, *marks: int, ect0: int = -1, ect1: int = -1, ce: int = -1, path: str = IPV4) -> list[Row]:
    """Packets with these marks, the last of which reports."""
    rows = [Row(0, from_server, ecn=mark, path=path) for mark in marks]
    return [*rows, Row(0, from_server, ecn=marks[-1], path=path, acks=[(9, ect0, ect1, ce)])]


MINE, THEIRS = (marked(side, ECT_0, ECT_0, ect0=3, ect1=0, ce=0) for side in (False, True))
EARLY = Row(0, False, Form.INITIAL, ecn=ECT_0, path=IPV4)
REPORTING = replace(EARLY, from_server=True, acks=[(0, 1, 0, 0)])
READABLE = replace(EARLY, from_server=True, acks=[(0, -1, -1, -1)])
"""Without a key log."""
NO_COUNTS = (ErrorCode.ECN, "The server sent no ACK frame with ECN counts")
NEVER = (ErrorCode.ECN, "The server acknowledged marked packets, but never reported the marks")
UNMARKED = (ErrorCode.ECN, "The client marked none of its 3 packets")
CONGESTED = (ErrorCode.ECN, "The server sent packets that were marked CE already (frames 5, 6)")
BRAGGING = (ErrorCode.ECN, "The server reported 4 packets of the application space with ECT(0) (frame 6); 3 arrived")
MARKS: Rules = {
    "both": ([*MINE, *THEIRS], None, None),
    "with ECT(1)": ([*marked(False, ECT_1, ect0=0, ect1=2), *marked(True, ECT_1, ect0=0, ect1=2)], None, None),
    "over IPv6": (
        [row for side in (False, True) for row in marked(side, ECT_0, ECT_0, ect0=3, path=IPV6)], None,
        (ErrorCode.ECN, "The client marked none of its 0 packets"),
    ),
    "unmarked": ([*marked(False, 0, 0, ect0=3), *THEIRS], UNMARKED, UNMARKED),
    "congested": ([*MINE, *marked(True, ECT_0, CE, ect0=3)], CONGESTED, CONGESTED),
    "not reported": ([*MINE, *marked(True, ECT_0, ECT_0)], NEVER, NO_COUNTS),
    "reported as 0": ([*MINE, *marked(True, ECT_0, ECT_0, ect0=0)], NEVER, None),
    "no keys": (
        [*MINE, READABLE, Row(0, True, ecn=ECT_0, path=IPV4, decrypted=False)],
        (ErrorCode.KEY_LOG_MISSING, "the server's 1-RTT packets"), NO_COUNTS,
    ),
    "more than arrived": ([*MINE, *marked(True, ECT_0, ECT_0, ect0=4)], BRAGGING, None),
    "congestion that did not arrive": (
        [*MINE, *marked(True, ECT_0, ect0=3, ce=1)], (ErrorCode.ECN, "with CE (frame 5); 0 arrived"), None,
    ),
    "more than arrived in their space": (
        [*[EARLY] * 5, *MINE, *marked(True, ECT_0, ECT_0, ect0=4)],
        (ErrorCode.ECN, "4 packets of the application space with ECT(0) (frame 11); 3 arrived"), None,
    ),
    "in a second packet": ([*MINE, *(replace(row, size=1200 * (not row.acks)) for row in THEIRS)], None, NO_COUNTS),
    # missing where the sender validates them for its data (RFC 9000, section 13.4.2.1)
    "in the handshake alone": (
        [EARLY, *MINE, REPORTING, *marked(True, ECT_0, ECT_0)],
        (ErrorCode.ECN, "The server reported marks during the handshake, and none of the application"), None,
    ),
    "unmarked data": ([EARLY, Row(0, False, path=IPV4, acks=[(9, 3, 0, 0)]), REPORTING, *marked(True, ECT_0, ECT_0)],
                      None, None),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "ours", "theirs"), MARKS.values(), ids=MARKS)
def test_ecn(rows: Rows, ours: Fault, theirs: Fault) -> None:
    trace = columns(*rows)
    check(ecn.standard(trace, trace), ours)
    check(ecn.upstream(trace, trace), theirs)


# ---- amplification --------------------------------------------------------------------------

CHAIN = [(0, 4000), (4000, 4000)]
SAFE, SHORT = "01" * 8, "01" * 7


def sent(size: int, crypto: Sequence[tuple[int, int]] = CHAIN, scid: str = SAFE) -> Row:
    return Row(0, True, Form.HANDSHAKE, size=size, crypto=crypto, scid=scid)


def got(size: int, form: Form = Form.INITIAL, dcid: str = "first") -> Row:
    return Row(0, False, form, size=size, dcid=dcid)


def amplified(words: str) -> Fault:
    return ErrorCode.AMPLIFICATION, words


PROOF = got(100, Form.HANDSHAKE, SHORT)
NEGOTIATED = Row(0, True, Form.VERSION_NEGOTIATION, size=60)
REFUSED = [got(1200, Form.UNKNOWN), NEGOTIATED, got(1200)]
FEW = (ErrorCode.CHAIN_TOO_SHORT, "had 4000 bytes, not 7500")
NO_PROOF = amplified("begins with a Handshake packet")
AMPLIFICATION: Rules = {
    "three times": ([got(1200), sent(3600), PROOF, sent(9000, [])], None, None),
    "slightly more": ([got(1200), sent(3601), PROOF], amplified("3601 bytes for 1200"), None),
    "nearly four times": ([got(1200), sent(4799), PROOF], amplified("4799 bytes for 1200"), None),
    "four times": ([got(1200), sent(4800), PROOF], amplified("4800 bytes for 1200"), amplified("4800 bytes for 1200")),
    "in two packets": (
        [got(1200), sent(3600), sent(1201, []), PROOF],
        amplified("had sent 4801 bytes for 1200 received, before it knew the client's address (frame 3)"),
        amplified("(frame 3)"),
    ),
    "few certificates": ([got(1200), sent(3600, CHAIN[:1]), PROOF], FEW, FEW),
    "no proof": ([got(1200), sent(1200)], amplified("never proved its address"), NO_PROOF),
    "no keys": (
        [got(1200), sent(1200, []), PROOF],
        (ErrorCode.KEY_LOG_MISSING, "Handshake packets"), (ErrorCode.CHAIN_TOO_SHORT, "had 0 bytes"),
    ),
    "proof by a safe id": (
        [got(1200), sent(3600), got(100, dcid=SAFE), sent(2000, []), PROOF], None, amplified("5600 bytes for 1300"),
    ),
    "no proof by a short id": (
        [got(1200), sent(3600, scid=SHORT), got(100, dcid=SHORT), sent(2000, [], SHORT), PROOF],
        amplified("5600 bytes for 1300"), amplified("5600 bytes for 1300"),
    ),
    "0-RTT": (
        [got(1200), got(100, Form.ZERO_RTT), sent(3900), sent(1000, []), PROOF],
        amplified("4900 bytes for 1300"), amplified("4900 bytes for 1200"),
    ),
    "Version Negotiation": ([*REFUSED, sent(7100), PROOF], None, amplified("(frame 1)")),
    "Version Negotiation and more": (
        [*REFUSED, sent(7141), PROOF], amplified("7201 bytes for 2400"), amplified("(frame 1)"),
    ),
    "Version Negotiation after an Initial": ([got(1200), NEGOTIATED, sent(3400), PROOF], None, amplified("(frame 2)")),
    "an unknown packet": (
        [got(1200), got(60, Form.UNKNOWN), sent(3400), PROOF], None, amplified("(frame 2)"),
    ),
    "proof behind an Initial that is no datagram's": (
        [got(1200), sent(3600), got(1200), replace(PROOF, size=0)], amplified("never proved"), NO_PROOF,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "ours", "theirs"), AMPLIFICATION.values(), ids=AMPLIFICATION)
def test_amplification_limit(rows: Rows, ours: Fault, theirs: Fault) -> None:
    check(amplification_limit.standard(columns(*rows)), ours)
    check(amplification_limit.upstream(columns(*rows)), theirs)


def test_a_proof_in_a_second_packet_of_a_datagram() -> None:
    together = columns(got(1200), sent(3600), got(1200), replace(PROOF, size=0))
    together.frame[3] = together.frame[2]
    check(amplification_limit.standard(together), None)
    check(amplification_limit.upstream(together), NO_PROOF)
