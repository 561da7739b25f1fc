"""The queue before a lock: who came first is served first, and who dies leaves it.

Each waiting process holds a lock of the kernel on a file of its own with the next free number. A number whose file
nobody holds belonged to a process that has ended.
"""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MODE = 0o644
DIGITS = 6
"""Of a number; a queue that is never empty for a million campaigns is none."""


@contextmanager
def ticket(lock: Path) -> Iterator[int]:
    """Wait in the queue of a lock file; yields the number. Raises OSError if no file can be made beside it."""
    own = lock.with_suffix(f".{secrets.token_hex(8)}")
    descriptor = os.open(own, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, MODE)
    place: Path | None = None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        number = max((found for found, _ in _tickets(lock)), default=0) + 1
        while place is None:
            wanted = lock.with_suffix(f".{number:0{DIGITS}}")
            try:
                os.link(own, wanted)
                place = wanted
            except FileExistsError:
                number += 1
        own.unlink()
        yield number
    finally:
        for file in filter(None, (own, place)):
            file.unlink(missing_ok=True)
        os.close(descriptor)


def ahead(lock: Path, number: int | None = None) -> int:
    """How many processes wait with a lower number, or at all; files of those that have ended are removed."""
    return sum(_is_held(file) for found, file in _tickets(lock) if number is None or found < number)


def _tickets(lock: Path) -> Iterator[tuple[int, Path]]:
    for file in lock.parent.glob(f"{lock.stem}.{'[0-9]' * DIGITS}"):
        yield int(file.suffix[1:]), file


def _is_held(file: Path) -> bool:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        with suppress(OSError):  # of another user, in a folder where only owners may remove files
            file.unlink()
        return False
    finally:
        os.close(descriptor)
