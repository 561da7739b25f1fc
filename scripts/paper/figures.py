"""The figures of the report."""

from __future__ import annotations

import shutil
from pathlib import Path

from interop.model.results import ResultSet
from interop.report.plot_request import CampaignResults, PlotRequest
from plots.discovery import draw
from scripts.gallery import lighten

FIGURES = "figures"


PLOTS = ("cdf", "heatmap", "violin", "two-case-scatter")


PAPER_FIGURES = {"cdf": "Figure 3", "heatmap": "Figure 4", "violin": "Figure 5", "two-case-scatter": "Figure 6"}


def draw_figures(results: ResultSet, target: Path) -> list[tuple[str, str, str]]:
    """(file name, title, caption) of each figure; the directory is written again."""
    shutil.rmtree(target, ignore_errors=True)
    gallery = draw(PlotRequest((CampaignResults("matrix", results),), target, PLOTS, ("png",)))
    for file in gallery.files:
        lighten(file)
    return [
        (file.name, f"{figure_of(file)}: {title}", caption)
        for file, (_, title, caption) in zip(gallery.files, gallery.captions, strict=True)
    ]


def figure_of(file: Path) -> str:
    """The paper's figure that shows the same as a file: ``Figure 4``."""
    return next(figure for plot, figure in PAPER_FIGURES.items() if file.stem.startswith(plot))
