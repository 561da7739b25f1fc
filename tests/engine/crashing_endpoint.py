#!/opt/aioquic/bin/python
"""aioquic that ends by itself: ``--crash MOMENT MANNER`` as its first words; without them, it is aioquic's endpoint.

It runs in the image of ``tests.engine.crashes``, where aioquic's own endpoint is ``/endpoint/endpoint.py``.
"""

import asyncio
import ctypes
import os
import runpy
import sys
import time
from collections.abc import Callable

from aioquic.quic.connection import QuicConnection
from aioquic.quic.stream import QuicStreamReceiver, QuicStreamSender

CLIENT = os.environ["ROLE"] == "client"
PART = 20
"""Datagrams of the other side after which a transfer of a megabyte is under way."""
LATER = 0.25
"""Seconds after the other endpoint has ended."""
PANIC = """panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
main.main()
\t/src/main.go:10 +0x1d
exit status 2"""


def crash() -> None:
    if MANNER == "panic":
        os.write(sys.stderr.fileno(), PANIC.encode())
        os._exit(2)
    elif MANNER == "SIGSEGV":
        ctypes.string_at(0)
    elif MANNER == "exit 1":
        os._exit(1)
    elif MANNER == "leave":
        os._exit(0)
    taken = []
    while True:
        if MANNER == "memory":
            taken.append(b"x" * 2**24)


def after(owner: type, name: str, act: Callable[..., None]) -> None:
    """Call ``act`` with what the method was called with, after each call of it."""
    method = getattr(owner, name)

    def call(*arguments: object, **more: object) -> object:
        result = method(*arguments, **more)
        act(*arguments)
        return result

    setattr(owner, name, call)


def at_datagram(number: int) -> None:
    seen = []

    def count(*_: object) -> None:
        seen.append(1)
        if len(seen) == number:
            crash()

    after(QuicConnection, "receive_datagram", count)


def at_end() -> None:
    """When the server has all acknowledgements, or the client all data."""

    def look(stream: QuicStreamReceiver | QuicStreamSender, *_: object) -> None:
        if stream.is_finished:
            crash()

    if CLIENT:
        after(QuicStreamReceiver, "handle_frame", look)
    else:
        after(QuicStreamSender, "on_data_delivery", look)


def after_the_other() -> None:
    """A while after the client's close; in a client, which does not close, after it has its file."""

    def wait(*_: object, **__: object) -> None:
        time.sleep(LATER)
        crash()

    def begin(*_: object) -> None:
        asyncio.get_event_loop().call_later(LATER, crash)

    if CLIENT:
        setattr(QuicConnection, "close", wait)  # noqa: B010 - of another package
    else:
        after(QuicConnection, "_handle_connection_close_frame", begin)


if sys.argv[1:2] == ["--crash"]:
    moment, MANNER = (word.replace("-", " ") for word in sys.argv[2:4])
    del sys.argv[1:4]
    if moment == "before ready":
        crash()
    elif moment == "handshake":
        at_datagram(1)
    elif moment == "transfer":
        at_datagram(PART)
    elif moment == "end":
        at_end()
    else:
        after_the_other()
runpy.run_path("/endpoint/endpoint.py", run_name="__main__")
