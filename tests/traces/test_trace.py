"""A trace is read whole and right, or it is a fault of ours; key logs are hostile."""

import os
from pathlib import Path

import numpy as np
import pytest

from quicsat.traces import key_log, trace
from quicsat.traces.columns import Form
from quicsat.traces.key_log import key_lines
from quicsat.traces.streams import new_bytes, responses
from tests.quic_builder import ACK, CLIENT_6, PING, SERVER_6, Connection, Packet, pcap, stream_frame

DATA = Path(__file__).parents[1] / "data"
LEFT, RIGHT = "sim/trace_node_left.pcap", "sim/trace_node_right.pcap"


def keys_of(name: str) -> tuple[str, ...]:
    return key_lines(DATA / name / "client/keys.log", DATA / name / "server/keys.log")


# ---- recorded -------------------------------------------------------------------------------


def test_a_transfer_with_loss() -> None:
    """30,000 bytes from aioquic over a link that lost 6 % of the packets."""
    left = trace.read(DATA / "lossy" / LEFT, keys_of("lossy"))
    right = trace.read(DATA / "lossy" / RIGHT, keys_of("lossy"))
    assert left.decrypted.all()
    assert right.decrypted.all()
    assert responses(left) == {(0, 0): (30_000, 30_000, 30_000)}
    assert int(new_bytes(right)[right.from_server[right.frames.packet]].sum()) == 30_000
    assert set(left.version[left.form != Form.ONE_RTT].tolist()) == {1}
    assert int(right.from_server.sum()) > int(left.from_server.sum())


def test_several_streams_share_packets() -> None:
    many = trace.read(DATA / "many" / LEFT, keys_of("many"))
    sizes = {stream: response.arrived for (_, stream), response in responses(many).items()}
    assert sizes == {0: 3000, 4: 10, 8: 1, 12: 5000, 16: 7000, 20: 0, 24: 200}
    assert int(np.bincount(many.frames.packet).max()) > 1


def test_without_keys_the_headers_are_still_there() -> None:
    with_keys = trace.read(DATA / "many" / LEFT, keys_of("many"))
    without = trace.read(DATA / "many" / LEFT)
    assert without.form.tolist() == with_keys.form.tolist()
    assert without.size.tolist() == with_keys.size.tolist()
    assert set(without.form[without.decrypted].tolist()) == {Form.INITIAL}
    assert len(without.frames) == 0


def test_retry_over_version_6() -> None:
    """aioquic makes a new ClientHello after a Retry, to which tshark finds no keys; we do."""
    retry = trace.read(DATA / "retry" / LEFT, keys_of("retry"))
    assert Form.RETRY in retry.form
    assert retry.decrypted[retry.form != Form.RETRY].all()
    assert sum(response.arrived for response in responses(retry).values()) == 10_000
    assert "fd00:cafe:cafe::100" in retry.paths[0]


def test_a_trace_that_is_not_whole(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes((DATA / "many" / LEFT).read_bytes()[:-3])
    whole = trace.read(DATA / "many" / LEFT)
    assert trace.read(path).time.tolist() == whole.time[whole.frame < whole.frame[-1]].tolist()


# ---- made by hand ---------------------------------------------------------------------------


def test_every_kind_of_stream_frame(tmp_path: Path) -> None:
    made, zero, other = Connection(), stream_frame(0, b"zero"), stream_frame(4, b"b")
    first, last = made.server_hello() + made.handshake(0, PING, from_server=True), stream_frame(4, b"", 1, fin=True)
    payloads = [
        (False, made.client_hello()),
        (True, first + made.one_rtt(0, zero, from_server=True)),
        (False, made.one_rtt(0, stream_frame(0, b"GET /\r\n", fin=True), from_server=False)),
        (True, made.one_rtt(1, ACK, stream_frame(0, bytes(900), 4, length=False), from_server=True)),
        (True, made.one_rtt(2, other, stream_frame(0, bytes(500), 904, length=False), from_server=True)),
        (True, made.one_rtt(3, last, stream_frame(0, b"", 1404, fin=True, length=False), from_server=True)),
    ]
    packets = [Packet(time, *payload, CLIENT_6, SERVER_6) for time, payload in enumerate(payloads)]
    path = tmp_path / "made.pcap"
    path.write_bytes(pcap(packets))
    found = trace.read(path, made.key_log.splitlines())
    frames = found.frames
    assert found.decrypted.all()
    assert found.frame.tolist() == [1, 2, 2, 2, 3, 4, 5, 6]
    assert found.form.tolist() == [0, 0, 2, 4, 4, 4, 4, 4]
    assert frames.packet.tolist() == [3, 4, 5, 6, 6, 7, 7]
    assert frames.stream.tolist() == [0, 0, 0, 4, 0, 4, 0]
    assert frames.offset.tolist() == [0, 0, 4, 0, 904, 1, 1404]
    assert frames.length.tolist() == [4, 7, 900, 1, 500, 0, 0]
    assert frames.fin.tolist() == [False, True, False, False, False, True, True]


# ---- key logs -------------------------------------------------------------------------------


def test_key_logs_are_merged_and_cleaned(tmp_path: Path) -> None:
    good = f"CLIENT_TRAFFIC_SECRET_0 {'ab' * 32} {'cd' * 48}"
    other = f"SERVER_TRAFFIC_SECRET_0 {'ab' * 32} {'ef' * 32}"
    client, server, link = tmp_path / "client", tmp_path / "server", tmp_path / "link"
    client.write_text(f"# comment\n{good}\r\n{good} extra\nRSA {'ab' * 8} 00\n\n")
    server.write_bytes(b"\xff\xfe\x00" * 100 + b"\n" + f"{other}\n{good}".encode() + b"\n\x1b[2J")
    (tmp_path / "secret").write_text(f"CLIENT_TRAFFIC_SECRET_1 {'ab' * 32} {'cd' * 32}\n")
    link.symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    assert key_lines(client, server, link, tmp_path / "pipe", tmp_path / "none", tmp_path) == (good, other)


def test_labels_of_drafts_are_known() -> None:
    line = f"SERVER_TRAFFIC_SECRET_0 {'ab' * 32} {'ef' * 32}"
    assert key_log.secrets([f"QUIC_{line}"]) == key_log.secrets([line]) != {}


def test_a_key_log_is_not_read_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_log, "KEY_LOG_LIMIT", 1000)
    log = tmp_path / "keys.log"
    log.write_text("".join(f"CLIENT_TRAFFIC_SECRET_0 {n:064x} {'cd' * 32}\n" for n in range(100)))
    assert len(key_lines(log)) == 6
