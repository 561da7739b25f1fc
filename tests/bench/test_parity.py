"""The campaign that compares QUIC with TCP: its cases and pairs exist, and it ends."""

from __future__ import annotations

from bench.parity import LINKS, PAGES, SERVERS, campaign, in_slices
from paper.measure import planned
from quicsat.cli.exit_status import ExitStatus
from quicsat.model.implementation import Protocol


def test_all_servers_links_and_sizes_have_the_same_runs() -> None:
    runs = planned(campaign("all", [*LINKS], SERVERS, 2), "")
    cases = {run.test_case.name for run in runs}
    assert len(cases) == len(LINKS) * (len(PAGES) + 1)
    assert len(runs) == len(cases) * (len(SERVERS) + 1) * 2
    over_tcp = [run for run in runs if run.protocol is Protocol.TCP]
    assert {(run.server.name, run.client.name) for run in over_tcp} == {("nginx-tcp", "curl")}
    assert len(over_tcp) == len(cases) * 2
    assert len({(run.test_case.name, run.repetition, run.seed) for run in runs}) == len(cases) * 2


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
