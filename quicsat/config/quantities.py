"""Parses text with a unit, from files and options, to numbers in SI base units.

Every parser takes text and raises ``ValueError`` with the fault, worded to follow the value:
``"300" has no unit; write for example "300 ms" (units: us, ms, s, min, h).``
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import TypeVar

from quicsat.model.names import NAME_RULE, did_you_mean, is_name
from quicsat.model.text import quoted

N = TypeVar("N", int, float)
E = TypeVar("E", bound=StrEnum)

# Bounded, so that neither a number nor its product with a unit loses a digit in a Decimal.
_NUMBER = r"[+-]?[0-9]{1,15}(?:\.[0-9]{1,9})?"
_QUANTITY = re.compile(rf"({_NUMBER})(?![0-9.])\s*(\S*)")
_LONG = re.compile(r"[+-]?(?:[0-9]{16,}(?:\.[0-9]+)?|[0-9]+\.[0-9]{10,})\s*[^0-9.\s]*")
_EXPONENT = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?[eE][+-]?[0-9]+\s*[^0-9.\s]*")
_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")


@dataclass(frozen=True)
class Dimension:
    """A physical quantity and its units."""

    name: str
    example: str
    units: dict[str, Decimal]
    """Unit -> its size in the SI base unit."""
    misspelt: dict[str, str] = field(default_factory=dict)
    """What is often written for a unit that is spelt otherwise."""


_OTHER_NAMES_OF_TIMES = {
    "us": "usec usecs microsecond microseconds µs",
    "ms": "msec msecs millisecond milliseconds",
    "s": "sec secs second seconds",
    "min": "m mins minute minutes",
    "h": "hr hrs hour hours",
}
TIME = Dimension(
    "duration",
    "300 ms",
    {"us": Decimal("1e-6"), "ms": Decimal("1e-3"), "s": Decimal(1), "min": Decimal(60), "h": Decimal(3600)},
    {word: unit for unit, words in _OTHER_NAMES_OF_TIMES.items() for word in words.split()},
)
RATE = Dimension(
    "rate",
    "20 Mbit/s",
    {"bit/s": Decimal(1), "kbit/s": Decimal(10**3), "Mbit/s": Decimal(10**6), "Gbit/s": Decimal(10**9)},
    {f"{prefix}bps": f"{prefix}bit/s" for prefix in ("", "k", "M", "G")},
)
SIZE = Dimension(
    "size",
    "10 MiB",
    {
        "B": Decimal(1),
        "kB": Decimal(10**3),
        "MB": Decimal(10**6),
        "GB": Decimal(10**9),
        "KiB": Decimal(2**10),
        "MiB": Decimal(2**20),
        "GiB": Decimal(2**30),
    },
)
SHARE = Dimension("share", "1 %", {"%": Decimal("0.01")})
LEVEL = Dimension("level", "12 dB", {"dB": Decimal(1)})
SLOPE = Dimension("slope", "0.5 dB/s", {"dB/s": Decimal(1)})

DIMENSIONS = (TIME, RATE, SIZE, SHARE, LEVEL, SLOPE)


class NoQuantityError(ValueError):
    """Text that is no quantity of the wanted kind; ``fault`` says so without an end."""

    def __init__(self, fault: str, example: str = "", units: str = "", hint: str = "") -> None:
        self.fault = fault
        self._units = units and f" (units: {units})"
        self._hint = hint
        wanted = example and f"; write for example {quoted(example)}"
        super().__init__(f"{fault}{wanted}{self._units}.{hint}")

    def with_range(self, least: str, most: str) -> str:
        """The fault, with the allowed range in place of an example."""
        return f"{self.fault}; allowed: {least} to {most}{self._units}.{self._hint}"


def _parse(text: str, dimension: Dimension) -> Decimal:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise NoQuantityError(_why_not_read(text, f"is no {dimension.name}"), dimension.example)
    number, unit = match.groups()
    allowed = ", ".join(dimension.units)
    if not unit:
        raise NoQuantityError("has no unit", dimension.example, allowed)
    if unit not in dimension.units:
        meant = dimension.misspelt.get(unit)
        hint = f" Did you mean {meant}?" if meant else did_you_mean(unit, dimension.units)
        raise NoQuantityError(f"has the unknown unit {quoted(unit)}; units: {allowed}", hint=hint)
    return Decimal(number) * dimension.units[unit]


def _why_not_read(text: str, fault: str) -> str:
    """What is wrong with text that is too long for a number, or written in another way; else the ``fault``."""
    if _LONG.fullmatch(text.strip()):
        return "has more than 15 digits before the point or 9 behind it"
    return f"{fault} without an exponent" if _EXPONENT.fullmatch(text.strip()) else fault


def quantity(text: str) -> tuple[float, str, float] | None:
    """``"0.1 %"`` -> ``(0.001, "%", 0.01)``: number in SI base units, unit, and its size; None if it is no number.

    A word that is no known unit is kept: ``"50 packets"`` -> ``(50.0, "packets", 1.0)``.
    """
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        return None
    number, unit = match.groups()
    size = next((each.units[unit] for each in DIMENSIONS if unit in each.units), Decimal(1))
    return float(Decimal(number) * size), unit, float(size)


def _in_base_units(dimension: Dimension) -> Callable[[str], float]:
    """A parser for quantities of a dimension: ``"300 ms"`` -> ``0.3`` seconds, ``"20 Mbit/s"`` -> ``20000000.0``."""
    return lambda text: float(_parse(text, dimension))


duration, rate, share, level, slope = map(_in_base_units, (TIME, RATE, SHARE, LEVEL, SLOPE))


def duration_or_seconds(text: str) -> float:
    """``"2min"`` -> ``120.0``; a number without a unit counts seconds, ``"3.5"`` -> ``3.5``: for options only."""
    return duration(f"{text} s" if re.fullmatch(_NUMBER, text.strip()) else text)


def size(text: str) -> int:
    """``"10 MiB"`` -> ``10485760`` bytes; only whole bytes."""
    number = _parse(text, SIZE)
    if number != int(number):
        raise NoQuantityError("is no whole number of bytes")
    return int(number)


def probability(text: str) -> float:
    """``"0.017"`` or ``"1.7 %"`` -> ``0.017``."""
    return float(text) if re.fullmatch(_NUMBER, text) else share(text)


def count(text: str) -> int:
    """``"25"`` -> ``25``."""
    if _WHOLE.fullmatch(text) is None:
        raise NoQuantityError(_why_not_read(text, "is no whole number"))
    return int(text)


def decimal(text: str) -> float:
    """``"0.5"`` -> ``0.5``."""
    if re.fullmatch(_NUMBER, text) is None:
        raise NoQuantityError(_why_not_read(text, "is no number"))
    return float(text)


def within(parse: Callable[[str], N], least: str, most: str) -> Callable[[str], N]:
    """``parse``, for values from ``least`` to ``most`` only; the bounds have the syntax of the value."""
    low, high = parse(least), parse(most)

    def parse_within(text: str) -> N:
        try:
            value = parse(text)
        except NoQuantityError as fault:
            raise ValueError(fault.with_range(least, most)) from None
        if not low <= value <= high:
            raise ValueError(f"is out of range: {least} to {most}.")
        return value

    return parse_within


def valid(is_valid: Callable[[str], object], fault: str) -> Callable[[str], str]:
    """A parser for text that is valid as it is; ``fault``: what a message says of any other, without the full stop."""

    def parse_text(text: str) -> str:
        if not is_valid(text):
            raise ValueError(f"{fault}.")
        return text

    return parse_text


def matching(pattern: str, rule: str) -> Callable[[str], str]:
    """A parser for text that is a ``pattern`` (regular expression) as a whole; ``rule`` says the same in words."""
    return valid(re.compile(pattern).fullmatch, f"must be {rule}")


def word_or_mapping(word: str, fault: str) -> Callable[[str], str]:
    """A parser for the only word that may take the place of a mapping; ``fault`` as in :func:`valid`."""
    return valid(lambda text: text == word, fault)


parse_name = valid(is_name, f"must be {NAME_RULE}")
one_line = matching(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,300}", "one line of 1 to 300 characters")


def member_of(kind: type[E]) -> Callable[[str], E]:
    """A parser for a value of an enumeration, in exactly this spelling."""
    parse_word = one_of(member.value for member in kind)
    return lambda text: kind(parse_word(text))


def one_of(words: Iterable[str]) -> Callable[[str], str]:
    """A parser for one of some words, in exactly this spelling."""
    known = tuple(words)

    def parse_word(text: str) -> str:
        if text not in known:
            raise ValueError(f"is none of {', '.join(known)}.{did_you_mean(text, known)}")
        return text

    return parse_word
