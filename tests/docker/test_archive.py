"""Archives out of containers are hostile: nothing may leave the target directory, nothing regular may be lost."""

import hashlib
import io
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quicsat.docker.archive import ArchiveLimits, list_files, pack, unpack
from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode

Edit = Callable[[tarfile.TarFile], None]


def chunks(content: bytes, size: int = 1000) -> Iterator[bytes]:
    """``content`` in pieces, as it comes over the wire."""
    return (content[start : start + size] for start in range(0, len(content), size))


def archive(*edits: Edit) -> bytes:
    """A tar archive made by ``edits``."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for edit in edits:
            edit(tar)
    return buffer.getvalue()


def regular(name: str, content: bytes = b"content") -> Edit:
    """A regular file."""

    def edit(tar: tarfile.TarFile) -> None:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))

    return edit


def special(name: str, kind: bytes, link: str = "") -> Edit:
    """A link, device or pipe."""

    def edit(tar: tarfile.TarFile) -> None:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, link
        tar.addfile(entry)

    return edit


def found(target: Path) -> dict[str, bytes]:
    """Content of all regular files below ``target`` by relative name."""
    return {str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*") if path.is_file()}


def test_files_come_out_as_they_went_in(tmp_path: Path) -> None:
    """What pack made, unpack writes: bytes and files alike."""
    source = tmp_path / "source"
    source.write_bytes(b"x" * 3000)
    packed = pack({"logs/keys.log": b"keys", "logs/qlog/1.qlog": source}, ("logs",)).read()
    target = tmp_path / "target"
    target.mkdir()
    assert unpack(chunks(packed), target, ArchiveLimits()) == ()
    assert found(target) == {"keys.log": b"keys", "qlog/1.qlog": b"x" * 3000}


def test_listing_hashes_without_writing() -> None:
    """Names lose the top directory; size and digest are those of the content, hard links included."""
    content = archive(regular("downloads/a", b"abc"), special("downloads/b", tarfile.LNKTYPE, "downloads/a"))
    files = list_files(chunks(content), ArchiveLimits())
    assert [(file.name, file.size) for file in files] == [("a", 3), ("b", 3)]
    assert {file.sha256 for file in files} == {hashlib.sha256(b"abc").hexdigest()}


def test_missing_directory_is_an_empty_archive(tmp_path: Path) -> None:
    """No chunks at all, as for a path that does not exist."""
    assert list_files(iter(()), ArchiveLimits()) == ()
    assert unpack(iter(()), tmp_path, ArchiveLimits()) == ()


@pytest.mark.parametrize("name", ["../../escape", "logs/../../escape", "/etc/escape", "logs/..", "logs/a/../../../b"])
def test_no_name_leaves_the_target(tmp_path: Path, name: str) -> None:
    """Traversal ends below the target, and the content is kept."""
    target = tmp_path / "deep" / "target"
    target.mkdir(parents=True)
    unpack(chunks(archive(regular(name))), target, ArchiveLimits())
    assert set(found(target).values()) <= {b"content"}
    assert found(tmp_path) == {f"deep/target/{path}": content for path, content in found(target).items()}


def test_links_devices_and_pipes_are_left_out_and_told(tmp_path: Path) -> None:
    """Nothing but regular files and directories is made; a link is never followed."""
    kinds = [(tarfile.SYMTYPE, "/etc/passwd"), (tarfile.CHRTYPE, ""), (tarfile.FIFOTYPE, ""), (tarfile.LNKTYPE, "/x")]
    edits = [special(f"logs/{number}", kind, link) for number, (kind, link) in enumerate(kinds)]
    notes = unpack(chunks(archive(*edits, regular("logs/0/below"))), tmp_path, ArchiveLimits())
    assert len(notes) == 4
    assert found(tmp_path) == {"0/below": b"content"}
    assert not any(path.is_symlink() or path.is_fifo() for path in tmp_path.rglob("*"))


def test_odd_and_double_names_are_kept_apart(tmp_path: Path) -> None:
    """Two members of one name, names with newlines or markup, a file where a directory is needed: all contents stay."""
    names = ["logs/a", "logs/a", "logs/a/b", "logs/new\nline", "logs/<img src=x>", "logs/" + "n" * 300]
    edits = [regular(name, str(number).encode()) for number, name in enumerate(names)]
    unpack(chunks(archive(*edits)), tmp_path, ArchiveLimits())
    assert sorted(found(tmp_path).values()) == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert all(len(path.name) <= 255 and "\n" not in path.name and "<" not in path.name for path in tmp_path.rglob("*"))


@pytest.mark.parametrize(
    ("limits", "edits"),
    [
        (ArchiveLimits(total=4000), [regular("logs/big", b"x" * 5000)]),
        (ArchiveLimits(files=10), [regular(f"logs/{number}") for number in range(11)]),
    ],
)
def test_bombs_are_cut(tmp_path: Path, limits: ArchiveLimits, edits: list[Edit]) -> None:
    """Too many bytes or files end in an artefact limit, by both readers."""
    content = archive(*edits)
    with pytest.raises(HarnessFault) as fault:
        unpack(chunks(content), tmp_path, limits)
    assert fault.value.code == ErrorCode.ARTEFACT_LIMIT
    with pytest.raises(HarnessFault):
        list_files(chunks(content), limits)


@pytest.mark.parametrize("name", ["logs/" + "d/" * 500 + "file", "/".join(["d" * 250] * 16 + ["f"])])
def test_paths_that_are_too_deep_or_too_long_are_shortened(tmp_path: Path, name: str) -> None:
    unpack(chunks(archive(regular(name), regular("logs/plain"))), tmp_path, ArchiveLimits())
    assert [len(path) < 300 and path.count("/") < 16 for path in found(tmp_path)] == [True, True]
