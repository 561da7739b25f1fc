"""Texts in figures are only texts, in every format: they come from packets, names and logs of others."""

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as Xml

from matplotlib.axes import Axes

from quicsat.model.text import printable
from quicsat.plots.base import Drawing, Group, Panel, Plot
from quicsat.plots.render import save
from quicsat.report.plot_request import FORMATS
from tests.payloads import ALL, TEX

_PRINTED = {
    rf"\{name}" for name in ("textbackslash", "textasciitilde", "textasciicircum", "textless", "textgreater", "textbar")
} | {rf"\{sign}" for sign in "&%$#_{}"}
"""Commands with which LaTeX prints a character."""


def _draw(ax: Axes, panel: Panel) -> None:
    """A curve on a logarithmic axis, and texts in all places where plots put some."""
    texts = panel.rows
    for number, text in enumerate(texts):
        ax.plot([0, 1], [1, 1000], label=f"label {text}")
        ax.annotate(text, (0, number))
    ax.set_yscale("log")
    ax.set_xticks(range(len(texts)), texts)
    ax.set_xlabel(texts[0])
    ax.set_title(texts[-1])
    ax.legend(title=texts[0], loc="upper left")


def drawn(place: Path, texts: Sequence[str], formats: Sequence[str] = FORMATS) -> list[Path]:
    """The figure in files."""
    plot = Plot("hostile", "", Group.PAIRS, "results", lambda _: (), _draw)
    return save(plot, Drawing("", texts[0], texts[-1], ((Panel(texts),),), (40, 40)), place, formats)


def _commands(file: Path) -> set[str]:
    return set(re.findall(r"\\(?:[A-Za-z@]+|.)", file.read_text(encoding="utf-8"), re.DOTALL))


def test_latex_prints_what_a_figure_shows(tmp_path: Path) -> None:
    usual = _commands(*drawn(tmp_path, ["x"], ["pgf"]))
    assert r"\mathdefault" in usual  # the powers on the axis are formulas
    assert _commands(*drawn(tmp_path, TEX, ["pgf"])) - usual <= _PRINTED


def test_svg_shows_each_text_to_the_letter(tmp_path: Path) -> None:
    [file] = drawn(tmp_path, ALL, ["svg"])
    root = Xml.parse(file).getroot()
    shown = {each.text for each in root.iter("{http://www.w3.org/2000/svg}text")}
    lines = [printable(line, None) for text in ALL for line in text.split("\n")]
    assert {line for line in lines if line} <= shown
    assert {each.tag.rpartition("}")[2] for each in root.iter()}.isdisjoint({"script", "img", "iframe", "a"})


def test_every_format_can_be_written(tmp_path: Path) -> None:
    files = drawn(tmp_path, [TEX[0], "$\\frac{", "\ud800\x1b[31m\u202e$x$"])
    assert [file.suffix for file in files] == [f".{form}" for form in FORMATS]
    assert all(file.stat().st_size > 1000 for file in files)
