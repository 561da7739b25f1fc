"""All plots that there are, and drawing what a wish asks for."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path

from interop.errors import InputError
from interop.names import did_you_mean, quoted
from interop.pictures import Gallery, Wish
from plots.base import NothingToDrawError, Plot
from plots.render import save

OF = ("results", "campaigns", "runs")


@cache
def plots() -> dict[str, Plot]:
    """Every module of this package that has a PLOT, by its name."""
    package = Path(__file__).parent
    modules = [importlib.import_module(f"plots.{found.name}") for found in pkgutil.iter_modules([str(package)])]
    found = [module.PLOT for module in modules if hasattr(module, "PLOT")]
    return {plot.name: plot for plot in sorted(found, key=lambda plot: (OF.index(plot.of), plot.name))}


def draw(wish: Wish) -> Gallery:
    """Draw all that is wished for; InputError if a plot has no such name."""
    known = plots()
    for name in wish.plots:
        if name not in known:
            raise InputError(f"There is no plot {quoted(name)}.{did_you_mean(name, known)} Known: {', '.join(known)}.")
    wish.target.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    captions: list[tuple[str, str, str]] = []
    skipped: list[str] = []
    for plot in (known[name] for name in (wish.plots or known)):
        if plot.of == "runs" and not (wish.plots or wish.pairs):
            skipped.append(f"{plot.name}: drawn for pairs that are named, or if asked for by name.")
            continue
        try:
            for drawing in plot.table(wish):
                files += save(plot, drawing, wish.target, wish.formats)
                captions.append((files[-1].stem, drawing.title, drawing.caption))
        except NothingToDrawError as nothing:
            skipped.append(f"{plot.name}: {nothing}")
    return Gallery(tuple(files), tuple(captions), tuple(skipped))
