"""Times of two visits, of which the second resumes the session of the first."""

from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.analysis.functional_tests.resumption import over_tcp
from quicsat.analysis.metrics import METRICS
from quicsat.analysis.visits import MARKS, second_visit, visit_times
from quicsat.model.outcomes import ErrorCode
from quicsat.traces.columns import Connection, Form
from quicsat.traces.tcp import TcpTrace
from tests.early_data_builder import two_visits
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


@pytest.mark.parametrize(
    ("accepted", "fast_open", "trips"), [(True, None, 2), (True, True, 1), (True, False, 2), (False, None, 3)]
)
def test_times_of_visits_over_tcp(tmp_path: Path, accepted: bool, fast_open: bool | None, trips: int) -> None:
    client = two_visits(tmp_path, accepted=accepted, fast_open=fast_open)
    assert second_visit(client) == 1
    assert over_tcp(client) is None
    times = visit_times(client)
    assert times["second_visit_first_byte"] == pytest.approx(0.2 * trips, abs=0.02)
    assert times["first_visit_first_byte"] == pytest.approx(1.0, abs=0.02)


def test_what_is_no_second_visit_over_tcp(tmp_path: Path) -> None:
    client = two_visits(tmp_path)
    again = replace(client, handshakes=(client.handshakes[0],) * 2)
    assert (second_visit(again), visit_times(again)) == (None, {})
    faults: list[tuple[TcpTrace, ErrorCode]] = [
        (again, ErrorCode.SESSION_NOT_RESUMED),
        (replace(client, http2=None), ErrorCode.SESSION_NOT_RESUMED),
        (replace(client, handshakes=client.handshakes[:1]), ErrorCode.HANDSHAKE_COUNT),
        (replace(client, handshakes=(Connection(), Connection())), ErrorCode.KEY_LOG_MISSING),
    ]
    for trace, code in faults:
        verdict = over_tcp(trace)
        assert verdict.code is code


def test_all_times_are_metrics() -> None:
    names = {f"{visit}_{mark}" for visit in ("first_visit", "second_visit") for mark in MARKS}
    assert names <= {metric.name for metric in METRICS}
