"""Drawings of the plots that were found: what every caption says besides its own words."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.model.results import ResultSet
from quicsat.plots.discovery import draw, plots, with_clock
from quicsat.plots.drawn_before import FILE_NAME
from quicsat.plots.render import is_figure
from quicsat.report.plot_request import Gallery
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


# ---- files that are there already -----------------------------------------------------------

FORMS = ("svg", "png", "pdf", "pgf")


def drawn(place: Path, *values: float) -> Gallery:
    request = plot_request(result_set(runs(*values)), plots=("heatmap",), formats=FORMS)
    return draw(replace(request, target=place))


def test_earlier_figures_are_replaced(tmp_path: Path) -> None:
    """Also those that were copied without the record of what was drawn, and empty files."""
    files = drawn(tmp_path / "a", 5e6, 6e6).files
    assert {file.suffix for file in files} == {f".{form}" for form in FORMS}
    assert all(is_figure(file) for file in files)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (tmp_path / "b" / FILE_NAME).unlink()
    (tmp_path / "b" / files[0].name).write_bytes(b"")
    found = drawn(tmp_path / "b", 1e6, 2e6)
    assert found.refused == ()
    assert [file.name for file in found.files] == [file.name for file in files]
    assert all((tmp_path / "b" / file.name).read_bytes() != file.read_bytes() for file in files)


@pytest.mark.parametrize("form", FORMS)
def test_what_quicsat_has_not_drawn_is_not_replaced(form: str, tmp_path: Path) -> None:
    [name] = (file.name for file in drawn(tmp_path / "a", 5e6).files if file.suffix == f".{form}")
    place = tmp_path / "b"
    place.mkdir()
    (place / name).write_bytes(b"%% my own figure")
    found = drawn(place, 5e6)
    assert found.files == ()
    assert found.refused == (f"{place / name} exists, and is no figure of quicsat. Choose another directory.",)
    assert (place / name).read_bytes() == b"%% my own figure"


def test_images_of_a_pgf_file_are_not_replaced_either(tmp_path: Path) -> None:
    [pgf] = (file for file in drawn(tmp_path, 5e6).files if file.suffix == ".pgf")
    image = pgf.with_name(f"{pgf.stem}-img0.png")
    image.write_bytes(b"of the PGF file")
    assert drawn(tmp_path, 7e6).refused == ()
    image.write_bytes(b"mine")
    pgf.unlink()
    assert str(image) in drawn(tmp_path, 8e6).refused[0]
    assert image.read_bytes() == b"mine"
