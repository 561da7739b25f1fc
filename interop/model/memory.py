"""Bounds the memory of a piece of work on files that others have written, beside the limits of what is read of them."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SIZES = Path("/proc/self/statm")
_DATA = 5
"""Which number is the size of the process's data, in pages (proc(5))."""


@contextmanager
def bounded_memory(room: int) -> Iterator[None]:
    """Let the process take at most ``room`` more bytes of memory in the block; requests beyond raise MemoryError.

    Libraries that raise an error of their own do so. A limit of the caller that is lower stays; where the system cannot
    tell the memory in use, there is no limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        used = int(_SIZES.read_text("ascii").split()[_DATA]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        yield
        return
    limit = min([used + room, *(each for each in (soft, hard) if each != resource.RLIM_INFINITY)])
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
