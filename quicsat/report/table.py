"""A table of numbers with their units, as text, Markdown, CSV or LaTeX.

In CSV the numbers stay in SI base units and whole; elsewhere they are rounded.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import takewhile

from quicsat.model.text import printable
from quicsat.model.units import MBPS, PERCENT, told_apart
from quicsat.report.drawing import draw, fill, markdown_text

Value = float | int | str | None


class Unit(StrEnum):
    """Unit of a column's values."""

    WORDS = "words"
    COUNT = "count"
    RATE = "bit/s"
    SHARE = "1"
    SECONDS = "s"
    RATIO = "ratio"
    P = "p-value"


_SHOWN_UNIT = {Unit.RATE: "Mbit/s", Unit.SHARE: "%", Unit.SECONDS: "s"}
_SIZE = {Unit.RATE: MBPS, Unit.SHARE: PERCENT, Unit.SECONDS: 1.0, Unit.RATIO: 1.0}
_SMALLEST_P = 0.0001
MOST_KEYS = 3
"""Columns that tell rows apart: test case, server, client; and the repetition if it follows."""
REPETITION = "repetition"
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""How a formula begins in a spreadsheet; some take full-width signs, too."""
FORMATS = ("text", "markdown", "csv", "latex")


@dataclass(frozen=True)
class Column:
    """A column: name, unit, digits."""

    name: str
    unit: Unit = Unit.WORDS
    digits: int = 2
    """Behind the point of rates, shares in per cent, seconds, and ratios."""

    @property
    def shown(self) -> str:
        """``mean [Mbit/s]``."""
        unit = _SHOWN_UNIT.get(self.unit)
        return f"{self.name} [{unit}]" if unit else self.name

    @property
    def exact(self) -> str:
        """``mean [bit/s]``."""
        return f"{self.name} [{self.unit}]" if self.unit in _SHOWN_UNIT else self.name


@dataclass(frozen=True)
class Table:
    """A table: name, title, columns, rows with one value per column, and footnotes."""

    name: str
    """For files and options: ``summary``."""
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()

    def texts(self, row: Sequence[Value]) -> list[str]:
        """A row as it is shown: rounded values."""
        return _fields(row, self.columns)


def render(table: Table, form: str, width: int | None = None) -> str:
    """The table in one of ``FORMATS``, with its title and notes; ``width`` of a terminal, for text."""
    if form == "csv":
        return _csv(table)
    if form == "latex":
        return _latex(table)
    markdown = form == "markdown"
    right = [column.shown for column in table.columns if column.unit is not Unit.WORDS]
    rows = [table.texts(row) for row in table.rows]
    words = len(list(takewhile(lambda column: column.unit is Unit.WORDS, table.columns)))
    keys = min(words, MOST_KEYS) + any(column.name == REPETITION for column in table.columns[words : words + 1])
    header = [column.shown for column in table.columns]
    if not markdown:  # a column without a value only takes room
        having = [n for n, field in enumerate(zip(*rows, strict=True)) if n < keys or any(field)]
        header, *rows = ([row[n] for n in having] for row in (header, *rows))
    body = draw(header, rows, width=width, keys=keys, markdown=markdown, right=right) if rows or markdown else ""
    plain = markdown_text if markdown else printable
    title = f"### {plain(table.title)}" if markdown else fill(plain(table.title), width)
    notes = [plain(note, None) if markdown else fill(plain(note, None), width) for note in table.notes]
    parts = [title, body, ("\n\n" if markdown else "\n").join(notes)]
    return "\n\n".join(filter(None, parts))


def _fields(row: Sequence[Value], columns: Sequence[Column]) -> list[str]:
    """A row of rounded values. The ends of an interval, ``low`` and ``high``, get more digits until they differ."""
    found = [shown(value, column) for value, column in zip(row, columns, strict=True)]
    names = [column.name for column in columns]
    if "low" in names and "high" in names:
        low, high = names.index("low"), names.index("high")
        found[low], found[high] = told_apart(
            lambda digits: [shown(row[place], replace(columns[place], digits=digits)) for place in (low, high)],
            columns[low].digits,
        )
    return found


def shown(value: Value, column: Column) -> str:
    """A value, rounded, in the unit that is shown; empty for None."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if column.unit is Unit.P:
        return f"{value:.4f}" if value >= _SMALLEST_P else "< 0.0001"
    if column.unit in _SIZE:
        return f"{value / _SIZE[column.unit]:.{column.digits}f}"
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def _csv(table: Table) -> str:
    """RFC 4180, without title and notes; what a spreadsheet would take for a formula gets an apostrophe."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([column.exact for column in table.columns])
    for row in table.rows:
        writer.writerow([csv_text(value) if isinstance(value, str) else value for value in row])
    return file.getvalue().rstrip("\n")


@lru_cache(10_000)  # names stand in most rows
def csv_text(text: str) -> str:
    """Any text on one line that a spreadsheet does not take for a formula."""
    clean = printable(text, None)
    return f"'{clean}" if clean.startswith(_FORMULA) else clean


# ---- LaTeX ----------------------------------------------------------------------------------

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "×": r"$\times$", "±": r"$\pm$", "–": "--", "·": r"$\cdot$", "✓": r"\checkmark{}",
    "≥": r"$\ge$", "≤": r"$\le$", "→": r"$\to$", "\u202f": r"\,", "\xa0": "~",
}  # fmt: skip


def latex_text(text: str) -> str:
    """Any text so that LaTeX prints it and does nothing else."""
    return "".join(_LATEX.get(sign, sign) for sign in printable(text))


def _latex(table: Table) -> str:
    """A ``table`` environment; needs the package booktabs."""
    kinds = "".join("l" if column.unit is Unit.WORDS else "r" for column in table.columns)
    rows = [_latex_row(_fields(row, table.columns)) for row in table.rows]
    notes = [f"  \\par\\footnotesize {latex_text(note)}" for note in table.notes]
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            f"  \\caption{{{latex_text(table.title)}}}",
            f"  \\label{{tab:{table.name}}}",
            f"  \\begin{{tabular}}{{{kinds}}}",
            r"    \toprule",
            f"    {_latex_row([column.shown for column in table.columns])}",
            r"    \midrule",
            *(f"    {row}" for row in rows),
            r"    \bottomrule",
            r"  \end{tabular}",
            *notes,
            r"\end{table}",
        ]
    )


def _latex_row(fields: Sequence[str]) -> str:
    return " & ".join(latex_text(field) for field in fields) + r" \\"
