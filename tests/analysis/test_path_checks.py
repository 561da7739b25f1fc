"""Each check of addresses passes one trace and fails another for exactly one reason."""

from __future__ import annotations

import pytest

from interop.analysis import path_checks as checks
from interop.model.outcomes import ErrorCode, Outcome, Verdict
from interop.traces.columns import Form, Frame
from tests.analysis.test_handshake_checks import fails
from tests.analysis.test_run_outcome import is_fault
from tests.quic_builder import Row, columns

IPV4, IPV6 = "193.167.0.100:4433 193.167.100.100:443", "fd00:cafe:cafe::100:4433 fd00:cafe:cafe:100::100:443"


def test_ends_of_a_path() -> None:
    assert checks.ends(IPV6) == ("fd00:cafe:cafe::100", "4433", "fd00:cafe:cafe:100::100", "443")


def test_ipv6() -> None:
    good = columns(Row(0, False, path=IPV6), Row(0, True, path=IPV6))
    tried = columns(Row(0, False, path=IPV4), Row(0, True, path=IPV6))
    answered = columns(Row(0, True, path=IPV6), Row(0, True, path=IPV4))
    assert checks.ipv6(good, good) is None
    assert checks.ipv6(columns(), columns()) is None
    assert fails(checks.ipv6(tried, good), ErrorCode.IPV4_USED, "client's trace shows 1 packets of IPv4")
    assert fails(
        checks.ipv6(good, answered), ErrorCode.IPV4_USED, "server's trace shows 1 packets of IPv4, the first in frame 2"
    )
    assert checks.ipv6(tried, tried, upstream=True) is None
    assert checks.ipv6(answered, good, upstream=True) is None
    assert fails(checks.ipv6(good, answered, upstream=True), ErrorCode.IPV4_USED, "server's")


# ---- new paths ------------------------------------------------------------------------------


def at(client: str, server: str = "193.167.100.100:443") -> str:
    return f"{client} {server}"


FIRST, PORT, HOST = at("193.167.0.100:1000"), at("193.167.0.100:2000"), at("193.167.0.7:3000")


def challenge(path: str, data: str = "c", time: float = 1) -> Row:
    return Row(time, True, path=path, signals=[(Frame.PATH_CHALLENGE, 0, 0, data)])


def response(data: str = "c") -> Row:
    return Row(1, False, path=FIRST, signals=[(Frame.PATH_RESPONSE, 0, 0, data)])


def sent(path: str = FIRST, time: float = 1) -> Row:
    return Row(time, True, path=path)


END = sent(time=10)


def rebound(server: list[Row], *answers: str, address: bool = False, upstream: bool = False) -> Verdict | None:
    client = columns(*(response(data) for data in answers))
    return checks.rebinding(client, columns(*server, END), address=address, round_trip=0.03, upstream=upstream)


@pytest.mark.parametrize("upstream", [False, True])
def test_rebinding(upstream: bool) -> None:
    assert rebound([sent(), challenge(PORT)], "c", upstream=upstream) is None
    never = rebound([sent(), sent(PORT), sent(PORT)], "c", upstream=upstream)
    assert fails(
        never, ErrorCode.PATH_CHALLENGE_MISSING, "sent 2 packets to 193.167.0.100:2000 without a PATH_CHALLENGE"
    )
    elsewhere = rebound([sent(), sent(PORT), challenge(FIRST)], "c", upstream=upstream)
    assert fails(elsewhere, ErrorCode.PATH_CHALLENGE_MISSING, "(frame 2)")
    ignored = rebound([sent(), challenge(PORT)], "d", upstream=upstream)
    assert fails(ignored, ErrorCode.PATH_RESPONSE_MISSING, "PATH_CHALLENGE to 193.167.0.100:2000 (frame 2)")
    unchanged = rebound([sent()], upstream=upstream)
    assert fails(unchanged, ErrorCode.PATH_UNCHANGED, "on 1 path only")
    closed = [Row(0, True, path=path, decrypted=False) for path in (FIRST, PORT)]
    verdict = checks.rebinding(columns(), columns(*closed), address=False, round_trip=1, upstream=upstream)
    assert is_fault(verdict, Outcome.UNSUPPORTED, ErrorCode.KEY_LOG_MISSING, "the server's 1-RTT packets")


def test_where_upstream_is_stricter_about_new_paths() -> None:
    second = [sent(), sent(PORT), challenge(PORT)]
    assert rebound(second, "c") is None
    assert fails(rebound(second, "c", upstream=True), ErrorCode.PATH_CHALLENGE_MISSING, "2 packets")
    late = [sent(), sent(PORT, time=9.95)]
    assert rebound(late) is None
    assert rebound(late, upstream=True) is not None
    repeated = [sent(), challenge(PORT, "lost"), challenge(PORT)]
    assert rebound(repeated, "c") is None
    assert fails(rebound(repeated, "c", upstream=True), ErrorCode.PATH_RESPONSE_MISSING, "(frame 2)")


def test_upstream_wants_every_challenge_of_the_first_packet_answered() -> None:
    two = Row(1, True, path=PORT, signals=[(Frame.PATH_CHALLENGE, 0, 0, data) for data in "cd"])
    assert rebound([sent(), two], "c") is None
    assert rebound([sent(), two], "c", "d", upstream=True) is None
    assert fails(rebound([sent(), two], "c", upstream=True), ErrorCode.PATH_RESPONSE_MISSING, "(frame 2)")


def test_a_new_address_is_more_than_a_new_port() -> None:
    assert rebound([sent(), challenge(HOST)], "c", address=True) is None
    port = rebound([sent(), challenge(PORT)], "c", address=True)
    assert fails(port, ErrorCode.PATH_UNCHANGED, "one address of the client only (193.167.0.100)")


# ---- migration ------------------------------------------------------------------------------

PREFERRED = at("193.167.0.100:1000", "193.167.100.100:4443")


def to(path: str, dcid: str) -> Row:
    return Row(1, False, path=path, dcid=dcid)


def moved(*client: Row, server: tuple[Row, ...] = (challenge(PREFERRED),), upstream: bool = False) -> Verdict | None:
    return checks.migration(
        columns(*client, response()), columns(sent(), *server, END), round_trip=0.03, upstream=upstream
    )


@pytest.mark.parametrize("upstream", [False, True])
def test_migration(upstream: bool) -> None:
    assert moved(to(FIRST, "a"), to(PREFERRED, "b"), upstream=upstream) is None
    reused = moved(to(FIRST, "a"), to(PREFERRED, "a"), upstream=upstream)
    assert fails(reused, ErrorCode.CONNECTION_ID_REUSED, "on a second path (frame 2)")
    blind = moved(to(FIRST, "a"), to(PREFERRED, "b"), server=(sent(PREFERRED),), upstream=upstream)
    assert fails(blind, ErrorCode.PATH_CHALLENGE_MISSING, "without a PATH_CHALLENGE")
    handshake = Row(0, False, Form.INITIAL, path=PREFERRED, dcid="a")
    assert moved(handshake, to(FIRST, "a"), to(PREFERRED, "b"), upstream=upstream) is None


def test_where_upstream_has_another_rule_for_migration() -> None:
    port = (to(FIRST, "a"), to(PORT, "b"))
    stayed = moved(*port, server=(challenge(PORT),))
    assert fails(stayed, ErrorCode.PATH_UNCHANGED, "one address of the server only (193.167.100.100 port 443)")
    assert moved(*port, server=(challenge(PORT),), upstream=True) is None
    later = (to(FIRST, "a"), to(PREFERRED, "b"), to(PREFERRED, "a"))
    assert fails(moved(*later), ErrorCode.CONNECTION_ID_REUSED, "(frame 3)")
    assert moved(*later, upstream=True) is None
