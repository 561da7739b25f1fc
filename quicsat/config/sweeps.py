"""Makes the members of a family from a document of a test case that has lists of values."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from quicsat.config.quantities import quantity
from quicsat.config.yaml_fields import Fields
from quicsat.model.family import Family, SweptValue
from quicsat.model.names import MEMBER_SIGN, VALUE_SIGN, is_test_case
from quicsat.model.test_case import TestCase
from quicsat.model.text import quoted

MOST_MEMBERS = 500
"""Members of a family."""
TOP_KEYS = ("file size", "timeout", "certificate chain", "name length")
"""Keys that can be swept beside those of the link."""
OTHER_LISTS = ("drops", "profile")
"""Last word of keys of a link whose lists, or those within them, mean something else."""


@dataclass(frozen=True)
class Member:
    """A member of a family that is not yet read."""

    fields: Fields
    """The document with one value in place of each list."""
    family: Family

    def named(self, case: TestCase) -> TestCase:
        """The test case of the document as this member of the family: ``lossy@loss=1pct``, ``LOS@1pct``."""
        texts = [_slug(value.text) for value in self.family.values]
        keys = [_slug(value.key) for value in self.family.values]
        named = "".join(f"{MEMBER_SIGN}{key}{VALUE_SIGN}{text}" for key, text in zip(keys, texts, strict=True))
        return replace(
            case, name=case.name + named, abbreviation=MEMBER_SIGN.join((case.abbreviation, *texts)), family=self.family
        )


def swept_keys(fields: Fields) -> dict[tuple[str, ...], tuple[str, ...]]:
    """The swept keys of a document, as the keys that lead to each, with their values; empty if it is no family."""
    return fields.lists(_may_be_swept)


def _may_be_swept(place: tuple[str, ...]) -> bool:
    if place[0] != "link":
        return len(place) == 1 and place[0] in TOP_KEYS
    return not (len(place) == 2 and place[1].split()[-1:] in [[word] for word in OTHER_LISTS])


def members(fields: Fields) -> Iterator[Member]:
    """The members of the family that a document describes, the last key varying fastest; faults are noted."""
    swept = swept_keys(fields)
    lines = {place: fields.line_of(place[0]) for place in swept}
    faults = len(fields.problems)
    for place, texts in swept.items():
        if fault := _fault(" ".join(place[-1:]), texts):
            fields.note(fault, lines[place])
    if (count := math.prod(map(len, swept.values()))) > MOST_MEMBERS:
        fields.note(f"its lists make {count} members; at most {MOST_MEMBERS} are allowed.")
    if len(fields.problems) > faults:
        return
    name, abbreviation = (fields.read(key, str) or "" for key in ("name", "abbreviation"))
    for positions in product(*(range(len(texts)) for texts in swept.values())):
        values = tuple(
            _value(place, texts[position]) for (place, texts), position in zip(swept.items(), positions, strict=True)
        )
        chosen = dict(zip(swept, positions, strict=True))
        yield Member(fields.with_items(chosen), Family(name, abbreviation, values))


def check_member(fields: Fields, case: TestCase) -> None:
    """Report a member that cannot be run."""
    if case.real:
        fields.note("a real link has no lists of values; only an emulated link can be swept.", fields.line_of("link"))
    elif not is_test_case(case.name):
        fields.note(f"the name of its member {quoted(case.name)} is too long or has other characters than a-z, 0-9, "
                    "dot and hyphen.")  # fmt: skip


def _value(place: tuple[str, ...], text: str) -> SweptValue:
    key = " ".join(place[1:] if place[0] == "link" else place)
    number, unit, size = quantity(text) or (None, "", 1.0)
    return SweptValue(key, text, number, unit, size)


def _fault(key: str, texts: Sequence[str]) -> str:
    """What makes a list unfit to be swept; empty if nothing does."""
    seen: dict[object, str] = {}
    for text in texts:
        number = quantity(text)
        value = number[0] if number else _slug(text)
        if value in seen:
            return f"{key} lists the same value twice, {quoted(seen[value])} and {quoted(text)}."
        seen[value] = text
    return ""


def _slug(text: str) -> str:
    """``0.1 %`` -> ``0.1pct``, ``20 Mbit/s`` -> ``20mbit``, ``forward delay`` -> ``forward-delay``."""
    plain = text.strip().lower().replace("%", "pct").removesuffix("/s")
    plain = re.sub(r"(?<=[0-9])\s+(?=[a-z])", "", plain)
    return re.sub(r"[^a-z0-9.]+", "-", plain).strip("-") or "empty"
