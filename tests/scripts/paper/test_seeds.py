"""Several seeds: the spread over them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from interop.model.emulated_link import LinkCounters, SimulatorReport
from interop.model.evidence import HostFacts
from interop.model.results import Manifest, ResultSet, RunResult
from interop.model.units import MBPS
from scripts.paper.seeds import drops_by_seed, goodput_by_seed, runs_with_drops, seeds, spreads, with_intervals
from tests.results_builder import SATLOSS, result_set, runs


def test_one_seed_has_no_section() -> None:
    assert list(seeds(result_set(runs(MBPS, test_case="satloss"), test_cases=(SATLOSS,)), None)) == []


def test_the_interval_holds_clients_and_seeds() -> None:
    found = runs(1 * MBPS, 2 * MBPS, client="x", test_case="satloss") + runs(
        2 * MBPS, 4 * MBPS, client="y", test_case="satloss"
    )
    results = result_set(found, clients=("x", "y"), test_cases=(SATLOSS,))
    table = with_intervals(results)
    [row] = table.rows
    shown = re.fullmatch(r"10\.0 \(([\d.e-]+) to ([\d.]+)\)", str(row[1]))
    assert row[0] == "picoquic"
    assert shown is not None
    assert float(shown[1]) < 10 < float(shown[2])
    single = with_intervals(replace(results, manifest=once(results))).notes[0]
    assert "intervals. Over `satloss`, where there is only one seed, they generalize to other clients only." in single
    assert "Over `satloss`, the intervals generalize to other clients and seeds. For" in table.notes[0]
    assert "different packets with each of 2 seeds" in "\n".join(seeds(results, None))


def once(results: ResultSet) -> Manifest:
    """Its manifest, with one repetition."""
    cases = tuple(replace(case, repetitions=1) for case in results.manifest.test_cases)
    return replace(results.manifest, test_cases=cases)


def test_the_spread_is_that_of_pairs_with_all_seeds() -> None:
    found = runs(1 * MBPS, 3 * MBPS, client="x", test_case="satloss") + runs(2 * MBPS, client="y", test_case="satloss")
    [row] = spreads(found, ["sat", "satloss"]).rows
    assert row[:3] == ("satloss", 1, 2)
    assert row[3:6] == pytest.approx((2**-0.5,) * 3)
    assert row[6] == "picoquic with x"


def test_one_seed_has_no_spread() -> None:
    assert spreads(runs(1 * MBPS, client="x"), ["sat"]).rows == ()


def with_drops(run: RunResult, drops: int) -> RunResult:
    """The run, with so many of 1,000 packets dropped by the queue."""
    counters = LinkCounters(received=1000, delivered=1000 - drops, queue_drops=drops, loss_drops=0)
    report = SimulatorReport(0, True, 0, 0, 0, counters, replace(counters, queue_drops=99))
    return replace(run, evidence=replace(run.evidence, simulator=report))


def test_goodput_and_drops_by_seed() -> None:
    """Seed 2 has a run that timed out, whose goodput is not known."""
    found = runs(1 * MBPS, 4 * MBPS, client="x", test_case="satloss") + runs(
        3 * MBPS, None, client="y", test_case="satloss"
    )
    dropped = [with_drops(run, drops) for run, drops in zip(found, (0, 20, 10, 0), strict=True)]
    results = result_set(dropped, clients=("x", "y"), test_cases=(SATLOSS,))
    assert goodput_by_seed(results, SATLOSS).rows == (("picoquic", 2 * MBPS, 4 * MBPS), ("all", 2 * MBPS, 4 * MBPS))
    assert drops_by_seed(results, SATLOSS).rows == (("picoquic", "0.50 (1)", "1.00 (1)"),)
    assert runs_with_drops(dropped) == 2
    told = "\n".join(seeds(results, None, {"matrix": results}))
    assert "is 2.00 Mbit/s with seed 1 and 4.00 Mbit/s with the other seed." in told
    assert "only seed" not in told
    assert drops_by_seed(result_set(found, test_cases=(SATLOSS,)), SATLOSS).rows == (("picoquic", "", ""),)


def test_campaigns_with_one_sequence_of_losses_are_named() -> None:
    results = result_set(runs(1 * MBPS, 2 * MBPS, test_case="satloss"), test_cases=(SATLOSS,))
    queue = replace(SATLOSS, name="satloss-paper-queue")
    one = result_set(runs(1 * MBPS, test_case=queue.name), test_cases=(queue,))
    other = replace(results, results=results.results[1:])
    told = "\n".join(seeds(results, None, {"queues": one, "repeat": one, "spread": result_set(runs(MBPS))}))
    assert (
        "Over this link, the campaign `queues` has only seed 1, so its results hold for one sequence of losses only."
    ) in told
    told = "\n".join(seeds(results, None, {"queues": one, "variants": other, "again": replace(results)}))
    assert (
        "the campaigns `queues` and `variants` have only seeds 1 and 2, so their results hold for 2 sequences of losses"
    ) in told


def from_seed_2(results: ResultSet) -> ResultSet:
    """The results, whose first repetition has seed 2."""
    return replace(results, manifest=replace(results.manifest, seed=2))


def test_seeds_of_another_machine_are_told() -> None:
    """Of the further seeds over the links without random loss."""

    def on(processor: str, run: RunResult) -> RunResult:
        host = HostFacts("6.1", "x86_64", 2, 1, "20.10", 0.0, processor=processor)
        return replace(run, evidence=replace(run.evidence, host=host))

    results = result_set(runs(MBPS, 2 * MBPS, test_case="satloss"), test_cases=(SATLOSS,))
    first, second = runs(MBPS, 2 * MBPS)
    moved = from_seed_2(result_set([on("x", first), on("y", second)]))
    told = "\n".join(seeds(results, moved))
    assert "Over `sat`, the runs with seed 3 also differ from the others in the machine and in the [image of" in told
    same = from_seed_2(result_set([on("x", first), on("x", second)]))
    assert "also differ from the others" not in "\n".join(seeds(results, same))
