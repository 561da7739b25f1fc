"""One campaign at a time per daemon: a lock that the kernel releases with its holder, however that ends."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interop.errors import LockedError, MachineError

FOLDERS = ("/run/lock", "/tmp")
"""Folders for locks, the preferred one first."""


def lock_path(daemon: str) -> Path:
    """Where the lock of the daemon with this identity lies: the same for all, whatever their TMPDIR."""
    safe = "".join(character if character.isalnum() else "-" for character in daemon)
    folder = next((folder for folder in FOLDERS if os.access(folder, os.W_OK)), tempfile.gettempdir())
    return Path(folder, f"quicsat-{safe}.lock")


@contextmanager
def exclusive(daemon: str, purpose: str) -> Iterator[None]:
    """Hold the daemon's lock; raises :class:`LockedError` that names its holder, MachineError if it is not ours."""
    path = lock_path(daemon)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        message = (
            f"{path}: the lock of this Docker daemon cannot be opened: {error.strerror}. Remove it if no campaign runs."
        )
        raise MachineError(message) from error
    with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"Another campaign uses this Docker daemon: {_holder(file.read())}. Try again when it has ended."
            raise LockedError(message) from None
        file.truncate(0)
        json.dump({"pid": os.getpid(), "host": socket.gethostname(), "purpose": purpose}, file)
        file.flush()
        yield


def _holder(text: str) -> str:
    try:
        holder = json.loads(text)
        return f"process {int(holder['pid'])} on {holder['host']}, {holder['purpose']}"
    except (ValueError, KeyError, TypeError):
        return "an unknown process"
