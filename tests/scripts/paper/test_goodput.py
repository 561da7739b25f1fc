"""Goodput of runs that did not succeed."""

from __future__ import annotations

import pytest

from interop.model.outcomes import Outcome
from interop.model.units import KIB, MBPS, MIB
from interop.statistics.samples import GOODPUT, value_of
from scripts.paper.goodput import arrived, goodput_so_far, with_timeouts
from tests.results_builder import SATLOSS, result_set, run_result
from tests.scripts.paper.campaigns import late


def test_goodput_of_a_run_that_timed_out_is_what_arrived_over_its_time() -> None:
    assert goodput_so_far(late(run_result(None, test_case="satloss"), 360_000)) == pytest.approx(8000)
    assert goodput_so_far(run_result(3 * MBPS)) == 3 * MBPS
    assert goodput_so_far(run_result(None)) is None


def test_what_a_trace_shows_counts_rather_than_what_the_client_had_written() -> None:
    def arrived_of(reason: str, size: int) -> float | None:
        return arrived(late(run_result(None, test_case="satloss", reason=reason), size))

    assert (
        arrived_of("Congestion control kept 9 KiB in flight (median): 7.5 MiB of 10 MiB arrived, with", 8) == 7.5 * MIB
    )
    assert arrived_of("The time was too short: 12 KiB of 10 MiB arrived, with 1 kbit/s on average.", 8) == 12 * KIB
    assert arrived_of("No key log decrypts the packets.", 8) == 8
    assert arrived(run_result(None)) is None


def test_only_runs_that_timed_out_are_counted_with_it() -> None:
    failed = late(run_result(None, client="y", test_case="satloss", outcome=Outcome.FAILED), 360_000)
    found = [late(run_result(None, test_case="satloss"), 360_000), failed, run_result(None, test_case="satloss")]
    counted = with_timeouts(result_set(found, test_cases=(SATLOSS,)))
    assert [value_of(run, GOODPUT) for run in counted.results] == [pytest.approx(8000), None, None]
    assert value_of(counted.results[0], "efficiency") == pytest.approx(8000 / 20e6)
