"""Drawings of the plots that were found: what every caption says besides its own words."""

from dataclasses import replace
from pathlib import Path

from quicsat.model.results import ResultSet
from quicsat.plots.discovery import draw, plots, with_clock
from tests.plots.drawn import plot_request
from tests.results_builder import result_set, runs, virtual


def captions(*results: ResultSet) -> list[str]:
    """Of the heat map."""
    request = plot_request(*results)
    return [with_clock(drawing, request).caption for drawing in plots()["heatmap"].table(request)]


def test_a_caption_tells_virtual_time_and_no_other() -> None:
    results = result_set(runs(5e6, 6e6))
    [real_time], [in_virtual_time] = captions(results), captions(virtual(results))
    assert "real time" not in real_time
    assert in_virtual_time == f"{real_time} The runs used virtual time (3 µs per system call)."


def test_captions_of_figures_that_are_drawn_tell_it(tmp_path: Path) -> None:
    request = plot_request(virtual(result_set(runs(5e6, 6e6)), cpu_cost=0.0), plots=("heatmap",), formats=("svg",))
    gallery = draw(replace(request, target=tmp_path))
    assert gallery.files
    assert all("The runs used virtual time (computing takes no time)." in caption for _, _, caption in gallery.captions)
