"""The stored report docs/paper: runs without success."""

from __future__ import annotations

import re
from statistics import fmean

import pytest

from tests.scripts.stored_paper_report.stored import (
    Run,
    all_goodputs,
    arrived,
    documents,
    goodputs,
    matching,
    matrix,
    metric,
    metrics,
    named,
    rows,
    runs_of,
    section_of,
    stored_part,
    succeeded,
    the_page,
)


def test_number_of_runs_and_failures() -> None:
    page = the_page()
    succeeded = sum(run["verdict"]["outcome"] == "succeeded" for run in matrix())
    assert f"Of {len(matrix())} runs, {succeeded} succeeded" in page
    assert sum(int(row[3]) for row in rows("Unsuccessful runs")) == len(matrix()) - succeeded


def test_what_was_in_flight_in_runs_without_success() -> None:
    reasons = [run["verdict"]["reason"] for run in matrix() if run["verdict"]["outcome"] != "succeeded"]
    flying = [float(found[1]) for each in reasons if (found := re.search(r"kept ([\d.]+) KiB in flight", each))]
    windows = [
        run["measurement"]["negotiated"]["client"][name]
        for run in matrix()
        if metric(run, "goodput") is not None
        for name in ("initial_max_data", "initial_max_stream_data_bidi_local")
    ]
    told = f"the median amount of data in flight was at most {max(flying):.4g} KiB, far below the smallest"
    assert f"{told} announced window ({min(windows) // 1024} KiB)." in section_of("Unsuccessful runs")


def test_reasons_have_their_ranges() -> None:
    """Of the runs over satloss that timed out while data arrived."""
    mib = [
        float(found[1])
        for run in matrix()
        if run["test_case"] == "satloss" and run["verdict"]["outcome"] == "timeout"
        if (found := re.search(r"\(median\): ([\d.]+) MiB of 10 MiB", run["verdict"]["reason"]))
    ]
    assert f"{min(mib):g} to {max(mib):g} MiB of 10 MiB arrived" in section_of("Unsuccessful runs")


def test_attempts_that_were_repeated() -> None:
    again = same = 0
    for each in documents("matrix"):
        last = {(run["server"], run["client"], run["test_case"]): run["verdict"]["outcome"] for run in each["results"]}
        for run in each["earlier"]:
            again += 1
            same += last[run["server"], run["client"], run["test_case"]] == run["verdict"]["outcome"]
    told = f"We repeated {again} unsuccessful attempts with the same seed; {same} of them had the same outcome again."
    assert (told in the_page()) is bool(again)
    assert ("unsuccessful attempt" in the_page()) is bool(again)


def test_numbers_of_runs_that_timed_out() -> None:
    late = [run for run in matrix() if run["verdict"]["outcome"] == "timeout"]
    found = rows("Runs that timed out")
    assert sum(int(row[2]) for row in found) == len(late)
    for test_case, server, count, share, goodput, good, other in found:
        mine = [run for run in late if (run["test_case"], run["server"]) == (test_case, server)]
        sizes = [size for run in mine if (size := arrived(run)) is not None]
        assert int(count) == len(mine)
        assert float(share) == pytest.approx(100 * fmean(sizes) / (10 * 2**20), abs=0.51)
        assert float(goodput) == pytest.approx(fmean(all_goodputs(mine)), abs=0.0051)
        values = goodputs(test_case=test_case, server=server)
        assert int(good) == len(values)
        assert (float(other) if other else None) == (pytest.approx(fmean(values), abs=0.0051) if values else None)
    unknown = sum(arrived(run) is None for run in late)
    assert (f"The means omit {unknown} runs with " in the_page()) is bool(unknown)


def test_reasons_have_one_rate() -> None:
    """Runs that timed out have a goodput in one table alone."""
    assert "on average" not in section_of("Unsuccessful runs")


@pytest.mark.skipif(not stored_part["limits"], reason="no runs with more time are stored")
def test_runs_with_more_time() -> None:
    """Those with the seed of a run that timed out."""
    [limit] = {case["timeout"] for each in documents("limits") for case in each["manifest"]["test_cases"]}
    late = {key_of(run) for run in matrix() if run["verdict"]["outcome"] == "timeout"}
    same = [run for run in runs_of("limits") if key_of(run) in late]
    times = metrics(same, "completion_time")
    if times:
        good = sum(map(succeeded, same))
        which = f"All {good}" if good == len(same) else f"Of these, {good}"
        assert (
            f"We repeated {len(same)} of the runs that timed out, with the same losses and a limit of {limit:g} s "
            f"({named((run['server'], run['client']) for run in same)}): those with seed 1 and the clients of "
            "[Algorithm or implementation](#algorithm-or-implementation). "
            f"{which} succeeded, after {min(times):.0f} to {max(times):.0f} s."
        ) in section_of("Runs that timed out")
        assert {run["repetition"] for run in same} == {1}
        clients = {client for each in documents("variants") for client in each["manifest"]["clients"]}
        slow = {run["server"] for run in same}
        assert {(run["server"], run["client"]) for run in same} == {
            (name, client) for name in slow for client in clients
        }


def test_the_idle_timeouts_of_haproxy_with_quinn() -> None:
    """In milliseconds; the shorter one applies."""
    found = {
        (each["client"]["max_idle_timeout"], each["server"]["max_idle_timeout"])
        for run in matching(matrix(), server="haproxy", client="quinn")
        if run["measurement"] and (each := run["measurement"].get("negotiated"))
    }
    assert found == {(30_000, 60_000)}
    assert "quinn announces a timeout of 30 s and haproxy one of 60 s" in the_page()


def key_of(run: Run) -> tuple[str, str, int]:
    return run["server"], run["client"], run["evidence"]["seed"]
