"""Which files of a site quicsat has made, so that the next build removes no others.

Each site has lists of its files: one in its directory, and one in each folder in a folder in one of its folders, which
the next build may take over as a whole. A marker tells that a directory is a site.
"""

import errno
import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from quicsat.model.errors import InputError
from quicsat.model.stored_files import read_file, resolved, status
from quicsat.model.units import MIB
from quicsat.site import address

MADE_BY = "made by"
"""Key in the marker of a site, whose value begins with ``quicsat``."""
LARGEST_MARKER, LARGEST_LIST, MOST_NAMES = 16 * MIB, 32 * MIB, 500_000
"""Bytes of a marker and of a list, and names in a list."""
LIST = ".made"
"""Name of a list: a name of a file or of a folder with a list of its own per line, below the folder of the list."""
_OLDEST = {"assets", "badge", "compare", "feed.xml", "index.html", "runs", "site.json", "trends"}
"""What builds without lists have made, with all that is in these folders."""
_ALWAYS = ("assets", "index.html", "runs", address.MARKER.name)
"""What every site has."""
_NO_HARD_LINK = {errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS}


def marker(place: Path) -> dict[str, Any]:
    """What the marker of a site tells; empty if ``place`` is no site that quicsat has made."""
    try:
        found = json.loads(read_file(resolved(place) / address.MARKER, LARGEST_MARKER))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and str(found.get(MADE_BY)).startswith("quicsat") else {}


def check(site: Path) -> None:
    """Raise InputError if there is a link, or what quicsat has not made, where every site has a file or folder."""
    made = read_list(site)
    for name in _ALWAYS:
        found = status(resolved(site) / name)
        if found is not None and stat.S_ISLNK(found.st_mode):
            raise InputError(f"{site / name}: is a symbolic link, which is not followed. Move it elsewhere.")
        if found is not None and made is not None and name not in made:
            raise _taken(site / name)


def _taken(path: Path) -> InputError:
    return InputError(f"{path}: quicsat has not made it, and has a page for this place. Move it elsewhere.")


def write_lists(directory: Path, kept: list[PurePosixPath]) -> None:
    """Of all files of a new site, without those in the folders that it keeps, which have a list."""
    parts = [each for each in directory.glob("*/*/*") if each.is_dir()]
    upper = [each for pattern in ("*", "*/*", "*/*/*") for each in directory.glob(pattern) if each.is_file()]
    below = [[each.relative_to(part) for each in part.rglob("*") if each.is_file()] for part in parts]
    for folder, names in zip(parts, below, strict=True):
        (folder / LIST).write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")
    names = [each.relative_to(directory) for each in (*parts, *upper)]
    (directory / LIST).write_text("".join(f"{name}\n" for name in sorted([*names, *kept])), encoding="utf-8")


def read_list(folder: Path) -> set[str] | None:
    """The names in a list, and those of the folders that lead to them; none of too many, None if there is no list."""
    try:
        lines = read_file(resolved(folder) / LIST, LARGEST_LIST).decode().splitlines()
    except (OSError, ValueError):
        return None
    if len(lines) > MOST_NAMES:
        return {LIST}
    names = {PurePosixPath(line) for line in lines}
    return {LIST, *map(str, names), *(str(parent) for name in names for parent in name.parents)}


def others(site: Path, kept: set[str]) -> Iterator[PurePosixPath]:
    """Files and folders in a site that are none of it; not those in ``kept`` folders."""
    made = read_list(site)
    if made is None:
        yield from (PurePosixPath(each.name) for each in site.iterdir() if each.name not in _OLDEST)
    else:
        yield from _unlisted(site, PurePosixPath(), made, kept)


def _unlisted(site: Path, place: PurePosixPath, made: set[str], kept: set[str]) -> Iterator[PurePosixPath]:
    """Those at and below ``place``; ``made``: names below the folder of the list that counts there."""
    top = PurePosixPath(*place.parts[:3]) if len(place.parts) > 2 else PurePosixPath()
    for each in sorted(os.scandir(site / place), key=lambda entry: entry.name):
        name = place / each.name
        if str(name.relative_to(top)) not in made:
            yield name
        elif each.is_dir(follow_symlinks=False) and str(name) not in kept:
            inside = read_list(site / name) if len(name.parts) == 3 else made
            if inside is not None:
                yield from _unlisted(site, name, inside, kept)


def adopt(old: Path, new: Path) -> None:
    """Make a file or folder of the old site one of the new site, too."""
    if os.path.lexists(new):
        raise _taken(old)
    new.parent.mkdir(parents=True, exist_ok=True)
    if old.is_symlink() or not old.is_dir():
        _link(old, new)
        return
    new.mkdir()
    for each in sorted(old.iterdir()):
        adopt(each, new / each.name)
    take_rights(old, new)


def take_rights(old: Path, new: Path) -> None:
    """Give a directory the mode, the access lists and, if this user may do so, the owner and group of another one."""
    state = old.stat()
    with suppress(PermissionError):
        os.chown(new, state.st_uid, state.st_gid)
    shutil.copystat(old, new)


def _link(old: Path, new: Path) -> None:
    try:
        os.link(old, new, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_HARD_LINK:
            raise
        shutil.copy2(old, new, follow_symlinks=False)
