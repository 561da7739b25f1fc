"""Puts a new site in the place of the old one in one step: who looks sees the old or the new one, whole.

Folders that do not change move from the old site to the new one as a whole, however many files they have. Until the new
site takes its place, the old one has symbolic links to them.

Only what a build has made is removed: the new site gets all other files of the old one before it takes its place.
"""

import ctypes
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from quicsat.model.errors import InputError, MachineError
from quicsat.model.stored_files import entries, resolved
from quicsat.model.whole_file import draft_directory, is_draft
from quicsat.site import made_files

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
    if target.is_dir() and any(target.iterdir()) and not made_files.marker(target):
        raise InputError(f"{target}: is not a site made by quicsat. Name another directory, or empty it.")
    made_files.check(target)


@dataclass
class Draft:
    """A site under construction, beside the one that it will replace."""

    directory: Path
    target: Path
    kept: list[PurePosixPath] = field(default_factory=list)
    """Folders of the old site that the new one has, too; each is in a folder in one of the site's folders."""
    _lent: list[PurePosixPath] = field(default_factory=list)
    """Those that have moved, while the old site is still in its place."""

    def take_place(self) -> None:
        """Put it where the old site is, with all that was there and is none of the old site's.

        Raises OSError, and InputError if one of these files is where the new site has a page. The old site is then as
        it was.
        """
        made_files.write_lists(self.directory, self.kept)
        if self.target.exists():
            for name in made_files.others(self.target, {str(folder) for folder in self.kept}):
                made_files.adopt(self.target / name, self.directory / name)
            made_files.take_rights(self.target, self.directory)
        else:
            self.directory.rename(self.target)
            return
        try:
            for folder in self.kept:
                self._lent.append(folder)
                _lend(self.target / folder, self.directory / folder)
            _exchange(self.directory, self.target)
            self._lent.clear()
        finally:
            while self._lent:
                _return(self.target / self._lent[-1], self.directory / self._lent[-1])
                self._lent.pop()

    def remove(self) -> None:
        """Remove what is in its directory, which is the old site at the end."""
        if not self._lent:
            shutil.rmtree(self.directory, ignore_errors=True)


@contextmanager
def staged(target: Path) -> Iterator[Draft]:
    """A directory beside ``target`` to build in; it takes its place at the end, and goes away if that is not reached.

    Raises MachineError if the place cannot be written to.
    """
    place = resolved(target.absolute())
    try:
        with ExitStack() as stack:
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                _return_all(place)
                mode = place.stat().st_mode & 0o777 if place.exists() else 0o755
                draft = Draft(stack.enter_context(draft_directory(place.parent, place.name, mode)), place)
            except OSError as error:
                raise MachineError(
                    f"{target}: cannot be made: {error.strerror}. Name another place with -o."
                ) from error
            stack.callback(draft.remove)
            yield draft
            draft.take_place()
    except OSError as error:
        message = f"{target}: cannot be written: {error.strerror}. The old site is as it was. Make room, and try again."
        raise MachineError(message) from error


def _lend(old: Path, new: Path) -> None:
    """Move a folder from ``old`` to ``new`` in one step, which leaves a link to it."""
    new.parent.mkdir(parents=True, exist_ok=True)
    new.symlink_to(os.path.relpath(new, old.parent))
    _exchange(new, old)


def _return(old: Path, new: Path) -> None:
    """Undo ``_lend``, if it was done."""
    if old.is_symlink():
        _exchange(new, old)
        new.unlink()


def _return_all(target: Path) -> None:
    """Bring back what a build has moved that was killed before its site took its place."""
    folders = [below for each in entries(target) for below in entries(each)]
    for link in [each for folder in folders for each in entries(folder) if each.is_symlink()]:
        lent = Path(os.path.normpath(link.parent / link.readlink()))
        name = link.relative_to(target)
        draft = lent.parents[len(name.parts) - 1]
        ours = draft.parent == target.parent and is_draft(draft.name, target.name) and lent == draft / name
        if ours and lent.is_dir() and not lent.is_symlink():
            _return(link, lent)


def _exchange(one: Path, other: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
