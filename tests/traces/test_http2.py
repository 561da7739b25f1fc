"""HTTP/2 in TLS that OpenSSL made: which bytes of TCP belong to which stream, and when they can be read."""

from pathlib import Path

import numpy as np
import pytest

from quicsat.analysis.objects import object_metrics, object_times
from quicsat.model.emulated_link import Direction, EmulatedLink
from quicsat.model.implementation import Protocol
from quicsat.model.workload import RequestOrder, Workload
from quicsat.traces.http2 import PREFACE, FrameKind, Http2Frames, Http2Reader, stream_window
from quicsat.traces.key_log import secrets
from quicsat.traces.run_traces import check_traces, read_run
from quicsat.traces.series import Series
from quicsat.traces.tls_records import Records
from tests.early_data_builder import EarlyDataPeers
from tests.http2_builder import VERSIONS, exchange, frame, write_run
from tests.tls_peers import TlsPeers

LINK = EmulatedLink.symmetric("simple-p2p", Direction(0.1, 20e6, 25))


def read(peers: TlsPeers | EarlyDataPeers, keys: tuple[str, ...], order: list[int] | None = None) -> Http2Frames | None:
    """The frames of what the peers sent, each in a segment of its own at a second of its own."""
    reader, offsets = Http2Reader("trace", keys, 1000), {True: 0, False: 0}
    segments = []
    for from_server, wire in peers.sent:
        segments.append((offsets[from_server], wire, from_server))
        offsets[from_server] += len(wire)
    for second, place in enumerate(order or range(len(segments))):
        offset, wire, from_server = segments[place]
        reader.add(second * 1_000_000_000, 0, offset, wire, from_server=from_server)
    return reader.frames(0)


@pytest.mark.parametrize("version", VERSIONS)
def test_streams_of_all_versions_and_ciphers(tmp_path: Path, version: str) -> None:
    peers = exchange(tmp_path / "tls", version)
    found = read(peers, peers.keys)
    data = found.kind == FrameKind.DATA
    columns = found.from_server[data], found.stream[data], found.offset[data], found.length[data]
    assert [column.tolist() for column in columns] == [[True] * 3, [1, 3, 1], [0, 0, 1500], [1500, 2000, 1500]]
    last = len(peers.sent) - 1
    assert found.time[data].tolist() == [last - 2, last - 1, last]
    asked = list(found.times(FrameKind.HEADERS, from_server=False))
    assert asked == [(0, 1, last - 3), (0, 3, last - 3)]
    assert [stream for _, stream, _ in found.times(FrameKind.HEADERS, from_server=True)] == [1, 3]
    # Where the bytes of data stand on the wire: AES and ChaCha20 keep their number.
    wire = b"".join(part for from_server, part in peers.sent if from_server)
    ends = (found.start + found.length)[data]
    assert ends[-1] == len(wire) - (17 if version == "1.3" else 16)
    assert (np.diff(found.start[data]) > found.length[data][:-1]).all()


def test_windows_of_streams(tmp_path: Path) -> None:
    peers = TlsPeers(tmp_path / "tls")
    setting = (4).to_bytes(2, "big") + (100_000).to_bytes(4, "big")
    peers.send(PREFACE + frame(4, 0, b"\0\3\0\0\0\1"), from_server=False)
    peers.send(frame(4, 0, b"\0\3\0\0\0\1" + setting) + frame(1, 1, b"get"), from_server=False)
    peers.send(frame(8, 1, (5000).to_bytes(4, "big")) + frame(8, 0, (7000).to_bytes(4, "big")), from_server=False)
    found = read(peers, peers.keys)
    assert found is not None
    last = len(peers.sent) - 1
    window = stream_window(found, 0, 1, start=0.0)
    assert window.value.tolist() == [65_535, 100_000, 105_000]
    assert window.time.tolist() == [-np.inf, last - 1, last]
    assert stream_window(found, 0, 3, start=1.0).value.tolist() == [65_535, 100_000]


@pytest.mark.parametrize("accepted", [True, False])
def test_early_data(accepted: bool) -> None:
    peers = EarlyDataPeers(accepted)
    found = read(peers, peers.keys)
    asked = [0.0] if accepted else [0.0, 2.0]
    assert [time for *_, time in found.times(FrameKind.HEADERS, from_server=False)] == asked
    assert [time for *_, time in found.times(FrameKind.DATA, from_server=True)] == [1.0 if accepted else 3.0]


@pytest.mark.parametrize("version", ["1.3", "1.2, AES-128"])
def test_a_resumed_session_is_seen(tmp_path: Path, version: str) -> None:
    first = exchange(tmp_path / "tls", version)
    second = TlsPeers(tmp_path / "tls", *VERSIONS[version], earlier=first)
    for peers, resumed in ((first, False), (second, True)):
        records = Records(secrets(peers.keys))
        for from_server, wire in peers.sent:
            list(records.read(wire, from_server=from_server))
        assert (records.stated.resumed, records.stated.early_data_offered) == (resumed, False)


def test_a_record_waits_for_all_before_it(tmp_path: Path) -> None:
    peers = exchange(tmp_path / "tls")
    count = len(peers.sent)
    late = [*range(count - 3), count - 2, count - 1, count - 3]
    found = read(peers, peers.keys, late)
    assert set(found.time[found.kind == FrameKind.DATA].tolist()) == {count - 1}


@pytest.mark.parametrize("fault", ["no keys", "other keys", "other protocol", "no TLS"])
def test_what_cannot_be_read_has_no_frames(tmp_path: Path, fault: str) -> None:
    peers = exchange(tmp_path / "tls")
    keys = {"no keys": (), "other keys": exchange(tmp_path / "other").keys}.get(fault, peers.keys)
    if fault == "other protocol":
        peers = TlsPeers(tmp_path / "third")
        keys = peers.keys
        peers.send(b"GET / HTTP/1.1\r\n\r\n", from_server=False)
        peers.send(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(40_000), from_server=True)
    if fault == "no TLS":
        peers.sent[:] = [(side, wire[::-1]) for side, wire in peers.sent]
    assert read(peers, keys) is None


def run(directory: Path, peers: TlsPeers, *, lose: bool) -> Series:
    write_run(directory, peers, lose=lose)
    return read_run(directory, Protocol.TCP, LINK, check_traces(directory, Protocol.TCP)).series()


def test_objects_of_a_run(tmp_path: Path) -> None:
    peers = exchange(tmp_path / "tls")
    series = run(tmp_path / "run", peers, lose=True)
    workload = Workload("", RequestOrder.CONCURRENT)
    first, second = object_times(series, (3000, 2000), workload)
    assert (first.size, second.size) == (3000, 2000)
    assert first.requested == second.requested
    # The answers stand behind the lost segment: none can be read before it has come again.
    again = float(series.sent.time[series.sent.retransmission].max()) + 0.1
    assert first.first_byte == second.first_byte == second.finished == first.finished == pytest.approx(again, abs=1e-5)
    assert first.blocked == pytest.approx(second.blocked, abs=0.01)
    assert 0.15 < second.blocked < 0.2
    found = object_metrics(series, (first, second))
    assert found["head_of_line_blocking"] == pytest.approx(found["head_of_line_blocking_one_stream"], abs=1e-6)
    wire = sum(len(part) for from_server, part in peers.sent if from_server)
    assert series.arrived.new.sum() == wire
    of_others = series.arrived.stream == 0
    assert series.arrived.new[of_others].sum() == (series.arrived.offset + series.arrived.length)[of_others].max()
    assert {stream: int(series.arrived.new[series.arrived.stream == stream].sum()) for stream in (1, 3)} == {
        1: 3000, 3: 2000
    }  # fmt: skip


def test_without_loss_nothing_waits(tmp_path: Path) -> None:
    series = run(tmp_path / "run", exchange(tmp_path / "tls"), lose=False)
    found = object_times(series, (3000, 2000), Workload("", RequestOrder.CONCURRENT))
    assert [each.blocked for each in found] == [0, 0]
    assert found[1].finished < found[0].finished
    assert np.isfinite(series.requests.arrived).all()
    separate = object_times(series, (3000, 2000), Workload("", RequestOrder.SEPARATE))
    assert [each.requested for each in separate] == [0, 0]  # from the start of their connection
