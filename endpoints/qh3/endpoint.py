#!/opt/qh3/bin/python
"""qh3 as an endpoint for HTTP/0.9, client or server, chosen by ROLE and TESTCASE.

The stack's defaults: windows of 6 MiB for a stream and 15 MiB for a connection, more than a long link holds."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from urllib.parse import urlsplit

from qh3.asyncio import QuicConnectionProtocol, connect, serve
from qh3.quic import events
from qh3.quic.configuration import QuicConfiguration
from qh3.quic.logger import QuicLogger, QuicLoggerTrace
from qh3.tls import CipherSuite, SessionTicket

TEST, IS_CLIENT = os.environ.get("TESTCASE", ""), os.environ.get("ROLE") == "client"
RESUMES = TEST in ("resumption", "zerortt")


class Qlog(QuicLogger):
    """Writes each trace once, at its end, which the stack can report twice."""

    def end_trace(self, trace: QuicLoggerTrace) -> None:
        if trace not in self._traces:
            return
        self._traces.remove(trace)
        content = trace.to_dict()
        path = Path(os.environ["QLOGDIR"], content["common_fields"]["ODCID"] + ".qlog")
        path.write_text(json.dumps({"qlog_format": "JSON", "qlog_version": "0.3", "traces": [content]}))


class Endpoint(QuicConnectionProtocol):
    """A connection. The stack's events come here; a stream's bytes are kept until it ends."""

    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)
        self.parts: dict[int, list[bytes]] = {}
        self.paths: dict[int, Path] = {}
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def fetch(self, urls: list[str]) -> None:
        """Request all files at once and wait for them; raises ConnectionError."""
        for url in map(urlsplit, urls):
            stream = self._quic.get_next_available_stream_id()
            self.paths[stream] = Path("/downloads", Path(url.path).name)
            self._quic.send_stream_data(stream, f"GET {url.path}\r\n".encode(), end_stream=True)
        self.transmit()
        await self.finished

    def quic_event_received(self, event: events.QuicEvent) -> None:
        if isinstance(event, events.StreamDataReceived):
            self.parts.setdefault(event.stream_id, []).append(event.data)
            if event.end_stream:
                self.complete(event.stream_id, b"".join(self.parts.pop(event.stream_id)))
        elif IS_CLIENT and isinstance(event, events.StreamReset):
            self.fail(f"the server reset stream {event.stream_id} with code {event.error_code}")
        elif IS_CLIENT and isinstance(event, events.ConnectionTerminated):
            self.fail(f"connection ended: {event.reason_phrase or 'no reason given'} ({event.error_code:#x})")

    def complete(self, stream: int, content: bytes) -> None:
        """A client stores a file; a server answers a request."""
        if not IS_CLIENT:
            self.answer(stream, content)
            return
        self.paths.pop(stream).write_bytes(content)
        if not self.paths and not self.finished.done():
            self.finished.set_result(None)

    def answer(self, stream: int, request: bytes) -> None:
        method, _, name = request.decode(errors="replace").strip().partition(" ")
        path = Path("/www", name.lstrip("/")).resolve()
        if method == "GET" and path.is_relative_to("/www") and path.is_file():
            self._quic.send_stream_data(stream, path.read_bytes(), end_stream=True)
        else:
            self._quic.reset_stream(stream, 1)
        self.transmit()

    def fail(self, reason: str) -> None:
        if not self.finished.done():
            self.finished.set_exception(ConnectionError(reason))
            self.finished.exception()  # Nobody may be waiting.

    async def wait_closed(self) -> None:
        """The close is sent; the closing period (3 probe timeouts) has nothing left to do."""


async def run_client(configuration: QuicConfiguration, urls: list[str]) -> None:
    batches = [[url] for url in urls] if TEST == "multiconnect" else [urls[:1], urls[1:]] if RESUMES else [urls]
    tickets: asyncio.Queue[SessionTicket] = asyncio.Queue()
    for number, batch in enumerate(batches):
        url, own = urlsplit(batch[0]), {"configuration": configuration, "create_protocol": Endpoint}
        own |= {"session_ticket_handler": tickets.put_nowait, "wait_connected": TEST != "zerortt" or number == 0}
        async with connect(url.hostname, url.port or 443, **own) as client:
            if TEST == "keyupdate":
                await client.ping()  # Then the handshake is confirmed.
                client.request_key_update()
            await client.fetch(batch)
            if RESUMES and number == 0:
                configuration.session_ticket = await asyncio.wait_for(tickets.get(), timeout=10)


async def run_server(configuration: QuicConfiguration) -> None:
    configuration.load_cert_chain("/certs/cert.pem", "/certs/priv.key")
    tickets: dict[bytes, SessionTicket] = {}
    own = {"configuration": configuration, "create_protocol": Endpoint, "retry": TEST == "retry"}
    own["session_ticket_handler"] = (lambda ticket: tickets.update({ticket.ticket: ticket})) if RESUMES else None
    await serve("::", 443, session_ticket_fetcher=lambda label: tickets.pop(label, None), **own)
    await asyncio.get_running_loop().create_future()


async def main() -> None:
    secrets = os.environ.get("SSLKEYLOGFILE")
    configuration = QuicConfiguration(
        is_client=IS_CLIENT,
        alpn_protocols=["hq-interop"],
        cafile="/certs/ca.pem" if IS_CLIENT else None,
        cipher_suites=[CipherSuite.CHACHA20_POLY1305_SHA256] if TEST == "chacha20" else None,
        secrets_log_file=Path(secrets).open("a") if secrets else None,  # noqa: SIM115
        quic_logger=Qlog() if os.environ.get("QLOGDIR") else None,
    )
    urls = sys.argv[1:]
    work = asyncio.ensure_future(run_client(configuration, urls) if IS_CLIENT else run_server(configuration))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
    await asyncio.wait([work])
    for trace in tuple(configuration.quic_logger._traces) if configuration.quic_logger else ():
        configuration.quic_logger.end_trace(trace)
    if not work.cancelled() and (error := work.exception()):
        raise SystemExit(f"qh3: {str(error) or type(error).__name__}") from error


asyncio.run(main())
