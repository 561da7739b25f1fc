#!/opt/aioquic/bin/python
"""aioquic whose server has half of each file, and ``PAUSE`` seconds after it has sent that, the rest.

It runs in an image made of aioquic's, where aioquic's own endpoint is ``/endpoint/endpoint.py``.
"""

import asyncio
import runpy
from typing import Any
from unittest.mock import patch

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h0.connection import H0Connection
from aioquic.quic.connection import QuicConnection

PAUSE = 3.0
LOOK = 0.001
"""Seconds between two looks at what is left to send."""

begin, send = QuicConnectionProtocol.__init__, H0Connection.send_data
protocols = dict[QuicConnection, QuicConnectionProtocol]()
tasks = list[asyncio.Task[None]]()


def remember(protocol: QuicConnectionProtocol, connection: QuicConnection, *arguments: Any, **more: Any) -> None:
    begin(protocol, connection, *arguments, **more)
    protocols[connection] = protocol


def send_half(http: H0Connection, stream: int, data: bytes, end_stream: bool) -> None:
    half = len(data) // 2
    send(http, stream, data[:half], end_stream=False)
    tasks.append(asyncio.ensure_future(send_rest(http, stream, data[half:], end_stream)))


async def send_rest(http: H0Connection, stream: int, data: bytes, end_stream: bool) -> None:
    while len(http._quic._streams[stream].sender._pending):
        await asyncio.sleep(LOOK)
    await asyncio.sleep(PAUSE)
    send(http, stream, data, end_stream)
    protocols[http._quic].transmit()


if __name__ == "__main__":
    begins = patch.object(QuicConnectionProtocol, "__init__", remember)
    with begins, patch.object(H0Connection, "send_data", send_half):
        runpy.run_path("/endpoint/endpoint.py", run_name="__main__")
