"""``./run.py plot`` passes on what was selected, and prints the files."""

from pathlib import Path

import pytest

from quicsat.plots.discovery import draw
from tests.cli.conftest import CommandLine, Draws


def test_plot_hands_over_all_that_was_asked(places: list[str], quicsat: CommandLine) -> None:
    draws = Draws()
    command = ["plot", places[0], "-p", "offset", "cdf", "--format", "png", "svg", "-t", "SAT", "--pair",
               "picoquic_quiche", "--own-scale", "--own-colours", "--without-failed", "--overlay"]  # fmt: skip
    status, out, err = quicsat(*command, draw=draws)
    assert status == 0
    [plot_request] = draws.requests
    assert plot_request.target == Path(places[0]) / "plots"
    assert plot_request.plots == ("offset", "cdf")
    assert plot_request.formats == ("png", "svg")
    assert plot_request.pairs == (("picoquic", "quiche"),)
    assert plot_request.own_colours
    assert plot_request.own_scale and plot_request.without_failed and plot_request.overlaid and plot_request.ideal
    assert [campaign.label for campaign in plot_request.campaigns] == ["one"]
    assert out.strip().endswith("a.svg")
    assert "not drawn: strip-plot: nothing." in err
    assert "an old name." in err


def test_a_directory_for_figures_that_cannot_be_written(places: list[str], quicsat: CommandLine) -> None:
    draws = Draws()
    fault = "/proc/figures: no file can be written there: "
    assert quicsat.refusal("plot", places[0], "-o", "/proc/figures", draw=draws).startswith(fault)
    assert draws.requests == []


@pytest.mark.parametrize("words", [["plot", "-p", "heatmap", "-o"], ["compare", "-t", "SAT", "SATL", "--plot"]])
def test_a_file_that_quicsat_has_not_drawn_stays(
    words: list[str], places: list[str], tmp_path: Path, quicsat: CommandLine
) -> None:
    command, *rest = words
    _, out, _ = quicsat(command, places[0], *rest, tmp_path / "out", draw=draw)
    names = [Path(line) for line in out.splitlines() if line.endswith(".svg")]
    names[0].write_text("<svg/>")
    err = quicsat.err(command, places[0], *rest, tmp_path / "out", draw=draw, status=2)
    assert f"{names[0]} exists, and is no figure of quicsat. Choose another directory." in err
    assert names[0].read_text() == "<svg/>"
