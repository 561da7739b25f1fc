"""The stored report docs/paper: algorithm or implementation."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection
from itertools import pairwise
from statistics import fmean, geometric_mean, median, variance
from typing import Any

import numpy as np
import pytest

from tests.scripts.stored_paper_report.stored import (
    STUDENT,
    all_goodputs,
    by_client,
    campaigns,
    documents,
    geometric_interval,
    listed,
    matching,
    metrics,
    rows,
    runs_of,
    section_of,
    the_findings,
    the_page,
)

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
    found = {name: cells for name, *cells in rows(f"Congestion control algorithms over {test_case}")}
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
    section = section_of(f"Congestion control algorithms over {test_case}")
    cells = {name: cells for name, *cells in rows(f"Congestion control algorithms over {test_case}")}
    for place, (slower, faster) in enumerate((("Reno", "CUBIC"), ("CUBIC", "BBR")), start=3):
        factors = {name: each[faster] / each[slower] for name, each in means.items() if {slower, faster} <= each.keys()}
        for name, each in cells.items():
            assert each[place] == (f"{factors[name]:.1f}" if name in factors else "")
        middle, low, high = geometric_interval(list(factors.values()))
        without = {name: geometric_mean(value for other, value in factors.items() if other != name) for name in factors}
        least, most = min(without, key=lambda name: without[name]), max(without, key=lambda name: without[name])
        assert (
            f"- Switching from {slower} to {faster} multiplies the goodput of an implementation by {middle:.1f} "
            f"(geometric mean of {len(factors)} implementations; 95 % confidence interval {low:.1f} to {high:.1f}). If "
            f"one implementation is left out, this factor is {without[least]:.1f} (without {least}) to "
            f"{without[most]:.1f} (without {most})."
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
    found["interaction"] = error - rest / len(clients)
    found["client"] = variance(table.mean(axis=0)) - rest / len(servers)
    found["rest"] = rest
    total = sum(max(part, 0) for part in found.values())
    return {source: max(part, 0) / total for source, part in found.items()}


def difference(shares: dict[str, float], counts: str) -> float:
    """Implementation minus congestion control."""
    interaction = shares["interaction"] if counts == "counts as implementation" else 0
    return shares["implementation"] + interaction - shares["congestion control"]


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
    [cells] = [
        row[1:]
        for row in rows("Sources of the variance with different congestion control algorithms")
        if row[0] == test_case
    ]
    for cell, share in zip(cells, whole.values(), strict=True):
        assert float(cell) == pytest.approx(100 * share, abs=0.51)
    names = sorted({key[0] for key in logs})
    page = the_page()
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
        told = "includes 0, so these data do not show which share is larger"
        if ends[0] > 0 or ends[1] < 0:
            side, larger = ("above", "implementation") if ends[0] > 0 else ("below", "congestion control")
            told = f"is {side} 0, so the {larger}'s share is larger"
        start, name = "counts as part of the implementation, the difference", ""
        if row[1] == "counts as neither":
            start = "The implementation's share minus that of the congestion control"
            name = "95 % confidence interval "
        middle, low, high = (f"{100 * each:+.0f}" for each in (value, *ends))
        numbers = rf"\{middle} percentage points \({name}\{low} to \{high}\)"
        assert re.search(rf"- Over `{test_case}`, .*{start} is {numbers}\. The interval {told}\.", page)
    assert f"- Over `{test_case}`, {shares_in_words(whole)} The implementation's" in page
    assert "significantly" not in section_of("Share of the implementation minus share of the congestion control")


def shares_in_words(shares: dict[str, float]) -> str:
    """``the implementation accounts for 61 % of the variance, …``."""
    own, other, both = (f"{100 * shares[source]:.0f} %" for source in list(shares)[:3])
    return (
        f"the implementation accounts for {own} of the variance, the congestion control for {other}, and their "
        f"interaction for {both}."
    )


def number_of_seeds() -> str:
    count = len(documents("variants"))
    return "one seed" if count == 1 else f"{count} seeds"


def versions_of_bbr() -> dict[str, str]:
    """By implementation, where the source of its congestion control names it."""
    known = documents("variants")[0]["manifest"]["implementations"]
    sources = {each["name"]: each["congestion_control"]["source"] for each in known if ":bbr" in each["name"]}
    return {
        name.removesuffix(":bbr"): found[1]
        for name, source in sources.items()
        if name.endswith(":bbr") and (found := re.search(r"its BBR is version (\d)", source))
    }


Key = tuple[str, str, str]
"""Implementation, congestion control and client."""

SELECTIONS: dict[str, Callable[[Key, Collection[str]], bool]] = {
    "implementations with all three algorithms": lambda _, controls: len(controls) == 3,
    "Reno and CUBIC only": lambda key, _: key[1] != "BBR",
    "BBR version 1 only": lambda key, _: key[1] != "BBR" or versions_of_bbr().get(key[0]) == "1",
    "without msquic:bbr": lambda key, _: key[:2] != ("msquic", "BBR"),
    "msquic:cubic without the underflow": lambda _, __: True,
    "without picoquic:cubic": lambda key, _: key[:2] != ("picoquic", "CUBIC"),
    "without CUBIC of picoquic, quiche and msquic": lambda key, _: (
        key[1] != "CUBIC" or key[0] not in ("picoquic", "quiche", "msquic")
    ),
}
SUBSETS = "Difference of the shares in subsets of the runs"


def logs_of_goodput(test_case: str) -> dict[Key, float]:
    """Mean over seeds of the logarithm."""
    return {
        (name, control, client): fmean(map(math.log, values))
        for name, by_control in with_control(test_case).items()
        for control, runs in by_control.items()
        for client, values in by_client(runs).items()
    }


def logs_of_picoquic_bbr1(test_case: str) -> dict[Key, float]:
    """As BBR of picoquic: it is of version 1, and picoquic:bbr is not."""
    assert versions_of_bbr()["picoquic"] != "1"
    runs = matching(runs_of("variants"), test_case=test_case, server="picoquic:bbr1")
    return {("picoquic", "BBR", client): fmean(map(math.log, values)) for client, values in by_client(runs).items()}


def logs_without_the_underflow(test_case: str) -> dict[Key, float]:
    """Of msquic's CUBIC, with the clients and losses of the variants."""
    same = {
        (run["client"], run["evidence"]["seed"])
        for run in matching(runs_of("variants"), test_case=test_case, server="msquic:cubic")
    }
    runs = [
        run
        for run in matching(runs_of("msquic-counter"), test_case=test_case)
        if (run["client"], run["evidence"]["seed"]) in same
    ]
    return {("msquic", "CUBIC", client): fmean(map(math.log, values)) for client, values in by_client(runs).items()}


def with_several_controls(logs: dict[Key, float]) -> dict[Key, float]:
    several = {name for name, _, _ in logs if len({key[1] for key in logs if key[0] == name}) > 1}
    return {key: value for key, value in logs.items() if key[0] in several}


def selected(test_case: str) -> dict[str, dict[Key, float]]:
    """By the name of a selection, without those that are all runs or another selection."""
    logs, controls = logs_of_goodput(test_case), with_control(test_case)
    found: dict[str, dict[Key, float]] = {"all": with_several_controls(logs)}
    for name, select in SELECTIONS.items():
        some = {key: value for key, value in logs.items() if select(key, controls[key[0]])}
        if name == "BBR version 1 only":
            some |= logs_of_picoquic_bbr1(test_case)
        if name == "msquic:cubic without the underflow":
            some |= logs_without_the_underflow(test_case)
        kept = with_several_controls(some)
        if kept not in found.values():
            found[name] = kept
    del found["all"]
    return found


@pytest.mark.parametrize("test_case", ["sat", "satloss"])
def test_differences_of_shares_of_some_of_the_runs(test_case: str) -> None:
    found = {row[1]: row[2:] for row in rows(SUBSETS) if row[0] == test_case}
    assert found.keys() == selected(test_case).keys()
    for selection, logs in selected(test_case).items():
        count, *cells, with_interaction = found[selection]
        assert int(count) == len({key[0] for key in logs})
        shares = components(logs)
        value, without = difference(shares, "counts as neither"), differences_without_one(logs, "counts as neither")
        for cell, expected in zip(cells, (value, *jackknifed(value, without)), strict=True):
            assert float(cell) == pytest.approx(100 * expected, abs=0.51)
        assert float(with_interaction) == pytest.approx(100 * difference(shares, "counts as implementation"), abs=0.51)


def intervals_that_include_0(test_case: str) -> list[bool]:
    """Of the difference of the shares for some of the runs, with more than three implementations."""
    found = []
    for logs in selected(test_case).values():
        if len({key[0] for key in logs}) <= 3:
            continue
        value, without = (
            difference(components(logs), "counts as neither"), differences_without_one(logs, "counts as neither")
        )  # fmt: skip
        low, high = jackknifed(value, without)
        found.append(low <= 0 <= high)
    return found


def test_intervals_of_some_of_the_runs_that_include_0() -> None:
    known = [each for test_case in ("sat", "satloss") for each in intervals_that_include_0(test_case)]
    verb = "has" if sum(known) == 1 else "have"
    assert (
        f"Of the {len(known)} rows with more than three implementations, {sum(known)} {verb} a confidence interval "
        "that includes 0"
    ) in section_of(SUBSETS)


def factors_in_words(means: dict[str, dict[str, float]], test_case: str) -> list[str]:
    """Of geometric means by implementation and congestion control."""
    found, corrected = list[str](), logs_without_the_underflow(test_case)
    others = {name: dict(each) for name, each in means.items()}
    if corrected:
        others["msquic"]["CUBIC"] = math.exp(fmean(corrected.values()))
    for slower, faster in pairwise(CONTROLS):
        factors = [each[faster] / each[slower] for each in means.values() if {slower, faster} <= each.keys()]
        value, low, high = geometric_interval(factors)
        what, name = ("it", "") if found else ("the goodput of an implementation", "95 % confidence interval ")
        limits = f"{name}{low:.1f} to {high:.1f}"
        without = ""
        if corrected and "msquic" in {name for name, each in means.items() if {slower, faster} <= each.keys()}:
            fixed, least, most = geometric_interval(
                [each[faster] / each[slower] for each in others.values() if {slower, faster} <= each.keys()]
            )
            without = (
                f", or by {fixed:.1f} ({least:.1f} to {most:.1f}) without the underflow of msquic's counter (seed 1 "
                "only)"
            )
        elif not corrected and faster == "BBR":
            rest = [
                each[faster] / each[slower]
                for name, each in means.items()
                if name != "msquic" and {slower, faster} <= each.keys()
            ]
            fixed, least, most = geometric_interval(rest)
            assert least <= 1 <= most
            without = (
                f", or by {fixed:.1f} ({least:.1f} to {most:.1f}, which includes 1) without msquic, whose counter "
                "underflows with CUBIC"
            )
        includes_1 = ", which includes 1" if low <= 1 <= high else ""
        found.append(
            f"switching from {slower} to {faster} multiplies {what} by {value:.1f} ({limits}{includes_1}){without}"
        )
    return found


def fastest_over_slowest(test_case: str) -> dict[str, float]:
    """Of the means of implementations, by congestion control."""
    means: dict[str, list[float]] = defaultdict(list)
    for by_control in with_control(test_case).values():
        for control, runs in by_control.items():
            means[control].append(fmean(all_goodputs(runs)))
    return {control: max(values) / min(values) for control, values in means.items()}


@pytest.mark.parametrize("test_case", ["sat", "satloss"])
def test_the_finding_about_algorithms(test_case: str) -> None:
    means = {
        name: {control: geometric_mean(all_goodputs(runs)) for control, runs in by_control.items()}
        for name, by_control in with_control(test_case).items()
    }
    spread, logs = fastest_over_slowest(test_case).values(), with_several_controls(logs_of_goodput(test_case))
    shares, includes_0 = components(logs), intervals_that_include_0(test_case)
    limits = {
        counts: jackknifed(difference(shares, counts), differences_without_one(logs, counts))
        for counts in ("counts as neither", "counts as implementation")
    }
    low, high = limits["counts as neither"]
    assert not low <= 0 <= high
    least, most = limits["counts as implementation"]
    assert least <= 0 <= most
    assert any(includes_0)
    assert not all(includes_0)
    limit = "A share of 0 % is the lower limit of the estimator, and does not mean that there is no effect."
    at_the_limit = f" {limit}" if 0 in list(shares.values())[:3] else ""
    signs = {difference(components(part), "counts as neither") > 0 for part in selected(test_case).values()}
    assert len(signs) == 1
    sign = f" In all subsets, the difference is {'positive' if signs.pop() else 'negative'}."
    at_zero = all(
        components({key: value for key, value in logs.items() if key[0] != name})["implementation"] == 0
        for name in {key[0] for key in logs}
    )
    narrow = (
        " The share of the implementation is 0 whichever implementation is left out, so these intervals do not contain "
        "its uncertainty, and are too narrow in this respect."
    )
    assert at_zero is (test_case == "satloss")
    assert the_page().count(narrow) == 2
    sequences = ""
    if test_case == "satloss":
        sequences = "; over `satloss`, all pairs with the same seed share one sequence of losses"
    assert (
        f"- Over `{test_case}`, {', and '.join(factors_in_words(means, test_case))}. With the same congestion control, "
        f"the goodput of the fastest implementation is {min(spread):.1f} to {max(spread):.1f} times that of the "
        f"slowest (arithmetic means). Over all these runs, {shares_in_words(shares)}{at_the_limit} The "
        "implementation's share minus that of the congestion control is "
        f"{100 * difference(shares, 'counts as neither'):+.0f} percentage points (95 % confidence interval "
        f"{100 * low:+.0f} to {100 * high:+.0f}). This interval excludes 0. However, it includes 0 if the interaction "
        f"counts as part of the implementation ({100 * least:+.0f} to {100 * most:+.0f}), and in {sum(includes_0)} of "
        f"the {len(includes_0)} subsets of the runs that contain more than three implementations. The ranking of the "
        f"two shares is therefore not robust.{sign}{narrow if at_zero else ''} These runs have "
        f"{number_of_seeds()}{sequences}. {elsewhere()} See [Algorithm or implementation]"
    ) in the_findings()


def elsewhere() -> str:
    """The seeds with another processor than the first, as a sentence."""
    processors = [{run["evidence"]["host"]["processor"] for run in each["results"]} for each in campaigns("variants")]
    assert all(len(each) == 1 for each in processors)
    seeds = [str(seed) for seed, each in enumerate(processors, start=1) if each != processors[0]]
    return f"The runs with seeds {' and '.join(seeds)} took place on another machine."


def test_seeds_on_another_machine() -> None:
    assert f"sequence of losses. {elsewhere()} This section compares" in the_page()


def test_msquic_without_the_underflow_has_one_seed() -> None:
    """So the factor is of runs with other seeds than those of all other implementations."""
    assert "these runs of msquic have seed 1 only." in section_of("Congestion control algorithms over satloss")
    assert {run["repetition"] for run in runs_of("msquic-counter")} == {1}


@pytest.mark.parametrize("test_case", ["sat", "satloss"])
def test_the_fastest_and_the_slowest_implementation(test_case: str) -> None:
    section, found = section_of(f"Congestion control algorithms over {test_case}"), with_control(test_case)
    for control, ratio in fastest_over_slowest(test_case).items():
        count = sum(control in by_control for by_control in found.values())
        assert (
            f"- With {control}, the goodput of the fastest implementation is {ratio:.1f} times that of the slowest "
            f"({count} implementations; arithmetic means of the table).\n"
        ) in section


def test_implementations_above_the_threshold() -> None:
    """Of 2 Mbit/s over satloss."""
    parts, found = list[str](), with_control("satloss")
    for control in CONTROLS:
        means = {name: fmean(all_goodputs(each[control])) for name, each in found.items() if control in each}
        above = [name for name, mean in means.items() if mean > 2]
        whose = f" ({', '.join(above)})" if above else ""
        word = "" if parts else " implementations"
        parts.append(f"{len(above)} of {len(means)}{word} with {control}{whose}")
    told = f"- The mean efficiency exceeds 10 % for {', '.join(parts[:-1])} and {parts[-1]}.\n"
    assert told in section_of("Congestion control algorithms over satloss")
    assert the_page().count("- The mean efficiency exceeds 10 %") == 1


def test_variants_that_are_left_out() -> None:
    pairs = {(run["server"], run["client"]) for run in runs_of("variants")}
    kept = {pair for pair in pairs if pair[0].split(":")[1] in {each for names in CONTROLS.values() for each in names}}
    assert f"This section compares {len(kept)} of the {len(pairs)} pairs of the campaign. It omits " in the_page()
    assert (
        "picoquic:prague and picoquic:c4, because no other implementation has these algorithms. picoquic:bbr1 is pico"
        in the_page()
    )
    assert f"These runs have {number_of_seeds()}; over `satloss`, all" in the_page()


def test_versions_of_bbr_in_words() -> None:
    versions = versions_of_bbr()
    with_bbr = [name for name, by_control in with_control("sat").items() if "BBR" in by_control]
    parts = []
    for version in sorted(set(versions.values())):
        names = [name for name in with_bbr if versions.get(name) == version]
        parts.append(f"{listed(names)} {'implements' if len(names) == 1 else 'implement'} version {version}")
    unknown = [name for name in with_bbr if name not in versions]
    parts += [f"the data set does not name the version of {listed(unknown)}"] if unknown else []
    assert f"this section treats them as one algorithm. Here, {'; '.join(parts)}.\n" in the_page()


@pytest.mark.parametrize("test_case", ["sat", "satloss"])
def test_the_largest_share_that_the_queue_dropped(test_case: str) -> None:
    shares: dict[str, list[float]] = {}
    for run in runs_of("variants"):
        if run["test_case"] == test_case and run["measurement"] and "queue_loss" in run["measurement"]["values"]:
            shares.setdefault(run["server"], []).append(run["measurement"]["values"]["queue_loss"])
    means = {name: fmean(found) for name, found in shares.items()}
    first = max(means, key=lambda name: means[name])
    repeated = fmean(metrics(matching(runs_of("variants"), test_case=test_case, server=first), "spurious"))
    assert (
        f"- The queue dropped {100 * means[first]:.0f} % of the packets of {first}, the largest share of any server; "
        f"the median over the servers is {100 * median(means.values()):.1f} %. Of the bytes that clients received from "
        f"{first}, {100 * repeated:.0f} % had already arrived earlier."
    ) in section_of(f"Congestion control algorithms over {test_case}")
