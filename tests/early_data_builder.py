"""A connection over TCP that resumes a session of TLS 1.3 with early data, made by hand (RFC 8446)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from quicsat.traces.http2 import PREFACE
from quicsat.traces.tcp import TcpTrace, read_tcp
from tests.http2_builder import Content, exchange, frame, segments
from tests.tcp_traces import pcap

RANDOM = bytes(range(32))
SECRETS = {
    label: bytes([number]) * 32
    for number, label in enumerate(
        (
            "CLIENT_EARLY_TRAFFIC_SECRET",
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
            "SERVER_HANDSHAKE_TRAFFIC_SECRET",
            "CLIENT_TRAFFIC_SECRET_0",
            "SERVER_TRAFFIC_SECRET_0",
        )
    )
}
EARLY, CLIENT_HANDSHAKE, SERVER_HANDSHAKE, CLIENT_DATA, SERVER_DATA = SECRETS
HANDSHAKE, APPLICATION_DATA = 22, 23
REQUEST = PREFACE + frame(4, 0, b"") + frame(1, 1, b"get")


def _extension(kind: int, content: bytes = b"") -> bytes:
    return kind.to_bytes(2, "big") + len(content).to_bytes(2, "big") + content


def _message(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


def _with_length(content: bytes) -> bytes:
    return len(content).to_bytes(2, "big") + content


def _hello(kind: int, suites: bytes, extensions: bytes) -> bytes:
    random = RANDOM if kind == 1 else bytes(32)
    body = b"\3\3" + random + b"\0" + suites + _with_length(extensions)
    return bytes([HANDSHAKE, 3, 3]) + _with_length(_message(kind, body))


@dataclass
class EarlyDataPeers:
    """Both ends, and what they send: the client a request as early data, the server an answer of 3000 bytes."""

    accepted: bool = True
    """Else the client sends the request again after the handshake."""
    sent: list[tuple[bool, bytes]] = field(default_factory=list)
    """As :class:`tests.tls_peers.TlsPeers` has it."""
    _numbers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        early, psk, h2 = _extension(42), _extension(41, b"\0\0"), _extension(16, b"\0\3\2h2")
        hello = _hello(1, _with_length(b"\x13\1") + b"\1\0", early + psk)
        self.sent.append((False, hello + self._record(EARLY, APPLICATION_DATA, REQUEST)))
        answer = _hello(2, b"\x13\1\0", _extension(43, b"\3\4") + psk)
        encrypted = _message(8, _with_length(h2 + (early if self.accepted else b""))) + _message(20, bytes(32))
        content = frame(4, 0, b"") + frame(1, 1, b"200") + frame(0, 1, b"a" * 3000, 0x1)
        data = self._record(SERVER_DATA, APPLICATION_DATA, content)
        flight = answer + self._record(SERVER_HANDSHAKE, HANDSHAKE, encrypted)
        self.sent.append((True, flight + (data if self.accepted else b"")))
        end = self._record(EARLY, HANDSHAKE, _message(5, b"")) if self.accepted else b""
        again = b"" if self.accepted else self._record(CLIENT_DATA, APPLICATION_DATA, REQUEST)
        self.sent.append((False, end + self._record(CLIENT_HANDSHAKE, HANDSHAKE, _message(20, bytes(32))) + again))
        if not self.accepted:
            self.sent.append((True, data))

    @property
    def keys(self) -> tuple[str, ...]:
        """Lines of the key log."""
        return tuple(f"{label} {RANDOM.hex()} {secret.hex()}" for label, secret in SECRETS.items())

    def _record(self, label: str, kind: int, content: bytes) -> bytes:
        number = self._numbers.get(label, 0)
        self._numbers[label] = number + 1
        key, vector = (self._expand(label, name, size) for name, size in ((b"key", 16), (b"iv", 12)))
        header = bytes([APPLICATION_DATA, 3, 3]) + (len(content) + 17).to_bytes(2, "big")
        nonce = (int.from_bytes(vector, "big") ^ number).to_bytes(12, "big")
        return header + AESGCM(key).encrypt(nonce, content + bytes([kind]), header)

    @staticmethod
    def _expand(label: str, name: bytes, size: int) -> bytes:
        info = size.to_bytes(2, "big") + bytes([6 + len(name)]) + b"tls13 " + name + b"\0"
        return HKDFExpand(SHA256(), size, info).derive(SECRETS[label])


def two_visits(folder: Path, *, accepted: bool = True, fast_open: bool | None = None) -> TcpTrace:
    """At the client: a first connection, and 10 s later one with early data, both with a round trip of 0.2 s.

    ``fast_open``: whether the server takes the data of the second SYN; None if it has none.
    """
    first, second = exchange(folder / "first"), EarlyDataPeers(accepted)
    packets = _at_client(first.sent)
    later = [replace(each, time=each.time + 10, port=each.port + 1) for each in _at_client(second.sent)]
    if fast_open is not None:
        syn, answer, request, *others = later
        content = second.sent[0][1]
        early = replace(syn, content=content, length=len(content))
        if fast_open:
            sooner = [replace(each, time=each.time - 0.2) for each in others]
            later = [early, replace(answer, acknowledged=len(content)), *sooner]
        else:
            later = [early, answer, request, *others]
    path = folder / "trace.pcap"
    path.write_bytes(pcap([*packets, *later]))
    return read_tcp(path, keys=(*first.keys, *second.keys))


def _at_client(sent: Sequence[tuple[bool, bytes]]) -> list[Content]:
    """In order, without what is lost once."""
    packets = (each for each, lost in segments(sent) if not lost)
    found = [replace(each, time=each.time + 0.1) if each.from_server else each for each in packets]
    return sorted(found, key=lambda each: each.time)
