"""Shares, fairness and convergence of flows: made-up series with numbers of pencil and paper."""

from dataclasses import replace

import numpy as np
import pytest

from quicsat.analysis.flows import FlowTransfer, competition, flow_metrics, flow_results, jain_index
from quicsat.analysis.metrics import METRICS
from quicsat.traces.series import Packets, StreamData
from tests.fakes import run_of
from tests.series_builder import Transfer, series

FAST = series(Transfer(size=1_000_000, rate=8e6, piece=1000, delay=0.1))
"""Bytes arrive from 0.4 s to 1.4 s."""
SLOW = series(Transfer(size=500_000, rate=4e6, piece=1000, delay=0.1))


def flow(of: object = FAST, start: float = 0.0) -> FlowTransfer:
    return FlowTransfer(run_of(), start, of)  # type: ignore[arg-type]


def steps(*rates: tuple[float, float]) -> FlowTransfer:
    """A flow that receives 1000 B at equal distances, each (rate in bit/s, seconds) in turn, from 0 on."""
    times, begin = list[float](), 0.0
    for rate, duration in rates:
        count = round(rate * duration / 8000)
        times += [begin + duration * (number + 0.5) / count for number in range(count)]
        begin += duration
    count = len(times)
    number = np.arange(count)
    arrived = StreamData(
        np.array(times), 0 * number, 1000 * number, 0 * number + 1000, number, 0 * number + 1000, 0 * number
    )
    return flow(replace(FAST, arrived=arrived))


def test_flows_compete_while_all_receive() -> None:
    assert competition([flow(), flow(SLOW, 0.5)]) == pytest.approx((0.9, 1.399), abs=2e-3)
    assert competition([flow(), flow(SLOW, 2.0)]) is None
    nothing = replace(SLOW, arrived=StreamData.of())
    assert competition([flow(), flow(nothing)]) is None


def test_numbers_of_two_flows() -> None:
    first, second = flow_results([flow(), flow(SLOW, 0.5)])
    assert (first.size, second.size, second.start) == (1_000_000, 500_000, 0.5)
    assert first.competing_goodput == pytest.approx(8e6, rel=0.01)
    assert second.competing_goodput == pytest.approx(4e6, rel=0.01)
    assert [first.share, second.share] == pytest.approx([2 / 3, 1 / 3], rel=0.01)
    assert second.first_byte == pytest.approx(0.9)
    assert second.last_byte == pytest.approx(1.9, abs=2e-3)
    assert second.goodput == pytest.approx(4e6, rel=0.01)
    assert first.loss_forward == 0


def test_metrics_of_two_flows() -> None:
    found = flow_metrics([flow(), flow(SLOW, 0.5)], round_trip=0.2)
    assert found.keys() <= {metric.name for metric in METRICS}
    assert found["flow_share"] == pytest.approx(2 / 3, rel=0.01)
    assert found["jain_index"] == pytest.approx(0.9, rel=0.01)  # (2 + 1)² / (2 (4 + 1))
    assert found["competing_goodput"] == pytest.approx(12e6, rel=0.01)
    assert found["competing_time"] == pytest.approx(0.5, abs=2e-3)
    assert found["convergence_time"] is None


def test_one_flow_has_no_metrics_and_flows_apart_have_no_share() -> None:
    assert flow_metrics([flow()], round_trip=0.2) == {}
    apart = [flow(), flow(SLOW, 2.0)]
    assert flow_metrics(apart, round_trip=0.2) == {"competing_time": 0.0}
    assert [each.share for each in flow_results(apart)] == [None, None]
    assert flow_results(apart)[1].goodput == pytest.approx(4e6, rel=0.01)


def test_shares_converge_when_a_whole_window_is_fair() -> None:
    # From 5 s on both have 4 Mbit/s. A window of 1 s that ends at 5.87 s gives the slow one 0.13 × 1/8 + 0.87 × 1/2.
    flows = [steps((7e6, 5), (4e6, 5)), steps((1e6, 5), (4e6, 5))]
    assert flow_metrics(flows, round_trip=0.1)["convergence_time"] == pytest.approx(5.9, abs=0.11)
    # Windows are four round trips long if that is more.
    assert flow_metrics(flows, round_trip=0.5)["convergence_time"] == pytest.approx(6.8, abs=0.11)


def test_shares_that_are_fair_at_once_converge_after_one_window() -> None:
    flows = [steps((4e6, 5)), steps((4e6, 5))]
    assert flow_metrics(flows, round_trip=0.1)["convergence_time"] == pytest.approx(1.0)
    assert flow_metrics(flows, round_trip=0.1)["jain_index"] == pytest.approx(1.0)


def test_three_flows() -> None:
    flows = [steps((4e6, 5)), steps((2e6, 5)), steps((2e6, 5))]
    found = flow_metrics(flows, round_trip=0.1)
    assert found["flow_share"] == pytest.approx(0.5, rel=0.01)
    assert found["jain_index"] == pytest.approx(64 / (3 * 24), rel=0.01)
    assert sum(each.share or 0 for each in flow_results(flows)) == pytest.approx(1.0)


def test_queueing_delay_counts_from_the_fastest_packet_of_all_flows() -> None:
    late = replace(SLOW, forward=replace(SLOW.forward, arrived=SLOW.forward.arrived + 0.05))
    first, second = flow_results([flow(), flow(late)])
    assert first.queueing_delay_median == pytest.approx(0.0, abs=1e-6)
    assert [second.queueing_delay_median, second.queueing_delay_95] == pytest.approx([0.05, 0.05])


def test_loss_is_that_of_the_flow_and_what_is_under_way_is_not_lost() -> None:
    packets = Packets.of(
        sent=[0.0, 0.1, 0.2, 0.3], arrived=[0.1, np.nan, 0.3, np.nan], lost=[False, True, False, False],
        number=range(4), size=[1200] * 4, connection=[0] * 4,
    )  # fmt: skip
    [first, _] = flow_results([flow(replace(FAST, forward=packets)), flow()])
    assert first.loss_forward == pytest.approx(1 / 3)


def test_jain_index_of_known_rates() -> None:
    assert jain_index(np.array([1.0, 1.0, 1.0])) == pytest.approx(1.0)
    assert jain_index(np.array([1.0, 0.0])) == pytest.approx(0.5)
    assert jain_index(np.array([0.0, 0.0])) is None
