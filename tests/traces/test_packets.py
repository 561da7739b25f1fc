"""Every kind of packet is found and decrypted, whichever of them share a datagram, and in whatever order they come."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quicsat.analysis import metrics
from quicsat.traces import trace
from quicsat.traces.columns import Form, Frame, Message, Trace
from quicsat.traces.connections import handshakes
from quicsat.traces.key_log import key_lines, secrets
from quicsat.traces.network import UDP, Segment
from quicsat.traces.packets import Dissector
from tests import quic_builder
from tests.quic_builder import ACK, PING, Connection, stream_frame, varint
from tests.simulated import Link, Simulated, transfer


def dissected(
    payloads: Sequence[tuple[bool, bytes]], key_log: str = "", paths: Sequence[str] = (), ecn: int = 0
) -> Trace:
    """The columns of datagrams, a second apart, each on its path or on the first."""
    dissector = Dissector(secrets(key_log.splitlines()))
    for number, (from_server, payload) in enumerate(payloads):
        path = paths[number] if number < len(paths) else "a:1 b:443"
        dissector.add(
            10**18 + number * 10**9, number + 1, Segment(from_server, path, ecn, UDP, b"", payload, len(payload))
        )
    return dissector.trace()


def greeting(made: Connection) -> list[tuple[bool, bytes]]:
    return [(False, made.client_hello()), (True, made.server_hello())]


# ---- made by hand ---------------------------------------------------------------------------


def test_coalesced_packets_have_rows_of_their_own() -> None:
    made = Connection()
    second = made.handshake(1, PING, from_server=True)
    third = made.one_rtt(2, ACK, stream_frame(0, b"x"), from_server=True)
    payload = made.server_hello() + second + third
    found = dissected([(False, made.client_hello()), (True, payload)], made.key_log, ecn=2)
    assert found.form.tolist() == [Form.INITIAL, Form.INITIAL, Form.HANDSHAKE, Form.ONE_RTT]
    assert found.decrypted.all()
    assert found.frame.tolist() == [1, 2, 2, 2]
    assert found.size.tolist()[1:] == [len(payload), 0, 0]
    assert found.length.tolist()[1:] == [len(payload) - len(second) - len(third), len(second), len(third)]
    assert set(found.ecn.tolist()) == {2}
    assert found.eliciting.tolist() == [True, True, True, True]
    assert found.frames.packet.tolist() == [3]


@pytest.mark.parametrize("ids", [{}, {"client_id": b""}, {"client_id": b"", "server_id": b""}])
def test_coalesced_packets_may_have_no_fixed_bit(ids: dict[str, Any]) -> None:
    """RFC 9287; such as picoquic's to neqo, whose connection id is empty."""
    made = Connection(**ids, fixed_bit=0)
    flight = made.server_hello() + b"".join(made.handshake(number, PING, from_server=True) for number in range(2))
    flight += made.one_rtt(0, PING, from_server=True)
    found = dissected([(False, made.client_hello()), (True, flight)], made.key_log)
    assert found.form.tolist() == [Form.INITIAL, Form.INITIAL, Form.HANDSHAKE, Form.HANDSHAKE, Form.ONE_RTT]
    assert found.decrypted.all()


def test_the_spin_bit_is_read_without_keys() -> None:
    made = Connection()
    bits = [0, 1, 1, 0]
    payloads = [(True, made.one_rtt(number, PING, from_server=True, spin=bit)) for number, bit in enumerate(bits)]
    assert dissected([*greeting(made), *payloads]).spin.tolist() == [-1, -1, *bits]


JUNK = bytes(range(1, 200))
PADDINGS = {
    "zeros": bytes(200),
    "short header": b"\x41" + JUNK,
    "fixed bit 0": b"\x01" + JUNK,
    "long header of no version": b"\xc3" + JUNK,
    "long header, cut": b"\xe3\0\0\0\x02\xff" + JUNK,
    "like a Retry": b"\xf3\0\0\0\x01\x08elsewher\x08 another" + JUNK,
    "like Version Negotiation": b"\x80\0\0\0\0\x08elsewher\x08 another" + JUNK,
}


@pytest.mark.parametrize("padding", PADDINGS.values(), ids=PADDINGS)
@pytest.mark.parametrize("ids", [{}, {"client_id": b""}, {"client_id": b"", "server_id": b""}])
def test_padding_of_any_content_changes_nothing(padding: bytes, ids: dict[str, bytes]) -> None:
    """RFC 9000, section 14.1; with a connection id of no bytes, only keys tell padding from a packet."""
    made = Connection(**ids)  # type: ignore[arg-type]
    data = bytes(900)
    payloads = [
        (False, made.client_hello(), padding),
        (True, made.server_hello() + made.handshake(0, PING, from_server=True), padding),
        (False, made.handshake(0, ACK, from_server=False), b""),
        (False, made.one_rtt(0, stream_frame(0, b"GET /x", fin=True), from_server=False), b""),
        (True, made.one_rtt(0, stream_frame(0, data), from_server=True), b""),
        (True, made.one_rtt(1, stream_frame(0, data, 900, fin=True), from_server=True), b""),
    ]
    plain, padded = (
        dissected([(side, one + more * with_it) for side, one, more in payloads], made.key_log) for with_it in (0, 1)
    )
    forms = [form for form in padded.form.tolist() if form != Form.UNKNOWN]
    assert forms == plain.form.tolist()
    assert metrics.handshake_time(padded) == metrics.handshake_time(plain) == 3
    assert metrics.goodput(padded, 1800) == metrics.goodput(plain, 1800) == 14_400
    assert handshakes(padded) == 1


@pytest.mark.parametrize("ids", [{}, {"client_id": b""}])
@pytest.mark.parametrize("logged", [True, False])
def test_a_packet_behind_others_counts_also_without_keys(ids: dict[str, bytes], logged: bool) -> None:
    made = Connection(**ids)  # type: ignore[arg-type]
    flight = made.server_hello() + made.handshake(0, PING, from_server=True) + made.one_rtt(0, PING, from_server=True)
    found = dissected([(False, made.client_hello()), (True, flight)], made.key_log if logged else "")
    assert found.form.tolist() == [Form.INITIAL, Form.INITIAL, Form.HANDSHAKE, Form.ONE_RTT]
    assert found.decrypted.tolist() == [True, True, logged, logged]


def test_a_packet_of_the_server_that_corruption_made_0_rtt_stays_closed() -> None:
    made = Connection()
    packet = made.handshake(1, PING, from_server=True)
    corrupted = bytes([packet[0] ^ 0x30]) + packet[1:]
    found = dissected([*greeting(made), (True, corrupted)], made.key_log)
    assert found.form.tolist() == [Form.INITIAL, Form.INITIAL, Form.ZERO_RTT]
    assert found.decrypted.tolist() == [True, True, False]


def test_acknowledgements_and_signals() -> None:
    made = Connection()
    acks = bytes([0x03]) + varint(100) + varint(5) + varint(1) + varint(10) + varint(3) + varint(2)
    acks += varint(7) + varint(0) + varint(1)
    close = b"\x1c" + varint(0x128) + varint(0x06) + varint(5) + b"hands"
    bdp = b"".join(map(varint, (0xEBD9, 86_400_000_000, 904_320, 600_123, 4))) + bytes([193, 167, 0, 100])
    frames = [
        acks, b"\x10" + varint(5000), b"\x11" + varint(4) + varint(900), b"\x04" + varint(4) + varint(7) + varint(1),
        b"\x1a" + b"12345678", b"\x18" + varint(3) + varint(1) + b"\x04wxyz" + bytes(16), b"\x07\x02ab",
        b"\x1d" + varint(9) + varint(0), b"\x30abc",
    ]  # fmt: skip
    payload = [
        (True, made.one_rtt(0, *frames, from_server=True)),
        (True, made.one_rtt(1, close, from_server=True)),
        (True, made.one_rtt(2, b"\x42\xf5" + varint(151105), b"\x24" + bytes([4, 0, 9, 5]), from_server=True)),
        (True, made.one_rtt(3, bdp, PING, from_server=True)),
        (True, made.one_rtt(4, PING, b"\x40\x99", PING, from_server=True)),
    ]
    found = dissected([*greeting(made), *payload], made.key_log)
    said = found.signals
    assert [(each.largest[0], each.delay[0], each.ect0[0], each.ect1[0], each.ce[0]) for each in [found.acks]] == [
        (100, 5, 7, 0, 1)
    ]
    assert (found.ack_ranges.smallest.tolist(), found.ack_ranges.largest.tolist()) == ([90, 83], [100, 85])
    rows = zip(*(column.tolist() for column in (said.kind, said.first, said.second)), strict=True)
    assert list(rows) == [
        (Frame.MAX_DATA, 5000, 0), (Frame.MAX_STREAM_DATA, 4, 900), (Frame.RESET_STREAM, 4, 7),
        (Frame.PATH_CHALLENGE, 0, 0), (Frame.NEW_CONNECTION_ID, 3, 1), (Frame.NEW_TOKEN, 0, 0),
        (Frame.CLOSE_APPLICATION, 9, 0), (Frame.DATAGRAM, 3, 0), (Frame.CLOSE, 0x128, 6),
        (Frame.TIME_STAMP, 151105, 0), (Frame.RESET_STREAM_AT, 4, 0), (Frame.BDP, 904_320, 600_123),
        (Frame.PING, 0, 0), (Frame.PING, 0, 0), (0x99, 0, 0),
    ]  # fmt: skip
    texts = [found.texts[index] for index in said.text]
    assert texts[3:6] == ["3132333435363738", "7778797a", "6162"]
    assert texts[8] == "hands"
    assert texts[11] == "c1a70064"


def test_version_negotiation_and_retry() -> None:
    made = Connection()
    ids = b"\x08client-1" + b"\x08original"
    negotiation = b"\x80" + bytes(4) + ids + b"\x00\x00\x00\x01"
    found = dissected([(False, made.client_hello()), (True, made.retry(b"retry-id")), (True, negotiation)])
    assert found.form.tolist() == [Form.INITIAL, Form.RETRY, Form.VERSION_NEGOTIATION]
    assert [found.tokens[index] for index in found.token] == ["", b"token".hex(), "00000001"]
    assert found.number.tolist() == [0, -1, -1]
    assert [found.connection_ids[index] for index in found.scid[1:]] == [b"retry-id".hex(), b"original".hex()]


@pytest.mark.parametrize("taken", [b"retry-1", b"retry-2"])
@pytest.mark.parametrize("random", [b"r" * 32, b"R" * 32])
@pytest.mark.parametrize("late", [False, True])
def test_a_client_hello_of_two_initials_may_get_two_retries(taken: bytes, random: bytes, late: bool) -> None:
    """A server without state answers each Initial; the client takes one, and may have another ClientHello then.

    At the client, the second Retry may come between its two new Initials.
    """
    first, again = Connection(), Connection(original=taken, random=random)
    retries = [(True, first.retry(name)) for name in (b"retry-1", b"retry-2")]
    hello = [(False, payload) for payload in first.client_hello_in_two(60)]
    new = [(False, payload) for payload in again.client_hello_in_two(60)]
    meeting = [retries[0], new[0], retries[1], new[1]] if late and taken == b"retry-1" else [*retries, *new]
    flight = again.server_hello() + again.handshake(0, PING, from_server=True)
    found = dissected(
        [*hello, *meeting, (True, flight), (True, again.one_rtt(0, PING, from_server=True))], again.key_log
    )
    assert found.decrypted[found.form != Form.RETRY].all()
    assert {*found.connection.tolist()} == {0}
    assert found.connections[0].random == random.hex()
    assert handshakes(found) == 1


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("acknowledged", [False, True])
def test_a_client_hello_of_two_initials_is_one_flight(order: tuple[int, int], acknowledged: bool) -> None:
    """With shares for key exchange after quantum computers, in whatever order they come."""
    made = Connection()
    halves = made.client_hello_in_two(60)
    payloads = [(False, halves[order[0]]), (False, halves[order[1]])]
    payloads[1:1] = [(True, made.initial(9, ACK, from_server=True))] * acknowledged
    flight = made.server_hello() + made.handshake(0, PING, from_server=True)
    found = dissected([*payloads, (True, flight)], made.key_log)
    assert found.decrypted.all()
    assert (handshakes(found), len(found.connections)) == (1, 1)
    assert found.messages.kind.tolist() == [Message.CLIENT_HELLO, Message.SERVER_HELLO]


def test_a_connection_is_followed_to_another_path_by_its_id() -> None:
    made, other = Connection(), Connection(b"other-id", b"client-2", b"server-2", b"R" * 32)
    payloads = [
        *greeting(made), *greeting(other),
        (False, made.one_rtt(1, PING, from_server=False)),
        (False, other.one_rtt(1, PING, from_server=False)),
    ]  # fmt: skip
    paths = ["a:1 b:443", "a:1 b:443", "a:2 b:443", "a:2 b:443", "a:3 b:443", "a:3 b:443"]
    found = dissected(payloads, made.key_log + other.key_log, paths)
    assert found.decrypted.all()
    assert found.connection.tolist() == [0, 0, 1, 1, 0, 1]
    assert [found.connection_ids[index] for index in found.dcid[4:]] == [b"server-1".hex(), b"server-2".hex()]


def test_stateless_resets_end_with_a_token_of_the_connection() -> None:
    made, token = Connection(), b"0123456789abcdef"
    frame = b"\x18" + varint(1) + varint(0) + b"\x08" + b"server-2" + token
    payloads = [
        *greeting(made),
        (True, made.one_rtt(0, frame, from_server=True)),
        (True, b"\x55" + bytes(20) + token),
        (True, b"\x55" + bytes(20) + token[::-1]),
        (True, b"\x55" + bytes(3) + token),
    ]
    found = dissected(payloads, made.key_log)
    assert found.form.tolist()[-4:] == [Form.ONE_RTT, Form.STATELESS_RESET, Form.ONE_RTT, Form.ONE_RTT]
    assert found.decrypted.tolist()[-4:] == [True, False, False, False]


def test_a_packet_whose_server_hello_comes_late_is_decrypted_too() -> None:
    made = Connection()
    hello, answer = greeting(made)
    early = (True, made.one_rtt(3, stream_frame(0, b"early"), from_server=True))
    found = dissected([hello, early, answer], made.key_log)
    assert found.number.tolist() == [0, 3, 0]
    assert found.frames.packet.tolist() == [1]


def test_numbers_of_deferred_packets_follow_those_before_them_not_the_last_of_the_trace() -> None:
    """Numbers are one byte on the wire: after number 200, the byte 3 would mean 259 (RFC 9000, appendix A.3)."""
    made = Connection()
    first, second = ((False, payload) for payload in made.client_hello_in_two(20))  # no keys without its random
    early = [(True, made.one_rtt(number, stream_frame(0, b"early"), from_server=True)) for number in (3, 120, 230)]
    later = [(True, made.one_rtt(number, PING, from_server=True)) for number in (100, 200)]
    found = dissected([first, early[0], second, *later], made.key_log)
    assert found.number.tolist() == [0, 3, 1, 100, 200]
    assert found.frames.packet.tolist() == [1]
    found = dissected([first, *early, second, later[0]], made.key_log)  # each counts for the next
    assert found.number.tolist() == [0, 3, 120, 230, 1, 100]


def test_an_initial_to_an_id_that_is_not_known_yet_belongs_to_the_connection_of_its_path() -> None:
    """The id comes from a NEW_CONNECTION_ID frame that cannot be read yet: the ServerHello was lost at first."""
    made = Connection(client_id=b"")
    hello, answer = greeting(made)
    again = (False, made.initial(1, PING, from_server=False, target=b"new-id-1"))
    found = dissected([hello, again, answer], made.key_log)
    assert found.number.tolist() == [0, 1, 0]
    assert handshakes(found) == 1


def test_two_connections_that_a_server_made_of_one_client_hello(monkeypatch: pytest.MonkeyPatch) -> None:
    """ngtcp2's server replies with a Retry to one half of a ClientHello, and with a ServerHello to the other half."""
    made = Connection()
    packets = greeting(made)
    logs, ones = [], []
    for first, pair in ((0, (b"C" * 32, b"S" * 32)), (1, (b"D" * 32, b"T" * 32))):
        monkeypatch.setattr(quic_builder, "_ONE_RTT", pair)
        logs.append(made.key_log)
        ones.append([(True, made.one_rtt(number, PING, from_server=True)) for number in range(first, 6, 2)])
    packets += [packet for pair in zip(*ones, strict=True) for packet in pair]
    for log in ("".join(logs), "".join(reversed(logs))):
        assert dissected(packets, log).number.tolist()[2:] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("bits", [0x00, 0x08, 0x10, 0x18])
def test_packets_that_show_loss_bits(bits: int) -> None:
    made = Connection(loss_bits=bits)
    packets = [(True, made.one_rtt(number, stream_frame(0, b"x"), from_server=True)) for number in range(16)]
    found = dissected([*greeting(made), *packets], made.key_log)
    assert found.number.tolist() == [0, 0, *range(16)]
    assert found.frames.stream.tolist() == [0] * 16


def test_wrong_keys_and_none() -> None:
    made = Connection()
    packet = (True, made.one_rtt(1, PING, from_server=True))
    for key_log in ("", Connection(random=b"?" * 32).key_log, made.key_log.replace("53" * 32, "54" * 32)):
        found = dissected([*greeting(made), packet], key_log)
        assert found.decrypted.tolist() == [True, True, False]
        assert found.number.tolist() == [0, 0, -1]


def test_what_is_no_quic_is_taken_without_complaint() -> None:
    made = Connection()
    whole = made.client_hello()
    garbage = [
        b"\x00",
        b"\xff",
        b"\xc0\x00\x00\x00\x01",
        b"\xc0\x00\x00\x00\x01\xff" + bytes(30),
        whole[:20],
        whole[:600],
    ]
    found = dissected([(False, each) for each in garbage])
    assert not found.decrypted.any()
    assert found.size.tolist() == [len(each) for each in garbage]


# ---- real aioquic ---------------------------------------------------------------------------


def columns(made: Simulated, tmp_path: Path) -> tuple[Trace, Trace]:
    made.write(tmp_path)
    keys = key_lines(tmp_path / "server/keys.log")
    return tuple(trace.read(tmp_path / f"sim/trace_node_{side}.pcap", keys) for side in ("left", "right"))  # type: ignore[return-value]


def test_all_of_a_real_transfer_is_decrypted(tmp_path: Path) -> None:
    link = Link(loss=0.05, delay=0.03)
    client, server = columns(transfer([30_000, 5_000], link), tmp_path)
    assert client.decrypted.all()
    assert server.decrypted.all()
    assert int(server.from_server.sum()) >= link.sent[1]
    [facts] = client.connections
    assert (facts.alpn, facts.server_name, facts.resumed) == ("hq-interop", "server4", False)
    assert facts.cipher in facts.offered
    assert facts.client_parameters["active_connection_id_limit"] == 8
    assert "original_destination_connection_id" in facts.server_parameters
    kinds = client.messages.kind[client.from_server[client.messages.packet]].tolist()
    assert {Message.SERVER_HELLO, Message.ENCRYPTED_EXTENSIONS, Message.CERTIFICATE, Message.FINISHED} <= set(kinds)


@pytest.mark.parametrize("cipher", [0x1301, 0x1302, 0x1303])
def test_every_cipher_suite(tmp_path: Path, cipher: int) -> None:
    client, _ = columns(transfer([5_000], cipher_suites=[cipher]), tmp_path)
    assert client.decrypted.all()
    assert client.connections[0].cipher == cipher


def test_key_updates(tmp_path: Path) -> None:
    client, server = columns(transfer([400_000], Link(delay=0.03), midway=lambda c: c.request_key_update()), tmp_path)
    for found in (client, server):
        assert found.decrypted.all()
        for side in (False, True):
            mine = (found.from_server == side) & (found.form == Form.ONE_RTT)
            assert set(found.key_phase[mine].tolist()) == {0, 1}
            assert found.generation[mine].max() == 1


def test_version_2(tmp_path: Path) -> None:
    versions = [0x6B3343CF, 1]
    client, _ = columns(transfer([5_000], supported_versions=versions, original_version=0x6B3343CF), tmp_path)
    assert client.decrypted.all()
    assert set(client.version.tolist()) == {0x6B3343CF, -1}


def test_a_change_of_connection_id(tmp_path: Path) -> None:
    client, _ = columns(transfer([100_000], Link(delay=0.03), midway=lambda c: c.change_connection_id()), tmp_path)
    assert client.decrypted.all()
    mine = ~client.from_server & (client.form == Form.ONE_RTT)
    assert len(np.unique(client.dcid[mine])) > 1
    assert Frame.RETIRE_CONNECTION_ID in client.signals.kind
