"""Frames as they pass in a network namespace of this machine: what a test believes rather than who sent them."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")

ETH_P_ALL = 0x0003
CLONE_NEWNET = 0x40000000
BUFFER = 8 * 1024 * 1024
"""Bytes of frames that the kernel keeps for a capture."""
HERE = Path("/proc/self/ns/net")


def inside(namespace: Path, act: Callable[[], T]) -> T:
    """What ``act`` returns in a network namespace, given as a file (/run/netns/…, /proc/…/ns/net); needs root."""

    def enter() -> T:
        descriptor = os.open(namespace, os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
        finally:
            os.close(descriptor)
        return act()

    with ThreadPoolExecutor(1) as pool:  # a thread that ends: no other one changes its namespace
        return pool.submit(enter).result()


class Capture:
    """All frames of all interfaces of a network namespace while the block runs, sent and received."""

    def __init__(self, namespace: Path = HERE) -> None:
        self._namespace = namespace
        self._frames: list[bytes] = []
        self._over = threading.Event()

    def __enter__(self) -> Capture:
        self._socket = inside(self._namespace, self._open)
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()

    def _open(self) -> socket.socket:
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        opened.settimeout(0.1)
        return opened

    def _listen(self) -> None:
        while True:
            try:
                self._frames.append(self._socket.recv(65536))
            except TimeoutError:
                if self._over.is_set():
                    return

    def saw(self, mark: bytes) -> int:
        """How many frames with these bytes passed so far."""
        return sum(mark in frame for frame in [*self._frames])
