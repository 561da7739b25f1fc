"""Lines of the page: Markdown, and figures that are numbered in the order of the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from interop.report.table import Table, render

FIGURES = "figures"


@dataclass(frozen=True)
class Figure:
    """A picture, its title, what it shows, and the figure of the paper that shows the same."""

    file: str
    """Below ``FIGURES``."""
    title: str
    caption: str
    of_the_paper: str = ""

    def shows(self, abbreviation: str) -> bool:
        """Whether it shows a test case or family."""
        return Path(self.file).stem.endswith(f"-{abbreviation}")


Line = str | Figure


def numbered(lines: Iterable[Line]) -> Iterator[str]:
    """Lines of Markdown, with each figure as a picture above its numbered caption."""
    number = 0
    for line in lines:
        if isinstance(line, str):
            yield line
            continue
        number += 1
        also = f" ({line.of_the_paper} of the paper)" if line.of_the_paper else ""
        yield f"![Figure {number}: {line.title}]({FIGURES}/{line.file})"
        yield ""
        yield f"**Figure {number}{also}:** {line.title}. {line.caption}"
        yield ""


def rendered(table: Table) -> list[str]:
    """A table and an empty line."""
    return [render(table, "markdown"), ""]


def moment(stamp: str) -> str:
    """Date and minute of an RFC 3339 stamp."""
    return datetime.fromisoformat(stamp).strftime("%Y-%m-%d %H:%M")
