"""The figures of the report, drawn by the plots of quicsat."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from paper.congestion import CONTROLS
from paper.data_set import DataSet, as_one, with_timeouts
from paper.single_runs import OF_THE_PAPER
from quicsat.model.results import ResultSet
from quicsat.plots.discovery import draw
from quicsat.report.plot_request import CampaignResults, Gallery, PlotRequest
from scripts.gallery import lighten

PLOTS: Mapping[str, Sequence[str]] = {
    "matrix": ("cdf", "heatmap", "violin", "two-case-scatter"), "variants": ("congestion-controls",),
    "windows": ("negotiated",), "sweeps": ("sweep",),
}  # fmt: skip
"""Plots of each part."""
OVERLAID = (("picoquic", "quic-go"), ("picoquic", "ngtcp2"))


@dataclass(frozen=True)
class Figure:
    """Title and caption of a drawn figure."""

    title: str
    caption: str


def selected(data: DataSet, part: str) -> ResultSet:
    """What of a part its figures show."""
    campaigns = data.of_part(part)
    if part == "variants":
        return with_timeouts(as_one(campaigns, lambda name: name.partition(":")[2] in CONTROLS))
    results = as_one(campaigns)
    if part == "windows":
        clients = tuple(name for name in results.manifest.clients if ":" in name)
        runs = tuple(run for run in results.results if run.client in clients)
        return replace(results, results=runs, manifest=replace(results.manifest, clients=clients))
    return results


def draw_all(data: DataSet, target: Path) -> dict[str, Figure]:
    """Draw all figures; by file below ``target``, which is emptied first."""
    shutil.rmtree(target, ignore_errors=True)
    found = dict[str, Figure]()
    for part, plots in PLOTS.items():
        campaign = CampaignResults(part, selected(data, part))
        for plot in plots:
            found |= _figures(draw(PlotRequest((campaign,), target / part, (plot,), ("png",))), target)
    first = as_one(data.of_part("matrix")[:1])
    campaign, place = CampaignResults("matrix", first, data.directory / "series"), target / "series"
    for server, client, test_case in OF_THE_PAPER:
        request = PlotRequest((campaign,), place, ("offset",), ("png",), (test_case,), ((server, client),))
        found |= _figures(draw(request), target)
    request = PlotRequest((campaign,), place, ("offset",), ("png",), ("sat",), OVERLAID, overlaid=True)
    found |= _figures(draw(request), target)
    for kept in target.rglob(".*.json"):
        kept.unlink()
    return found


def _figures(gallery: Gallery, target: Path) -> dict[str, Figure]:
    found = {}
    for file, (_, title, caption) in zip(gallery.files, gallery.captions, strict=True):
        lighten(file)
        found[str(file.relative_to(target))] = Figure(title, caption)
    return found
