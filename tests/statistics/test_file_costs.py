"""Costs of reading a file, from times to the first byte whose parts are known."""

from dataclasses import replace

import pytest

from quicsat.model.clock import Clock
from quicsat.model.results import Measurement, ResultSet, RunResult
from quicsat.model.units import KIB, MIB
from quicsat.statistics.file_costs import file_costs
from tests.results_builder import SAT, result_set, run_result

CASES = {size: replace(SAT, name=f"sat-{size}", file_sizes=(size,)) for size in (1000, 10 * MIB)}
OTHER = replace(SAT, name="other", file_sizes=(20 * MIB,), link=SAT.emulated.with_both(delay=0.1))
LINKS = {each.name for each in (*CASES.values(), OTHER)}
CLIENTS = {"a": 1e-3, "b": 5e-3, "c": 0.0}
COST = 1.5e-6


def run(client: str, size: int, cost: float, **more: float) -> RunResult:
    """A run whose first byte comes after a round trip, what the client needs, and the reading of the file."""
    found = run_result(server="s", client=client, test_case=f"sat-{size}")
    first = 1.2 + CLIENTS[client] + cost * size / KIB + more.get("late", 0.0)
    return replace(found, measurement=Measurement({"handshake_time": 0.6, "time_to_first_byte": first}))


def campaign(*runs: RunResult) -> ResultSet:
    """Of these runs."""
    return result_set(list(runs), servers=("s",), clients=tuple(CLIENTS), test_cases=(*CASES.values(), OTHER))


def every(cost: float) -> list[RunResult]:
    """Runs of all clients with both sizes."""
    return [run(client, size, cost) for client in CLIENTS for size in CASES]


def test_the_cost_is_what_a_large_file_takes_longer() -> None:
    assert file_costs([campaign(*every(COST))], LINKS) == {"s": pytest.approx(COST)}


def test_one_client_that_disagrees_changes_nothing() -> None:
    strange = [*every(COST)[:-2], run("c", 1000, COST), run("c", 10 * MIB, COST, late=3)]
    assert file_costs([campaign(*strange)], LINKS) == {"s": pytest.approx(COST)}


def test_no_cost_is_below_zero() -> None:
    early = [run(client, size, 0, late=-0.01 * (size > MIB)) for client in CLIENTS for size in CASES]
    assert file_costs([campaign(*early)], LINKS) == {"s": 0}


def test_runs_that_show_nothing_are_left_out() -> None:
    """Of one size, over another link, over a link that does not count, in virtual time, and without a first byte."""
    small = [run(client, 1000, COST) for client in CLIENTS]
    assert file_costs([campaign(*small)], LINKS) == {}
    other = replace(run("a", 1000, COST), test_case=OTHER.name)
    assert file_costs([campaign(*small, other)], LINKS) == {}
    large = run("a", 10 * MIB, COST)
    assert file_costs([campaign(*small, large)], {"sat-1000"}) == {}
    virtual = replace(large, evidence=replace(large.evidence, clock=Clock.VIRTUAL))
    silent = replace(large, measurement=Measurement({"handshake_time": 0.6}))
    assert file_costs([campaign(*small, virtual, silent)], LINKS) == {}
