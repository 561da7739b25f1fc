"""Draws tables for terminals and Markdown (only importer of prettytable and termcolor).

A table that is wider than the terminal is printed in another form: long texts are wrapped, or the columns are split
into blocks, each with the key columns in front, or each row becomes a block of its own.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prettytable import PrettyTable, TableStyle
from termcolor import colored

from quicsat.model.text import LONGEST, printable

FRAME = 3
"""Characters that a column takes beside its texts; the table takes one more."""
NARROWEST = 24
"""A column of texts is not wrapped to fewer characters, as long as it shares its block with others."""


@dataclass(frozen=True)
class Text:
    """A field of a table; the colour only repeats what the text says."""

    text: str
    colour: str | None = None


Row = Sequence[str | Text]
Column = list[Text]
"""The name of a column and its fields."""


def draw(
    header: Row,
    rows: Iterable[Row],
    *,
    width: int | None = None,
    keys: int = 1,
    wrap: bool = True,
    colour: bool = False,
    markdown: bool = False,
    right: Sequence[str] = (),
    below: int = 0,
) -> str:
    """A table that is not wider than ``width`` characters, or as wide as it is.

    ``keys``: columns in front that tell rows apart; ``wrap``: wrap long texts before columns are split; ``right``:
    names of columns of numbers; ``below``: rows under a line.
    """
    columns = [[_plain(field) for field in column] for column in zip(header, *rows, strict=True)]
    if markdown or width is None:
        return _table(columns, right, below, colour=colour, markdown=markdown)
    total = 1 + sum(_width(column) + FRAME for column in columns)
    fitted = _wrapped(columns, width if wrap or total <= width else 0)
    if fitted is not None:
        return _table(fitted, right, below, colour=colour)
    blocks = _blocks(columns, width, max(1, min(keys, len(columns) - 1))) if len(columns) > 1 else None
    if blocks is None:
        return "\n\n".join(_records(columns, width, colour=colour))
    return "\n\n".join(_table(block, right, below, colour=colour) for block in blocks)


def describe(fields: Iterable[tuple[str, str]], width: int | None = None) -> str:
    """A line ``name   text`` for each field that has a text, wrapped to ``width`` characters."""
    filled = [(Text(name), Text(printable(text))) for name, text in fields if text]
    return "\n".join(_lines(filled, max(len(name.text) for name, _ in filled) + 2, width))


def fill(text: str, width: int | None) -> str:
    """A paragraph, wrapped between words; longer words, paths and image references, after a slash."""
    if width is None or len(text) <= width:
        return text
    lines = [""]
    for word in text.split():
        pieces = _pieces(word, width)
        for piece, space in zip(pieces, (" ", *[""] * len(pieces)), strict=False):
            gap = space if lines[-1] else ""
            if lines[-1] and len(lines[-1]) + len(gap) + len(piece) > width:
                lines.append(piece)
            else:
                lines[-1] += gap + piece
    return "\n".join(lines)


def _pieces(word: str, width: int) -> list[str]:
    return [word] if len(word) <= width else re.findall(r"[^/]*/|[^/]+", word)


def markdown_text(text: str, longest: int | None = LONGEST) -> str:
    """Any text on one line so that Markdown prints it and does nothing else; cut as by ``printable``."""
    return re.sub(r"([\\`*\[\]<>|])", r"\\\1", printable(text, longest))


# ---- forms ----------------------------------------------------------------------------------


def _wrapped(columns: Sequence[Column], width: int) -> list[Column] | None:
    """The columns with long texts on several lines, the longest ones first, so that they fit; None if they cannot."""
    bounds = [(_least(column), _width(column)) for column in columns]
    room = width - 1 - FRAME * len(columns)
    for longest in range(max(size for _, size in bounds), 0, -1):
        sizes = [max(least, min(size, longest)) for least, size in bounds]
        if sum(sizes) <= room:
            return [_filled(column, size) for column, size in zip(columns, sizes, strict=True)]
    return None


def _blocks(columns: Sequence[Column], width: int, keys: int) -> list[list[Column]] | None:
    """Blocks of columns, each with the key columns in front; None if a column does not fit beside them."""
    front, rest = list(columns[:keys]), columns[keys:]
    frame = 1 + sum(_width(column) + FRAME for column in front)
    blocks: list[list[Column]] = []
    used = width
    for column in rest:
        needed = min(_body_width(column), max(_least(column), width - frame - FRAME)) + FRAME
        if frame + needed > width:
            return None
        if used + needed > width:
            blocks.append([*front])
            used = frame
        blocks[-1].append(_filled(column, needed - FRAME))
        used += needed
    return blocks


def _records(columns: Sequence[Column], width: int, *, colour: bool) -> list[str]:
    """Each row as lines ``name   text``."""
    header, *rows = zip(*columns, strict=True)
    indent = max(len(name.text) for name in header) + 2
    return [
        "\n".join(
            _lines([pair for pair in zip(header, row, strict=True) if pair[1].text], indent, width, colour=colour)
        )
        for row in rows
    ]


def _lines(fields: Iterable[tuple[Text, Text]], indent: int, width: int | None, *, colour: bool = False) -> list[str]:
    found = list[str]()
    for name, text in fields:
        first, *more = fill(text.text, width and max(width - indent, NARROWEST)).split("\n")
        found.append(f"{name.text:{indent}}{_shown(Text(first, text.colour), colour, False)}")
        found += [f"{'':{indent}}{_shown(Text(line, text.colour), colour, False)}" for line in more]
    return found


def _table(columns: Sequence[Column], right: Sequence[str], below: int, *, colour: bool, markdown: bool = False) -> str:
    header, *rows = ([_shown(field, colour, markdown) for field in row] for row in zip(*columns, strict=True))
    table = PrettyTable(header if markdown else [str(number) for number in range(len(header))])
    table.set_style(TableStyle.MARKDOWN if markdown else TableStyle.SINGLE_BORDER)
    table.align = "l"
    for name, column in zip(table.field_names, columns, strict=True):
        if column[0].text.replace("\n", " ") in right:
            table.align[name] = "r"
    if not markdown:  # a header of prettytable has but one line
        table.header = False
        table.add_row(header, divider=True)
    for number, row in enumerate(rows):
        table.add_row(row, divider=not markdown and below > 0 and number == len(rows) - below - 1)
    return str(table.get_string())


# ---- fields ---------------------------------------------------------------------------------


def _plain(field: str | Text) -> Text:
    return Text(printable(field)) if isinstance(field, str) else Text(printable(field.text), field.colour)


def _shown(field: Text, colour: bool, markdown: bool) -> str:
    if markdown:
        return markdown_text(field.text)
    if not colour or not field.colour:
        return field.text
    return "\n".join(colored(line, field.colour, force_color=True) for line in field.text.split("\n"))


def _width(column: Column) -> int:
    return max(len(field.text) for field in column)


def _body_width(column: Column) -> int:
    """That of the fields, with the name of the column on several lines if it is longer."""
    longest = max(map(len, column[0].text.split()), default=0)
    return max(longest, min(len(column[0].text), NARROWEST // 2), *(len(field.text) for field in column[1:]))


def _least(column: Column) -> int:
    """The fewest characters to which a column can be wrapped, which leaves sentences legible."""
    words = (piece for field in column for word in field.text.split() for piece in _pieces(word, NARROWEST))
    longest = max(map(len, words), default=0)
    return max(longest, min(max(len(field.text) for field in column[1:]) if column[1:] else 0, NARROWEST))


def _filled(column: Column, size: int) -> Column:
    return [Text(fill(field.text, size), field.colour) if len(field.text) > size else field for field in column]
