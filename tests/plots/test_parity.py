"""The figure of times over QUIC and TCP: its rows, and what is drawn of them."""

import numpy as np
import pytest

from quicsat.plots.base import NothingToDrawError
from quicsat.plots.parity import PLOT
from tests.parity_builder import campaign, over, over_tcp
from tests.plots.drawn import axes, panel, plot_request

RUNS = [*over_tcp(4.0, 4.0), *over("slow", "x", 8.0, 8.0), *over("fast", "x", 1.0, 4.0), *over("fast", "y", 2.0, 2.0)]


def test_rows() -> None:
    request = plot_request(campaign(RUNS))
    [drawing] = PLOT.table(request)
    shown = panel(PLOT, request)
    assert shown.facts["names"] == ["slow", "fast"]
    middle, ends, cells = shown.rows[1]
    # pairs 0.25 and 0.5, and 1 and 0.5, of all data and of the first 2 MB
    assert middle == pytest.approx(0.5)
    assert ends == pytest.approx((0.125**0.5, 0.5**0.5))
    assert cells == pytest.approx([0.5] * 4)
    assert "n = 2 repetitions" in drawing.caption


def test_drawn() -> None:
    ax = axes(PLOT, panel(PLOT, plot_request(campaign(RUNS))))
    assert ax.get_xscale() == "log"
    assert ax.lines[0].get_xdata() == [1, 1]
    assert [np.shape(marks.get_offsets()) for marks in ax.collections] == [(2, 2), (4, 2)]


def test_a_server_that_never_succeeds_has_a_row_without_marks() -> None:
    request = plot_request(campaign([*RUNS, *over("broken", "x", None, None)]))
    [drawing] = PLOT.table(request)
    shown = panel(PLOT, request)
    assert shown.facts["names"] == ["broken", "slow", "fast"]
    assert shown.rows[0] == (None, None, [])
    assert "n = 0 to 2 repetitions" in drawing.caption
    assert len(axes(PLOT, shown).collections) == 2


def test_without_tcp_there_is_nothing_to_draw() -> None:
    with pytest.raises(NothingToDrawError, match="over TCP and over QUIC"):
        PLOT.table(plot_request(campaign(over("quic-go", "quic-go", 2.0))))
