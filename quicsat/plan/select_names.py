"""The values that the names on a command line select, and the faults of these names."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from quicsat.model.names import did_you_mean
from quicsat.model.test_case import TestCase
from quicsat.model.text import command_line, quoted

T = TypeVar("T")
LIST = {"test case": f"To list all: {command_line('list', 'tests')}"}
"""What a message says instead of naming all values, if one of them is like a mistyped word, or they are many."""
MANY = 50


def select(
    names: Sequence[str], known: Mapping[str, T], what: str, abbreviations: Mapping[str, str] | None = None
) -> tuple[tuple[T, ...], list[str]]:
    """The values that ``names`` select, and a message for each name that selects none.

    Each of ``names`` may be a comma list; upper and lower case are alike; repeats collapse. ``what`` is the word for a
    value in messages, ``abbreviations`` maps further names to those in ``known``.
    """
    spellings = {short.casefold(): name for short, name in (abbreviations or {}).items()}
    spellings |= {name.casefold(): name for name in known}
    wanted = split(names)
    offered = listed(_names(known))
    problems = [] if wanted else [f"No {what} was named. Known: {offered}."]
    selected: dict[str, T] = {}
    for word in wanted:
        if (name := spellings.get(word.casefold())) is not None:
            selected[name] = known[name]
        else:
            hint = did_you_mean(word, [*known, *(abbreviations or {})])
            rest = f"Known: {offered}."
            if what in LIST and (hint or len(_names(known)) > MANY):
                rest = LIST[what]
            problems.append(f"No {what} {quoted(word)}.{hint} {rest}")
    return tuple(selected.values()), problems


def _names(known: Mapping[str, object]) -> dict[str, None]:
    """The names, with that of a family in place of its members."""
    families = {name: case.family.name for name, case in known.items() if isinstance(case, TestCase) and case.family}
    return dict.fromkeys(families.get(name, name) for name in known)


def split(names: Sequence[str]) -> list[str]:
    """The words of comma lists, without blanks around them and without empty ones."""
    return [word for name in names for part in name.split(",") if (word := part.strip())]


def listed(names: Iterable[str]) -> str:
    """The names as a comma list."""
    return ", ".join(names) or "none"
