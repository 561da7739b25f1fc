"""Writes what the site has beyond single campaigns and cells: figures, tables, comparisons, trends, feed, badges."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

from interop import reports
from interop.model import TestCase
from interop.sheets import Sheet, Unit, render
from interop.site import address
from interop.site.badges import badge, badge_picture
from interop.site.campaign_pages import Site
from interop.site.campaigns import Campaign
from interop.site.files import regular
from interop.statistics import comparison, history
from interop.statistics.samples import GOODPUT

MOST_COMPARED = 10
"""The newest campaigns, of which any two are compared; older ones are compared with their neighbours."""
MOST_COURSES = 60
"""Campaigns that trends look back on."""
_PICTURES = (".svg", ".png")
_OTHER_FORMS = (".pdf", ".csv", ".pgf", ".tex")
_LARGEST = 20_000_000


# ---- of one campaign ------------------------------------------------------------------------


def write(site: Site, campaign: Campaign) -> None:
    """Figures and tables of a campaign."""
    _figures(site, campaign)
    cases = campaign.measurements
    sheets = [
        reports.summary(campaign.results, cases),
        reports.implementations(campaign.results, cases),
        reports.variance(campaign.results, cases),
        reports.congestion(campaign.results.manifest.implementations),
        reports.pairs(campaign.results, cases),
    ]
    page = address.campaign(campaign.folder, "tables")
    for sheet in sheets:
        _forms(site, page.parent, sheet)
    site.show(page, "tables.html", campaign, "Tables", sheets=[shown(sheet) for sheet in sheets])


def _forms(site: Site, folder: PurePosixPath, sheet: Sheet) -> None:
    for suffix, form in (("csv", "csv"), ("md", "markdown"), ("tex", "latex")):
        site.put(folder / f"{sheet.name}.{suffix}", render(sheet, form).encode("utf-8", "replace") + b"\n")


def shown(sheet: Sheet) -> dict[str, Any]:
    """A sheet as its template shows it: with whether each column holds words."""
    return {"sheet": sheet, "words": [column.unit is Unit.WORDS for column in sheet.columns]}


def _figures(site: Site, campaign: Campaign) -> None:
    """What `./run.py plot` has drawn into the campaign's directory; the page says so if there is nothing."""
    page = address.campaign(campaign.folder, "figures")
    figures: dict[str, list[str]] = {}
    for path in _drawn(campaign.directory / "plots"):
        site.put(page.parent / path.name, path.read_bytes())
        figures.setdefault(path.stem, []).append(path.name)
    found = [
        {"stem": stem, "picture": picture, "forms": names}
        for stem, names in sorted(figures.items())
        if (picture := next((name for name in sorted(names, reverse=True) if name.endswith(_PICTURES)), None))
    ]
    site.show(page, "figures.html", campaign, "Figures", figures=found, place=campaign.directory.name)


def _drawn(place: Path) -> Iterator[Path]:
    """Pictures under plain names."""
    for path in sorted(place.glob("*")):
        plain = path.name.isascii() and path.stem.replace("-", "").replace("_", "").replace("+", "").isalnum()
        if plain and path.suffix in _PICTURES + _OTHER_FORMS and regular(path, _LARGEST):
            yield path


# ---- of several -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """Two campaigns side by side."""

    before: Campaign
    after: Campaign
    found: comparison.Comparison
    address: PurePosixPath

    @property
    def sheet(self) -> Sheet:
        """The pairs that changed."""
        before, after = (each.results.manifest.started[:10] for each in (self.before, self.after))
        if before == after:
            before, after = self.before.folder, self.after.folder
        return reports.comparison(self.found, before, after)

    @property
    def worse(self) -> list[comparison.PairChange]:
        """Pairs that got worse."""
        return [pair for pair in self.found.pairs if pair.change in comparison.WORSE]


def write_all(site: Site) -> None:
    """Comparisons, trends, feed and badges."""
    compared = [_compared(*two) for two in _twos(site.campaigns)]
    for each in compared:
        _forms(site, each.address.parent, each.sheet)
        site.show(each.address, "comparison.html", None, "Compare", compared=each, table=shown(each.sheet))
    site.show(address.COMPARISONS, "comparisons.html", None, "Compare", compared=compared)
    _trends(site)
    neighbours = set(pairwise(reversed(site.campaigns)))
    entries = [each for each in compared if (each.before, each.after) in neighbours and each.worse]
    updated = site.campaigns[0].started
    site.put(address.FEED, site.renderer.page("feed.xml", entries=entries[:30], updated=updated))
    _badges(site, site.campaigns[0])


def _twos(campaigns: Sequence[Campaign]) -> list[tuple[Campaign, Campaign]]:
    """Which campaigns are compared: (earlier, later), the newest first."""
    newest = campaigns[:MOST_COMPARED]
    twos = [(earlier, later) for number, later in enumerate(newest) for earlier in newest[number + 1 :]]
    older = campaigns[MOST_COMPARED - 1 :]
    return [*twos, *((earlier, later) for later, earlier in pairwise(older))]


def _compared(before: Campaign, after: Campaign) -> Compared:
    found = comparison.campaigns(before.results, after.results, before.results.manifest.test_cases)
    return Compared(before, after, found, PurePosixPath("compare", before.folder, after.folder, "index.html"))


@dataclass(frozen=True)
class Trend:
    """A course with its line in a small picture: 100 wide, 20 high."""

    course: history.Course
    line: str
    marks: tuple[float, ...]
    """Where images changed."""
    last: float | None


def _trends(site: Site) -> None:
    results = history.ordered([each.results for each in site.campaigns[:MOST_COURSES]])
    cases = {case.name: case for each in results for case in each.manifest.test_cases}
    measured = {case.name for each in site.campaigns[:MOST_COURSES] for case in each.measurements}
    shown_cases = [case for name, case in cases.items() if name in measured]
    dates = [each.manifest.started[:10] for each in results]
    tables: list[tuple[TestCase, list[Trend]]] = []
    for case in shown_cases:
        tables.append((case, [trend(each) for each in history.server_courses(results, case.name, GOODPUT)]))
        pairs = [trend(each) for each in history.pair_courses(results, case.name, GOODPUT)]
        page = PurePosixPath("trends", case.name, "index.html")
        site.show(page, "trend.html", None, "Trends", case=case, trends=pairs, dates=dates)
    site.show(address.TRENDS, "trends.html", None, "Trends", tables=tables, dates=dates)


def trend(course: history.Course) -> Trend:
    """A course as a picture."""
    known = [mean for mean in course.means if mean is not None]
    top, last = max(known, default=1.0) or 1.0, max(len(course.means) - 1, 1)
    line = " ".join(
        f"{100 * at / last:.1f},{18 - 16 * mean / top:.1f}" for at, mean in enumerate(course.means) if mean is not None
    )
    return Trend(course, line, tuple(100 * mark / last for mark in course.marks), known[-1] if known else None)


def _badges(site: Site, campaign: Campaign) -> None:
    for each in campaign.results.manifest.implementations:
        found = badge(campaign, each.name)
        site.put(PurePosixPath("badge", f"{each.folder}.json"), json.dumps(found).encode())
        site.put(PurePosixPath("badge", f"{each.folder}.svg"), badge_picture(site.renderer, found))
