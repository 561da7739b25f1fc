"""Figures that were drawn: which form is shown, under which heading, and which files are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from interop.site import figures


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


def test_a_figure_is_shown_as_vectors_and_offered_in_all_forms(drawn: Path) -> None:
    found = {figure.stem: figure for figure in figures.find(drawn)}
    assert set(found) == {"heatmap-LOS@0.1pct", "heatmap-SAT", "cdf", "offset-a_b-T", "mine"}
    assert found["heatmap-SAT"].picture == "heatmap-SAT.svg"
    assert [form.suffix for form in found["heatmap-SAT"].forms] == [".pdf", ".png", ".svg"]
    assert found["offset-a_b-T"].words == "Offset a to b T"


def test_figures_stand_under_what_they_show(drawn: Path) -> None:
    titles = {title: [figure.stem for figure in many] for title, many in figures.grouped(figures.find(drawn))}
    assert titles == {
        "Pairs and links": ["heatmap-LOS@0.1pct", "heatmap-SAT"],
        "Distributions": ["cdf"],
        "Packets of single runs": ["offset-a_b-T"],
        "Others": ["mine"],
    }
