"""What differs between the conditions of a test case in two campaigns, in words; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from interop.model.link_format import format_link
from interop.model.test_case import TestCase, files_in_words
from interop.model.text import printable
from interop.model.units import seconds

NO_CONDITIONS = frozenset({"name", "abbreviation", "description", "source", "repetitions", "objectives"})
"""Fields of a test case that do not change a run of it."""


def differing(before: TestCase, after: TestCase) -> str:
    """``time limit 60.0 s → 5.0 s, chain length``: values where they are short; empty if all conditions are equal."""
    return ", ".join(_differing(before, after))


def _differing(before: TestCase, after: TestCase) -> Iterator[str]:
    for field in (each.name for each in fields(TestCase) if each.name not in NO_CONDITIONS):
        if getattr(before, field) == getattr(after, field):
            continue
        if field == "timeout":
            yield _changed("time limit", seconds(before.timeout), seconds(after.timeout))
        elif field == "file_sizes":
            yield _changed("files", files_in_words(before), files_in_words(after))
        elif field == "link":
            yield _changed("link", format_link(before.link), format_link(after.link))
        else:
            yield field.replace("_", " ")


def _changed(name: str, before: str, after: str) -> str:
    """Without values if they differ in what their words leave out."""
    return printable(f"{name} {before} → {after}", None) if before != after else name
