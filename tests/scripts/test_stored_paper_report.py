"""The stored report docs/paper: its numbers, computed from its data set without the code that wrote it."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest

from scripts.paper.data_set import data_sheet, read, size_of
from scripts.paper.page import text
from scripts.paper.variants import algorithm_or_implementation

PAPER = Path(__file__).resolve().parents[2] / "docs" / "paper"
PAGE = PAPER / "index.md"
IN_THE_PAPER = {"terrestrial": 15.11, "sat": 5.05, "satloss": 3.06}
"""Mean goodput in Table II of arXiv 2202.08228, Mbit/s."""
LIMITS = {"terrestrial": 60, "sat": 120, "satloss": 360}
"""Time limits, seconds."""


@cache
def runs_of(part: str) -> tuple[dict[str, Any], ...]:
    """The runs of a part of `make paper`, as plain JSON."""
    documents = (json.loads(gzip.decompress(path.read_bytes())) for path in (PAPER / "data").glob(f"{part}-*.json.gz"))
    return tuple(run for each in documents for run in each["results"])


def matrix() -> tuple[dict[str, Any], ...]:
    return runs_of("matrix")


def goodputs(**wanted: str) -> list[float]:
    """Of the successful runs with these values, Mbit/s."""
    return [
        run["measurement"]["values"]["goodput"] / 1e6
        for run in matrix()
        if run["verdict"]["outcome"] == "succeeded" and all(run[key] == value for key, value in wanted.items())
    ]


def rows(heading: str) -> list[list[str]]:
    """Cells of the table below a heading of the stored page."""
    section = PAGE.read_text(encoding="utf-8").split(f"### {heading}\n", 1)[1].split("\n#", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_stored_files_have_the_stored_checksums() -> None:
    lines = (PAPER / "data" / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    assert {line.split()[1] for line in lines} == {path.name for path in (PAPER / "data").glob("*.json.gz")}
    for checksum, name in map(str.split, lines):
        assert hashlib.sha256((PAPER / "data" / name).read_bytes()).hexdigest() == checksum


def test_the_stored_page_is_what_the_stored_data_set_gives() -> None:
    parts = read(PAPER / "data")
    page = PAGE.read_text(encoding="utf-8")
    assert page.startswith(text(parts["matrix"]))
    if "variants" in parts:
        assert "\n".join(algorithm_or_implementation(parts["variants"])) in page
    assert page.endswith("\n".join(data_sheet(parts, size_of(PAPER / "data"))) + "\n")


def test_numbers_of_table_ii() -> None:
    found = {(row[0], row[1]): row for row in rows("Table II")}
    for test_case, mean in IN_THE_PAPER.items():
        assert float(found[test_case, "paper"][2]) == mean
        ours, values = found[test_case, "quicsat, all servers"], goodputs(test_case=test_case)
        assert float(ours[2]) == pytest.approx(fmean(values), abs=0.0051)
        assert float(ours[4]) == pytest.approx(max(values), abs=0.051)
        late = [run for run in matrix() if run["test_case"] == test_case and run["verdict"]["outcome"] == "timeout"]
        failed = [run for run in matrix() if run["test_case"] == test_case and run["verdict"]["outcome"] == "failed"]
        every = [*values, *[10 * 2**20 * 8 / LIMITS[test_case] / 1e6] * len(late), *[0.0] * len(failed)]
        assert float(ours[3]) == pytest.approx(median(every), abs=0.0051)
        outcomes: dict[tuple[str, str], set[str]] = {}
        for run in matrix():
            if run["test_case"] == test_case and run["verdict"]["outcome"] in ("succeeded", "failed", "timeout"):
                outcomes.setdefault((run["server"], run["client"]), set()).add(run["verdict"]["outcome"])
        assert int(ours[7]) == len(outcomes)
        assert int(ours[5]) + int(ours[6]) == sum(pair != {"succeeded"} for pair in outcomes.values())


def test_numbers_of_servers() -> None:
    found = rows("Servers and their congestion control")
    assert len(found) >= 14
    for name, _, _, _, *cells, succeeded in found:
        for cell, test_case in zip(cells, IN_THE_PAPER, strict=True):
            values = goodputs(server=name, test_case=test_case)
            assert (cell != "") == bool(values)
            if values:
                assert float(cell) == pytest.approx(fmean(values), abs=0.0051)
        runs = [run for run in matrix() if run["server"] == name]
        assert succeeded == f"{len(goodputs(server=name))} of {len(runs)}"


def test_numbers_of_clients() -> None:
    """Each is the mean over the servers that succeeded with all clients."""
    found = rows("Clients")
    assert len(found) >= 14
    for client, *cells, succeeded in found:
        for cell, test_case in zip(cells, IN_THE_PAPER, strict=True):
            lost = {
                run["server"]
                for run in matrix()
                if run["test_case"] == test_case and run["verdict"]["outcome"] != "succeeded"
            }
            servers = {run["server"] for run in matrix()} - lost
            values = [value for name in servers for value in goodputs(server=name, client=client, test_case=test_case)]
            assert float(cell) == pytest.approx(fmean(values), abs=0.0051)
        runs = [run for run in matrix() if run["client"] == client]
        assert succeeded == f"{len(goodputs(client=client))} of {len(runs)}"


def test_servers_above_the_threshold() -> None:
    whole = PAGE.read_text("utf-8")
    above = [
        run["server"]
        for run in matrix()
        if run["test_case"] == "satloss"
        and run["verdict"]["outcome"] == "succeeded"
        and run["measurement"]["values"]["goodput"] > 2e6
    ]
    counted = re.findall(r"^- (?:BBR|CUBIC|Reno): (\d+) of (\d+)", whole, re.MULTILINE)
    assert sum(int(number) for number, _ in counted) == len(above)
    assert sum(int(number) for _, number in counted) == sum(run["test_case"] == "satloss" for run in matrix())
    assert f"{len(set(above))} servers exceed an efficiency of 10 %" in whole


@pytest.mark.parametrize(("test_case", "limit"), LIMITS.items())
def test_bounds_of_the_means(test_case: str, limit: float) -> None:
    every = [run for run in matrix() if run["test_case"] == test_case]
    late = sum(run["verdict"]["outcome"] == "timeout" for run in every)
    bound = (sum(goodputs(test_case=test_case)) + late * 10 * 2**20 * 8 / limit / 1e6) / len(every)
    [line] = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"- **{test_case}**")]
    assert line.endswith(f"is at most {bound:.2f} Mbit/s.")


@pytest.mark.parametrize(("test_case", "limit"), [("sat", 120), ("satloss", 360)])
def test_numbers_of_congestion_controls(test_case: str, limit: float) -> None:
    variants = {"Reno": ("reno", "newreno"), "CUBIC": ("cubic",), "BBR": ("bbr",)}
    late = 10 * 2**20 * 8 / limit / 1e6
    found = rows(f"Congestion controls over {test_case}")
    assert len(found) >= 8
    for name, *cells in found:
        for cell, names in zip(cells, variants.values(), strict=True):
            runs = [
                run
                for run in runs_of("variants")
                if run["test_case"] == test_case and run["server"] in {f"{name}:{variant}" for variant in names}
            ]
            assert (cell != "") == bool(runs)
            values = [
                run["measurement"]["values"]["goodput"] / 1e6
                if run["verdict"]["outcome"] == "succeeded"
                else late * (run["verdict"]["outcome"] == "timeout")
                for run in runs
            ]
            if runs:
                assert float(cell.removeprefix("≤ ")) == pytest.approx(fmean(values), abs=0.0051)
                assert cell.startswith("≤") == any(run["verdict"]["outcome"] != "succeeded" for run in runs)


def test_number_of_runs_and_failures() -> None:
    page = PAGE.read_text(encoding="utf-8")
    succeeded = sum(run["verdict"]["outcome"] == "succeeded" for run in matrix())
    assert f"Of {len(matrix())} runs, {succeeded} succeeded" in page
    assert sum(int(row[3]) for row in rows("Runs without success")) == len(matrix()) - succeeded


def test_figures_of_the_page_are_stored() -> None:
    named = set(re.findall(r"\]\(figures/([^)]+)\)", PAGE.read_text(encoding="utf-8")))
    assert named == {path.name for path in (PAPER / "figures").iterdir()}
    assert {name.split(".")[0].split("-")[0] for name in named} == {"cdf", "heatmap", "violin", "two"}


@pytest.mark.parametrize("test_case", ["sat", "satloss"])
def test_the_largest_share_that_the_queue_dropped(test_case: str) -> None:
    shares: dict[str, list[float]] = {}
    for run in runs_of("variants"):
        if run["test_case"] == test_case and run["measurement"] and "queue_loss" in run["measurement"]["values"]:
            shares.setdefault(run["server"], []).append(run["measurement"]["values"]["queue_loss"])
    means = {name: fmean(found) for name, found in shares.items()}
    first = max(means, key=lambda name: means[name])
    section = PAGE.read_text("utf-8").split(f"### Congestion controls over {test_case}\n", 1)[1].split("\n#", 1)[0]
    assert f"dropped {100 * means[first]:.0f} % of the packets of {first}," in section
    assert f"The median over the servers is {100 * median(means.values()):.1f} %." in section
