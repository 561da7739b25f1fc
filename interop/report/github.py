"""A judgement as annotations of GitHub Actions: lines of its workflow commands."""

from __future__ import annotations

from interop.model.text import printable
from interop.report.cell_reasons import reasons
from interop.statistics.judgement import Finding, JudgedCell, Judgement

MOST_ANNOTATIONS = 10
"""Errors, and warnings, of a step that GitHub shows."""
WARNINGS = frozenset({Finding.ERROR, Finding.PARTLY_SLOWER, Finding.UNEXPECTED_SUCCESS})
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


def of_judgement(judgement: Judgement) -> tuple[str, ...]:
    """A line per unexpected cell, up to the number that GitHub shows, and a line per note."""
    errors = [cell for cell in judgement.cells if cell.unexpected]
    warnings = [cell for cell in judgement.cells if cell.finding in WARNINGS]
    return (
        *(_of_cell("error", cell) for cell in errors[:MOST_ANNOTATIONS]),
        *(command("error", "success rates", text) for text in judgement.groups),
        *([command("warning", "quicsat", judgement.unfinished)] if judgement.unfinished else []),
        *(_of_cell("warning", cell) for cell in warnings[:MOST_ANNOTATIONS]),
        *(command("notice", "quicsat", note) for note in judgement.notes),
    )


def _of_cell(level: str, cell: JudgedCell) -> str:
    sample = cell.sample
    title = f"{cell.case.name}, server {sample.server}, client {sample.client}: {cell.finding}"
    return command(level, title, "\n".join((*cell.details, *reasons(cell))))


def command(level: str, title: str, text: str) -> str:
    """A workflow command on one line, in which text cannot begin another command."""
    lines = "\n".join(printable(line, None) for line in text.splitlines())
    return f"::{level} title={_escaped(printable(title), _PROPERTY)}::{_escaped(lines, _DATA)}"


def _escaped(text: str, signs: dict[str, str]) -> str:
    return "".join(signs.get(sign, sign) for sign in text)
