"""What an observer reads from the spin bit, of made-up packets and of real endpoints over a link with a queue."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from quicsat.model.emulated_link import unknown_link
from quicsat.model.implementation import Protocol
from quicsat.traces.columns import Form
from quicsat.traces.run_traces import check_traces, read_run
from quicsat.traces.series import Packets, Samples, Series
from quicsat.traces.spin_bit import spin_periods, spin_round_trips
from tests.quic_builder import Row, columns
from tests.series_builder import Transfer, series
from tests.simulated import Link, transfer


def row(time: float, spin: int, *, from_server: bool = True, path: str = "a") -> Row:
    return Row(time, from_server, path=path, spin=spin)


def test_periods_are_those_between_changes_of_the_servers_bit() -> None:
    rows = [
        Row(0.0, True, form=Form.HANDSHAKE, path="a"), row(0.1, 0), row(0.2, 0), row(0.3, 1),
        row(0.4, 0, from_server=False), row(0.5, 1), row(0.6, 0, path="b"), row(0.7, 0), row(0.8, 0), row(1.3, 1),
    ]  # fmt: skip
    trace = columns(*rows)
    found = spin_periods(trace, trace.time)
    assert found.time.tolist() == [0.7, 1.3]
    assert found.value.tolist() == pytest.approx([0.4, 0.6])
    assert len(spin_periods(columns(), np.zeros(0))) == 0


def with_periods(made: Series, value: float, count: int) -> Series:
    return replace(made, spin=Samples.in_order([(1 + value * number, value) for number in range(1, count + 1)]))


@pytest.mark.parametrize(
    ("period", "count", "spins"), [(0.61, 3, True), (0.61, 2, False), (0.31, 3, True), (0.29, 100, False)]
)
def test_few_periods_and_random_bits_do_not_spin(period: float, count: int, spins: bool) -> None:
    """The path's round trip takes 0.6 s."""
    found = spin_round_trips(with_periods(series(), period, count))
    assert (found is not None) == spins
    if found is not None:
        assert found.path.tolist() == pytest.approx([0.6] * count)


def test_the_path_has_the_queues_of_both_directions() -> None:
    forward = Packets.of(sent=[0, 1, 2], arrived=[0.1, np.nan, 2.3], lost=[False, True, False], number=[0, 1, 2],
                         size=[9] * 3, connection=[0] * 3)  # fmt: skip
    back = Packets.of(sent=[0, 2], arrived=[0.1, 2.3], lost=[False] * 2, number=[0, 1], size=[9] * 2,
                      connection=[0] * 2)  # fmt: skip
    made = replace(series(), forward=forward, back=back, spin=Samples.of(time=[0.5, 1.0, 1.5], value=[0.5] * 3))
    found = spin_round_trips(made)
    assert found.path.tolist() == pytest.approx([0.1 + 0.11, 0.15 + 0.165, 0.2 + 0.22])
    assert spin_round_trips(replace(made, back=Packets.of())) is None


def test_without_answers_nothing_spins() -> None:
    assert spin_round_trips(replace(series(Transfer()), spin=Samples.of())) is None


def test_aioquic_spins_with_the_round_trips_of_the_path(tmp_path: Path) -> None:
    """A queue of up to 48 ms is in both."""
    transfer([2_000_000], Link(delay=0.05, rate=10e6, queue=50)).write(tmp_path)
    found = spin_round_trips(
        read_run(tmp_path, Protocol.HQ, unknown_link(), check_traces(tmp_path, Protocol.HQ)).series()
    )
    assert len(found.path) > 10
    assert float(np.ptp(found.path)) > 0.03
    late = found.observed.value - found.path
    assert np.median(np.abs(late) / found.path) < 0.02
    assert late.min() > -0.005
