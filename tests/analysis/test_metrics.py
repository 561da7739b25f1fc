"""The numbers of traces made by hand are exactly those that pencil and paper give."""

from dataclasses import replace

import pytest

from quicsat.analysis import metrics, queue_drops
from quicsat.analysis.metrics import METRICS
from quicsat.model.emulated_link import (
    ClientSide,
    ClientSideDirection,
    CrossTrafficReport,
    Direction,
    DirectionReport,
    EmulatedLink,
    Profile,
    ProfileReport,
    SimulatorReport,
)
from quicsat.model.evidence import ResourceUse
from quicsat.model.units import MIB
from quicsat.traces.columns import Form
from tests.quic_builder import Row, columns, datagram_columns

CLIENT = columns(
    Row(1.0, False, Form.INITIAL),
    Row(1.6, True, Form.INITIAL),
    Row(1.6, True, Form.ONE_RTT),  # nothing but a session ticket
    Row(1.7, False, Form.HANDSHAKE),
    Row(1.75, False, Form.ONE_RTT, [(0, 0, 8)]),
    Row(2.0, True, frames=[(3, 0, 20)]),  # a stream of the server, not the response
    Row(2.5, True, frames=[(0, 0, 1000)]),
    Row(3.0, True, frames=[(0, 1000, 1000)]),
    Row(3.5, True, frames=[(0, 0, 1000)]),  # again
    Row(5.6, True),  # a late CONNECTION_CLOSE
)
SIZE = 2000


def test_goodput_is_that_of_the_paper() -> None:
    assert metrics.goodput(CLIENT, SIZE) == pytest.approx(16000 / 4.0)
    assert metrics.efficiency(4000, 20_000) == 0.2


NONE = DirectionReport(0, 0, 0, 0)
LINK = EmulatedLink("simple-p2p", Direction(0.5, 15e6, 25), Direction(0.5, 1e6, 25))
STEPS = Profile("rates.csv", 10.0, (0.0, 5.0), rates=(10e6, 20e6))


def reported(began: float | None = 1000.0) -> SimulatorReport:
    return SimulatorReport(990, True, 0, 0, 0, replace(NONE, profile=ProfileReport(began, 9)), NONE)


def test_capacity_is_that_of_the_time_in_which_packets_left() -> None:
    during = (1003.5, 1007.5)  # these left between 3 and 7 s
    assert metrics.forward_capacity(LINK, None, 1, during) == 15e6
    changing = LINK.with_forward(profile=STEPS)
    assert metrics.forward_capacity(changing, reported(), 1, during) == pytest.approx(15e6)
    assert metrics.forward_capacity(changing, reported(), 1, (1003.5, 1004.5)) == pytest.approx(10e6)
    later = LINK.with_forward(profile=replace(STEPS, start=4.0))
    assert metrics.forward_capacity(later, reported(), 1, during) == pytest.approx((3 * 20e6 + 1 * 10e6) / 4)
    by_seed = LINK.with_forward(profile=replace(STEPS, start=None))
    seeds = {metrics.forward_capacity(by_seed, reported(), seed, during) for seed in range(1, 9)}
    assert len(seeds) > 4


def test_capacity_follows_the_delay_of_its_packets() -> None:
    delays = replace(STEPS, delays=(0.2, 0.8))
    changing = LINK.with_forward(profile=delays)
    # the first left at 5.2 - 0.2 = 5.0 s, the last at 9.0 - 0.8 s: all of them at 20 Mbit/s
    assert metrics.forward_capacity(changing, reported(), 1, (1005.2, 1009.0)) == pytest.approx(20e6)


def test_capacity_is_that_of_the_slowest_link() -> None:
    slow = replace(LINK, client_side=ClientSide(ClientSideDirection(rate=12e6, queue=9)))
    during = (1003.5, 1007.5)
    assert metrics.forward_capacity(slow, None, 1, during) == 12e6
    changing = slow.with_forward(profile=STEPS)  # half of the time 10, half of it 20 Mbit/s
    assert metrics.forward_capacity(changing, reported(), 1, during) == pytest.approx(11e6)


def test_capacity_that_is_not_known() -> None:
    changing = LINK.with_forward(profile=STEPS)
    assert metrics.forward_capacity(changing, None, 1, (1003.5, 1007.5)) is None
    assert metrics.forward_capacity(changing, reported(None), 1, (1003.5, 1007.5)) is None
    assert metrics.forward_capacity(changing, reported(), 1, (1003.5, 1003.5)) is None
    silent = LINK.with_forward(profile=replace(STEPS, rates=(0.0, 20e6)))
    assert metrics.forward_capacity(silent, reported(), 1, (1001.5, 1004.5)) is None
    only_losses = LINK.with_forward(profile=replace(STEPS, rates=(), losses=(0.0, 0.1)))
    assert metrics.forward_capacity(only_losses, None, 1, (1001.5, 1004.5)) == 15e6


def test_stream_goodput_has_no_idle_time() -> None:
    assert metrics.stream_goodput(CLIENT, SIZE) == pytest.approx(16000 / 0.5)


def test_times() -> None:
    assert metrics.handshake_time(CLIENT) == pytest.approx(0.75)
    assert metrics.time_to_first_byte(CLIENT) == pytest.approx(1.5)
    assert metrics.completion_time(CLIENT) == pytest.approx(2.0)


def test_what_cannot_be_known_is_none() -> None:
    silent = columns(Row(0, False, Form.INITIAL), Row(1, True))
    assert metrics.goodput(silent, SIZE) is None
    assert metrics.goodput(columns(), SIZE) is None
    assert metrics.stream_goodput(silent, SIZE) is None
    assert metrics.handshake_time(silent) is None
    assert metrics.time_to_first_byte(silent) is None
    assert metrics.completion_time(columns()) is None
    assert metrics.sent_per_useful_byte(datagram_columns([]), 0) is None


def test_shares_of_what_was_sent() -> None:
    sent = datagram_columns([(0, True, 1), (0, True, 2), (0, False, 3)], size=1500)
    assert metrics.sent_per_useful_byte(sent, SIZE) == 1.5
    counters = DirectionReport(received=200, delivered=190, queue_drops=8, loss_drops=2)
    report = SimulatorReport(0, True, 0, 0, 0, counters, replace(counters, queue_drops=99))
    assert queue_drops.queue_loss(report) == 0.04
    assert metrics.cross_traffic_goodput(report) is None
    beside = CrossTrafficReport(0, 8, 5_000_000, 5e6, (), 3500, 12)
    assert metrics.cross_traffic_goodput(replace(report, cross_traffic=beside)) == 5e6
    strange = CrossTrafficReport(0, 0.3, 952_478_886, 25_326_818_218, (952_478_886,), 2390, 18)  # as was measured
    assert metrics.cross_traffic_goodput(replace(report, cross_traffic=strange)) is None
    nothing = CrossTrafficReport(0, 0, 0, 0.0, (), 0, 0)
    assert metrics.cross_traffic_goodput(replace(report, cross_traffic=nothing)) == 0


def test_the_registry_is_complete() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert {metric.unit for metric in METRICS} == {"bit/s", "s", "1", "B", "packets", "calls"}


def test_cost_of_the_endpoints_of_the_first_flow() -> None:
    use = {"server": ResourceUse(1.5, 0.5, 1000, 2000), "server-2": ResourceUse(9.0, 9.0, 9)}
    assert metrics.endpoint_cost(use, 4 * MIB) == {
        "server_cpu_per_mib": 0.5, "server_cpu_user": 1.5, "server_cpu_system": 0.5, "server_memory_peak": 1000.0,
        "server_system_calls_per_mib": 500.0,
    }  # fmt: skip
    for name in ("server_cpu_per_mib", "server_system_calls_per_mib"):
        assert metrics.endpoint_cost(use, 0)[name] is None
    uncounted = metrics.endpoint_cost({"client": ResourceUse(1.0, 1.0, 1)}, MIB)
    assert (uncounted["client_cpu_per_mib"], uncounted["client_system_calls_per_mib"]) == (2.0, None)
    known = {metric.name for metric in metrics.METRICS}
    assert metrics.endpoint_cost({"server": use["server"], "client": use["server"]}, 1).keys() <= known


# ---- uploads --------------------------------------------------------------------------------

UPLOADING = columns(Row(1.0, False, Form.INITIAL), Row(2.0, True, Form.INITIAL))
UPLOADED = columns(
    Row(1.3, False, Form.INITIAL),
    Row(2.0, True, Form.ONE_RTT, frames=[(1, 0, 20)]),  # a request
    Row(3.0, False, Form.ONE_RTT, frames=[(1, 0, 900)]),
    Row(4.5, False, Form.ONE_RTT, frames=[(1, 900, 100), (2, 0, 50)]),
    Row(5.0, False, Form.ONE_RTT, frames=[(1, 0, 900)]),  # sent again
    Row(6.0, True, Form.ONE_RTT, frames=[(0, 0, 500)]),
)


def test_an_upload_ends_with_its_last_new_byte() -> None:
    values = metrics.upload_values(UPLOADING, UPLOADED, (600, 400))
    assert {*values} <= {metric.name for metric in METRICS}
    assert values == pytest.approx({"upload_time": 3.5, "upload_goodput": 8000 / 3.5})
    later = replace(UPLOADING, epoch=UPLOADING.epoch - 2)
    assert metrics.upload_values(later, UPLOADED, (1000,))["upload_time"] == pytest.approx(5.5)


def test_files_that_no_stream_carried_have_no_time() -> None:
    assert metrics.upload_values(UPLOADING, UPLOADED, (2000,)) == {}
    assert metrics.upload_values(UPLOADING, UPLOADED, ()) == {}
    assert metrics.upload_values(columns(), UPLOADED, (1000,)) == {}
