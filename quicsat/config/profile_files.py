"""Reads link profiles from files: tables of rate, delay and loss over time, and traces of delivery opportunities.

Files are hostile: their size is limited, and every number is checked.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path

from quicsat.config.quantities import RATE, SHARE, TIME, Dimension, duration, rate, share, within
from quicsat.config.yaml_fields import Problem, display_path, read_text
from quicsat.model.emulated_link import Profile
from quicsat.model.text import counted, quoted
from quicsat.model.units import MIB

LARGEST_FILE = 8 * MIB
MOST_STEPS = 10_000
"""Of a profile; each is stored with the results."""
LONGEST = 3600.0
"""Seconds of a profile."""
PACKET_BITS = 8 * 1502
"""What a delivery opportunity carries: an IP packet of 1500 bytes, as the link counts it."""
DEFAULT_BIN = 0.1
"""Seconds in which the opportunities of a trace are counted."""
COLUMNS: Mapping[str, tuple[Dimension, Callable[[str], float]]] = {
    "time": (TIME, within(duration, "0 s", "1 h")),
    "rate": (RATE, within(rate, "0 bit/s", "100 Gbit/s")),
    "delay": (TIME, within(duration, "0 s", "60 s")),
    "loss": (SHARE, within(share, "0 %", "100 %")),
}
"""Columns of a table, and how their values are read."""
HEADER = "time (s), rate (Mbit/s), delay (ms), loss (%)"
"""Example of the first line of a table."""
_HEADING = re.compile(r"([a-z]+) ?[(\[]([^()\[\]]+)[)\]]")
_TIMESTAMP = re.compile(r"[0-9]{1,9}")


def read_profile_file(path: Path, problems: list[Problem], bin_size: float | None) -> Profile | None:
    """A table or a trace without its source; None if it has faults, the first of which is noted.

    ``bin_size``: seconds in which the opportunities of a trace are counted; None for the default.
    """
    text = read_text(path, problems, LARGEST_FILE)
    if text is None:
        return None
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    try:
        if not lines:
            raise _Fault(0, "holds no step.")
        if _TIMESTAMP.fullmatch(lines[0][1]):
            return _read_trace(lines, DEFAULT_BIN if bin_size is None else bin_size)
        if bin_size is not None:
            raise _Fault(lines[0][0], "is a table; only traces of delivery opportunities have a step.")
        return _read_table(lines)
    except _Fault as fault:
        problems.append(Problem(display_path(path), fault.line, fault.message))
        return None


class _Fault(Exception):  # noqa: N818 - what is wrong with a file
    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


# ---- tables ---------------------------------------------------------------------------------


def _read_table(lines: list[tuple[int, str]]) -> Profile:
    number, header = lines[0]
    columns = list(_headings(number, header))
    names = [name for name, _ in columns]
    for name in names:
        if names.count(name) > 1:
            raise _Fault(number, f"has two columns {quoted(name)}.")
    if "time" not in names or len(names) == 1:
        raise _Fault(number, f"needs a time and a rate, a delay or a loss; write for example: {HEADER}")
    if len(lines) - 1 > MOST_STEPS:
        raise _Fault(lines[MOST_STEPS + 1][0], f"has more than {MOST_STEPS} steps.")
    if len(lines) == 1:
        raise _Fault(number, "has a header and no step.")
    values: dict[str, list[float]] = {name: [] for name in COLUMNS}
    for number, line in lines[1:]:
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(columns):
            raise _Fault(
                number, f"has {counted(len(cells), 'value')}; the header has {counted(len(columns), 'column')}."
            )
        for (name, unit), cell in zip(columns, cells, strict=True):
            values[name].append(_value(number, name, unit, cell))
        _check_time(number, values["time"])
    times, rates, delays, losses = (tuple(values[name]) for name in COLUMNS)
    # the last step lasts as long as the one before it, a single one a second
    length = times[-1] + (times[-1] - times[-2] if len(times) > 1 else 1.0)
    return Profile("", length, times, rates, delays, losses)


def _headings(number: int, header: str) -> Iterator[tuple[str, str]]:
    """Name and unit of each column."""
    for cell in header.split(","):
        match = _HEADING.fullmatch(cell.strip().strip('"'))
        if match is None or match[1] not in COLUMNS:
            raise _Fault(
                number,
                f"column {quoted(cell.strip()[:80])} is none of {', '.join(COLUMNS)} with a unit; "
                f"write for example: {HEADER}",
            )
        name, unit = match.groups()
        units = COLUMNS[name][0].units
        if unit not in units:
            raise _Fault(number, f"column {quoted(name)} has the unit {quoted(unit)}; allowed: {', '.join(units)}.")
        yield name, unit


def _value(number: int, name: str, unit: str, cell: str) -> float:
    try:
        return COLUMNS[name][1](f"{cell} {unit}")
    except ValueError as fault:
        raise _Fault(number, f"{name} {quoted(cell[:80])} {fault}") from fault


def _check_time(number: int, times: list[float]) -> None:
    if len(times) == 1 and times[0] != 0:
        raise _Fault(number, "the first time must be 0.")
    if len(times) > 1 and times[-1] <= times[-2]:
        raise _Fault(number, f"time {times[-1]:g} s does not come after {times[-2]:g} s.")


# ---- traces ---------------------------------------------------------------------------------


def _read_trace(lines: list[tuple[int, str]], bin_size: float) -> Profile:
    """A line for each opportunity to deliver a packet, milliseconds; the trace is as long as its last one."""
    stamps: list[int] = []
    for number, line in lines:
        if _TIMESTAMP.fullmatch(line) is None:
            raise _Fault(number, f"{quoted(line[:80])} is no time in whole milliseconds.")
        stamps.append(int(line))
        if len(stamps) > 1 and stamps[-1] < stamps[-2]:
            raise _Fault(number, f"time {stamps[-1]} ms comes before {stamps[-2]} ms.")
    number, last = lines[-1][0], stamps[-1]
    width = round(bin_size * 1000)
    if not 0 < last <= LONGEST * 1000:
        raise _Fault(number, f"ends after {last} ms; allowed: 1 ms to 1 h.")
    bins = -(-last // width)
    if bins > MOST_STEPS:
        raise _Fault(number, f"has more than {MOST_STEPS} steps of {width} ms; choose a longer step.")
    counts = [0] * bins
    for stamp in stamps:
        counts[min(stamp // width, bins - 1)] += 1
    spans = [min(width, last - width * index) for index in range(bins)]
    rates = tuple(float(Decimal(count * PACKET_BITS * 1000) / span) for count, span in zip(counts, spans, strict=True))
    return Profile("", last / 1000, tuple(width * index / 1000 for index in range(bins)), rates)
