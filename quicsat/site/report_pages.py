"""Writes what the site has beyond single campaigns and cells: figures, tables, comparisons, trends, feed, badges."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from quicsat.model.test_case import TestCase
from quicsat.model.text import counted, printable
from quicsat.model.units import mbit_per_s
from quicsat.report import attempt_tables, campaign_tables, release_tables, time_share_tables
from quicsat.report.comparison_lines import line
from quicsat.report.parity_table import parity
from quicsat.report.table import Table, Unit, render
from quicsat.site import address, figures, recent
from quicsat.site.badges import badge, badge_picture
from quicsat.site.campaign_pages import History
from quicsat.site.campaigns import Key, SiteCampaign
from quicsat.site.construction import PARITY, RELEASES, Site
from quicsat.site.matrix_cell_text import BY_KEY, MISSING
from quicsat.site.pages import day
from quicsat.site.recent import Past, Trends
from quicsat.site.since import sentence
from quicsat.statistics import comparison, history
from quicsat.statistics.comparison import Goodputs
from quicsat.statistics.parity import has_both_transports
from quicsat.statistics.previous import LOOKED_BACK, most_alike
from quicsat.statistics.releases import has_releases, implementations_with_releases, release_steps
from quicsat.statistics.samples import CONCLUSIVE, GOODPUT, PairOutcome

MOST_COMPARED = 8
"""How many of the newest campaigns are compared with each other: a night with those of the week before it. Older ones
are compared only with their neighbours."""
MOST_DOTS = 16
"""Campaigns up to which each has a dot of its own in a trend."""
MOST_OUTCOMES = 30
"""Campaigns that the past of a functional test shows."""
MOST_CAMPAIGNS = 60
"""Campaigns that trends look back on."""
MOST_ROWS = 1000
"""Of a table that a page shows, and up to which it is there as Markdown and LaTeX, too."""
_FORMS = (("csv", "csv", "CSV"), ("md", "markdown", "Markdown"), ("tex", "latex", "LaTeX"))
"""Suffix, form and name."""
_MOST_LINES = 20
"""Pairs of a comparison that the feed names."""


# ---- of one campaign ------------------------------------------------------------------------


def write(site: Site, campaign: SiteCampaign) -> None:
    """Figures, tables, releases, and QUIC beside TCP, of a campaign."""
    _figures(site, campaign)
    if has_releases(campaign.manifest):
        _releases(site, campaign)
    if has_both_transports(campaign.manifest):
        _parity(site, campaign)
    cases = campaign.measurements
    shares = time_share_tables.time_shares(campaign.results, cases)
    tables = [
        campaign_tables.summary(campaign.results, cases),
        campaign_tables.implementations(campaign.results, cases),
        campaign_tables.variance(campaign.results, cases),
        campaign_tables.congestion(campaign.results.manifest.implementations),
        campaign_tables.pairs(campaign.results, cases),
        *([shares] if shares.rows else []),
        attempt_tables.attempts(campaign.results, campaign.results.manifest.test_cases),
    ]
    page = address.campaign(campaign.folder, "tables")
    for table in tables:
        _put(site, page.parent, table)
    site.show(page, "tables.html", campaign, "Tables", tables=[shown(table) for table in tables])


def _put(site: Site, folder: PurePosixPath, table: Table) -> None:
    for suffix, form, _ in _forms_of(table):
        site.put(folder / f"{table.name}.{suffix}", render(table, form).encode("utf-8", "replace") + b"\n")


def _forms_of(table: Table) -> Sequence[tuple[str, str, str]]:
    return _FORMS if len(table.rows) <= MOST_ROWS else _FORMS[:1]


def shown(table: Table) -> dict[str, Any]:
    """A table for its template: the rows that its page has, a flag per column that is true for words, and files."""
    return {
        "table": table,
        "rows": table.rows[:MOST_ROWS],
        "words": [column.unit is Unit.WORDS for column in table.columns],
        "files": [(name, f"{table.name}.{suffix}") for suffix, _, name in _forms_of(table)],
    }


def _figures(site: Site, campaign: SiteCampaign) -> None:
    """What `./run.py plot` has drawn into the campaign's directory; the page says so if there is nothing."""
    page = address.campaign(campaign.folder, "figures")
    found = figures.find(campaign.directory)
    for figure in found:
        for path in figure.forms:
            site.put(page.parent / path.name, figures.content(path))
    groups = figures.grouped(found, site.headings)
    site.show(page, "figures.html", campaign, "Figures", groups=groups)


def _releases(site: Site, campaign: SiteCampaign) -> None:
    """The history of each implementation with several releases: its figures, and tables as ``history`` prints them."""
    page, drawn, histories = address.campaign(campaign.folder, RELEASES), figures.find(campaign.directory), []
    for name in implementations_with_releases(campaign.results):
        found = release_steps(campaign.results, name, campaign.measurements)
        tables = [
            release_tables.steps(name, found),
            release_tables.goodput(campaign.results, name, campaign.measurements),
            release_tables.built(campaign.results, name, {}, {}),
        ]
        tables = [replace(each, name=f"{each.name}-{name}") for each in tables]
        for table in tables:
            _put(site, page.parent, table)
        stems = {f"{RELEASES}-{name}-{case.abbreviation}" for case in campaign.measurements}
        pictures = [each for each in drawn if each.stem in stems]
        histories.append({"name": name, "figures": pictures, "tables": [shown(table) for table in tables]})
    site.show(page, "releases.html", campaign, "Releases", histories=histories)


def _parity(site: Site, campaign: SiteCampaign) -> None:
    """Times over QUIC relative to TCP: figures, and the table as ``tables`` prints it."""
    page, table = address.campaign(campaign.folder, PARITY), parity(campaign.results, campaign.measurements)
    _put(site, page.parent, table)
    drawn = [each for each in figures.find(campaign.directory) if each.stem.partition("-")[0] == PARITY]
    found = {"name": PARITY, "figures": drawn, "tables": [shown(table)]}
    site.show(page, "parity.html", campaign, "QUIC and TCP", histories=[found])


# ---- of several -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """Two campaigns side by side: what other pages tell of it."""

    before: SiteCampaign
    after: SiteCampaign
    both: int
    """Pairs with a conclusive result in both campaigns; there is a page if there are any."""
    worse: int
    """Implementations and pairs that got worse."""
    better: int
    perhaps: int
    """Pairs that may have got worse."""
    since: str
    """What changed, as a sentence."""
    lines: tuple[str, ...]
    """Some of what got worse, and better, and the images that changed, a line each."""

    @property
    def changed(self) -> int:
        """Implementations and pairs that changed, or may have got worse."""
        return self.worse + self.better + self.perhaps

    @property
    def address(self) -> PurePosixPath:
        """Of its page."""
        return PurePosixPath("compare", self.before.folder, self.after.folder, "index.html")

    @property
    def plain(self) -> dict[str, Any]:
        """What ``remembered`` needs, as JSON."""
        return {name: getattr(self, name) for name in ("both", "worse", "better", "perhaps", "since", "lines")}


def remembered(before: SiteCampaign, after: SiteCampaign, plain: Mapping[str, Any]) -> Compared:
    """A comparison that an earlier build has made, from its ``plain``. Raises one of ``brief.DAMAGED``."""
    both, worse, better, perhaps = (int(plain[name]) for name in ("both", "worse", "better", "perhaps"))
    return Compared(before, after, both, worse, better, perhaps, str(plain["since"]), tuple(map(str, plain["lines"])))


def compare(site: Site, before: SiteCampaign, after: SiteCampaign, first: Goodputs, second: Goodputs) -> Compared:
    """Compare two campaigns by their goodputs; a page is written if they have pairs in common."""
    found = comparison.of_goodputs(first, second, before.manifest.test_cases)
    both = tuple(pair for pair in found.pairs if pair.change not in comparison.WITHOUT_RESULT)
    changed = (*found.groups, *found.pairs)
    worse = [pair for pair in changed if pair.change in comparison.WORSE]
    better = [pair for pair in changed if pair.change in comparison.BETTER]
    perhaps = [pair for pair in changed if pair.perhaps_worse]
    compared = Compared(
        before,
        after,
        len(both),
        len(worse),
        len(better),
        len(perhaps),
        sentence(found, day(before.started)),
        (
            *map(line, [*worse, *perhaps, *better][:_MOST_LINES]),
            *(f"Image that changed: {each}" for each in found.changed_images),
            *found.unlike,
            *([found.unfinished] if found.unfinished else []),
        ),
    )
    if both:
        title = " → ".join(printable(each.manifest.started) for each in (before, after))
        everything = campaign_tables.comparison(
            replace(found, pairs=both, groups=()), "before", "after", everything=True
        )
        tables = [
            replace(campaign_tables.comparison(found, "before", "after"), title=title),
            replace(everything, name="all", title=title, notes=()),
        ]
        for table in tables:
            _put(site, compared.address.parent, table)
        values: dict[str, Any] = {"compared": compared, "tables": [shown(table) for table in tables]}
        values |= {"blind": found.blind, "method": address.campaign(after.folder, "method")}
        site.show(compared.address, "comparison.html", None, "Compare", **values)
    return compared


def trends_by_clock(campaigns: Sequence[SiteCampaign]) -> list[Trends]:
    """The trends of the newest campaigns of each clock, those of the newest campaign first."""
    return [recent.trends_of(alike[:MOST_CAMPAIGNS]) for alike in _by_clock(campaigns)]


def histories(
    campaigns: Sequence[SiteCampaign], compared: Sequence[Compared], trends: Sequence[Trends]
) -> dict[str, History]:
    """What the start page of each campaign says of earlier ones, by its folder; ``campaigns``: newest first."""
    past: dict[str, dict[Key, Past]] = {}
    since: dict[str, Compared] = {}
    settled = set[str]()
    for each in trends:
        past |= recent.pasts(each)
    for alike in _by_clock(campaigns):
        if len(alike) > MOST_CAMPAIGNS:
            settled |= {each.folder for each in alike[MOST_CAMPAIGNS - recent.SHOWN + 1 :]}
    chosen = before(campaigns)
    for two in compared:
        if chosen.get(two.after.folder) is two.before:
            since[two.after.folder] = two
    found = {}
    for campaign in campaigns:
        words = History(past.get(campaign.folder, {}), settled=campaign.folder in settled)
        if other := since.get(campaign.folder):
            told = " ".join((other.since, *_incomplete(campaigns, other)))
            words = replace(words, since=told, comparison=other.address)
        found[campaign.folder] = words
    return found


def write_all(site: Site, compared: Sequence[Compared], trends: Trends) -> None:
    """The list of comparisons, the page for two cells side by side, trends, feed and badges."""
    site.show(address.COMPARISONS, "comparisons.html", None, "Compare", compared=compared)
    site.show(address.SIDE_BY_SIDE, "side.html", None, "Compare", uplot=site.uplot)
    _trends(site, trends)
    chosen = before(site.campaigns)
    entries = [each for each in compared if chosen.get(each.after.folder) is each.before and each.changed]
    updated = site.campaigns[0].started
    site.put(address.FEED, site.renderer.page("feed.xml", entries=entries[:30], updated=updated))
    _badges(site, site.campaigns[0])


def _by_clock(campaigns: Sequence[SiteCampaign]) -> list[list[SiteCampaign]]:
    """The campaigns of each clock, in their order."""
    times = dict.fromkeys(each.time for each in campaigns)
    return [[each for each in campaigns if each.time == time] for time in times]


def before(campaigns: Sequence[SiteCampaign]) -> dict[str, SiteCampaign]:
    """The earlier campaign with which each is compared, by its folder; see ``quicsat.statistics.previous``."""
    found = {}
    for alike in _by_clock(campaigns):
        for number, later in enumerate(alike):
            earlier = alike[number + 1 : number + 1 + LOOKED_BACK]
            at = most_alike(later.brief.conclusive, [each.brief.conclusive for each in earlier])
            if at is not None:
                found[later.folder] = earlier[at]
    return found


def _incomplete(campaigns: Sequence[SiteCampaign], two: Compared) -> Iterator[str]:
    """A sentence for each campaign between two of one clock that did not end."""
    for each in campaigns[campaigns.index(two.after) + 1 : campaigns.index(two.before)]:
        made, planned = each.brief.runs, each.manifest.planned_runs
        if each.time == two.after.time and (each.finished is None or made < planned):
            runs = f"{made} of {counted(planned, 'run')}"
            yield f"The campaign of {day(each.started)} is incomplete ({runs}) and was left out."


def twos(campaigns: Sequence[SiteCampaign]) -> list[tuple[SiteCampaign, SiteCampaign]]:
    """Which campaigns are compared: (earlier, later), the newest first; only those of one clock."""
    found: list[tuple[SiteCampaign, SiteCampaign]] = []
    chosen = before(campaigns)
    for alike in _by_clock(campaigns):
        newest = alike[:MOST_COMPARED]
        found += [(earlier, later) for number, later in enumerate(newest) for earlier in newest[number + 1 :]]
        older = {each.folder: each for each in alike[MOST_COMPARED - 1 :]}
        found += [(earlier, older[name]) for name, earlier in chosen.items() if name in older]
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Dot:
    """A campaign in a trend: position in the small picture, text, and address of its page."""

    x: float
    y: float
    words: str
    address: str
    good: bool


@dataclass(frozen=True)
class TrendRow:
    """A trend with its line in a small picture, 200 by 40 units."""

    trend: history.Trend
    line: str
    marks: tuple[float, ...]
    """Where images changed."""
    dots: tuple[Dot, ...]
    last: float | None


def _trends(site: Site, trends: Trends) -> None:
    results, ordered = trends.results, trends.campaigns
    time = ordered[0].time
    cases = {case.name: case for each in results for case in each.manifest.test_cases}
    dates = [printable(each.manifest.started)[:16].replace("T", " ") for each in results]
    tables: list[tuple[TestCase, list[TrendRow]]] = []
    shown_cases = [case for name, case in cases.items() if name in trends.of_pairs]
    by_server = history.with_joint_steps(*(history.server_trends(results, case.name, GOODPUT) for case in shown_cases))
    for case, servers in zip(shown_cases, by_server, strict=True):
        matrices = [str(address.campaign(each.folder)) for each in ordered]
        tables.append((case, [trend_row(each, dates, matrices) for each in servers]))
        pairs = [
            trend_row(each, dates, [_cell_page(campaign, each.name, case.name) for campaign in ordered])
            for each in trends.of_pairs[case.name]
        ]
        page = PurePosixPath("trends", case.name, "index.html")
        site.show(page, "trend.html", None, "Trends", case=case, trends=pairs, dates=dates, time=time)
    tests = [_trend_of_test(site, trends, name, dates) for name in trends.of_tests]
    site.show(address.TRENDS, "trends.html", None, "Trends", tables=tables, tests=tests, dates=dates, time=time)


def _trend_of_test(site: Site, trends: Trends, test: str, dates: Sequence[str]) -> dict[str, Any]:
    """Write the page of a functional test; what the list of all says of it."""
    pairs, ordered = trends.of_tests[test], trends.campaigns
    rows = [outcome_row(each, dates, [_cell_page(one, each.name, test) for one in ordered]) for each in pairs]
    flakes = history.sum_of_flakes(each.flakes for each in pairs)
    values: dict[str, Any] = {"test": test, "rows": rows, "flakes": flakes}
    page = PurePosixPath("trends", test, "index.html")
    site.show(page, "trend_of_test.html", None, "Trends", dates=dates, time=ordered[0].time, **values)
    return values | {"classes": history.in_words(history.count_classes(pairs))}


def _cell_page(campaign: SiteCampaign, pair: Sequence[str], case: str) -> str:
    """Address of a pair's page in a campaign; empty if it has none."""
    server, client = pair
    if (server, client, case) not in campaign.brief.keys and (server, client) not in campaign.brief.tests.get(case, {}):
        return ""
    place = address.cell(server, client, case)
    return f"runs/{campaign.folder}/{place}/index.html"


@dataclass(frozen=True)
class PastOutcome:
    """A campaign in the past of a pair in a functional test."""

    glyph: str
    words: str
    address: str
    """Of the pair's page in the campaign; only of the last campaign, and of those in which it did not succeed."""
    changed: bool
    """An image of the pair changed since the last campaign that had it."""


@dataclass(frozen=True)
class OutcomeRow:
    """The past of a pair in a functional test."""

    trend: history.Trend
    past: tuple[PastOutcome, ...]


def outcome_row(trend: history.Trend, dates: Sequence[str], pages: Sequence[str]) -> OutcomeRow:
    """The last ``MOST_OUTCOMES`` campaigns of a pair; ``dates`` and ``pages`` as in :func:`trend_row`."""
    last = len(dates) - 1
    past = []
    for number in range(max(0, len(dates) - MOST_OUTCOMES), len(dates)):
        outcome = trend.outcomes[number]
        page = pages[number] if number == last or outcome is not PairOutcome.SUCCEEDED else ""
        glyph = BY_KEY.get(outcome.value, BY_KEY[MISSING]).glyph
        past.append(PastOutcome(glyph, f"{dates[number]}: {outcome.value}", page, number in trend.marks))
    return OutcomeRow(trend, tuple(past))


def trend_row(trend: history.Trend, dates: Sequence[str], pages: Sequence[str]) -> TrendRow:
    """A trend as a picture; ``dates`` and ``pages`` (addresses from the root) are those of its campaigns."""
    known = [mean for mean in trend.means if mean is not None]
    top, last = max(known, default=1.0) or 1.0, max(len(trend.means) - 1, 1)
    dots = []
    for at, (mean, pair_outcome) in enumerate(zip(trend.means, trend.outcomes, strict=True)):
        if mean is None and pair_outcome not in CONCLUSIVE:
            continue
        x, y = 200 * at / last, 36 - 32 * (mean or 0.0) / top
        label = pair_outcome.value if mean is None else mbit_per_s(mean)
        dots.append(Dot(round(x, 1), round(y, 1), f"{dates[at]}: {label}", pages[at], mean is not None))
    line = " ".join(f"{dot.x:g},{dot.y:g}" for dot in dots if dot.good)
    marks = tuple(round(200 * mark / last, 1) for mark in trend.marks)
    few = dots if len(dots) <= MOST_DOTS else [dot for dot in dots if not dot.good or dot is dots[-1]]
    return TrendRow(trend, line, marks, tuple(few), known[-1] if known else None)


def _badges(site: Site, campaign: SiteCampaign) -> None:
    for each in campaign.results.manifest.implementations:
        found = badge(campaign, each.name)
        site.put(PurePosixPath("badge", f"{each.folder}.json"), json.dumps(found).encode())
        site.put(PurePosixPath("badge", f"{each.folder}.svg"), badge_picture(site.renderer, found))
