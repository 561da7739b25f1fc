"""Measurements of disturbances: what packets wait for each other."""

from __future__ import annotations

import pytest

from bench.disturbances import leaving


def test_packets_that_come_at_once_wait_for_each_other() -> None:
    sent = {1: 10.0, 2: 20.0, 3: 20.0, 4: 20.0, 5: 21.0, 6: 30.0}
    assert leaving(sent, 0.5) == pytest.approx({1: 10.5, 2: 20.5, 3: 21.0, 4: 21.5, 5: 22.0, 6: 30.5})


def test_the_order_of_arrival_counts() -> None:
    assert leaving({2: 1.0, 1: 1.25}, 0.5) == pytest.approx({2: 1.5, 1: 2.0})
