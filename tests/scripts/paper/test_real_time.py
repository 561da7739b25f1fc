"""Virtual beside real time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from interop.model.evidence import HostFacts
from interop.model.implementation import CpuCost
from interop.model.outcomes import ErrorCode, Outcome
from interop.model.results import Measurement, ResultSet, RunResult
from interop.model.units import MBPS
from scripts.paper.real_time import (
    agreement,
    agreement_in_words,
    at_a_time,
    both_clocks,
    by_pair,
    coverage,
    errors_of_servers,
    far_apart,
    finding,
    numbers_of_runs,
    on_another_machine,
    outcomes,
    real_time,
    repetitions_of,
    servers_with_a_bias,
)
from tests.results_builder import SAT, SATLOSS, result_set, run_result, runs, virtual

CLIENTS = ("a", "b", "c", "d")
REAL = result_set(
    [
        *runs(4 * MBPS, 6 * MBPS, client="a"),
        *runs(4 * MBPS, 4 * MBPS, client="b"),
        *runs(4 * MBPS, 4 * MBPS, client="c"),
        run_result(None, client="d"),
    ],
    clients=CLIENTS,
)
VIRTUAL = virtual(
    result_set(
        [run for client, rate in zip(CLIENTS, (6, 4.1, 5, 3), strict=True) for run in runs(rate * MBPS, client=client)],
        clients=CLIENTS,
    )
)


def test_a_pair_agrees_within_the_range_or_close_to_the_mean() -> None:
    found = {each.client: each for each in both_clocks(VIRTUAL, REAL, SAT)}
    assert {client: each.agrees for client, each in found.items()} == {"a": True, "b": True, "c": False}


def test_missing_repetitions_are_told() -> None:
    assert repetitions_of(REAL, SAT) == "4 pairs with 2 repetitions over `sat` (7 of 8 runs so far)"
    whole = result_set(runs(4 * MBPS, 5 * MBPS), clients=("quiche",))
    assert repetitions_of(whole, SAT) == "1 pair with 2 repetitions over `sat`"


def beside(run: RunResult, neighbours: int) -> RunResult:
    """The run, with so many others at the same time."""
    return replace(
        run, evidence=replace(run.evidence, host=HostFacts("6.1", "x86_64", 2, 0, "", 0.1, neighbours=neighbours))
    )


def test_parallel_runs_are_told() -> None:
    found = [beside(run, number) for run, number in zip(runs(MBPS, MBPS, MBPS), (0, 2, 1), strict=True)]
    assert at_a_time(result_set(found)) == (
        "quicsat performed up to 3 runs at a time: other runs took place at the same time as 2 of the 3 runs over "
        "`sat`. If such a run lacks CPU time, quicsat measures it again, alone."
    )
    assert at_a_time(result_set(found[:1])) == "quicsat performed one run at a time."


def test_numbers_of_the_tables() -> None:
    [row] = agreement(VIRTUAL, REAL).rows
    assert row[:6] == ("sat", "default", 3, 2, 1, 1)
    assert row[6] == pytest.approx((6 / 5 * 4.1 / 4 * 5 / 4) ** (1 / 3))
    error = (sum(math.log(ratio) ** 2 for ratio in (6 / 5, 4.1 / 4, 5 / 4)) / 3) ** 0.5
    assert row[9:] == pytest.approx((error, 4.1 / 4, 5 / 4))
    assert errors_of_servers(VIRTUAL, REAL, SAT) == pytest.approx({"picoquic": error})
    ratios = (
        "is 1.154 over `sat` (1.02 to 1.25 for individual pairs). In this mean, ratios above and below 1 cancel out. "
        "They do not in the root mean square, over all pairs, of the logarithm of the ratio, which is "
        f"{100 * error:.1f} % over `sat`."
    )
    assert ratios in agreement_in_words(VIRTUAL, REAL)
    assert agreement_in_words(VIRTUAL, REAL).startswith(
        "Goodput in virtual time differs from the mean goodput in real time by at most 3 and 10 % for 1 and 1 of 3 "
        "pairs over `sat`. By a criterion that also considers the range of the repetitions in real time, the following "
        "numbers of pairs agree: 2 over `sat`."
    )
    assert agreement_in_words(VIRTUAL, result_set()) == ""
    assert by_pair(VIRTUAL, REAL, SAT).rows == (("picoquic", "1.20", "1.02", "1.25 *", "", row[6], row[9]),)


def of_servers(ratios: Mapping[str, tuple[float, ...]]) -> tuple[ResultSet, ResultSet]:
    """Servers whose goodput in virtual time is so many times that in real time, with each client."""

    def made(server: str, rates: tuple[float, ...]) -> list[RunResult]:
        return [run for client, rate in zip("abc", rates, strict=False)
                for run in runs(rate * MBPS, server=server, client=client)]  # fmt: skip

    mine = [run for server, rates in ratios.items() for run in made(server, rates)]
    theirs = [run for server, rates in ratios.items() for run in made(server, (1.0,) * len(rates))]
    both = (result_set(found, servers=tuple(ratios), clients=("a", "b", "c")) for found in (mine, theirs))
    return virtual(next(both)), next(both)


def test_opposite_errors_cancel_in_the_mean_only() -> None:
    mine, theirs = of_servers({"x": (1.25, 0.8)})
    [row] = agreement(mine, theirs).rows
    assert row[6] == pytest.approx(1)
    assert row[9] == pytest.approx(math.log(1.25))


def test_servers_with_a_bias_are_named() -> None:
    """A server with one client has no interval; one within 3 % of 1 has no bias."""
    ratios = {"x": (0.9, 0.91, 0.9), "y": (1.3, 0.9, 1.1), "near": (1.02, 1.03, 1.02), "single": (2.0,)}
    told = servers_with_a_bias(*of_servers(ratios))
    assert told.startswith("The geometric mean of a server's ratios is more than 3 % from 1 for x (0.90, 0.")
    assert " and y (1.09, 0." in told
    assert told.endswith("over `sat`. The parentheses contain this mean and its 95 % confidence interval over the "
                         "clients; the interval excludes 1 for x over `sat`.")  # fmt: skip
    assert servers_with_a_bias(*of_servers({"y": ratios["y"]})).endswith("the clients; the interval includes 1.")
    several = servers_with_a_bias(*of_servers({"y": ratios["y"], "z": ratios["y"]}))
    assert several.endswith("; for all of these servers, the interval includes 1.")
    assert servers_with_a_bias(*of_servers({"near": ratios["near"]})) == ""
    assert "single" not in told
    assert told in "\n".join(real_time(*of_servers(ratios)))


def test_servers_with_a_measured_cost_have_a_row_of_their_own() -> None:
    def made(rates: Mapping[str, float]) -> ResultSet:
        found = [run for server, rate in rates.items() for run in runs(rate * MBPS, server=server)]
        return result_set(found, servers=tuple(rates))

    theirs, mine = made({"a": 1, "b": 1}), virtual(made({"a": 1, "b": 1.05}))
    first, *rest = mine.manifest.implementations
    costly = replace(first, cpu_cost=CpuCost(1e-5))
    mine = replace(mine, manifest=replace(mine.manifest, implementations=(costly, *rest)))
    found = [row[:6] for row in agreement(mine, theirs).rows]
    assert found == [("sat", "measured", 1, 1, 1, 1), ("sat", "default", 1, 0, 0, 1)]
    assert "numbers of pairs agree: 1 over `sat`." in agreement_in_words(mine, theirs)


def test_servers_that_are_far_apart_by_their_cost() -> None:
    mine, theirs = of_servers({"x": (1.0, 1.0), "y": (0.5, 0.5), "z": (1.05,), "w": (1.2, 1.2)})
    assert (
        "by more than 10 % (geometric mean over the clients): of those with the default CPU cost, y (0.50 over `sat`) "
        "and w (1.20 over `sat`). The"
    ) in far_apart(mine, theirs)
    first, second, *rest = mine.manifest.implementations
    costly = replace(mine.manifest, implementations=(first, replace(second, cpu_cost=CpuCost(1e-5)), *rest))
    told = far_apart(replace(mine, manifest=costly), theirs)
    assert "default CPU cost, w (1.20 over `sat`); of those with a measured CPU cost, y (0.50 over `sat`). The" in told
    assert far_apart(*of_servers({"x": (1.0, 1.0)})) == ""
    told = far_apart(*of_servers({"x": (1.25, 0.8), "y": (0.5, 0.5)}))
    assert "default CPU cost, y (0.50 over `sat`). The parentheses" in told
    assert "cancel out; by the RMS, x (22.3 % over `sat`) also differs by more. What this page" in told


def test_more_seeds_in_virtual_time() -> None:
    """Of two pairs, one is far with the first seed, and near with the mean of two; the other one stays near."""
    mine, theirs = of_servers({"x": (1.15, 1.0)})
    more = replace(
        mine,
        results=tuple(
            replace(faster(run, rate), repetition=2, evidence=replace(run.evidence, seed=99))
            for run, rate in zip(mine.results, (0.95, 1.02), strict=True)
        ),
    )
    told = "\n".join(real_time(mine, theirs, more))
    assert "pairs are within 10 %: over `sat`, 2 instead of 1 of 2 pairs (2 seeds)." in told
    assert "one seed in this comparison" not in "\n".join(real_time(mine, theirs))


def test_what_was_measured_in_real_time() -> None:
    """One server with all clients, one with one client, and one with none."""
    mine, theirs = of_servers({"x": (1.0, 1.0, 1.0), "y": (1.0,), "z": (1.0, 1.0)})
    some = replace(theirs, results=tuple(run for run in theirs.results if run.server != "z"))
    assert coverage(mine, some) == (
        "We measured 2 of the 3 servers over `sat` in real time, with 3 of 3 clients (a, b and c). The following "
        "servers have a single client in real time: y over `sat`. There are no runs in real time of z over `sat`."
    )
    assert coverage(mine, some) in agreement_in_words(mine, some)
    [told] = finding(mine, some)
    assert told.startswith(
        "- Goodput in virtual time differs from goodput in real time by at most 10 % for 4 of 4 pairs"
    )
    assert told.endswith(f" {coverage(mine, some)} See [Virtual and real time](#virtual-and-real-time).")
    assert coverage(mine, result_set()) == ""
    assert list(finding(mine, result_set())) == []


def test_servers_that_were_measured_on_another_machine() -> None:
    def on(processor: str, run: RunResult) -> RunResult:
        host = HostFacts("6.1", "x86_64", 2, 0, "", 0.1, processor=processor)
        return replace(run, evidence=replace(run.evidence, host=host))

    _, theirs = of_servers({"x": (1.0, 1.0, 1.0), "y": (1.0,)})
    moved = tuple(on("Xeon" if run.server == "y" else "EPYC", run) for run in theirs.results)
    assert on_another_machine(replace(theirs, results=moved)) == (
        " We measured most of them on the machine of the matrix, and the following ones on another machine: y over "
        "`sat`."
    )
    assert on_another_machine(theirs) == ""


def faster(run: RunResult, rate: float) -> RunResult:
    """The run with this goodput, Mbit/s."""
    return replace(run, measurement=Measurement({"goodput": rate * MBPS, "efficiency": rate / 20}))


def over_losses(rates: Mapping[int, float]) -> ResultSet:
    """Runs of a pair over satloss, a rate (Mbit/s) for each seed."""
    made = runs(*(rate * MBPS for rate in rates.values()), test_case="satloss")
    seeded = [
        replace(run, evidence=replace(run.evidence, seed=seed)) for run, seed in zip(made, rates, strict=True)
    ]  # fmt: skip
    return result_set(seeded, test_cases=(SATLOSS,))


def test_over_random_loss_only_the_same_sequences_of_losses_are_compared() -> None:
    mine, theirs = over_losses({1: 4, 2: 9, 3: 8}), over_losses({1: 5, 7: 100, 3: 8})
    [both] = both_clocks(mine, theirs, SATLOSS)
    assert (both.virtual, both.real) == (6 * MBPS, (5 * MBPS, 8 * MBPS))
    assert "that we compare are those of repetitions 1 and 3." in "\n".join(real_time(mine, theirs))
    assert "the same seed" not in "\n".join(real_time(VIRTUAL, REAL))


def test_without_a_common_sequence_of_losses_nothing_is_compared() -> None:
    mine, theirs = over_losses({1: 4}), over_losses({2: 5})
    assert both_clocks(mine, theirs, SATLOSS) == []
    told = "No pair succeeded with the same seed in virtual and in real time."
    assert told in "\n".join(real_time(mine, theirs))


def test_runs_that_did_not_succeed_are_told() -> None:
    closed = (
        'The client\'s last line: "x". The server closed the connection after 1.8 s with PROTOCOL_VIOLATION (packet 1).'
    )
    invalid, failed = Outcome.ERROR, Outcome.FAILED
    found = [
        run_result(5 * MBPS),
        run_result(None, client="a", outcome=invalid, code=ErrorCode.HOST_STARVED),
        run_result(None, client="b", outcome=invalid, code=ErrorCode.HOST_STARVED),
        run_result(None, client="b", outcome=invalid, code=ErrorCode.HOST_STARVED, test_case="satloss"),
        *[run_result(None, client="c", repetition=number, outcome=failed, code=ErrorCode.CLIENT_FAILED, reason=closed)
          for number in (1, 2)],
        run_result(None, client="d"),
    ]  # fmt: skip
    results = result_set(found)
    assert outcomes(results) == (
        "Of the 7 runs, 1 succeeded. Of the others, 3 were invalid because the machine was too busy (`host-starved`: "
        "picoquic with a, picoquic with b over `sat`; picoquic with b over `satloss`), 2 failed because the server "
        "closed the connection with PROTOCOL_VIOLATION (`client-failed`: picoquic with c twice over `sat`) and 1 timed "
        f"out (`{ErrorCode.TIMEOUT}`: picoquic with d over `sat`). The comparison does not include these 6 runs."
    )
    assert outcomes(replace(results, results=results.results[:2])) == (
        "Of the 2 runs, 1 succeeded. Of the others, 1 was invalid because the machine was too busy (`host-starved`: "
        "picoquic with a over `sat`). The comparison does not include this run."
    )
    whole = replace(results, results=results.results[:1], earlier=(found[1],))
    assert outcomes(whole) == "All 1 runs succeeded. quicsat repeated 1 invalid attempt."
    assert outcomes(result_set(runs(MBPS, MBPS))) == "All 2 runs succeeded."
    assert outcomes(results) in "\n".join(real_time(VIRTUAL, results))


def test_the_numbers_of_runs_of_the_means_are_told() -> None:
    assert numbers_of_runs(VIRTUAL, REAL) == (
        "The number of real-time runs behind a pair's mean is 2 for all 3 pairs over `sat`."
    )
    fewer = replace(REAL, results=REAL.results[1:])
    assert numbers_of_runs(VIRTUAL, fewer).endswith(" is 1 for 1 pair and 2 for 2 pairs over `sat`.")
    assert numbers_of_runs(VIRTUAL, fewer) in "\n".join(real_time(VIRTUAL, fewer))
    assert numbers_of_runs(VIRTUAL, result_set()) == ""
