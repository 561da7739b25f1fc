"""Goodput by release: lines, places and steps."""

import pytest

from quicsat.model.implementation import Role
from quicsat.plots.base import NothingToDrawError
from quicsat.plots.releases import PLOT
from tests.plots.drawn import axes, panel, plot_request
from tests.results_builder import result_set, runs
from tests.statistics.test_releases import RELEASES, history

SLOW = {(release, Role.SERVER): 0.9 for release in RELEASES[2:]}


def test_a_line_for_each_role_and_partner_with_the_step() -> None:
    shown = panel(PLOT, plot_request(history(SLOW)))
    assert shown.facts["releases"] == RELEASES
    assert [(role, partner) for role, partner, _, _ in shown.rows] == [
        (Role.SERVER, "picoquic"), (Role.CLIENT, "picoquic"),
    ]  # fmt: skip
    server, client = shown.rows
    assert [place for place, *_ in server[2]] == [0, 1, 2, 3]
    assert all(low <= mean <= high for _, mean, low, high in server[2])
    assert [at for at, _, _ in server[3]] == [2]
    assert server[3][0][1:] == (server[2][1][1], server[2][2][1])
    assert client[3] == []


def test_drawn() -> None:
    ax = axes(PLOT, panel(PLOT, plot_request(history(SLOW))))
    assert [text.get_text() for text in ax.get_xticklabels()] == [*RELEASES]
    assert ax.get_legend_handles_labels()[1] == ["server, with picoquic", "client, with picoquic"]
    assert len(ax.texts) == 1


def test_without_releases_there_is_nothing_to_draw() -> None:
    with pytest.raises(NothingToDrawError, match="two releases"):
        PLOT.table(plot_request(result_set(runs(5e6))))
