"""Writes files as a whole: readers see the old or the new content, and an attempt that fails leaves nothing.

All commands write their files with this module. It never writes through a link or into a file that exists: others may
have put one there.

What is not complete yet is a *draft*. Its process holds a lock on it, which the kernel releases however the process
ends. The next call for the same name therefore recognises and removes the drafts that a killed process has left.
"""

import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from quicsat.model.errors import MachineError
from quicsat.model.stored_files import files_below, names, open_directory, open_file, resolved

PATIENCE, PAUSE = 300.0, 0.05
"""Seconds to wait for the turns of other processes, and between two attempts."""
REMOVED = "removed"
"""The name for which directories become drafts that are to be removed."""
_LONGEST = 100
"""Bytes of a name that the names of its drafts have."""
_DRAFT = re.compile(r"\.(.*)\.[0-9a-f]{16}\.new", re.DOTALL)
_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def new_file(path: Path, *, durable: bool = False) -> Iterator[BinaryIO]:
    """A new file to write to, which takes the place of ``path`` at the end of the block, also if that is a link.

    If the block raises an error, the new file is removed, and ``path`` stays as it was. ``durable``: the file is on
    disk when the block has been left. Raises OSError, with ``path`` as its file name, also if a link leads to its
    directory.
    """
    try:
        with open_directory(path.parent) as directory:
            remove_drafts(directory, path.name)
            draft, descriptor = _make(directory, path.name, lambda name: os.open(name, _FILE, 0o666, dir_fd=directory))
            try:
                with os.fdopen(descriptor, "wb") as file:
                    yield file
                    file.flush()
                    if durable:
                        os.fsync(file.fileno())
                    os.replace(draft, path.name, src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                with suppress(OSError):
                    os.unlink(draft, dir_fd=directory)
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
    with draft_directory(directory, "files") as folder:
        try:
            yield folder
            for file in sorted(folder.iterdir()):
                file.replace(directory / file.name)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def draft_directory(parent: Path, name: str, mode: int = 0o700) -> Iterator[Path]:
    """A new directory in ``parent``, to fill before it gets its ``name``; to be moved or removed within the block.

    Raises OSError, also if a link leads to ``parent``.
    """

    def make(draft: str) -> int | None:
        os.mkdir(draft, mode, dir_fd=directory)
        with suppress(FileNotFoundError):  # removed before it was locked
            return os.open(draft, _DIRECTORY, dir_fd=directory)
        return None

    with open_directory(parent) as directory:
        remove_drafts(directory, name)
        draft, descriptor = _make(directory, name, make)
        try:
            yield parent / draft
        finally:
            os.close(descriptor)


def make_directories(path: Path) -> None:
    """Make a directory, and those above it, where they are missing; raises OSError if a link leads to one of them."""
    try:
        with open_directory(path):
            return
    except FileNotFoundError:
        make_directories(path.parent)
    with open_directory(path.parent) as above, suppress(FileExistsError):  # another thread has made it meanwhile
        os.mkdir(path.name, dir_fd=above)
    with open_directory(path):
        return


def remove_file(path: Path) -> None:
    """Remove an entry that is no directory, if it is there; raises OSError if a link leads to its directory."""
    with open_directory(path.parent) as directory, suppress(FileNotFoundError):
        os.unlink(path.name, dir_fd=directory)


def remove_directory(path: Path) -> None:
    """Remove a directory with all that is in it; raises OSError.

    It becomes a draft first: if the process is killed, :func:`remove_drafts` for ``REMOVED`` removes the rest.
    """
    with draft_directory(path.parent, REMOVED) as draft:
        try:
            path.replace(draft / path.name)
        finally:
            shutil.rmtree(draft)


@contextmanager
def scratch_directory(parent: Path | None = None) -> Iterator[Path]:
    """A new directory for temporary files of this process, which is removed at the end of the block. Raises OSError.

    It is in ``parent`` or, without it, where the system has temporary files.
    """
    with draft_directory(parent or resolved(Path(tempfile.gettempdir())), "quicsat") as folder:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def take_file(source: Path, target: Path) -> None:
    """Make ``target``, a new file, of a regular file: a hard link where possible, else a copy. Raises OSError."""
    with open_file(source) as content, open_directory(source.parent) as there, open_directory(target.parent) as here:
        try:
            os.link(source.name, target.name, src_dir_fd=there, dst_dir_fd=here, follow_symlinks=False)
        except OSError:  # another file system, or one without hard links
            with new_file(target) as copy:
                shutil.copyfileobj(content, copy)


def take_files(source: Path, target: Path) -> None:
    """Take all regular files below ``source``, see :func:`take_file`; links are left out. Raises OSError."""
    for path in files_below(source):
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        take_file(path, place)


@contextmanager
def turn(path: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Wait until no other process has its turn at ``path``: it reads the old content and replaces it in one block.

    The lock is one on the directory of ``path``, so nothing is left behind; whoever may read the directory can hold it,
    too. ``say`` gets a sentence if it has to wait. Raises MachineError after ``PATIENCE``, or if there is no such
    directory.
    """
    try:
        descriptor = os.open(path.absolute().parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        deadline, waits = time.monotonic() + PATIENCE, False
        while not _has_locked(descriptor):
            if not waits:
                waits = True
                say(f"{path}: another process has locked {path.absolute().parent}. Waiting up to {PATIENCE:g} s.")
            if time.monotonic() > deadline:
                raise MachineError(f"{path}: another process has locked its directory for {PATIENCE:g} s. Try again.")
            time.sleep(PAUSE)
        yield
    finally:
        os.close(descriptor)


def _has_locked(descriptor: int) -> bool:
    """Lock a directory, unless another process has; a file system without locks is taken as it is."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        return error.errno in (errno.ENOLCK, errno.ENOTSUP)
    return True


def is_draft(draft: str, name: str | None = None) -> bool:
    """Whether ``draft`` is the name of a draft of ``name``, or of any name."""
    found = _DRAFT.fullmatch(draft)
    return found is not None and (name is None or found[1] == _shortened(name))


def remove_drafts(directory: int, name: str) -> None:
    """Remove the drafts of ``name`` that no process holds from a directory, which is given by a descriptor."""
    with suppress(OSError):
        for draft in [each for each in names(directory) if is_draft(each, name)]:
            with suppress(OSError):
                _remove_unless_held(directory, draft)


def _shortened(name: str) -> str:
    return os.fsdecode(os.fsencode(name)[:_LONGEST])


def _make(directory: int, name: str, make: Callable[[str], int | None]) -> tuple[str, int]:
    """Name and descriptor of a new draft, which is locked; raises OSError."""
    while True:
        draft = f".{_shortened(name)}.{secrets.token_hex(8)}.new"
        descriptor = make(draft)
        if descriptor is None:
            continue
        with suppress(OSError):  # a file system without locks: then drafts stay
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(descriptor), os.stat(draft, dir_fd=directory, follow_symlinks=False)):
                return draft, descriptor
        except FileNotFoundError:  # removed before it was locked
            pass
        os.close(descriptor)


def _remove_unless_held(directory: int, draft: str) -> None:
    """Raises OSError, also if a process holds the draft."""
    descriptor = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            shutil.rmtree(draft, ignore_errors=True, dir_fd=directory)
        else:
            os.unlink(draft, dir_fd=directory)
    finally:
        os.close(descriptor)


def may_replace(path: Path, is_earlier: Callable[[Path], bool]) -> bool:
    """Whether a file may be replaced without a word: it is missing or empty, or quicsat has written it.

    ``is_earlier`` tells the latter of a file that has content.
    """
    return not (path.is_file() and path.stat().st_size > 0) or is_earlier(path)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file that the user named as a whole, see :func:`replaced`."""
    with replaced(path) as file:
        file.write(content)


@contextmanager
def replaced(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which replaces one that the user named as a whole, also with regard to crashes.

    A symbolic link stays, and the file that it leads to is replaced; a pipe or a device takes the content as it comes.
    Raises :class:`MachineError` if it cannot be written; the old content stays.
    """
    try:
        if path.exists() and not path.is_file():
            with os.fdopen(os.open(path, os.O_WRONLY), "wb") as stream:
                yield stream
        else:
            with new_file(Path(os.path.realpath(path)), durable=True) as file:
                yield file
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
