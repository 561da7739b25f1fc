"""Counts system calls of processes of this machine with the kernel's performance events (``perf_event_open(2)``).

The kernel counts them when they begin (tracepoint ``raw_syscalls:sys_enter``), so a process does not stop for a tracer.
A count includes threads and processes that the counted ones start, and stays when they have ended.
"""

import ctypes
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from fcntl import ioctl
from pathlib import Path
from typing import NamedTuple

TRACING = Path("/sys/kernel/tracing")
"""Where tracefs is mounted, if it is."""
ALL, FUTEX = "raw_syscalls/sys_enter", "syscalls/sys_enter_futex"
"""Tracepoints: of the begin of all system calls, and of ``futex``, which shows whether it waits or wakes others."""
TYPE_TRACEPOINT, DISABLED, INHERIT, CLOSE_ON_EXEC = 2, 1 << 0, 1 << 1, 1 << 3
ATTRIBUTES = struct.Struct("=IIQQQQQ88x")
"""``struct perf_event_attr`` up to its flags: type, size, event, period, sample type, read format, flags; 128 bytes."""
FUTEX_WAITS = (0, 6, 9, 11, 13)
"""``FUTEX_WAIT``, ``_LOCK_PI``, ``_WAIT_BITSET``, ``_WAIT_REQUEUE_PI``, ``_LOCK_PI2`` (``linux/futex.h``)."""
FUTEX_FLAGS = (0, 128, 256, 128 + 256)
"""None, ``FUTEX_PRIVATE_FLAG``, ``FUTEX_CLOCK_REALTIME``, both."""
ENABLE, SET_FILTER = 0x2400, 0x40082406
"""``PERF_EVENT_IOC_ENABLE`` and ``_SET_FILTER``."""
FSOPEN, FSCONFIG, FSMOUNT = 430, 431, 432
"""System calls that mount a file system without a place in the tree (Linux 5.2), the same for all architectures."""
CONFIG_CREATE = 6
ATTEMPTS = 50
"""How often threads are listed, until none has begun or ended while the counters were opened."""


class Architecture(NamedTuple):
    """Numbers of system calls: ``perf_event_open``, and the kinds that are counted apart."""

    perf_event_open: int
    sends: tuple[int, ...]
    """``sendto``, ``sendmsg``, ``sendmmsg``."""
    receives: tuple[int, ...]
    """``recvfrom``, ``recvmsg``, ``recvmmsg``."""
    waits: tuple[int, ...]
    """``poll``, ``ppoll``, ``select``, ``pselect6``, ``epoll_wait``, ``epoll_pwait``, ``epoll_pwait2``,
    ``futex_waitv``, ``futex_wait``, ``nanosleep``, ``clock_nanosleep``, as far as the architecture has them."""

    @property
    def events(self) -> list[tuple[str, str, str]]:
        """Kind of count, tracepoint, and the kernel's filter, which is empty for all system calls."""
        kinds = {"sends": self.sends, "receives": self.receives, "waits": self.waits}
        futex = (operation + flags for operation in FUTEX_WAITS for flags in FUTEX_FLAGS)
        return [
            ("system_calls", ALL, ""),
            *((kind, ALL, _any_of("id", numbers)) for kind, numbers in kinds.items()),
            ("waits", FUTEX, _any_of("op", futex)),
        ]


def _any_of(field: str, values: Iterable[int]) -> str:
    return " || ".join(f"{field} == {value}" for value in values)


ARCHITECTURES = {
    "x86_64": Architecture(
        298, (44, 46, 307), (45, 47, 299), (7, 271, 23, 270, 232, 281, 441, 449, 455, 35, 230)
    ),
    "aarch64": Architecture(241, (206, 211, 269), (207, 212, 243), (73, 72, 22, 441, 449, 455, 101, 115)),
}  # fmt: skip


class SystemCallCounter:
    """Counts from its creation until it is closed."""

    def __init__(self, threads: Callable[[], Iterable[int]]) -> None:
        """``threads`` lists the ids of those to count; threads and processes that they start later count, too.

        Raises OSError if the kernel does not let this process count, and what ``threads`` raises.
        """
        self._files: list[tuple[str, int]] = []
        self._architecture = ARCHITECTURES.get(os.uname().machine)
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
        if self._architecture is None:
            raise OSError("system calls cannot be counted on this architecture")
        events = self._architecture.events
        numbers = {tracepoint: _number(tracepoint) for _, tracepoint, _ in events}
        number, flags = self._architecture.perf_event_open, ctypes.c_ulong(CLOSE_ON_EXEC)
        for thread in threads:
            with suppress(ProcessLookupError):  # it may have ended
                for kind, tracepoint, condition in events:
                    attributes = ATTRIBUTES.pack(
                        TYPE_TRACEPOINT, ATTRIBUTES.size, numbers[tracepoint], 0, 0, 0, DISABLED | INHERIT
                    )
                    file = _system_call(number, attributes, thread, -1, -1, flags)
                    self._files.append((kind, file))
                    if condition:
                        ioctl(file, SET_FILTER, condition.encode("ascii"))
                    ioctl(file, ENABLE, 0)  # without its filter, it would count all calls until now

    @property
    def counts(self) -> dict[str, int]:
        """System calls so far: ``system_calls`` for all of them, and ``sends``, ``receives`` and ``waits``."""
        found = dict.fromkeys(("system_calls", "sends", "receives", "waits"), 0)
        for kind, file in self._files:
            found[kind] += struct.unpack("=Q", os.read(file, 8))[0]
        return found

    def close(self) -> None:
        """Stop counting."""
        for _, file in self._files:
            with suppress(OSError):
                os.close(file)
        self._files = []


def _number(tracepoint: str) -> int:
    """Number of a tracepoint; raises OSError if this process may not know it."""
    name = f"events/{tracepoint}/id"
    try:
        return int((TRACING / name).read_text(encoding="ascii"))
    except FileNotFoundError:
        with _tracefs() as root:
            file = os.open(name, os.O_RDONLY, dir_fd=root)
            try:
                return int(os.read(file, 20))
            finally:
                os.close(file)


@contextmanager
def _tracefs() -> Iterator[int]:
    """A file of the root of tracefs, which nobody else sees mounted."""
    system = _system_call(FSOPEN, b"tracefs", 0)
    try:
        _system_call(FSCONFIG, system, CONFIG_CREATE, None, None, 0)
        root = _system_call(FSMOUNT, system, 0, 0)
    finally:
        os.close(system)
    try:
        yield root
    finally:
        os.close(root)


def _system_call(*arguments: object) -> int:
    """What it returns; raises OSError."""
    result: int = ctypes.CDLL(None, use_errno=True).syscall(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
