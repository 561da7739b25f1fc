"""Sweeps: tables by value, and their ranges."""

from __future__ import annotations

from dataclasses import replace

from interop.model.family import Family, SweptValue
from interop.model.units import MBPS
from scripts.paper.lines import Figure
from scripts.paper.sweeps import sweeps
from tests.results_builder import SATLOSS, result_set, run_result, runs
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
    told = list(sweeps(results, figures))
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for part in told if isinstance(part, str) for line in part.splitlines() if line.startswith("| q")
    ]  # fmt: skip
    assert rows == [["quinn", "8.00", "2.00"], ["quiche", "4.00", "0.20 T"]]
    assert "From 0 % to 5 %, goodput changes by a factor of 0.05 (quiche) to 0.25 (quinn)." in told
    assert [part.title for part in told if isinstance(part, Figure)] == ["this"]
