"""Sweeps: tables by value, and their ranges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from interop.model.emulated_link import EmulatedLink, LinkCounters, SimulatorReport, UniformLoss
from interop.model.family import Family, SweptValue
from interop.model.results import Measurement, ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.model.units import MBPS
from scripts.paper.lines import Figure
from scripts.paper.sweeps import finding, in_real_time, sweeps
from tests.results_builder import SAT, SATLOSS, result_set, run_result, runs
from tests.scripts.paper.campaigns import late

CASES = tuple(
    replace(
        SATLOSS, name=f"paper-loss@{text}", abbreviation=f"PL{number}",
        family=Family("paper-loss", "PL", (SweptValue("forward loss", text, number, "%", 0.01),)),
    )
    for number, text in ((0.0, "0 %"), (0.05, "5 %"))
)  # fmt: skip


def test_each_sweep_has_a_table_and_its_range() -> None:
    first, last = CASES
    found = [
        *runs(8 * MBPS, server="quinn", client="quinn", test_case=first.name),
        *runs(2 * MBPS, server="quinn", client="quinn", test_case=last.name),
        *runs(4 * MBPS, server="quiche", client="quiche", test_case=first.name),
        late(run_result(None, server="quiche", client="quiche", test_case=last.name), 9_000_000),  # 0.2 Mbit/s
    ]
    results = result_set(found, servers=("quinn", "quiche"), clients=("quinn", "quiche"), test_cases=CASES)
    figures = (Figure("sweeps/sweep-PQ.png", "other", ""), Figure("sweeps/sweep-PL.png", "this", ""))
    told = list(sweeps(results, result_set(), figures))
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for part in told if isinstance(part, str) for line in part.splitlines() if line.startswith("| q")
    ]  # fmt: skip
    assert rows == [["quinn", "8.00", "2.00"], ["quiche", "4.00", "0.20 T"]]
    ratios = "At a forward loss of 5 %, goodput is 5 % (quiche) to 25 % (quinn) of that at 0 %."
    assert f"{ratios} In the figures, this sweep is called PL." in told
    assert [part.title for part in told if isinstance(part, Figure)] == ["this"]


def test_a_sweep_in_which_goodput_rises_has_factors() -> None:
    cases = [swept("forward queue", text, SAT.emulated) for text in ("25", "2000")]
    found = [run for case, rate in zip(cases, (1.0, 12.34), strict=True)
             for run in runs(rate * MBPS, server="quinn", client="quinn", test_case=case.name)]  # fmt: skip
    told = told_of(found, cases, result_set())
    changes = "goodput changes by a factor of 12 (quinn) to 12 (quinn)."
    assert f"forward queue increases from 25 to 2000 packets, {changes}" in told
    assert "In the sweeps, each of quiche and quinn is paired with itself." in told


def swept(key: str, text: str, link: EmulatedLink) -> TestCase:
    family = Family(f"paper-{key}", f"P{key}", (SweptValue(key, text, 1.0, "", 1.0),))
    return replace(SAT, name=f"paper-{key}@{text}", family=family, link=link)


def told_of(found: Iterable[RunResult], cases: Sequence[TestCase], matrix: ResultSet) -> str:
    results = result_set(found, servers=("quiche", "quinn"), clients=("quiche", "quinn"), test_cases=tuple(cases))
    return "\n".join(str(line) for line in sweeps(results, matrix, ()))


def test_runs_over_the_same_link_are_compared_whatever_the_sweep() -> None:
    same = swept("forward queue", "25", SAT.emulated)
    unlike = swept("delay", "15 ms", replace(SAT.emulated, forward_delay=0.015))
    lossless = swept("forward loss", "0 %", replace(SAT.emulated, forward_loss=UniformLoss(0.0)))
    found = [
        run
        for name, rates in (("quiche", (2.0, 9.0, 2.5)), ("quinn", (8.0, 9.0, 8.08)))
        for case, rate in zip((same, unlike, lossless), rates, strict=True)
        for run in runs(rate * MBPS, server=name, client=name, test_case=case.name)
    ]
    matrix = result_set(runs(2.2 * MBPS, server="quiche", client="quiche"), servers=("quiche",))
    told = told_of(found, (same, unlike, lossless), matrix)
    assert "In the sweeps, 2 test cases use the same link and file as `sat` in the matrix, which has no ran" in told
    assert "quiche reaches 2.00, 2.20 and 2.50 Mbit/s, so results with different seeds differ by up to 25 %." in told
    assert "The results of the other implementations differ by at most 1.0 %." in told


def test_the_sweep_of_the_delay_also_changes_the_queue_relative_to_the_link() -> None:
    cases = [
        swept("delay", f"{1000 * delay:.0f} ms", replace(SAT.emulated, forward_delay=delay, return_delay=delay))
        for delay in (0.015, 0.6)
    ]
    found = [run for case in cases for run in runs(MBPS, server="quinn", client="quinn", test_case=case.name)]
    told = told_of(found, cases, result_set())
    assert "grows from 50 to 2000 packets. The queue therefore shrinks from 50 to 1.2 % of this product" in told


def test_ratios_of_both_clocks_over_the_links_of_the_matrix() -> None:
    """Only of pairs that the sweeps have."""
    first, _ = CASES
    found = runs(8 * MBPS, server="quinn", client="quinn", test_case=first.name)
    results = result_set(found, servers=("quinn",), clients=("quinn",), test_cases=CASES)
    pairs = (("quinn", "quinn"), ("quinn", "quiche"), ("quiche", "quiche"))

    def made(rate: float) -> ResultSet:
        each = [run for server, client in pairs for run in runs(rate * MBPS, server=server, client=client)]
        return result_set(each, servers=("quinn", "quiche"), clients=("quinn", "quiche"))

    told = "\n".join(in_real_time(results, made(6), made(5)))
    assert told.endswith("divided by that in real time, is as follows: over `sat`: quinn 1.20.\n")
    assert list(in_real_time(results, made(6), None)) == []


def test_the_finding_has_the_ends_of_each_sweep() -> None:
    first, last = CASES
    found = [
        *runs(8 * MBPS, server="quinn", client="quinn", test_case=first.name),
        *runs(2 * MBPS, server="quinn", client="quinn", test_case=last.name),
    ]
    results = result_set(found, servers=("quinn",), clients=("quinn",), test_cases=CASES)
    [told] = finding(results, result_set())
    assert "At a forward loss of 5 %, goodput is 25 % (quinn) to 25 % (quinn) of that at 0 %. These runs" in told
    assert "With other seeds" not in told
    assert list(finding(result_set(), result_set())) == []


def test_the_finding_has_the_spread_over_seeds() -> None:
    cases = [swept("forward queue", text, SAT.emulated) for text in ("25", "100")]
    found = [
        run
        for case, rate in zip(cases, (8, 10), strict=True)
        for run in runs(rate * MBPS, server="quinn", client="quinn", test_case=case.name)
    ]
    results = result_set(found, servers=("quinn",), clients=("quinn",), test_cases=tuple(cases))
    same = result_set(runs(9 * MBPS, server="quinn", client="quinn"), servers=("quinn",), clients=("quinn",))
    [told] = finding(results, same)
    assert "With other seeds, the goodput of quinn over `sat` differs by up to 25 %. See" in told


def test_the_finding_about_the_size_has_both_kinds_of_goodput() -> None:
    cases = [swept("file size", text, SAT.emulated) for text in ("100 kB", "1 MB")]
    found = []
    for case, goodput, stream in zip(cases, (1, 4), (2, 6), strict=True):
        [run] = runs(goodput * MBPS, server="quinn", client="quinn", test_case=case.name)
        values = {"goodput": goodput * MBPS, "stream_goodput": stream * MBPS}
        found.append(replace(run, measurement=Measurement(values)))
    results = result_set(found, servers=("quinn",), clients=("quinn",), test_cases=tuple(cases))
    [told] = finding(results, result_set())
    assert (
        "goodput changes by a factor of 4 (quinn) to 4 (quinn). From the first to the last byte of the file, it "
        in told
    )
    assert "changes by a factor of 3 (quinn) to 3 (quinn). These runs have one seed" in told


def test_runs_in_which_the_link_lost_a_packet_are_counted() -> None:
    case = swept("forward loss", "0.01 %", replace(SAT.emulated, forward_loss=UniformLoss(0.0001)))
    found = []
    for name, drops in (("quiche", 3), ("quinn", 0)):
        [run] = runs(MBPS, server=name, client=name, test_case=case.name)
        counters = LinkCounters(
            received=9, delivered=9 - drops, queue_drops=0, loss_drops=drops, corrupted=0, listed_drops=0
        )
        report = SimulatorReport(0.0, True, 0.0, 0.0, 0, counters, counters)
        found.append(replace(run, evidence=replace(run.evidence, simulator=report)))
    assert "The link lost at least one packet in 1 of 2 runs at 0.01 %." in told_of(found, (case,), result_set())


def test_time_limits_of_sweeps() -> None:
    cases = [
        replace(swept(key, "1", SAT.emulated), timeout=limit)
        for key, limit in (("forward queue", 120.0), ("delay", 300.0))
    ]
    found = [run for case in cases for run in runs(MBPS, server="quinn", client="quinn", test_case=case.name)]
    assert "The time limits of the sweeps are 120 s (forward queue) and 300 s (delay)." in told_of(
        found, cases, result_set()
    )


def test_the_sweep_of_the_size_has_times_too() -> None:
    cases = [swept("file size", text, SAT.emulated) for text in ("100 kB", "1 MB")]
    [run] = runs(MBPS, server="quinn", client="quinn", test_case=cases[0].name)
    run = replace(run, measurement=Measurement({"goodput": MBPS, "completion_time": 2.5}))
    told = told_of([run], cases, result_set())
    assert "### Seconds until the file has arrived, by file size" in told
    assert "| quinn             | 2.50 " in told
