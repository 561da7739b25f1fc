"""Ranges of the numbers and times in files of results: what no run and no machine can have left there is refused.

All numbers of the schema have a range, so that what computes with them need not check them.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic_core import PydanticCustomError, core_schema

from quicsat.model.moments import YEARS, moment
from quicsat.model.perturbation import LARGEST

MOST_REPETITIONS = 100_000
"""Of a test case in results from elsewhere, since lists of that length are created."""
INTEGERS = (-(2**63), 2**63 - 1)
"""Of integers that have no range of their own: those that arrays hold."""
NUMBERS = (-1e30, 1e30)
"""Of other numbers that have none, in SI base units."""
SMALLEST = 1e-100
"""Of a number that is not 0: a quotient of smaller ones may be infinite. Rounding errors are much larger."""
RANGES: Mapping[tuple[str, str], tuple[float, float]] = {
    ("RunResult", "attempt"): (1, 10_000),
    ("RunResult", "repetition"): (1, MOST_REPETITIONS),
    ("TestCase", "repetitions"): (1, MOST_REPETITIONS),
    ("TestCase", "file_sizes"): (0, 2**53),
    ("TestCase", "timeout"): (0, 1e9),
    ("Manifest", "planned_runs"): (0, 10**9),
    **{("Amplitudes", name): (0, most) for name, most in asdict(LARGEST).items()},
    ("Evidence", "phases"): (0, 1e9),
    ("ResourceUse", "cpu_user"): (0, 1e9),
    ("ResourceUse", "cpu_system"): (0, 1e9),
    **{("ResourceUse", kind): (0, 2**53) for kind in ("system_calls", "sends", "receives", "waits")},
    ("ObjectTimes", "size"): (0, 2**53),
    ("ObjectTimes", "blocked"): (0, 1e9),
    ("Measurement", "values"): (0, NUMBERS[1]),
    ("FlowResult", "size"): (0, 2**53),
    ("FlowResult", "goodput"): (0, NUMBERS[1]),
    ("FlowResult", "competing_goodput"): (0, NUMBERS[1]),
    ("FlowResult", "share"): (0, 1),
    ("FlowResult", "loss_forward"): (0, 1),
}
"""Class and field -> the range of its numbers, where it is narrower."""
TIMES = frozenset({("Manifest", "started"), ("Evidence", "started"), ("Baseline", "taken")})
"""Class and field of times, which may be empty."""


def bounded(schema: Any, owner: str = "", field: str = "") -> Any:
    """A core schema of pydantic with these ranges; ``owner`` and ``field``: class and field that it describes.

    Of a list, nothing after the first item that is wrong is looked at: all faults take a thousand times its size.
    """
    if isinstance(schema, list):
        return [bounded(each, owner, field) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if kind == "int":
        least, most = RANGES.get((owner, field), INTEGERS)
        return {**schema, "ge": int(least), "le": int(most)}
    if kind == "float":
        least, most = RANGES.get((owner, field), NUMBERS)
        return core_schema.no_info_after_validator_function(large_enough, {**schema, "ge": least, "le": most})
    if kind == "str" and (owner, field) in TIMES:
        return core_schema.no_info_after_validator_function(checked_time, schema)
    if kind in ("list", "tuple", "set", "frozenset"):
        schema = {**schema, "fail_fast": True}
    owner = schema["dataclass_name"] if kind == "dataclass-args" else owner
    field = schema["name"] if kind == "dataclass-field" else field
    return {key: value if key == "metadata" else bounded(value, owner, field) for key, value in schema.items()}


def large_enough(number: float) -> float:
    """The same number; pydantic reports an error if it is nearer to 0 than ``SMALLEST``, and not 0."""
    if 0 < abs(number) < SMALLEST:
        raise PydanticCustomError("too_small", "Input should be 0, or not as near to 0")
    return number


def checked_time(text: str) -> str:
    """The same text; pydantic reports an error unless it is empty or a time."""
    if text and moment(text) is None:
        years = f"{YEARS[0]} to {YEARS[-1]}"
        raise PydanticCustomError("time", f"Input should be a time with its zone, of the years {years}, or empty")
    return text
