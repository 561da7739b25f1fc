"""Unpacks gzip files (RFC 1952) of others: packed bytes and members are limited, too, since both may hold nothing."""

import errno
import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO

MAGIC = b"\x1f\x8b"
LARGEST = 256 * 1024 * 1024
"""Packed bytes that are read."""
MOST_MEMBERS = 10_000
"""Members that are read; a program that packs blocks of 64 KiB makes about 4,000 of ``LARGEST`` bytes."""
PIECE = 64 * 1024
"""Bytes that are read and unpacked at a time."""


class DamagedGzipError(OSError):
    """A file is no gzip file, or damaged or cut."""


def unpacked(file: BinaryIO) -> Iterator[bytes]:
    """The content, in pieces of at most ``PIECE`` bytes; zero bytes behind a member end the file.

    Raises DamagedGzipError, and OSError with ``EFBIG`` beyond the limits; what comes before is given.
    """
    left, packed = LARGEST, b""
    for _ in range(MOST_MEMBERS):
        if len(packed) < len(MAGIC):
            packed += file.read(PIECE)
        if not packed.lstrip(b"\0"):
            return
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            if not packed and not (packed := file.read(PIECE)):
                raise DamagedGzipError("the compressed file is cut")
            left -= len(packed)
            try:
                piece = member.decompress(packed, PIECE)
            except zlib.error as error:
                raise DamagedGzipError(f"the compressed file is damaged: {error}") from error
            packed = member.unconsumed_tail or member.unused_data
            left += len(packed)
            if piece:
                yield piece
            if left < 0:
                raise OSError(errno.EFBIG, f"it has more than {LARGEST} compressed bytes")
    raise OSError(errno.EFBIG, f"it has more than {MOST_MEMBERS} compressed members")


class GzipReader(io.RawIOBase):
    """The same as a file, for an :class:`io.BufferedReader`."""

    def __init__(self, file: BinaryIO) -> None:
        self._pieces = unpacked(file)
        self._piece = b""

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # of typeshed, without a name for buffers
        """Fill as much of a buffer as is there; 0 at the end."""
        self._piece = self._piece or next(self._pieces, b"")
        size = min(len(buffer), len(self._piece))
        buffer[:size], self._piece = self._piece[:size], self._piece[size:]
        return size
