"""A WebTransport session: files that either side requests over streams or in datagrams, as TESTCASE says."""

import asyncio
import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from aioquic.asyncio import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DatagramReceived, H3Event, HeadersReceived, WebTransportStreamDataReceived
from aioquic.quic import events

TEST, WT = os.environ.get("TESTCASE", ""), os.environ.get("PROTOCOLS", "").split()
WAY = TEST.split("-")[1] if TEST.count("-") == 2 else ""  # empty if only the other side requests files
WT_ENABLED = 0x2C7CF000  # SETTINGS_WT_ENABLED of draft-ietf-webtrans-http3-15; the stack knows only that of draft 02
PACE, PATIENCE = 0.01, 1.0  # seconds between two requests in datagrams, and until they are repeated


class Connection(H3Connection):
    def _get_local_settings(self) -> dict[int, int]:
        return super()._get_local_settings() | {WT_ENABLED: 1}


class Session(QuicConnectionProtocol):
    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)
        self._quic.configuration.max_datagram_frame_size = 65536
        self.http, self.session, self.path = Connection(self._quic, enable_webtransport=True), -1, ""
        self.missing, self.own, self.parts = set[str](), dict[int, str](), dict[int, list[bytes]]()
        new = asyncio.get_running_loop().create_future
        self.ready, self.arrived, self.finished = new(), new(), new()

    async def fetch(self, urls: list[str]) -> None:
        """As a client: establish the session of the first URL, and do what the test asks for."""
        server, self.path = urlsplit(urls[0]).netloc, urlsplit(urls[0]).path.split("/")[1]
        while self.http.received_settings is None:
            await asyncio.sleep(0.001)
        self.session = self._quic.get_next_available_stream_id()
        name = "webtransport-h3" if WT_ENABLED in self.http.received_settings else "webtransport"
        words = {":method": "CONNECT", ":scheme": "https", ":authority": server, ":path": f"/{self.path}"}
        words |= {":protocol": name, "wt-available-protocols": ", ".join(f'"{protocol}"' for protocol in WT)}
        self.http.send_headers(self.session, [(k.encode(), v.encode()) for k, v in words.items()])
        self.transmit()
        await self.ready
        if WAY:
            await self.request([url.rpartition("/")[2] for url in urls])
        elif TEST == "handshake":
            self.end_session()
        await self.finished

    def accept(self, stream: int, headers: dict[bytes, bytes]) -> None:
        """As a server: accept the session with the first protocol of the client that the server has."""
        self.session, self.path = stream, headers[b":path"].decode().strip("/")
        theirs = re.findall(r'"([^"\\]*)"', headers.get(b"wt-available-protocols", b"").decode())
        chosen = next((protocol for protocol in theirs if protocol in WT), "")
        found = "/" not in self.path and Path("/www", self.path).is_dir()
        answer = [(b":status", b"200" if found else b"404"), (b"sec-webtransport-http3-draft", b"draft02")]
        answer += [(b"wt-protocol", f'"{chosen}"'.encode())] if chosen else []
        self.http.send_headers(stream, answer, end_stream=not found)
        self.establish(chosen)
        if found and WAY:
            self.work = asyncio.ensure_future(self.request([Path(x).name for x in os.environ["REQUESTS"].split()]))

    def establish(self, protocol: str) -> None:
        if TEST == "handshake":
            Path("/downloads/negotiated_protocol.txt").write_text(protocol)
        self.ready.set_result(None)

    def end_session(self, error: str = "") -> None:
        """End the session; the stream of its request carries nothing else."""
        if not self.finished.done() and self.session >= 0:
            self._quic.send_stream_data(self.session, b"", end_stream=True)
            self.transmit()
            self.finished.set_result(None)
            if not self.ready.done():
                self.ready.set_exception(ConnectionError(error))

    async def request(self, names: list[str]) -> None:
        self.missing = set(names)
        for name in names if WAY != "datagram" else []:
            stream = self.http.create_webtransport_stream(self.session, WAY == "unidirectional")
            self.own |= {stream: name} if WAY == "bidirectional" else {}
            self._quic.send_stream_data(stream, b"GET " + name.encode(), end_stream=True)
        self.transmit()
        while WAY == "datagram" and self.missing and not self.finished.done():
            for name in [name for name in names if name in self.missing]:
                self.http.send_datagram(self.session, b"GET " + name.encode())
                self.transmit()
                await asyncio.sleep(PACE)
            await asyncio.wait([self.arrived], timeout=PATIENCE)
        await asyncio.wait([self.arrived, self.finished], return_when=asyncio.FIRST_COMPLETED)
        if self.missing:
            raise ConnectionError(f"the session ended without {len(self.missing)} files")
        self.end_session()

    def store(self, name: str, content: bytes) -> None:
        if name in self.missing:
            Path("/downloads", self.path).mkdir(exist_ok=True)
            Path("/downloads", self.path, name).write_bytes(content)
            self.missing.remove(name)
        if not self.missing and not self.arrived.done():
            self.arrived.set_result(None)

    def quic_event_received(self, event: events.QuicEvent) -> None:
        if isinstance(event, events.ConnectionTerminated):
            self.end_session(f"connection ended: {event.reason_phrase} ({event.error_code:#x})")
        elif isinstance(event, events.StreamDataReceived) and event.stream_id in self.own:
            self.piece(event.stream_id, event.data, event.end_stream)  # The stack takes it for HTTP/3.
        else:
            for part in self.http.handle_event(event):
                self.http_event(part)

    def http_event(self, event: H3Event) -> None:
        headers = dict(event.headers) if isinstance(event, HeadersReceived) else {}
        if isinstance(event, WebTransportStreamDataReceived):
            self.piece(event.stream_id, event.data, event.stream_ended)
        elif isinstance(event, DatagramReceived):
            self.message(event.data, None)
        elif headers.get(b":protocol", b"").startswith(b"webtransport") and self.session < 0:
            self.accept(event.stream_id, headers)
        elif headers.get(b":status") == b"200":
            self.establish(headers.get(b"wt-protocol", b"").decode().strip('"'))
        if event.stream_id == self.session and getattr(event, "stream_ended", False):
            self.end_session(f"status {headers.get(b':status')}")
        self.transmit()

    def piece(self, stream: int, data: bytes, ended: bool) -> None:
        self.parts.setdefault(stream, []).append(data)
        if ended:
            content = b"".join(self.parts.pop(stream))
            self.store(self.own[stream], content) if stream in self.own else self.message(content, stream)

    def message(self, content: bytes, stream: int | None) -> None:
        """A request, or the file that was requested; ``stream``: None for a datagram."""
        word, _, rest = content.partition(b" ")
        if word == b"PUSH":
            name, _, file = rest.partition(b"\n")
            self.store(Path(name.decode().strip()).name, file)
        elif word == b"GET":
            push = b"PUSH " + rest.strip() + b"\n"
            file = Path("/www", self.path, Path(rest.decode().strip()).name).read_bytes()
            if stream is None:
                self.http.send_datagram(self.session, push + file)
            elif stream & 2:
                stream = self.http.create_webtransport_stream(self.session, is_unidirectional=True)
                self._quic.send_stream_data(stream, push + file, end_stream=True)
            else:
                self._quic.send_stream_data(stream, file, end_stream=True)
            self.transmit()
