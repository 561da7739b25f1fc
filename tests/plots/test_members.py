"""The change of each member from a baseline: which members are shown, in per cent."""

from dataclasses import replace

import numpy as np
import pytest

from quicsat.model.results import ResultSet
from quicsat.plots import members
from quicsat.plots.base import NothingToDrawError
from tests.plots.drawn import axes, plot_request
from tests.results_builder import result_set, runs


def test_a_point_for_each_member_that_both_have() -> None:
    before, after = (result_set(runs(*goodputs)) for goodputs in ((8e6, 8e6, None), (4e6, 8.8e6, 8e6)))
    request = replace(plot_request(after), baseline=before)
    [drawing] = members.PLOT.table(request)
    [[panel]] = drawing.panels
    [row] = panel.rows
    assert row.changes == pytest.approx((-50.0, 10.0))
    assert "n = 2" in drawing.caption
    shown = axes(members.PLOT, panel)
    assert "[%]" in shown.get_xlabel()
    assert np.asarray(shown.lines[1].get_xdata()) == pytest.approx([-50.0, 10.0])
    assert np.asarray(shown.lines[2].get_xdata()) == pytest.approx([-20.0, -20.0])


@pytest.mark.parametrize("baseline", [None, result_set(runs(8e6, server="other"), servers=("other",))])
def test_without_members_in_common_there_is_nothing_to_draw(baseline: ResultSet | None) -> None:
    with pytest.raises(NothingToDrawError):
        members.PLOT.table(replace(plot_request(result_set(runs(8e6))), baseline=baseline))
