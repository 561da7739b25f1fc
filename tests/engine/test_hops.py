"""Rate, delay, loss, queue, jitter of each hop of a path, in virtual time; ``test_scenarios`` has two in real time."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from bench.hops import BESIDE, LINK, hop_delays, hop_jitter, hop_losses, hop_queue, hop_rate
from bench.result_rows import Figure
from bench.testbed_traffic import Traffic
from bench.virtual_traffic import VirtualBench
from quicsat.docker.client import Daemon
from tests.engine.conftest import need


@pytest.fixture(scope="module")
def virtual(daemon: Daemon, virtual_images: Mapping[str, str]) -> Iterator[Traffic]:
    gateways = {"link-gateways": need(daemon, "link-gateways")[0]}
    with VirtualBench.open(daemon, {**virtual_images, **gateways}) as bench:
        yield bench


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(lambda bench: hop_rate(bench, BESIDE, "forward", 1.0), id="rate, client's side"),
        pytest.param(lambda bench: hop_rate(bench, LINK, "return", 1.0), id="rate, link"),
        pytest.param(hop_delays, id="delay"),
        pytest.param(lambda bench: hop_losses(bench, 2_000), id="loss"),
        pytest.param(lambda bench: hop_queue(bench, duration=1.0), id="queue"),
        pytest.param(hop_jitter, id="jitter"),
    ],
)
def test_each_hop_in_virtual_time(virtual: Traffic, case: Callable[[Traffic], list[Figure]]) -> None:
    assert [one for one in case(virtual) if one.passed is False] == []
