"""Each rule of addresses passes some traces and fails others for exactly one reason."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.analysis.functional_tests import new_paths
from quicsat.analysis.functional_tests.rule import Observation
from quicsat.model.outcomes import ErrorCode, Rules, Verdict
from quicsat.traces.columns import Form, Frame, Trace
from quicsat.traces.trace import read
from tests.analysis.functional_tests.tables import Fault, Rows, check
from tests.analysis.test_run_outcome import CASE
from tests.quic_builder import ACK, SERVER, Connection, Packet, Row, columns, pcap, stream_frame


def at(client: str, server: str = "193.167.100.100:443") -> str:
    return f"{client} {server}"


FIRST, PORT, HOST = at("193.167.0.100:1000"), at("193.167.0.100:2000"), at("193.167.0.7:3000")
PREFERRED = at("193.167.0.100:1000", "193.167.100.100:4443")


def challenge(path: str, data: str = "c", time: float = 1) -> Row:
    return Row(time, True, path=path, signals=[(Frame.PATH_CHALLENGE, 0, 0, each) for each in data.split()])


def response(data: str = "c") -> Row:
    return Row(1, False, path=FIRST, signals=[(Frame.PATH_RESPONSE, 0, 0, data)])


def sent(path: str = FIRST, time: float = 1) -> Row:
    return Row(time, True, path=path)


END = sent(time=10)


def seen(client: Trace, server: Trace, *, round_trip: float = 0.03, upstream: bool = False) -> Observation:
    link = CASE.emulated.with_both(delay=round_trip / 2)
    rules = Rules.UPSTREAM if upstream else Rules.STANDARD
    return Observation(replace(CASE, link=link, rules=rules), client, server, keys=True)


# ---- new paths ------------------------------------------------------------------------------


def unchanged(words: str) -> Fault:
    return ErrorCode.PATH_UNCHANGED, words


def blind(packets: int) -> Fault:
    many = f"{packets} packet{'s' * (packets > 1)}"
    return ErrorCode.PATH_CHALLENGE_MISSING, f"sent {many} to 193.167.0.100:2000 without a PATH_CHALLENGE (frame"


ANSWER = Row(1, True, path=HOST, signals=[(Frame.PATH_RESPONSE, 0, 0, "p")])
LATE = [challenge(PORT, time=9.95), sent(PORT, time=9.96)]
IGNORED = (ErrorCode.PATH_RESPONSE_MISSING, "PATH_CHALLENGE to 193.167.0.100:2000 (frame 2)")
ONE = unchanged("on 1 path only")
NEW_PATHS: dict[str, tuple[Rows, str, Fault, Fault]] = {
    "challenged and used": ([challenge(PORT), sent(PORT)], "c", None, None),
    "not challenged": ([sent(PORT), sent(PORT)], "c", blind(2), blind(2)),
    "challenged elsewhere": ([sent(PORT), challenge(FIRST)], "c", blind(1), blind(1)),
    "not answered": ([challenge(PORT)], "d", IGNORED, IGNORED),
    "one path": ([], "", ONE, ONE),
    "only probed": ([challenge(PORT), sent(), sent()], "c", unchanged("only probed new paths"), None),
    "new at the end": (
        LATE, "c", unchanged("did not use them before the end of the trace (frames 2, 3)"), None,
    ),
    "another one at the end": ([challenge(HOST), sent(HOST), *LATE], "c", None, None),
    # RFC 9000, section 8.2.2: only what else comes from a new address has to be challenged (section 9.3)
    "an answer to a probe of the client": (
        [ANSWER, challenge(PORT), sent(PORT)], "c", None, (ErrorCode.PATH_CHALLENGE_MISSING, "(frame 2)"),
    ),
    "challenged in the second packet": ([sent(PORT), challenge(PORT)], "c", None, blind(2)),
    "challenged twice": ([challenge(PORT, "lost"), challenge(PORT), sent(PORT)], "c", None, IGNORED),
    "second challenge of a packet answered": ([challenge(PORT, "c d"), sent(PORT)], "d", None, IGNORED),
    "first challenge of a packet answered": ([challenge(PORT, "c d"), sent(PORT)], "c", None, None),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "answer", "ours", "theirs"), NEW_PATHS.values(), ids=NEW_PATHS)
def test_rebinding(rows: Rows, answer: str, ours: Fault, theirs: Fault) -> None:
    for upstream, fault in ((False, ours), (True, theirs)):
        both = seen(columns(*map(response, answer)), columns(sent(), *rows, END), upstream=upstream)
        check(new_paths.validated(both), fault)


def test_new_paths_that_no_key_shows() -> None:
    closed = columns(*(Row(0, True, path=path, decrypted=False) for path in (FIRST, PORT)))
    sealed = (ErrorCode.KEY_LOG_MISSING, "the server's 1-RTT packets")
    check(new_paths.validated(seen(columns(), closed, round_trip=1)), sealed)
    unread = columns(Row(0, False, path=FIRST, decrypted=False))  # the key log has the server's secrets alone
    verdict = new_paths.validated(seen(unread, columns(sent(), challenge(PORT), sent(PORT), END), round_trip=1))
    check(verdict, (ErrorCode.KEY_LOG_MISSING, "the client's 1-RTT packets"))
    check(new_paths.validated(seen(columns(), closed, upstream=True)), blind(1))


def test_a_new_address_is_more_than_a_new_port() -> None:
    check(new_paths.new_host(columns(sent(), sent(HOST))), None)
    check(new_paths.new_host(columns(sent(), sent(PORT))), unchanged("one address of the client only (193.167.0.100)"))


# ---- migration ------------------------------------------------------------------------------


def to(path: str, dcid: str, form: Form = Form.ONE_RTT) -> Row:
    return Row(1, False, form, path=path, dcid=dcid)


def data(path: str) -> Row:
    return Row(1, True, path=path, frames=[(0, 0, 1000)])


def reused(frame: int) -> Fault:
    return ErrorCode.CONNECTION_ID_REUSED, f"on a second path (frame {frame})"


BEGUN = [to(FIRST, "invented", Form.INITIAL), to(FIRST, "a")]
PROBED = [*BEGUN, Row(1, False, path=PREFERRED, dcid="b", signals=[(Frame.PATH_CHALLENGE, 0, 0, "p")])]
MIGRATIONS: dict[str, tuple[Rows, str, Sequence[Row], Fault, Fault]] = {
    "moved": ([*BEGUN, to(PREFERRED, "b")], PREFERRED, [challenge(PREFERRED)], None, None),
    "not challenged": (
        [*BEGUN, to(PREFERRED, "b")], PREFERRED, [],
        (ErrorCode.PATH_CHALLENGE_MISSING, "without a PATH_CHALLENGE"),
        (ErrorCode.PATH_CHALLENGE_MISSING, "without a PATH_CHALLENGE"),
    ),
    "only probed": (
        [*PROBED, to(FIRST, "a")], FIRST, [challenge(PREFERRED)],
        unchanged("only probed another address of the server (frame 3)"), None,
    ),
    "returned": (
        [*PROBED, to(PREFERRED, "b"), to(FIRST, "a")], FIRST, [challenge(PREFERRED)],
        unchanged("returned to the server's first address (frame 5)"), None,
    ),
    "unheard": (
        [*PROBED, to(PREFERRED, "b")], FIRST, [challenge(PREFERRED)],
        unchanged("No part of the response came from another address"), None,
    ),
    "to another port of its own": (
        [*BEGUN, to(PORT, "b")], PORT, [challenge(PORT)],
        unchanged("one address of the server only (193.167.100.100 port 443)"), None,
    ),
    "an id on two new paths": (
        [*BEGUN, to(PREFERRED, "b"), to(HOST, "b"), to(PREFERRED, "b")], PREFERRED, [challenge(PREFERRED)],
        reused(4), reused(4),
    ),
    # the first id is the one that the client invented, so that upstream never sees the reuse of another
    "an id of the first path": ([*BEGUN, to(PREFERRED, "a")], PREFERRED, [challenge(PREFERRED)], reused(3), None),
    "an id of the handshake": (
        [BEGUN[0], to(FIRST, "a", Form.HANDSHAKE), to(PREFERRED, "a")], PREFERRED, [challenge(PREFERRED)],
        reused(3), None,
    ),
    "an id of the first path, later": (
        [*BEGUN, to(PREFERRED, "b"), to(PREFERRED, "a")], PREFERRED, [challenge(PREFERRED)], reused(4), None,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("client", "response_from", "challenges", "ours", "theirs"), MIGRATIONS.values(), ids=MIGRATIONS
)
def test_migration(client: Rows, response_from: str, challenges: Rows, ours: Fault, theirs: Fault) -> None:
    there = PORT if response_from == PORT else PREFERRED
    traces = columns(*client, data(response_from), response()), columns(sent(), *challenges, sent(there), END)
    for upstream, fault in ((False, ours), (True, theirs)):
        check(new_paths.migrated(seen(*traces, upstream=upstream)), fault)


def test_a_migration_that_no_key_shows() -> None:
    closed = columns(BEGUN[0], *(Row(1, False, path=path, decrypted=False) for path in (FIRST, PREFERRED)))
    check(new_paths.migrated(seen(closed, columns())), (ErrorCode.KEY_LOG_MISSING, "the client's 1-RTT packets"))


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

    check(verdict(ping, at=there), None)
    check(verdict(at=SERVER), unchanged("only probed another address of the server (frames 6, 8)"))
    check(verdict(ping, at=SERVER), unchanged("No part of the response"))
