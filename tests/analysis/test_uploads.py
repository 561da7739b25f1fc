"""Times of uploads, from the traces of both sides."""

from dataclasses import replace

import pytest

from quicsat.analysis.metrics import METRICS
from quicsat.analysis.uploads import upload_values
from quicsat.traces.columns import Form
from tests.quic_builder import Row, columns

CLIENT = columns(Row(1.0, False, Form.INITIAL), Row(2.0, True, Form.INITIAL))
SERVER = columns(
    Row(1.3, False, Form.INITIAL),
    Row(2.0, True, Form.ONE_RTT, frames=[(1, 0, 20)]),  # a request
    Row(3.0, False, Form.ONE_RTT, frames=[(1, 0, 900)]),
    Row(4.5, False, Form.ONE_RTT, frames=[(1, 900, 100), (2, 0, 50)]),
    Row(5.0, False, Form.ONE_RTT, frames=[(1, 0, 900)]),  # sent again
    Row(6.0, True, Form.ONE_RTT, frames=[(0, 0, 500)]),
)


def test_an_upload_ends_with_its_last_new_byte() -> None:
    values = upload_values(CLIENT, SERVER, (600, 400))
    assert values == pytest.approx({"upload_time": 3.5, "upload_goodput": 8000 / 3.5})
    later = replace(CLIENT, epoch=CLIENT.epoch - 2)
    assert upload_values(later, SERVER, (1000,))["upload_time"] == pytest.approx(5.5)


def test_files_that_no_stream_carried_have_no_time() -> None:
    assert upload_values(CLIENT, SERVER, (2000,)) == {}
    assert upload_values(CLIENT, SERVER, ()) == {}
    assert upload_values(columns(), SERVER, (1000,)) == {}


def test_all_values_are_metrics() -> None:
    assert {*upload_values(CLIENT, SERVER, (1000,))} <= {metric.name for metric in METRICS}
