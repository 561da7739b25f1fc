"""All plots by name, and drawing what a request asks for."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import cache
from pathlib import Path

from interop.model.clock import Clock
from interop.model.errors import InputError
from interop.model.names import did_you_mean
from interop.model.text import quoted
from interop.report.plot_request import Gallery, PlotRequest
from plots.base import Drawing, Group, NothingToDrawError, Plot, sentences
from plots.render import save

OF = ("results", "campaigns", "runs", "all runs")
RENAMED = {"dates": "by-date", "pairs": "scatter-matrix", "relation": "two-case-scatter", "swarm": "strip-plot"}
"""Names of the release before -> names of today; remove with the next release."""


@cache
def plots() -> dict[str, Plot]:
    """Every plot of this package (modules that define ``PLOT``), by name."""
    package = Path(__file__).parent
    modules = [importlib.import_module(f"plots.{nonempty.name}") for nonempty in pkgutil.iter_modules([str(package)])]
    found = [module.PLOT for module in modules if hasattr(module, "PLOT")]
    return {plot.name: plot for plot in sorted(found, key=lambda plot: (OF.index(plot.of), plot.name))}


def headings() -> dict[str, str]:
    """The heading of each plot, in the order of the headings."""
    order = list(Group)
    return {plot.name: plot.group for plot in sorted(plots().values(), key=lambda plot: order.index(plot.group))}


def with_clock(drawing: Drawing, request: PlotRequest) -> Drawing:
    """A drawing that says so if it shows runs in virtual time."""
    times = {each.results.manifest.time for each in request.campaigns if each.results.manifest.clock is Clock.VIRTUAL}
    return replace(drawing, caption=sentences(drawing.caption, *(f"The runs used {time}." for time in sorted(times))))


def draw(request: PlotRequest) -> Gallery:
    """Draw the requested plots; raises InputError for an unknown name. Old names still work, with a warning."""
    known = plots()
    names = tuple(dict.fromkeys(RENAMED.get(name, name) for name in request.plots))
    warnings = tuple(
        f"--plot {name} is now called {RENAMED[name]}; the old name goes in the next release."
        for name in dict.fromkeys(request.plots)
        if name in RENAMED
    )
    for name in names:
        if name not in known:
            raise InputError(f"There is no plot {quoted(name)}.{did_you_mean(name, known)} Known: {', '.join(known)}.")
    request.target.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    captions: list[tuple[str, str, str]] = []
    skipped: list[str] = []
    for plot in (known[name] for name in (names or known)):
        if plot.of == "runs" and not (names or request.pairs):
            skipped.append(f"{plot.name}: drawn only if you name it with --plot or select pairs with --pair.")
            continue
        try:
            for drawing in (with_clock(each, request) for each in plot.table(request)):
                files += save(plot, drawing, request.target, request.formats)
                captions.append((files[-1].stem, drawing.title, drawing.caption))
        except NothingToDrawError as nothing:
            skipped.append(f"{plot.name}: {nothing}")
    return Gallery(tuple(files), tuple(captions), tuple(skipped), warnings)
