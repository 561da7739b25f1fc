"""Runs over HTTP/2 whose TLS OpenSSL made: two objects whose answers take turns."""

import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from quicsat.traces.http2 import PREFACE
from quicsat.traces.run_traces import CLIENT_TRACE, KEY_LOGS, SERVER_TRACE
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


@dataclass(frozen=True)
class Content(Tcp):
    """A segment with content."""

    content: bytes = b""

    @property
    def frame(self) -> bytes:
        return super().frame.removesuffix(bytes(self.length)) + self.content


def segments(sent: Sequence[tuple[bool, bytes]]) -> Iterator[tuple[Content, bool]]:
    """As at their sender, 0.1 s after what the other side sent before; and whether each is lost once."""
    yield Content(0.0, False, -1, flags=SYN), False
    yield Content(0.1, True, -1, flags=SYN, acknowledged=0), False
    offsets, time, last = {True: 0, False: 0}, 0.1, True
    for from_server, wire in sent:
        time, last = time + (0.1 if from_server is not last else 0.001), from_server
        for at in range(0, len(wire), SEGMENT):
            part = wire[at : at + SEGMENT]
            place, expected = offsets[from_server], offsets[not from_server]
            lost = from_server and part[:1] == b"\x17" and wire is sent[-3][1]
            yield Content(time, from_server, place, len(part), expected, content=part), lost
            if lost:
                yield Content(time + 0.2, from_server, place, len(part), expected, content=part), False
            offsets[from_server] += len(part)
            time += 0.001


def write_run(directory: Path, peers: TlsPeers, *, lose: bool) -> None:
    """The traces at both ends of a link of 0.1 s, and the client's key log; the third last piece may be lost once."""
    ends: dict[bool, list[Content]] = {True: [], False: []}
    for each, lost in segments(peers.sent):
        ends[each.from_server].append(each)
        if not (lost and lose):
            ends[not each.from_server].append(Content(each.time + 0.1, *list(each.__dict__.values())[1:]))
    (directory / "sim").mkdir(parents=True, exist_ok=True)
    for trace, side in ((CLIENT_TRACE, False), (SERVER_TRACE, True)):
        (directory / trace).write_bytes(pcap(sorted(ends[side], key=lambda each: each.time)))
    (directory / KEY_LOGS[0]).parent.mkdir(parents=True, exist_ok=True)
    (directory / KEY_LOGS[0]).write_text("\n".join(peers.keys))
