"""Opens and lists files below directories that others may have filled: results, logs, traces, sites.

No component of a path may be a symbolic link, and a file must be a regular one: a pipe would never end, and a device
would not stay as it is. A path that a user names may lead through links: a command resolves it once, with
:func:`resolved`, before it reads what lies below. A hard link is a file like any other.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

DEEPEST = 32
"""Levels of directories that are searched; archives of containers are unpacked to 16."""
_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def resolved(path: Path) -> Path:
    """Where a path that the user named leads, without links."""
    return Path(os.path.realpath(path))


def open_file(path: Path, largest: int | None = None) -> BinaryIO:
    """A regular file, open for reading; raises OSError, also if it is a link or has more than ``largest`` bytes."""
    with open_directory(path.parent) as directory:
        _check(path, os.stat(path.name, dir_fd=directory, follow_symlinks=False), largest)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        stream = os.fdopen(os.open(path.name, flags, dir_fd=directory), "rb")
    try:
        _check(path, os.fstat(stream.fileno()), largest)
    except OSError:
        stream.close()
        raise
    return stream


def read_file(path: Path, largest: int | None = None) -> bytes:
    """The content of a regular file; raises OSError as :func:`open_file`."""
    with open_file(path, largest) as stream:
        return stream.read()


def status(path: Path) -> os.stat_result | None:
    """That of an entry itself, also of a link; None if it does not exist or a link leads to it."""
    with suppress(OSError), open_directory(path.parent) as directory:
        return os.stat(path.name, dir_fd=directory, follow_symlinks=False)
    return None


def is_file(path: Path) -> bool:
    """Whether :func:`open_file` can find a regular file."""
    found = status(path)
    return found is not None and stat.S_ISREG(found.st_mode)


def has_content(path: Path, largest: int | None = None) -> bool:
    """Whether there is a regular file that is not empty, and has no more than ``largest`` bytes."""
    found = status(path)
    return found is not None and stat.S_ISREG(found.st_mode) and 0 < found.st_size <= (largest or found.st_size)


def is_directory(path: Path) -> bool:
    """Whether there is a directory that no link leads to."""
    with suppress(OSError), open_directory(path):
        return True
    return False


def entries(directory: Path) -> list[Path]:
    """All entries of a directory, sorted by name, links among them; none if it cannot be read."""
    with suppress(OSError), open_directory(directory) as descriptor:
        return [directory / name for name in sorted(names(descriptor))]
    return []


def names(directory: int) -> list[str]:
    """The names of all entries of a directory, which is given by a descriptor; raises OSError."""
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        with os.scandir(descriptor) as found:
            return [entry.name for entry in found]
    finally:
        os.close(descriptor)


def files(directory: Path) -> list[Path]:
    """The regular files of a directory, sorted by name; none if it cannot be read."""
    return [path for path in entries(directory) if is_file(path)]


def files_below(directory: Path) -> list[Path]:
    """The regular files at any depth below a directory, sorted; none if it cannot be read."""
    return sorted(path for path, found in walk(directory) if stat.S_ISREG(found.st_mode))


def walk(directory: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """All entries below a directory but directories, with their status; what cannot be read is left out."""
    waiting = [(directory, 1)]
    while waiting:
        folder, depth = waiting.pop()
        with suppress(OSError), open_directory(folder) as descriptor:
            for name in names(descriptor):
                found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                if not stat.S_ISDIR(found.st_mode):
                    yield folder / name, found
                elif depth < DEEPEST:
                    waiting.append((folder / name, depth + 1))


@contextmanager
def open_directory(path: Path) -> Iterator[int]:
    """A descriptor of a directory for use as ``dir_fd``; raises OSError if a link leads to it."""
    descriptor = os.open(path.anchor or ".", _STEP)
    try:
        for name in path.parts[bool(path.anchor) :]:
            try:
                below = os.open(name, _STEP, dir_fd=descriptor)
            except NotADirectoryError:
                if stat.S_ISLNK(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
                    raise OSError(errno.ELOOP, f"the symbolic link {name!a} is not followed", str(path)) from None
                raise
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def _check(path: Path, found: os.stat_result, largest: int | None) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    if largest is not None and found.st_size > largest:
        raise OSError(errno.EFBIG, f"it has more than {largest} bytes", str(path))
