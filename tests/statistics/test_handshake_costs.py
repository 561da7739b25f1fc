"""Times of handshakes from durations whose parts are known."""

from dataclasses import replace

import numpy as np
import pytest

from quicsat.model.clock import Clock
from quicsat.model.implementation import Role
from quicsat.model.results import Measurement, ResultSet, RunResult
from quicsat.statistics.handshake_costs import handshake_costs
from tests.costs_builder import CASES
from tests.results_builder import SAT, SATLOSS, result_set, run_result

NAMES = ("a", "b", "c", "d")
LINKS = {SAT.name, SATLOSS.name}
SERVERS = dict(zip(NAMES, (1e-3, 2e-3, 1.5e-3, 250e-3), strict=True))
CLIENTS = dict(zip(NAMES, (2e-3, 1e-3, 1.5e-3, 100e-3), strict=True))
TRUE = {(name, Role.SERVER): time for name, time in SERVERS.items()} | {
    (name, Role.CLIENT): time for name, time in CLIENTS.items()
}
LINK = SAT.emulated.round_trip_delay + 8 * 1200 * (1 / SAT.emulated.forward.rate + 1 / SAT.emulated.back.rate)


def run(server: str, client: str, beyond: float, case: str = SAT.name, repetition: int = 1) -> RunResult:
    """A run whose handshake takes some seconds more than the link needs."""
    found = run_result(server=server, client=client, test_case=case, repetition=repetition)
    return replace(found, measurement=Measurement({"handshake_time": LINK + beyond}))


def campaign(*runs: RunResult) -> ResultSet:
    """Of these runs."""
    return result_set(list(runs), servers=NAMES, clients=NAMES, test_cases=CASES)


def every_pair(noise: float = 0.0) -> list[RunResult]:
    """Three runs of each, with exponential delays; over the link with losses, all take longer."""
    numbers = np.random.default_rng(1)
    return [
        run(server, client, SERVERS[server] + CLIENTS[client] + numbers.exponential(noise) + late, case, repetition)
        for server in NAMES
        for client in NAMES
        for case, late in ((SAT.name, 0.0), (SATLOSS.name, 0.2))
        for repetition in (1, 2, 3)
    ]


def test_the_times_of_all_pairs_are_found() -> None:
    assert handshake_costs([campaign(*every_pair())], LINKS, {}) == pytest.approx(TRUE, abs=1e-6)


def test_delays_of_some_runs_change_little() -> None:
    found = handshake_costs([campaign(*every_pair(0.2e-3))], LINKS, {})
    assert found == pytest.approx(TRUE, abs=0.3e-3)


def test_a_pair_that_disagrees_changes_little() -> None:
    runs = [each if (each.server, each.client) != ("a", "c") else run("a", "c", 40e-3) for each in every_pair()]
    assert handshake_costs([campaign(*runs)], LINKS, {}) == pytest.approx(TRUE, abs=0.2e-3)


def test_known_times_decide_how_a_sum_is_divided() -> None:
    """As with the partners of an implementation that is measured with them alone, in either role."""
    runs = [each for each in every_pair() if (each.server == "d") != (each.client == "d")]
    known = {endpoint: time for endpoint, time in TRUE.items() if endpoint[0] != "d"}
    assert handshake_costs([campaign(*runs)], LINKS, known) == pytest.approx(TRUE, abs=1e-6)


def test_other_links_and_virtual_time_show_nothing() -> None:
    first, *_ = every_pair()
    virtual = replace(first, evidence=replace(first.evidence, clock=Clock.VIRTUAL))
    unknown = replace(first, measurement=Measurement({}))
    assert handshake_costs([campaign(first)], {SATLOSS.name}, {}) == {}
    assert handshake_costs([campaign(virtual, replace(unknown, repetition=2))], LINKS, {}) == {}
    assert handshake_costs([campaign(run("a", "b", -0.1))], LINKS, {}) == {("a", Role.SERVER): 0, ("b", Role.CLIENT): 0}
