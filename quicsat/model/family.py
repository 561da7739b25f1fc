"""Families of test cases: one document with lists of values makes a member for each combination of them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SweptValue:
    """The value of a swept key in one member of a family."""

    key: str
    """``loss``, or ``queue limit`` of a mapping in a mapping; keys of the link are not preceded by ``link``."""
    text: str
    """As written in the document: ``0.1 %``."""
    number: float | None = None
    """In SI base units; None if the value is a word."""
    unit: str = ""
    """As written, ``%``; empty if there is none."""
    unit_size: float = 1.0
    """One unit in SI base units: 0.01 for ``%``."""


@dataclass(frozen=True)
class Family:
    """The family of a test case, and what the test case has of its swept keys."""

    name: str
    abbreviation: str
    values: tuple[SweptValue, ...]
    """One for each swept key, in the order of the document; all members have the same keys."""

    @property
    def words(self) -> str:
        """``loss 1 %, delay 15 ms``."""
        return ", ".join(f"{value.key} {value.text}" for value in self.values)
