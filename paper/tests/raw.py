"""The stored data set, numbers and tables, read without the code that wrote them."""

import csv
import gzip
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from statistics import fmean, variance
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DATA, REPORT = ROOT / "paper" / "data", ROOT / "docs" / "paper"
FILE = 10 * 2**20
"""Bytes of the file of the matrix."""
IN_THE_PAPER = {"terrestrial": 15.11e6, "sat": 5.05e6, "satloss": 3.06e6}
"""Mean goodput in Table II of arXiv 2202.08228, bit/s."""
IN_BOTH = {"aioquic", "kwik", "lsquic", "msquic", "neqo", "ngtcp2", "picoquic", "quic-go", "quiche"}
"""Implementations of Table III of the paper that we measure, too."""
STUDENT = {
    2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262, 11: 2.228, 12: 2.201,
    13: 2.179, 14: 2.160, 15: 2.145, 16: 2.131,
}  # fmt: skip
"""97.5 % quantile of Student's t, by the number of values."""

Run = dict[str, Any]
"""Of a result.json."""


@cache
def campaigns(name: str) -> tuple[dict[str, Any], ...]:
    """The campaigns with exactly this name, without seed, in the order of their seeds."""
    found = []
    for path in DATA.glob("*.json.gz"):
        [(base, seed)] = re.findall(r"^(.+?)(?:-(\d+))?\.json\.gz$", path.name)
        if base == name:
            found.append((int(seed or 0), path))
    return tuple(json.loads(gzip.decompress(path.read_bytes())) for _, path in sorted(found))


@cache
def runs(*names: str) -> tuple[Run, ...]:
    """The runs of campaigns."""
    return tuple(run for name in names for each in campaigns(name) for run in each["results"])


def matching(many: Iterable[Run], **wanted: str) -> list[Run]:
    """The runs with these values."""
    return [run for run in many if all(run[key] == value for key, value in wanted.items())]


def succeeded(run: Run) -> bool:
    """Whether the client received the whole file in time."""
    return bool(run["verdict"]["outcome"] == "succeeded")


def metric(run: Run, name: str) -> float | None:
    """A number of a successful run."""
    values: dict[str, float] = run["measurement"]["values"] if succeeded(run) else {}
    return values.get(name)


def metrics(many: Iterable[Run], name: str) -> list[float]:
    """A number of each successful run that has it."""
    return [value for run in many if (value := metric(run, name)) is not None]


def so_far(run: Run) -> float | None:
    """Goodput, bit/s; without success, what had arrived over the time of the client."""
    if succeeded(run):
        return metric(run, "goodput")
    life, size = run["evidence"]["client"]["life"], run["verdict"].get("received")
    if size is None:
        size = sum(file["size"] for file in run["evidence"]["downloaded"]) or None
    return None if size is None else float(8 * size / (life["end"] - life["begin"]))


def all_goodputs(many: Iterable[Run]) -> list[float]:
    """Goodput of all runs, where it is known."""
    return [value for run in many if (value := so_far(run)) is not None]


def by(key: str, many: Iterable[Run]) -> dict[str, list[Run]]:
    """The runs by server, client or test case."""
    found: dict[str, list[Run]] = defaultdict(list)
    for run in many:
        found[run[key]].append(run)
    return found


def geometric_interval(values: list[float]) -> tuple[float, float, float]:
    """Geometric mean and the ends of its 95 % interval."""
    logs = [math.log(value) for value in values]
    half = STUDENT[len(logs)] * math.sqrt(variance(logs) / len(logs))
    return math.exp(fmean(logs)), math.exp(fmean(logs) - half), math.exp(fmean(logs) + half)


@cache
def numbers() -> dict[str, Any]:
    """The stored values by name."""
    found = json.loads((REPORT / "tables" / "numbers.json").read_text("utf-8"))
    return {name: each["value"] for name, each in found.items()}


def ends(name: str) -> tuple[float, float, float]:
    """A stored number and the ends of its interval."""
    return numbers()[name], numbers()[f"{name}.low"], numbers()[f"{name}.high"]


@cache
def table(name: str) -> list[dict[str, str]]:
    """The rows of a stored table."""
    with (REPORT / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def control_of(server: str) -> str:
    """The default congestion control, as the manifest states it."""
    [found] = [each for each in campaigns("matrix")[0]["manifest"]["implementations"] if each["name"] == server]
    name = found["congestion_control"]["default"].lower()
    return next(shown for start, shown in (("new", "Reno"), ("reno", "Reno"), ("cubic", "CUBIC"), ("bbr", "BBR"))
                if name.startswith(start))  # fmt: skip
