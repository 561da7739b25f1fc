"""The files that a command line names for writing: whether they can be written, and what they would overwrite."""

import errno
import json
import os
import stat
import tempfile
from collections.abc import Callable, Sequence, Set
from pathlib import Path

from quicsat.model.errors import InputError
from quicsat.model.stored_files import read_file, resolved
from quicsat.model.units import MIB
from quicsat.model.whole_file import may_replace

LARGEST_JSON = 16 * MIB
"""Bytes of a document that is looked at."""
NamedFile = tuple[str, Path | None]
"""An option or argument, and the file that it names; None if it is not given."""


def check_outputs(
    outputs: Sequence[NamedFile],
    inputs: Sequence[NamedFile] = (),
    campaign: Path | None = None,
    exported: Path | None = None,
) -> None:
    """Raise InputError, before hours of measuring, if one of the files cannot be written at their end.

    None of them may replace another one, one of the ``inputs``, or the results of a campaign, or be in the directory
    of a run. ``campaign``: the one that is read, or whose directory will be there by then. ``exported``: the one of the
    outputs that may replace result.json, because the journal has the same data; docs/guide/coming-from-qir.md tells
    what for.

    Whether a file that exists may be replaced also depends on what it contains, see :func:`check_earlier`.
    """
    wanted = [(name, file) for name, file in outputs if file is not None]
    for number, (name, file) in enumerate(wanted):
        check_target(file, campaign)
        check_no_run(name, file)
        _check_results(name, file, campaign, may_replace_document=file == exported)
        for other, known in (*inputs, *wanted[:number]):
            if known is not None and _are_same(file, known):
                raise InputError(f"{name}: {file} is also what {other} names. Choose another file.")


def check_no_run(name: str, path: Path) -> None:
    """Raise InputError if a file or directory to write would be in the directory of a run of a campaign."""
    from quicsat.model.run_key import LEVELS
    from quicsat.results.store import find_campaign

    campaign, place = find_campaign(path)
    if campaign is not None and len(place.relative_to(campaign).parts) > LEVELS:
        raise InputError(f"{name}: {path}: is in the directory of a run. Choose another place.")


def _check_results(name: str, file: Path, campaign: Path | None, *, may_replace_document: bool) -> None:
    from quicsat.results.store import DOCUMENT, JOURNAL

    target = Path(os.path.realpath(file))
    journal = target.with_name(JOURNAL)
    beside = journal.is_file()
    if target.name == DOCUMENT:
        mine = campaign is not None and target.parent == campaign.resolve()
        allowed = not (mine or beside) or (may_replace_document and (beside or not target.exists()))
    else:
        allowed = target != journal
    if not allowed:
        raise InputError(f"{name}: {file}: campaigns keep their results in files of this name. Choose another file.")


def check_earlier(name: str, file: Path | None, kind: str, is_earlier: Callable[[Path], bool]) -> None:
    """Raise InputError if ``file`` contains anything but an earlier file of this ``kind``; ``is_earlier`` tells."""
    if file is not None and not may_replace(file, is_earlier):
        raise InputError(f"{name}: {file} exists, and is no earlier {kind}. Choose another file.")


def check_json(file: Path | None, kind: str, keys: Set[str], inputs: Sequence[Path] = ()) -> None:
    """Raise InputError if ``-j`` cannot write ``file``, or would replace anything but an earlier one of this ``kind``.

    ``keys``: those that such a document, or each of a list, has. ``inputs``: campaigns that are read.
    """
    check_outputs([("-j", file)], [("DIR", each) for each in inputs])
    check_earlier("-j", file, kind, lambda path: _has_keys(path, keys))


def _has_keys(file: Path, keys: Set[str]) -> bool:
    try:
        document = json.loads(read_file(resolved(file), LARGEST_JSON))
    except (OSError, ValueError, RecursionError):
        return False
    parts = document if isinstance(document, list) else [document]
    return bool(parts) and all(isinstance(part, dict) and keys <= part.keys() for part in parts)


def _are_same(one: Path, other: Path) -> bool:
    """Whether two names lead to the same file; pipes and devices take any number of files."""
    if not is_plain(one):
        return False
    return os.path.realpath(one) == os.path.realpath(other) or (one.exists() and other.exists() and one.samefile(other))


def is_plain(file: Path) -> bool:
    """Whether a file is, or would be, a regular one: neither a pipe nor a device such as /dev/null."""
    return file.is_file() or not file.exists()


def check_target(file: Path, campaign: Path | None = None) -> None:
    """Raise InputError if a file cannot be written; ``campaign``: its directory will be there by then."""
    if file.is_dir():
        raise InputError(f"{file}: is a directory. Choose the name of a file.")
    if not is_plain(file):
        _check_stream(file)
        return
    target = Path(os.path.realpath(file))
    if target.is_symlink():
        raise InputError(f"{file}: is a symbolic link that leads to itself. Choose another file.")
    if not target.parent.is_dir():
        if campaign is not None and target.parent == campaign.resolve():
            return
        raise InputError(f"{file}: the directory does not exist. Create it, or choose another file.")
    if file.exists() and any(_is_open_at(file, descriptor) for descriptor in (1, 2)):
        raise InputError(f"{file}: quicsat prints to this file. Choose another one.")
    check_place(target.parent, str(file))


def _check_stream(file: Path) -> None:
    """Raise InputError if text cannot be sent to what is no regular file."""
    kind = file.stat().st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISCHR(kind)):
        raise InputError(f"{file}: is neither a file nor a pipe. Choose another file.")
    if not os.access(file, os.W_OK):
        raise InputError(f"{file}: cannot be written: {os.strerror(errno.EACCES)}. Choose another file.")


def _is_open_at(file: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(file.stat(), os.fstat(descriptor))
    except OSError:
        return False


def check_place(directory: Path, name: str) -> None:
    """Raise InputError with ``name`` if no file can be written to ``directory``, made first if it is missing."""
    existing = next(each for each in (directory.absolute(), *directory.absolute().parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise InputError(f"{name}: no file can be written there: {error.strerror}. Choose another place.") from error
