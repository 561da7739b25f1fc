"""The stored report docs/paper: virtual and real time."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
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


INVALID = {"host-starved": "the machine was too busy", "simulator-lag": "the simulator sent packets late"}


def test_runs_in_real_time_that_did_not_succeed() -> None:
    runs, groups = runs_of("real"), defaultdict[tuple[str, str], list[Run]](list)
    for run in (run for run in runs if not succeeded(run)):
        verdict = run["verdict"]
        reason = INVALID.get(verdict["code"], "")
        if closed := re.search(r"The (client|server) closed the connection .*with ([A-Z_]+)", verdict["reason"]):
            reason = f"the {closed[1]} closed the connection with {closed[2]}"
        word = {"timeout": "timed out", "failed": "failed"}.get(verdict["outcome"], "were invalid")
        groups[f"{word} because {reason}" if reason else word, verdict["code"]].append(run)
    bad = sum(map(len, groups.values()))
    text = the_page()
    told = f"Of the {len(runs)} runs, {len(runs) - bad} succeeded." if bad else f"All {len(runs)} runs succeeded."
    assert told in text
    for (word, code), mine in groups.items():
        word = word.replace("were", "was") if len(mine) == 1 else word
        [pairs] = re.findall(rf"{len(mine)} {re.escape(word)} \(`{code}`: ([^)]+)\)", text)
        count = 0
        for link in pairs.split("; "):
            names, _, test_case = link.removesuffix("`").partition(" over `")
            for name in names.split(", "):
                found = re.fullmatch(r"(\S+) with (\S+)( twice| \d+ times)?", name)
                assert found is not None
                server, client, times = found.groups()
                number = {None: 1, " twice": 2}.get(times) or int(times.split()[0])
                assert number == len(matching(mine, server=server, client=client, test_case=test_case))
                count += number
        assert count == len(mine)
    again = sum(len(each["earlier"]) for each in documents("real"))
    assert ("quicsat repeated " in text) == bool(again)
    assert not again or f"quicsat repeated {again} invalid attempt{'' if again == 1 else 's'}." in text


def test_numbers_of_runs_in_real_time() -> None:
    parts = []
    for test_case in cases_of("real"):
        both = [with_both_clocks(*pair, test_case) for pair in real_pairs()]
        counts = Counter(len(real) for virtual, real in both if virtual and real)
        told = listed(
            f"{number} run{'' if number == 1 else 's'} for {pairs} pair{'' if pairs == 1 else 's'}"
            for number, pairs in sorted(counts.items())
        )
        parts.append(f"{told} over `{test_case}`")
    assert f"The mean of a pair in real time is that of {'; '.join(parts)}.\n" in the_page()


def test_repetitions_that_were_added_later() -> None:
    """Beyond the three that are planned; their seeds are among those of the matrix."""
    later = [(number, run) for number, run in with_repetitions() if number > 3]
    assert ("After this comparison, we also measured the repetition" in the_page()) == bool(later)
    if later:
        numbers, seeds = {number for number, _ in later}, {run["evidence"]["seed"] for _, run in later}
        known = [
            str(each["manifest"]["seed"])
            for each in campaigns("matrix")
            if {run["evidence"]["seed"] for run in each["results"]} & seeds
        ]
        assert {run["test_case"] for _, run in later} == {"satloss"}
        assert (
            f"we also measured the repetition{'' if len(numbers) == 1 else 's'} {listed(map(str, sorted(numbers)))} in "
            f"real time, with seed{'' if len(known) == 1 else 's'} {listed(known)} of the matrix."
        ) in the_page()
