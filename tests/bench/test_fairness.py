"""The second opinion on shares: rows as tshark prints them."""

import pytest

from bench.fairness import BAR, Comparison, arrivals, jain, shares

FIRST, SECOND = "193.167.100.100", "193.167.100.101"


def row(time: float, source: str, *quic: str, seq: str = "", size: str = "") -> str:
    return "\t".join((str(time), source, *(quic or ("", "", "")), seq, size)) + "\n"


ROWS = [
    row(1.0, FIRST, "0", "", "ab" * 10),  # a frame at offset 0 has no offset
    row(2.0, SECOND, seq="1", size="10"),
    row(3.0, FIRST, "0,4", "10,0", "ab" * 20 + "," + "cd" * 5),
    row(4.0, FIRST, "0", "10", "ab" * 20),  # sent again
    row(5.0, SECOND, seq="6", size="20"),  # five of them for the first time
    row(6.0, SECOND, seq="1", size="10"),
    row(7.0, FIRST, "0", "30", "ab" * 10),
    row(8.0, SECOND, seq="26", size="10"),
    row(8.5, SECOND),
]


def test_new_bytes_of_each_server() -> None:
    assert arrivals(ROWS) == {
        FIRST: [(1.0, 10), (3.0, 25), (7.0, 10)], SECOND: [(2.0, 10), (5.0, 15), (8.0, 10)],
    }  # fmt: skip


def test_shares_while_both_receive() -> None:
    # From 2 s, exclusive, to 7 s: 25 + 10 and 15 bytes.
    assert shares(arrivals(ROWS)) == pytest.approx((0.7, 0.3))
    assert jain((0.7, 0.3)) == pytest.approx(1 / (2 * 0.58))


def test_the_largest_difference_counts() -> None:
    found = Comparison("run", (0.5, 0.5), (0.502, 0.498), 1.0, 0.9)
    assert found.difference == pytest.approx(0.1)
    assert found.difference > BAR
