"""One campaign at a time per daemon: a lock that the kernel releases when its holder ends, however it ends.

It needs only the standard library, so that a second campaign fails before any large library is imported.
"""

import errno
import fcntl
import json
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from quicsat.docker.address import default_daemon
from quicsat.execution import lock_queue
from quicsat.model.errors import LockedError, MachineError
from quicsat.model.text import printable
from quicsat.model.units import seconds

FOLDERS = ("/run/lock", "/tmp")
"""Folders for locks: the first one that all users can write to, else the last one."""
MODE = 0o666
"""Of a lock file: each user of the daemon may write its name into it."""
SHOWN = 200
"""Characters of the command line that the lock file shows."""
PERIOD = 0.5
"""Seconds between two looks at a lock for which a campaign waits."""
INTRODUCTION = 3.0
"""Seconds within which the holder of a lock writes its name into it; a campaign that waits looks every ``PERIOD``."""


def lock_path(daemon: str) -> Path:
    """Path of the lock for a daemon's identity or address; the same for all users, whatever their TMPDIR."""
    safe = "".join(character if character.isalnum() else "-" for character in daemon)
    folder = next((folder for folder in FOLDERS if _is_shared(folder)), FOLDERS[-1])
    return Path(folder, f"quicsat-{safe}.lock")


def _is_shared(folder: str) -> bool:
    try:
        return bool(Path(folder).stat().st_mode & stat.S_IWOTH)
    except OSError:
        return False


@dataclass(frozen=True)
class Patience:
    """How long to wait for a lock that another campaign holds."""

    seconds: float = 0.0
    """Infinite without a limit."""
    say: Callable[[str], None] = lambda _text: None
    """Is told once for whom it waits."""


NONE = Patience()


@contextmanager
def exclusive(daemon: str, purpose: str, patience: Patience = NONE) -> Iterator[None]:
    """Hold the lock of ``daemon``; raises LockedError with its holder's name, MachineError if it cannot be opened.

    Those that wait get it in the order in which they came; without ``patience`` it fails also if others wait.
    """
    path = lock_path(daemon)
    try:
        descriptor = _open(path)
    except OSError as error:
        message = (
            f"{path}: the lock of this Docker daemon cannot be opened: {error.strerror}. Remove it if no campaign runs."
        )
        raise MachineError(message) from error
    writable = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR
    with os.fdopen(descriptor, "r+" if writable else "r", encoding="utf-8") as file:
        if not _taken(file, path):
            fault = f"Another campaign uses this Docker daemon: {_holder(file)}."
            if not patience.seconds:
                raise LockedError(f"{fault} Try again when it has ended, or add --wait.")
            patience.say(f"{fault} Waiting for it to end.")
            _wait(file, path, patience.seconds, fault)
        if writable:
            file.seek(0)  # who waited has read the name of the one before
            file.truncate()
            json.dump({"pid": os.getpid(), "host": socket.gethostname(), "purpose": purpose}, file)
            file.flush()
        yield


def _taken(file: TextIO, path: Path, number: int | None = None) -> bool:
    """Whether the lock is free, nobody waits before ``number``, and it is ours now."""
    if lock_queue.ahead(path, number):
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(file: TextIO, path: Path, longest: float, fault: str) -> None:
    end = time.monotonic() + longest
    with lock_queue.ticket(path) as number:
        while not _taken(file, path, number):
            if time.monotonic() > end:
                raise LockedError(f"{fault} It has not ended within {seconds(longest)}.")
            time.sleep(PERIOD)


def _open(path: Path) -> int:
    """A descriptor of the lock file, read-only if another user forbids more; raises OSError.

    The kernel refuses ``O_CREAT`` for a file of another user in a directory such as /tmp, even to root
    (``fs.protected_regular``), so only a missing file is created.
    """
    flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    for access in (os.O_RDWR, os.O_RDWR | os.O_CREAT | os.O_EXCL, os.O_RDWR, os.O_RDONLY):
        with suppress(FileNotFoundError, FileExistsError, PermissionError):
            return _checked(os.open(path, access | flags, MODE))
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _checked(descriptor: int) -> int:
    """The descriptor, if its file is a regular file with one name; the owner's file is opened for all users."""
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode) or state.st_nlink != 1:
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no ordinary file")
    if state.st_uid == os.geteuid():
        os.fchmod(descriptor, MODE)
    return descriptor


def early(
    words: Sequence[str], environment: Mapping[str, str], patience: Patience = NONE
) -> AbstractContextManager[None]:
    """Hold the lock of the daemon's address while a command that measures on this machine runs.

    ``words``: the command line. A daemon may have several addresses; the lock of its identity is taken later.
    Raises :class:`InputError` if that address is none.
    """
    return exclusive(default_daemon(environment).daemon, printable(" ".join(words), SHOWN) or "run", patience)


def _holder(file: TextIO) -> str:
    """Name of the holder; stale names are ignored, and a new holder has ``INTRODUCTION`` seconds to write its own."""
    deadline = time.monotonic() + INTRODUCTION
    while True:
        file.seek(0)
        try:
            holder = json.loads(file.read())
            number, host, purpose = int(holder["pid"]), holder["host"], holder["purpose"]
        except (ValueError, KeyError, TypeError):
            number, host, purpose = 0, "", ""
        if number and (host != socket.gethostname() or Path(f"/proc/{number}").exists()):
            return f"process {number} on {host}, {purpose}"
        if time.monotonic() > deadline:
            return "an unknown process"
        time.sleep(0.02)
