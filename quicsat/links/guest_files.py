"""Files into and out of a virtual machine: one archive with the description of the run, one with what it left."""

import io
import os
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

from quicsat.docker.archive import CHUNK, ArchiveLimits, ChunkStream, members, pack
from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode

DESCRIPTION = "run"
RESULT = "result"
OUTPUT = "output"
"""Suffix of the file with what a part wrote to its standard output and error."""
BLOCK = 4096
"""The machine's disks have a multiple of so many bytes."""
LONGEST_TEXT = 16 * 1024 * 1024
"""Bytes of a file of the output that is read into memory."""


def pack_input(
    description: Iterable[tuple[str, str]], files: Mapping[str, bytes | Path], directories: Iterable[str]
) -> IO[bytes]:
    """The machine's input disk: an archive of the description (keys and values) and of files by part and path."""
    text = b"".join(f"{key}={value}".encode() + b"\0" for key, value in description)
    archive = pack({DESCRIPTION: text, **files}, directories)
    size = archive.seek(0, io.SEEK_END)
    archive.write(bytes(-size % BLOCK))
    archive.seek(0)
    return archive


class GuestOutput:
    """What a virtual machine left on its output disk: the result, and an archive of each directory of each part."""

    def __init__(
        self, result: Mapping[str, str], texts: Mapping[str, bytes], archives: Mapping[str, IO[bytes]]
    ) -> None:
        self.result = result
        """Lines ``key=value`` of the machine's own report."""
        self._texts = texts
        self._archives = archives

    def text(self, part: str) -> bytes:
        """Output of the program of ``part``."""
        return self._texts.get(part, b"")

    def chunks(self, part: str, path: str) -> Iterator[bytes]:
        """Archive of a directory at the root of ``part``, as the Docker daemon would give it; empty if it is not there.

        Safe to use from several threads.
        """
        archive, offset = self._archives.get(part + path), 0
        while archive is not None and (chunk := os.pread(archive.fileno(), CHUNK, offset)):
            yield chunk
            offset += len(chunk)

    def close(self) -> None:
        """Delete the archives."""
        for archive in self._archives.values():
            archive.close()


def read_output(disk: Iterable[bytes], limits: ArchiveLimits) -> GuestOutput:
    """Split the output disk, whose archive ends long before the disk does.

    ``disk``: as the Docker daemon gives it, an archive with one file. Raises :class:`HarnessFault`
    (virtual-machine-failed) if it holds no report, ``limits.fault`` if it is too large.
    """
    texts: dict[str, bytes] = {}
    archives: dict[str, IO[bytes]] = {}
    tars: dict[str, tarfile.TarFile] = {}
    for member, content in members(_inner(disk), limits):
        part, _, path = member.name.partition("/")
        if not path:
            if content is not None:
                texts[part] = _text(content, member.size)
            continue
        key = f"{part}/{path.partition('/')[0]}"
        if key not in tars:
            archives[key] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by GuestOutput
            tars[key] = tarfile.open(fileobj=archives[key], mode="w")  # noqa: SIM115 - closed below
        member.name, member.pax_headers = path, {}
        tars[key].addfile(member, None if content is None else io.BufferedReader(ChunkStream(content, limits)))
    for key, tar in tars.items():
        tar.close()
        archives[key].flush()
    if RESULT not in texts:
        raise HarnessFault(ErrorCode.VIRTUAL_MACHINE_FAILED, "the virtual machine ended without a report")
    lines = texts[RESULT].decode(errors="replace").splitlines()
    result = dict(line.split("=", 1) for line in lines if "=" in line)
    outputs = {name.removesuffix(f".{OUTPUT}"): text for name, text in texts.items() if name.endswith(f".{OUTPUT}")}
    return GuestOutput(result, outputs, archives)


def _text(content: Iterator[bytes], size: int) -> bytes:
    if size > LONGEST_TEXT:
        raise HarnessFault(ErrorCode.VIRTUAL_MACHINE_FAILED, "the virtual machine left a report that is too long")
    return b"".join(content)


def _inner(disk: Iterable[bytes]) -> Iterator[bytes]:
    """Content of the one file of an archive, without the limits of its declared size: most of it is never read."""
    unlimited = ArchiveLimits(total=1 << 62, files=1)
    for _, content in members(disk, unlimited):
        yield from content or ()
        return
