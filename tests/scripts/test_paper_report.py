"""The report docs/paper: its data set, and what it says of results."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from interop.model.outcomes import Outcome
from interop.model.results import ResultSet
from interop.model.units import MBPS
from interop.results.store import Journal
from scripts import paper_report
from tests.results_builder import SAT, SATLOSS, result_set, run_result, runs, virtual


def campaign() -> ResultSet:
    """Two servers over two links: over satloss, one is fast, and the other fails once."""
    fast, slow = (
        runs(6 * MBPS, 8 * MBPS, server="picoquic", test_case=name)
        + runs(2 * MBPS, 4 * MBPS, server="quic-go", test_case=name)
        for name in ("sat", "satloss")
    )
    slow[-1] = run_result(
        None, server="quic-go", test_case="satloss", repetition=2, outcome=Outcome.FAILED, reason="File a has 7 bytes."
    )
    return result_set([*fast, *slow], servers=("picoquic", "quic-go"), test_cases=(SAT, SATLOSS), repetitions=2)


def variants() -> ResultSet:
    """Two implementations with two congestion controls each; one run times out."""
    found = [
        run
        for server, rate in (("quinn:cubic", 2), ("quinn:bbr", 8), ("picoquic:newreno", 1), ("picoquic:bbr", 6))
        for run in runs(rate * MBPS, rate * MBPS, server=server, test_case="satloss")
    ]
    found[-1] = run_result(
        None, server="picoquic:bbr", test_case="satloss", repetition=2, outcome=Outcome.TIMEOUT, reason="Late."
    )
    return result_set(found, servers=("quinn:cubic", "picoquic:bbr"), test_cases=(SATLOSS,), repetitions=2)


# ---- from campaigns to the data set ---------------------------------------------------------


def test_campaigns_of_several_seeds_are_repetitions_of_one() -> None:
    first = result_set(runs(5 * MBPS), repetitions=1)
    both = paper_report.combined([first, first])
    assert [each.repetition for each in both.results] == [1, 2]
    assert both.manifest.test_cases[0].repetitions == 2
    assert both.manifest.planned_runs == 2 * first.manifest.planned_runs


def test_different_clocks_are_never_combined() -> None:
    one = result_set(runs(5 * MBPS))
    with pytest.raises(ValueError, match="different clocks"):
        paper_report.combined([one, virtual(one)])


def test_the_data_set_has_campaigns_with_results_and_checksums(tmp_path: Path) -> None:
    for name, results in (("matrix-1", campaign()), ("matrix-2", campaign()), ("queues-1", result_set())):
        directory = tmp_path / "results" / name
        directory.mkdir(parents=True)
        with Journal.create(directory, results.manifest) as journal:
            for each in results.results:
                journal.append_result(each)
    written = paper_report.collect(tmp_path / "results", tmp_path / "data")
    assert [path.name for path in written] == ["matrix-1.json.gz", "matrix-2.json.gz"]
    before = [path.read_bytes() for path in written]
    assert paper_report.collect(tmp_path / "results", tmp_path / "data") == written
    assert [path.read_bytes() for path in written] == before
    for line in (tmp_path / "data" / "SHA256SUMS").read_text().splitlines():
        checksum, name = line.split()
        assert hashlib.sha256((tmp_path / "data" / name).read_bytes()).hexdigest() == checksum
    assert len(paper_report.read(tmp_path / "data")["matrix"].results) == 16


def test_without_results_there_is_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert paper_report.main([str(tmp_path), "--output", str(tmp_path / "paper")]) == 2
    assert "no campaign has a result yet" in capsys.readouterr().err
    assert not (tmp_path / "paper" / "index.md").exists()


# ---- from the data set to the page ----------------------------------------------------------


def test_table_ii_has_our_rows_and_those_of_the_paper() -> None:
    table = paper_report.beside_the_paper(campaign())
    ours, theirs = "quicsat, all servers", "quicsat, 2 servers of the paper"
    assert [row[:2] for row in table.rows] == [
        (case, who) for case in ("sat", "satloss") for who in (ours, theirs, "paper")
    ]
    sat, _, paper_sat, satloss, shared, paper_satloss = (list(row[2:]) for row in table.rows)
    assert sat == [5 * MBPS, 5 * MBPS, 8 * MBPS, 0, 0, 2]
    assert paper_sat == [5.05 * MBPS, None, 12 * MBPS, 3, 6, 182]
    assert satloss == shared == [pytest.approx(16 / 3 * MBPS), 4 * MBPS, 8 * MBPS, 0, 1, 2]
    assert paper_satloss == [3.06 * MBPS, None, 11.5 * MBPS, 13, 17, 182]


def test_a_server_that_the_paper_did_not_measure_is_left_out_of_the_comparison() -> None:
    found = runs(4 * MBPS, server="picoquic") + runs(8 * MBPS, server="quinn")
    every, shared, _ = paper_report.beside_the_paper(result_set(found, servers=("picoquic", "quinn"))).rows
    assert (every[2], shared[2]) == (6 * MBPS, 4 * MBPS)
    assert shared[1] == "quicsat, 1 server of the paper"


def test_runs_above_the_threshold_are_counted_by_congestion_control() -> None:
    found = paper_report.exceeding(campaign())
    assert sum(number for _, number in found.values()) == 4
    assert sorted(name for servers, _ in found.values() for name in servers) == ["picoquic", "picoquic"]


def test_clients_are_compared_with_the_same_servers() -> None:
    """A server that failed with one of them counts for none."""
    found = [
        *runs(4 * MBPS, client="a", server="picoquic"), *runs(6 * MBPS, client="b", server="picoquic"),
        *runs(9 * MBPS, client="a", server="quinn"),
        run_result(None, client="b", server="quinn", outcome=Outcome.FAILED, reason="No."),
    ]  # fmt: skip
    table = paper_report.clients(result_set(found, servers=("picoquic", "quinn"), clients=("a", "b")))
    assert table.rows == (("a", 4 * MBPS, "2 of 2"), ("b", 6 * MBPS, "1 of 2"))


def test_each_link_is_compared_with_the_paper() -> None:
    sat, satloss = paper_report.differences(campaign())
    assert "5.00 Mbit/s, 1 % below the paper's mean" in sat
    assert (
        "0.0 % of the pairs timed out or failed; in the paper, at least one of ten repetitions did so in 4.9 %" in sat
    )
    assert "74 % above the paper's mean" in satloss
    assert "50.0 % of the pairs timed out or failed" in satloss


def test_reasons_that_differ_in_numbers_are_one_row() -> None:
    failed = [
        run_result(None, client=name, outcome=Outcome.FAILED, reason=f"File a has {size} bytes.")
        for name, size in (("a", 7), ("b", 8.5))
    ]
    table = paper_report.not_successful(result_set(failed))
    assert table.rows == (("sat", "failed", "File a has N bytes.", 2, "picoquic with a, b"),)


def test_the_page_says_what_has_not_been_measured_yet() -> None:
    whole = paper_report.text(campaign())
    assert "Of 8 planned runs, 8 have a result. " in whole
    part = paper_report.text(replace(campaign(), results=campaign().results[:6]))
    assert "Of 8 planned runs, 6 have a result; the other runs have not been measured yet." in part


def test_algorithm_or_implementation() -> None:
    bound = (6 + sum(SATLOSS.file_sizes) * 8 / SATLOSS.timeout / 1e6) / 2
    page = "\n".join(paper_report.algorithm_or_implementation(variants()))
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if "quic" in line or "quinn" in line
    ]
    assert ["quinn", "", "2.00", "8.00"] in rows
    assert ["picoquic", "1.00", "", f"≤ {bound:.2f}"] in rows
    assert f"has {min(bound, 4):.1f} to {max(bound, 4):.1f} times the goodput of its slowest" in page
    assert f"With BBR, the fastest implementation has {8 / bound:.1f} times" in page
    assert "With CUBIC" not in page
