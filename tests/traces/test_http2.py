"""HTTP/2 in TLS that OpenSSL made: which bytes of TCP belong to which stream, and when they can be read."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from quicsat.analysis.objects import object_metrics, object_times
from quicsat.model.emulated_link import Direction, EmulatedLink
from quicsat.model.implementation import Protocol
from quicsat.model.workload import RequestOrder, Workload
from quicsat.traces.http2 import PREFACE, FrameKind, Http2Frames, Http2Reader, stream_window
from quicsat.traces.run_traces import CLIENT_TRACE, KEY_LOGS, SERVER_TRACE, check_traces, read_run
from quicsat.traces.series import Series
from tests.tcp_traces import SYN, Tcp, pcap
from tests.tls_peers import TlsPeers

SEGMENT = 1000
TLS_1_2 = ssl.TLSVersion.TLSv1_2
VERSIONS = {
    "1.3": (ssl.TLSVersion.TLSv1_3, ""),
    "1.2, AES-128": (TLS_1_2, "ECDHE-ECDSA-AES128-GCM-SHA256"),
    "1.2, AES-256": (TLS_1_2, "ECDHE-ECDSA-AES256-GCM-SHA384"),
    "1.2, ChaCha20": (TLS_1_2, "ECDHE-ECDSA-CHACHA20-POLY1305"),
}
LINK = EmulatedLink.symmetric("simple-p2p", Direction(0.1, 20e6, 25))


def frame(kind: int, stream: int, payload: bytes, flags: int = 0) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def exchange(folder: Path, version: str = "1.3") -> TlsPeers:
    """Two requests; the answers of 3000 and 2000 bytes take turns, in three records, one with padding."""
    peers = TlsPeers(folder, *VERSIONS[version])
    peers.send(PREFACE + frame(4, 0, b""), from_server=False)
    peers.send(frame(1, 1, b"first") + frame(1, 3, b"second"), from_server=False)
    peers.send(frame(4, 0, b"") + frame(1, 1, b"200") + frame(0, 1, b"a" * 1500), from_server=True)
    peers.send(frame(1, 3, b"200") + frame(0, 3, bytes([9]) + b"b" * 2000 + bytes(9), 0x8), from_server=True)
    peers.send(frame(0, 1, b"a" * 1500, 0x1), from_server=True)
    return peers


def read(peers: TlsPeers, keys: tuple[str, ...], order: list[int] | None = None) -> Http2Frames | None:
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
    assert found is not None
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


def test_a_record_waits_for_all_before_it(tmp_path: Path) -> None:
    peers = exchange(tmp_path / "tls")
    count = len(peers.sent)
    late = [*range(count - 3), count - 2, count - 1, count - 3]
    found = read(peers, peers.keys, late)
    assert found is not None
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


@dataclass(frozen=True)
class Content(Tcp):
    """A segment with content."""

    content: bytes = b""

    @property
    def frame(self) -> bytes:
        return super().frame.removesuffix(bytes(self.length)) + self.content


def segments(peers: TlsPeers) -> Iterator[tuple[Content, bool]]:
    """As at their sender, 0.1 s after what the other side sent before; and whether each is lost once."""
    yield Content(0.0, False, -1, flags=SYN), False
    yield Content(0.1, True, -1, flags=SYN, acknowledged=0), False
    offsets, time, last = {True: 0, False: 0}, 0.1, True
    for from_server, wire in peers.sent:
        time, last = time + (0.1 if from_server is not last else 0.001), from_server
        for at in range(0, len(wire), SEGMENT):
            part = wire[at : at + SEGMENT]
            place, expected = offsets[from_server], offsets[not from_server]
            lost = from_server and part[:1] == b"\x17" and wire is peers.sent[-3][1]
            yield Content(time, from_server, place, len(part), expected, content=part), lost
            if lost:
                yield Content(time + 0.2, from_server, place, len(part), expected, content=part), False
            offsets[from_server] += len(part)
            time += 0.001


def run(directory: Path, peers: TlsPeers, *, lose: bool) -> Series:
    ends: dict[bool, list[Content]] = {True: [], False: []}
    for each, lost in segments(peers):
        ends[each.from_server].append(each)
        if not (lost and lose):
            ends[not each.from_server].append(Content(each.time + 0.1, *list(each.__dict__.values())[1:]))
    (directory / "sim").mkdir(parents=True)
    for trace, side in ((CLIENT_TRACE, False), (SERVER_TRACE, True)):
        (directory / trace).write_bytes(pcap(sorted(ends[side], key=lambda each: each.time)))
    (directory / KEY_LOGS[0]).parent.mkdir(parents=True)
    (directory / KEY_LOGS[0]).write_text("\n".join(peers.keys))
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
