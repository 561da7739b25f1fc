"""Figures that were drawn: which form is shown, under which heading, and which files are none."""

from itertools import product
from pathlib import Path

import pytest

from quicsat.plots.discovery import headings, plots
from quicsat.site import figures


@pytest.fixture
def drawn(tmp_path: Path) -> Path:
    place = tmp_path / "plots"
    place.mkdir()
    names = "heatmap-LOS@0.1pct.svg "
    names += "heatmap-SAT.png heatmap-SAT.svg heatmap-SAT.pdf cdf.png offset-a_b-T.svg only.pdf mine.svg <b>.svg x.html"
    for name in names.split():
        (place / name).write_text("x")
    (place / "empty.svg").touch()
    (place / "link.svg").symlink_to(place / "mine.svg")
    return tmp_path


def test_a_figure_is_shown_as_vectors_and_offered_in_the_forms_that_only_show_something(drawn: Path) -> None:
    found = {figure.stem: figure for figure in figures.find(drawn)}
    assert set(found) == {"heatmap-LOS@0.1pct", "heatmap-SAT", "cdf", "offset-a_b-T", "mine"}
    assert found["heatmap-SAT"].picture == "heatmap-SAT.svg"
    assert [form.suffix for form in found["heatmap-SAT"].forms] == [".png", ".svg"]
    assert found["offset-a_b-T"].words == "Offset a to b T"


def grouped(place: Path) -> dict[str, list[str]]:
    """Names of the figures under each heading."""
    found = figures.grouped(figures.find(place), headings())
    return {title: [figure.stem for figure in many] for title, many in found}


def test_figures_stand_under_what_they_show(drawn: Path) -> None:
    titles = grouped(drawn)
    assert titles == {
        "Pairs and links": ["heatmap-LOS@0.1pct", "heatmap-SAT"],
        "Distributions": ["cdf"],
        "Over time": ["offset-a_b-T"],
        "Others": ["mine"],
    }
    assert list(titles) == ["Pairs and links", "Distributions", "Over time", "Others"]


def test_every_figure_of_quicsat_has_its_heading(tmp_path: Path) -> None:
    place = tmp_path / "plots"
    place.mkdir()
    for name, form in product(plots(), ("", "-SAT")):
        (place / f"{name}{form}.svg").write_text("x")
    wanted: dict[str, list[str]] = {}
    for name, plot in sorted(plots().items()):
        wanted.setdefault(plot.group, []).extend([name, f"{name}-SAT"])
    assert {title: sorted(stems) for title, stems in grouped(tmp_path).items()} == {
        title: sorted(stems) for title, stems in wanted.items()
    }
