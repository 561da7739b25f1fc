"""A judgement as Markdown for a pull request or a job summary: the changed cells with reasons and pictures."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from quicsat.model.results import ResultSet
from quicsat.model.text import counted, numbered, printable
from quicsat.model.units import mbit_per_s
from quicsat.report.cell_reasons import REFUSED, changes, failures
from quicsat.statistics.comparison import Conclusion
from quicsat.statistics.judgement import OPEN, Finding, JudgedCell, Judgement
from quicsat.statistics.samples import Sample

CellKey = tuple[str, str, str]
"""Server, client, test case."""
MEMBERS: CellKey = ("", "", "")
"""Stands for all cells, among the pictures: the change of each member."""
MOST_CELLS = 20
"""Changed cells that are told in full."""
LARGEST = 60_000
"""Characters of the whole text; GitHub takes 65,536 in a comment."""
TICKS = re.compile("`+")
PLAIN = re.compile(r"(?:[^\W_]|[.,;:%()+\-/±'’…·×–−→≤≥])+")
"""A word in which no sign has a meaning in Markdown or HTML."""
LINK = re.compile(r"://|www\.|\bGH-\d|\b(?=[a-f]*\d)[0-9a-f]{7,40}\b", re.IGNORECASE)
"""What GitHub makes a link of without any sign: addresses, issues, commits."""
MARKER = re.compile(r"[-+]|\d+[.)]")
"""What begins a list, at the start of a text."""
MOST_MEMBERS = 20
"""Members whose changes are listed."""
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

    ``pictures``: the name of the picture of each changed cell that has one; ``where``: in words, where they are. Words
    that Markdown could take for links, mentions or HTML, and all that failed runs say, stand in code spans.
    """
    changed = judgement.changed
    told, rest = changed[:MOST_CELLS], len(changed) - MOST_CELLS
    parts = [f"### {_HEADINGS.get(judgement.conclusion, '⚠️')} quicsat: {judgement.conclusion}"]
    parts += [f"**{judgement.unfinished}**"] if judgement.unfinished else []
    for each in judgement.groups:
        details = "\n".join(f"- {prose(text)}" for text in each.details)
        parts += [f"**{prose(each.text)}**", *([details] if details else [])]
    parts += [f"{_first_up(judgement.counts)}.", *map(prose, judgement.builds), *map(prose, judgement.open)]
    parts += [judgement.power] if judgement.power else []
    if MEMBERS in (pictures or {}):
        parts.append(f"Change of each member: {code((pictures or {})[MEMBERS])} in {where}")
    if changed:
        parts.append(_table(told))
        parts += [_section(cell, (pictures or {}).get(_key(cell), ""), where) for cell in told]
    if rest > 0:
        parts.append(f"And {counted(rest, 'more cell')}.")
    if judgement.behaviour:
        parts.append(_listed("Changed behaviour in cells whose speed has not changed", judgement.behaviour))
    if judgement.notes:
        parts.append(_listed("Notes", judgement.notes))
    parts.append(_conditions(results))
    return _limited(parts)


def _listed(title: str, texts: Sequence[str]) -> str:
    rest = len(texts) - MOST_CELLS
    more = [f"- And {rest} more."] if rest > 0 else []
    return "\n".join([f"**{title}**", "", *(f"- {prose(text)}" for text in texts[:MOST_CELLS]), *more])


def refusal(faults: Sequence[str]) -> str:
    """The text for a campaign that cannot be compared with its baseline."""
    return _limited(["### ❌ quicsat: no verdict", f"{REFUSED}:", "\n".join(f"- {prose(fault)}" for fault in faults)])


def _table(cells: Sequence[JudgedCell]) -> str:
    rows = [
        "| | test case | server | client | finding | baseline | now | change |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for cell in cells:
        sample, change = cell.sample, cell.change
        before, now = (change.first, change.second) if change is not None else (None, sample)
        ratio = change.ratio if change is not None else None
        fields = (
            SIGNS[cell.finding], _field(cell.case.name), _field(sample.server), _field(sample.client),
            cell.finding.value, _rate(before), _rate(now), "" if ratio is None else f"{ratio * 100:+.1f} %",
        )  # fmt: skip
        rows.append(f"| {' | '.join(fields)} |")
    return "\n".join(rows)


def _rate(sample: Sample | None) -> str:
    """The mean goodput, and how many of the repetitions succeeded unless all did."""
    if sample is None:
        return ""
    mean = "" if sample.mean is None else mbit_per_s(sample.mean)
    return f"{mean} ({sample.succeeded}/{sample.conclusive})".strip() if sample.failed else mean


def _section(cell: JudgedCell, picture: str, where: str) -> str:
    sample = cell.sample
    title = f"{cell.case.name}, server {sample.server}, client {sample.client}"
    lines = [f"- {prose(text)}" for text in cell.details]
    lines += [f"- {code(text)}" for text in failures(cell)]
    lines += [f"- {prose(text)}" for text in (*_members(cell), *changes(cell))]
    if picture:
        lines.append(f"- Time-offset diagram: {code(picture)}{f' in {where}' if where else ''}")
    return "\n".join([f"#### {SIGNS[cell.finding]} {prose(title)}", "", *lines])


def _members(cell: JudgedCell) -> Iterator[str]:
    """The change of goodput of each member that both builds have."""
    if cell.change is None or not cell.change.members:
        return
    before, after = cell.change.first.by_repetition, cell.change.second.by_repetition
    both = sorted(before.keys() & after.keys())
    ratios = [f"{(after[member] / before[member] - 1) * 100:+.1f}" for member in both[:MOST_MEMBERS]]
    if ratios:
        yield f"Change of goodput in {numbered('member', both[:MOST_MEMBERS])}: {', '.join(ratios)} %."


def _conditions(results: ResultSet) -> str:
    manifest = results.manifest
    tested = [
        f"{name} {image.version or image.reference}".strip()
        for name, image in manifest.images.items()
        if name in {*manifest.servers, *manifest.clients}
    ]
    version = manifest.versions.quicsat if manifest.versions is not None else manifest.tool_version
    lines = [f"quicsat {version}, {manifest.time}, seed {manifest.seed}", *([", ".join(tested)] if tested else [])]
    listed = [f"- {prose(line)}" for line in lines]
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


def prose(text: str) -> str:
    """Any text as words; those that could be more than words are code spans."""
    clean = printable(text, None)
    runs = [(plain, " ".join(words)) for plain, words in groupby(clean.split(), _is_plain)]
    found = [words if plain else _marked(words) for plain, words in runs]
    if found and MARKER.match(found[0]) and not found[0].startswith("`"):
        return code(clean)
    return " ".join(found)


def _marked(words: str) -> str:
    """A code span, with the punctuation at its end outside."""
    bare = words.rstrip(",.;:)" if "(" not in words else ",.;:")
    return f"{code(bare)}{words[len(bare) :]}"


def _is_plain(word: str) -> bool:
    return PLAIN.fullmatch(word) is not None and LINK.search(word) is None


def _field(text: str) -> str:
    """The same in a table, where a vertical bar would begin a new field."""
    return code(text).replace("|", "\\|")


def _first_up(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}" if text else "No cell was measured"


def _key(cell: JudgedCell) -> CellKey:
    return cell.sample.server, cell.sample.client, cell.case.name
