"""A judgement as annotations of GitHub Actions: lines of its workflow commands."""

from quicsat.model.text import printable
from quicsat.report.cell_reasons import ALL_PAIRS, reasons
from quicsat.statistics.judgement import NEWS, Finding, JudgedCell, Judgement

MOST_ANNOTATIONS = 10
"""Errors, warnings, and notices, of a step that GitHub shows."""
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


def of_judgement(judgement: Judgement) -> tuple[str, ...]:
    """A line per changed cell, up to the number of each level that GitHub shows, and a line per note."""
    groups: dict[str, list[JudgedCell]] = {"error": [], "warning": [], "notice": []}
    for cell in judgement.changed:
        groups[_level(cell)].append(cell)
    lines = {level: [_of_cell(level, cell) for cell in cells[:MOST_ANNOTATIONS]] for level, cells in groups.items()}
    of_all = [(command("error" if each.worse else "notice", ALL_PAIRS, each.text)) for each in judgement.groups]
    return (
        *lines["error"],
        *of_all,
        *(command("warning", "quicsat", text) for text in (judgement.unfinished, *judgement.open) if text),
        *lines["warning"],
        *lines["notice"],
        *(command("notice", "quicsat", note) for note in judgement.notes),
    )


def _level(cell: JudgedCell) -> str:
    if cell.unexpected:
        return "error"
    return "notice" if cell.finding in NEWS - {Finding.UNEXPECTED_SUCCESS} else "warning"


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
