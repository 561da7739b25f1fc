"""What can be measured, for a terminal: a line for each test case, workload and implementation, or all about one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from quicsat.model.emulated_link import EmulatedLink
from quicsat.model.implementation import Implementation
from quicsat.model.link_format import format_link
from quicsat.model.test_case import TestCase, files_in_words
from quicsat.model.text import counted, printable
from quicsat.model.units import byte_size, seconds
from quicsat.model.workload import WorkloadFiles
from quicsat.report.drawing import describe

SHORTEST = 20
"""Characters of a description that are shown at least."""
FUNCTIONAL, MEASUREMENTS = "Functional tests", "Measurements"
WEBTRANSPORT, SWEEPS, REAL_LINKS = "Tests of WebTransport (-p webtransport)", "Sweeps", "Real links (--hosts)"
WORKLOADS, IMPLEMENTATIONS = "Workloads, for a link: -t sat+page-p50", "Implementations"
FOLDERS = {"paper": "Further links of the paper", "satcom": "Satellite access", "ci": "Continuous integration"}
"""Titles of the folders below ``testcases``; the user's own are titled with their names."""
ORDER = (FUNCTIONAL, MEASUREMENTS, *FOLDERS.values())


class Entry(NamedTuple):
    """What a line and the details say of something."""

    name: str
    short: str
    """Its abbreviation."""
    text: str
    details: tuple[tuple[str, str], ...]


Groups = dict[str, list[Entry]]
"""Title → entries."""


def test_cases(known: Mapping[str, TestCase], on_request: Mapping[str, TestCase]) -> Groups:
    """The test cases and families; those ``on_request`` have the titles of their folders."""
    found: Groups = {title: [] for title in ORDER}
    families: dict[tuple[str, str], list[TestCase]] = {}
    for case in [*known.values(), *on_request.values()]:
        title = _title(case, requested=case.name in on_request)
        families.setdefault((title, case.family.name if case.family else case.name), []).append(case)
    for (title, name), cases in families.items():
        found.setdefault(title, []).append(_case_entry(name, cases))
    return {title: entries for title, entries in found.items() if entries}


def _title(case: TestCase, *, requested: bool) -> str:
    folder = PurePath(case.source).parent.name
    if requested:
        return FOLDERS.get(folder, f"{folder}/")
    if not isinstance(case.link, EmulatedLink):
        return REAL_LINKS
    if case.webtransport is not None:
        return WEBTRANSPORT
    if case.family:
        return SWEEPS
    return FUNCTIONAL if case.functional else MEASUREMENTS


def _case_entry(name: str, cases: Sequence[TestCase]) -> Entry:
    first = cases[0]
    members = counted(len(cases), "member") if first.family else ""
    details = (
        ("test case" if not first.family else "family", name),
        ("abbreviation", first.family.abbreviation if first.family else first.abbreviation),
        ("description", first.description),
        ("link", format_link(first.link)),
        ("files", files_in_words(first)),
        ("repetitions", str(first.repetitions)),
        ("timeout", seconds(first.timeout)),
        ("members", f"{len(cases)}: {_values(cases)}" if members else ""),
        ("defined in", first.source),
    )
    text = f"{first.description} ({members})" if members else first.description
    return Entry(name, details[1][1], text, details)


def _values(cases: Iterable[TestCase]) -> str:
    """``loss 0 %, 1 %; delay 15 ms, 300 ms``."""
    values: dict[str, dict[str, None]] = {}
    for case in cases:
        for value in case.family.values if case.family else ():
            values.setdefault(value.key, {})[value.text] = None
    return "; ".join(f"{key} {', '.join(texts)}" for key, texts in values.items())


def workloads(known: Iterable[WorkloadFiles]) -> Groups:
    """What can be fetched over the link of a test case: ``-t sat+page-p50``."""
    return {WORKLOADS: [_workload_entry(each) for each in known]}


def _workload_entry(each: WorkloadFiles) -> Entry:
    name, description = f"+{each.workload.name}", each.description.rstrip(",")
    details = (
        ("workload", name),
        ("abbreviation", each.abbreviation),
        ("description", description),
        ("objects", str(len(each.file_sizes) or 1)),
        ("size", byte_size(sum(each.file_sizes)) if each.file_sizes else ""),
        ("requests", each.workload.requests.value),
    )
    return Entry(name, each.abbreviation, description, details)


def implementations(known: Iterable[Implementation]) -> Groups:
    """What can be measured with, in which role, under which congestion control, and with which variants."""
    return {IMPLEMENTATIONS: [_implementation_entry(each) for each in known]}


def _implementation_entry(each: Implementation) -> Entry:
    roles, protocols = " and ".join(sorted(each.roles)), ", ".join(each.protocols)
    control = (each.congestion_control and each.congestion_control.default) or "unknown"
    variants = ", ".join(variant.name for variant in each.variants)
    details = (
        ("implementation", each.name),
        ("roles", roles),
        ("protocols", protocols),
        ("congestion control", control),
        ("variants", variants),
        ("public image", each.image or "none"),
        ("built from", each.build or "not built here"),
    )
    text = f"{roles}, {protocols}, {control}"
    return Entry(each.name, "", f"{text}, {counted(len(each.variants), 'variant')}" if variants else text, details)


def lines(groups: Groups, width: int | None = None) -> str:
    """A line for each entry below the title of its group; descriptions end between words where the line is full."""
    return "\n\n".join("\n".join([title, *_lines(entries, width)]) for title, entries in groups.items() if entries)


def _lines(entries: Sequence[Entry], width: int | None) -> Iterator[str]:
    heads = [(printable(entry.name), printable(entry.short)) for entry in entries]
    name, short = (max(map(len, column)) for column in zip(*heads, strict=True))
    texts = [printable(entry.text) for entry in entries]
    room = max(map(len, texts)) if width is None else width - name - 4 - (short + 2 if short else 0)
    longest = max(room, SHORTEST)
    begins = [_beginning(text, longest) for text in texts]
    for head, text, begin in zip(heads, texts, begins, strict=True):
        shown = begin if begins.count(begin) == 1 else _both_ends(text, longest)
        yield f"  {head[0]:{name}}  {f'{head[1]:{short}}  ' if short else ''}{shown}"


def _beginning(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    return f"{text[: longest - 1].rpartition(' ')[0].rstrip(',;:')} …"


def _both_ends(text: str, longest: int) -> str:
    """Of a text that begins like another one, what fits of its beginning and its end."""
    if len(text) <= longest:
        return text
    end = text[-(longest * 2 // 3) :].partition(" ")[2]
    return f"{_beginning(text, longest - len(end) - 1)} {end}"


def details(entries: Iterable[Entry], width: int | None = None) -> str:
    """All about each entry, as a block of lines."""
    return "\n\n".join(describe(entry.details, width) for entry in entries)
