"""Unpacks zstd files (RFC 8878) of others in pieces, so that the caller can stop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

MAGIC = b"\x28\xb5\x2f\xfd"
PIECE = 64 * 1024
"""Bytes that are unpacked at a time."""


class DamagedZstdError(OSError):
    """A file is no zstd file, or damaged or cut."""


def unpacked(file: BinaryIO) -> Iterator[bytes]:
    """The content in pieces; raises DamagedZstdError, before which what comes before the damage is given."""
    import pyarrow as pa  # readers of qlogs without zstd do not need it

    try:
        with pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd") as stream:
            while piece := stream.read(PIECE):
                yield piece
    except (pa.ArrowException, OSError) as error:
        raise DamagedZstdError(f"the compressed file is damaged: {error}") from error
