"""The campaign that compares QUIC with TCP: its cases and pairs exist, and it ends."""

from pathlib import Path

import pytest

from bench.parity import COSTS, LARGE, PAGES, SMALL, by_server, campaign, in_slices, left
from quicsat.cli.exit_status import ExitStatus
from quicsat.model.units import seconds
from tests.parity_builder import campaign as built
from tests.parity_builder import over, over_tcp


def test_what_is_left_has_a_cost(tmp_path: Path) -> None:
    table = left([campaign(link, ["quic-go"], 1) for link in ("geo", "leo")], tmp_path)
    cost = 2 * (COSTS[LARGE] + len(PAGES) * COSTS[SMALL])
    assert table.rows == (
        ("geo", 12, 12, seconds(cost)), ("leo", 12, 12, seconds(cost)), ("all", 24, 24, seconds(2 * cost))
    )  # fmt: skip


def test_a_number_per_server_and_link() -> None:
    near = built([*over_tcp(4.0, 4.0), *over("a", "c", 2.0, 4.0), *over("b", "c", 8.0, 8.0)])
    far = built([*over_tcp(1.0, 1.0), *over("a", "c", 2.0, None), *over("b", "c", 2.0, 2.0)])
    table = by_server({"near": near, "far": far})
    column = {each.name: place for place, each in enumerate(table.columns)}
    rows = {row[0]: row for row in table.rows}
    assert [*rows] == ["a", "b"]
    assert [rows["a"][column[name]] for name in ("near", "far", "all")] == pytest.approx([0.5**0.5, 2.0, 2**0.25])
    assert [rows["b"][column[name]] for name in ("near", "far", "all", "n")] == pytest.approx([2.0, 2.0, 2.0, 2])
    assert (rows["a"][column["n"]], rows["a"][column["failed"]]) == (1, 2)


def slices(*ends: tuple[int, int]) -> tuple[int, int]:
    """The exit status, and how many slices it took: runs left and status after each."""
    left, status, taken = [10], [0], [0]

    def next_slice() -> int:
        left[0], status[0] = ends[taken[0]]
        taken[0] += 1
        return status[0]

    return in_slices(lambda: left[0], next_slice), taken[0]


def test_slices_follow_until_nothing_is_left_or_nothing_moves() -> None:
    up = ExitStatus.TIME_UP
    assert slices((6, up), (2, up), (0, ExitStatus.SUCCESS)) == (ExitStatus.SUCCESS, 3)
    assert slices((6, up), (6, up)) == (up, 2)
    assert slices((9, ExitStatus.LOCKED)) == (ExitStatus.LOCKED, 1)
