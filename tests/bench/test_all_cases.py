"""Which test cases are run once, with which pair, and how their outcomes are shown."""

from pathlib import Path

import pytest

from bench.all_cases import MORE_TESTS, QUIC, TCP, WEBTRANSPORT, Planned, cannot_run, outcomes, planned, ready_cases
from quicsat.model.clock import Clock
from quicsat.model.units import MIB
from quicsat.report.table import render
from tests.results_builder import SAT, run_result

ROOT = Path(__file__).resolve().parents[2]
READY = {case.name: case for case in ready_cases(ROOT)}


def test_ready_are_all_but_real_links() -> None:
    assert {"handshake", "leo", "geo20@pep=d", "satcom-250", "vpn-openvpn-tcp", "terrestrial+page-p50"} <= set(READY)
    assert {"astra", "starlink"}.isdisjoint(READY)


@pytest.mark.parametrize(("name", "pair"), [
    ("sat", QUIC), ("zerortt", QUIC), ("ecn", MORE_TESTS), ("connectionmigration", MORE_TESTS), ("geo-pep-d", TCP),
    ("vpn-openvpn", QUIC), ("terrestrial+sizes", QUIC), ("transfer-datagram-send", WEBTRANSPORT),
])  # fmt: skip
def test_a_pair_suits_the_test_case(name: str, pair: tuple[str, str]) -> None:
    assert planned(READY[name], MIB).pair == pair


@pytest.mark.parametrize(("name", "size"), [
    ("sat", MIB), ("leo100@pep=none", MIB), ("transfer", 10 * MIB), ("terrestrial+objects", 500_000),
    ("sweep-loss@forward-loss=1pct", MIB),
])  # fmt: skip
def test_only_files_of_measurements_are_shortened(name: str, size: int) -> None:
    plan = planned(READY[name], MIB)
    assert (plan.case.total_size, plan.shortened) == (size, READY[name].total_size > size)


def test_fast_links_need_virtual_time() -> None:
    told = "In real time, links carry at most 150.00 Mbit/s, and this one 250.00 Mbit/s."
    assert cannot_run(READY["satcom-250"], Clock.REAL) == told
    assert cannot_run(READY["satcom-250"], Clock.VIRTUAL) == ""
    assert cannot_run(READY["leo100@pep=none"], Clock.REAL) == ""  # as fast as possible


def test_outcomes_are_a_table() -> None:
    plans = [planned(SAT, MIB), Planned(READY["satcom-250"], QUIC, False)]
    shown = render(outcomes(plans, {"sat": run_result(5e6)}, Clock.REAL), "markdown")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in shown.splitlines() if "picoquic" in line]
    assert rows[0][:7] == ["sat", "picoquic", "1 MiB (shortened)", "succeeded", "5.00", "20.0", "1"]
    assert rows[1][3] == "not run"
    assert rows[1][7].startswith("In real time, links carry at most")
