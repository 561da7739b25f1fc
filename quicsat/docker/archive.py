"""Archives into and out of containers. Those from containers are hostile: only bounded regular files are read."""

import hashlib
import io
import re
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode
from quicsat.model.run_key import File
from quicsat.model.units import MIB, byte_size

CHUNK = 256 * 1024
UNSAFE = re.compile(r"[^A-Za-z0-9._+=@,-]")
HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
"""Members that only describe the next one, and are read into memory as a whole."""
LONGEST_HEADER, LONGEST_HEADERS = MIB // 8, 8 * MIB
"""Bytes of one such member, and of all in an archive: what they say takes several times as much memory, and time."""
LONGEST_PATH = 2048
"""Characters of the directories and the name of a file together, far from the 4096 bytes of Linux (PATH_MAX)."""
SUFFIX = 8
"""Characters of a name that are reserved for a suffix that distinguishes equal names."""


@dataclass(frozen=True)
class ArchiveLimits:
    """Upper bounds of one archive."""

    total: int = 2048 * MIB
    """Bytes of all members together, as transferred and as they would be on disk."""
    files: int = 20_000
    depth: int = 16
    name: int = 255
    """Bytes of one path component."""
    fault: ErrorCode = ErrorCode.ARTEFACT_LIMIT
    """Code of the :class:`HarnessFault` raised for an archive that exceeds them."""


class ChunkStream(io.RawIOBase):
    """A readable file over chunks of bytes that fails beyond ``limits``."""

    def __init__(self, chunks: Iterable[bytes], limits: ArchiveLimits) -> None:
        self._chunks = iter(chunks)
        self._rest = b""
        self._left = limits.total
        self._limits = limits

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill ``buffer`` as far as the current chunk allows; raises :class:`HarnessFault` beyond the limits."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._left -= len(chunk)
            if self._left < 0:
                raise _too_large(self._limits)
            self._rest = chunk
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


class _Member(tarfile.TarInfo):
    """A member whose extended headers are bounded: the library reads them into memory at once.

    Sparse files are refused for the same reason: no engine packs any, and their maps may be as large as the archive.
    """

    def _proc_member(self, archive: Any) -> Any:
        if self.type in HEADERS:
            archive.headers = getattr(archive, "headers", 0) + self.size
            if self.size > LONGEST_HEADER or archive.headers > LONGEST_HEADERS:
                raise HarnessFault(ErrorCode.ARTEFACT_LIMIT, f"the archive has headers of {byte_size(archive.headers)}")
        return super()._proc_member(archive)  # type: ignore[misc]

    def _refuse_sparse(self, *_: Any) -> Any:
        raise HarnessFault(ErrorCode.ARTEFACT_LIMIT, "the archive has a sparse file, which no engine packs")

    _proc_sparse = _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse_sparse


def _too_large(limits: ArchiveLimits) -> HarnessFault:
    return HarnessFault(limits.fault, f"the archive is larger than {byte_size(limits.total)}")


def pack(
    files: Mapping[str, bytes | Path | IO[bytes]], directories: Iterable[str] = (), *, mode: int = 0o777
) -> IO[bytes]:
    """An uncompressed archive of ``path -> content``, ready to be read from its beginning; open files stay open.

    ``mode``: of the directories; files that can be executed stay so. The same content gives the same bytes.

    Plain tar only: a compressed one would be unpacked by a program of the container's image. Long names are those of
    GNU tar, which the guest of virtual time can read, too.
    """
    archive = tempfile.TemporaryFile()  # noqa: SIM115 - the caller reads and closes it
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in directories:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.mode = 0o755 if isinstance(content, Path) and content.stat().st_mode & 0o100 else 0o644
            with _readable(content) as source:
                entry.size = source.seek(0, io.SEEK_END)
                source.seek(0)
                tar.addfile(entry, source)
    archive.seek(0)
    return archive


def _readable(content: bytes | Path | IO[bytes]) -> AbstractContextManager[IO[bytes]]:
    if isinstance(content, bytes):
        return io.BytesIO(content)
    return content.open("rb") if isinstance(content, Path) else nullcontext(content)


def list_files(chunks: Iterable[bytes], limits: ArchiveLimits) -> tuple[File, ...]:
    """Name, size and SHA-256 of the regular files of an archive, its top directory left out; nothing is written.

    Raises :class:`HarnessFault` (``limits.fault``) if it is larger than ``limits``, (daemon-fault) if it is broken.
    """
    files: dict[str, File] = {}
    for member, content in members(chunks, limits):
        name = "/".join(Path(member.name).parts[1:])
        if content is not None:
            digest, size = hashlib.sha256(), 0
            for data in content:
                digest.update(data)
                size += len(data)
            files[name] = File(name, size, digest.hexdigest())
        elif member.islnk() and (linked := files.get("/".join(Path(member.linkname).parts[1:]))):
            files[name] = File(name, linked.size, linked.sha256)
    return tuple(files.values())


def unpack(chunks: Iterable[bytes], target: Path, limits: ArchiveLimits) -> tuple[str, ...]:
    """Write the regular files of an archive below ``target``, its top directory left out; return notes for a reader.

    Links, devices and pipes are left out, unsafe names are rewritten, both are noted; hard links become copies. Nothing
    is ever written outside ``target`` or over an existing file. Raises as :func:`list_files`; written files stay.
    """
    notes: list[str] = []
    written: dict[str, Path] = {}
    names, copied = _Names(target, limits), 0
    for member, content in members(chunks, limits):
        if member.isdir():
            continue
        parts = Path(member.name).parts
        parts = parts[1:] or parts or ("_",)
        linked = written.get(member.linkname) if member.islnk() else None
        if content is None and linked is None:
            notes.append(f"left out {'/'.join(parts)!a}: not a regular file")
            continue
        path = names.free(parts)
        if path != target.joinpath(*parts):
            notes.append(f"renamed {'/'.join(parts)!a} to {path.relative_to(target)}")
        if content is not None:
            with path.open("xb") as out:
                for data in content:
                    out.write(data)
        elif linked is not None:
            copied += linked.stat().st_size  # a small archive may hold one large file under many names
            if copied > limits.total:
                raise _too_large(limits)
            path.write_bytes(linked.read_bytes())
        written[member.name] = path
    return tuple(notes)


def members(chunks: Iterable[bytes], limits: ArchiveLimits) -> Iterator[tuple[tarfile.TarInfo, Iterator[bytes] | None]]:
    """Each member with its content in pieces, which is None for all but regular files; raises as :func:`list_files`."""
    stream = io.BufferedReader(ChunkStream(chunks, limits), CHUNK)
    if not stream.peek(1):
        return
    left = limits.total
    with _broken_archive(), tarfile.open(fileobj=stream, mode="r|", bufsize=CHUNK, tarinfo=_Member) as tar:
        for count, member in enumerate(tar, start=1):
            if count > limits.files:
                raise HarnessFault(limits.fault, f"the archive holds more than {limits.files} files")
            if member.isreg():
                left -= member.size  # of a sparse file this is far more than is transferred
                if left < 0:
                    raise _too_large(limits)
            yield member, _content(tar, member) if member.isreg() else None
            tar.members.clear()  # type: ignore[attr-defined]  # a stream of many files must not fill memory


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    with _broken_archive():
        content = tar.extractfile(member)
        while content and (data := content.read(CHUNK)):
            yield data


@contextmanager
def _broken_archive() -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise HarnessFault(ErrorCode.DAEMON_FAULT, f"the archive from the container is broken: {reason}") from error


class _Names:
    """Paths below a directory for the members of one archive."""

    def __init__(self, target: Path, limits: ArchiveLimits) -> None:
        self._target = target
        self._limits = limits
        self._folders: dict[tuple[str, ...], Path] = {(): target}
        """Directories that exist."""
        self._counts: dict[Path, int] = {}
        """Number of requests for each path: thousands of members may have the same name."""

    def free(self, parts: tuple[str, ...]) -> Path:
        """A path that does not exist yet, in a directory that does, as similar to ``parts`` as is safe."""
        limits = self._limits
        longest = limits.name - SUFFIX
        safe = [UNSAFE.sub("_", part)[:longest] or "_" for part in parts]
        safe = ["_" + part if set(part) == {"."} else part for part in safe]
        if sum(map(len, safe)) > LONGEST_PATH:
            safe = ["_".join(safe)[:longest]]
        if len(safe) > limits.depth:
            safe = [*safe[: limits.depth - 1], "_".join(safe[limits.depth - 1 :])[:longest]]
        folder = self._folder(tuple(safe[:-1]))
        wanted = self._target / "_".join(safe)[:longest] if folder is None else folder / safe[-1]
        path, count = wanted, self._counts.get(wanted, 1)
        while path.exists():
            count += 1
            path = wanted.with_name(f"{wanted.name}~{count}")
        self._counts[wanted] = count
        return path

    def _folder(self, parts: tuple[str, ...]) -> Path | None:
        """The directory of that name; None if a file is where it or one above it should be."""
        if parts in self._folders:
            return self._folders[parts]
        above = self._folder(parts[:-1])
        if above is None or (above / parts[-1]).is_file():
            return None
        folder = above / parts[-1]
        folder.mkdir(exist_ok=True)
        self._folders[parts] = folder
        return folder
