#!/opt/aioquic/bin/python
"""aioquic as an endpoint: HTTP/0.9 and HTTP/3 over QUIC, client or server, chosen by ROLE and TESTCASE.

The stack keeps its defaults: Reno, and 1 MiB of initial flow control that doubles whenever half of it is used. That
grows as fast as slow start, so the windows do not bound the goodput of a long link.
"""

import argparse
import asyncio
import json
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.logger import QuicLogger, QuicLoggerTrace
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite, SessionTicket

TEST = os.environ.get("TESTCASE", "")
H3 = TEST == "http3"
TICKETS = TEST in ("resumption", "zerortt")
WWW = Path("/www")


class Qlog(QuicLogger):
    """Writes each trace at its end, as the stack's own file logger does, but several times faster."""

    def end_trace(self, trace: QuicLoggerTrace) -> None:
        self._traces.remove(trace)
        content = trace.to_dict()
        path = Path(os.environ["QLOGDIR"], content["common_fields"]["ODCID"] + ".qlog")
        path.write_text(json.dumps({"qlog_format": "JSON", "qlog_version": "0.3", "traces": [content]}))

    def end_all(self) -> None:
        for trace in tuple(self._traces):
            self.end_trace(trace)


class Endpoint(QuicConnectionProtocol):
    """What both roles share; a role implements ``received`` and ``headers_received``."""

    h3: H3Connection | None = None

    def quic_event_received(self, event: events.QuicEvent) -> None:
        if not H3:
            if isinstance(event, events.StreamDataReceived):
                self.received(event.stream_id, event.data, event.end_stream)
            return
        self.h3 = self.h3 or H3Connection(self._quic)
        for part in self.h3.handle_event(event):
            if isinstance(part, DataReceived):
                self.received(part.stream_id, part.data, part.stream_ended)
            elif isinstance(part, HeadersReceived):
                self.headers_received(part.stream_id, dict(part.headers))
                self.received(part.stream_id, b"", part.stream_ended)


class Server(Endpoint):
    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)
        self.requests: dict[int, bytes] = {}
        self.answered: set[int] = set()

    def headers_received(self, stream: int, headers: dict[bytes, bytes]) -> None:
        body = read_file(headers[b":path"])
        self.h3.send_headers(stream, [(b":status", b"404" if body is None else b"200")])
        self.h3.send_data(stream, body or b"", end_stream=True)

    def received(self, stream: int, data: bytes, ended: bool) -> None:
        if H3 or stream in self.answered:
            return
        request = self.requests.pop(stream, b"") + data
        if b"\n" not in request and not ended:
            self.requests[stream] = request
            return
        self.answered.add(stream)
        method, _, path = request.split(b"\n")[0].strip().partition(b" ")
        body = read_file(path) if method == b"GET" else None
        if body is None:
            self._quic.reset_stream(stream, error_code=1)
        else:
            self._quic.send_stream_data(stream, body, end_stream=True)


class Client(Endpoint):
    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)
        self.downloads: dict[int, tuple[Path, list[bytes], asyncio.Future[None]]] = {}

    def fetch(self, url: str) -> asyncio.Future[None]:
        """Request a file; done when it has been stored."""
        target = urlsplit(url)
        stream = self._quic.get_next_available_stream_id()
        done = asyncio.get_running_loop().create_future()
        self.downloads[stream] = (Path("/downloads", Path(target.path).name), [], done)
        if H3:
            self.h3 = self.h3 or H3Connection(self._quic)
            request = {":method": "GET", ":scheme": "https", ":authority": target.netloc, ":path": target.path}
            self.h3.send_headers(stream, [(k.encode(), v.encode()) for k, v in request.items()], end_stream=True)
        else:
            self._quic.send_stream_data(stream, f"GET {target.path}\r\n".encode(), end_stream=True)
        self.transmit()
        return done

    def headers_received(self, stream: int, headers: dict[bytes, bytes]) -> None:
        if headers.get(b":status") != b"200":
            self.fail(f"status {headers.get(b':status', b'?').decode()} for {self.downloads[stream][0].name}")

    def received(self, stream: int, data: bytes, ended: bool) -> None:
        path, parts, done = self.downloads[stream]
        parts.append(data)
        if ended and not done.done():
            path.write_bytes(b"".join(parts))
            done.set_result(None)

    def quic_event_received(self, event: events.QuicEvent) -> None:
        if isinstance(event, events.StreamReset):
            self.fail(f"the server reset stream {event.stream_id} with code {event.error_code}")
        elif isinstance(event, events.ConnectionTerminated):
            self.fail(f"connection ended: {event.reason_phrase or 'no reason given'} ({event.error_code:#x})")
        super().quic_event_received(event)

    def fail(self, reason: str) -> None:
        for _, _, done in self.downloads.values():
            if not done.done():
                done.set_exception(ConnectionError(reason))

    async def wait_closed(self) -> None:
        """The close is sent; the closing period (3 probe timeouts) has nothing left to do."""


def read_file(path: bytes) -> bytes | None:
    """Content of a file below /www; None where there is none."""
    name = (WWW / path.decode(errors="replace").lstrip("/")).resolve()
    return name.read_bytes() if name.is_relative_to(WWW) and name.is_file() else None


async def run_client(configuration: QuicConfiguration, urls: Sequence[str]) -> None:
    batches = [urls]
    if TICKETS:
        batches = [urls[:1], urls[1:]]
    elif TEST == "multiconnect":
        batches = [[url] for url in urls]
    tickets: asyncio.Queue[SessionTicket] = asyncio.Queue()
    for number, batch in enumerate(batches):
        target = urlsplit(batch[0])
        connection = connect(
            target.hostname,
            target.port or 443,
            configuration=replace(configuration, server_name=target.hostname),
            create_protocol=Client,
            session_ticket_handler=tickets.put_nowait,
            wait_connected=TEST != "zerortt" or number == 0,
        )
        async with connection as client:
            if TEST == "keyupdate":
                client.request_key_update()
            await asyncio.gather(*(client.fetch(url) for url in batch))
            if TICKETS and number == 0:
                configuration.session_ticket = await asyncio.wait_for(tickets.get(), timeout=10)


async def run_server(configuration: QuicConfiguration) -> None:
    configuration.load_cert_chain("/certs/cert.pem", "/certs/priv.key")
    tickets: dict[bytes, SessionTicket] = {}
    await serve(
        "::",
        443,
        configuration=configuration,
        create_protocol=Server,
        retry=TEST == "retry",
        session_ticket_fetcher=lambda label: tickets.pop(label, None),
        session_ticket_handler=(lambda ticket: tickets.update({ticket.ticket: ticket})) if TICKETS else None,
    )
    await asyncio.get_running_loop().create_future()


def configure(is_client: bool, congestion_control: str) -> QuicConfiguration:
    """Settings that both roles share. Version 2 is offered in its own test only, else all is version 1."""
    versions = [QuicProtocolVersion.VERSION_2] * (TEST == "v2") + [QuicProtocolVersion.VERSION_1]
    secrets = os.environ.get("SSLKEYLOGFILE")
    return QuicConfiguration(
        is_client=is_client,
        alpn_protocols=["h3" if H3 else "hq-interop"],
        cafile="/certs/ca.pem" if is_client else None,
        cipher_suites=[CipherSuite.CHACHA20_POLY1305_SHA256] if TEST == "chacha20" else None,
        congestion_control_algorithm=congestion_control,
        original_version=QuicProtocolVersion.VERSION_1,
        supported_versions=versions,
        secrets_log_file=Path(secrets).open("a") if secrets else None,
        quic_logger=Qlog() if os.environ.get("QLOGDIR") else None,
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description="Further settings come as CLIENT_PARAMS or SERVER_PARAMS.")
    parser.add_argument("--congestion-control", choices=["reno", "cubic"], default="reno")
    parser.add_argument("urls", nargs="*")
    options = parser.parse_args()
    is_client = os.environ.get("ROLE") == "client"
    configuration = configure(is_client, options.congestion_control)
    work = asyncio.ensure_future(run_client(configuration, options.urls) if is_client else run_server(configuration))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
    try:
        await work
    except (TimeoutError, OSError) as error:
        raise SystemExit(f"aioquic: {error or type(error).__name__}") from error
    except asyncio.CancelledError:
        pass
    finally:
        if configuration.quic_logger:
            configuration.quic_logger.end_all()


asyncio.run(main())
