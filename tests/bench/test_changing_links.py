"""Comparison of what a changing link did with what was due."""

import pytest

from bench.changing_links import other_fates, replay
from quicsat.model.emulated_link import Direction, EmulatedLink, Profile
from quicsat.model.units import MBPS

LINK = EmulatedLink.symmetric("simple-p2p", Direction(0.01, 8 * MBPS, 2))
HALVED = Profile("halved", 2.0, (0.0, 1.0), (8 * MBPS, 4 * MBPS), start=0.0)
BITS = 8000


@pytest.mark.parametrize(
    ("passed", "due", "count"),
    [
        ("1101", "1101", 0),
        ("1011", "1101", 0),
        ("0110", "1001", 0),
        ("1001", "1101", 1),
        ("1001", "1110", 1),
        ("0011", "1100", 2),
        ("0101", "1010", 0),
    ],
)
def test_neighbours_that_swap_their_fates_do_not_count(passed: str, due: str, count: int) -> None:
    assert other_fates([each == "1" for each in passed], [each == "1" for each in due]) == count


def test_a_packet_is_sent_with_the_rates_that_hold_meanwhile() -> None:
    """A packet takes 1 ms at first and 2 ms in the second half, and half of each when the rate changes halfway."""
    dues = replay([0.0, 0.5, 0.9995, 1.5, 1.9990], BITS, LINK, HALVED, 0.0)
    leaves = [due.leaves for due in dues if due]
    assert leaves == pytest.approx([0.001, 0.501, 1.001, 1.502, 2.0005])


@pytest.mark.parametrize("early", [0.0, 1e-15, 1e-12])
def test_a_packet_that_comes_at_a_step(early: float) -> None:
    """Sums of floats that fall short of the end of the profile by less than a nanosecond are its beginning."""
    [due] = replay([2.0 - early], BITS, LINK, HALVED, 0.0)
    assert due
    assert due.leaves == pytest.approx(2.001)


def test_a_full_queue_drops() -> None:
    assert [due is None for due in replay([0.0] * 5, BITS, LINK, HALVED, 0.0)] == [False, False, False, True, True]
