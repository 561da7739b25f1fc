"""Formulas of Reno and CUBIC, against published values and a simulation of their windows."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from interop.model.emulated_link import LinkCounters, SimulatorReport
from interop.model.implementation import CongestionControl
from interop.model.results import Measurement, ResultSet, RunResult
from interop.model.run import File
from interop.model.units import MBPS, MIB
from scripts.paper.theory import (
    below_the_limit,
    cubic,
    fastest,
    formula_of,
    formulas_beside_measurements,
    payload_of,
    reno,
    theory,
)
from tests.results_builder import SAT, SATLOSS, result_set, run_result
from tests.scripts.paper.campaigns import late


@pytest.mark.parametrize("kept", [0.5, 0.7])
def test_reno_is_the_mean_of_its_saw_tooth(kept: float) -> None:
    """A window that grows by a packet per round trip and falls after each 1/p packets."""
    loss, trip, payload = 1e-5, 0.6, 1200
    window, sent, trips, since = 100.0, 0.0, 0, 0.0
    for _ in range(40_000):
        sent += window
        since += window
        trips += 1
        window = window * kept if since >= 1 / loss else window + 1
        since = 0.0 if since >= 1 / loss else since
    assert reno(payload, trip, loss, kept) == pytest.approx(8 * payload * sent / trips / trip, rel=0.03)


def test_servers_with_a_formula_of_their_own() -> None:
    usual = formula_of("openssl", "NewReno", 1200, 0.6, 0.01)
    assert usual == reno(1200, 0.6, 0.01)
    assert formula_of("quic-go", "NewReno", 1200, 0.6, 0.01) == pytest.approx(usual * math.sqrt(1.7 / 0.9))
    assert formula_of("nginx", "NewReno", 1200, 0.6, 0.01) == pytest.approx(8 * 131054 / 0.6)
    assert formula_of("nginx", "NewReno", 1200, 0.6, 1e-6) == reno(1200, 0.6, 1e-6)
    assert formula_of("lsquic", "BBR", 1200, 0.6, 0.01) is None


@pytest.mark.parametrize(("loss", "window"), [(1e-2, 33.3), (1e-4, 1054)])
def test_cubic_has_the_windows_of_rfc_9438(loss: float, window: float) -> None:
    """Equation 6: 1.054 (RTT / p)^0.75, here at a round trip of 1 s."""
    assert cubic(1500, 1.0, loss) / 8 / 1500 == pytest.approx(window, rel=0.002)


def test_cubic_is_never_slower_than_reno() -> None:
    assert cubic(1500, 0.001, 1e-2) == reno(1500, 0.001, 1e-2)
    assert cubic(1500, 0.6, 1e-2) > reno(1500, 0.6, 1e-2)


def test_slow_start_bounds_the_goodput() -> None:
    """Packet by packet: round trip n begins after n round trips, and each packet takes its time on the link."""
    link = SAT.emulated
    left, time, window = math.ceil(10 * MIB / 1447), 0.0, 10
    while left:
        sent_now = min(left, window)
        busy = sent_now * 1502 * 8 / link.forward_rate
        left -= sent_now
        full = window * 1502 * 8 / link.forward_rate >= 0.6
        time += busy if full or not left else 0.6
        window = left if full else 2 * window
    assert fastest(10 * MIB, link) == pytest.approx(8 * 10 * MIB / time)
    assert 10.5e6 < fastest(10 * MIB, link) < 11e6


def test_a_small_file_fits_into_the_initial_window() -> None:
    """It takes no round trip, only the time of its ten packets on the link."""
    assert fastest(14_470, SAT.emulated) == pytest.approx(20e6 * 1447 / 1502)
    assert fastest(20_000, SAT.emulated) == pytest.approx(8 * 20_000 / (0.6 + 4 * 1502 * 8 / 20e6))


def sent(run: RunResult, packets: int, per_byte: float) -> RunResult:
    """The run, in which the server sent so many packets, and so many bytes per byte of a file of 10 MB."""
    assert run.measurement is not None
    counters = LinkCounters(
        received=packets, delivered=packets - 7, queue_drops=0, loss_drops=7, corrupted=0, listed_drops=0
    )
    report = SimulatorReport(0.0, True, 0.0, 0.0, 0, counters, counters)
    values = {**run.measurement.values, "sent_per_useful_byte": per_byte}
    evidence = replace(run.evidence, simulator=report, offered=(File("a", 10**7, ""),))
    return replace(run, measurement=Measurement(values), evidence=evidence)


def campaign(control: str, rate: float = MBPS) -> ResultSet:
    """A run over sat, and one over satloss with this rate."""
    found = [sent(run_result(rate, test_case=case), 10_000, 1.2) for case, rate in (("sat", 5e6), ("satloss", rate))]
    results = result_set(found, test_cases=(SAT, SATLOSS))
    known = tuple(
        replace(each, congestion_control=CongestionControl(control)) for each in results.manifest.implementations
    )
    return replace(results, manifest=replace(results.manifest, implementations=known))


def test_formulas_beside_measurements() -> None:
    table = formulas_beside_measurements(campaign("reno"))
    assert table is not None
    formula = 8 * 1200 / 0.6 * math.sqrt(1.5 / 0.01)
    [row] = table.rows
    with_drops = pytest.approx(8 * 1200 / 0.6 * math.sqrt(1.5 / 0.0007))
    expected = ["picoquic", "Reno", 1200, pytest.approx(formula), MBPS, f"{1e6 / formula:.1f}", 0.0007, with_drops]
    assert list(row) == expected
    told = "\n".join(theory(campaign("reno")))
    ratio = f"{1e6 / formula:.1f}"
    assert f"picoquic exceeds the formula by more than a factor of 2 ({ratio} times; 1.00 to 1.00 Mbit/s, dep" in told
    assert (
        f"The measured goodput is {ratio} times the formula (median of the servers; {ratio} to {ratio} times for "
        "individual servers). If p is replaced by the share of packets that the link and the queue dropped, the "
        "measured goodput is 1.4 times the formula (1.4 to 1.4 times)."
    ) in told
    assert "do not show which assumption" in told
    assert "the link drops only 7 packets per transfer" in told


@pytest.mark.parametrize(("factor", "expected"), [(1.98, False), (2.03, True)])
def test_servers_slightly_beyond_a_factor_of_two_are_named(factor: float, expected: bool) -> None:
    """The table shows both as 2.0 times."""
    told = "\n".join(theory(campaign("reno", factor * reno(1200, 0.6, 0.01))))
    assert "| 2.0 " in told
    assert ("picoquic exceeds the formula by more than a factor of 2" in told) is expected


def test_timeouts_below_the_rate_that_the_limit_needs() -> None:
    """10 MiB in 360 s take 0.23 Mbit/s, and the formula gives 0.20 Mbit/s."""
    results = campaign("reno")
    late_run = late(run_result(None, test_case="satloss", repetition=2), 5 * MIB)
    both = replace(results, results=(*results.results, late_run))
    assert below_the_limit(results)[0] == []
    servers, rates = below_the_limit(both)
    assert servers == ["picoquic"]
    assert rates == "needs 0.23 Mbit/s to finish in time, but the Reno formula predicts only 0.20 Mbit/s"


def test_bbr_has_no_formula() -> None:
    table = formulas_beside_measurements(campaign("bbr"))
    assert table is not None
    assert table.rows == ()
    assert list(theory(campaign("bbr"))) == []


def test_without_a_count_of_packets_there_is_no_payload() -> None:
    assert payload_of([run_result(1e6)]) is None
