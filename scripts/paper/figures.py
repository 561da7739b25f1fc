"""The figures of the report, drawn by the plots of quicsat."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from interop.model.results import ResultSet
from interop.report.plot_request import CampaignResults, Gallery, PlotRequest
from plots.discovery import draw
from scripts.gallery import lighten
from scripts.paper.data_set import Part
from scripts.paper.goodput import with_timeouts
from scripts.paper.lines import Figure
from scripts.paper.packets import BESIDE, EXPLAINED, OF_THE_PAPER, SERIES
from scripts.paper.variants import with_known_controls
from scripts.paper.windows import with_variants

PLOTS: Mapping[str, tuple[str, ...]] = {
    Part.MATRIX: ("cdf", "heatmap", "violin", "two-case-scatter"),
    Part.VARIANTS: ("congestion-controls",),
    Part.WINDOWS: ("negotiated",),
    Part.SWEEPS: ("sweep-map", "sweep"),
}
"""Plots of each part of `make paper`."""
SELECTED: Mapping[str, Callable[[ResultSet], ResultSet]] = {
    Part.VARIANTS: lambda results: with_timeouts(with_known_controls(results)),
    Part.WINDOWS: with_variants,
}
"""What of a part its figures show; everything of the others."""
PAPER_FIGURES = {"cdf": "Figure 3", "heatmap": "Figure 4", "violin": "Figure 5", "two-case-scatter": "Figure 6"}


Figures = Mapping[tuple[str, str], tuple[Figure, ...]]
"""By part and plot."""


def draw_figures(parts: Mapping[str, ResultSet], data: Path, target: Path) -> dict[tuple[str, str], tuple[Figure, ...]]:
    """Draw all figures of the parts and series that are stored; ``target`` is written again."""
    shutil.rmtree(target, ignore_errors=True)
    found = dict[tuple[str, str], tuple[Figure, ...]]()
    for part, plots in PLOTS.items():
        if part in parts:
            select = SELECTED.get(part)
            campaign = CampaignResults(part, select(parts[part]) if select else parts[part])
            for plot in plots:
                gallery = draw(PlotRequest((campaign,), target / part, (plot,), ("png",)))
                found[part, plot] = tuple(_figures(gallery, target, PAPER_FIGURES.get(plot, "")))
    found |= _of_packets(parts[Part.MATRIX], data / SERIES, target)
    return found


def _of_packets(results: ResultSet, series: Path, target: Path) -> dict[tuple[str, str], tuple[Figure, ...]]:
    """Time-offset figures of the pairs of the paper, and one of the pair that is explained beside another."""
    first = replace(results, results=tuple(run for run in results.results if run.repetition == 1))
    campaign, place = CampaignResults(Part.MATRIX, first, series), target / SERIES
    found = dict[tuple[str, str], tuple[Figure, ...]]()
    for pair, of_the_paper in OF_THE_PAPER.items():
        own = ((pair.server, pair.client),)
        request = PlotRequest((campaign,), place, ("offset",), ("png",), (pair.test_case,), own)
        found["packets", of_the_paper] = tuple(_figures(draw(request), target, of_the_paper))
    wanted = tuple((pair.server, pair.client) for pair in (EXPLAINED, BESIDE))
    request = PlotRequest((campaign,), place, ("offset",), ("png",), (EXPLAINED.test_case,), wanted, overlaid=True)
    found["packets", "windows"] = tuple(_figures(draw(request), target, ""))
    return found


def _figures(gallery: Gallery, target: Path, of_the_paper: str) -> Iterator[Figure]:
    for file, (_, title, caption) in zip(gallery.files, gallery.captions, strict=True):
        lighten(file)
        yield Figure(str(file.relative_to(target)), title, caption, of_the_paper)
