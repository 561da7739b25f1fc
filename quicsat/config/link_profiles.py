"""Reads how rate, delay and loss of a link change over time, and capacity on demand, from a test case."""

import os
from dataclasses import replace
from pathlib import Path

from quicsat.config.profile_files import read_profile_file
from quicsat.config.profile_generators import GENERATORS, generate
from quicsat.config.quantities import duration, one_line, rate, size, within, word_or_mapping
from quicsat.config.yaml_fields import Fields
from quicsat.model.emulated_link import Demand, Profile
from quicsat.model.text import quoted

FILE_KEYS = ("file", "step")
COMMON_KEYS = ("loop", "start")
RANDOM = "random"
NONE = "none"
DEDICATED = "dedicated"
DAMA = "dama"
DEMAND = {
    "frame": within(duration, "1 ms", "1 s"),
    "request delay": within(duration, "0 s", "60 s"),
    "slot": within(size, "1 B", "1 MB"),
    "constant rate": within(rate, "0 bit/s", "100 Gbit/s"),
}
FRAME, SLOT = 0.0265, 100
"""Defaults: seconds, bytes."""

_NO_FILE = (
    "names no file in the directory of the test case; allowed: a CSV table, a Mahimahi trace, "
    f"{', '.join(f'{{{name}: {{}}}}' for name in GENERATORS)}, {NONE}."
)

_START = within(duration, "0 s", "1 h")
_STEP = within(duration, "1 ms", "1 h")
_ACCESS = word_or_mapping(DEDICATED, f"is none of {DEDICATED}, {{{DAMA}: {{…}}}}")


# ---- profiles -------------------------------------------------------------------------------


def read_profile(link: Fields, key: str) -> Profile | str | None:
    """The profile of ``key``; ``none`` if there is to be none, None if it is missing or has a fault, which is noted."""
    if not link.holds_mapping(key):
        name = link.read(key, _file_name)
        if name is None or name == NONE:
            return name
        return _profile(link, key, name, _from_file(link, key, name, None), None)
    fields = link.part(key)
    faults = len(fields.problems)
    fields.allow_only((*FILE_KEYS, *COMMON_KEYS, *GENERATORS))
    sources = [each for each in ("file", *GENERATORS) if each in fields]
    if not sources and len(fields.problems) > faults:
        return None  # the unknown key is probably meant to be one
    if len(sources) != 1:
        example = f"write for example {key}: {{leo: {{}}}}"
        link.note(f"{key} {quoted(link.in_words(key))} needs one of {', '.join(('file', *GENERATORS))}; {example}")
        return None
    [source] = sources
    if source == "file":
        name = fields.read("file", _file_name)
        step = fields.read("step", _STEP)
        columns = None if name is None else _from_file(fields, "file", name, step)
    else:
        name = source
        if "step" in fields:
            fields.note("step belongs to a file; write it among the parameters of the generator.")
        columns = _generated(fields, source)
    return _profile(fields, key, name or "", columns, fields)


def _from_file(fields: Fields, key: str, name: str, step: float | None) -> Profile | None:
    folder = Path(fields.file).parent
    path = folder / name
    inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))  # errors tell what a file contains
    if name in GENERATORS or not inside or not path.exists():
        fields.note(f"{key} {quoted(name)} {_NO_FILE}", fields.line_of(key))
        return None
    return read_profile_file(path, fields.problems, step)


def _file_name(text: str) -> str:
    try:
        return one_line(text)
    except ValueError:
        raise ValueError(_NO_FILE) from None


def _generated(fields: Fields, name: str) -> Profile | None:
    if fields.holds_mapping(name):
        return generate(name, fields.part(name))
    fields.must_be_mapping(name, "{}")
    return None


def _profile(where: Fields, key: str, source: str, columns: Profile | None, fields: Fields | None) -> Profile | None:
    faults = len(where.problems)
    loop = fields.read_flag("loop") if fields else None
    text = fields.read("start", _start) if fields else None
    start = text if isinstance(text, float) else 0.0
    if columns is None or len(where.problems) > faults:
        return None
    if start >= columns.length:
        fault = f"start {start:g} s is not before the end of the profile, {columns.length:g} s."
        where.note(fault, where.line_of("start"))
        return None
    if columns.rates and not any(columns.rates):
        where.note(f"{key}: the rate is always 0.", where.line_of(key))
        return None
    return replace(columns, source=source, loop=loop is not False, start=None if text == RANDOM else start)


def _start(text: str) -> float | str:
    return text if text == RANDOM else _START(text)


# ---- capacity on demand ---------------------------------------------------------------------


def read_demand(link: Fields, inherited: Demand | None, round_trip: float, return_rate: float) -> Demand | None:
    """Capacity on demand of the return direction; ``round_trip``: of the link, seconds."""
    key = "return access"
    if not link.holds_mapping(key):
        word = link.read(key, _ACCESS)
        return None if word == DEDICATED else inherited
    access = link.part(key)
    faults = len(access.problems)
    access.allow_only((DAMA,))
    if not access.holds_mapping(DAMA):
        if len(access.problems) == faults:
            example = f"write for example {key}: {{dama: {{frame: 26.5 ms}}}}"
            link.note(f"{key} {quoted(link.in_words(key))} needs dama; {example}")
        return inherited
    demand = access.record(DAMA, Demand(FRAME, round_trip, SLOT), None, DEMAND, delay="request delay")
    carried = return_rate * demand.frame / 8
    if return_rate > 0 and demand.slot > carried:
        access.part(DAMA).note(
            f"slot {demand.slot} B is more than a frame of the return link carries, {carried:.0f} B."
        )
    return demand
