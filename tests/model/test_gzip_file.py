"""What a gzip file of others may cost: packed bytes and members are limited, and padding is not read."""

import errno
import gzip
import io
import os
from pathlib import Path

import pytest

from quicsat.model import gzip_file
from quicsat.model.gzip_file import DamagedGzipError, GzipReader, unpacked
from quicsat.results.compression import content, tail
from quicsat.site.logs import logs
from quicsat.traces.qlog import TOO_LARGE, _content

EMPTY = gzip.compress(b"")
HEADER, NOTHING = EMPTY[:10], b"\0\0\0\xff\xff"
"""Beginning of a member, and a block that unpacks to nothing."""


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 400_000])
def test_content_is_that_of_gzip(size: int) -> None:
    text = os.urandom(size // 2) + b"a" * (size - size // 2)
    packed = gzip.compress(text) + EMPTY + gzip.compress(b"end")
    assert b"".join(unpacked(io.BytesIO(packed))) == gzip.decompress(packed) == text + b"end"
    assert io.BufferedReader(GzipReader(io.BytesIO(packed))).read(size + 1) == text + b"e"


def test_damaged_files_give_what_comes_before() -> None:
    for damaged in (gzip.compress(b"a" * 100)[:-5], gzip.compress(b"a" * 100) + b"more"):
        found = unpacked(io.BytesIO(damaged))
        assert next(found) == b"a" * 100
        with pytest.raises(DamagedGzipError):
            next(found)


@pytest.mark.parametrize("packed", [EMPTY * 3, HEADER + NOTHING * 300], ids=["members", "blocks"])
def test_files_that_hold_nothing_are_refused(packed: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzip_file, "MOST_MEMBERS", 2)
    monkeypatch.setattr(gzip_file, "LARGEST", 1000)
    with pytest.raises(OSError, match="more than") as raised:
        list(unpacked(io.BytesIO(packed)))
    assert raised.value.errno == errno.EFBIG


def test_padding_and_members_without_content_cost_no_time(tmp_path: Path) -> None:
    """Python's own module takes minutes for each of them."""
    padded, empty = tmp_path / "output.txt.gz", tmp_path / "client" / "log.txt.gz"
    empty.parent.mkdir()
    padded.write_bytes(gzip.compress(b"a line\n"))
    os.truncate(padded, 100 << 30)
    empty.write_bytes(EMPTY * 1_000_000)
    assert tail(tmp_path / "output.txt", 100) == content(padded) == b"a line\n"
    assert [(log.name, log.unread) for log in logs(tmp_path, 100)] == [("output.txt", False), ("client/log.txt", True)]
    assert _content(empty, 1 << 20) == (b"", TOO_LARGE)
    assert _content(padded, 1 << 20) == (b"a line\n", "")
