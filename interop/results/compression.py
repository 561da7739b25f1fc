"""Compresses the qlogs of a run once it is analysed: they are most of what a run leaves, and shrink to a tenth."""

from __future__ import annotations

import gzip
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

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
        with gzip.open(path) as packed:
            content = packed.read(most + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is damaged: {error}.") from error
    if len(content) > most:
        raise ValueError(f"{path} is larger than {most} bytes.")
    return content


def _qlogs(run: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(run):  # does not follow links to directories
        for name in names:
            path = Path(folder, name)
            if name.endswith(SUFFIXES) and not os.path.lexists(f"{path}{GZIP}"):
                status = path.lstat()
                if S_ISREG(status.st_mode) and status.st_size >= SMALLEST:
                    yield path


def _compress(path: Path) -> None:
    """Raises OSError; then nothing has changed."""
    draft = path.with_name(f".{path.name}.new")
    try:
        with (
            path.open("rb") as source,
            draft.open("wb") as target,
            gzip.GzipFile(filename="", mode="wb", compresslevel=LEVEL, fileobj=target, mtime=0) as packed,
        ):
            shutil.copyfileobj(source, packed, PIECE)
        draft.replace(path.with_name(path.name + GZIP))
        path.unlink()
    except OSError:
        draft.unlink(missing_ok=True)
        raise
