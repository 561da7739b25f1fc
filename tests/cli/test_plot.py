"""``./run.py plot`` passes on what was selected, and prints the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from quicsat.cli.main import main
from tests.cli.conftest import ROOT, Draws


def test_plot_hands_over_all_that_was_asked(places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    draws = Draws()
    command = ["plot", places[0], "-p", "offset", "cdf", "--format", "png", "svg", "-t", "SAT", "--pair",
               "picoquic_quiche", "--own-scale", "--own-colours", "--without-failed", "--overlay"]  # fmt: skip
    assert main(ROOT, command, draws) == 0
    [plot_request] = draws.requests
    assert plot_request.target == Path(places[0]) / "plots"
    assert plot_request.plots == ("offset", "cdf")
    assert plot_request.formats == ("png", "svg")
    assert plot_request.pairs == (("picoquic", "quiche"),)
    assert plot_request.own_colours
    assert (plot_request.own_scale, plot_request.without_failed, plot_request.overlaid, plot_request.ideal) == (
        True,
        True,
        True,
        True,
    )
    assert [campaign.label for campaign in plot_request.campaigns] == ["one"]
    told = capsys.readouterr()
    assert told.out.strip().endswith("a.svg")
    assert "not drawn: strip-plot: nothing." in told.err
    assert "an old name." in told.err


def test_a_directory_for_figures_that_cannot_be_written(places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    draws = Draws()
    assert main(ROOT, ["plot", places[0], "-o", "/proc/figures"], draws) == 2
    assert capsys.readouterr().err.startswith("/proc/figures: no file can be written there: ")
    assert draws.requests == []
