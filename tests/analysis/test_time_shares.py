"""Shares of a transfer's time against what real aioquic endpoints know of themselves, over a link that is played."""

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quicsat.analysis.time_shares import (
    LinkConditions,
    Stretches,
    _between,
    _Events,
    _gap_reasons,
    _recoveries,
    _slow_start_end,
    time_shares,
)
from quicsat.model.emulated_link import unknown_link
from quicsat.model.implementation import Protocol
from quicsat.model.time_shares import TimeShare
from quicsat.traces.quic_series import QuicTracePair
from quicsat.traces.run_traces import check_traces, read_run
from quicsat.traces.series import Packets, Samples, Series
from tests.series_builder import series as any_series
from tests.simulated import Link, ServerState, Simulated, transfer

TRIP = 0.6
TOLERANCE = 0.05
"""Of the duration."""


@dataclass(frozen=True)
class Case:
    found: Stretches
    simulated: Simulated
    series: Series

    @property
    def duration(self) -> float:
        return float(self.found.time[-1])

    def seconds(self, *shares: TimeShare) -> float:
        return sum(self.found.seconds[share] for share in shares)

    def idle(self, is_true: Callable[[ServerState], bool]) -> float:
        """Seconds for which something was true of the server while the link was not busy."""
        states = self.simulated.states
        times = np.array([state.time for state in states] + [self.duration])
        busy = [
            (begin, end)
            for begin, end, share in zip(self.found.time, self.found.time[1:], self.found.share, strict=False)
            if share == list(TimeShare).index(TimeShare.FULL_RATE)
        ]
        total = 0.0
        for state, begin, end in zip(states, times, times[1:], strict=False):
            if is_true(state):
                total += end - begin - sum(max(0.0, min(end, b) - max(begin, a)) for a, b in busy)
        return float(total)


def case(place: Path, sizes: list[int], link: Link, **options: Any) -> Case:
    """A transfer with its shares; with ``window_known``, the server tells its congestion window."""
    window_known = options.pop("window_known", False)
    simulated = transfer(sizes, link, **options)
    simulated.write(place)
    traces = read_run(place, Protocol.HQ, unknown_link(), check_traces(place, Protocol.HQ))
    pair = traces.trace_pair
    assert isinstance(pair, QuicTracePair)
    outages = [link.outage] if np.isfinite(link.outage[0]) else []
    conditions = LinkConditions(np.array([-np.inf]), np.array([link.rate]), outages, link.lost[1] == 0, header=0)
    series = traces.series()
    if window_known:
        series = replace(series, cwnd=Samples.in_order([(state.time, state.window) for state in simulated.states]))
    found = time_shares(pair, series, conditions)
    assert found is not None
    result = Case(found, simulated, series)
    check_partition(result)
    return result


def check_partition(found: Case) -> None:
    """Every moment belongs to exactly one share, from the client's first packet to the last new byte."""
    arrived = found.series.arrived
    assert found.found.time[0] == 0.0
    assert found.duration == pytest.approx(float(arrived.time[arrived.new > 0].max()))
    assert (np.diff(found.found.time) > 0).all()
    assert (np.diff(found.found.share) != 0).all()
    assert sum(found.found.seconds.values()) == pytest.approx(found.duration)
    assert found.seconds(TimeShare.UNKNOWN) < 0.05 * found.duration


def near(found: Case, seconds: float) -> object:
    return pytest.approx(seconds, abs=min(TRIP, TOLERANCE * found.duration))


@pytest.mark.parametrize(
    ("small", "large", "blocking", "other"),
    [
        ("max_data", "max_stream_data", TimeShare.CONNECTION_FLOW_CONTROL, TimeShare.STREAM_FLOW_CONTROL),
        ("max_stream_data", "max_data", TimeShare.STREAM_FLOW_CONTROL, TimeShare.CONNECTION_FLOW_CONTROL),
    ],
    ids=["connection", "stream"],
)
def test_flow_control(tmp_path: Path, small: str, large: str, blocking: TimeShare, other: TimeShare) -> None:
    found = case(tmp_path, [2_000_000], Link(), **{small: 65_536, large: 10_000_000}, steady_windows=True)
    connection = blocking is TimeShare.CONNECTION_FLOW_CONTROL
    truth = found.idle(
        lambda state: (state.connection_blocked if connection else state.stream_blocked) and not state.nothing_left
    )
    assert truth > 0.2 * found.duration
    assert found.seconds(blocking) == near(found, truth)
    assert found.seconds(other) == 0


@pytest.mark.parametrize(
    ("distance", "found"),
    [(2.0, [0, 1, 0, 0, 1, 0, 0, 1, 0]), (2.1, [0, 1, 1, 1, 1, 0, 0, 1, 0]), (4.0, [0, 1, 1, 1, 1, 1, 1, 1, 0])],
)
def test_what_lies_between_flags_that_are_near_each_other(distance: float, found: list[int]) -> None:
    edges = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 8.5, 9.0])
    flags = np.array([0, 1, 0, 0, 1, 0, 0, 1, 0], dtype=np.bool_)
    assert _between(edges, flags, np.full(len(flags), distance)).tolist() == [bool(each) for each in found]


def test_an_application_that_pauses(tmp_path: Path) -> None:
    found = case(tmp_path, [600_000], Link(), pause=(100_000, 8.0), max_data=10_000_000, max_stream_data=10_000_000)
    truth = found.idle(lambda state: state.nothing_left and 1.5 < state.time < 8.0)
    assert truth > 4
    assert found.seconds(TimeShare.APPLICATION) == near(found, truth)


def test_an_outage(tmp_path: Path) -> None:
    options = {"max_data": 10_000_000, "max_stream_data": 10_000_000}
    without = case(tmp_path / "without", [2_000_000], Link(), **options)
    found = case(tmp_path / "with", [2_000_000], Link(outage=(2.0, 4.0)), **options)
    assert without.seconds(TimeShare.OUTAGE) == 0
    assert found.seconds(TimeShare.OUTAGE) == near(found, 2.0)
    assert found.seconds(TimeShare.PTO, TimeShare.RECOVERY) > 0


def test_silence_until_a_pto(tmp_path: Path) -> None:
    options = {"max_data": 10_000_000, "max_stream_data": 10_000_000}
    whole = case(tmp_path / "whole", [40_000], Link(), **options)
    last = sum(packet.from_server for packet in whole.simulated.at_server)
    found = case(tmp_path / "cut", [40_000], Link(drops=frozenset(range(last - 12, last + 1))), **options)
    sends = [packet.time for packet in found.simulated.at_server if packet.from_server]
    probe = next(state.time for state in found.simulated.states if state.probes and state.time > sends[last - 1])
    truth = probe - max(time for time in sends if time < probe - 0.01)
    assert truth > TRIP
    assert len(sends) > last
    assert any(state.probes for state in whole.simulated.states)  # before the server knows the round trip
    assert whole.seconds(TimeShare.PTO) == 0
    assert found.seconds(TimeShare.PTO) == near(found, truth)


def test_a_link_at_its_full_rate(tmp_path: Path) -> None:
    link = Link(delay=0.02, rate=2e6, queue=2000)
    found = case(tmp_path, [1_000_000], link, max_data=10_000_000, max_stream_data=10_000_000)
    forward = found.series.forward
    first = float(found.series.requests.arrived[0])
    truth = 8 * forward.size[forward.sent > first].sum() / link.rate
    assert truth > 0.8 * found.duration
    assert found.seconds(TimeShare.FULL_RATE) == near(found, truth)


@pytest.mark.parametrize(
    ("times", "flights", "end"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7], [1, 2, 4, 8, 8, 8, 8, 8], 4),  # three rounds that do not grow
        ([0, 1, 2, 3, 3.2, 6.2], [1, 2, 4, 4, 8, 8], 4),  # silence, and a round of the same height
        ([0, 1, 2, 6], [1, 2, 4, 8], 3),  # silence
        ([0, 1, 2, 5], [1, 2, 4, 8], np.inf),
        ([0, 9, 10], [0, 1, 2], np.inf),
        ([0, 1, 29 * 86_400], [1, 2, 4], 2),
    ],
)
def test_when_bytes_in_flight_no_longer_grow_slow_start_has_ended(
    times: list[float], flights: list[int], end: float
) -> None:
    """In round trips of 10 ms, so that the last case has 8 hours of them: it takes no more memory than the others."""
    trip = 0.01
    made = replace(
        any_series(),
        in_flight=Samples(
            np.array([0, *(each + 0.5 for each in times[1:])]) * trip, np.array(flights, dtype=np.float64)
        ),
        rtt=Samples(np.array([0.0]), np.array([trip])),
    )
    tracemalloc.start()
    found = _slow_start_end(made, Samples(np.zeros(0), np.zeros(0)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == pytest.approx(end * trip)
    assert peak < 100_000


def test_slow_start(tmp_path: Path) -> None:
    found = case(tmp_path, [3_000_000], Link(), max_data=100_000_000, max_stream_data=100_000_000)
    truth = found.idle(lambda state: state.slow_start and not state.nothing_left)
    assert truth > 0.2 * found.duration
    begun = float(found.series.requests.arrived[0])
    assert found.seconds(TimeShare.SLOW_START) == near(found, truth - begun)


def test_a_known_window_tells_it_from_pacing(tmp_path: Path) -> None:
    options = {"max_data": 100_000_000, "max_stream_data": 100_000_000}
    unknown, found = (
        case(tmp_path / str(known), [1_000_000], Link(drops=frozenset({60})), window_known=known, **options)
        for known in (False, True)
    )
    truth = found.idle(lambda state: not state.slow_start and state.in_flight + 1200 > state.window)
    assert truth > 0.4 * found.duration
    limited = TimeShare.CONGESTION_WINDOW, TimeShare.RECOVERY
    assert found.seconds(*limited) == near(found, truth)
    assert abs(found.seconds(*limited) - truth) < abs(unknown.seconds(*limited) - truth)


@pytest.mark.parametrize(
    ("packets", "pause", "share"),
    [
        (10, 0.28, TimeShare.PACING),
        (10, 0.32, TimeShare.UNKNOWN),  # longer than the window takes at its rate
        (11, 0.28, TimeShare.UNKNOWN),  # more than a server that paces sends at once
    ],
)
def test_pauses_between_paced_bursts(packets: int, pause: float, share: TimeShare) -> None:
    """A packet has 1,400 bytes. 28,000 bytes are in flight, and the last burst is worth 0.3 s of a round trip."""
    bursts = np.arange(2.0, 2.0 + 4.5 * pause, pause)
    sent = np.repeat(bursts, packets)
    whole = np.zeros(len(sent), dtype=np.int64)
    forward = Packets(sent, sent + TRIP / 2, whole > 0, np.arange(len(sent)), whole + 1400, whole)
    flight = Samples.in_order([(1.0, 28_000.0)])
    series = replace(
        any_series(), cwnd=Samples.of(), forward=forward, rtt=Samples.in_order([(1.0, TRIP)]), in_flight=flight
    )
    events = _Events(sent, np.array([1.0]), Samples.in_order([(1.5, 1.2)]))
    reasons = _gap_reasons(series, bursts, np.zeros((0, 2)), events)
    assert [list(TimeShare)[reason] for reason in reasons[:-1]] == [share] * 4


def test_handshake_request_and_tail(tmp_path: Path) -> None:
    found = case(tmp_path, [100_000], Link(), max_data=10_000_000, max_stream_data=10_000_000)
    assert found.seconds(TimeShare.HANDSHAKE, TimeShare.REQUEST) == pytest.approx(1.5 * TRIP, abs=0.02)
    assert found.seconds(TimeShare.TAIL) == pytest.approx(TRIP / 2, abs=0.02)


def test_a_request_before_the_end_of_the_handshake(tmp_path: Path) -> None:
    """The client's Finished is lost, and the server drops the request, which it cannot read. Or both are lost."""
    sizes, options = [100_000], {"max_data": 10_000_000, "max_stream_data": 10_000_000}
    one = case(tmp_path / "one", sizes, Link(client_drops=frozenset({4})), **options)
    both = case(tmp_path / "both", sizes, Link(client_drops=frozenset({4, 5})), **options)
    repeated = float(both.series.requests.arrived[0])
    assert float(one.series.requests.arrived[0]) < repeated - 1
    for found in (one, both):
        assert found.seconds(TimeShare.HANDSHAKE) == pytest.approx(1.5 * TRIP + 0.2, abs=0.02)  # with aioquic's PTO
        assert found.seconds(TimeShare.HANDSHAKE, TimeShare.REQUEST) == pytest.approx(repeated, abs=0.02)
        assert found.seconds(TimeShare.APPLICATION, TimeShare.PTO) == 0


def test_losses_are_recovered(tmp_path: Path) -> None:
    link = Link(loss=0.02, queue=10_000)
    found = case(tmp_path, [2_000_000], link, max_data=10_000_000, max_stream_data=10_000_000)
    none = case(tmp_path / "none", [2_000_000], Link(queue=10_000), max_data=10_000_000, max_stream_data=10_000_000)
    assert none.seconds(TimeShare.RECOVERY) < 0.02 * none.duration
    assert found.seconds(TimeShare.RECOVERY, TimeShare.CONGESTION_WINDOW) > 0.5 * found.duration


def test_losses_of_packets_that_were_sent_before_a_recovery_do_not_begin_another() -> None:
    """A packet that is sent at 1.1 s is acknowledged at 1.7 s; the last loss is of one that was sent later."""
    series = replace(any_series(), rtt=Samples.in_order([(0.9 + n, TRIP) for n in (0.0, 0.8, 1.6, 2.4)]))
    lost = Samples.in_order([(1.0, 0.4), (1.2, 0.6), (1.75, 0.95), (2.0, 1.4)])
    assert _recoveries(series, lost) == pytest.approx(np.array([[1.0, 1.7], [2.0, 3.3]]))


def test_several_requests_share_one_partition(tmp_path: Path) -> None:
    case(tmp_path, [200_000, 300_000, 100], Link(), max_data=10_000_000, max_stream_data=10_000_000)
