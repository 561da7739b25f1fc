"""Compresses the qlogs of a run once it is analysed: they are most of what a run leaves, and shrink to a tenth."""

from __future__ import annotations

import gzip
import shutil
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

from interop.model.stored_files import open_file, status, walk
from interop.model.whole_file import new_file

SUFFIXES = (".qlog", ".sqlog")
GZIP = ".gz"
SMALLEST = 4096
"""Bytes of a file that is compressed; a smaller one takes a block of the disk in any case."""
LEVEL, PIECE = 6, 1 << 20


def compress_qlogs(run: Path) -> None:
    """Replace each qlog below the directory of a run by ``<name>.gz``, the same bytes each time.

    A file that cannot be compressed, or whose new name is taken, stays as it is.
    """
    for path in list(_qlogs(run)):
        with suppress(OSError):
            _compress(path)


def is_compressed_qlog(path: Path) -> bool:
    """By its name."""
    return path.name.endswith(tuple(f"{suffix}{GZIP}" for suffix in SUFFIXES))


def decompressed(path: Path, most: int) -> bytes:
    """The content of a compressed file; raises ValueError if it is damaged or larger than ``most`` bytes, OSError."""
    try:
        with open_file(path) as file, gzip.GzipFile(fileobj=file) as packed:
            content = packed.read(most + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is damaged: {error}.") from error
    if len(content) > most:
        raise ValueError(f"{path} is larger than {most} bytes.")
    return content


def _qlogs(run: Path) -> Iterator[Path]:
    for path, found in walk(run):
        large = S_ISREG(found.st_mode) and found.st_size >= SMALLEST
        if large and path.name.endswith(SUFFIXES) and status(_packed(path)) is None:
            yield path


def _packed(path: Path) -> Path:
    return path.with_name(path.name + GZIP)


def _compress(path: Path) -> None:
    """Raises OSError; then nothing has changed."""
    with (
        open_file(path) as source,
        new_file(_packed(path)) as target,
        gzip.GzipFile(filename="", mode="wb", compresslevel=LEVEL, fileobj=target, mtime=0) as packed,
    ):
        shutil.copyfileobj(source, packed, PIECE)
    path.unlink()
