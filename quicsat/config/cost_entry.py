"""Writes cost models and other keys into implementations.json, and leaves all else there as it is."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from quicsat.config.implementations import COST_MODEL, FILE_READ
from quicsat.config.inventory import IMPLEMENTATIONS
from quicsat.config.yaml_fields import Problem, raise_problems, read_text
from quicsat.model import product_files
from quicsat.model.cpu_cost import CostModel, CpuCost
from quicsat.model.errors import InputError
from quicsat.model.text import quoted
from quicsat.model.whole_file import write_atomically

KEY = "cpu cost"
DIGITS = 3
"""Significant digits of a cost."""


def write_costs(folder: Path, costs: Mapping[str, CpuCost]) -> Path:
    """Write costs by name to implementations.json in ``folder``, or to that of quicsat if there is none; its path.

    Raises InputError as :func:`with_cpu_cost`, and if the file cannot be read; MachineError if it cannot be written.
    """
    own, problems = folder / IMPLEMENTATIONS, list[Problem]()
    file = own if own.exists() or product_files.is_packaged() else product_files.FILES / IMPLEMENTATIONS
    text = read_text(file, problems) or ""
    raise_problems(problems)
    for name, cost in costs.items():
        text = with_cpu_cost(text, name, cost)
    write_atomically(file, text.encode())
    return file


def with_cpu_cost(text: str, name: str, cost: CpuCost) -> str:
    """``text`` with the cost models of the implementation ``name``; a role without one keeps what it has.

    Raises InputError if ``text`` has no such entry, if a cost is outside the range of implementations.json, or if the
    text is not formatted as in quicsat: each implementation begins and ends on a line of its own that is indented by
    two spaces, and each of its keys begins on a line that is indented by four.
    """
    known = json.loads(text).get(name) or {}
    value = {key: each for key, each in {**known.get(KEY, {}), **_value(name, cost)}.items() if each}
    return with_key(text, name, KEY, value, _object(value))


def with_key(text: str, name: str, key: str, value: Any, shown: str = "") -> str:
    """``text`` with a value of a key in the entry ``name``, or without the key if the value is None; else unchanged.

    ``shown``: the value in JSON, by default in one line. Raises InputError as :func:`with_cpu_cost`.
    """
    known: dict[str, Any] = json.loads(text)
    if name not in known:
        raise InputError(f"There is no entry {quoted(name)} into which {key} could be written.")
    start = rf"^  {re.escape(json.dumps(name, ensure_ascii=False))}: \{{\n"
    entry = re.search(rf"{start}(?P<keys>.*?)^  \}}", text, re.MULTILINE | re.DOTALL)
    changed = text
    if entry is not None:
        keys = re.split(r'^(?=    ")', entry["keys"], flags=re.MULTILINE)[1:]
        place = next((number for number, each in enumerate(keys) if each.startswith(f'    "{key}"')), len(keys))
        keys[place : place + 1] = [] if value is None else [f"    {json.dumps(key)}: {shown or json.dumps(value)}"]
        body = ",\n".join(each.rstrip().removesuffix(",") for each in keys)
        changed = f"{text[: entry.start('keys')]}{body}\n{text[entry.end('keys') :]}"
    known[name] = {**known[name], key: value}
    if value is None:
        del known[name][key]
    if json.loads(changed) != known:
        raise InputError(f"The entry {quoted(name)} is not formatted as quicsat writes it. Write {key} there yourself.")
    return changed


def _value(name: str, cost: CpuCost) -> dict[str, Any]:
    value: dict[str, Any] = {
        role: {
            key.replace("_", " "): duration_text(seconds)
            for key, seconds in asdict(model).items()
            if seconds or key.replace("_", " ") != FILE_READ
        }
        for role in ("server", "client")
        if isinstance(model := cost.of(role), CostModel)
    }
    for role, model in value.items():
        for key, text in model.items():
            try:
                COST_MODEL[key](text)
            except ValueError as fault:
                raise InputError(f"{name}, {role}: {key} {quoted(text)} {fault}") from fault
    return {**value, "measured": cost.measured, "processor": cost.processor, "version": cost.version}


def _object(value: dict[str, Any]) -> str:
    """One line per key."""
    lines = [f"      {json.dumps(key)}: {json.dumps(each, ensure_ascii=False)}" for key, each in value.items()]
    return "{\n" + ",\n".join(lines) + "\n    }"


def duration_text(seconds: float) -> str:
    """``2.35e-6`` -> ``"2.35 us"``, ``0.0012`` -> ``"1200 us"``."""
    return f"{float(f'{seconds * 1e6:.{DIGITS}g}'):g} us"
