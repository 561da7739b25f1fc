"""The stored report docs/paper: its numbers, computed from its data set without the code that wrote it."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from statistics import fmean, geometric_mean, median, stdev, variance
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest
from PIL import Image

from scripts import paper_report

PAPER = Path(__file__).resolve().parents[2] / "docs" / "paper"
PAGE = PAPER / "index.md"
IN_THE_PAPER = {"terrestrial": 15.11, "sat": 5.05, "satloss": 3.06}
"""Mean goodput in Table II of arXiv 2202.08228, Mbit/s."""
LIMITS = {"terrestrial": 60, "sat": 120, "satloss": 360}
"""Time limits, seconds."""


@cache
def documents(part: str) -> tuple[dict[str, Any], ...]:
    """The results of the campaigns of a part of `make paper`, as plain JSON."""
    files = sorted((PAPER / "data").glob(f"{part}*.json.gz"))
    return tuple(json.loads(gzip.decompress(path.read_bytes())) for path in files)


def runs_of(part: str) -> list[dict[str, Any]]:
    """The runs of a part."""
    return [run for each in documents(part) for run in each["results"]]


def cases_of(part: str) -> list[str]:
    """Names of its test cases, in their order."""
    return [case["name"] for case in documents(part)[0]["manifest"]["test_cases"]]


def matrix() -> list[dict[str, Any]]:
    return runs_of("matrix")


def goodputs(**wanted: str) -> list[float]:
    """Of the successful runs with these values, Mbit/s."""
    return [
        run["measurement"]["values"]["goodput"] / 1e6
        for run in matrix()
        if run["verdict"]["outcome"] == "succeeded" and all(run[key] == value for key, value in wanted.items())
    ]


def so_far(run: dict[str, Any]) -> float | None:
    """Goodput of a run, Mbit/s; without success, what had arrived over the time of its client."""
    if run["verdict"]["outcome"] == "succeeded":
        return float(run["measurement"]["values"]["goodput"]) / 1e6
    if not run["evidence"]["downloaded"]:
        return None
    life = run["evidence"]["client"]["life"]
    return float(8 * sum(file["size"] for file in run["evidence"]["downloaded"]) / (life["end"] - life["begin"])) / 1e6


def all_goodputs(runs: Iterable[dict[str, Any]]) -> list[float]:
    return [value for run in runs if (value := so_far(run)) is not None]


def middle(values: Iterable[float]) -> float:
    return float(median(values))


def metric(run: dict[str, Any], name: str) -> float | None:
    """A number of a successful run."""
    values: dict[str, float] = run["measurement"]["values"] if run["verdict"]["outcome"] == "succeeded" else {}
    return values.get(name)


def section_of(heading: str) -> str:
    """The stored page below a heading."""
    return PAGE.read_text(encoding="utf-8").split(f"### {heading}\n", 1)[1].split("\n#", 1)[0]


def rows(heading: str) -> list[list[str]]:
    """Cells of the table below a heading of the stored page."""
    lines = [line for line in section_of(heading).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_stored_files_have_the_stored_checksums() -> None:
    lines = (PAPER / "data" / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    files = {path for path in (PAPER / "data").rglob("*") if path.is_file() and path.name != "SHA256SUMS"}
    assert {line.split()[1] for line in lines} == {str(path.relative_to(PAPER / "data")) for path in files}
    for checksum, name in map(str.split, lines):
        assert hashlib.sha256((PAPER / "data" / name).read_bytes()).hexdigest() == checksum


def test_the_stored_page_is_what_the_stored_data_set_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are made, but not rendered: that takes twice as long as all the rest."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda _, path, **__: Image.new("1", (1, 1)).save(path))
    shutil.copytree(PAPER / "data", tmp_path / "data")
    assert paper_report.main(["--output", str(tmp_path)]) == 0
    assert (tmp_path / "index.md").read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")


def test_no_text_of_the_page_is_cut() -> None:
    assert "…" not in PAGE.read_text(encoding="utf-8")


def test_numbers_of_table_ii() -> None:
    found = {(row[0], row[1]): row for row in rows("Table II")}
    for test_case, mean in IN_THE_PAPER.items():
        assert float(found[test_case, "paper"][2]) == mean
        ours, values = found[test_case, "quicsat, all servers"], goodputs(test_case=test_case)
        assert float(ours[2]) == pytest.approx(fmean(values), abs=0.0051)
        assert float(ours[5]) == pytest.approx(max(values), abs=0.051)
        every = all_goodputs(run for run in matrix() if run["test_case"] == test_case)
        assert float(ours[3]) == pytest.approx(fmean(every), abs=0.0051)
        assert float(ours[4]) == pytest.approx(median(every), abs=0.0051)
        outcomes: dict[tuple[str, str], set[str]] = {}
        for run in matrix():
            if run["test_case"] == test_case and run["verdict"]["outcome"] in ("succeeded", "failed", "timeout"):
                outcomes.setdefault((run["server"], run["client"]), set()).add(run["verdict"]["outcome"])
        assert int(ours[8]) == len(outcomes)
        assert int(ours[6]) + int(ours[7]) == sum(pair != {"succeeded"} for pair in outcomes.values())


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


def test_runs_that_only_images_with_the_same_ids_repeat() -> None:
    parts = []
    for test_case in cases_of("matrix"):
        stamps = [run["evidence"]["started"] for run in matrix() if run["test_case"] == test_case]
        if early := sum(stamp < "2026-11-25" for stamp in stamps):
            parts.append(f"{early} of {len(stamps)} over `{test_case}`")
    told = f"Some runs of the matrix are from before 2026-11-25: {', '.join(parts)}."
    assert (told in PAGE.read_text("utf-8")) is bool(parts)


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
    counts = {name: (int(fast), int(every)) for name, fast, every in re.findall(LISTED, whole, re.MULTILINE)}
    finding = next(line for line in whole.splitlines() if line.endswith("(#servers-and-clients)."))
    for control, (fast, every) in counts.items():
        number = f"all {every}" if fast == every else f"{fast} of {every}"
        assert re.search(rf"{number}( runs of servers)? with {control}\b", finding)
    controls = {row[0]: row[3] for row in rows("Servers and their congestion control")}
    if len(cubic := {name for name in above if controls[name] == "CUBIC"}) == 1:
        assert f"with CUBIC (all of them {cubic.pop()}'s)" in finding


LISTED = r"^- (BBR|CUBIC|Reno): (\d+) of (\d+)"


def test_efficiency_of_all_runs_in_the_findings() -> None:
    shares = []
    for test_case in IN_THE_PAPER:
        values = all_goodputs(run for run in matrix() if run["test_case"] == test_case)
        shares.append(f"{5 * fmean(values):.0f} %")
    assert f"; of all runs, it is {', '.join(shares)}. " in PAGE.read_text("utf-8")


def test_effects_of_servers_and_clients() -> None:
    for test_case, *cells in rows("How far means of servers and clients differ"):
        runs = [run for run in matrix() if run["test_case"] == test_case]
        names = {run["server"] for run in runs}
        lost = {run["server"] for run in runs if run["verdict"]["outcome"] != "succeeded"}
        servers = [fmean(all_goodputs(run for run in runs if run["server"] == name)) for name in names]
        clients = [
            fmean(all_goodputs(run for run in runs if run["client"] == name and run["server"] not in lost))
            for name in {run["client"] for run in runs}
        ]
        for means, cell, count in ((servers, cells[0], cells[1]), (clients, cells[2], cells[3])):
            assert int(count) == len(means)
            ratio = np.quantile(means, 0.9) / np.quantile(means, 0.1)
            assert cell == (f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}")
        assert f"{cells[0]} over `{test_case}`" in PAGE.read_text("utf-8").partition("## Method")[0]


def residual(logs: dict[tuple[str, str], float], *places: int) -> float:
    """Sum of squares that an additive model of server (0) and client (1), or of one of them, leaves."""
    names = [(place, name) for place in places for name in sorted({pair[place] for pair in logs})]
    design = np.array([[1.0] + [float(pair[place] == name) for place, name in names] for pair in logs])
    values = np.array(list(logs.values()))
    return float(((values - design @ np.linalg.lstsq(design, values, rcond=None)[0]) ** 2).sum())


DRAWS = 200_000
"""Of a generalized confidence interval: ten times as many as in the report, whose error is thus the larger one."""
NEAR = 1.1
"""Percentage points between an end in the report and ours: half of one from rounding, and the error of 20,000 draws."""


Value = Callable[[dict[str, Any]], float | None]


class Variance:
    """Of the logarithm of goodput over a link: components from sums of squares of means over seeds, all random."""

    def __init__(
        self, test_case: str, servers: Collection[str], value: Callable[[dict[str, Any]], float | None]
    ) -> None:
        """``value``: goodput of a run; None if it does not count."""
        logs: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
        for run in matrix():
            if run["test_case"] == test_case and run["server"] in servers and (one := value(run)) is not None:
                logs[run["server"], run["client"]][run["evidence"]["seed"]] = math.log(one)
        self.pairs, seeds = list(logs), sorted({seed for each in logs.values() for seed in each})
        self.runs = [(pair, seed, each) for pair, found in logs.items() for seed, each in found.items()]
        names = [sorted({pair[place] for pair in logs}) for place in (0, 1)]
        self.sizes = {"server": len(logs) / len(names[0]), "client": len(logs) / len(names[1])}
        self.sizes["run"] = len(logs) / sum(1 / len(each) for each in logs.values())
        self.sizes["seed"] = len(seeds) / sum(1 / sum(seed == one for _, seed, _ in self.runs) for one in seeds)
        design = np.array([[float(one == pair) for one in self.pairs] + [float(one == seed) for one in seeds[1:]]
                           for pair, seed, _ in self.runs])  # fmt: skip
        values = np.array([each for *_, each in self.runs])
        effects = np.linalg.lstsq(design, values, rcond=None)[0]
        of_seeds = np.append(0.0, effects[len(logs) :])
        means = dict(zip(self.pairs, effects[: len(logs)] + of_seeds.mean(), strict=True))
        both = residual(means, 0, 1)
        self.squares = {
            "server": (residual(means, 1) - both, len(names[0]) - 1),
            "client": (residual(means, 0) - both, len(names[1]) - 1),
            "interaction": (both, len(logs) - len(names[0]) - len(names[1]) + 1),
        }
        """Sum of squares and degrees of freedom, by source."""
        if len(seeds) > 1:
            self.squares["seed"] = (self.sizes["seed"] * (len(seeds) - 1) * variance(of_seeds), len(seeds) - 1)
            left = float(((values - design @ effects) ** 2).sum())
            self.squares["repetition"] = (left, len(self.runs) - len(logs) - len(seeds) + 1)

    def _components(self, mean: dict[str, Any]) -> dict[str, Any]:
        """From mean squares, some below 0."""
        found = {name: (mean[name] - mean["interaction"]) / self.sizes[name] for name in ("server", "client")}
        if "repetition" not in mean:
            return found | {"interaction": mean["interaction"]}
        run = mean["repetition"]
        found["interaction"] = mean["interaction"] - run / self.sizes["run"]
        return found | {"seed": (mean["seed"] - run) / self.sizes["seed"], "repetition": run}

    def shares(self) -> dict[str, float]:
        """Of the sum, in percent; components below 0 are 0."""
        found = self._components({name: square / degrees for name, (square, degrees) in self.squares.items()})
        total = sum(max(each, 0) for each in found.values())
        return {name: 100 * max(each, 0) / total for name, each in found.items()}

    @cached_property
    def ends(self) -> dict[str, tuple[float, float]]:
        """95 % generalized confidence intervals, in percent: a sum of squares over chi-square is its expected mean.

        A component below 0 counts as 0 in the sum for the lower end, and as it is for the upper end.
        """
        random = np.random.default_rng(1)
        found = self._components({name: square / random.chisquare(degrees, DRAWS)
                                  for name, (square, degrees) in self.squares.items()})  # fmt: skip
        positive = {name: np.maximum(each, 0) for name, each in found.items()}
        total, with_signs = sum(positive.values()), sum(found.values())
        return {
            name: (
                100 * float(np.quantile(each / total, 0.025)),
                100 * float(np.quantile(each / np.maximum(np.maximum(with_signs, each), 1e-300), 0.975)),
            )
            for name, each in positive.items()
        }

    def assert_server(self, told: re.Match[str] | None) -> None:
        """``told`` matches the server's share and interval in the report, such as ``72 % (57 to 86 %)``."""
        assert told is not None
        share, *ends = map(float, told.groups())
        assert share == pytest.approx(self.shares()["server"], abs=0.51)
        assert ends == pytest.approx(self.ends["server"], abs=NEAR)


TOLD = r"(\d+) % \((\d+) to (\d+) %\)"


def goodput_of(run: dict[str, Any]) -> float | None:
    return metric(run, "goodput")


def servers_of(test_case: str) -> set[str]:
    """The servers that had a success over a link."""
    return {
        run["server"] for run in matrix() if run["test_case"] == test_case and run["verdict"]["outcome"] == "succeeded"
    }


@pytest.mark.parametrize("test_case", IN_THE_PAPER)
def test_shares_of_the_variance(test_case: str) -> None:
    found = Variance(test_case, servers_of(test_case), goodput_of)
    [letters] = {
        case["abbreviation"] for case in documents("matrix")[0]["manifest"]["test_cases"] if case["name"] == test_case
    }
    shares, ends = found.shares(), found.ends
    stored = {row[1]: row[2:] for row in rows("Sources of the variance of the efficiency") if row[0] == letters}
    assert stored.keys() == shares.keys()
    for source, (share, low, high, pairs, count) in stored.items():
        assert float(share) == pytest.approx(shares[source], abs=0.51)
        assert (float(low), float(high)) == pytest.approx(ends[source], abs=NEAR)
        assert (int(pairs), int(count)) == (len(found.pairs), len(found.runs))
    found.assert_server(re.search(rf"share of the variance .*?{TOLD} over `{test_case}`", the_findings()))


def the_findings() -> str:
    return PAGE.read_text("utf-8").partition("## Method")[0]


def test_the_share_of_the_server_with_what_had_arrived_before_timeouts() -> None:
    def with_timeouts(run: dict[str, Any]) -> float | None:
        return so_far(run) if run["verdict"]["outcome"] in ("succeeded", "timeout") else None

    [line] = [
        line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("- If runs that timed out count")
    ]
    late = [name for name in IN_THE_PAPER if any(run["verdict"]["outcome"] == "timeout" for run in matrix()
                                                 if run["test_case"] == name)]  # fmt: skip
    assert line.count("over `") == len(late) > 0
    for test_case in late:
        servers = {run["server"] for run in matrix()}
        Variance(test_case, servers, with_timeouts).assert_server(re.search(rf"{TOLD} over `{test_case}`", line))


@pytest.mark.parametrize("test_case", IN_THE_PAPER)
def test_the_share_of_the_server_without_the_slowest_one(test_case: str) -> None:
    servers = servers_of(test_case)
    slowest = min(servers, key=lambda name: fmean(goodputs(server=name, test_case=test_case)))
    found = Variance(test_case, servers - {slowest}, goodput_of)
    page = PAGE.read_text("utf-8")
    found.assert_server(re.search(rf"{TOLD} over `{test_case}` \(without {slowest}\)", page))
    if found.shares()["server"] < 50:
        found.assert_server(re.search(rf"Without {slowest}, its share over `{test_case}` is {TOLD}", the_findings()))


def test_the_share_of_the_server_with_and_without_bbr() -> None:
    controls = {row[0]: row[3] for row in rows("Servers and their congestion control")}
    with_bbr = [name for name, control in controls.items() if control.startswith("BBR")]
    page = PAGE.read_text("utf-8")
    listed = re.escape(", ".join(with_bbr))
    for servers, told in (
        (with_bbr, rf"Over `satloss`, the share of the server is {TOLD} among servers with BBR \({listed}\)"),
        (controls.keys() - set(with_bbr), rf"among servers with BBR \({listed}\), and {TOLD} among the others"),
    ):
        Variance("satloss", servers, goodput_of).assert_server(re.search(told, page))


IN_BOTH = {"aioquic", "kwik", "lsquic", "msquic", "neqo", "ngtcp2", "picoquic", "quic-go", "quiche"}
"""Implementations of Table III of the paper that we measure, too."""


def in_both(runs: Iterable[dict[str, Any]], test_case: str) -> list[dict[str, Any]]:
    """The runs over a link of servers and clients that the paper measured, too."""
    return [
        run for run in runs if run["test_case"] == test_case and run["server"] in IN_BOTH and run["client"] in IN_BOTH
    ]


@pytest.mark.parametrize("test_case", IN_THE_PAPER)
def test_differences_from_the_paper(test_case: str) -> None:
    """Of the servers and clients that both measured."""
    runs = in_both(matrix(), test_case)
    good = [value / 1e6 for run in runs if (value := metric(run, "goodput")) is not None]
    [line] = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"- **{test_case}**")]
    change = 100 * (fmean(good) / IN_THE_PAPER[test_case] - 1)
    way = "above" if change > 0 else "below"
    assert f"mean goodput is {fmean(good):.2f} Mbit/s, {abs(change):.0f} % {way} the paper's mean" in line
    whole = f"With the other runs, the mean is {fmean(all_goodputs(runs)):.2f} Mbit/s."
    assert line.endswith(whole) == (len(good) < len(runs))
    found = {(row[0], row[1]): row for row in rows("Table II")}
    row = found[test_case, f"quicsat, {len(IN_BOTH)} servers and {len(IN_BOTH)} clients of the paper"]
    assert float(row[2]) == pytest.approx(fmean(good), abs=0.0051)
    assert int(row[8]) == len({(run["server"], run["client"]) for run in runs})
    assert f"({', '.join(IN_BOTH_IN_ORDER)})" in PAGE.read_text("utf-8")


IN_BOTH_IN_ORDER = [name for name in documents("matrix")[0]["manifest"]["servers"] if name in IN_BOTH]


def test_numbers_of_time_limits() -> None:
    for test_case, limit, paper, count, late, longest, least, middle_cell in rows("Time limits"):
        runs = [run for run in matrix() if run["test_case"] == test_case]
        outcomes = [run["verdict"]["outcome"] for run in runs]
        assert int(limit) == int(paper) == LIMITS[test_case]
        assert (int(count), int(late)) == (len(runs), outcomes.count("timeout"))
        assert int(longest) == round(max(value for run in runs if (value := metric(run, "completion_time"))))
        assert float(least) == pytest.approx(8 * 10 * 2**20 / LIMITS[test_case] / 1e6, abs=0.0051)
        values = sorted([0.0] * int(late) + goodputs(test_case=test_case))
        assert float(middle_cell) == pytest.approx(median(values), abs=0.0051)


def test_attempts_and_runs_of_the_campaigns_add_up() -> None:
    *parts, last = rows("Campaigns")
    for name, pairs, planned, *counts, other in parts:
        found = documents(f"{name}-" if name in ("matrix", "queues", "windows", "repeat") else name)
        runs = [run for each in found for run in each["results"]]
        again = sum(len(each["earlier"]) for each in found)
        outcomes = [run["verdict"]["outcome"] for run in runs]
        expected = [outcomes.count(outcome) for outcome in ("succeeded", "timeout", "failed")]
        assert int(pairs) == len({(run["server"], run["client"]) for run in runs})
        assert int(planned) == sum(each["manifest"]["planned_runs"] for each in found)
        assert list(map(int, counts)) == [len(runs) + again, again, len(runs), *expected]
        assert int(other) == len(runs) - sum(expected)
    for place in range(2, len(last)):
        assert int(last[place]) == sum(int(row[place]) for row in parts)


def test_runs_whose_client_left_no_file() -> None:
    count = sum(so_far(run) is None for run in matrix())
    assert f"except {count} whose client had left no file" in PAGE.read_text("utf-8")


def test_what_slow_start_allows() -> None:
    """Windows of 10, 20, … packets of 1,502 bytes, one in each round trip, and then the rest at 20 Mbit/s."""
    packets, whole = math.ceil(10 * 2**20 / 1472), 8 * 10 * 2**20
    on_link = 1502 * 8 / 20e6
    over_sat = whole / (7 * 0.6 + (packets - 10 * (2**7 - 1)) * on_link) / 1e6
    terrestrial = whole / (3 * 0.03 + (packets - 10 * (2**3 - 1)) * on_link) / 1e6
    starts = [
        median(value for run in matrix() if run["server"] == name and run["test_case"] == "sat"
               if (value := metric(run, "initial_window")) is not None)
        for name in {run["server"] for run in matrix()}
    ]  # fmt: skip
    assert (
        f"would reach {terrestrial:.1f} Mbit/s ({5 * terrestrial:.0f} %) over `terrestrial` and {over_sat:.1f} Mbit/s "
        f"({5 * over_sat:.0f} %) over `sat`; {sum(start > 14720 for start in starts)} servers send more"
    ) in PAGE.read_text("utf-8")


CONTROLS = {"Reno": ("reno", "newreno"), "CUBIC": ("cubic",), "BBR": ("bbr",)}


def with_control(test_case: str) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Runs of the variants over a link, by implementation and congestion control."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for run in runs_of("variants"):
        name, variant = run["server"].split(":")
        control = next((control for control, names in CONTROLS.items() if variant in names), "")
        if run["test_case"] == test_case and control:
            found[name][control].append(run)
    return found


@pytest.mark.parametrize("test_case", ["sat", "satloss"])
def test_numbers_of_congestion_controls(test_case: str) -> None:
    found = {name: cells for name, *cells in rows(f"Congestion controls over {test_case}")}
    assert found.keys() == with_control(test_case).keys()
    for name, by_control in with_control(test_case).items():
        for cell, control in zip(found[name][:3], CONTROLS, strict=True):
            runs = by_control.get(control, [])
            assert (cell != "") == bool(runs)
            if runs:
                assert float(cell.removesuffix(" T")) == pytest.approx(fmean(all_goodputs(runs)), abs=0.0051)
                assert cell.endswith(" T") == any(run["verdict"]["outcome"] != "succeeded" for run in runs)


@pytest.mark.parametrize("test_case", ["sat", "satloss"])
def test_factors_of_congestion_controls(test_case: str) -> None:
    means = {
        name: {control: geometric_mean(all_goodputs(runs)) for control, runs in by_control.items()}
        for name, by_control in with_control(test_case).items()
    }
    section = section_of(f"Congestion controls over {test_case}")
    cells = {name: cells for name, *cells in rows(f"Congestion controls over {test_case}")}
    for place, (slower, faster) in enumerate((("Reno", "CUBIC"), ("CUBIC", "BBR")), start=3):
        factors = {name: each[faster] / each[slower] for name, each in means.items() if {slower, faster} <= each.keys()}
        for name, each in cells.items():
            assert each[place] == (f"{factors[name]:.1f}" if name in factors else "")
        middle, low, high = geometric_interval(list(factors.values()))
        without = {name: geometric_mean(value for other, value in factors.items() if other != name) for name in factors}
        least, most = min(without, key=lambda name: without[name]), max(without, key=lambda name: without[name])
        assert (
            f"- {faster} instead of {slower} multiplies the goodput of an implementation by {middle:.1f} "
            f"({low:.1f} to {high:.1f}; geometric mean of {len(factors)} implementations). Without one of them, it is "
            f"{without[least]:.1f} (without {least}) to {without[most]:.1f} (without {most})."
        ) in section


def components(logs: dict[tuple[str, str, str], float]) -> dict[str, float]:
    """Shares of the variance, by least squares on one design of implementation, congestion control and client.

    Each server ran with the same clients. What errors add to the variance of effects is their covariance in contrasts.
    """
    servers = sorted({key[:2] for key in logs})
    clients = sorted({key[2] for key in logs})
    assert len(logs) == len(servers) * len(clients)
    table = np.array([[logs[*server, client] for client in clients] for server in servers])
    means = table.mean(axis=1)
    left = table - means[:, None] - table.mean(axis=0) + table.mean()
    rest = float((left**2).sum()) / ((len(servers) - 1) * (len(clients) - 1))
    names, controls = (sorted({server[place] for server in servers}) for place in (0, 1))
    columns = [(0, name) for name in names] + [(1, control) for control in controls[1:]]
    design = np.array([[float(server[place] == value) for place, value in columns] for server in servers])
    inverse = np.linalg.inv(design.T @ design)
    effects = inverse @ design.T @ means
    error = float(((means - design @ effects) ** 2).sum()) / (len(servers) - len(columns))
    own, other = effects[: len(names)], np.append(0.0, effects[len(names) :])
    of_other = np.zeros((len(controls), len(controls)))
    of_other[1:, 1:] = inverse[len(names) :, len(names) :]
    found = {}
    for source, each, covariance in (
        ("implementation", own, inverse[: len(names), : len(names)]),
        ("congestion control", other, of_other),
    ):
        contrast = np.eye(len(each)) - 1 / len(each)
        bias = error * float(np.trace(contrast @ covariance)) / (len(each) - 1)
        found[source] = variance(each) - bias
    found["combination"] = error - rest / len(clients)
    found["client"] = variance(table.mean(axis=0)) - rest / len(servers)
    found["rest"] = rest
    total = sum(max(part, 0) for part in found.values())
    return {source: max(part, 0) / total for source, part in found.items()}


def difference(shares: dict[str, float], counts: str) -> float:
    """Implementation minus congestion control."""
    combination = shares["combination"] if counts == "counts as implementation" else 0
    return shares["implementation"] + combination - shares["congestion control"]


def differences_without_one(logs: dict[tuple[str, str, str], float], counts: str) -> list[float]:
    """Without one implementation at a time, in the order of their names."""
    return [
        difference(components({key: value for key, value in logs.items() if key[0] != name}), counts)
        for name in sorted({key[0] for key in logs})
    ]


def jackknifed(value: float, without: list[float]) -> list[float]:
    """Ends of the interval of a difference: Student's t on the scale of the inverse hyperbolic tangent."""
    scaled = [math.atanh(max(-0.995, min(0.995, each))) for each in (value, *without)]
    half = STUDENT[len(without)] * (len(without) - 1) * math.sqrt(variance(scaled[1:]) / len(without))
    return [math.tanh(scaled[0] - half), math.tanh(scaled[0] + half)]


@pytest.mark.parametrize("test_case", ["sat", "satloss"])
def test_shares_of_congestion_control_and_implementation(test_case: str) -> None:
    logs = {
        (name, control, client): fmean(math.log(value) for value in values)
        for name, by_control in with_control(test_case).items()
        if len(by_control) > 1
        for control, runs in by_control.items()
        for client in {run["client"] for run in runs}
        if (values := all_goodputs(run for run in runs if run["client"] == client))
    }
    whole = components(logs)
    [cells] = [row[1:] for row in rows("Sources of the variance of servers with variants") if row[0] == test_case]
    for cell, share in zip(cells, whole.values(), strict=True):
        assert float(cell) == pytest.approx(100 * share, abs=0.51)
    names = sorted({key[0] for key in logs})
    page = PAGE.read_text("utf-8")
    for row in rows("Share of the implementation minus share of the congestion control"):
        if row[0] != test_case:
            continue
        value, without = difference(whole, row[1]), differences_without_one(logs, row[1])
        ends = jackknifed(value, without)
        for cell, expected in zip(row[2:5], (value, *ends), strict=True):
            assert float(cell) == pytest.approx(100 * expected, abs=0.51)
        least, most = min(without), max(without)
        assert row[5] == (
            f"{100 * least:.0f} (without {names[without.index(least)]}) to "
            f"{100 * most:.0f} (without {names[without.index(most)]})"
        )
        larger = "the implementation has the larger share" if ends[0] > 0 else "the congestion control has the larger"
        told = larger if ends[0] > 0 or ends[1] < 0 else "these data do not show which share is larger"
        start = "count as the implementation's, the difference"
        start = start if row[1] == "counts as implementation" else "of the first two"
        sides = ("the implementation", "the congestion control")
        middle, low, high = map(int, row[2:5])
        if middle < 0:
            sides, middle, low, high = (sides[1], sides[0]), -middle, -high, -low
        from_ = f"from {-low} in favour of {sides[1]}" if low < 0 else str(low)
        numbers = rf"{middle} percentage points in favour of {sides[0]} \({from_} to {high}\)"
        assert re.search(f"- Over `{test_case}`, .*{start} is {numbers}, so {told}", page)


SELECTIONS: dict[str, Callable[[tuple[str, str, str], Collection[str]], bool]] = {
    "implementations with all three algorithms": lambda _, controls: len(controls) == 3,
    "Reno and CUBIC only": lambda key, _: key[1] != "BBR",
    "without msquic:bbr": lambda key, _: key[:2] != ("msquic", "BBR"),
}


@pytest.mark.parametrize("test_case", ["sat", "satloss"])
def test_differences_of_shares_of_some_of_the_runs(test_case: str) -> None:
    found = with_control(test_case)
    logs = {
        (name, control, client): fmean(math.log(value) for value in values)
        for name, by_control in found.items()
        for control, runs in by_control.items()
        for client in {run["client"] for run in runs}
        if (values := all_goodputs(run for run in runs if run["client"] == client))
    }
    for case, selection, count, *cells in rows("The difference of the shares for some of the runs"):
        if case != test_case:
            continue
        kept = {key: value for key, value in logs.items() if SELECTIONS[selection](key, found[key[0]].keys())}
        several = [name for name in {key[0] for key in kept} if len({key[1] for key in kept if key[0] == name}) > 1]
        shares = components({key: value for key, value in kept.items() if key[0] in several})
        assert int(count) == len(several)
        value = difference(shares, "counts as neither")
        without = differences_without_one({key: logs[key] for key in kept if key[0] in several}, "counts as neither")
        for cell, expected in zip(cells, (value, *jackknifed(value, without)), strict=False):
            assert float(cell) == pytest.approx(100 * expected, abs=0.51)
        assert float(cells[3]) == pytest.approx(100 * difference(shares, "counts as implementation"), abs=0.51)


def test_intervals_of_some_of_the_runs_that_include_0() -> None:
    known = [row for row in rows("The difference of the shares for some of the runs") if row[4]]
    number = sum(int(row[4]) <= 0 <= int(row[5]) for row in known)
    page = PAGE.read_text("utf-8")
    assert f"In {number} of {len(known)} rows, the interval includes 0" in page
    assert f"With fewer of the runs, {number} of {len(known)} intervals of the difference include 0" in page


def test_variants_that_are_left_out() -> None:
    pairs = {(run["server"], run["client"]) for run in runs_of("variants")}
    kept = {pair for pair in pairs if pair[0].split(":")[1] in {each for names in CONTROLS.values() for each in names}}
    page = PAGE.read_text("utf-8")
    assert f"The campaign has {len(pairs)} pairs, and this section {len(kept)}: " in page
    seeds = len(documents("variants"))
    assert f"These runs have {'one seed' if seeds == 1 else f'{seeds} seeds'}; all pairs" in page
    sources = {
        each["name"]: each["congestion_control"]["source"]
        for each in documents("variants")[0]["manifest"]["implementations"]
    }
    known = [name.split(":")[0] for name, source in sources.items() if ":bbr" in name and "BBR is version 2" in source]
    for name in set(known):
        assert f"{name} has version 2" in page


def test_number_of_runs_and_failures() -> None:
    page = PAGE.read_text(encoding="utf-8")
    succeeded = sum(run["verdict"]["outcome"] == "succeeded" for run in matrix())
    assert f"Of {len(matrix())} runs, {succeeded} succeeded" in page
    assert sum(int(row[3]) for row in rows("Runs without success")) == len(matrix()) - succeeded


def test_what_was_in_flight_in_runs_without_success() -> None:
    reasons = [run["verdict"]["reason"] for run in matrix() if run["verdict"]["outcome"] != "succeeded"]
    flying = [float(found[1]) for each in reasons if (found := re.search(r"kept ([\d.]+) KiB in flight", each))]
    windows = [
        run["measurement"]["negotiated"]["client"][name]
        for run in matrix()
        if metric(run, "goodput") is not None
        for name in ("initial_max_data", "initial_max_stream_data_bidi_local")
    ]
    told = f"the median in flight was at most {max(flying):.4g} KiB, far below the smallest announced window"
    assert f"{told} ({min(windows) // 1024} KiB)." in section_of("Runs without success")


def test_timeouts_that_the_formula_explains() -> None:
    """Over satloss, 10 MiB in 360 s take more than the formula gives."""
    formulas = {row[0]: float(row[3]) for row in rows("Formulas and measurements over satloss")}
    late = [run for run in matrix() if run["test_case"] == "satloss" and run["verdict"]["outcome"] == "timeout"]
    needed = 8 * 10 * 2**20 / 360 / 1e6
    servers = [name for name, rate in formulas.items() if rate < needed and name in {run["server"] for run in late}]
    count = sum(run["server"] in servers for run in late)
    rates = sorted({f"{formulas[name]:.2f}" for name in servers})
    page = PAGE.read_text("utf-8")
    told = f"needs {needed:.2f} Mbit/s, and the formula of Reno gives only {' to '.join((rates[0], rates[-1]))} Mbit/s"
    assert page.count(f"{told} for {', '.join(servers)}") == 2
    assert f"{count} of {len(late)} runs that timed out there are of these servers" in page


def test_reasons_have_their_ranges() -> None:
    """Of the runs over satloss that timed out while data arrived."""
    mib = [
        float(found[1])
        for run in matrix()
        if run["test_case"] == "satloss" and run["verdict"]["outcome"] == "timeout"
        if (found := re.search(r"\(median\): ([\d.]+) MiB of 10 MiB", run["verdict"]["reason"]))
    ]
    assert f"{min(mib):g} to {max(mib):g} MiB of 10 MiB arrived" in section_of("Runs without success")


def test_attempts_that_were_repeated() -> None:
    again = same = 0
    for each in documents("matrix"):
        last = {(run["server"], run["client"], run["test_case"]): run["verdict"]["outcome"] for run in each["results"]}
        for run in each["earlier"]:
            again += 1
            same += last[run["server"], run["client"], run["test_case"]] == run["verdict"]["outcome"]
    told = f"{again} attempts without success were repeated with the same seed, and {same} of them ended"
    assert told in PAGE.read_text("utf-8")


def test_numbers_of_runs_that_timed_out() -> None:
    late = [run for run in matrix() if run["verdict"]["outcome"] == "timeout"]
    found = rows("Runs that timed out")
    assert sum(int(row[2]) for row in found) == len(late)
    for test_case, server, count, share, goodput, succeeded, other in found:
        mine = [run for run in late if (run["test_case"], run["server"]) == (test_case, server)]
        sizes = [run["evidence"]["downloaded"][0]["size"] for run in mine if run["evidence"]["downloaded"]]
        assert int(count) == len(mine)
        assert float(share) == pytest.approx(100 * fmean(sizes) / (10 * 2**20), abs=0.51)
        assert float(goodput) == pytest.approx(fmean(all_goodputs(mine)), abs=0.0051)
        values = goodputs(test_case=test_case, server=server)
        assert int(succeeded) == len(values)
        assert (float(other) if other else None) == (pytest.approx(fmean(values), abs=0.0051) if values else None)
    no_file = [run["client"] for run in late if not run["evidence"]["downloaded"]]
    assert f"Not included: {len(no_file)} with the client {', '.join(sorted(set(no_file)))}," in PAGE.read_text("utf-8")


def test_machine_of_the_introduction() -> None:
    hosts = [run["evidence"]["host"] for run in matrix()]
    assert (
        f"Up to {1 + max(host['neighbours'] for host in hosts)} runs were made at a time on {hosts[0]['cpus']} CPUs, "
        f"with a load average of {median(host['load_before'] for host in hosts):.1f} at the median"
    ) in PAGE.read_text("utf-8")
    assert len({host["cpus"] for host in hosts}) == 1


# ---- endpoints and formulas -----------------------------------------------------------------


def payloads(server: str) -> float:
    """Median over clients of bytes of UDP payload per packet over sat."""
    return middle(
        sent * 10 * 2**20 / run["evidence"]["simulator"]["forward"]["received"]
        for run in matrix()
        if run["test_case"] == "sat" and run["server"] == server
        if (sent := metric(run, "sent_per_useful_byte")) is not None
    )


def test_numbers_of_formulas() -> None:
    found = rows("Formulas and measurements over satloss")
    assert len(found) >= 10
    ratios = {}
    others = []
    for server, control, payload, formula, measured, ratio, dropped, with_drops in found:
        size = payloads(server)
        reno = 8 * size / 0.6 * math.sqrt(1.5 / 0.01) / 1e6
        expected = 8 * size / 0.6 * 1.0538 * (0.6 / 0.01) ** 0.75 / 1e6 if control == "CUBIC" else reno
        runs = [run for run in matrix() if run["test_case"] == "satloss" and run["server"] == server]
        mean = fmean(all_goodputs(runs))
        assert int(payload) == round(size)
        assert float(formula) == pytest.approx(expected, abs=0.0052)
        assert float(measured) == pytest.approx(mean, abs=0.0051)
        assert float(ratio) == pytest.approx(mean / expected, abs=0.052)
        ratios[server] = mean / expected
        links = [run["evidence"]["simulator"]["forward"] for run in runs]
        share = sum(e["loss_drops"] + e["queue_drops"] for e in links) / sum(e["received"] for e in links)
        assert float(dropped) == pytest.approx(100 * share, abs=0.051)
        slower = 8 * size / 0.6 * math.sqrt(1.5 / share) / 1e6
        cubic = max(slower, 8 * size / 0.6 * 1.0538 * (0.6 / share) ** 0.75 / 1e6)
        assert float(with_drops) == pytest.approx(cubic if control == "CUBIC" else slower, abs=0.0052)
        others.append(0.5 <= mean / (cubic if control == "CUBIC" else slower) <= 2)
    page = PAGE.read_text("utf-8")
    assert f"With the drops of link and queue instead of p, it is {sum(others)} of {len(others)}." in page
    close = sum(0.5 <= ratio <= 2 for ratio in ratios.values())
    assert f"goodput of {close} of {len(ratios)} servers is within a factor of 2" in page
    for server, times in ratios.items():
        assert (f"{server} ({times:.1f} times;" in page) == (times > 2)
        if times > 2:
            clients = {run["client"] for run in matrix()}
            mine = [run for run in matrix() if run["test_case"] == "satloss" and run["server"] == server]
            means = [fmean(values) for c in clients if (values := all_goodputs(r for r in mine if r["client"] == c))]
            assert f"times; {min(means):.2f} to {max(means):.2f} Mbit/s by client)" in page
            other = fmean(all_goodputs(r for r in matrix() if r["test_case"] == "sat" and r["server"] == server))
            told = f"- {server} reaches nearly the same over `sat`, without random loss ({other:.2f} Mbit/s)"
            assert (told in page) == (fmean(all_goodputs(mine)) >= 0.8 * other)
    drops = median(
        run["evidence"]["simulator"]["forward"]["loss_drops"]
        for run in matrix()
        if run["test_case"] == "satloss" and metric(run, "goodput") is not None
    )
    assert f"the link drops only {drops:.0f} packets in one" in page


def test_implementations_with_a_measured_cpu_cost() -> None:
    manifest = documents("matrix")[0]["manifest"]
    costs = {each["name"]: set(each["cpu_cost"].values()) != {None} for each in manifest["implementations"]}
    measured = [name for name, known in costs.items() if known]
    page = PAGE.read_text("utf-8")
    assert f"For {len(measured)} implementations ({', '.join(measured)}), we [measured it]" in page
    assert (
        f"for the other {len(costs) - len(measured)}, it is the default of {manifest['cpu_cost'] * 1e6:g} µs." in page
    )
    for name, _, _, _, cost, _ in rows("Programs"):
        assert cost == ("measured" if costs[name] else "default")
    assert "CPU cost of each implementation" not in page


def test_servers_whose_program_is_ours() -> None:
    servers = {run["server"] for run in matrix()}
    ours = [row[0] for row in rows("Programs") if row[0] in servers and row[3] == "ours"]
    told = f"For {len(ours)} of {len(servers)} servers, *implementation* includes our program"
    assert told in PAGE.read_text("utf-8")


def test_numbers_of_servers_conditions() -> None:
    columns = (("initial_window", 1024), ("", 0), ("longest_burst", 1), ("in_flight_max", 1024))
    for server, _, *cells in rows("How servers send"):
        runs = [run for run in matrix() if run["test_case"] == "sat" and run["server"] == server]
        for cell, (name, unit) in zip(cells, columns, strict=True):
            if name:
                middle = median(value for run in runs if (value := metric(run, name)) is not None) / unit
                assert int(cell) == round(middle)
            else:
                assert int(cell) == round(payloads(server))


def bytes_of(words: str) -> float:
    """``16 MiB``; ``no limit`` is more than any window."""
    number, _, unit = words.partition(" ")
    return math.inf if words == "no limit" else float(number) * {"KiB": 2**10, "MiB": 2**20}[unit]


def test_numbers_of_clients_conditions() -> None:
    names = ("initial_max_data", "initial_max_stream_data_bidi_local")
    defaults = {"max_udp_payload_size": 65527, "max_ack_delay": 25}
    for client, *windows, payload, delay, returned in rows("What clients announce"):
        runs = [run for run in matrix() if run["test_case"] == "sat" and run["client"] == client]
        sent = [run["measurement"]["negotiated"]["client"] for run in runs if metric(run, "goodput") is not None]
        for cell, name in zip(windows, names, strict=True):
            [value] = {each[name] for each in sent}
            assert bytes_of(cell) == (math.inf if value >= 2**50 else value)
        for cell, name in ((payload, "max_udp_payload_size"), (delay, "max_ack_delay")):
            assert {int(cell)} == {each.get(name, defaults[name]) for each in sent}
        shares = [value for run in runs if (value := metric(run, "return_packets")) is not None]
        assert returned == f"{100 * min(shares):.0f} to {100 * max(shares):.0f}"


def test_windows_that_grew_or_were_full() -> None:
    above, full, count = 0, [], 0
    for run in matrix():
        flying = metric(run, "in_flight_max")
        if run["test_case"] == "sat" and flying is not None:
            sent = run["measurement"]["negotiated"]["client"]
            count += 1
            above += flying > 1.1 * sent["initial_max_data"]
            if 0.85 <= flying / min(sent["initial_max_data"], sent["initial_max_stream_data_bidi_local"]) <= 1.1:
                full.append((run["server"], run["client"]))
    page = PAGE.read_text("utf-8")
    assert f"In {above} of {count} successful runs over `sat`, the server had more than 110 % of the" in page
    [line] = [line for line in page.splitlines() if "may have limited the server" in line]
    assert line.startswith(f"In {len(full)} runs")
    assert all(server in line and client in line for server, client in full)


# ---- other parts ----------------------------------------------------------------------------

stored_part = {
    part: bool(runs_of(part)) for part in ("sweeps", "windows", "quic-go-windows", "queues", "real", "delays")
}


@pytest.mark.skipif(not stored_part["sweeps"], reason="no sweep is stored")
@pytest.mark.parametrize(
    ("key", "family"),
    [("forward queue", "paper-queue"), ("delay", "paper-delay"), ("forward loss", "paper-loss"),
     ("file size", "paper-size")],
)  # fmt: skip
def test_numbers_of_sweeps(key: str, family: str) -> None:
    heading = f"Goodput in Mbit/s by {key}"
    cases = [name for name in cases_of("sweeps") if name.startswith(family)]
    ratios = {}
    for name, *cells in rows(heading):
        means = list[float]()
        for case, cell in zip(cases, cells, strict=True):
            runs = [run for run in runs_of("sweeps") if (run["server"], run["test_case"]) == (name, case)]
            means.append(fmean(all_goodputs(runs)))
            assert float(cell.removesuffix(" T")) == pytest.approx(means[-1], abs=0.0051)
            assert cell.endswith(" T") == any(run["verdict"]["outcome"] != "succeeded" for run in runs)
        ratios[name] = means[-1] / means[0]
    assert len(ratios) >= 6
    least, most = min(ratios, key=lambda name: ratios[name]), max(ratios, key=lambda name: ratios[name])
    told = f"changes by a factor of {ratios[least]:.2g} ({least}) to {ratios[most]:.2g} ({most})."
    if ratios[most] <= 1:
        told = f"goodput is {100 * ratios[least]:.0f} % ({least}) to {100 * ratios[most]:.0f} % ({most}) of that at "
    assert told in section_of(heading)


@pytest.mark.skipif(not stored_part["sweeps"], reason="no sweep is stored")
def test_runs_over_the_same_link_with_other_seeds() -> None:
    same = ("paper-queue@forward-queue=25", "paper-delay@delay=300ms", "paper-loss@forward-loss=0pct")
    found: dict[str, list[float]] = defaultdict(list)
    for run in (*runs_of("sweeps"), *matrix()):
        if run["server"] == run["client"] and run["test_case"] in (*same, "sat"):
            found[run["server"]] += all_goodputs([run])
    swept = {run["server"] for run in runs_of("sweeps")}
    spread = {name: max(values) / min(values) - 1 for name, values in found.items() if name in swept}
    most = max(spread, key=lambda name: spread[name])
    rest = max(value for name, value in spread.items() if name != most)
    page = PAGE.read_text("utf-8")
    assert f"{most} reaches {', '.join(f'{value:.2f}' for value in sorted(found[most]))} Mbit/s in these runs" in page
    assert f"single seeds differ by up to {100 * spread[most]:.0f} %" in page
    assert f"Those of the other implementations differ by at most {100 * rest:.1f} %" in page


@pytest.mark.skipif(not stored_part["sweeps"], reason="no sweep is stored")
def test_runs_of_the_sweep_in_which_the_link_lost_a_packet() -> None:
    parts = []
    for text in ("0.01", "0.1", "1", "2", "5"):
        runs = [run for run in runs_of("sweeps") if run["test_case"] == f"paper-loss@forward-loss={text}pct"]
        lost = sum(run["evidence"]["simulator"]["forward"]["loss_drops"] > 0 for run in runs)
        parts.append(f"{lost} of {len(runs)} at {text} %")
    assert f"lost at least one packet: {', '.join(parts)}." in section_of("Goodput in Mbit/s by forward loss")


@pytest.mark.skipif(not stored_part["sweeps"], reason="no sweep is stored")
def test_queue_of_the_sweep_of_the_delay() -> None:
    """Bandwidth-delay products of 20 Mbit/s and twice the delay, in packets of 1,500 bytes."""
    delays = [float(name.partition("=")[2].removesuffix("ms")) for name in cases_of("sweeps") if "delay" in name]
    products = [20e6 * 2 * delay / 1000 / 12_000 for delay in (delays[0], delays[-1])]
    assert (
        f"is {products[0]:.0f} to {products[1]:.0f} packets. The queue therefore falls from "
        f"{100 * 25 / products[0]:.0f} to {100 * 25 / products[1]:.1f} % of it"
    ) in section_of("Goodput in Mbit/s by delay")


@pytest.mark.skipif(not stored_part["windows"], reason="no campaign of windows is stored")
def test_numbers_of_windows() -> None:
    for client, connection, stream, *cells, flying in rows("Goodput over sat by the windows of the client"):
        mine = [run for run in runs_of("windows-") if run["client"] == client]
        for server, cell in zip(("picoquic", "lsquic", "quinn"), cells, strict=True):
            values = all_goodputs(run for run in mine if run["server"] == server)
            assert float(cell) == pytest.approx(fmean(values), abs=0.0051)
        limits = [run["measurement"]["negotiated"]["client"] for run in mine if metric(run, "goodput") is not None]
        for cell, name in ((connection, "initial_max_data"), (stream, "initial_max_stream_data_bidi_local")):
            assert {bytes_of(cell)} == {each[name] for each in limits} if cell else not limits
        most = [value for run in mine if run["server"] == "picoquic" and (value := metric(run, "in_flight_max"))]
        assert flying == (str(round(max(most) / 1024)) if most else "")


@pytest.mark.skipif(not stored_part["windows"], reason="no campaign of windows is stored")
def test_clients_that_raise_their_windows() -> None:
    most: dict[str, float] = defaultdict(float)
    for run in runs_of("windows-"):
        if (flying := metric(run, "in_flight_max")) is not None:
            sent = run["measurement"]["negotiated"]["client"]
            share = flying / min(sent["initial_max_data"], sent["initial_max_stream_data_bidi_local"])
            most[run["client"]] = max(most[run["client"]], share)
    order = documents("windows-")[0]["manifest"]["clients"]
    raised = [name for name in order if most[name] > 1.1]
    kept = [name for name in order if 0.85 <= most[name] <= 1.1]
    page = PAGE.read_text("utf-8")
    assert f"With {', '.join(raised)}, a server had more than 110 % of the smaller initial window" in page
    assert f"With {', '.join(kept)}, the most in flight was 85 to 110 % of it" in page


@pytest.mark.skipif(not stored_part["quic-go-windows"], reason="no campaign with larger windows is stored")
def test_numbers_of_larger_windows() -> None:
    section = section_of("Why picoquic is slow with quic-go")
    own = {(run["server"], run["client"]): so_far(run) or 0 for run in runs_of("windows-")}
    wider = {run["server"]: so_far(run) or 0 for run in runs_of("quic-go-windows")}
    [limits] = {
        (sent["initial_max_stream_data_bidi_local"] >> 20, sent["initial_max_data"] >> 20)
        for run in runs_of("quic-go-windows")
        if (sent := run["measurement"]["negotiated"]["client"])
    }
    slow, fast = own["picoquic", "quic-go"], own["picoquic", "ngtcp2"]
    assert f"reaches {slow:.2f} Mbit/s, and with ngtcp2 {fast:.2f} Mbit/s" in section
    assert f"a stream window of {limits[0]} MiB and a connection window of {limits[1]} MiB" in section
    assert f"With this client, picoquic reaches {wider['picoquic']:.2f} Mbit/s." in section
    first = [
        {run["client"]: metric(run, "time_to_first_byte") for run in runs_of(part) if run["server"] == "picoquic"}
        for part in ("windows-", "quic-go-windows")
    ]
    others = [value for client, value in first[0].items() if client != "quic-go" and value is not None]
    assert (
        f"after {first[0]['quic-go']:.2f} s with quic-go's client, after {first[1]['quic-go']:.2f} s with the larger "
        f"windows, and after {min(others):.2f} to {max(others):.2f} s with the other clients"
    ) in section
    factor = wider["picoquic"] / own["picoquic", "quic-go"]
    assert f"quic-go's client receives {factor:.1f} times as fast from picoquic's server" in PAGE.read_text("utf-8")
    for server in ("lsquic", "quinn"):
        assert f"{server} from {own[server, 'quic-go']:.2f} to {wider[server]:.2f} Mbit/s" in section


def test_numbers_of_the_burst() -> None:
    """From the columns of the stored series, which are in microseconds."""
    path = PAPER / "data" / "series" / "picoquic_quic-go" / "sat" / "1" / "series.parquet"
    events = parquet.read_table(path).to_pylist()
    packets = [event for event in events if event["kind"] == "forward"]
    bursts = [[packets[0]]]
    for before, packet in pairwise(packets):
        if packet["sent"] - before["sent"] > 1000:
            bursts.append([])
        bursts[-1].append(packet)
    largest = max(bursts, key=len)
    data = [event for event in events if event["kind"] == "sent"]
    end = largest[-1]["sent"]
    offset = max(event["offset"] + event["length"] for event in data if event["time"] <= end)
    silence = (min(event["time"] for event in data if event["time"] > end and event["new"]) - end) / 1e6
    request = min(event["arrived"] for event in events if event["kind"] == "requests") / 1e6
    section = section_of("Why picoquic is slow with quic-go")
    assert f"The request reaches the server after {request:.2f} s" in section
    assert f"picoquic sends the first byte after {min(event['time'] for event in data) / 1e6:.2f} s" in section
    assert f"- After {largest[0]['sent'] / 1e6:.2f} s, picoquic sends {len(largest)} packets in one burst." in section
    assert f"ends with byte {offset} of the response" in section
    assert f"The queue drops {sum(packet['lost'] for packet in largest)} of these packets." in section
    assert f"sends the next new byte {silence:.2f} s later" in section
    path = PAPER / "data" / "series-with-qlog" / "picoquic_quic-go" / "sat" / "1" / "series.parquet"
    windows = [event for event in parquet.read_table(path).to_pylist() if event["kind"] == "cwnd"]
    before, after = max(pairwise(windows), key=lambda pair: pair[1]["value"] / pair[0]["value"])
    low = min(windows[windows.index(after) :], key=lambda event: event["value"])
    assert (
        f"grows from {before['value'] / 1024:.0f} to {after['value'] / 1024:.0f} KiB with one acknowledgement after "
        f"{after['time'] / 1e6:.2f} s. After the losses, it falls to {low['value'] / 1024:.0f} KiB, at "
        f"{low['time'] / 1e6:.2f} s."
    ) in section
    [limit] = {
        run["measurement"]["negotiated"]["client"]["initial_max_stream_data_bidi_local"]
        for run in matrix()
        if (run["server"], run["client"], run["test_case"]) == ("picoquic", "quic-go", "sat")
    }
    assert offset == limit


@pytest.mark.parametrize(
    ("server", "client", "test_case"), [("picoquic", "picoquic", "satloss"), ("kwik", "msquic", "sat")]
)
def test_numbers_of_single_runs(server: str, client: str, test_case: str) -> None:
    wanted = server, client, test_case
    run = next(run for run in matrix() if (run["server"], run["client"], run["test_case"]) == wanted)
    values = run["measurement"]["values"]
    assert (
        f"- {server} with {client} over `{test_case}` takes {values['completion_time']:.1f} s here, with a goodput of "
        f"{values['goodput'] / 1e6:.1f} Mbit/s. The server reaches 80 % of its steady rate after "
        f"{values['startup_time']:.1f} s, sends {values['sent_per_useful_byte']:.2f} bytes per byte of the file, and "
        f"at most {values['longest_burst']:.0f} packets back to back."
    ) in PAGE.read_text("utf-8")


STUDENT = {
    2: 12.7062, 3: 4.3027, 4: 3.1824, 5: 2.7764, 6: 2.5706, 7: 2.4469, 8: 2.3646, 9: 2.3060, 10: 2.2622, 11: 2.2281,
    12: 2.2010, 13: 2.1788, 14: 2.1604, 15: 2.1448, 16: 2.1314, 34: 2.0345, 35: 2.0322, 36: 2.0301,
}  # fmt: skip
"""97.5 % quantiles of Student's t for so many numbers."""


def geometric_interval(values: list[float]) -> tuple[float, float, float]:
    """Geometric mean and the ends of its 95 % confidence interval."""
    logs = [math.log(value) for value in values]
    half = STUDENT[len(logs)] * math.sqrt(variance(logs) / len(logs))
    return math.exp(fmean(logs)), math.exp(fmean(logs) - half), math.exp(fmean(logs) + half)


@pytest.mark.skipif(not stored_part["queues"], reason="the campaign with the longer queue is not stored")
@pytest.mark.parametrize("test_case", ["sat", "satloss"])
def test_numbers_of_the_longer_queue(test_case: str) -> None:
    """Of the first seed; with several, only that the table is there."""
    name = f"{test_case}-paper-queue"
    longer = [run for run in runs_of("queues") if run["test_case"] == name]
    if not longer or len(documents("queues")) > 1:
        return
    first = documents("matrix")[0]["results"]
    before = {(run["server"], run["client"]): run for run in first if run["test_case"] == test_case}
    ratios: dict[str, list[float]] = defaultdict(list)
    for run in longer:
        one, two = so_far(before[run["server"], run["client"]]), so_far(run)
        if one and two:
            ratios[run["server"]].append(two / one)
    heading = f"Goodput with the longer queue over {test_case}"
    found = {row[0]: row for row in rows(heading)}
    assert found.keys() == ratios.keys()
    faster = slower = 0
    for server, values in ratios.items():
        assert int(found[server][4]) == len(values)
        if len(values) > 1:
            expected = geometric_interval(values)
            cells = [float(cell) for cell in found[server][1:4]]
            assert cells == [pytest.approx(each, abs=0.0051) for each in expected]
            faster += expected[1] > 1
            slower += expected[2] < 1
    section = section_of(heading)
    told = (
        f"{faster} of {len(ratios)} servers are faster with the longer queue (95 % interval over clients above 1), "
        f"and {slower} are slower"
    )
    assert (told in section) == (test_case == "sat")
    assert "beyond doubt" not in section
    paper = IN_THE_PAPER[test_case]
    means = mean_with_both_queues(test_case)
    assert (
        f"differs from the paper's mean by {100 * (means[0] / paper - 1):+.0f} % with 25 packets, and by "
        f"{100 * (means[1] / paper - 1):+.0f} % with the longer queue"
    ) in section
    if test_case == "sat":
        finding = PAGE.read_text("utf-8").partition("## Method")[0]
        assert f"of the paper over `sat` rises by {100 * (means[1] / means[0] - 1):.0f} %" in finding
        assert f"by {100 * (means[1] / paper - 1):+.0f} %; with 25 packets, it differs by " in finding
        assert f"it differs by {100 * (means[0] / paper - 1):+.0f} %. The causes" in finding


def mean_with_both_queues(test_case: str) -> list[float]:
    """Of the first seed and the servers and clients that both measured, Mbit/s."""
    before = {(run["server"], run["client"]): run for run in in_both(documents("matrix")[0]["results"], test_case)}
    longer = in_both(
        ({**run, "test_case": run["test_case"].removesuffix("-paper-queue")} for run in runs_of("queues")), test_case
    )
    shared = [before[run["server"], run["client"]] for run in longer]
    return [
        fmean(value for run in runs if (value := metric(run, "goodput")) is not None) / 1e6 for runs in (shared, longer)
    ]


@pytest.mark.skipif(not stored_part["queues"], reason="the campaign with the longer queue is not stored")
def test_seeds_of_the_longer_queue() -> None:
    seeds = [each["manifest"]["seed"] for each in documents("queues")]
    named = f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}"
    assert f"the same pairs with {named}." in PAGE.read_text("utf-8")


@pytest.mark.skipif(not stored_part["queues"], reason="the campaign with the longer queue is not stored")
def test_servers_with_factors_beyond_what_other_losses_do() -> None:
    """Over satloss: those further from 1 than all factors of servers whose queues dropped nothing."""
    found = rows("Goodput with the longer queue over satloss")
    factors = {row[0]: float(row[1]) for row in found}
    without = [row[0] for row in found if row[5] == row[6] == "0.0"]
    most = max(without, key=lambda name: abs(math.log(factors[name])))
    section = section_of("Goodput with the longer queue over satloss")
    assert f"For {len(without)} servers ({', '.join(without)}), both queues dropped less than 0.05 %" in section
    assert f"{most} has the factor that is furthest from 1, {factors[most]:.2f}:" in section
    beyond = [
        f"{name} ({value:.2f})" for name, value in factors.items() if abs(math.log(value / factors[most])) > 0.01
        if abs(math.log(value)) > abs(math.log(factors[most]))
    ]  # fmt: skip
    assert f"factors further from 1: {', '.join(beyond)}." in section
    empty = [row[0] for row in found if not row[5] or not row[6]]
    assert f"Cells of {', '.join(empty)} are empty" in section
    good = {run["server"] for run in matrix() if run["test_case"] == "satloss" and metric(run, "goodput") is not None}
    assert not good & set(empty)


@pytest.mark.skipif(not stored_part["delays"], reason="the campaign of similar delays is not stored")
def test_numbers_of_similar_delays() -> None:
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for run in runs_of("delays"):
        if (value := metric(run, "goodput")) is not None:
            found[run["server"], run["client"]].append(value)
    count = len(cases_of("delays"))
    spread = {pair: stdev(values) / fmean(values) for pair, values in found.items() if len(values) == count}
    for server, pairs, middle, largest, client in rows("Spread of the goodput over similar delays"):
        mine = {pair: value for pair, value in spread.items() if pair[0] == server}
        assert int(pairs) == len(mine)
        assert float(middle) == pytest.approx(100 * median(mine.values()), abs=0.051)
        assert float(largest) == pytest.approx(100 * max(mine.values()), abs=0.051)
        assert mine[server, client] == max(mine.values())
    worst = max(spread, key=lambda pair: spread[pair])
    ninety = float(np.quantile(list(spread.values()), 0.9))
    assert (
        f"deviation over the delays of {100 * median(spread.values()):.1f} % of its mean at the median, "
        f"{100 * ninety:.1f} % at the 90th percentile, and {100 * spread[worst]:.1f} % at most "
        f"({' with '.join(worst)})."
    ) in section_of("Spread of the goodput over similar delays")


def with_both_clocks(server: str, client: str, test_case: str) -> tuple[list[float], list[float]]:
    """Goodput of the successful runs of a pair in virtual and in real time; over satloss, with the same seeds."""
    wanted = server, client, test_case
    found = [
        {
            run["evidence"]["seed"]: value
            for run in runs
            if (run["server"], run["client"], run["test_case"]) == wanted
            if (value := metric(run, "goodput")) is not None
        }
        for runs in (matrix(), runs_of("real"))
    ]
    if test_case == "satloss":
        common = found[0].keys() & found[1].keys()
        found = [{seed: each[seed] for seed in common} for each in found]
    return list(found[0].values()), list(found[1].values())


@pytest.mark.skipif(not stored_part["real"], reason="the campaign in real time is not stored")
def test_numbers_of_real_time() -> None:
    for test_case, pairs, agree, mean, low, high, least, most in rows("Agreement of virtual and real time"):
        ratios, close = list[float](), 0
        for server, client in {(run["server"], run["client"]) for run in runs_of("real")}:
            found, real = with_both_clocks(server, client, test_case)
            if found and real:
                virtual = fmean(found)
                ratios.append(virtual / fmean(real))
                close += min(real) <= virtual <= max(real) or abs(ratios[-1] - 1) <= 0.03
        assert (int(pairs), int(agree)) == (len(ratios), close)
        expected = geometric_interval(ratios)
        assert [float(mean), float(low), float(high)] == [pytest.approx(each, abs=0.00051) for each in expected]
        assert [float(least), float(most)] == [pytest.approx(each, abs=0.0051) for each in (min(ratios), max(ratios))]
        told = (
            f"over `{test_case}`, {agree} of {pairs} pairs agree, and goodput in virtual time is {mean} times that in "
            f"real time (geometric mean; {least} to {most} for single pairs)"
        )
        assert PAGE.read_text("utf-8").count(told) == 2


@pytest.mark.skipif(not stored_part["real"], reason="the campaign in real time is not stored")
@pytest.mark.parametrize("test_case", IN_THE_PAPER)
def test_ratios_of_pairs_in_virtual_and_real_time(test_case: str) -> None:
    clients = documents("real")[0]["manifest"]["clients"]
    marked = 0
    for server, *cells in rows(f"Virtual over real time over {test_case}"):
        for client, cell in zip(clients, cells, strict=True):
            virtual, real = with_both_clocks(server, client, test_case)
            ratio = fmean(virtual) / fmean(real)
            assert float(cell.removesuffix(r" \*")) == pytest.approx(ratio, abs=0.0051)
            agrees = min(real) <= fmean(virtual) <= max(real) or abs(ratio - 1) <= 0.03
            assert cell.endswith("*") != agrees
            marked += not agrees
    [found] = [row for row in rows("Agreement of virtual and real time") if row[0] == test_case]
    assert marked == int(found[1]) - int(found[2])


@pytest.mark.skipif(len(documents("matrix")) < 2, reason="one seed is stored")
def test_numbers_of_seeds() -> None:
    """Geometric means over clients, each with the mean over its seeds."""
    for server, efficiency, low, high, clients in rows("Servers over satloss"):
        by_client: dict[str, list[float]] = defaultdict(list)
        for run in matrix():
            value = so_far(run) if run["verdict"]["outcome"] in ("succeeded", "timeout") else None
            if (run["server"], run["test_case"]) == (server, "satloss") and value:
                by_client[run["client"]].append(math.log(value / 20))
        assert int(clients) == len(by_client)
        mean = 100 * math.exp(fmean(fmean(each) for each in by_client.values()))
        assert float(efficiency) == pytest.approx(mean, abs=0.0051)
        assert not low or float(low) <= float(efficiency) <= float(high)


@pytest.mark.skipif(len(documents("matrix")) < 2, reason="one seed is stored")
def test_numbers_of_the_spread() -> None:
    found: dict[str, dict[tuple[str, str], list[float | None]]] = defaultdict(lambda: defaultdict(list))
    for run in (*matrix(), *runs_of("spread")):
        value = run["measurement"]["values"].get("goodput") if run["measurement"] else None
        found[run["test_case"]][run["server"], run["client"]].append(value)
    for link, pairs, seeds, middle, _, largest, _ in rows("Spread of the goodput of a pair over seeds"):
        known = [[value for value in values if value is not None] for values in found[link].values()]
        shares = [stdev(values) / fmean(values) for values in known if len(values) == int(seeds)]
        assert int(pairs) == len(shares)
        assert float(middle) == pytest.approx(100 * median(shares), abs=0.051)
        assert float(largest) == pytest.approx(100 * max(shares), abs=0.051)


def test_figures_of_the_page_are_stored() -> None:
    named = set(re.findall(r"\]\(figures/([^)]+)\)", PAGE.read_text(encoding="utf-8")))
    files = {path for path in (PAPER / "figures").rglob("*") if path.is_file()}
    assert named == {str(path.relative_to(PAPER / "figures")) for path in files}
    kinds = {Path(name).stem.split("-")[0] for name in named}
    assert kinds >= {"cdf", "heatmap", "violin", "two", "congestion"}
    numbers = re.findall(r"^\*\*Figure (\d+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(number) for number in numbers] == list(range(1, len(named) + 1))


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


@pytest.mark.skipif(not documents("windows"), reason="no clients with other windows are stored")
def test_a_client_with_the_windows_of_quic_go_is_faster() -> None:
    [value] = [
        goodput / 1e6
        for run in runs_of("windows")
        if (run["server"], run["client"]) == ("picoquic", "openssl")
        if (goodput := metric(run, "goodput")) is not None
    ]
    assert f"openssl announces the same windows and receives {value:.2f} Mbit/s" in PAGE.read_text(encoding="utf-8")


def test_goodput_from_the_first_to_the_last_byte() -> None:
    over_sat = [run for run in matrix() if run["test_case"] == "sat"]
    both = [(metric(run, "stream_goodput"), metric(run, "goodput")) for run in over_sat]
    factor = median(stream / goodput for stream, goodput in both if stream and goodput)
    assert f"goodput is {factor:.2f} times as high" in PAGE.read_text(encoding="utf-8")


SAMPLES = [
    (part, again)
    for part, name in (("matrix", "repeat-[0-9]"), ("spread", "repeat-spread-"))
    for again in documents(name)
]
"""Campaigns that repeat a sample of another one, with the part that it belongs to."""


def repeated_runs(part: str, again: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each run of a sample after the first run. They have the same seed if it is the same in their evidence."""
    first = {(run["server"], run["client"], run["test_case"], run["evidence"]["seed"]): run for run in runs_of(part)}
    return [
        (first[run["server"], run["client"], run["test_case"], run["evidence"]["seed"]], run)
        for run in again["results"]
    ]


def change(pair: tuple[dict[str, Any], dict[str, Any]]) -> float | None:
    """Relative difference of the goodputs of a run and its repetition, if both succeeded."""
    first, second = (metric(run, "goodput") for run in pair)
    return abs(second / first - 1) if first and second else None


def is_reproduced(pair: tuple[dict[str, Any], dict[str, Any]]) -> bool:
    first, second = (run["verdict"]["outcome"] for run in pair)
    return first == second and (change(pair) or 0) <= 0.005


@pytest.mark.parametrize(
    ("part", "again"), SAMPLES, ids=[f"{part} with seed {again['manifest']['seed']}" for part, again in SAMPLES]
)
def test_numbers_of_repeated_runs(part: str, again: dict[str, Any]) -> None:
    seed = again["manifest"]["seed"]
    heading = f"Runs of the {part} measured again with seed {seed}"
    [first] = [each for each in documents(f"{part}-") if each["manifest"]["seed"] == seed]
    all_pairs = repeated_runs(part, again)
    for test_case, runs, good, alike, both, exactly, largest in rows(heading):
        pairs = [pair for pair in all_pairs if pair[1]["test_case"] == test_case]
        changes = [value for pair in pairs if (value := change(pair)) is not None]
        assert int(runs) == len(pairs)
        assert int(alike) == sum(pair[0]["verdict"]["outcome"] == pair[1]["verdict"]["outcome"] for pair in pairs)
        assert int(both) == len(changes)
        assert int(exactly) == changes.count(0)
        assert int(good) == sum(map(is_reproduced, pairs))
        assert float(largest or 0) == pytest.approx(100 * max(changes, default=0), abs=0.00051)
    assert sum(int(row[1]) for row in rows(heading)) == len(all_pairs)
    sample = f"{len(all_pairs)} of the {len(first['results'])} runs of the {part} with seed {seed} was"
    assert sample in PAGE.read_text("utf-8")
    text = section_of(heading).partition("\nA random sample")[0]
    assert text.count("is not reproduced: ") == sum(not is_reproduced(pair) for pair in all_pairs)


def place(run: dict[str, Any]) -> tuple[str, str]:
    """Of a run: the day, and the machine's processor and kernel."""
    host = run["evidence"]["host"]
    return run["evidence"]["started"][:10], f"{host['processor']} {host['kernel']}"


def test_runs_that_were_repeated_on_another_day_or_machine() -> None:
    groups = defaultdict(list)
    for part, again in SAMPLES:
        for pair in repeated_runs(part, again):
            (day, machine), (other_day, other_machine) = map(place, pair)
            groups[day != other_day, machine != other_machine].append(pair)
    for (other_date, elsewhere), mine in groups.items():
        where = f"on {'another' if other_date else 'the same'} day and {'another' if elsewhere else 'the same'} machine"
        told = f"{sum(map(is_reproduced, mine))} of {len(mine)} runs that were measured again {where} are reproduced"
        assert told in PAGE.read_text("utf-8")
    assert PAGE.read_text("utf-8").count(" runs that were measured again on ") == len(groups)
