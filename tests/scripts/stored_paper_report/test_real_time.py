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
    the_findings,
    the_page,
)
from tests.scripts.stored_paper_report.variance import TOLD, Variance, goodput_of

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


def means_of_servers(test_case: str, servers: Collection[str]) -> list[float]:
    """Geometric means of their ratios; those of the pairs if there is one server."""
    each = [ratios for server in sorted(servers) if (ratios := agreement(test_case, {server})[0])]
    return each[0] if len(each) == 1 else list(map(geometric_mean, each))


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
        assert [float(mean), float(low), float(high)] == pytest.approx(
            geometric_interval(means_of_servers(test_case, groups[cost])), abs=0.00051
        )
        assert float(error) == pytest.approx(100 * rms(ratios), abs=0.051)
        assert [float(least), float(most)] == pytest.approx((min(ratios), max(ratios)), abs=0.0051)


def test_agreement_of_all_pairs_in_words() -> None:
    close, far, agreeing, means, errors = (list[str]() for _ in range(5))
    for test_case in cases_of("real"):
        servers = {server for server, _ in real_pairs()}
        ratios, agree = agreement(test_case, servers)
        near, further = (sum(abs(ratio - 1) <= limit for ratio in ratios) for limit in (0.03, 0.1))
        close.append(f"{near} and {further} of {len(ratios)} pairs over `{test_case}`")
        far.append(f"{further} of {len(ratios)} pairs over `{test_case}`")
        agreeing.append(f"{agree} over `{test_case}`")
        limits = f"{min(ratios):.2f} to {max(ratios):.2f}{'' if means else ' for individual pairs'}"
        means.append(f"{geometric_mean(means_of_servers(test_case, servers)):.3f} over `{test_case}` ({limits})")
        errors.append(f"{100 * rms(ratios):.1f} % over `{test_case}`")
    assert (
        f"- Goodput in virtual time differs from the mean goodput in real time by at most 3 and 10 % for "
        f"{listed(close)}. By a criterion that also considers the range of the repetitions in real time, the following "
        f"numbers of pairs agree: {listed(agreeing)}. The geometric mean, over the servers, of goodput in virtual time "
        f"divided by goodput in real time is {listed(means)}. In this mean, ratios above and below 1 cancel out. They "
        "do not in the root mean square, over all pairs, of the logarithm of the ratio, which is "
        f"{listed(errors)}. {coverage()} See [Virtual and real"
    ) in the_page()
    assert (
        f"- Goodput in virtual time differs from goodput in real time by at most 10 % for {listed(far)}. {coverage()}"
    ) in the_findings()


def coverage() -> str:
    """Which servers and clients ran in real time."""
    manifest = documents("matrix")[0]["manifest"]
    servers, used = manifest["servers"], {client for _, client in real_pairs()}
    clients = [name for name in manifest["clients"] if name in used]
    covered, groups = list[str](), {count: defaultdict[str, list[str]](list) for count in (1, 0)}
    for test_case in cases_of("real"):
        runs = matching(runs_of("real"), test_case=test_case)
        counts = {name: len({run["client"] for run in runs if run["server"] == name}) for name in servers}
        some = sum(map(bool, counts.values()))
        part = f"{some} of the {len(servers)}" if some < len(servers) else f"all {len(servers)}"
        covered.append(f"{part} servers over `{test_case}`")
        for count, found in groups.items():
            if names := [name for name in servers if counts[name] == count]:
                found[listed(names)].append(f"`{test_case}`")
    single, never = ([f"{names} over {listed(links)}" for names, links in found.items()] for found in groups.values())
    return (
        f"We measured {listed(covered)} in real time, with {len(clients)} of {len(manifest['clients'])} clients "
        f"({listed(clients)})."
        + (f" The following servers have a single client in real time: {'; '.join(single)}." if single else "")
        + (f" There are no runs in real time of {'; '.join(never)}." if never else "")
    )


def test_runs_on_another_machine() -> None:
    """Than most; servers by link."""
    processors = Counter(run["evidence"]["host"]["processor"] for run in runs_of("real"))
    [(usual, _), *_] = processors.most_common()
    assert {usual} == {run["evidence"]["host"]["processor"] for run in matrix()} - {""}
    found = defaultdict[str, list[str]](list)
    for test_case in cases_of("real"):
        moved = [
            run["server"]
            for run in matching(runs_of("real"), test_case=test_case)
            if run["evidence"]["host"]["processor"] != usual
        ]
        if moved:
            found[listed(dict.fromkeys(moved))].append(f"`{test_case}`")
    told = listed(f"{names} over {listed(links)}" for names, links in found.items()) if found else ""
    assert (f"the following ones on another machine: {told}.\n" in the_page()) == bool(found)


def with_repetitions() -> list[tuple[int, Run]]:
    """Runs in real time; campaigns with further seeds have further repetitions."""
    found = []
    for name in ("real", "real-loss", "real-measured", "real-others"):
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
    assert f"We also measured some pairs in real time: {listed(parts)}. For each run, we" in the_page()


def test_repetitions_with_the_losses_of_the_matrix() -> None:
    """Over satloss, of pairs that succeeded with the same seed with both clocks."""
    good = {(run["server"], run["client"], run["evidence"]["seed"]) for run in matrix() if succeeded(run)}
    numbers = {
        repetition
        for repetition, run in with_repetitions()
        if run["test_case"] == "satloss" and succeeded(run)
        if (run["server"], run["client"], run["evidence"]["seed"]) in good
    }
    word = "repetition" if len(numbers) == 1 else "repetitions"
    told = f"The real-time runs that we compare are those of {word} {listed(map(str, sorted(numbers)))}."
    assert told in the_page()


@pytest.mark.parametrize("test_case", IN_THE_PAPER)
def test_ratios_of_pairs_in_virtual_and_real_time(test_case: str) -> None:
    clients = list(dict.fromkeys(name for each in documents("real") for name in each["manifest"]["clients"]))
    marked = count = 0
    for server, *cells, mean, error in rows(f"Goodput in virtual time relative to real time, over {test_case}"):
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
    told, certain, count = list[str](), list[str](), 0
    for test_case in cases_of("real"):
        parts = []
        for server in dict.fromkeys(server for server, _ in sorted(real_pairs(), key=place)):
            ratios, _ = agreement(test_case, {server})
            if len(ratios) > 1 and abs(geometric_mean(ratios) - 1) > 0.03:
                mean, low, high = geometric_interval(ratios)
                parts.append(f"{server} ({mean:.2f}, {low:.2f} to {high:.2f})")
                certain += [f"{server} over `{test_case}`"] if low > 1 or high < 1 else []
        if parts:
            count += len(parts)
            told.append(f"{listed(parts)} over `{test_case}`")
    whose = "the interval includes 1" if count == 1 else "for all of these servers, the interval includes 1"
    expected = (
        f"The geometric mean of a server's ratios is more than 3 % from 1 for {'; '.join(told)}. The parentheses "
        "contain this mean and its 95 % confidence interval over the clients; "
        f"{f'the interval excludes 1 for {listed(certain)}' if certain else whose}.\n"
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


def test_real_time_runs_at_the_same_time() -> None:
    most, told = 0, []
    for test_case in cases_of("real"):
        runs = matching(runs_of("real"), test_case=test_case)
        beside = [run["evidence"]["host"].get("neighbours", 0) for run in runs]
        most = max(most, *beside)
        count = sum(number > 0 for number in beside)
        if count:
            told.append(f"{f'{count} of the' if count < len(runs) else 'all'} {len(runs)} runs over `{test_case}`")
    if told:
        assert f"quicsat performed up to {most + 1} runs at a time: other runs took place at the same time as " in (
            the_page()
        )
        assert f"at the same time as {listed(told)}. If such" in the_page()
    else:
        assert "quicsat performed one run at a time." in the_page()


def test_numbers_of_runs_in_real_time() -> None:
    parts = []
    for test_case in cases_of("real"):
        both = [with_both_clocks(*pair, test_case) for pair in real_pairs()]
        counts = Counter(len(real) for virtual, real in both if virtual and real)
        every = "all " if len(counts) == 1 < sum(counts.values()) else ""
        told = listed(
            f"{number} for {every}{pairs} pair{'' if pairs == 1 else 's'}" for number, pairs in sorted(counts.items())
        )
        parts.append(f"{told} over `{test_case}`")
    *others, last = parts
    assert f"The number of real-time runs behind a pair's mean is {'; '.join(others)}; and {last}.\n" in the_page()


def test_repetitions_in_place_of_virtual_time() -> None:
    told = []
    for test_case in ("terrestrial", "sat"):
        ratios, agree = list[float](), 0
        for server, client in real_pairs():
            runs = matching(runs_of("real"), server=server, client=client, test_case=test_case)
            values = [value for run in runs if (value := metric(run, "goodput")) is not None]
            for place, value in enumerate(values if len(values) > 2 else []):
                others = values[:place] + values[place + 1 :]
                ratios.append(value / fmean(others))
                agree += does_agree([value], others)
        part = f"{agree} of the" if agree < len(ratios) else "all"
        told.append(f"{part} {len(ratios)} repetitions over `{test_case}` (RMS {100 * rms(ratios):.1f} %)")
    assert f"with the other repetitions of its pair, {listed(told)} agree." in the_page()


def test_outcomes_with_both_clocks() -> None:
    same, different = 0, set[str]()
    total = 0
    for test_case in cases_of("real"):
        for run in matching(runs_of("real"), test_case=test_case):
            others = {
                other["verdict"]["outcome"]
                for other in matching(matrix(), server=run["server"], client=run["client"], test_case=test_case)
                if test_case != "satloss" or other["evidence"]["seed"] == run["evidence"]["seed"]
            }
            outcome = run["verdict"]["outcome"]
            if outcome in ("succeeded", "failed", "timeout") and others:
                [virtual] = others
                total += 1
                same += outcome == virtual
                if outcome != virtual:
                    name = f"{run['server']} with {run['client']} over `{test_case}`"
                    different.add(f"{name} ({outcome} in real time, {virtual} in virtual time)")
    part = f"{same} of the {total}" if same < total else f"all {total}"
    assert f"The outcome is the same with both clocks in {part} runs that can be compared." in the_page()
    assert ("It differs for" in the_page()) == bool(different)
    assert ("All of these runs succeeded, so they do not show" in the_page()) == all(map(succeeded, runs_of("real")))
    for each in different:
        assert each in the_page()


BOTH_CLOCKS = "Influence of the server with both clocks"


def test_the_influence_of_the_server_with_both_clocks() -> None:
    for test_case, servers, clients, *told, order in rows(BOTH_CLOCKS):
        means: tuple[dict[str, list[float]], dict[str, list[float]]] = (defaultdict(list), defaultdict(list))
        partners = defaultdict[str, set[str]](set)
        for server, client in real_pairs():
            both = with_both_clocks(server, client, test_case)
            if all(both):
                partners[server].add(client)
                for side, values in zip(means, both, strict=True):
                    side[server] += values
        kept = [server for server, those in partners.items() if len(those) > 1]
        pairs = {(server, client) for server in kept for client in partners[server]}
        same = {run["evidence"]["seed"] for run in matrix()} & {run["evidence"]["seed"] for run in runs_of("real")}
        for runs, share in zip((matrix(), runs_of("real")), told, strict=True):
            mine = [
                run
                for run in matching(runs, test_case=test_case)
                if (run["server"], run["client"]) in pairs
                if test_case != "satloss" or run["evidence"]["seed"] in same
            ]
            Variance(mine, goodput_of).assert_server(re.fullmatch(TOLD, share))
        assert int(servers) == len(kept)
        assert int(clients) == len(set().union(*(partners[server] for server in kept)))
        ranks = [
            {server: sum(fmean(side[other]) < fmean(side[server]) for other in kept) for server in kept}
            for side in means
        ]
        squares = sum((ranks[0][server] - ranks[1][server]) ** 2 for server in kept)
        assert float(order) == pytest.approx(1 - 6 * squares / (len(kept) ** 3 - len(kept)), abs=0.0051)


def test_servers_that_differ_much() -> None:
    """By more than 10 % on average, by their CPU cost."""
    measured, groups = set(implementations_with_a_measured_cpu_cost()), []
    for wanted, what in ((False, "the default"), (True, "a measured")):
        found = defaultdict[str, list[str]](list)
        for test_case in cases_of("real"):
            for server in sorted({server for server, _ in real_pairs()}, key=order_of_servers):
                ratios = agreement(test_case, {server})[0] if (server in measured) is wanted else []
                if ratios and abs(geometric_mean(ratios) - 1) > 0.1:
                    found[server].append(f"{geometric_mean(ratios):.2f} over `{test_case}`")
        if found:
            told = listed(f"{server} ({listed(ratios)})" for server, ratios in found.items())
            groups.append(f"of those with {what} CPU cost, {told}")
    hidden = defaultdict[str, list[str]](list)
    for test_case in cases_of("real"):
        for server in sorted({server for server, _ in real_pairs()}, key=order_of_servers):
            ratios = agreement(test_case, {server})[0]
            if ratios and abs(geometric_mean(ratios) - 1) <= 0.1 < rms(ratios):
                hidden[server].append(f"{100 * rms(ratios):.1f} % over `{test_case}`")
    also = listed(f"{server} ({listed(errors)})" for server, errors in hidden.items())
    told = (
        f"by more than 10 % (geometric mean over the clients): {'; '.join(groups)}. The parentheses contain goodput in "
        "virtual time divided by goodput in real time. In this mean, ratios above and below 1 cancel out; by the RMS, "
        f"{also} also {'differs' if len(hidden) == 1 else 'differ'} by more. The 95 % confidence interval over the "
        "clients includes 1 for aioquic over `sat`."
    )
    assert the_page().count(told) == 2
    assert told in the_findings()


def test_more_seeds_in_virtual_time() -> None:
    """Of the pairs of the campaign spread, over the links that it has."""
    parts = []
    for test_case in cases_of("spread"):
        counts, seeds = [0, 0], set()
        pairs = {(run["server"], run["client"]) for run in runs_of("spread")}
        for server, client in pairs:
            first, real = with_both_clocks(server, client, test_case)
            more = matching(runs_of("spread"), server=server, client=client, test_case=test_case)
            every = first + [float(metric(run, "goodput") or 0) for run in more]
            seeds.add(len(every))
            for place, values in enumerate((first, every)):
                counts[place] += abs(fmean(values) / fmean(real) - 1) <= 0.1
        [number] = seeds
        parts.append(f"over `{test_case}`, {counts[1]} instead of {counts[0]} of {len(pairs)} pairs ({number} seeds)")
    assert f"the following numbers of pairs are within 10 %: {'; '.join(parts)}.\n" in the_page()


def order_of_servers(server: str) -> int:
    """In the campaigns in real time."""
    return list(dict.fromkeys(name for each in documents("real") for name in each["manifest"]["servers"])).index(server)
