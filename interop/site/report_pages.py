"""Writes what the site has beyond single campaigns and cells: figures, tables, comparisons, trends, feed, badges."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from interop import attempt_reports, reports
from interop.model import TestCase
from interop.sheets import Sheet, Unit, render
from interop.site import address, figures
from interop.site.badges import badge, badge_picture
from interop.site.campaign_pages import Site
from interop.site.campaigns import Campaign
from interop.statistics import comparison, history
from interop.statistics.samples import ABOUT_THE_PAIR, GOODPUT
from interop.tables import printable
from interop.units import mbit_per_s

MOST_COMPARED = 10
"""The newest campaigns, of which any two are compared; older ones are compared with their neighbours."""
MOST_DOTS = 16
"""Campaigns up to which each has a dot of its own in a course."""
MOST_COURSES = 60
"""Campaigns that trends look back on."""


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
        attempt_reports.attempts(campaign.results, campaign.results.manifest.test_cases),
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
    found = figures.find(campaign.directory)
    for figure in found:
        for path in figure.forms:
            site.put(page.parent / path.name, path.read_bytes())
    groups = figures.grouped(found)
    site.show(page, "figures.html", campaign, "Figures", groups=groups)


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
        return replace(reports.comparison(self.found, "before", "after"), title=self.title)

    @property
    def all(self) -> Sheet:
        """Every pair that both have."""
        found = replace(self.found, pairs=tuple(self.both), groups=())
        sheet = reports.comparison(found, "before", "after", everything=True)
        return replace(sheet, name="all", title=self.title, notes=())

    @property
    def title(self) -> str:
        """When both began."""
        return " → ".join(printable(each.results.manifest.started) for each in (self.before, self.after))

    @property
    def both(self) -> list[comparison.PairChange]:
        """Pairs of which both campaigns say something."""
        return [pair for pair in self.found.pairs if pair.change is not comparison.Change.ABSENT]

    @property
    def better(self) -> list[comparison.PairChange]:
        """Implementations and pairs that got better."""
        return [pair for pair in (*self.found.groups, *self.found.pairs) if pair.change in comparison.BETTER]

    @property
    def worse(self) -> list[comparison.PairChange]:
        """Implementations and pairs that got worse."""
        return [pair for pair in (*self.found.groups, *self.found.pairs) if pair.change in comparison.WORSE]


def write_all(site: Site) -> None:
    """Comparisons, trends, feed and badges."""
    compared = [each for two in _twos(site.campaigns) if (each := _compared(*two)).both]
    for each in compared:
        tables = [each.sheet, each.all]
        for sheet in tables:
            _forms(site, each.address.parent, sheet)
        values: dict[str, Any] = {"compared": each, "tables": [shown(sheet) for sheet in tables]}
        site.show(each.address, "comparison.html", None, "Compare", **values)
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
class Dot:
    """A campaign in a course: where in the small picture, what it says, and the page that tells more."""

    x: float
    y: float
    words: str
    address: str
    good: bool


@dataclass(frozen=True)
class Trend:
    """A course with its line in a small picture: 200 wide, 40 high."""

    course: history.Course
    line: str
    marks: tuple[float, ...]
    """Where images changed."""
    dots: tuple[Dot, ...]
    last: float | None


def _trends(site: Site) -> None:
    looked_at = site.campaigns[:MOST_COURSES]
    results = history.ordered([each.results for each in looked_at])
    by_id = {each.results.manifest.id: each for each in looked_at}
    ordered = [by_id[each.manifest.id] for each in results]
    cases = {case.name: case for each in results for case in each.manifest.test_cases}
    measured = {case.name for each in looked_at for case in each.measurements}
    dates = [printable(each.manifest.started)[:16].replace("T", " ") for each in results]
    tables: list[tuple[TestCase, list[Trend]]] = []
    shown_cases = [case for name, case in cases.items() if name in measured]
    by_server = history.jointly(*(history.server_courses(results, case.name, GOODPUT) for case in shown_cases))
    for case, servers in zip(shown_cases, by_server, strict=True):
        matrices = [str(address.campaign(each.folder)) for each in ordered]
        tables.append((case, [trend(each, dates, matrices) for each in servers]))
        pairs = [
            trend(each, dates, [_cell_page(campaign, each.name, case.name) for campaign in ordered])
            for each in history.pair_courses(results, case.name, GOODPUT)
        ]
        page = PurePosixPath("trends", case.name, "index.html")
        site.show(page, "trend.html", None, "Trends", case=case, trends=pairs, dates=dates)
    site.show(address.TRENDS, "trends.html", None, "Trends", tables=tables, dates=dates)


def _cell_page(campaign: Campaign, pair: Sequence[str], case: str) -> str:
    """Address of a pair's page in a campaign; empty if it has none."""
    server, client = pair
    if (server, client, case) not in campaign.cells:
        return ""
    place = address.cell(campaign.results.manifest, server, client, case)
    return f"runs/{campaign.folder}/{place}/index.html"


def trend(course: history.Course, dates: Sequence[str], pages: Sequence[str]) -> Trend:
    """A course as a picture; ``dates`` and ``pages`` (addresses from the root) of its campaigns."""
    known = [mean for mean in course.means if mean is not None]
    top, last = max(known, default=1.0) or 1.0, max(len(course.means) - 1, 1)
    dots = []
    for at, (mean, fate) in enumerate(zip(course.means, course.fates, strict=True)):
        if mean is None and fate not in ABOUT_THE_PAIR:
            continue
        x, y = 200 * at / last, 36 - 32 * (mean or 0.0) / top
        told = fate.value if mean is None else mbit_per_s(mean)
        dots.append(Dot(round(x, 1), round(y, 1), f"{dates[at]}: {told}", pages[at], mean is not None))
    line = " ".join(f"{dot.x:g},{dot.y:g}" for dot in dots if dot.good)
    marks = tuple(round(200 * mark / last, 1) for mark in course.marks)
    few = dots if len(dots) <= MOST_DOTS else [dot for dot in dots if not dot.good or dot is dots[-1]]
    return Trend(course, line, marks, tuple(few), known[-1] if known else None)


def _badges(site: Site, campaign: Campaign) -> None:
    for each in campaign.results.manifest.implementations:
        found = badge(campaign, each.name)
        site.put(PurePosixPath("badge", f"{each.folder}.json"), json.dumps(found).encode())
        site.put(PurePosixPath("badge", f"{each.folder}.svg"), badge_picture(site.renderer, found))
