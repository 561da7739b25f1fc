"""The results directory of a campaign: an append-only journal that survives a crash, and result.json derived from it.

``journal.jsonl`` is authoritative: one JSON line with a checksum per fact, on disk before ``append_…`` returns.
Everything else can be derived from it. The files of each run are in ``Run.path`` below the same directory.
"""

import fcntl
import os
import shlex
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from quicsat.model.errors import HarnessFault, InputError, LockedError, MachineError, UserError
from quicsat.model.outcomes import ErrorCode
from quicsat.model.results import Compliance, ImageFacts, Manifest, ResultSet, RunResult
from quicsat.model.stored_files import entries, is_file, open_directory, open_file, read_file, resolved, status
from quicsat.model.text import command_line
from quicsat.model.units import MIB
from quicsat.model.whole_file import cannot_write, is_draft, new_file, new_files, sync_directory
from quicsat.results.document import (
    ComplianceLine,
    FinishedLine,
    ImagesLine,
    Line,
    ManifestLine,
    ResultLine,
    Scan,
    StoredResults,
    document,
    fold,
    parse_document,
    result_fault,
    scan,
    seal,
)

JOURNAL = "journal.jsonl"
DOCUMENT = "result.json"
LARGEST = 256 * MIB
"""Bytes of a journal or a result.json: those of about 30,000 runs."""
COMPRESSED = {
    b"\x1f\x8b": ("gunzip", "--keep"),
    b"\x28\xb5\x2f\xfd": ("unzstd",),
    b"\xfd7zXZ\x00": ("unxz", "--keep"),
    b"BZh": ("bunzip2", "--keep"),
}
"""How files begin that are compressed, and the command that unpacks them."""
LATEST = "latest"
PATIENCE = 1.0
"""Seconds for which the lock of a journal may be taken; ``prune`` holds it while it looks at a campaign."""
WRITING = 0.2
"""Seconds that a campaign needs at most to write a line of its journal."""
OTHER_BEGIN = 64 * 1024
"""Bytes of a result file of another runner in which it lists its servers and clients."""


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- directories ----------------------------------------------------------------------------


def attempt_directory(directory: Path, attempt: int) -> Path:
    """Directory of an attempt that is not the last one of its run."""
    return directory.with_name(f"{directory.name}.attempt-{attempt}")


def make_dated_directory(root: Path, now: datetime | None = None) -> Path:
    """Make ``<root>/<UTC time>`` and let ``<root>/latest`` point to it, in one step for every reader.

    Raises InputError if ``latest`` is no symbolic link, MachineError if the directory cannot be made.
    """
    name = (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H-%M-%SZ")
    try:
        root.mkdir(parents=True, exist_ok=True)
        directory = _make_first_free(root, name)
        try:
            point_latest(root, directory)
        except InputError:
            directory.rmdir()
            raise
    except OSError as error:
        raise MachineError(_not_made(root, error)) from error
    return directory


def point_latest(root: Path, directory: Path) -> None:
    """Let ``<root>/latest`` point to the newest campaign; raises OSError, InputError if it is no symbolic link."""
    root.mkdir(parents=True, exist_ok=True)
    latest, here, target = root / LATEST, resolved(root), resolved(directory)
    if latest.exists() and not latest.is_symlink():
        message = f"{latest}: is no symbolic link. Move it away: this name always points to the newest campaign."
        raise InputError(message)
    with new_files(here) as folder:
        link = target.relative_to(here) if target.is_relative_to(here) else target
        (folder / LATEST).symlink_to(link, target_is_directory=True)
    sync_directory(here)


def _make_first_free(root: Path, name: str) -> Path:
    directory, count = root / name, 1
    while True:
        try:
            directory.mkdir()
        except FileExistsError:
            count += 1
            directory = root / f"{name}-{count}"
        else:
            return directory


def check_campaign_directory(directory: Path) -> None:
    """Raise InputError if the directory that the user named (-l) is not empty, or cannot be looked into."""
    try:
        occupied = directory.exists() and any(directory.iterdir())
    except NotADirectoryError as error:
        message = f"{directory}: is a file. Name a directory that does not exist or is empty."
        raise InputError(message) from error
    except OSError as error:
        raise InputError(_not_made(directory, error)) from error
    if occupied:
        message = f"{directory}: is not empty. Name a directory that does not exist or is empty, or use resume."
        raise InputError(message)


def make_campaign_directory(directory: Path) -> Path:
    """Make the directory that the user named (-l); raises as :func:`check_campaign_directory`."""
    check_campaign_directory(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        sync_directory(directory.parent)
    except OSError as error:
        raise MachineError(_not_made(directory, error)) from error
    return directory


def _not_made(directory: Path, error: OSError) -> str:
    return f"{directory}: cannot be prepared for results: {error.strerror}. Name another place with -l."


# ---- writing --------------------------------------------------------------------------------


class Journal:
    """The journal of a campaign, open for appending and locked against a second writer; safe to use from threads."""

    def __init__(self, path: Path, descriptor: int, manifest: Manifest, found: Scan) -> None:
        """Use ``create`` or ``open``."""
        self._path = path
        self._descriptor = descriptor
        self._manifest = manifest
        self._warnings = found.warnings
        self._end = found.end
        self._mutex = threading.Lock()

    @classmethod
    def create(cls, directory: Path, manifest: Manifest) -> Self:
        """Start the journal of a new campaign in a directory that is there.

        Absolute paths in the manifest are made relative, for results are made to be given away.
        Raises InputError if the directory holds a journal already or if the manifest has names that no path may
        have, MachineError if nothing can be written.
        """
        path = directory / JOURNAL
        line = ManifestLine(at=_now(), data=_without_absolute_paths(manifest))
        fold(path, [line], ())
        journal = cls(path, _open_locked(path, os.O_CREAT | os.O_EXCL), line.data, Scan((), (), 0))
        try:
            journal._append(line)
            sync_directory(directory)
        except BaseException:
            journal.close()
            raise
        return journal

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Continue the journal of a campaign that was cut short; what is torn at its end is removed.

        Raises InputError if there is none or if it cannot be read, LockedError if a campaign is writing to it.
        """
        path = directory / JOURNAL
        descriptor = _open_locked(path, 0)
        try:
            found = _scan(path, _content(path))
            manifest = fold(path, found.lines, found.warnings).result_set.manifest
            os.ftruncate(descriptor, found.end)
            os.fsync(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise _not_written(path, error) from error
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, descriptor, manifest, found)

    @property
    def directory(self) -> Path:
        """The results directory, as the user named it."""
        return self._path.parent

    @property
    def place(self) -> Path:
        """The same without links."""
        return resolved(self.directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file and its lock; calling it twice does no harm."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def append_result(self, result: RunResult) -> None:
        """Put a run's result on disk. MachineError if that fails; all that was written before stays readable.

        HarnessFault if it cannot be one of the campaign or holds what JSON cannot, e.g. NaN: it is not written.
        """
        if problem := result_fault(self._manifest, result):
            raise HarnessFault(ErrorCode.HARNESS_FAULT, problem)
        self._append(ResultLine(at=_now(), data=result, campaign=self._manifest.id))

    def append_compliance(self, compliance: Compliance) -> None:
        """Put the answer of one image to the compliance check on disk."""
        self._append(ComplianceLine(at=_now(), data=compliance, campaign=self._manifest.id))

    def append_images(self, images: Mapping[str, ImageFacts]) -> None:
        """Put images on disk that the campaign uses, and that the manifest does not have; by name."""
        self._append(ImagesLine(at=_now(), data=dict(images), campaign=self._manifest.id))

    def finish(self) -> None:
        """Note that nothing is left to do."""
        self._append(FinishedLine(at=_now(), campaign=self._manifest.id))

    def record(self) -> StoredResults:
        """All results in the journal so far; read from disk, because a campaign of weeks does not fit in memory."""
        return fold(self._path, _scan(self._path, _content(self._path)).lines, self._warnings)

    def _append(self, line: Line) -> None:
        sealed = seal(line)
        with self._mutex:
            try:
                self._write(sealed)
            except OSError as error:
                with suppress(OSError):
                    os.ftruncate(self._descriptor, self._end)
                raise _not_written(self._path, error) from error
            self._end += len(sealed)

    def _write(self, sealed: bytes) -> None:
        status = os.fstat(self._descriptor)
        if status.st_nlink == 0:
            raise FileNotFoundError(None, "the file was removed while the campaign ran")
        if status.st_size < self._end:
            raise OSError(None, "the file was cut while the campaign ran")
        if status.st_size > self._end:  # a failed write could not be taken back
            os.ftruncate(self._descriptor, self._end)
        rest = memoryview(sealed)
        while rest:  # one write does it, unless the disk is full: then the second one says so
            rest = rest[os.write(self._descriptor, rest) :]
        os.fsync(self._descriptor)


def _open_locked(path: Path, flags: int) -> int:
    try:
        with open_directory(resolved(path.parent)) as directory:
            flags |= os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(path.name, flags, 0o666, dir_fd=directory)
    except FileExistsError as error:
        message = f"{path.parent}: holds a campaign already. Continue it with resume or name another directory."
        raise InputError(message) from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _no_journal(path.parent) from error
    except OSError as error:
        raise _not_written(path, error) from error
    try:
        _lock(descriptor)
    except OSError as error:
        os.close(descriptor)
        message = f"{path.parent}: another campaign is writing to this directory. Wait until it has ended."
        raise LockedError(message) from error
    return descriptor


def _lock(descriptor: int) -> None:
    """Take the lock of a journal; raises OSError if another process holds it for longer than to look whether it can."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(PATIENCE / 20)
        else:
            return


def _not_written(path: Path, error: OSError) -> MachineError:
    message = f"{path}: cannot be written: {error.strerror}. All lines before are safe. Mend it, then resume."
    return MachineError(message)


def write_result_json(directory: Path, result_set: ResultSet) -> Path:
    """Derive result.json from the results; O(all results), so for the end and for now and then, not for each run.

    A symbolic link in its place is replaced: the directory may be someone else's.
    """
    path = directory / DOCUMENT
    try:
        with new_file(resolved(directory) / DOCUMENT, durable=True) as file:
            file.write(document(result_set))
    except OSError as error:
        raise cannot_write(path, error) from error
    return path


def _without_absolute_paths(manifest: Manifest) -> Manifest:
    return replace(
        manifest,
        command=tuple(_relative(word) for word in manifest.command),
        test_cases=tuple(replace(case, source=_relative(case.source)) for case in manifest.test_cases),
    )


def _relative(word: str) -> str:
    """``/home/me/quicsat/leo.yaml`` -> ``leo.yaml``, ``--log=/tmp/x`` -> ``--log=x``."""
    option, equals, value = word.rpartition("=")
    path = Path(value)
    if not path.is_absolute():
        return word
    here = Path.cwd()
    return option + equals + (str(path.relative_to(here)) if path.is_relative_to(here) else path.name)


# ---- reading --------------------------------------------------------------------------------


def find_campaign(given: Path) -> tuple[Path | None, Path]:
    """The directory of the campaign of quicsat that a path which the user named is or leads into, and the whole path.

    None if there is no campaign; of several ones, the innermost. Links below the outermost one are not followed.
    """
    whole = given.absolute()
    found: tuple[Path, Path, Path] | None = None
    for each in (*reversed(whole.parents), whole):
        top = resolved(each)
        place = Path(os.path.normpath(top / whole.relative_to(each)))
        if found and (top, place) != (Path(os.path.normpath(found[0] / each.relative_to(found[2]))), found[1]):
            break
        if place.is_relative_to(top) and is_campaign(top):
            found = top, place, each
    if found:
        return found[:2]
    place = resolved(given)
    return next(filter(is_campaign, place.parents), None), place


def is_campaign(place: Path) -> bool:
    """Whether a directory has a journal, or a result.json that is none of another runner."""
    if has(place, JOURNAL):
        return True
    try:
        with open_file(resolved(place) / DOCUMENT) as stream:
            return b'"schema_version"' in stream.read(100)
    except OSError:
        return False


def campaigns_in(root: Path) -> list[Path]:
    """The directories with results in a directory that the user named, by name; neither links nor drafts of merges."""
    places = (each for each in entries(resolved(root)) if not is_draft(each.name))
    return [each for each in places if is_file(each / JOURNAL) or is_file(each / DOCUMENT)]


def newest(root: Path, most: int) -> tuple[ResultSet, ...]:
    """The newest campaigns below ``root`` that can be read, by the names of their directories; the newest first."""
    found = list[ResultSet]()
    for place in reversed(campaigns_in(root)):
        if len(found) < most and is_file(place / JOURNAL):
            with suppress(UserError):
                found.append(load(place).result_set)
    return tuple(found)


def load(place: Path) -> StoredResults:
    """Read a results directory: its journal or, where there is none, result.json; or one of the two files.

    Raises InputError if there are no results or if they cannot be read. ``warnings`` names a damaged line, which
    affects no other line.
    """
    if not place.is_dir():
        return _load_file(place)
    if has(place, JOURNAL):
        return _load_journal(place / JOURNAL)
    if has(place, DOCUMENT) and not is_of_another_runner(place / DOCUMENT):
        return parse_document(place / DOCUMENT, _content(place / DOCUMENT))
    raise no_results(place)


def _load_file(file: Path) -> StoredResults:
    """A file that the user named; a link is followed."""
    if not file.is_file():
        raise no_results(file)
    place = resolved(file) if file.is_symlink() else file
    if file.name.endswith(".jsonl"):
        return _load_journal(place)
    if is_of_another_runner(place):
        raise no_results(file)
    return parse_document(place, _content(place))


def _load_journal(journal: Path) -> StoredResults:
    found = _scan(journal, _without_half_line(journal, _content(journal)))
    return fold(journal, found.lines, found.warnings)


def _without_half_line(journal: Path, content: bytes) -> bytes:
    """What was read of a journal, without the beginning of a line that a campaign is just writing.

    Readers take no lock, so that no campaign waits for them. A line that is torn for good stays: nothing follows it.
    """
    whole, deadline = content.rfind(b"\n") + 1, time.monotonic() + WRITING
    while whole < len(content) and (state := status(resolved(journal.parent) / journal.name)) is not None:
        if state.st_size != len(content):
            return content[:whole]
        if time.monotonic() > deadline or time.time() - state.st_mtime > WRITING:
            break
        time.sleep(WRITING / 20)
    return content


def has(directory: Path, name: str) -> bool:
    """Whether a directory that the user named has a regular file of that name; a link is none."""
    return is_file(resolved(directory) / name)


def load_to_continue(directory: Path) -> StoredResults:
    """As :func:`load`, but InputError without a journal, to which :meth:`Journal.open` could add results."""
    if not has(directory, JOURNAL):
        raise _no_journal(directory)
    return load(directory)


def _scan(journal: Path, content: bytes) -> Scan:
    """A journal that has lost its manifest takes all that it has lost from result.json beside it, if there is one."""
    found = scan(journal, content)
    beside = journal.with_name(DOCUMENT)
    if any(isinstance(line, ManifestLine) for line in found.lines) or not has(beside.parent, DOCUMENT):
        return found
    known, at = parse_document(beside, _content(beside)).result_set, _now()
    lines: list[Line] = [ManifestLine(at=at, data=known.manifest)]
    lines += (ComplianceLine(at=at, data=compliance) for compliance in known.compliance)
    lines += (ResultLine(at=at, data=result) for result in (*known.earlier, *known.results))
    return replace(found, lines=(*lines, *found.lines))


def _content(path: Path) -> bytes:
    """Of a file in a directory that the user named."""
    try:
        content = read_file(resolved(path.parent) / path.name, LARGEST)
    except OSError as error:
        message = f"{path}: cannot be read: {error.strerror}."
        raise InputError(message) from error
    for magic, program in COMPRESSED.items():
        if content.startswith(magic):
            raise InputError(f"{path}: is compressed. To unpack it: {shlex.join([*program, str(path)])}")
    return content


def _no_journal(place: Path) -> InputError:
    if has(place, DOCUMENT) and not is_of_another_runner(place / DOCUMENT):
        message = f"{place}: has {DOCUMENT} but no {JOURNAL}, so nothing can be added to its results."
        return InputError(f"{message} Bring {JOURNAL} back from a copy, or start a new campaign.")
    return no_results(place)


def no_results(place: Path) -> InputError:
    """Why a place is no campaign of quicsat, and which command reads it if another runner made it."""
    if not place.exists():
        return InputError(f"{place}: no such file or directory. Name the directory of a campaign.")
    if packed := [each for each in entries(resolved(place)) if each.name.startswith((f"{DOCUMENT}.", f"{JOURNAL}."))]:
        return InputError(f"{place}: holds no results but {packed[0].name}, which must be unpacked first.")
    if is_of_another_runner(place / DOCUMENT if place.is_dir() else place):
        again = command_line("tables", place)
        return InputError(f"{place}: is no campaign, but has the results of QIR or QIR-SE. To show them: {again}")
    if place.is_file():
        return InputError(f"{place}: is a file. Name the directory of a campaign.")
    message = f"{place}: holds no results (no {JOURNAL}, no {DOCUMENT}). Name the directory of a campaign."
    return InputError(f"{message} To read logs of QIR or QIR-SE: {command_line('analyse', place)}")


def is_of_another_runner(path: Path) -> bool:
    """Whether a file begins as a result file of QIR or QIR-SE, which lists servers and clients and has no version."""
    try:
        with open_file(resolved(path.parent) / path.name) as stream:
            begin = stream.read(OTHER_BEGIN)
    except OSError:
        return False
    return b'"schema_version"' not in begin and b'"servers"' in begin and b'"clients"' in begin
