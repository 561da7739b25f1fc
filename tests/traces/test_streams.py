"""Ranges of bytes are counted once, in whatever order and overlap they come."""

from hypothesis import given
from hypothesis import strategies as st

from quicsat.traces.streams import ByteRanges, finished_connections, new_bytes, response_frames, responses
from tests.quic_builder import Row, columns

RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=20)


@given(RANGES)
def test_byte_ranges_are_a_set(ranges: list[tuple[int, int]]) -> None:
    have, seen = ByteRanges(), set[int]()
    for start, length in ranges:
        piece = set(range(start, start + length))
        assert have.add(start, start + length) == len(piece - seen)
        seen |= piece
    assert have.size == len(seen)
    assert all(end < start for end, start in zip(have.ends, have.starts[1:], strict=False))


def test_new_bytes_per_stream_and_direction() -> None:
    trace = columns(
        Row(0, False, frames=[(0, 0, 10)]),
        Row(1, True, frames=[(0, 0, 100), (4, 0, 100)]),
        Row(2, True, frames=[(0, 50, 100)]),
        Row(3, True, frames=[(0, 0, 150), (3, 0, 5)]),
    )
    assert new_bytes(trace).tolist() == [10, 100, 100, 50, 0, 5]
    assert response_frames(trace).tolist() == [False, True, True, True, True, False]


def test_responses_with_a_hole_and_an_empty_stream() -> None:
    trace = columns(Row(0, True, frames=[(0, 0, 10), (0, 20, 10), (4, 0, 0)]))
    assert responses(trace) == {(0, 0): (20, 30, None), (0, 4): (0, 0, None)}


def test_streams_of_two_connections_are_told_apart() -> None:
    trace = columns(
        Row(0, True, frames=[(0, 0, 100)], connection=0),
        Row(1, True, frames=[(0, 0, 100)], connection=1),
        Row(2, True, frames=[(0, 50, 100)], connection=1),
    )
    assert new_bytes(trace).tolist() == [100, 100, 50]
    assert responses(trace) == {(0, 0): (100, 100, None), (1, 0): (150, 150, None)}


def test_connections_that_got_all_that_they_asked_for() -> None:
    asked = [Row(0, False, frames=[(0, 0, 9)], connection=n) for n in range(4)]
    trace = columns(
        *asked,
        Row(1, True, frames=[(0, 0, 50)], connection=0),
        Row(2, True, frames=[(0, 50, 50)], connection=0, fin=True),
        Row(3, True, frames=[(0, 50, 50)], connection=1, fin=True),  # its first half is missing
        Row(4, True, frames=[(0, 0, 50)], connection=2),  # its end is missing
        Row(5, True, frames=[(3, 0, 50)], connection=4),  # nothing was asked for
    )
    assert finished_connections(trace) == {0}
