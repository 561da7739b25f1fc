"""Logs of a run as numbered lines of plain text: bounded, without escape sequences, whatever the endpoints wrote."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from interop.model.run import OUTPUT
from interop.model.stored_files import files, open_file
from interop.model.text import printable_lines

KIB = 1024
_SUFFIXES = (".log", ".txt", ".err", ".out")
_SECRET = "keys.log"
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

    @property
    def last(self) -> tuple[Line, ...]:
        """The last lines that say something."""
        return tuple(line for line in (self.tail or self.head) if line.text.strip())[-8:]


def logs(run: Path, most: int) -> list[Log]:
    """The logs below the directory of a run; of each at most ``most`` bytes from its beginning and from its end."""
    return [log for path in _found(run) if (log := _read(run, path, most)) is not None]


def _found(run: Path) -> Iterator[Path]:
    yield run / OUTPUT
    count = 0
    for role in ("client", "server"):
        for path in files(run / role):
            if path.suffix in _SUFFIXES and path.name != _SECRET and count < _MOST_FILES:
                count += 1
                yield path


def _read(run: Path, path: Path, most: int) -> Log | None:
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(2 * most)
            if not size:
                return None
            if size <= 2 * most:
                return Log(_name(run, path), size, _lines(head, 1), 0, ())
            head = head[:most]
            head = head[: head.rfind(b"\n") + 1] or head
            file.seek(len(head))
            middle = 0
            rest = size - most - len(head)
            while rest > 0 and (piece := file.read(min(rest, KIB * KIB))):
                middle += piece.count(b"\n")
                rest -= len(piece)
            tail = file.read(most)
    except OSError:
        return None
    first = head.count(b"\n") + middle + 1
    cut = tail.find(b"\n") + 1
    shown_head, shown_tail = _lines(head, 1), _lines(tail[cut:], first + (1 if cut else 0))
    begin = shown_tail[0].number if shown_tail else first
    return Log(_name(run, path), size, shown_head, max(begin - 1 - len(shown_head), 0), shown_tail)


def _name(run: Path, path: Path) -> str:
    return str(PurePosixPath(path.relative_to(run)))


def _lines(content: bytes, first: int) -> tuple[Line, ...]:
    text = content.decode("utf-8", "replace")
    lines = text.removesuffix("\n").split("\n")[:_MOST_LINES] if text else []
    return tuple(Line(number, printable_lines(line, _LONGEST_LINE)) for number, line in enumerate(lines, first))
