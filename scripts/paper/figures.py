"""The figures of the report, drawn by the plots of quicsat."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from interop.model.results import ResultSet
from interop.report.plot_request import CampaignResults, Gallery, PlotRequest
from plots.discovery import draw
from scripts.gallery import lighten
from scripts.paper.data_set import Part
from scripts.paper.goodput import with_timeouts
from scripts.paper.lines import Figure
from scripts.paper.variants import with_known_controls

PLOTS: Mapping[str, tuple[str, ...]] = {
    Part.MATRIX: ("cdf", "heatmap", "violin", "two-case-scatter"),
    Part.VARIANTS: ("congestion-controls",),
}
"""Plots of each part of `make paper`."""
OF_THE_PAPER = {"cdf": "Figure 3", "heatmap": "Figure 4", "violin": "Figure 5", "two-case-scatter": "Figure 6"}


Figures = Mapping[tuple[str, str], tuple[Figure, ...]]
"""By part and plot."""


def draw_figures(parts: Mapping[str, ResultSet], target: Path) -> dict[tuple[str, str], tuple[Figure, ...]]:
    """Draw all figures of the parts that are stored; ``target`` is written again."""
    shutil.rmtree(target, ignore_errors=True)
    found = dict[tuple[str, str], tuple[Figure, ...]]()
    for part, plots in PLOTS.items():
        if part in parts:
            results = parts[part] if part != Part.VARIANTS else with_timeouts(with_known_controls(parts[part]))
            campaign = CampaignResults(part, results)
            for plot in plots:
                gallery = draw(PlotRequest((campaign,), target / part, (plot,), ("png",)))
                found[part, plot] = tuple(_figures(gallery, target, OF_THE_PAPER.get(plot, "")))
    return found


def _figures(gallery: Gallery, target: Path, of_the_paper: str) -> Iterator[Figure]:
    for file, (_, title, caption) in zip(gallery.files, gallery.captions, strict=True):
        lighten(file)
        yield Figure(str(file.relative_to(target)), title, caption, of_the_paper)
