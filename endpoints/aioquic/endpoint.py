#!/opt/aioquic/bin/python
"""aioquic as an endpoint: HTTP/0.9, HTTP/3 and WebTransport, client or server, chosen by ROLE, TESTCASE and PROTOCOLS.

The stack's defaults: Reno, and 1 MiB of flow control that doubles as fast as slow start, so it bounds no goodput."""

import argparse
import asyncio
import json
import os
import signal
from pathlib import Path
from urllib.parse import urlsplit

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.h0.connection import H0Connection
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.logger import QuicLogger, QuicLoggerTrace
from aioquic.tls import CipherSuite, SessionTicket
from webtransport import WT, Session

TEST, IS_CLIENT = os.environ.get("TESTCASE", ""), os.environ.get("ROLE") == "client"
V1, V2 = 1, 0x6B3343CF
UNKNOWN = [0x1A2A3A4A] if IS_CLIENT and TEST == "versionnegotiation" else []
H3, TICKETS = TEST.endswith("http3"), TEST in ("resumption", "zerortt")


class Qlog(QuicLogger):
    """Writes each trace at its end, as the stack's own file logger does, but several times faster."""

    def end_trace(self, trace: QuicLoggerTrace) -> None:
        self._traces.remove(trace)
        content = trace.to_dict()
        path = Path(os.environ["QLOGDIR"], content["common_fields"]["ODCID"] + ".qlog")
        path.write_text(json.dumps({"qlog_format": "JSON", "qlog_version": "0.3", "traces": [content]}))


class Endpoint(QuicConnectionProtocol):
    """A connection: as a server it answers, as a client it fetches."""

    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)
        self.http = (H3Connection if H3 else H0Connection)(self._quic)
        self.downloads: dict[int, tuple[str, Path, list[bytes]]] = {}
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def fetch(self, urls: list[str]) -> None:
        self.urls = [*zip(map(urlsplit, urls), os.environ.get("REQUESTS_AFTER", "0 " * len(urls)).split(), strict=True)]
        self.request("0")
        await self.finished

    def request(self, arrived: str) -> None:
        """Request the files that come after another one, whose position from 1 is given; 0 for the first ones."""
        for number, target in [(n, url) for n, (url, after) in enumerate(self.urls, start=1) if after == arrived]:
            stream = self._quic.get_next_available_stream_id()
            self.downloads[stream] = (str(number), Path("/downloads", Path(target.path).name), [])
            request = {":method": "GET", ":scheme": "https", ":authority": target.netloc, ":path": target.path}
            self.http.send_headers(stream, [(k.encode(), v.encode()) for k, v in request.items()], end_stream=True)
        self.transmit()

    def quic_event_received(self, event: events.QuicEvent) -> None:
        if IS_CLIENT and isinstance(event, events.StreamReset):
            self.fail(f"the server reset stream {event.stream_id} with code {event.error_code}")
        elif IS_CLIENT and isinstance(event, events.ConnectionTerminated):
            self.fail(f"connection ended: {event.reason_phrase or 'no reason given'} ({event.error_code:#x})")
        for part in self.http.handle_event(event):
            headers = dict(part.headers) if isinstance(part, HeadersReceived) else {}
            if IS_CLIENT:
                self.store(part.stream_id, headers, getattr(part, "data", b""), part.stream_ended)
            elif b":path" in headers:
                self.answer(part.stream_id, headers)

    def answer(self, stream: int, headers: dict[bytes, bytes]) -> None:
        name = Path("/www", headers[b":path"].decode(errors="replace").lstrip("/")).resolve()
        if headers[b":method"] == b"GET" and name.is_relative_to("/www") and name.is_file():
            self.http.send_headers(stream, [(b":status", b"200")])
            self.http.send_data(stream, name.read_bytes(), end_stream=True)
        else:
            self.http.send_headers(stream, [(b":status", b"404")], True) if H3 else self._quic.reset_stream(stream, 1)

    def store(self, stream: int, headers: dict[bytes, bytes], data: bytes, ended: bool) -> None:
        number, path, parts = self.downloads[stream]
        parts.append(data)
        if headers.get(b":status", b"200") != b"200":
            self.fail(f"status {headers[b':status'].decode()} for {path.name}")
        elif ended:
            path.write_bytes(b"".join(self.downloads.pop(stream)[2]))
            self.request(number)
            if not self.downloads and not self.finished.done():
                self.finished.set_result(None)

    def fail(self, reason: str) -> None:
        if not self.finished.done():
            self.finished.set_exception(ConnectionError(reason))
            self.finished.exception()  # Nobody may be waiting.

    async def wait_closed(self) -> None:
        """The close is sent; the closing period (3 probe timeouts) has nothing left to do."""


async def run_client(configuration: QuicConfiguration, urls: list[str]) -> None:
    batches = [[url] for url in urls] if TEST == "multiconnect" else [urls[:1], urls[1:]] if TICKETS else [urls]
    tickets: asyncio.Queue[SessionTicket] = asyncio.Queue()
    for number, batch in enumerate(batches):
        url, own = urlsplit(batch[0]), {"configuration": configuration, "create_protocol": Session if WT else Endpoint}
        own |= {"session_ticket_handler": tickets.put_nowait, "wait_connected": TEST != "zerortt" or number == 0}
        async with connect(url.hostname, url.port or 443, **own) as client:
            if TEST == "keyupdate":
                client.request_key_update()
            if TEST != "versionnegotiation":
                await client.fetch(batch)
            if TICKETS and number == 0:
                configuration.session_ticket = await asyncio.wait_for(tickets.get(), timeout=10)


async def run_server(configuration: QuicConfiguration) -> None:
    configuration.load_cert_chain("/certs/cert.pem", "/certs/priv.key")
    tickets: dict[bytes, SessionTicket] = {}
    own = {"configuration": configuration, "create_protocol": Session if WT else Endpoint, "retry": TEST == "retry"}
    own["session_ticket_handler"] = (lambda ticket: tickets.update({ticket.ticket: ticket})) if TICKETS else None
    await serve("::", 443, session_ticket_fetcher=lambda label: tickets.pop(label, None), **own)
    await asyncio.get_running_loop().create_future()


async def main() -> None:
    parser = argparse.ArgumentParser(description="Further settings come as CLIENT_PARAMS or SERVER_PARAMS.")
    parser.add_argument("--congestion-control", choices=["reno", "cubic"], default="reno")
    (options, urls), secrets = parser.parse_known_args(), os.environ.get("SSLKEYLOGFILE")
    configuration = QuicConfiguration(
        is_client=IS_CLIENT,
        alpn_protocols=["h3" if H3 or WT else "hq-interop"],
        cafile="/certs/ca.pem" if IS_CLIENT else None,
        cipher_suites=[CipherSuite.CHACHA20_POLY1305_SHA256] if TEST == "chacha20" else None,
        congestion_control_algorithm=options.congestion_control,
        original_version=UNKNOWN[0] if UNKNOWN else V1,  # Version 2 is offered in its own test only.
        supported_versions=[*UNKNOWN, *([V2] if TEST == "v2" else []), V1],
        secrets_log_file=Path(secrets).open("a") if secrets else None,  # noqa: SIM115
        quic_logger=Qlog() if os.environ.get("QLOGDIR") else None,
    )
    work = asyncio.ensure_future(run_client(configuration, urls) if IS_CLIENT else run_server(configuration))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
    await asyncio.wait([work])
    for trace in tuple(configuration.quic_logger._traces) if configuration.quic_logger else ():
        configuration.quic_logger.end_trace(trace)
    if not work.cancelled() and (error := work.exception()):
        raise SystemExit(f"aioquic: {str(error) or type(error).__name__}") from error


asyncio.run(main())
