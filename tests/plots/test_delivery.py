"""Distributions within runs: the numbers are those of made-up series."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from quicsat.plots import delivery
from quicsat.traces.series import Packets, Samples
from tests.plots.drawn import panels
from tests.plots.requests import with_traces
from tests.series_builder import HEAD, Transfer, series


def test_four_distributions_of_each_pair(tmp_path: Path) -> None:
    [drawing] = delivery.PLOT.table(with_traces(1, tmp_path))
    shown = panels(drawing)
    assert [panel.facts["xlabel"].split(" [")[0] for panel in shown] == [
        "queueing delay", "RTT beyond the shortest one", "rate received", "return bytes per MB"
    ]  # fmt: skip
    assert len({len(panel.rows) for panel in shown}) == 1
    for panel in shown:
        for curve in panel.rows:
            assert (np.diff(curve.x) >= 0).all()
            assert float(curve.y[-1]) == 100


def test_shares_of_round_trips_beyond_the_shortest_one() -> None:
    made = replace(series(), rtt=Samples.of(time=[1, 2, 3, 4], value=[0.9, 0.6, 0.6, 0.75]))
    curve = delivery._shares(delivery._inflations(made))
    assert curve.x.tolist() == pytest.approx([0, 0, 25, 50])
    assert curve.y.tolist() == [25, 50, 75, 100]


def test_return_bytes_are_those_sent_while_each_megabyte_arrived() -> None:
    made = series(Transfer(size=3_500_000, rate=8e6))
    assert delivery._return_bytes(made).tolist() == pytest.approx([1000 * HEAD] * 3, abs=2 * HEAD)
    half = np.flatnonzero(np.arange(len(made.back)) % 2 == 0)
    fewer = Packets(**{name: column[half] for name, column in vars(made.back).items()})
    assert delivery._return_bytes(replace(made, back=fewer)).tolist() == pytest.approx([500 * HEAD] * 3, abs=2 * HEAD)


def test_a_run_without_data_has_no_return_bytes() -> None:
    arrived = series().arrived
    nothing = type(arrived)(**{name: column[:0] for name, column in vars(arrived).items()})
    assert len(delivery._return_bytes(replace(series(), arrived=nothing))) == 0
