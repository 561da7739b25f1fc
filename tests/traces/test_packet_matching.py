"""What became of each packet between the two traces, and how sure the clocks are."""

import numpy as np
import pytest

from quicsat.traces.clock_offset import ClockOffset, clock_offset
from quicsat.traces.packet_matching import PacketMatches, match_packets
from tests.quic_builder import EPOCH, datagram_columns


def counts(matches: PacketMatches) -> tuple[int, int, int]:
    return matches.judged, int(matches.lost.sum()), matches.unmatched


def clock(forward: PacketMatches, back: PacketMatches) -> ClockOffset:
    return clock_offset(forward.delay, back.delay)


def stream_of(count: int, lost: set[int], delay: float, end: float) -> tuple[PacketMatches, PacketMatches]:
    """A packet per second from the server, and a last sign of life at ``end`` in the client's trace."""
    sent = [(float(n), True, n) for n in range(count)]
    arrived = [(time + delay, True, mark) for time, _, mark in sent if mark not in lost and time + delay <= end]
    client = datagram_columns([*arrived, (end, False, 999)])
    server = datagram_columns(sent)
    return match_packets(server, client, forward=True), match_packets(client, server, forward=False)


def test_packets_in_flight_at_the_end_are_neither_sent_nor_lost() -> None:
    forward, back = stream_of(10, {3, 5}, delay=2.5, end=9.5)
    assert (*counts(forward), forward.loss) == (8, 2, 0, 0.25)  # the last two would have come at 10.5 and 11.5
    assert back.loss is None  # the client's only packet was under way


def test_loss_at_the_end_counts_if_it_had_time_to_arrive() -> None:
    forward, _ = stream_of(10, {8, 9}, delay=0.5, end=20.0)
    assert counts(forward) == (10, 2, 0)


def test_nothing_arrived() -> None:
    forward, _ = stream_of(10, set(range(10)), delay=0.5, end=8.0)
    assert (*counts(forward), forward.loss) == (4, 4, 0, 1.0)  # those of the last 5 s may be under way
    assert match_packets(datagram_columns([(0, True, 1)]), datagram_columns([]), forward=True).loss is None


def test_clocks_that_differ_do_not_matter() -> None:
    sent = datagram_columns([(float(n), True, n) for n in range(10)])
    arrived = datagram_columns([(n + 0.25, True, n) for n in range(10) if n != 4], epoch=EPOCH - 3600)
    assert counts(match_packets(sent, arrived, forward=True)) == (10, 1, 0)


def test_strangers_are_packets_that_nobody_sent() -> None:
    sent = datagram_columns([(0, True, 1), (1, True, 2)])
    arrived = datagram_columns([(0.1, True, 1), (1.1, True, 7)])
    assert counts(match_packets(sent, arrived, forward=True)) == (2, 1, 1)


def test_equal_packets_are_matched_in_order() -> None:
    sent = datagram_columns([(0, True, 7), (1, True, 7), (2, True, 8), (3, True, 7)])
    arrived = datagram_columns([(0.5, True, 7), (1.5, True, 7), (2.5, True, 8), (3.5, True, 7)])
    found = match_packets(sent, arrived, forward=True)
    assert found.arrived.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(found.delay, 0.5)


def traces(ahead: float, forward: float, back: float) -> tuple[PacketMatches, PacketMatches]:
    """Packets that take so long; the server's clock is ahead."""
    times = [float(n) for n in range(5)]
    jitter = [0.0, 0.02, 0.01, 0.03, 0.0]
    at_client = [(time, False, n) for n, time in enumerate(times)]
    at_client += [
        (time + forward + late, True, 10 + n) for n, (time, late) in enumerate(zip(times, jitter, strict=True))
    ]
    at_server = [(time + back + ahead, False, n) for n, time in enumerate(times)]
    at_server += [(time + ahead, True, 10 + n) for n, time in enumerate(times)]
    client, server = datagram_columns(at_client), datagram_columns(at_server)
    return match_packets(server, client, forward=True), match_packets(client, server, forward=False)


def test_clocks_are_brought_together() -> None:
    known = clock(*traces(0.123, 0.3, 0.3))
    assert known.offset == pytest.approx(0.123)
    assert known.uncertainty == pytest.approx(0.3)


def test_half_a_round_trip_is_uncertain() -> None:
    known = clock(*traces(-5.0, 0.4, 0.2))
    assert known.offset == pytest.approx(-5.1)
    assert known.uncertainty == pytest.approx(0.3)
    assert abs(known.offset + 5.0) <= known.uncertainty


def test_without_a_packet_both_ways_nothing_is_known_of_the_clocks() -> None:
    forward, _ = traces(0, 1, 1)
    nothing = match_packets(datagram_columns([]), datagram_columns([]), forward=False)
    assert clock(forward, nothing).uncertainty == float("inf")
