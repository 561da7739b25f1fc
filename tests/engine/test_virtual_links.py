"""In virtual time: links that change over time, and each hop of a path; ``test_scenarios`` has some in real time."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from bench.changing_links import demand_delay, demand_rate, profile_delay, profile_loss, profile_rate
from bench.hops import BESIDE, LINK, hop_delays, hop_jitter, hop_losses, hop_queue, hop_rate
from bench.result_rows import Figure
from bench.testbed_traffic import Traffic
from bench.virtual_traffic import VirtualBench
from quicsat.docker.client import Daemon
from tests.engine.conftest import need
from tests.engine.test_scenarios import CONSTANT, ON_DEMAND


@pytest.fixture(scope="module")
def traffic(daemon: Daemon, virtual_images: Mapping[str, str]) -> Iterator[Traffic]:
    gateways = {"link-gateways": need(daemon, "link-gateways")[0]}
    with VirtualBench.open(daemon, {**virtual_images, **gateways}) as traffic:
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
        pytest.param(lambda traffic: hop_rate(traffic, BESIDE, "forward", 1.0), id="rate, client's side"),
        pytest.param(lambda traffic: hop_rate(traffic, LINK, "return", 1.0), id="rate, link"),
        pytest.param(hop_delays, id="delay of hops"),
        pytest.param(lambda traffic: hop_losses(traffic, 2_000), id="loss of hops"),
        pytest.param(lambda traffic: hop_queue(traffic, duration=1.0), id="queue of hops"),
        pytest.param(hop_jitter, id="jitter of hops"),
    ],
)
def test_a_link_in_virtual_time(traffic: Traffic, case: Callable[[Traffic], list[Figure]]) -> None:
    assert [one for one in case(traffic) if one.passed is False] == []
