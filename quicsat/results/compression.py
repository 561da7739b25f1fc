"""Compresses the qlogs and large logs of a run once it is analysed, and reads them in both forms.

They are most of what a run leaves beside its traces, and shrink to a tenth.
"""

import gzip
import io
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from quicsat.model.gzip_file import GzipReader
from quicsat.model.implementation import Role
from quicsat.model.run import KEY_LOG, OUTPUT
from quicsat.model.stored_files import is_file, open_file, status, walk
from quicsat.model.whole_file import new_file

QLOGS = (".qlog", ".sqlog")
LOGS = (".log", ".txt", ".err", ".out")
"""Suffixes of the text that endpoints leave."""
GZIP = ".gz"
SMALLEST_QLOG = 4096
"""Bytes of a file that is compressed; a smaller one takes a block of the disk in any case."""
SMALLEST_LOG = 65_536
"""A smaller log saves little, and more people open it with a program of their own."""
LEVEL, PIECE = 6, 1 << 20
LARGEST = 256 * 1024 * 1024
"""Bytes that are read of the content of a file."""


def compress(run: Path) -> None:
    """Replace each qlog and each large log below the directory of a run by ``<name>.gz``, the same bytes each time.

    Key logs stay, since other programs read them with a trace. So does a file that cannot be compressed, or whose new
    name is taken.
    """
    for path in list(_to_compress(run)):
        with suppress(OSError):
            _compress(path)


def plain_name(path: Path) -> Path:
    """The name of a qlog or log before it was compressed; any other path as it is."""
    inner = path.with_suffix("") if path.suffix == GZIP else path
    return inner if inner.name.endswith((*QLOGS, *LOGS)) else path


def stored(path: Path) -> Path:
    """Where a file is: ``path``, or its compressed form if only this exists."""
    return _packed(path) if status(path) is None and is_file(_packed(path)) else path


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The content of a file, which is compressed if its name says so; raises OSError, also if it is damaged."""
    with open_file(path) as file:
        yield io.BufferedReader(GzipReader(file)) if path.suffix == GZIP else file


def content(path: Path) -> bytes:
    """The whole content of a file, decompressed if its name says so; raises OSError, also if it is too large."""
    with opened(path) as file:
        found = file.read(LARGEST + 1)
    if len(found) > LARGEST:
        raise OSError(f"{path} is larger than {LARGEST} bytes.")
    return found


def tail(path: Path, most: int) -> bytes:
    """The last ``most`` bytes of a file in either form, as far as ``LARGEST`` allows; raises OSError."""
    kept, left = b"", LARGEST
    with opened(stored(path)) as file:
        while left > 0 and (piece := file.read(PIECE)):
            kept = (kept + piece)[-most:]
            left -= len(piece)
    return kept


def _to_compress(run: Path) -> Iterator[Path]:
    for path, found in walk(run):
        least = _least(path, run)
        large = least is not None and S_ISREG(found.st_mode) and found.st_size >= least
        if large and status(_packed(path)) is None:
            yield path


def _packed(path: Path) -> Path:
    return path.with_name(path.name + GZIP)


def _least(path: Path, run: Path) -> int | None:
    """From how many bytes on a file is compressed; None if never."""
    if path.name.endswith(QLOGS):
        return SMALLEST_QLOG
    if path.name == OUTPUT and path.parent == run:
        return SMALLEST_LOG
    of_endpoint = {str(role) for role in Role}.intersection(path.relative_to(run).parts[:-1])
    return SMALLEST_LOG if of_endpoint and path.name.endswith(LOGS) and path.name != KEY_LOG else None


def _compress(path: Path) -> None:
    """Raises OSError; then nothing has changed."""
    with (
        open_file(path) as source,
        new_file(_packed(path)) as target,
        gzip.GzipFile(filename="", mode="wb", compresslevel=LEVEL, fileobj=target, mtime=0) as packed,
    ):
        shutil.copyfileobj(source, packed, PIECE)
    path.unlink()
