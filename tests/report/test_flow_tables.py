"""The table of flows: a row per flow of each pair, with means over the repetitions."""

import pytest

from quicsat.report.flow_tables import flows, pair_of, with_flows
from tests.flows_builder import BESIDE, competing
from tests.results_builder import SAT, result_set, runs


def test_a_row_per_flow() -> None:
    results = result_set(competing((0.3, 0.4), (0.6, 0.6)), servers=("a", "b"), test_cases=(BESIDE,), repetitions=2)
    table = flows(results, (BESIDE,))
    assert [row[1:5] for row in table.rows] == [
        ("a/quiche", 1, "a", "quiche"), ("a/quiche", 2, "nginx-tcp", "curl"),
        ("b/quiche", 1, "b", "quiche"), ("b/quiche", 2, "nginx-tcp", "curl"),
    ]  # fmt: skip
    assert [row[6] for row in table.rows] == pytest.approx([0.35, 0.65, 0.6, 0.4])
    assert [row[7] for row in table.rows] == pytest.approx([3.5e6, 6.5e6, 6e6, 4e6])
    assert [row[-3] for row in table.rows] == ["0.912", None, "0.962", None]
    assert [row[-2] for row in table.rows] == [2.0, None, 2.0, None]
    assert [row[-1] for row in table.rows] == [2] * 4


def test_runs_with_one_flow_have_no_rows() -> None:
    results = result_set(runs(5e6, None))
    assert flows(results, (SAT,)).rows == ()
    assert with_flows(results.results, SAT) == []


def test_words() -> None:
    [run] = competing((0.5,))
    assert [pair_of(flow) for flow in run.measurement.flows] == ["a/quiche", "nginx-tcp/curl"]
