"""Files into and out of a virtual machine: the input disk, and what becomes of an output disk that may be hostile."""

import tarfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quicsat.docker.archive import CHUNK, ArchiveLimits, list_files, unpack
from quicsat.links import guest_files
from quicsat.links.guest_files import BLOCK, GuestOutput, pack_input, read_output
from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode
from quicsat.model.units import MIB
from tests.fakes import described, output_disk
from tests.hostile_archives import hostile

LIMITS = ArchiveLimits(total=8 * MIB, files=100, fault=ErrorCode.TRACE_LIMIT)
TOO_LONG = guest_files.LONGEST_TEXT + 1


def member(name: str, kind: bytes = tarfile.REGTYPE, content: bytes = b"", link: str = "") -> bytes:
    """A member of an archive, as bytes."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.size, entry.linkname = kind, len(content), link
    return entry.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % tarfile.BLOCKSIZE)


def disk_of(*members: bytes) -> bytes:
    """An output disk with ``members``, an empty report, and zeros behind them."""
    return b"".join((*members, member("result"))) + bytes(16384)


def outer(disk: bytes, size: int | None = None) -> Iterator[bytes]:
    """The archive with the disk that a daemon gives, in pieces; ``size``: as its header declares it."""
    entry = tarfile.TarInfo("output")
    entry.size = len(disk) if size is None else size
    whole = entry.tobuf(tarfile.GNU_FORMAT) + disk + bytes(-len(disk) % tarfile.BLOCKSIZE) + bytes(1024)
    return (whole[start : start + 1000] for start in range(0, len(whole), 1000))


def read(disk: bytes, limits: ArchiveLimits = LIMITS) -> GuestOutput:
    return read_output(outer(disk), limits)


def names(chunks: Iterable[bytes]) -> dict[str, int]:
    """Size by name of the files of an archive, as they are listed."""
    return {file.name: file.size for file in list_files(chunks, LIMITS)}


# ---- the input disk -------------------------------------------------------------------------


def test_the_input_disk_holds_description_and_files(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 5000)
    description = [("mode", "transfer"), ("client.argument", "a=b"), ("client.argument", "c\nd"), ("empty", "")]
    files: dict[str, bytes | Path] = {"client/certs/ca.pem": b"pem", "server/www/f": tmp_path / "f"}
    with pack_input(description, files, ["client/downloads"]) as disk:
        whole = disk.read()
    values, found, directories = described(whole)
    assert values == {"mode": ["transfer"], "client.argument": ["a=b", "c\nd"], "empty": [""]}
    assert found == {"client/certs/ca.pem": b"pem", "server/www/f": b"x" * 5000}
    assert directories == {"client/downloads"}
    assert len(whole) % BLOCK == 0
    assert whole.endswith(bytes(1024))


def test_the_description_comes_before_the_files_of_the_input_disk() -> None:
    disk = pack_input([("mode", "exits")], {"client/etc/hosts": b"::1\tlocalhost\n"}, [])
    with disk, tarfile.open(fileobj=disk) as tar:
        assert tar.getnames() == ["run", "client/etc/hosts"]


# ---- the output disk ------------------------------------------------------------------------


def test_an_output_disk_is_split_by_part_and_directory() -> None:
    files = {
        "client.output": b"2026-01-01T00:00:05Z hello\n",
        "client/logs/keys.log": b"keys",
        "client/logs/qlog/a.sqlog": b"qlog",
        "client/downloads/f": b"file",
        "simulator/logs/link.json": b"{}",
    }
    output = read(output_disk({"client.status": 0, "equation": "a=b"}, files))
    assert output.result == {"client.status": "0", "equation": "a=b"}
    assert output.text("client") == b"2026-01-01T00:00:05Z hello\n"
    assert output.text("server") == b""
    assert names(output.chunks("client", "/logs")) == {"keys.log": 4, "qlog/a.sqlog": 4}
    assert names(output.chunks("client", "/downloads")) == {"f": 4}
    assert names(output.chunks("simulator", "/logs")) == {"link.json": 2}
    assert [*output.chunks("server", "/logs")] == []
    output.close()


def test_files_go_in_and_come_out_unchanged() -> None:
    content = bytes(range(256)) * 4096 + b"end"
    with pack_input([], {"client/downloads/f": content}, []) as disk:
        _, files, _ = described(disk.read())
    output = read(output_disk({}, files))
    assert list_files(output.chunks("client", "/downloads"), LIMITS) == list_files(
        iter([member("downloads/f", content=content) + bytes(1024)]), LIMITS
    )
    output.close()


def test_many_files() -> None:
    files = {f"client/downloads/{number:04}": str(number).encode() for number in range(3000)}
    limits = ArchiveLimits(total=32 * MIB, files=3001)
    output = read(output_disk({}, files), limits)
    found = list_files(output.chunks("client", "/downloads"), limits)
    assert [file.name for file in found] == [f"{number:04}" for number in range(3000)]
    output.close()


def test_several_threads_read_the_same_directory() -> None:
    content = b"".join(number.to_bytes(4, "big") for number in range(CHUNK))
    output = read(output_disk({}, {"client/downloads/f": content}))
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(lambda _: names(output.chunks("client", "/downloads")), range(16))]
        archives = {*pool.map(lambda _: b"".join(output.chunks("client", "/downloads")), range(16))}
    assert found == [{"f": len(content)}] * 16
    assert len(archives) == 1
    output.close()


def test_interleaved_readers_each_get_the_whole_archive() -> None:
    output = read(output_disk({}, {"client/downloads/f": b"a" * (3 * CHUNK)}))
    whole = b"".join(output.chunks("client", "/downloads"))
    first, second = (output.chunks("client", "/downloads") for _ in range(2))
    pieces = [*zip(first, second, strict=True)]
    assert b"".join(one for one, _ in pieces) == b"".join(two for _, two in pieces) == whole
    output.close()


# ---- hostile disks --------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["../../../etc/passwd", "/etc/passwd", "new\nline", "n" * 300])
def test_a_hostile_name_stays_in_its_directory(tmp_path: Path, path: str) -> None:
    target = tmp_path / "in" / "logs"
    target.mkdir(parents=True)
    output = read(disk_of(member(f"client/logs/{path}", content=b"evil")))
    unpack(output.chunks("client", "/logs"), target, LIMITS)
    [written] = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert target in written.parents
    assert written.read_bytes() == b"evil"
    output.close()


@pytest.mark.parametrize(
    "name", ["../logs/keys.log", "/client/logs/keys.log", "client", "client/", "nobody/logs/a", "a/b"]
)
def test_a_name_outside_the_parts_is_in_no_part(name: str) -> None:
    output = read(disk_of(member(name, content=b"evil")))
    for part in ("client", "server", "simulator"):
        assert output.text(part) == b""
        for path in ("/logs", "/downloads"):
            assert [*output.chunks(part, path)] == []
    output.close()


def test_links_are_not_followed(tmp_path: Path) -> None:
    members = (
        member("client/logs/passwd", tarfile.SYMTYPE, link="/etc/passwd"),
        member("client/logs/hard", tarfile.LNKTYPE, link="/etc/passwd"),
        member("client/logs/pipe", tarfile.FIFOTYPE),
        member("client/logs/disk", tarfile.BLKTYPE),
        member("client/logs/keys.log", content=b"keys"),
    )
    output = read(disk_of(*members))
    notes = unpack(output.chunks("client", "/logs"), tmp_path, LIMITS)
    assert [path.name for path in tmp_path.iterdir()] == ["keys.log"]
    assert len(notes) == 4
    assert all("not a regular file" in note for note in notes)
    output.close()


LARGE = member("client/logs/trace", content=b"x" * 100_000)
DISKS = {
    "no report": (b"", "without a report", ErrorCode.VIRTUAL_MACHINE_FAILED),
    "zeros": (bytes(65536), "without a report", ErrorCode.VIRTUAL_MACHINE_FAILED),
    "an output": (member("client.output", content=b"hello"), "without a report", ErrorCode.VIRTUAL_MACHINE_FAILED),
    "a link for a report": (
        member("result", tarfile.SYMTYPE, link="/etc/passwd"), "without a report", ErrorCode.VIRTUAL_MACHINE_FAILED
    ),
    "zeros in a file": (LARGE[:50_000], "without a report", ErrorCode.VIRTUAL_MACHINE_FAILED),
    "large files": (
        disk_of(*(member(f"client/logs/{name}", content=bytes(5 * MIB)) for name in "ab")),
        "larger than", ErrorCode.TRACE_LIMIT,
    ),
    "many files": (
        disk_of(*(member(f"client/logs/{number}") for number in range(101))), "more than 100 files",
        ErrorCode.TRACE_LIMIT,
    ),
    "a long report": (member("result", content=bytes(TOO_LONG)), "too long", ErrorCode.VIRTUAL_MACHINE_FAILED),
    "a long output": (member("client.output", content=bytes(TOO_LONG)), "too long", ErrorCode.VIRTUAL_MACHINE_FAILED),
}  # fmt: skip
"""Zeros lie behind each of them, as the disk has a fixed size."""


@pytest.mark.parametrize("kind", DISKS)
def test_disks_without_a_valid_report(kind: str) -> None:
    disk, words, code = DISKS[kind]
    limits = LIMITS if "long" not in kind else ArchiveLimits(total=64 * MIB)
    with pytest.raises(HarnessFault, match=words) as caught:
        read(disk + bytes(200_000), limits)
    assert caught.value.code == code


def test_a_disk_that_is_cut_or_missing() -> None:
    whole = disk_of(LARGE)
    with pytest.raises(HarnessFault, match="broken") as caught:
        read_output(outer(whole[:50_000], len(whole)), LIMITS)
    assert caught.value.code == ErrorCode.DAEMON_FAULT
    with pytest.raises(HarnessFault, match="without a report"):
        read_output(iter(()), LIMITS)


def test_zeros_behind_the_archive_are_not_read() -> None:
    """The disk has room for gigabytes, of which most runs need little."""
    disk, given = disk_of(member("client/logs/a", content=b"a")), 0

    def endless() -> Iterator[bytes]:
        nonlocal given
        yield from outer(disk, 1 << 40)
        while True:
            given += CHUNK
            assert given < 64 * MIB
            yield bytes(CHUNK)

    output = read_output(endless(), LIMITS)
    assert names(output.chunks("client", "/logs")) == {"a": 1}
    output.close()


@pytest.mark.parametrize("seed", range(60))
def test_any_archive_gives_an_output_or_a_fault(seed: int, tmp_path: Path) -> None:
    archive, _ = hostile(seed)
    try:
        output = read(archive + disk_of())
    except HarnessFault:
        return
    for path in ("logs", "downloads"):
        unpack(output.chunks("logs", f"/{path}"), tmp_path, LIMITS)
    output.close()


def test_what_is_closed_is_gone() -> None:
    output = read(output_disk({}, {"client/logs/a": b"a"}))
    output.close()
    with pytest.raises(ValueError, match="closed"):
        next(output.chunks("client", "/logs"))
