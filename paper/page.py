"""The page and its appendix: templates whose prose is filled with named numbers, tables and figures."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from paper.claims import claims
from paper.clocks import clocks
from paper.congestion import congestion_controls
from paper.data_set import DataSet
from paper.endpoints import conditions
from paper.failures import failures
from paper.figures import Figure
from paper.goodput import formulas, implementations, per_link, senders
from paper.influence import acknowledgements, influence
from paper.numbers import Numbers
from paper.queues import queues
from paper.sensitivity import delays, images, repeated, seeds
from paper.single_runs import figures_of_the_paper, unpaced_starts, windows
from paper.sweeps import sweeps
from quicsat.report.drawing import draw

TEMPLATES = Path(__file__).parent / "templates"
PAGES = ("index", "appendix")
SUBJECTS: Sequence[Callable[[DataSet, Numbers], None]] = (
    conditions, per_link, implementations, senders, formulas, failures, influence, acknowledgements,
    congestion_controls, seeds, delays, repeated, images, queues, sweeps, clocks, windows, unpaced_starts,
    figures_of_the_paper, claims,
)  # fmt: skip
UNITS = {"[bit/s]": (1e6, "[Mbit/s]", 2), "[B]": (1024, "[KiB]", 0), "[s]": (1, "[s]", 1)}
"""How a page shows columns with these units: divisor, unit, digits."""
COUNTS = ("runs", "pairs", "timed out", "failed", "succeeded", "clients", "servers", "implementations")


def compute(data: DataSet) -> Numbers:
    """All named numbers and tables."""
    numbers = Numbers()
    for subject in SUBJECTS:
        subject(data, numbers)
    return numbers


@dataclass
class Page:
    """What a template can call; figures are numbered over all pages."""

    numbers: Numbers
    figures: Mapping[str, Figure]
    number: int = field(default=0)

    def figure(self, file: str, of_the_paper: str = "") -> str:
        """A figure above its numbered caption; ``of_the_paper``: the figure of the paper that shows the same."""
        self.number += 1
        found, also = self.figures[file], f" ({of_the_paper} of the paper)" if of_the_paper else ""
        caption = f"**Figure {self.number}{also}:** {found.title}. {found.caption}"
        return f"![Figure {self.number}: {found.title}](figures/{file})\n\n{caption}"

    def table(self, name: str, columns: Mapping[str, str], shares: Sequence[str] = ()) -> str:
        """Some columns of a table, by name and heading; ``shares`` are shown as per cent."""
        frame = self.numbers.tables[name]
        heads = [_heading(head, column, shares) for column, head in columns.items()]
        rows = [[_cell(value, column, shares) for column, value in zip(columns, row, strict=True)]
                for row in frame[list(columns)].itertuples(index=False)]  # fmt: skip
        return draw(heads, rows, markdown=True, right=heads[1:])

    def render(self, template: str) -> str:
        """A page as Markdown."""
        environment = Environment(loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, autoescape=False,
                                  trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)  # fmt: skip
        numbers = self.numbers
        words = {"n": numbers.text, "range": numbers.range, "interval": numbers.interval, "figure": self.figure,
                 "table": self.table, "tables": sorted(numbers.tables)}  # fmt: skip
        text = environment.get_template(f"{template}.md.jinja").render(words)
        return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _heading(head: str, column: str, shares: Sequence[str]) -> str:
    if column in shares:
        return f"{head} [%]"
    return next((f"{head} {unit}" for end, (_, unit, _) in UNITS.items() if column.endswith(end)), head)


def _cell(value: Any, column: str, shares: Sequence[str]) -> str:
    if isinstance(value, str):
        return value
    if value is None or value != value:
        return ""
    if column in shares:
        return f"{100 * value:.0f}"
    for end, (divisor, _, digits) in UNITS.items():
        if column.endswith(end):
            return f"{value / divisor:.{digits}f}"
    return f"{value:.0f}" if column in COUNTS or float(value).is_integer() else f"{value:.2f}"


def write(data: DataSet, figures: Mapping[str, Figure], output: Path) -> Numbers:
    """Write the pages and the tables below ``output``; all named numbers."""
    numbers = compute(data)
    page = Page(numbers, figures)
    for name in PAGES:
        (output / f"{name}.md").write_text(page.render(name), encoding="utf-8")
    numbers.write(output / "tables")
    return numbers
