"""The numbers of traces made by hand are exactly those that pencil and paper give."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interop.analysis import metrics
from interop.analysis.metrics import METRICS
from interop.model.emulated_link import CrossTrafficReport, LinkCounters, SimulatorReport
from interop.traces.columns import Form
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
    counters = LinkCounters(received=200, delivered=190, queue_drops=8, loss_drops=2)
    report = SimulatorReport(0, True, 0, 0, 0, counters, replace(counters, queue_drops=99))
    assert metrics.queue_loss(report) == 0.04
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
    assert {metric.unit for metric in METRICS} == {"bit/s", "s", "1", "B", "packets"}
