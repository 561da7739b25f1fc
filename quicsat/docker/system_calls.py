"""Counts system calls of processes of this machine with the kernel's performance events (``perf_event_open(2)``).

The kernel counts them when they begin (tracepoint ``raw_syscalls:sys_enter``), so a process does not stop for a tracer.
A count includes threads and processes that the counted ones start, and stays when they have ended.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

TRACEPOINT = Path("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id")
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
"""Number of the system call, by architecture."""
TYPE_TRACEPOINT, INHERIT, CLOSE_ON_EXEC = 2, 1 << 1, 1 << 3
ATTRIBUTES = struct.Struct("=IIQQQQQ88x")
"""``struct perf_event_attr`` up to its flags: type, size, event, period, sample type, read format, flags; 128 bytes."""
ATTEMPTS = 50
"""How often threads are listed, until none has begun or ended while the counters were opened."""


class SystemCallCounter:
    """Counts from its creation until it is closed."""

    def __init__(self, threads: Callable[[], Iterable[int]]) -> None:
        """``threads`` lists the ids of those to count; threads and processes that they start later count, too.

        Raises OSError if the kernel does not let this process count, and what ``threads`` raises.
        """
        self._files: list[int] = []
        before = set(threads())
        for _ in range(ATTEMPTS):
            try:
                self._open(before)
                after = set(threads())
            except OSError:
                self.close()
                raise
            if before == after:
                return
            self.close()  # one that has begun meanwhile counts twice, or not at all
            before = after
        raise OSError("threads begin and end all the time")

    def _open(self, threads: Iterable[int]) -> None:
        number = PERF_EVENT_OPEN.get(os.uname().machine)
        if number is None:
            raise OSError("system calls cannot be counted on this architecture")
        event = int(TRACEPOINT.read_text(encoding="ascii"))
        attributes = ATTRIBUTES.pack(TYPE_TRACEPOINT, ATTRIBUTES.size, event, 0, 0, 0, INHERIT)
        library = ctypes.CDLL(None, use_errno=True)
        for thread in threads:
            file = library.syscall(number, attributes, thread, -1, -1, ctypes.c_ulong(CLOSE_ON_EXEC))
            if file >= 0:
                self._files.append(file)
            elif not isinstance(fault := _error(), ProcessLookupError):  # a thread may have ended
                raise fault

    @property
    def count(self) -> int:
        """System calls so far."""
        return sum(struct.unpack("=Q", os.read(file, 8))[0] for file in self._files)

    def close(self) -> None:
        """Stop counting."""
        for file in self._files:
            with suppress(OSError):
                os.close(file)
        self._files = []


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
