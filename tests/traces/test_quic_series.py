"""Series of real transfers over links played in memory: what was lost and when is known exactly."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from quicsat.model.emulated_link import Direction, EmulatedLink
from quicsat.model.implementation import Protocol
from quicsat.model.real_link import RealDirection, RealLink
from quicsat.traces.quic_series import QuicTracePair, series
from quicsat.traces.run_traces import RunTraces, check_traces, read_run
from tests.simulated import Link, transfer

DELAY = 0.05


def read(directory: Path, link: Link, *, real: bool = False) -> RunTraces:
    """The run over the link, told to be an emulated or a real one."""
    emulated = EmulatedLink.symmetric("simple-p2p", Direction(link.delay, link.rate, link.queue))
    known = (
        RealLink("here", "there", RealDirection(link.rate), RealDirection(link.rate), 2 * link.delay)
        if real
        else emulated
    )
    return read_run(directory, Protocol.HQ, known, check_traces(directory, Protocol.HQ))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunTraces, Link]:
    """300 kB with losses over a link of two hosts; the server's clock is 0.25 s ahead."""
    link = Link(delay=DELAY, loss=0.03)
    directory = tmp_path_factory.mktemp("run")
    transfer([300_000], link, seed=5).write(directory, offset=0.25)
    return read(directory, link, real=True), link


def test_losses_are_those_of_the_link(run: tuple[RunTraces, Link]) -> None:
    found, link = run[0].series(), run[1]
    assert link.lost[1] > 2
    assert int(found.forward.lost.sum()) == pytest.approx(link.lost[1], abs=1)  # the last may be under way at the end
    assert len(found.forward) == link.sent[1]
    assert (found.forward.lost <= np.isnan(found.forward.arrived)).all()


def test_clocks_and_delays(run: tuple[RunTraces, Link]) -> None:
    found = run[0].series()
    assert found.clock.offset == pytest.approx(0.25, abs=0.001)
    assert found.clock.uncertainty == pytest.approx(DELAY, abs=0.001)
    assert float(np.nanmin(found.forward.delay)) == pytest.approx(DELAY, abs=0.001)
    assert float(found.rtt.value.min()) == pytest.approx(2 * DELAY, abs=0.002)
    assert float(found.back.sent.min()) == 0


def test_a_standing_queue_does_not_shift_the_one_clock_of_an_emulated_link(tmp_path: Path) -> None:
    """10 ms of standing queue forward stay in the forward delay; both traces are by the simulator's clock."""
    queue = 0.010
    transfer([100_000], Link(delay=DELAY, standing_queue=queue)).write(tmp_path)
    emulated, real = (read(tmp_path, Link(delay=DELAY), real=real).series() for real in (False, True))
    assert (emulated.clock.offset, emulated.clock.uncertainty) == (0.0, 0.0)
    assert float(np.nanmin(emulated.forward.delay)) == pytest.approx(DELAY + queue, abs=0.0005)
    assert float(np.nanmin(emulated.back.delay)) == pytest.approx(DELAY, abs=0.0005)
    assert real.clock.offset == pytest.approx(-queue / 2, abs=0.0005)  # of two clocks nobody can tell
    assert abs(real.clock.offset) < real.clock.uncertainty


def test_data(run: tuple[RunTraces, Link]) -> None:
    found = run[0].series()
    assert int(found.sent.new.sum()) == int(found.arrived.new.sum()) == 300_000
    assert found.sent.retransmission.sum() > 0
    assert (found.in_flight.value >= 0).all()
    assert (
        found.requests.sent[0] < found.requests.arrived[0] < found.requests.first_byte[0] < found.requests.last_byte[0]
    )


def test_packet_numbers_that_do_not_begin_at_0(run: tuple[RunTraces, Link]) -> None:
    trace_pair = run[0].trace_pair
    assert isinstance(trace_pair, QuicTracePair)
    far = 3_000_000_000
    server, ranges = trace_pair.server, trace_pair.server.ack_ranges
    back = ~server.from_server[np.repeat(server.acks.packet, server.acks.ranges)]
    moved = replace(
        server,
        number=np.where(server.from_server & (server.number >= 0), server.number + far, server.number),
        ack_ranges=replace(ranges, smallest=ranges.smallest + far * back, largest=ranges.largest + far * back),
    )
    found, usual = series(replace(trace_pair, server=moved), Protocol.HQ), series(trace_pair, Protocol.HQ)
    np.testing.assert_allclose(found.rtt.value, usual.rtt.value)
    np.testing.assert_allclose(found.in_flight.value, usual.in_flight.value)


@pytest.mark.parametrize("loss", [0.01, 0.05])
def test_the_loss_of_a_link_is_recovered(tmp_path: Path, loss: float) -> None:
    link = Link(delay=DELAY, loss=loss)
    transfer([1_000_000], link, seed=3).write(tmp_path)
    trace_pair = read(tmp_path, link).trace_pair
    assert trace_pair.forward.loss == pytest.approx(link.lost[1] / link.sent[1], abs=0.002)
