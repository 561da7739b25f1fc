"""Links that change over time, in virtual time: all of their cases; ``test_scenarios`` has two of them in real time."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from bench.changing_links import demand_delay, demand_rate, profile_delay, profile_loss, profile_rate
from bench.result_rows import Figure
from bench.testbed_traffic import Traffic
from bench.virtual_traffic import VirtualBench
from quicsat.docker.client import Daemon
from tests.engine.test_scenarios import CONSTANT, ON_DEMAND


@pytest.fixture(scope="module")
def traffic(daemon: Daemon, virtual_images: Mapping[str, str]) -> Iterator[Traffic]:
    with VirtualBench.open(daemon, virtual_images) as traffic:
        yield traffic


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(profile_rate, id="profile, rate"),
        pytest.param(profile_delay, id="profile, delay"),
        pytest.param(profile_loss, id="profile, loss"),
        pytest.param(lambda traffic: demand_delay(traffic, ON_DEMAND), id="demand"),
        pytest.param(lambda traffic: demand_delay(traffic, CONSTANT), id="demand, constant"),
        pytest.param(lambda traffic: demand_rate(traffic, ON_DEMAND), id="demand, rate"),
    ],
)
def test_a_changing_link(traffic: Traffic, case: Callable[[Traffic], list[Figure]]) -> None:
    assert [one for one in case(traffic) if one.passed is False] == []
