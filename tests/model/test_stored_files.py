"""Files below a directory of others are opened only if they are regular files to which no link leads."""

import os
import socket
from pathlib import Path

import pytest

from quicsat.model.stored_files import (
    entries,
    files,
    files_below,
    is_directory,
    is_file,
    open_file,
    read_file,
    resolved,
    walk,
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a file, and with what only looks like one."""
    place = tmp_path / "place"
    (place / "below").mkdir(parents=True)
    (place / "file").write_bytes(b"content")
    (place / "below/file").write_bytes(b"below")
    (place / "link").symlink_to("file")
    (place / "folder link").symlink_to("below")
    os.mkfifo(place / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(place / "socket"))
    return place


ODD = ("link", "folder link", "folder link/file", "pipe", "socket", "below", "missing", "file/x", "..")


@pytest.mark.parametrize("name", ODD)
def test_only_regular_files_are_opened(place: Path, name: str) -> None:
    with pytest.raises(OSError) as caught:
        open_file(place / name)
    assert caught.value.strerror
    assert not is_file(place / name)
    assert (read_file(place / "file"), read_file(place / "below/file")) == (b"content", b"below")


def test_a_link_above_is_followed_only_if_it_is_resolved(place: Path) -> None:
    (place.parent / "latest").symlink_to(place)
    with pytest.raises(OSError, match=r"latest.*not followed"):
        read_file(place.parent / "latest/file")
    assert read_file(resolved(place.parent / "latest") / "file") == b"content"
    assert is_directory(place / "below")
    assert not is_directory(place / "folder link")


def test_relative_paths_are_those_of_the_working_directory(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place / "below")
    assert (read_file(Path("file")), read_file(Path("../file"))) == (b"below", b"content")
    assert files(Path()) == [Path("file")]


def test_a_file_may_have_a_largest_size(place: Path) -> None:
    assert read_file(place / "file", 7) == b"content"
    with pytest.raises(OSError, match="more than 6 bytes"):
        read_file(place / "file", 6)


def test_links_are_listed_and_never_followed(place: Path) -> None:
    names = ["below", "file", "folder link", "link", "pipe", "socket"]
    assert [path.name for path in entries(place)] == names
    assert files(place) == [place / "file"]
    assert files_below(place) == [place / "below/file", place / "file"]
    assert {path.name for path, _ in walk(place)} == {"file", "link", "folder link", "pipe", "socket"}
    for missing in (place / "folder link", place / "missing", place / "file"):
        assert entries(missing) == files_below(missing) == []


def test_no_descriptor_stays_open(place: Path) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    for name in ODD:
        assert not is_file(place / name)
    files_below(place)
    read_file(place / "file")
    assert set(Path("/proc/self/fd").iterdir()) == before
