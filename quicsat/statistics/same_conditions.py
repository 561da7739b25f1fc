"""What differs between the conditions of a test case in two campaigns, in words; pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields

from quicsat.model.link_format import format_link
from quicsat.model.test_case import TestCase, constant_rate, files_in_words
from quicsat.model.text import printable
from quicsat.model.units import mbit_per_s, seconds

NO_CONDITIONS = frozenset(
    {"name", "abbreviation", "description", "source", "repetitions", "objectives", "random_numbers_of"}
)
"""Fields of a test case that do not change a run of it with the same seed."""
IN_FILES_OF_OTHERS = frozenset({"timeout", "link"})
"""Conditions that files of other runners contain at least in part: the time limit, and the rate of the link."""


def differing(before: TestCase, after: TestCase) -> str:
    """``time limit 60.0 s → 5.0 s, chain length``: with values if they are short; empty if nothing known differs."""
    return ", ".join(_differing(before, after))


def _differing(before: TestCase, after: TestCase) -> Iterator[str]:
    conditions = [each.name for each in fields(TestCase) if each.name not in NO_CONDITIONS]
    partly = before.partly_known or after.partly_known
    for field in (name for name in conditions if not partly or name in IN_FILES_OF_OTHERS):
        if getattr(before, field) == getattr(after, field):
            continue
        if field == "timeout":
            if before.timeout and after.timeout:
                yield _changed("time limit", seconds(before.timeout), seconds(after.timeout))
        elif field == "link" and partly:
            yield from _rates(constant_rate(before.link), constant_rate(after.link))
        elif field == "file_sizes":
            yield _changed("files", files_in_words(before), files_in_words(after))
        elif field == "link":
            yield _changed("link", format_link(before.link), format_link(after.link))
        else:
            yield field.replace("_", " ")


def _rates(before: float | None, after: float | None) -> Iterator[str]:
    if before is not None and after is not None and not math.isclose(before, after):
        yield _changed("rate of the link", mbit_per_s(before), mbit_per_s(after))


def _changed(name: str, before: str, after: str) -> str:
    """Without values if they differ in what their words leave out."""
    return printable(f"{name} {before} → {after}", None) if before != after else name
