"""Each check of addresses passes one trace and fails another for exactly one reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.analysis.functional_tests import ipv6, new_paths
from quicsat.analysis.functional_tests.ipv6 import ends
from quicsat.analysis.functional_tests.rule import Observation
from quicsat.model.outcomes import ErrorCode, Outcome, Rules, Verdict
from quicsat.traces.columns import Form, Frame, Trace
from quicsat.traces.trace import read
from tests.analysis.functional_tests.test_handshakes import fails
from tests.analysis.test_run_outcome import CASE, is_fault
from tests.quic_builder import ACK, SERVER, Connection, Packet, Row, columns, pcap, stream_frame

IPV4, IPV6 = "193.167.0.100:4433 193.167.100.100:443", "fd00:cafe:cafe::100:4433 fd00:cafe:cafe:100::100:443"


def test_ends_of_a_path() -> None:
    assert ends(IPV6) == ("fd00:cafe:cafe::100", "4433", "fd00:cafe:cafe:100::100", "443")


def test_ipv6() -> None:
    good = columns(Row(0, False, path=IPV6), Row(0, True, path=IPV6))
    tried = columns(Row(0, False, path=IPV4), Row(0, True, path=IPV6))
    answered = columns(Row(0, True, path=IPV6), Row(0, True, path=IPV4))
    assert ipv6.standard(good, good) is None
    assert ipv6.standard(columns(), columns()) is None
    assert fails(ipv6.standard(tried, good), ErrorCode.IPV4_USED, "client's trace shows 1 packet of IPv4")
    assert fails(
        ipv6.standard(good, answered),
        ErrorCode.IPV4_USED,
        "server's trace shows 1 packet of IPv4, the first in frame 2",
    )


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


def seen(client: Trace, server: Trace, *, round_trip: float = 0.03, upstream: bool = False) -> Observation:
    link = CASE.emulated.with_both(delay=round_trip / 2)
    rules = Rules.UPSTREAM if upstream else Rules.STANDARD
    return Observation(replace(CASE, link=link, rules=rules), client, server, keys=True)


def rebound(server: list[Row], *answers: str, address: bool = False, upstream: bool = False) -> Verdict | None:
    both = seen(columns(*(response(data) for data in answers)), columns(*server, END), upstream=upstream)
    return (new_paths.new_host(both.server) if address else None) or new_paths.validated(both)


@pytest.mark.parametrize("upstream", [False, True])
def test_rebinding(upstream: bool) -> None:
    assert rebound([sent(), challenge(PORT), sent(PORT)], "c", upstream=upstream) is None
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


def test_new_paths_that_no_key_shows() -> None:
    closed = columns(*(Row(0, True, path=path, decrypted=False) for path in (FIRST, PORT)))
    verdict = new_paths.validated(seen(columns(), closed, round_trip=1))
    assert is_fault(verdict, Outcome.UNSUPPORTED, ErrorCode.KEY_LOG_MISSING, "the server's 1-RTT packets")
    unread = columns(Row(0, False, path=FIRST, decrypted=False))  # the key log has the server's secrets alone
    verdict = new_paths.validated(seen(unread, columns(sent(), challenge(PORT), sent(PORT), END), round_trip=1))
    assert is_fault(verdict, Outcome.UNSUPPORTED, ErrorCode.KEY_LOG_MISSING, "the client's 1-RTT packets")
    strict = new_paths.validated(seen(columns(), closed, upstream=True))
    assert fails(strict, ErrorCode.PATH_CHALLENGE_MISSING, "(frame 2)")


def test_a_server_that_only_probes_a_new_path() -> None:
    probed = [sent(), challenge(PORT), sent(), sent()]
    assert fails(rebound(probed, "c"), ErrorCode.PATH_UNCHANGED, "only probed new paths")
    assert rebound(probed, "c", upstream=True) is None


def test_a_path_that_is_new_only_at_the_end_proves_nothing() -> None:
    late = [sent(), challenge(PORT, time=9.95), sent(PORT, time=9.96)]
    assert fails(
        rebound(late, "c"), ErrorCode.PATH_UNCHANGED, "did not use them before the end of the trace (frames 2, 3)"
    )
    assert rebound(late, "c", upstream=True) is None
    assert rebound([sent(), challenge(HOST), sent(HOST), *late[1:]], "c") is None


def test_an_answer_to_a_probe_of_the_client_needs_no_challenge() -> None:
    """RFC 9000, section 8.2.2: only what else comes from a new address has to be challenged (section 9.3)."""
    answer = Row(1, True, path=HOST, signals=[(Frame.PATH_RESPONSE, 0, 0, "p")])
    assert rebound([sent(), answer, challenge(PORT), sent(PORT)], "c") is None
    strict = rebound([sent(), answer, challenge(PORT), sent(PORT)], "c", upstream=True)
    assert fails(strict, ErrorCode.PATH_CHALLENGE_MISSING, "(frame 2)")


def test_where_upstream_is_stricter_about_new_paths() -> None:
    second = [sent(), sent(PORT), challenge(PORT)]
    assert rebound(second, "c") is None
    assert fails(rebound(second, "c", upstream=True), ErrorCode.PATH_CHALLENGE_MISSING, "2 packets")
    repeated = [sent(), challenge(PORT, "lost"), challenge(PORT), sent(PORT)]
    assert rebound(repeated, "c") is None
    assert fails(rebound(repeated, "c", upstream=True), ErrorCode.PATH_RESPONSE_MISSING, "(frame 2)")


def test_upstream_wants_the_first_challenge_of_the_first_packet_answered() -> None:
    two = Row(1, True, path=PORT, signals=[(Frame.PATH_CHALLENGE, 0, 0, data) for data in "cd"])
    assert rebound([sent(), two, sent(PORT)], "d") is None
    assert rebound([sent(), two], "c", upstream=True) is None
    assert fails(rebound([sent(), two], "d", upstream=True), ErrorCode.PATH_RESPONSE_MISSING, "(frame 2)")


def test_a_new_address_is_more_than_a_new_port() -> None:
    for upstream in (False, True):
        assert rebound([sent(), challenge(HOST), sent(HOST)], "c", address=True, upstream=upstream) is None
        port = rebound([sent(), challenge(PORT), sent(PORT)], "c", address=True, upstream=upstream)
        assert fails(port, ErrorCode.PATH_UNCHANGED, "one address of the client only (193.167.0.100)")


# ---- migration ------------------------------------------------------------------------------

PREFERRED = at("193.167.0.100:1000", "193.167.100.100:4443")


def to(path: str, dcid: str, form: Form = Form.ONE_RTT) -> Row:
    return Row(1, False, form, path=path, dcid=dcid)


def probe(path: str, dcid: str) -> Row:
    return Row(1, False, path=path, dcid=dcid, signals=[(Frame.PATH_CHALLENGE, 0, 0, "p")])


def data(path: str) -> Row:
    return Row(1, True, path=path, frames=[(0, 0, 1000)])


FROM_THERE = (challenge(PREFERRED), sent(PREFERRED))


def moved(
    *client: Row, server: tuple[Row, ...] = FROM_THERE, response_from: str = PREFERRED, upstream: bool = False
) -> Verdict | None:
    traces = columns(*client, data(response_from), response()), columns(sent(), *server, END)
    return new_paths.migrated(seen(*traces, upstream=upstream))


HELLO = to(FIRST, "invented", Form.INITIAL)


@pytest.mark.parametrize("upstream", [False, True])
def test_migration(upstream: bool) -> None:
    assert moved(HELLO, to(FIRST, "a"), to(PREFERRED, "b"), upstream=upstream) is None
    blind = moved(HELLO, to(FIRST, "a"), to(PREFERRED, "b"), server=(sent(PREFERRED),), upstream=upstream)
    assert fails(blind, ErrorCode.PATH_CHALLENGE_MISSING, "without a PATH_CHALLENGE")
    twice = (HELLO, to(FIRST, "a"), to(PREFERRED, "b"), to(HOST, "b"), to(PREFERRED, "b"))
    assert fails(moved(*twice, upstream=upstream), ErrorCode.CONNECTION_ID_REUSED, "on a second path (frame 4)")


def test_a_client_that_only_probes_has_not_moved() -> None:
    probes = (HELLO, to(FIRST, "a"), probe(PREFERRED, "b"), to(FIRST, "a"))
    stayed = moved(*probes, response_from=FIRST)
    assert fails(stayed, ErrorCode.PATH_UNCHANGED, "only probed another address of the server (frame 3)")
    returned = moved(*probes[:3], to(PREFERRED, "b"), to(FIRST, "a"), response_from=FIRST)
    assert fails(returned, ErrorCode.PATH_UNCHANGED, "returned to the server's first address (frame 5)")
    unheard = moved(*probes[:3], to(PREFERRED, "b"), response_from=FIRST)
    assert fails(unheard, ErrorCode.PATH_UNCHANGED, "No part of the response came from another address")
    assert moved(*probes, response_from=FIRST, upstream=True) is None
    closed = columns(HELLO, *(Row(1, False, path=path, decrypted=False) for path in (FIRST, PREFERRED)))
    verdict = new_paths.migrated(seen(closed, columns()))
    assert is_fault(verdict, Outcome.UNSUPPORTED, ErrorCode.KEY_LOG_MISSING, "the client's 1-RTT packets")


def test_where_upstream_has_another_rule_for_migration() -> None:
    port = (HELLO, to(FIRST, "a"), to(PORT, "b"))
    there = (challenge(PORT), sent(PORT))
    stayed = moved(*port, server=there)
    assert fails(stayed, ErrorCode.PATH_UNCHANGED, "one address of the server only (193.167.100.100 port 443)")
    assert moved(*port, server=there, upstream=True) is None


def test_upstream_compares_few_connection_ids() -> None:
    """The first id is the one that the client invented, so that the reuse of another is never seen."""
    reused = (HELLO, to(FIRST, "a"), to(PREFERRED, "a"))
    assert fails(moved(*reused), ErrorCode.CONNECTION_ID_REUSED, "(frame 3)")
    assert moved(*reused, upstream=True) is None
    early = (HELLO, to(FIRST, "a", Form.HANDSHAKE), to(PREFERRED, "a"))
    assert fails(moved(*early), ErrorCode.CONNECTION_ID_REUSED, "(frame 3)")
    later = (HELLO, to(FIRST, "a"), to(PREFERRED, "b"), to(PREFERRED, "a"))
    assert fails(moved(*later), ErrorCode.CONNECTION_ID_REUSED, "(frame 4)")
    assert moved(*later, upstream=True) is None


def test_a_probe_of_the_preferred_address_in_real_packets(tmp_path: Path) -> None:
    """The client challenges, is challenged and answers there. With a PING it moves, else not."""
    connection, other = Connection(), b"server-2"
    there, ping = ("193.167.100.100", 4443), b"\x01"
    new_id = b"\x18\x01\x00" + bytes([len(other)]) + other + bytes(16)
    client_challenge, server_answer = b"\x1a" + b"c" * 8, b"\x1b" + b"c" * 8
    server_challenge, client_answer = b"\x1a" + b"s" * 8, b"\x1b" + b"s" * 8

    def verdict(*moves: bytes, at: tuple[str, int]) -> Verdict | None:
        own = replace(connection, server_id=other)
        packets = [
            Packet(0, False, connection.client_hello()),
            Packet(0.03, True, connection.server_hello()),
            Packet(0.06, False, connection.handshake(0, ACK, from_server=False)),
            Packet(0.06, True, connection.one_rtt(0, b"\x1e", new_id, from_server=True)),
            Packet(0.07, False, connection.one_rtt(0, stream_frame(0, b"GET /", fin=True), from_server=False)),
            Packet(0.11, False, own.one_rtt(1, client_challenge, from_server=False), server=there),
            Packet(0.14, True, own.one_rtt(1, server_answer, server_challenge, from_server=True), server=there),
            Packet(0.17, False, own.one_rtt(2, client_answer, *moves, from_server=False), server=there),
        ]
        pieces = [own.one_rtt(2 + n, stream_frame(0, bytes(99), 99 * n), from_server=True) for n in range(30)]
        packets += [Packet(0.2 + n / 100, True, piece, server=at) for n, piece in enumerate(pieces)]
        trace = tmp_path / "trace.pcap"
        trace.write_bytes(pcap(packets))
        both = read(trace, connection.key_log.splitlines())
        return new_paths.migrated(seen(both, both))

    assert verdict(ping, at=there) is None
    assert fails(
        verdict(at=SERVER), ErrorCode.PATH_UNCHANGED, "only probed another address of the server (frames 6, 8)"
    )
    assert fails(verdict(ping, at=SERVER), ErrorCode.PATH_UNCHANGED, "No part of the response")
