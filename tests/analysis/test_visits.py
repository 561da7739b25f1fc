"""Times of two visits, of which the second resumes the session of the first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quicsat.analysis.metrics import METRICS
from quicsat.analysis.visits import MARKS, visit_times
from quicsat.traces.columns import Connection, Form
from tests.quic_builder import NOBODY, Row, columns

RESUMED = replace(NOBODY, resumed=True)
FIRST = (
    Row(1.0, False, Form.INITIAL, connection=0),
    Row(2.0, False, Form.ONE_RTT, frames=[(0, 0, 20)], connection=0),
    Row(2.5, True, Form.ONE_RTT, frames=[(0, 0, 60_000)], connection=0),
    Row(3.0, True, Form.ONE_RTT, frames=[(0, 0, 60_000)], connection=0),  # sent again
    Row(3.5, True, Form.ONE_RTT, frames=[(3, 0, 60_000)], connection=0),  # not a response
    Row(4.0, True, Form.ONE_RTT, frames=[(4, 0, 40_000)], connection=0),
)
SECOND = (
    Row(5.0, False, Form.INITIAL, connection=1),
    Row(5.0, False, Form.ZERO_RTT, frames=[(0, 0, 20)], connection=1),
    Row(5.75, True, Form.ONE_RTT, frames=[(0, 0, 1000)], connection=1),
    Row(6.5, True, Form.ONE_RTT, frames=[(0, 1000, 1_000_000)], connection=1),
)


def test_times_of_both_visits() -> None:
    assert visit_times(columns(*FIRST, *SECOND, connections=(NOBODY, RESUMED))) == {
        "first_visit_first_byte": 1.5, "first_visit_to_100_kb": 3.0, "second_visit_first_byte": 0.75,
        "second_visit_to_100_kb": 1.5, "second_visit_to_1_mb": 1.5,
    }  # fmt: skip


@pytest.mark.parametrize("connections", [(NOBODY, NOBODY), (RESUMED, NOBODY)])
def test_without_a_second_visit_there_are_no_times(connections: tuple[Connection, ...]) -> None:
    assert visit_times(columns(*FIRST, *SECOND, connections=connections)) == {}
    assert visit_times(columns()) == {}


def test_a_connection_that_is_not_resumed_is_no_visit() -> None:
    failed = (Row(4.5, False, Form.INITIAL, connection=2),)
    times = visit_times(columns(*FIRST, *failed, *SECOND, connections=(NOBODY, RESUMED, NOBODY)))
    assert times["second_visit_first_byte"] == 0.75


def test_all_times_are_metrics() -> None:
    names = {f"{visit}_{mark}" for visit in ("first_visit", "second_visit") for mark in MARKS}
    assert names <= {metric.name for metric in METRICS}
