"""Puts a new site in the place of the old one in one step: who looks sees the old or the new one, whole."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interop.model.errors import InputError, MachineError
from interop.site import address

_EXCHANGE = 2
"""RENAME_EXCHANGE of renameat2(2): both names change places in one step."""
_HERE = -100
"""AT_FDCWD."""


def check(target: Path, sources: list[Path]) -> None:
    """Raise InputError if ``target`` must not be replaced: it is no site, or contains the results."""
    place = target.resolve()
    for source in sources:
        if source.resolve().is_relative_to(place):
            raise InputError(f"{target}: contains the results {source}. Name another directory for the site.")
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise InputError(f"{target}: is not a directory. Name a new directory, or one that contains a site.")
    if target.is_dir() and any(target.iterdir()) and not (target / address.MARKER).is_file():
        raise InputError(f"{target}: is not a site made by quicsat. Name another directory, or empty it.")


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """A directory beside ``target`` to build in; it takes its place at the end, and goes away if that is not reached.

    Raises MachineError if the place cannot be written to.
    """
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.absolute().parent))
    except OSError as error:
        raise MachineError(f"{target}: cannot be made: {error.strerror}. Name another place with -o.") from error
    try:
        draft.chmod(0o755)
        yield draft
        _take_place(draft, target.absolute())
    except OSError as error:
        message = f"{target}: cannot be written: {error.strerror}. The old site is as it was. Make room, and try again."
        raise MachineError(message) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _take_place(draft: Path, target: Path) -> None:
    if not target.exists():
        draft.rename(target)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_HERE, os.fsencode(draft), _HERE, os.fsencode(target), _EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
