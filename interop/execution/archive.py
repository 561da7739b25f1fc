"""Archives into and out of containers: what comes out is hostile, so only plain files of bounded size get in here."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from interop.errors import HarnessFault
from interop.model import ErrorCode, File
from interop.units import MIB, byte_size

CHUNK = 256 * 1024
UNSAFE = re.compile(r"[^A-Za-z0-9._+=@,-]")


@dataclass(frozen=True)
class Limits:
    """What one archive may hold at most."""

    total: int = 2048 * MIB
    """Bytes of all members together, as they come over the wire (sparse files count in full)."""
    files: int = 20_000
    depth: int = 16
    name: int = 255
    """Bytes of one path component."""


class _Stream(io.RawIOBase):
    """A readable file over chunks of bytes that gives up after ``limit`` bytes."""

    def __init__(self, chunks: Iterable[bytes], limit: int) -> None:
        self._chunks = iter(chunks)
        self._rest = b""
        self._left = limit
        self._limit = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._left -= len(chunk)
            if self._left < 0:
                raise HarnessFault(ErrorCode.ARTEFACT_LIMIT, f"the archive is larger than {byte_size(self._limit)}")
            self._rest = chunk
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def pack(files: Mapping[str, bytes | Path], directories: Iterable[str] = ()) -> IO[bytes]:
    """An uncompressed archive of ``path -> content``, ready to be read from its beginning.

    Plain tar only: a compressed one would be unpacked by a program of the container's own image.
    """
    archive = tempfile.TemporaryFile()  # noqa: SIM115 - the caller reads and closes it
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in directories:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o777
            tar.addfile(entry)
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.mode = 0o644
            if isinstance(content, bytes):
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
            else:
                entry.size = content.stat().st_size
                with content.open("rb") as source:
                    tar.addfile(entry, source)
    archive.seek(0)
    return archive


def list_files(chunks: Iterable[bytes], limits: Limits) -> tuple[File, ...]:
    """Name, size and SHA-256 of the regular files of an archive, its top directory left out; nothing is written.

    Raises :class:`HarnessFault` (artefact-limit) if it is larger than ``limits``, (daemon-fault) if it is broken.
    """
    files: dict[str, File] = {}
    for member, content in _members(chunks, limits):
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


def unpack(chunks: Iterable[bytes], target: Path, limits: Limits) -> tuple[str, ...]:
    """Write the regular files of an archive below ``target``, its top directory left out; return notes for a reader.

    Links, devices and pipes are left out, odd names are rewritten, both are noted; hard links become copies. Nothing is
    ever written outside ``target`` or over an existing file. Raises as :func:`list_files`; what came before stays.
    """
    notes: list[str] = []
    written: dict[str, Path] = {}
    for member, content in _members(chunks, limits):
        parts = Path(member.name).parts[1:]
        if not parts or member.isdir():
            continue
        linked = written.get(member.linkname) if member.islnk() else None
        if content is None and linked is None:
            notes.append(f"left out {'/'.join(parts)!a}: not a regular file")
            continue
        path = _safe_path(target, parts, limits)
        if path.relative_to(target).parts != parts:
            notes.append(f"renamed {'/'.join(parts)!a} to {path.relative_to(target)}")
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            with path.open("xb") as out:
                for data in content:
                    out.write(data)
        elif linked is not None:
            path.write_bytes(linked.read_bytes())
        written[member.name] = path
    return tuple(notes)


def _members(chunks: Iterable[bytes], limits: Limits) -> Iterator[tuple[tarfile.TarInfo, Iterator[bytes] | None]]:
    """Each member with its content in pieces, which is None for all but regular files."""
    stream = io.BufferedReader(_Stream(chunks, limits.total), CHUNK)
    if not stream.peek(1):
        return
    with _broken_archive(), tarfile.open(fileobj=stream, mode="r|") as tar:
        for count, member in enumerate(tar, start=1):
            if count > limits.files:
                raise HarnessFault(ErrorCode.ARTEFACT_LIMIT, f"the archive holds more than {limits.files} files")
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
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise HarnessFault(ErrorCode.DAEMON_FAULT, f"the archive from the container is broken: {error}") from error


def _safe_path(target: Path, parts: tuple[str, ...], limits: Limits) -> Path:
    """A path below ``target`` that does not exist yet, as like ``parts`` as is safe."""
    safe = [UNSAFE.sub("_", part)[: limits.name - 8] or "_" for part in parts]
    safe = ["_" + part if set(part) == {"."} else part for part in safe]
    if len(safe) > limits.depth:
        safe = [*safe[: limits.depth - 1], "_".join(safe[limits.depth - 1 :])[: limits.name - 8]]
    path = target.joinpath(*safe)
    for ancestor in path.parents:
        if ancestor == target:
            break
        if ancestor.is_file():
            path = target / "_".join(safe)[: limits.name - 8]
            break
    stem, count = path.name, 1
    while path.exists():
        count += 1
        path = path.with_name(f"{stem}~{count}")
    return path
