"""A judgement as Markdown for a pull request or a job summary: the changed cells with reasons and pictures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from quicsat.model.results import ResultSet
from quicsat.model.text import counted, printable
from quicsat.model.units import mbit_per_s
from quicsat.report.cell_reasons import REFUSED, reasons
from quicsat.statistics.comparison import Conclusion
from quicsat.statistics.judgement import OPEN, Finding, JudgedCell, Judgement

CellKey = tuple[str, str, str]
"""Server, client, test case."""
MOST_CELLS = 20
"""Changed cells that are told in full."""
LARGEST = 60_000
"""Characters of the whole text; GitHub takes 65,536 in a comment."""
TICKS = re.compile("`+")
SIGNS = {
    **dict.fromkeys((Finding.BROKEN, Finding.FAILURE, Finding.LOST, Finding.SLOWER, Finding.BELOW_FLOOR), "❌"),
    **dict.fromkeys((Finding.ERROR, Finding.UNEXPECTED_SUCCESS, Finding.SLIGHTLY_SLOWER, *OPEN), "⚠️"),
    **dict.fromkeys((Finding.FIXED, Finding.FASTER), "✅"),
}
_HEADINGS = {Conclusion.WORSE: "❌", Conclusion.FINE: "✅"}
"""All others are warnings."""


def comment(
    results: ResultSet, judgement: Judgement, pictures: Mapping[CellKey, str] | None = None, where: str = ""
) -> str:
    """The text.

    ``pictures``: the name of the picture of each changed cell that has one; ``where``: in words, where they are. Text
    of images stands in code spans, in which neither links nor mentions nor HTML work.
    """
    changed = judgement.changed
    told, rest = changed[:MOST_CELLS], len(changed) - MOST_CELLS
    parts = [f"### {_HEADINGS.get(judgement.conclusion, '⚠️')} quicsat: {judgement.conclusion}"]
    parts += [f"**{judgement.unfinished}**"] if judgement.unfinished else []
    parts += [code(each.text) for each in judgement.groups]
    parts += [f"{_first_up(judgement.counts)}.", *map(code, judgement.builds), *map(code, judgement.open)]
    parts += [judgement.power] if judgement.power else []
    if changed:
        parts.append(_table(told))
        parts += [_section(cell, (pictures or {}).get(_key(cell), ""), where) for cell in told]
    if rest > 0:
        parts.append(f"And {counted(rest, 'more cell')}.")
    if judgement.notes:
        parts.append("\n".join(["**Notes**", "", *(f"- {code(note)}" for note in judgement.notes)]))
    parts.append(_conditions(results))
    return _limited(parts)


def refusal(faults: Sequence[str]) -> str:
    """The text for a campaign that cannot be compared with its baseline."""
    return _limited(["### ❌ quicsat: no verdict", f"{REFUSED}:", "\n".join(f"- {code(fault)}" for fault in faults)])


def _table(cells: Sequence[JudgedCell]) -> str:
    rows = [
        "| | test case | server | client | finding | baseline | now | change |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for cell in cells:
        sample, change = cell.sample, cell.change
        before = change.first.mean if change is not None else None
        ratio = change.ratio if change is not None else None
        fields = (
            SIGNS[cell.finding], _field(cell.case.name), _field(sample.server), _field(sample.client),
            cell.finding.value, _rate(before), _rate(sample.mean), "" if ratio is None else f"{ratio * 100:+.1f} %",
        )  # fmt: skip
        rows.append(f"| {' | '.join(fields)} |")
    return "\n".join(rows)


def _rate(rate: float | None) -> str:
    return "" if rate is None else mbit_per_s(rate)


def _section(cell: JudgedCell, picture: str, where: str) -> str:
    sample = cell.sample
    title = f"{cell.case.name}, server {sample.server}, client {sample.client}"
    lines = [f"- {code(text)}" for text in (*cell.details, *reasons(cell))]
    if picture:
        lines.append(f"- Time-offset diagram: {code(picture)}{f' in {where}' if where else ''}")
    return "\n".join([f"#### {SIGNS[cell.finding]} {code(title)}", "", *lines])


def _conditions(results: ResultSet) -> str:
    manifest = results.manifest
    tested = [
        f"{name} {image.version or image.reference}".strip()
        for name, image in manifest.images.items()
        if name in {*manifest.servers, *manifest.clients}
    ]
    version = manifest.versions.quicsat if manifest.versions is not None else manifest.tool_version
    lines = [f"quicsat {version}, {manifest.time}, seed {manifest.seed}", *([", ".join(tested)] if tested else [])]
    listed = [f"- {code(line)}" for line in lines]
    return "\n".join(["<details><summary>Conditions</summary>", "", *listed, "", "</details>"])


def _limited(parts: Sequence[str]) -> str:
    kept, size = [], 0
    for part in parts:
        size += len(part) + 2
        if size > LARGEST:
            kept.append("The rest is left out, because it is too long.")
            break
        kept.append(part)
    return "\n\n".join(kept) + "\n"


def code(text: str) -> str:
    """Any text as a code span: nothing in it is a link, a mention or HTML."""
    clean = TICKS.sub("'", printable(text, None))
    return f"`{clean}`" if clean else ""


def _field(text: str) -> str:
    """The same in a table, where a vertical bar would begin a new field."""
    return code(text).replace("|", "\\|")


def _first_up(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}" if text else "No cell was measured"


def _key(cell: JudgedCell) -> CellKey:
    return cell.sample.server, cell.sample.client, cell.case.name
