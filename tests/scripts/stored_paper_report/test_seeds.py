"""The stored report docs/paper: several seeds."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from statistics import fmean, median, stdev

import pytest

from tests.scripts.stored_paper_report.stored import (
    IN_THE_PAPER,
    Run,
    all_goodputs,
    campaigns,
    cases_of,
    documents,
    half_width,
    listed,
    manifest,
    matching,
    matrix,
    rows,
    runs_of,
    so_far,
    the_page,
)


def test_runs_that_only_images_with_the_same_ids_repeat() -> None:
    parts = []
    for test_case in cases_of("matrix"):
        stamps = [run["evidence"]["started"] for run in matrix() if run["test_case"] == test_case]
        if early := sum(stamp < "2026-11-25" for stamp in stamps):
            parts.append(f"{early} of {len(stamps)} over `{test_case}`")
    told = f"Some runs of the matrix are from before 2026-11-25: {', '.join(parts)}."
    assert (told in the_page()) is bool(parts)


EFFICIENCY = re.compile(r"([\d.]+) \(([\d.]+) to ([\d.]+)\)")
"""Percent: a geometric mean, and the ends of its interval."""


def logs_of_efficiency(server: str, test_case: str) -> list[dict[int, float]]:
    """Of each client, by seed, also of runs that timed out."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for run in matching(matrix(), server=server, test_case=test_case):
        if run["verdict"]["outcome"] in ("succeeded", "timeout") and (value := so_far(run)):
            found[run["client"]][run["evidence"]["seed"]] = math.log(value / 20)
    return list(found.values())


def has_three_digits(cell: str, expected: float) -> bool:
    """``cell``: percent, with zeros at the end, such as ``39.0``."""
    return len(cell.lstrip("0.").replace(".", "")) == 3 and float(cell) == float(f"{100 * expected:.3g}")


@pytest.mark.skipif(len(documents("matrix")) < 2, reason="one seed is stored")
def test_numbers_of_seeds() -> None:
    """Geometric means over clients, each with the mean over its seeds."""
    found = {row[0]: row[1:] for row in rows("Efficiency of servers, with confidence intervals")}
    assert list(found) == manifest()["servers"]
    for server, cells in found.items():
        for cell, test_case in zip(cells, IN_THE_PAPER, strict=True):
            told = EFFICIENCY.fullmatch(cell)
            assert told is not None
            logs = logs_of_efficiency(server, test_case)
            mean = fmean(fmean(each.values()) for each in logs)
            assert has_three_digits(told[1], math.exp(mean))
            if len({seed for each in logs for seed in each}) == 1:
                half = half_width([value for each in logs for value in each.values()])
                assert has_three_digits(told[2], math.exp(mean - half))
                assert has_three_digits(told[3], min(1, math.exp(mean + half)))
            else:
                assert_half_width(logs, *(math.log(float(end) / 100) for end in told.groups()))


def assert_half_width(logs: list[dict[int, float]], middle: float, low: float, high: float) -> None:
    """It is near the larger one of Student's t over clients and over seeds: the report calibrates it by simulation."""
    seeds = sorted({seed for each in logs for seed in each})
    of_clients = half_width([fmean(each.values()) for each in logs])
    of_seeds = half_width([fmean(each[seed] for each in logs if seed in each) for seed in seeds])
    assert middle - low == pytest.approx(high - middle, abs=0.02)
    assert 0.5 < (high - low) / 2 / max(of_clients, of_seeds) < 1.5


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


def runs_by_seed(server: str = "") -> list[list[Run]]:
    """Runs over satloss of a server or all servers, by campaign."""
    wanted = {"server": server} if server else {}
    return [matching(each["results"], test_case="satloss", **wanted) for each in documents("matrix")]


@pytest.mark.skipif(len(documents("matrix")) < 2, reason="one seed is stored")
def test_numbers_of_goodput_by_seed() -> None:
    found = rows("Goodput by seed over satloss")
    assert [row[0] for row in found] == [*manifest()["servers"], "all"]
    for server, *cells in found:
        means = [fmean(all_goodputs(runs)) for runs in runs_by_seed("" if server == "all" else server)]
        assert list(map(float, cells)) == pytest.approx(means, abs=0.0051)
    first, *others = (fmean(all_goodputs(runs)) for runs in runs_by_seed())
    assert (
        f"The mean goodput of all runs over `satloss` is {first:.2f} Mbit/s with seed 1 and {min(others):.2f} to "
        f"{max(others):.2f} Mbit/s with the other seeds."
    ) in the_page()


@pytest.mark.skipif(len(documents("matrix")) < 2, reason="one seed is stored")
def test_numbers_of_queue_drops_by_seed() -> None:
    """Share of the packets in per cent, and runs with drops."""
    found = rows("Queue drops by seed over satloss")
    assert [row[0] for row in found] == manifest()["servers"]
    for server, *cells in found:
        for cell, runs in zip(cells, runs_by_seed(server), strict=True):
            counts = [run["evidence"]["simulator"]["forward"] for run in runs]
            share = sum(each["queue_drops"] for each in counts) / sum(each["received"] for each in counts)
            assert cell == f"{100 * share:.2f} ({sum(each['queue_drops'] > 0 for each in counts)})"


@pytest.mark.skipif(len(documents("matrix")) < 2, reason="one seed is stored")
def test_campaigns_with_one_sequence_of_losses() -> None:
    """Other campaigns over satloss, whose runs have one seed, which the matrix also has."""
    known = {run["evidence"]["seed"]: each["manifest"]["seed"] for each in documents("matrix")
             for run in matching(each["results"], test_case="satloss")}  # fmt: skip
    names, numbers = list[str](), set[int]()
    for part in (row[0] for row in rows("Campaigns")[:-1]):
        used = {run["evidence"]["seed"] for run in runs_of(part) if run["test_case"].startswith("satloss")}
        if part not in ("matrix", "repeat") and len(used) == 1 and used <= known.keys():
            names, numbers = [*names, part], numbers | {known[seed] for seed in used}
    assert {"msquic-counter", "queues"} <= {*names} or not {*names}
    assert len(numbers) == 1
    assert len(names) > 1
    assert (
        f"Over this link, the campaigns {listed(f'`{name}`' for name in names)} have only seed {numbers.pop()}, so "
        "their results hold for one sequence of"
    ) in the_page()


@pytest.mark.skipif(len(documents("matrix")) < 2, reason="one seed is stored")
def test_seed_and_server_together() -> None:
    """Variance components from mean squares of a complete design, written out for each source."""
    goodputs: dict[tuple[str, str, int], float] = {}
    failed = set()
    for run in matching(matrix(), test_case="satloss"):
        if run["verdict"]["outcome"] == "succeeded":
            value = math.log(run["measurement"]["values"]["goodput"])
            goodputs[run["server"], run["client"], run["evidence"]["seed"]] = value
        else:
            failed.add(run["server"])
    servers = sorted({server for server, _, _ in goodputs} - failed)
    clients = sorted({client for _, client, _ in goodputs})
    seeds = sorted({seed for _, _, seed in goodputs})
    mean = {
        (a, b, c): fmean(goodputs[s, x, k] for s in ([a] if a else servers) for x in ([b] if b else clients)
                         for k in ([c] if c else seeds))
        for a in [None, *servers] for b in [None, *clients] for c in [None, *seeds]
    }  # fmt: skip
    n, m, o = len(servers), len(clients), len(seeds)
    whole = mean[None, None, None]
    of_servers = m * o * sum((mean[s, None, None] - whole) ** 2 for s in servers) / (n - 1)
    of_clients = n * o * sum((mean[None, x, None] - whole) ** 2 for x in clients) / (m - 1)
    of_seeds = n * m * sum((mean[None, None, k] - whole) ** 2 for k in seeds) / (o - 1)
    pairs = o * sum(
        (mean[s, x, None] - mean[s, None, None] - mean[None, x, None] + whole) ** 2 for s in servers for x in clients
    ) / ((n - 1) * (m - 1))  # fmt: skip
    with_server = m * sum(
        (mean[s, None, k] - mean[s, None, None] - mean[None, None, k] + whole) ** 2 for s in servers for k in seeds
    ) / ((n - 1) * (o - 1))  # fmt: skip
    with_client = n * sum(
        (mean[None, x, k] - mean[None, x, None] - mean[None, None, k] + whole) ** 2 for x in clients for k in seeds
    ) / ((m - 1) * (o - 1))  # fmt: skip
    rest = sum(
        (mean[s, x, k] - mean[s, x, None] - mean[s, None, k] - mean[None, x, k]
         + mean[s, None, None] + mean[None, x, None] + mean[None, None, k] - whole) ** 2
        for s in servers for x in clients for k in seeds
    ) / ((n - 1) * (m - 1) * (o - 1))  # fmt: skip
    components = {
        "server": (of_servers - pairs - with_server + rest) / (m * o),
        "client": (of_clients - pairs - with_client + rest) / (n * o),
        "seed": (of_seeds - with_server - with_client + rest) / (n * m),
        "pair": (pairs - rest) / o,
        "server and seed": (with_server - rest) / m,
        "client and seed": (with_client - rest) / n,
        "rest": rest,
    }
    total = sum(max(value, 0) for value in components.values())
    server, client, seed = (
        f"{100 * max(components[source], 0) / total:.1f}" for source in ("server and seed", "client and seed", "seed")
    )
    assert (
        f"For the {n} servers that always succeeded over `satloss`, seed and server together account for {server} % of "
        f"the variance of the logarithm of goodput, seed and client together for {client} %, and seed alone for {seed} "
        "%."
    ) in the_page()


def test_further_seeds_of_another_machine() -> None:
    """Those of the campaign spread, which also used another image."""
    found = {each["manifest"]["seed"]: each for each in campaigns("spread")}
    processors = {
        seed: {run["evidence"]["host"]["processor"] for run in each["results"]} for seed, each in found.items()
    }
    images = {seed: each["manifest"]["images"]["virtual-time"]["reference"] for seed, each in found.items()}
    first, *rest = found
    moved = [seed for seed in rest if processors[seed] != processors[first]]
    assert all((images[seed] != images[first]) == (seed in moved) for seed in rest)
    assert f"the runs with seeds {listed(map(str, moved))} also differ from the others in the machine and" in the_page()
