"""The stored report docs/paper: virtual and real time."""

from __future__ import annotations

import math
from collections.abc import Collection
from statistics import fmean, geometric_mean

import pytest

from tests.scripts.stored_paper_report.stored import (
    IN_THE_PAPER,
    Run,
    campaigns,
    cases_of,
    documents,
    geometric_interval,
    implementations_with_a_measured_cpu_cost,
    listed,
    matching,
    matrix,
    metric,
    rows,
    runs_of,
    stored_part,
    succeeded,
    the_page,
)

pytestmark = pytest.mark.skipif(not stored_part["real"], reason="the campaign in real time is not stored")


def real_pairs() -> set[tuple[str, str]]:
    """Servers and clients that ran in real time."""
    return {(run["server"], run["client"]) for run in runs_of("real")}


def with_both_clocks(server: str, client: str, test_case: str) -> tuple[list[float], list[float]]:
    """Goodput of the successful runs of a pair in virtual and in real time; over satloss, with the same seeds."""
    found = [
        [
            (run["evidence"]["seed"], value)
            for run in matching(runs, server=server, client=client, test_case=test_case)
            if (value := metric(run, "goodput")) is not None
        ]
        for runs in (matrix(), runs_of("real"))
    ]
    if test_case == "satloss":
        common = {seed for seed, _ in found[0]} & {seed for seed, _ in found[1]}
        found = [[(seed, value) for seed, value in each if seed in common] for each in found]
    virtual, real = ([value for _, value in each] for each in found)
    return virtual, real


def does_agree(virtual: list[float], real: list[float]) -> bool:
    """The mean is within the range of the runs in real time, or within 3 % of their mean."""
    return min(real) <= fmean(virtual) <= max(real) or abs(fmean(virtual) / fmean(real) - 1) <= 0.03


def agreement(test_case: str, servers: Collection[str]) -> tuple[list[float], int]:
    """Ratios of the pairs of servers, and how many of these pairs agree."""
    both = [with_both_clocks(*pair, test_case) for pair in sorted(real_pairs()) if pair[0] in servers]
    known = [(virtual, real) for virtual, real in both if virtual and real]
    return [fmean(virtual) / fmean(real) for virtual, real in known], sum(does_agree(*each) for each in known)


def rms(ratios: list[float]) -> float:
    """Root mean square of the logarithms."""
    return math.sqrt(fmean(math.log(ratio) ** 2 for ratio in ratios))


def test_numbers_of_real_time() -> None:
    servers, measured = {server for server, _ in real_pairs()}, set(implementations_with_a_measured_cpu_cost())
    groups = {"measured": servers & measured, "default": servers - measured}
    found = {(test_case, cost): cells for test_case, cost, *cells in rows("Agreement of virtual and real time")}
    assert list(found) == [
        (case, cost) for case in cases_of("real") for cost in groups if agreement(case, groups[cost])[0]
    ]
    for (test_case, cost), (*counts, mean, low, high, error, least, most) in found.items():
        ratios, agree = agreement(test_case, groups[cost])
        near, far = (sum(abs(ratio - 1) <= limit for ratio in ratios) for limit in (0.03, 0.1))
        assert list(map(int, counts)) == [len(ratios), agree, near, far]
        assert [float(mean), float(low), float(high)] == pytest.approx(geometric_interval(ratios), abs=0.00051)
        assert float(error) == pytest.approx(100 * rms(ratios), abs=0.051)
        assert [float(least), float(most)] == pytest.approx((min(ratios), max(ratios)), abs=0.0051)


def test_agreement_of_all_pairs_in_words() -> None:
    agreeing, means, errors = list[str](), list[str](), list[str]()
    for test_case in cases_of("real"):
        ratios, agree = agreement(test_case, {server for server, _ in real_pairs()})
        agreeing.append(f"{agree} of {len(ratios)} pairs over `{test_case}`")
        limits = f"{min(ratios):.2f} to {max(ratios):.2f}{'' if means else ' for individual pairs'}"
        means.append(f"{geometric_mean(ratios):.3f} over `{test_case}` ({limits})")
        errors.append(f"{100 * rms(ratios):.1f} % over `{test_case}`")
    assert (
        f"- Goodput in virtual time agrees with goodput in real time for {listed(agreeing)}. The geometric mean of "
        f"goodput in virtual time divided by goodput in real time is {listed(means)}. In this mean, ratios "
        "above and below 1 cancel: the root mean square of the logarithm of the ratio is "
        f"{listed(errors)}. See [Virtual and real time]"
    ) in the_page()


def with_repetitions() -> list[tuple[int, Run]]:
    """Runs in real time; campaigns with further seeds have further repetitions."""
    found = []
    for name in ("real", "real-others"):
        before = 0
        for each in campaigns(name):
            found += [(before + run["repetition"], run) for run in each["results"]]
            before += max(case["repetitions"] for case in each["manifest"]["test_cases"])
    assert len(found) == len(runs_of("real"))
    return found


def test_numbers_of_pairs_and_repetitions_in_real_time() -> None:
    parts = []
    for test_case in cases_of("real"):
        mine = [(repetition, run) for repetition, run in with_repetitions() if run["test_case"] == test_case]
        pairs, most = len({(run["server"], run["client"]) for _, run in mine}), max(mine, key=lambda each: each[0])[0]
        some = "" if len(mine) == pairs * most else f" ({len(mine)} of {pairs * most} runs so far)"
        parts.append(f"{pairs} pairs with {most} repetitions over `{test_case}`{some}")
    assert f"We also measured some pairs in real time: {listed(parts)}. Each run was" in the_page()


def test_repetitions_with_the_losses_of_the_matrix() -> None:
    """Over satloss, of pairs that succeeded with the same seed with both clocks."""
    good = {(run["server"], run["client"], run["evidence"]["seed"]) for run in matrix() if succeeded(run)}
    numbers = {
        repetition
        for repetition, run in with_repetitions()
        if run["test_case"] == "satloss" and succeeded(run)
        if (run["server"], run["client"], run["evidence"]["seed"]) in good
    }
    word = "number" if len(numbers) == 1 else "numbers"
    told = f"the runs that we compare have the repetition {word} {listed(map(str, sorted(numbers)))}."
    assert told in the_page()


@pytest.mark.parametrize("test_case", IN_THE_PAPER)
def test_ratios_of_pairs_in_virtual_and_real_time(test_case: str) -> None:
    clients = list(dict.fromkeys(name for each in documents("real") for name in each["manifest"]["clients"]))
    marked = count = 0
    for server, *cells, mean, error in rows(f"Virtual over real time over {test_case}"):
        ratios, _ = agreement(test_case, {server})
        assert float(mean) == pytest.approx(geometric_mean(ratios), abs=0.0051)
        assert float(error) == pytest.approx(100 * rms(ratios), abs=0.051)
        for client, cell in zip(clients, cells, strict=True):
            virtual, real = with_both_clocks(server, client, test_case)
            assert (cell != "") == bool(virtual and real)
            if cell:
                ratio = float(cell.removesuffix(r" \*"))
                assert ratio == pytest.approx(fmean(virtual) / fmean(real), abs=0.0051)
                assert cell.endswith("*") != does_agree(virtual, real)
                marked, count = marked + cell.endswith("*"), count + 1
    found = [row for row in rows("Agreement of virtual and real time") if row[0] == test_case]
    assert count == sum(int(row[2]) for row in found)
    assert marked == count - sum(int(row[3]) for row in found)


def test_servers_that_are_faster_or_slower_in_virtual_time() -> None:
    told, certain = list[str](), list[str]()
    for test_case in cases_of("real"):
        parts = []
        for server in dict.fromkeys(server for server, _ in sorted(real_pairs(), key=place)):
            ratios, _ = agreement(test_case, {server})
            if len(ratios) > 1 and abs(geometric_mean(ratios) - 1) > 0.03:
                mean, low, high = geometric_interval(ratios)
                parts.append(f"{server} ({mean:.2f}, {low:.2f} to {high:.2f})")
                certain += [f"{server} over `{test_case}`"] if low > 1 or high < 1 else []
        if parts:
            told.append(f"{listed(parts)} over `{test_case}`")
    expected = (
        f"The geometric mean of a server's ratios is more than 3 % from 1 for {'; '.join(told)}. The parentheses "
        "contain this mean and its 95 % confidence interval over the clients, which excludes 1 for "
        f"{listed(certain) if certain else 'none of these servers'}.\n"
    )
    assert (expected in the_page()) if told else ("ratios is more than 3 %" not in the_page())


def place(pair: tuple[str, str]) -> list[int]:
    """Of a pair in the order of the campaigns."""
    names = [dict.fromkeys(name for each in documents("real") for name in each["manifest"][side])
             for side in ("servers", "clients")]  # fmt: skip
    return [list(known).index(name) for known, name in zip(names, pair, strict=True)]
