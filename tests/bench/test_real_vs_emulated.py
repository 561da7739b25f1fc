"""What the comparison of real and emulated links makes of runs, and of what the laboratory's simulator says."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest

from bench.real_vs_emulated import EMULATED, REAL, Comparison, Way, compare, courses, metrics, status
from quicsat.model.emulated_link import DirectionReport, SimulatorReport
from quicsat.model.results import RunResult
from quicsat.model.units import MBPS
from quicsat.results.document import StoredResults
from tests.laboratory import LinkRecord
from tests.results_builder import result_set, run_result

BEGIN = datetime.datetime(2026, 11, 21, 6, 0, tzinfo=datetime.UTC).timestamp()
COUNTERS = DirectionReport(0, 0, 0, 0)
PHASES = {"prepare": 4.0, "create": 6.0, "start": 5.0, "transfer": 20.0, "stop": 5.0, "collect": 9.0}


def emulated(repetition: int, goodput: float, lag: float) -> RunResult:
    result = run_result(goodput, repetition=repetition, test_case=EMULATED, phases=PHASES)
    report = SimulatorReport(BEGIN, True, 0.0, lag, 0, COUNTERS, COUNTERS)
    return replace(result, evidence=replace(result.evidence, simulator=report))


def real(repetition: int, goodput: float | None) -> RunResult:
    return run_result(goodput, repetition=repetition, test_case=REAL, phases=PHASES)


def link(**lag: float) -> LinkRecord:
    """A record of ten minutes with lag at some moments: ``at130``."""
    most = [0.001] * 600
    for moment, value in lag.items():
        most[int(moment.removeprefix("at"))] = value
    return LinkRecord(BEGIN, True, tuple(most), 0)


def test_runs_in_which_a_simulator_lagged_do_not_count() -> None:
    results = [emulated(1, 8 * MBPS, 0.002), emulated(2, 9 * MBPS, 0.04), real(1, 8.2 * MBPS), real(2, 9.9 * MBPS)]
    results.append(real(3, None))
    record = StoredResults(result_set(results), (*results, replace(results[0], attempt=0)), ())
    found = compare("a_b", record, link(at74=0.05, at94=0.02, at165=0.05), 0.03)
    assert found.emulated.values["goodput"] == [8 * MBPS]
    assert (found.emulated.disturbed, found.emulated.lag, found.emulated.repeated) == ((0.04,), 0.002, 1)
    assert found.real.values["goodput"] == [8.2 * MBPS, 9.9 * MBPS]  # on the link from 75 s and from 135 s on, for 20 s
    assert (found.real.disturbed, found.real.unsuccessful, found.real.lag) == ((), 1, 0.02)


@pytest.mark.parametrize(("moment", "counted"), [("at74", 1), ("at75", 0), ("at95", 0), ("at96", 1)])
def test_a_lag_matters_while_packets_may_be_on_the_link(moment: str, counted: int) -> None:
    record = StoredResults(result_set([real(1, 8 * MBPS)]), (), ())
    assert compare("a_b", record, link(**{moment: 0.05}), 0.03).real.count == counted


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([8.0, 8.2], [8.1, 8.5], 0),
        ([8.0, 8.2], [8.6, 8.6], 1),
        ([8.0, 8.2], [7.5, 7.6], 1),
        ([8.0, 8.2], [8.1], 3),
        ([], [], 3),
    ],
)
def test_means_may_differ_by_five_per_cent(first: list[float], second: list[float], expected: int) -> None:
    ways = [Way({"goodput": each, "handshake_time": [], "rtt_min": [], "loss_forward": []}, 0, (), 0, 0)
            for each in (first, second)]  # fmt: skip
    comparisons = [Comparison("a_b", *ways)]
    assert status(comparisons, 2) == expected
    assert "a_b" in f"{metrics(comparisons)}{courses(comparisons)}"
