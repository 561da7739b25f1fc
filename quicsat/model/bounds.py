"""Bounds memory and time of work on files that others have written, beside the limits of what is read of them."""

import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LEAST_PACKETS = 250_000
"""Packets that are read of every trace; 10 MiB take about 16,000."""
_SIZES = Path("/proc/self/statm")
_RESIDENT, _DATA = 1, 5
"""Which numbers are the process's resident memory and the size of its data, in pages (proc(5))."""


def resident_memory() -> int:
    """Bytes of memory of this process; 0 where the system does not tell."""
    return _size(_RESIDENT) or 0


def _size(number: int) -> int | None:
    try:
        return int(_SIZES.read_text("ascii").split()[number]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return None


@contextmanager
def bounded_memory(room: int) -> Iterator[None]:
    """Let the process take at most ``room`` more bytes of memory in the block; requests beyond raise MemoryError.

    Libraries that raise an error of their own do so. A limit of the caller that is lower stays; where the system cannot
    tell the memory in use, there is no limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    used = _size(_DATA)
    if used is None:
        yield
        return
    limit = min([used + room, *(each for each in (soft, hard) if each != resource.RLIM_INFINITY)])
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


class TooLongError(Exception):
    """A piece of work took more than its CPU time."""


@contextmanager
def bounded_time(seconds: float) -> Iterator[None]:
    """Let the process take so many seconds of CPU time in the block: TooLongError is raised after each of these spans.

    Time that other processes take does not count. Only the main thread of a process can be interrupted so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise TooLongError(f"it took more than {seconds:g} s of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
