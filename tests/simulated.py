"""Transfers of real aioquic endpoints over a link that is played in memory, with the traces of both ends.

Time is virtual, so a satellite link takes no longer than a short one, and what was lost is known exactly.
"""

import datetime
import heapq
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import HandshakeCompleted, StreamDataReceived
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

from quicsat.analysis.analyse import CLIENT_TRACE, SERVER_TRACE
from tests.quic_builder import CLIENT, SERVER, Packet, pcap


@dataclass
class Link:
    """A symmetric link of which every packet's fate is remembered."""

    delay: float = 0.3
    """One way, seconds."""
    rate: float = 20e6
    """Forward and return, bit/s of UDP payload."""
    queue: int = 100
    """Packets."""
    loss: float = 0.0
    """Share, each way."""
    client_drops: frozenset[int] = frozenset()
    """The client's packets that are lost, counted from 1."""
    standing_queue: float = 0.0
    """Seconds that every packet to the client waits in a queue that others keep filled."""
    outage: tuple[float, float] = (math.inf, math.inf)
    """From when to when nothing arrives."""
    drops: frozenset[int] = frozenset()
    """The server's packets that are lost, counted from 1."""
    lost: list[int] = field(default_factory=lambda: [0, 0])
    """Packets lost to the server and to the client."""
    sent: list[int] = field(default_factory=lambda: [0, 0])


@dataclass(frozen=True)
class ServerState:
    """What the server knows of itself after it has sent all that it can."""

    time: float
    connection_blocked: bool
    """All that flow control allows on the connection was sent."""
    stream_blocked: bool
    """The same of the first stream."""
    nothing_left: bool
    """All that the application gave was sent."""
    slow_start: bool
    window: int
    """Congestion window, bytes."""
    in_flight: int
    """Bytes."""
    probes: int
    """Times in a row that the PTO expired."""


@dataclass
class Simulated:
    """What came of a transfer."""

    at_client: list[Packet]
    at_server: list[Packet]
    key_log: str
    received: dict[int, int]
    """Bytes per stream that the client got."""
    states: list[ServerState] = field(default_factory=list)

    def write(self, directory: Path, offset: float = 0.0) -> None:
        """As the directory of a run; the server's clock is ``offset`` seconds ahead."""
        for name in ("sim", "client", "server"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        moved = [Packet(p.time + offset, p.from_server, p.payload, p.client, p.server) for p in self.at_server]
        (directory / CLIENT_TRACE).write_bytes(pcap(self.at_client))
        (directory / SERVER_TRACE).write_bytes(pcap(moved))
        (directory / "server/keys.log").write_text(self.key_log)


def transfer(
    sizes: list[int],
    link: Link | None = None,
    seed: int = 1,
    midway: Callable[[QuicConnection], None] | None = None,
    pause: tuple[int, float] | None = None,
    **options: object,
) -> Simulated:
    """Fetch files of these sizes, a stream each; ``options`` are aioquic's configuration of both ends;
    with ``steady_windows``, those of the client keep their size.

    ``midway`` may do something to the client's connection when half of the bytes have arrived. ``pause``: the server's
    application gives so many bytes of each file at once, and the rest at this time.
    """
    with mock.patch("os.urandom", random.Random(seed).randbytes):
        return _Simulation(sizes, link or Link(), random.Random(seed), midway, pause, options).run()


class _SteadyClient(QuicConnection):
    """A client whose windows keep their size; those of aioquic double. For links without loss."""

    def _write_connection_limits(self, builder: Any, space: Any) -> None:
        limit, window = self._local_max_data, self._configuration.max_data
        if limit.used + window // 2 > limit.value:
            limit.value = (limit.used + window) // 2
            super()._write_connection_limits(builder, space)

    def _write_stream_limits(self, builder: Any, space: Any, stream: Any) -> None:
        window, used = self._configuration.max_stream_data, stream.receiver.highest_offset
        if used + window // 2 > stream.max_stream_data_local:
            stream.max_stream_data_local = (used + window) // 2
            super()._write_stream_limits(builder, space, stream)


class _Simulation:
    def __init__(
        self,
        sizes: list[int],
        link: Link,
        chance: random.Random,
        midway: Callable[[QuicConnection], None] | None,
        pause: tuple[int, float] | None,
        options: dict[str, object],
    ) -> None:
        self.pause = pause
        self.rest: list[tuple[int, bytes]] = []
        self.states: list[ServerState] = []
        self.sizes, self.link, self.chance, self.midway = sizes, link, chance, midway
        self.secrets = StringIO()
        alpn = ["hq-interop"]
        client = QuicConfiguration(is_client=True, alpn_protocols=alpn, server_name="server4", verify_mode=0)
        server = QuicConfiguration(is_client=False, alpn_protocols=alpn, secrets_log_file=self.secrets)
        server.certificate, server.private_key = _certificate()
        kind = _SteadyClient if options.pop("steady_windows", False) else QuicConnection
        for name, value in options.items():
            setattr(client, name, value)
            setattr(server, name, value)
        self.client = kind(configuration=client)
        self.server: QuicConnection | None = None
        self.server_configuration = server
        self.traces: tuple[list[Packet], list[Packet]] = ([], [])
        self.under_way: list[tuple[float, int, bool, bytes]] = []
        self.free = [0.0, 0.0]
        self.number = count()
        self.received = {4 * n: 0 for n in range(len(sizes))}
        self.finished: set[int] = set()

    def run(self) -> Simulated:
        now = 0.0
        self.client.connect(SERVER, now=now)
        while now < 600:
            self._send(now)
            for connection in (self.client, self.server):
                while connection is not None and (event := connection.next_event()) is not None:
                    self._react(connection, event)
            self._send(now)
            if len(self.finished) == len(self.sizes):
                self.client.close()
                self._send(now)
                break
            timers = [c.get_timer() for c in (self.client, self.server) if c is not None]
            moments = [t for t in timers if t is not None] + [m[0] for m in self.under_way[:1]]
            moments += [self.pause[1]] if self.pause and self.rest else []
            now = max(now, min(moments)) + 1e-6  # a timer that is due is over, in spite of rounding
            for connection in (self.client, self.server):
                timer = connection.get_timer() if connection is not None else None
                if connection is not None and timer is not None and timer <= now:
                    connection.handle_timer(now)
            if self.pause and self.server is not None and now >= self.pause[1]:
                for stream, data in self.rest:
                    self.server.send_stream_data(stream, data, end_stream=True)
                self.rest.clear()
            self._deliver(now)
        self._deliver(now + 60)
        return Simulated(*self.traces, self.secrets.getvalue(), self.received, self.states)

    def _react(self, connection: QuicConnection, event: object) -> None:
        if isinstance(event, HandshakeCompleted) and connection is self.client:
            for n in range(len(self.sizes)):
                self.client.send_stream_data(4 * n, f"GET /{n}\r\n".encode(), end_stream=True)
        if not isinstance(event, StreamDataReceived):
            return
        if connection is self.server:
            if event.end_stream:
                data = self.chance.randbytes(self.sizes[event.stream_id // 4])
                first = self.pause[0] if self.pause else len(data)
                self.server.send_stream_data(event.stream_id, data[:first], end_stream=first >= len(data))
                self.rest += [(event.stream_id, data[first:])] if first < len(data) else []
            return
        self.received[event.stream_id] += len(event.data)
        if event.end_stream:
            self.finished.add(event.stream_id)
        if self.midway is not None and 2 * sum(self.received.values()) > sum(self.sizes):
            self.midway(self.client)
            self.midway = None

    def _send(self, now: float) -> None:
        for connection, from_server in ((self.client, False), (self.server, True)):
            if connection is None:
                continue
            for data, _ in connection.datagrams_to_send(now):
                self.traces[from_server].append(Packet(now, from_server, data, CLIENT, SERVER))
                self.link.sent[from_server] += 1
                start = max(now, self.free[from_server])
                took = 8 * len(data) / self.link.rate
                full = start - now > self.link.queue * 8 * 1200 / self.link.rate
                drops = self.link.drops if from_server else self.link.client_drops
                listed = self.link.sent[from_server] in drops
                if full or self.chance.random() < self.link.loss or listed:
                    self.link.lost[from_server] += 1
                    continue
                self.free[from_server] = start + took
                if self.link.outage[0] <= start < self.link.outage[1]:
                    self.link.lost[from_server] += 1
                    continue
                arrival = start + took + self.link.delay + (self.link.standing_queue if from_server else 0.0)
                heapq.heappush(self.under_way, (arrival, next(self.number), from_server, data))

        if self.server is not None:
            self._note(now, self.server)

    def _note(self, now: float, server: QuicConnection) -> None:
        stream = server._streams.get(0)
        recovery, sender = server._loss, stream.sender if stream else None
        limit = stream.max_stream_data_remote if stream else math.inf
        self.states.append(
            ServerState(
                time=now,
                connection_blocked=server._remote_max_data_used >= server._remote_max_data,
                stream_blocked=sender is not None and sender.highest_offset >= limit,
                nothing_left=sender is not None and sender.highest_offset >= sender._buffer_stop,
                slow_start=recovery._cc.ssthresh is None,
                window=recovery._cc.congestion_window,
                in_flight=recovery._cc.bytes_in_flight,
                probes=recovery._pto_count,
            )
        )

    def _deliver(self, now: float) -> None:
        while self.under_way and self.under_way[0][0] <= now:
            moment, _, from_server, data = heapq.heappop(self.under_way)
            self.traces[not from_server].append(Packet(moment, from_server, data, CLIENT, SERVER))
            if from_server:
                self.client.receive_datagram(data, SERVER, moment)
                continue
            if self.server is None:
                destination = data[6 : 6 + data[5]]
                self.server = QuicConnection(
                    configuration=self.server_configuration, original_destination_connection_id=destination
                )
            self.server.receive_datagram(data, CLIENT, moment)


def _certificate() -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.derive_private_key(12345, ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server4")])
    day = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(day).not_valid_after(day + datetime.timedelta(days=3650))
    return builder.sign(key, SHA256()), key
