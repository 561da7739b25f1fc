"""Logs of a run as numbered lines of plain text: bounded, without escape sequences, whatever the endpoints wrote."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from stat import S_ISREG

from quicsat.model.run import KEY_LOG, OUTPUT
from quicsat.model.stored_files import files, status
from quicsat.model.text import printable_lines
from quicsat.results.compression import LARGEST, LOGS, PIECE, opened, plain_name, stored

_MOST_FILES = 12
_MOST_LINES = 4000
"""Of each end of a log."""
_LONGEST_LINE = 2000


@dataclass(frozen=True)
class Line:
    """A line of a log."""

    number: int
    """Counted from 1 in the whole log."""
    text: str


@dataclass(frozen=True)
class Log:
    """The beginning and the end of a log."""

    name: str
    """As the endpoint named it, below the directory of the run."""
    size: int
    """Bytes of the whole log."""
    head: tuple[Line, ...]
    left_out: int
    """Lines between head and tail."""
    tail: tuple[Line, ...]
    unread: bool = False
    """The file is damaged or too large, and ``size`` that of the file."""

    @property
    def last(self) -> tuple[Line, ...]:
        """The last lines that say something."""
        return tuple(line for line in (self.tail or self.head) if line.text.strip())[-8:]


def logs(run: Path, most: int) -> list[Log]:
    """The logs below the directory of a run; of each at most ``most`` bytes from its beginning and from its end."""
    return [log for path in _found(run) if (log := _read(run, path, most)) is not None]


def _found(run: Path) -> Iterator[Path]:
    yield stored(run / OUTPUT)
    count = 0
    for role in ("client", "server"):
        for path in files(run / role):
            if plain_name(path).suffix in LOGS and plain_name(path).name != KEY_LOG and count < _MOST_FILES:
                count += 1
                yield path


def _read(run: Path, path: Path, most: int) -> Log | None:
    try:
        with opened(path) as file:
            head = file.read(2 * most)
            if not head:
                return None
            rest = _Rest(most)
            if len(head) == 2 * most:
                begin = head[:most]
                begin = begin[: begin.rfind(b"\n") + 1] or begin
                rest.add(head[len(begin) :])
                head = begin
                while rest.size < LARGEST and (piece := file.read(PIECE)):
                    rest.add(piece)
    except OSError:
        found = status(path)
        unread = found is not None and S_ISREG(found.st_mode)
        return Log(_name(run, plain_name(path)), found.st_size, (), 0, (), unread) if found and unread else None
    name, size = _name(run, plain_name(path)), len(head) + rest.size
    if not rest.size:
        return Log(name, size, _lines(head, 1), 0, ())
    first = head.count(b"\n") + rest.dropped + 1
    cut = rest.tail.find(b"\n") + 1
    shown_head, shown_tail = _lines(head, 1), _lines(rest.tail[cut:], first + (1 if cut else 0))
    begin_of_tail = shown_tail[0].number if shown_tail else first
    return Log(name, size, shown_head, max(begin_of_tail - 1 - len(shown_head), 0), shown_tail)


class _Rest:
    """The end of what follows the beginning of a log."""

    def __init__(self, most: int) -> None:
        """``most``: bytes of the end."""
        self._most = most
        self.size = 0
        """Bytes."""
        self.tail = b""
        self.dropped = 0
        """Lines before the end."""

    def add(self, piece: bytes) -> None:
        """Append a piece."""
        self.size += len(piece)
        whole = self.tail + piece
        keep = max(0, len(whole) - self._most)
        self.dropped += whole[:keep].count(b"\n")
        self.tail = whole[keep:]


def _name(run: Path, path: Path) -> str:
    return str(PurePosixPath(path.relative_to(run)))


def _lines(content: bytes, first: int) -> tuple[Line, ...]:
    text = content.decode("utf-8", "replace")
    lines = text.removesuffix("\n").split("\n")[:_MOST_LINES] if text else []
    return tuple(Line(number, printable_lines(line, _LONGEST_LINE)) for number, line in enumerate(lines, first))
