"""Writes files as a whole: readers see the old or the new content, and an attempt that fails leaves nothing.

All commands write their files with this module. It never writes through a link or into a file that exists: others may
have put one there.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from interop.model.errors import MachineError


@contextmanager
def new_file(path: Path, *, durable: bool = False) -> Iterator[BinaryIO]:
    """A new file to write to, which takes the place of ``path`` at the end of the block, also if that is a link.

    If the block raises an error, the new file is removed, and ``path`` stays as it was. ``durable``: the file is on
    disk when the block has been left. Raises OSError, with ``path`` as its file name.
    """
    fresh = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            fresh.replace(path)
        except BaseException:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise
        if durable:
            sync_directory(path.parent)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


@contextmanager
def new_files(directory: Path) -> Iterator[Path]:
    """A new folder in ``directory`` for libraries that take a path; at the end of the block, its files move there.

    If the block raises an error, all of them are removed. Raises OSError.
    """
    with tempfile.TemporaryDirectory(prefix=".new-", dir=directory) as folder:
        yield Path(folder)
        for file in sorted(Path(folder).iterdir()):
            file.replace(directory / file.name)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file that the user named as a whole, also with regard to crashes.

    A symbolic link stays, and the file that it leads to is replaced; a pipe or a device takes the content as it comes.
    Raises :class:`MachineError` if it cannot be written; the old content stays.
    """
    try:
        if path.exists() and not path.is_file():
            with os.fdopen(os.open(path, os.O_WRONLY), "wb") as stream:
                stream.write(content)
        else:
            with new_file(Path(os.path.realpath(path)), durable=True) as file:
                file.write(content)
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> MachineError:
    """The same as an error for the user."""
    message = f"{path}: cannot be written: {error.strerror or error}. Make room or name another place, then try again."
    return MachineError(message)


def sync_directory(directory: Path) -> None:
    """Wait until the names in a directory are on disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
