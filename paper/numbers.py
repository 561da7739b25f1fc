"""Named numbers and tables: everything that the page may state."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import pandas as pd

from quicsat.model.units import KIB, MBPS, PERCENT


class Unit(StrEnum):
    """Unit of a number; it decides how the page shows the number."""

    COUNT = "count"
    RATE = "bit/s"
    SHARE = "1"
    SECONDS = "s"
    BYTES = "B"
    RATIO = "ratio"
    TEXT = "text"


DIGITS = {Unit.COUNT: 0, Unit.RATE: 2, Unit.SHARE: 0, Unit.SECONDS: 1, Unit.BYTES: 0, Unit.RATIO: 2}
"""Digits behind the point on the page."""
SCALE = {Unit.RATE: MBPS, Unit.SHARE: PERCENT, Unit.BYTES: KIB}
SHOWN = {Unit.RATE: " Mbit/s", Unit.SHARE: " %", Unit.SECONDS: " s", Unit.BYTES: " KiB"}
Value = float | int | str | None


@dataclass(frozen=True)
class Number:
    """A value with its unit, in SI units."""

    value: Value
    unit: Unit


@dataclass
class Numbers:
    """All named numbers and tables of the report."""

    values: dict[str, Number] = field(default_factory=dict)
    tables: dict[str, Any] = field(default_factory=dict)
    """DataFrames by the name of their CSV file, in SI units."""

    def add(self, name: str, value: Value, unit: Unit = Unit.COUNT) -> None:
        """Add a number; each name is used once."""
        if name in self.values:
            raise ValueError(f"The number {name} exists already.")
        self.values[name] = Number(value if isinstance(value, str) or value is None else _plain(value), unit)

    def ends(self, name: str, low: float | None, high: float | None, unit: Unit) -> None:
        """Add the ends of a range or an interval of the number ``name``."""
        self.add(f"{name}.low", low, unit)
        self.add(f"{name}.high", high, unit)

    def span(self, name: str, values: Iterable[float], unit: Unit) -> None:
        """Add the smallest and the largest of some values."""
        found = [float(value) for value in values]
        self.ends(name, min(found), max(found), unit)

    def names(self, name: str, words: Iterable[str]) -> None:
        """Add a list of names, and how many there are."""
        found = list(words)
        self.add(f"{name}.names", listed(found), Unit.TEXT)
        self.add(f"{name}.count", len(found))

    def table(self, name: str, rows: Any) -> None:
        """Add a table: a DataFrame, or rows as mappings."""
        if name in self.tables:
            raise ValueError(f"The table {name} exists already.")
        self.tables[name] = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))

    # ---- on the page --------------------------------------------------------------------------

    def text(self, name: str, digits: int | None = None, *, unit: bool = True) -> str:
        """A number as the page shows it: ``28 %``; without its unit: ``28``."""
        number = self.values[name]
        if number.value is None or isinstance(number.value, str):
            return number.value or "unknown"
        places = DIGITS[number.unit] if digits is None else digits
        value = f"{number.value / SCALE.get(number.unit, 1):,.{places}f}"
        return f"{value}{SHOWN.get(number.unit, '') if unit else ''}"

    def range(self, name: str, digits: int | None = None) -> str:
        """``7.84 to 9.93 Mbit/s``."""
        low, high = self.text(f"{name}.low", digits, unit=False), self.text(f"{name}.high", digits)
        return high if high.startswith(f"{low} ") or low == high else f"{low} to {high}"

    def interval(self, name: str, digits: int | None = None) -> str:
        """``89 % (66 to 97 %)``."""
        return f"{self.text(name, digits)} ({self.range(name, digits)})"

    def write(self, directory: Path) -> None:
        """Write the tables as CSV, and all numbers as ``numbers.json``."""
        directory.mkdir(parents=True, exist_ok=True)
        for old in directory.glob("*"):
            old.unlink()
        for name, frame in self.tables.items():
            frame.to_csv(directory / f"{name}.csv", index=False, float_format="%.6g", lineterminator="\n")
        values: Mapping[str, object] = {
            name: {"value": number.value, "unit": number.unit} for name, number in sorted(self.values.items())
        }
        (directory / "numbers.json").write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _plain(value: Any) -> float | int | None:
    """A number without numpy's types; None for NaN."""
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, float):
        return None if math.isnan(number) else float(f"{number:.9g}")
    return int(number)


def listed(words: Iterable[str]) -> str:
    """``sat``; ``terrestrial and sat``; ``terrestrial, sat and satloss``; ``none``."""
    found = list(words)
    if not found:
        return "none"
    *others, last = found
    return f"{', '.join(others)} and {last}" if others else last
