"""Table II, servers and clients of the report docs/paper."""

from __future__ import annotations

import pytest

from interop.model.outcomes import Outcome
from interop.model.units import MBPS
from scripts.paper.matrix import about_groups, beside_the_paper, clients, differences, time_limits
from tests.results_builder import SATLOSS, result_set, run_result, runs
from tests.scripts.paper.campaigns import late, matrix


def test_table_ii_has_our_rows_and_those_of_the_paper() -> None:
    table = beside_the_paper(matrix())
    ours, theirs = "quicsat, all servers", "quicsat, 2 servers and 1 client of the paper"
    assert [row[:2] for row in table.rows] == [
        (case, who) for case in ("sat", "satloss") for who in (ours, theirs, "paper")
    ]
    sat, _, paper_sat, satloss, shared, paper_satloss = (list(row[2:]) for row in table.rows)
    assert sat == [5 * MBPS, 5 * MBPS, 5 * MBPS, 8 * MBPS, 0, 0, 2]
    assert paper_sat == [5.05 * MBPS, None, None, 12 * MBPS, 3, 6, 182]
    mean = pytest.approx(16 / 3 * MBPS)
    assert satloss == shared == [mean, mean, 6 * MBPS, 8 * MBPS, 0, 1, 2]
    assert paper_satloss == [3.06 * MBPS, None, None, 11.5 * MBPS, 13, 17, 182]
    assert "*All runs* omits 1 run for which we do not know what had arrived." in table.notes[0]


def test_all_runs_include_those_that_timed_out() -> None:
    slow = late(run_result(None, test_case="satloss", repetition=2), 45 * 10**6)  # 1 Mbit/s
    found = [*runs(6 * MBPS, test_case="satloss"), slow]
    row, *_ = beside_the_paper(result_set(found, test_cases=(SATLOSS,))).rows
    assert row[2:6] == (6 * MBPS, 3.5 * MBPS, 3.5 * MBPS, 6 * MBPS)


def test_servers_and_clients_that_the_paper_did_not_measure_are_left_out_of_the_comparison() -> None:
    found = runs(4 * MBPS, server="picoquic") + runs(8 * MBPS, server="quinn")
    found += runs(12 * MBPS, server="picoquic", client="quinn")
    results = result_set(found, servers=("picoquic", "quinn"), clients=("quiche", "quinn"))
    every, shared, _ = beside_the_paper(results).rows
    assert (every[2], shared[2]) == (8 * MBPS, 4 * MBPS)
    assert "the mean goodput is 4.00 Mbit/s" in list(differences(results))[-1]
    assert shared[1] == "quicsat, 1 server and 1 client of the paper"


def test_clients_are_compared_with_the_same_servers() -> None:
    """A server that failed with one of them counts for none."""
    found = [
        *runs(4 * MBPS, client="a", server="picoquic"), *runs(6 * MBPS, client="b", server="picoquic"),
        *runs(9 * MBPS, client="a", server="quinn"),
        run_result(None, client="b", server="quinn", outcome=Outcome.FAILED, reason="No."),
    ]  # fmt: skip
    table = clients(result_set(found, servers=("picoquic", "quinn"), clients=("a", "b")))
    assert table.rows == (("a", 4 * MBPS, "2 of 2"), ("b", 6 * MBPS, "1 of 2"))


def test_each_link_is_compared_with_the_paper() -> None:
    common, _, sat, satloss = differences(matrix())
    assert "the 2 servers and 1 client that are also in the paper (picoquic, quic-go; quiche)" in common
    assert "5.00 Mbit/s, 1 % below the paper's mean" in sat
    assert "0.0 % timed out or failed; in the paper, at least one of ten repetitions did so in 4.9 %" in sat
    assert "74 % above the paper's mean" in satloss
    assert "Of our pairs, 50.0 % timed out or failed" in satloss


def test_runs_at_the_time_limit_count_as_the_slowest_in_a_median() -> None:
    """Two of five: the median is the slowest success; with two more, it is unknown."""
    slow = [run_result(None, test_case="satloss", repetition=number) for number in range(4, 8)]
    good = runs(2 * MBPS, 6 * MBPS, 8 * MBPS, test_case="satloss")

    def cells(late: int) -> list[str]:
        told = "\n".join(time_limits(result_set([*good, *slow[:late]], test_cases=(SATLOSS,))))
        [line] = [line for line in told.splitlines() if line.startswith("| satloss")]
        return [cell.strip() for cell in line.strip("|").split("|")]

    assert cells(2) == ["satloss", "360", "360", "5", "2", "", "0.23", "2.00"]
    assert cells(4)[4:] == ["4", "", "0.23", ""]


def test_groups_of_figures_are_explained_once() -> None:
    [told, _] = about_groups(["a figure"])
    assert "Each figure uses the number of groups, from 2 to 6, that has the largest silhouette score." in told
    assert list(about_groups([])) == []
