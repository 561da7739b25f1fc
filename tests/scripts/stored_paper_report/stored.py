"""The stored data set and page of the report docs/paper, read without the code that wrote them."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean, median, variance
from typing import Any

PAPER = Path(__file__).resolve().parents[3] / "docs" / "paper"
PAGE = PAPER / "index.md"
IN_THE_PAPER = {"terrestrial": 15.11, "sat": 5.05, "satloss": 3.06}
"""Mean goodput in Table II of arXiv 2202.08228, Mbit/s."""
FILE = 10 * 2**20
"""Bytes of the file of the matrix."""

Run = dict[str, Any]
"""Of a result.json."""


@cache
def stored() -> dict[str, tuple[dict[str, Any], ...]]:
    """The campaigns of the data set as plain JSON, by their name without a seed, and in the order of their seeds."""
    found = defaultdict(list)
    for path in (PAPER / "data").glob("*.json.gz"):
        [(name, seed)] = re.findall(r"^(.+?)(?:-(\d+))?\.json\.gz$", path.name)
        found[name].append((int(seed or 0), path))
    return {
        name: tuple(json.loads(gzip.decompress(path.read_bytes())) for _, path in sorted(found[name]))
        for name in sorted(found)
    }


def campaigns(name: str) -> tuple[dict[str, Any], ...]:
    """Those with exactly this name, such as ``real``."""
    return stored().get(name, ())


def documents(part: str) -> tuple[dict[str, Any], ...]:
    """The campaigns of a part of `make paper`: with its name, and with longer ones such as ``real-others``."""
    return tuple(each for name in stored() if name == part or name.startswith(f"{part}-") for each in campaigns(name))


@cache
def runs_of(part: str) -> tuple[Run, ...]:
    """The runs of a part."""
    return tuple(run for each in documents(part) for run in each["results"])


def cases_of(part: str) -> list[str]:
    """Names of its test cases, in their order."""
    return [case["name"] for case in documents(part)[0]["manifest"]["test_cases"]]


def matrix() -> tuple[Run, ...]:
    """The runs of all clients with all servers."""
    return runs_of("matrix")


def matching(runs: Iterable[Run], **wanted: str) -> list[Run]:
    """The runs with these values."""
    return [run for run in runs if all(run[key] == value for key, value in wanted.items())]


def manifest() -> dict[str, Any]:
    """Of the first campaign of the matrix."""
    found: dict[str, Any] = documents("matrix")[0]["manifest"]
    return found


def succeeded(run: Run) -> bool:
    """Whether the client received the whole file in time."""
    return bool(run["verdict"]["outcome"] == "succeeded")


def goodputs(**wanted: str) -> list[float]:
    """Of the successful runs of the matrix with these values, Mbit/s."""
    return [run["measurement"]["values"]["goodput"] / 1e6 for run in matching(matrix(), **wanted) if succeeded(run)]


def so_far(run: Run) -> float | None:
    """Goodput of a run, Mbit/s; without success, what had arrived over the time of its client."""
    if succeeded(run):
        return float(run["measurement"]["values"]["goodput"]) / 1e6
    life, size = run["evidence"]["client"]["life"], arrived(run)
    return None if size is None else float(8 * size / (life["end"] - life["begin"])) / 1e6


def arrived(run: Run) -> float | None:
    """Bytes of the file in the client's trace, or else in its file; None without both."""
    told = re.findall(r" ([0-9.]+) ([KM]i)?B of 10 MiB arrived", run["verdict"]["reason"])
    if told:
        [(number, unit)] = told
        return float(number) * {"Mi": 2**20, "Ki": 2**10, "": 1}[unit]
    sizes = [file["size"] for file in run["evidence"]["downloaded"]]
    return float(sum(sizes)) if sizes else None


def all_goodputs(runs: Iterable[Run]) -> list[float]:
    """Goodput of runs, Mbit/s, also of those without success, where it is known."""
    return [value for run in runs if (value := so_far(run)) is not None]


def by_client(runs: Iterable[Run]) -> dict[str, list[float]]:
    """Goodput of all runs of each client, Mbit/s."""
    found: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        if (value := so_far(run)) is not None:
            found[run["client"]].append(value)
    return found


def metric(run: Run, name: str) -> float | None:
    """A number of a successful run."""
    values: dict[str, float] = run["measurement"]["values"] if succeeded(run) else {}
    return values.get(name)


def metrics(runs: Iterable[Run], name: str) -> list[float]:
    """A number of each successful run that has it."""
    return [value for run in runs if (value := metric(run, name)) is not None]


@cache
def the_page() -> str:
    """The stored page."""
    return PAGE.read_text("utf-8")


def the_findings() -> str:
    """The stored page above its methods, without the subjects in front of the items."""
    return re.sub(r"^- \*\*.+?:\*\* ", "- ", the_page().partition("## Method")[0], flags=re.MULTILINE)


def section_of(heading: str) -> str:
    """The stored page below a heading."""
    return the_page().split(f"### {heading}\n", 1)[1].split("\n#", 1)[0]


def rows(heading: str) -> list[list[str]]:
    """Cells of the table below a heading of the stored page."""
    lines = [line for line in section_of(heading).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


IN_BOTH = {"aioquic", "kwik", "lsquic", "msquic", "neqo", "ngtcp2", "picoquic", "quic-go", "quiche"}
"""Implementations of Table III of the paper that we measure, too."""


def in_both(runs: Iterable[Run], test_case: str) -> list[Run]:
    """The runs over a link of servers and clients that the paper measured, too."""
    return [run for run in matching(runs, test_case=test_case) if {run["server"], run["client"]} <= IN_BOTH]


def payloads(server: str) -> float:
    """Median over clients of bytes of UDP payload per packet over sat."""
    return float(
        median(
            sent * FILE / run["evidence"]["simulator"]["forward"]["received"]
            for run in matching(matrix(), test_case="sat", server=server)
            if (sent := metric(run, "sent_per_useful_byte")) is not None
        )
    )


def implementations_with_a_measured_cpu_cost() -> list[str]:
    """Those whose system calls do not take the default time in virtual time."""
    return [each["name"] for each in manifest()["implementations"] if set(each["cpu_cost"].values()) != {None}]


def named(pairs: Iterable[tuple[str, str]]) -> str:
    """``kwik with quiche, kwik; openssl with neqo``."""
    found: dict[str, list[str]] = defaultdict(list)
    for server, client in pairs:
        found[server].append(client)
    return "; ".join(f"{server} with {', '.join(clients)}" for server, clients in found.items())


def listed(words: Iterable[str]) -> str:
    """``terrestrial, sat and satloss``."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


stored_part = {
    part: bool(runs_of(part))
    for part in (
        "sweeps",
        "windows",
        "quic-go-windows",
        "quic-go-start",
        "queues",
        "real",
        "delays",
        "limits",
    )
}
"""Whether a part of the report beside the matrix is stored."""

STUDENT = {
    2: 12.7062, 3: 4.3027, 4: 3.1824, 5: 2.7764, 6: 2.5706, 7: 2.4469, 8: 2.3646, 9: 2.3060, 10: 2.2622, 11: 2.2281,
    12: 2.2010, 13: 2.1788, 14: 2.1604, 15: 2.1448, 16: 2.1314, 34: 2.0345, 35: 2.0322, 36: 2.0301,
}  # fmt: skip
"""97.5 % quantiles of Student's t for so many numbers."""


def half_width(values: Sequence[float]) -> float:
    """Of the 95 % confidence interval of a mean."""
    return STUDENT[len(values)] * math.sqrt(variance(values) / len(values))


def geometric_interval(values: Iterable[float]) -> tuple[float, float, float]:
    """Geometric mean and the ends of its 95 % confidence interval."""
    logs = [math.log(value) for value in values]
    half = half_width(logs)
    return math.exp(fmean(logs)), math.exp(fmean(logs) - half), math.exp(fmean(logs) + half)
