"""Drawings -> files, the same bytes each time: figure, caption, and the formats SVG, PNG, PDF and PGF.

Functions load matplotlib, so that those who only ask for the names of figures need not wait for it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from quicsat.model.stored_files import read_file, resolved
from quicsat.model.text import printable_lines
from quicsat.model.units import MIB
from quicsat.model.whole_file import new_files
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import Drawing, Plot
from quicsat.report.table import latex_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TOGETHER = re.compile(r"(?<=\d) (?=\S)|(?<=[=±]) (?=\d)|(?<=min) (?=\d)|(?<=\bn) (?==)")
"""Spaces at which no line ends: between a number and its unit."""
_POWER = re.compile(r"\$\\mathdefault\{[-−]?[0-9.]+(?:\\times[0-9.]+)?(?:\^\{[-−]?[0-9]+\})?\}\$")
"""A number on a logarithmic axis, as matplotlib writes it."""
_IMAGE_OF_PGF = re.compile(r"(.+)-img\d+\.png")
LETTER = 0.56
"""Width of a character, as a share of the size of its font."""
AXES = 0.8
"""Share of a panel that its axes take."""
_METADATA = {
    "svg": {"Date": None, "Creator": "quicsat"},
    "pdf": {"CreationDate": None, "Creator": "quicsat", "Producer": None},
    "png": {"Software": "quicsat"},
}
_MARKS = {
    ".svg": b"<dc:title>quicsat</dc:title>", ".pdf": b"/Creator (quicsat)", ".png": b"tEXtSoftware\0quicsat",
    ".pgf": b"%% Written by quicsat\n",
}  # fmt: skip
"""What the figures of quicsat have in them; files that PGF files include have nothing."""
LARGEST = 64 * MIB
"""Bytes of a file that is looked at."""


def figure(plot: Plot, drawing: Drawing) -> Figure:
    """The picture, not yet in any format; of matplotlib's global state only settings are touched, and put back."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(theme.SETTINGS), plain_texts():
        made = Figure(figsize=drawing.size, layout="constrained")
        rows, columns = len(drawing.panels), max(map(len, drawing.panels))
        widths = drawing.widths or None
        grid = made.subplots(rows, columns, squeeze=False, sharey=drawing.share_y, width_ratios=widths)
        for panels, axes in zip(drawing.panels, grid, strict=True):
            for number, ax in enumerate(axes):
                panel = panels[number] if number < len(panels) else None
                if panel is None:
                    ax.remove()
                else:
                    plot.draw(ax, panel)
        for ax in made.axes:
            _wrap(ax, drawing)
        if drawing.title:
            made.suptitle(_filled(drawing.title, drawing.size[0], theme.SETTINGS["figure.titlesize"]))
        if drawing.caption:
            made.supxlabel(caption(drawing), x=0.01, ha="left", fontsize=theme.CAPTION_SIZE, color="#404040")
    return made


def _wrap(ax: Axes, drawing: Drawing) -> None:
    """Break the labels of axes and the titles of panels that are longer than their panel."""
    place = ax.get_subplotspec()
    columns, rows = (place.get_gridspec().ncols, place.get_gridspec().nrows) if place else (1, 1)
    width, height = AXES * drawing.size[0] / columns, AXES * drawing.size[1] / rows
    if place and drawing.widths:
        width = AXES * drawing.size[0] * drawing.widths[place.colspan.start] / sum(drawing.widths)
    size = theme.SETTINGS["axes.labelsize"]
    ax.set_xlabel(_filled(ax.get_xlabel(), width, size))
    ax.set_ylabel(_filled(ax.get_ylabel(), height, size))
    ax.set_title(_filled(ax.get_title(), width, theme.SETTINGS["axes.titlesize"]))


def _filled(text: str, inches: float, size: float) -> str:
    """Wrapped to a width; a word that is longer, such as the name of an implementation, stays whole."""
    letters = int(inches * 72 / (size * LETTER))
    if len(text) <= letters or "\n" in text:
        return text
    return textwrap.fill(text, letters, break_long_words=False, break_on_hyphens=False)


def caption(drawing: Drawing) -> str:
    """Wrapped to the width of the picture."""
    letters = int(drawing.size[0] * 72 / (theme.CAPTION_SIZE * LETTER))
    return textwrap.fill(_TOGETHER.sub("\u00a0", drawing.caption), letters)


@contextmanager
def plain_texts() -> Iterator[None]:
    """Let texts from outside be texts: no formula begins at a dollar sign, and all characters are printable.

    This is the place through which matplotlib's texts go to all formats. The only formulas are its powers on axes.
    """
    from matplotlib.text import Text

    def plain(_: Text, text: str) -> tuple[str, bool]:
        return (text, True) if _POWER.fullmatch(text) else (printable_lines(text), False)

    with patch.object(Text, "_preprocess_math", plain):
        yield


@contextmanager
def _pgf_without_latex() -> Iterator[None]:
    """Let matplotlib write PGF files by itself: it would start LaTeX, which not every machine has.

    It would ask LaTeX for the size of texts, and which command includes an image. Texts are anchored where they belong,
    so that only the room for them is an estimate; PGF itself has a command for images. It would also write texts as
    they are, which LaTeX then runs.
    """
    from matplotlib.backend_bases import RendererBase
    from matplotlib.backends import backend_pgf  # loads the backend of PDF, which takes 0.2 s

    draw: Any = backend_pgf.RendererPgf.draw_text

    def draw_text(
        self: Any, gc: Any, x: float, y: float, s: str, prop: Any, angle: float, ismath: Any = False, mtext: Any = None
    ) -> None:
        draw(self, gc, x, y, s if ismath else latex_text(s), prop, angle, ismath, mtext)

    with (
        patch.object(backend_pgf.RendererPgf, "draw_text", draw_text),
        patch.object(
            backend_pgf.RendererPgf, "get_text_width_height_descent", RendererBase.get_text_width_height_descent
        ),
        patch.object(backend_pgf, "_get_image_inclusion_command", lambda: r"\pgfimage"),
    ):
        yield


def file_name(plot: Plot, drawing: Drawing, form: str) -> str:
    """``<plot>-<stem>.<format>``."""
    return f"{'-'.join(part for part in (plot.name, drawing.stem) if part)}.{form}"


def is_figure(path: Path) -> bool:
    """Whether quicsat has drawn a file; of an image that belongs to a PGF file, whether that is so of the PGF file."""
    if image := _IMAGE_OF_PGF.fullmatch(path.name):
        return is_figure(path.with_name(f"{image[1]}.pgf"))
    try:
        return _MARKS[path.suffix] in read_file(resolved(path.parent) / path.name, LARGEST)
    except (OSError, KeyError):
        return False


def is_image_of(path: Path, figure: Path) -> bool:
    """Whether a file has the name of an image that belongs to a PGF file."""
    image = _IMAGE_OF_PGF.fullmatch(path.name)
    return image is not None and image[1] == figure.stem


def save(plot: Plot, drawing: Drawing, target: Path, formats: Sequence[str]) -> list[Path]:
    """Write a file per format, and those of its images, each as a whole. Raises OSError if one cannot be written."""
    import matplotlib as mpl

    made = figure(plot, drawing)
    paths = []
    pgf = _pgf_without_latex() if "pgf" in formats else nullcontext()
    with mpl.rc_context(theme.SETTINGS), plain_texts(), pgf:
        for form in formats:
            name = file_name(plot, drawing, form)
            options: dict[str, Any] = {"metadata": _METADATA[form]} if form in _METADATA else {}
            with new_files(resolved(target.parent) / target.name) as folder:
                made.savefig(folder / name, format=form, dpi=theme.PNG_DPI, **options)
                if form == "pgf":
                    (folder / name).write_bytes(_MARKS[".pgf"] + read_file(folder / name))
            paths.append(target / name)
    return paths
