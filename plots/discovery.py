"""All plots by name, and drawing what a request asks for."""

import importlib
import pkgutil
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, cached_property
from math import inf
from pathlib import Path

from quicsat.model.clock import Clock
from quicsat.model.errors import InputError
from quicsat.model.names import did_you_mean
from quicsat.model.stored_files import files, resolved
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted, quoted
from quicsat.model.whole_file import may_replace
from quicsat.plots.base import Drawing, Group, NothingToDrawError, Plot, sentences
from quicsat.plots.drawn_before import DrawnBefore, digest_of
from quicsat.plots.render import file_name, is_figure, is_image_of, save
from quicsat.report.pair_series import cells
from quicsat.report.plot_request import Gallery, PlotRequest
from quicsat.results.summary import IN_REAL_TIME

OF = ("results", "campaigns", "runs", "all runs")
FIRST = "offset"
"""Of the plots of runs, the one that is drawn first."""
MOST_OF_PAIRS = 300
"""Figures of single pairs that are drawn if neither plots nor pairs are named: about two minutes of one CPU."""
MOST_SECONDS = 300.0
"""For these figures, on any machine."""


@cache
def plots() -> dict[str, Plot]:
    """Every plot of this package (modules that define ``PLOT``), by name."""
    package = Path(__file__).parent
    modules = [
        importlib.import_module(f"quicsat.plots.{nonempty.name}") for nonempty in pkgutil.iter_modules([str(package)])
    ]
    found = [module.PLOT for module in modules if hasattr(module, "PLOT")]
    found.sort(key=lambda plot: (OF.index(plot.of), plot.name != FIRST, plot.name))
    return {plot.name: plot for plot in found}


def headings() -> dict[str, str]:
    """The heading of each plot, in the order of the headings."""
    order = list(Group)
    return {plot.name: plot.group for plot in sorted(plots().values(), key=lambda plot: order.index(plot.group))}


def with_clock(drawing: Drawing, request: PlotRequest) -> Drawing:
    """A drawing that says so if it shows runs in virtual time, and how many pairs differ in real time."""
    campaigns = [each.results for each in request.campaigns if each.results.manifest.clock is Clock.VIRTUAL]
    times = sorted({each.manifest.time for each in campaigns})
    drawn = [(each.virtual_only, {case.name for case in request.measured(each)}) for each in campaigns]
    differing = sum(key[2] in cases for keys, cases in drawn for key in keys)
    pairs = counted(differing, "pair over a link holds", "pairs over a link hold")
    real = f"{pairs} in virtual time only: {IN_REAL_TIME}" if differing else ""
    notes = [*(f"The runs used {time}" for time in times), real]
    return replace(drawing, caption=sentences(drawing.caption, *notes))


def draw(request: PlotRequest) -> Gallery:
    """Draw the requested plots; raises InputError for an unknown name.

    Pictures of single pairs are bounded unless the request names plots or pairs.
    """
    known = plots()
    names = tuple(dict.fromkeys(request.plots))
    for name in names:
        if name not in known:
            raise InputError(f"There is no plot {quoted(name)}.{did_you_mean(name, known)} Known: {', '.join(known)}.")
    request.target.mkdir(parents=True, exist_ok=True)
    selected = tuple(campaign.of_pairs(request.pairs) for campaign in request.campaigns)
    work = _Drawer(replace(request, campaigns=selected), bounded=not (names or request.pairs))
    for plot in (known[name] for name in (names or known)):
        work.draw(plot)
    return Gallery(
        tuple(work.files),
        tuple(work.captions),
        (*work.skipped, *work.bounds),
        request.warnings,
        work.unchanged,
        tuple(work.refused),
    )


class _Drawer:
    """Draws plots one after the other, and knows what was drawn."""

    def __init__(self, request: PlotRequest, *, bounded: bool) -> None:
        self._request = request
        self._before = DrawnBefore(request.target)
        self._rest = MOST_OF_PAIRS if bounded else None
        self._until = inf
        self.files: list[Path] = []
        self.captions: list[tuple[str, str, str]] = []
        self.skipped: list[str] = []
        self.unchanged = 0
        self.refused: list[str] = []
        self._left_out: list[str] = []

    @cached_property
    def _cells(self) -> list[tuple[TestCase, tuple[str, str]]]:
        if self._rest is not None:
            self._until = time.monotonic() + MOST_SECONDS
        return cells(self._request)

    @property
    def bounds(self) -> tuple[str, ...]:
        """A sentence on the figures that the bounds left out, if there are any."""
        if not self._left_out:
            return ()
        names = ", ".join(self._left_out)
        bounds = f"{MOST_OF_PAIRS} figures of single pairs, the slowest first, or as many as {MOST_SECONDS:g} s allow"
        return (f"{names}: without --plot or --pair, quicsat draws {bounds}.",)

    def draw(self, plot: Plot) -> None:
        """Draw one plot, or note why there is nothing to draw."""
        try:
            for drawing in self._drawings(plot):
                self._save(plot, with_clock(drawing, self._request))
        except NothingToDrawError as nothing:
            self.skipped.append(f"{plot.name}: {nothing}")
        self._before.save()

    def _drawings(self, plot: Plot) -> Iterator[Drawing]:
        if plot.of != "runs" or self._request.overlaid or not self._cells:
            yield from plot.table(self._request)
            return
        count = 0
        for case, pair in self._cells[: self._rest]:  # one by one, because the series of all do not fit in memory
            if time.monotonic() >= self._until:
                break
            yield from plot.table(replace(self._request, test_cases=(case.name,), pairs=(pair,)))
            count += 1
        if self._rest is not None:
            self._rest -= count
        if count < len(self._cells):
            self._left_out.append(f"{plot.name} ({len(self._cells) - count} of {len(self._cells)})")

    def _taken(self, path: Path) -> Iterator[Path]:
        """The file at the place of a figure, and those of images that it may write, if quicsat has not drawn them."""
        images = (
            each.name for each in files(resolved(path.parent)) if path.suffix == ".pgf" and is_image_of(each, path)
        )
        for file in (path, *map(path.with_name, images)):
            if not may_replace(file, lambda each: self._before.drew(each) or is_figure(each)):
                yield file

    def _save(self, plot: Plot, whole: Drawing) -> None:
        request = self._request
        title, text = whole.title if request.title else "", whole.caption if request.caption else ""
        drawing = replace(whole, title=title, caption=text)
        digest = digest_of(drawing)
        paths = {form: self._request.target / file_name(plot, drawing, form) for form in self._request.formats}
        missing = [form for form, path in paths.items() if not self._before.shows(path, digest)]
        foreign = [path for form in missing for path in self._taken(paths[form])]
        if foreign:
            self.refused += [
                f"{path} exists, and is no figure of quicsat. Choose another directory." for path in foreign
            ]
            return
        for path in save(plot, drawing, self._request.target, missing) if missing else ():
            self._before.note(path, digest)
        self.files += paths.values()
        self.captions.append((self.files[-1].stem, whole.title, whole.caption))
        self.unchanged += len(paths) - len(missing)
