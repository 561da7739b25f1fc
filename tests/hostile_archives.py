"""Archives as nobody should send them: seeded, with all that a name, a type, a size and a link can be."""

import io
import random
import struct
import tarfile
from collections.abc import Callable, Iterator

PARTS = (
    "..", "...", ".", "", "a", "b", "A", "logs", "etc", "passwd", "~root", "-rf", "*", "a b", "new\nline", "\x1b[2J",
    "<img src=x>", "'; rm -rf /", "CON", "C:\\x", "\u202efdp.exe", "\udcff", "e\u0301", "n" * 300, "x" * 250, "%2e%2e",
    "link", "keys.log", "qlog", "\\..\\..", "a~2",
)  # fmt: skip
"""Of names."""
KINDS = (
    tarfile.REGTYPE, tarfile.REGTYPE, tarfile.REGTYPE, tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE,
    tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, b"Z",
)  # fmt: skip
REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)


def hostile(seed: int) -> tuple[bytes, list[bytes]]:
    """An archive, and the contents of its regular files if it is whole; nothing is promised of a damaged one."""
    dice = random.Random(seed)
    buffer = io.BytesIO()
    contents, honest = [], True
    form = dice.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT))
    with tarfile.open(fileobj=buffer, mode="w", format=form, errors="surrogateescape") as tar:
        for number in range(dice.randrange(1, 12)):
            entry = tarfile.TarInfo(_name(dice))
            entry.type = dice.choice(KINDS)
            if entry.type == tarfile.AREGTYPE:  # with a slash at the end it would be a directory
                entry.name = f"logs/old-{number}"
            entry.mode = dice.choice((0o644, 0o7777, 0))
            entry.linkname = _name(dice) if entry.type in (tarfile.LNKTYPE, tarfile.SYMTYPE) else ""
            if form == tarfile.PAX_FORMAT and dice.random() < 0.1:
                entry.pax_headers = {"path": _name(dice), "linkpath": _name(dice), "size": str(dice.randrange(100))}
            content = b""
            honest &= "size" not in entry.pax_headers or entry.type in REGULAR  # else what follows is not found
            if entry.type in REGULAR:
                content = f"{seed} {number} ".encode() + bytes(dice.randrange(0, 3000))
                entry.size = len(content)
                entry.pax_headers = {key: word for key, word in entry.pax_headers.items() if key != "size"}
                contents.append(content)
            tar.addfile(entry, io.BytesIO(content))
    archive = bytearray(buffer.getvalue())
    if dice.random() < 0.4:
        for _ in range(dice.randrange(1, 30)):
            archive[dice.randrange(len(archive))] = dice.randrange(256)
        del archive[dice.randrange(1, len(archive)) :]
        honest = False
    return bytes(archive), contents if honest else []


def _name(dice: random.Random) -> str:
    depth = dice.choice((1, 2, 2, 3, 3, 5, 60))
    name = "/".join(
        [dice.choice(("logs", "logs", "logs", "..", "/", ".")), *(dice.choice(PARTS) for _ in range(depth))]
    )
    return name.rstrip("/") or "logs"  # a slash at the end would make it a directory


# ---- bombs --------------------------------------------------------------------------------------


def header(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "") -> bytes:
    """The header of a member, in GNU's format."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.size, entry.linkname = kind, size, link
    return entry.tobuf(tarfile.GNU_FORMAT)


def changed(name: str, *changes: tuple[int, bytes]) -> bytes:
    """A header with other bytes at some places, and the checksum that it then needs."""
    made = bytearray(header(name))
    for place, content in (*changes, (148, b" " * 8)):
        made[place : place + len(content)] = content
    made[148:156] = f"{sum(made):06o}\0 ".encode()
    return bytes(made)


def sparse(size: int) -> Iterator[bytes]:
    """A file of ``size`` zeros in one header, in the format of GNU tar's --sparse (PAX 1.0)."""
    entry = tarfile.TarInfo("logs/sparse")
    body = f"1\n{size}\n0\n".encode().ljust(512, b"\0")
    entry.size = len(body)
    entry.pax_headers = {
        "GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "logs/sparse",
        "GNU.sparse.realsize": str(size),
    }  # fmt: skip
    yield entry.tobuf(tarfile.PAX_FORMAT) + body + bytes(1024)


def zeros(size: int) -> Iterator[bytes]:
    """A file of ``size`` zeros, all of them on the wire, as Docker's engine sends a sparse one."""
    yield header("logs/zeros", size=size)
    piece = bytes(1024 * 1024)
    for _ in range(size // len(piece)):
        yield piece


def endless() -> Iterator[bytes]:
    """Blocks without end, of a file that says it is small: more of the same follows."""
    piece = header("logs/more", size=512) + bytes(512)
    while True:
        yield piece * 100


def many(count: int, name: str = "logs/{}", kind: bytes = tarfile.REGTYPE) -> Iterator[bytes]:
    """``count`` empty members."""
    for number in range(count):
        yield header(name.format(number), kind)
    yield bytes(1024)


def deep(depth: int) -> Iterator[bytes]:
    """A file below ``depth`` directories, each of them a member, too."""
    name = "logs"
    for _ in range(depth):
        name += "/d"
        yield header(name, tarfile.DIRTYPE)
    yield header(f"{name}/file", size=3) + b"end".ljust(512, b"\0") + bytes(1024)


def large_header(size: int) -> Iterator[bytes]:
    """A header of ``size`` bytes for the next member, which the reader wants to have in memory."""
    yield header("././@LongLink", tarfile.GNUTYPE_LONGNAME, size)
    for _ in range(size // 1024**2):
        yield b"x" * 1024**2


def headers_of_headers(count: int) -> Iterator[bytes]:
    """Headers for headers for headers: a reader that calls itself for each runs out of stack."""
    yield (header("././@LongLink", tarfile.GNUTYPE_LONGNAME, 4) + b"abc\0".ljust(512, b"\0")) * count


def one_file_many_names(size: int, count: int) -> Iterator[bytes]:
    """A file and hard links to it."""
    yield header("logs/one", size=size) + bytes(size + -size % 512)
    for number in range(count):
        yield header(f"logs/{number}", tarfile.LNKTYPE, link="logs/one")
    yield bytes(1024)


def negative_size() -> Iterator[bytes]:
    """A size below nothing, in the binary form of large numbers."""
    yield changed("logs/negative", (124, b"\xff" + struct.pack(">q", -512).rjust(11, b"\xff"))) + bytes(1024)


def keywords(count: int, kind: bytes = tarfile.XHDTYPE) -> Iterator[bytes]:
    """``count`` headers with 10,000 keywords each, which a reader keeps in memory at several times their size."""
    for number in range(count):
        body = b"".join(b"%d %06d%04d=\n" % (15, number, word) for word in range(8000)).ljust(120_320, b"\0")
        entry = tarfile.TarInfo("././@PaxHeader")
        entry.type, entry.size = kind, len(body)
        yield entry.tobuf(tarfile.USTAR_FORMAT) + body
        yield tarfile.TarInfo(f"logs/{number}").tobuf(tarfile.USTAR_FORMAT) if kind == tarfile.XHDTYPE else b""
    yield tarfile.TarInfo("logs/end").tobuf(tarfile.USTAR_FORMAT) + bytes(1024)


def sparse_map(blocks: int) -> Iterator[bytes]:
    """A sparse file of GNU tar whose map fills ``blocks`` blocks with 21 places each."""
    yield changed("logs/sparse", (156, tarfile.GNUTYPE_SPARSE), (482, b"\1"))
    block = (b"00000000001\0" * 42) + b"\1"
    for _ in range(blocks):
        yield block.ljust(512, b"\0")
    yield bytes(1536)


BOMBS: dict[str, Callable[[], Iterator[bytes]]] = {
    "3 TB of zeros in one header": lambda: sparse(3 * 10**12),
    "3 TB of zeros on the wire": lambda: zeros(3 * 10**12),
    "blocks without end": endless,
    "10^6 empty files": lambda: many(10**6),
    "10^6 files of one name": lambda: many(10**6, "logs/same"),
    "10^6 symbolic links": lambda: many(10**6, kind=tarfile.SYMTYPE),
    "directories 10,000 deep": lambda: deep(10_000),
    "a header of 3 GB": lambda: large_header(3 * 10**9),
    "10^5 headers of headers": lambda: headers_of_headers(10**5),
    "10^5 hard links to 10 MB": lambda: one_file_many_names(10**7, 10**5),
    "a negative size": negative_size,
    "60 MB of keywords": lambda: keywords(500),
    "60 MB of keywords for all files": lambda: keywords(500, tarfile.XGLTYPE),
    "a map of 50 MB for a sparse file": lambda: sparse_map(10**5),
}
"""Archives that cost whoever unpacks them far more than whoever made them."""
