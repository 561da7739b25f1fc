"""What has become of each cell in the last campaigns: a line of blocks for its matrix; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quicsat.model.results import ResultSet
from quicsat.model.text import printable
from quicsat.site.campaigns import Key, SiteCampaign
from quicsat.site.matrix_cell_text import goodput
from quicsat.statistics.history import Step, Trend, outcome_trends, pair_trends
from quicsat.statistics.samples import CONCLUSIVE, GOODPUT

SHOWN = 8
"""Campaigns that a line goes back, that of the matrix included."""
BLOCKS = "▁▂▃▄▅▆▇█"
FAILED, ABSENT, STEP = "×", "\N{NO-BREAK SPACE}", "│"


@dataclass(frozen=True)
class Past:
    """The last campaigns of a cell."""

    line: str
    """A block per campaign, from 0 to the largest mean among them; ``×`` without success, ``│`` before a step.

    Never empty and without a space: the start page has it in an attribute without quotes, which saves 2 kB.
    """
    steps: str
    """``2026-11-20: 16.0 → 8.00 Mbit/s``; empty without a step."""


@dataclass(frozen=True, eq=False)
class Trends:
    """Campaigns of one clock in the order of their dates, and what became of their pairs."""

    campaigns: tuple[SiteCampaign, ...]
    results: tuple[ResultSet, ...]
    """Goodput of the measurements of each."""
    of_pairs: Mapping[str, Sequence[Trend]]
    """By measurement; each trend is as long as there are campaigns."""
    of_tests: Mapping[str, Sequence[Trend]]
    """By functional test, the same without goodput."""


def pasts(trends: Trends) -> dict[str, dict[Key, Past]]:
    """The past of each cell of each campaign, by the campaign's folder; cells without a past are left out."""
    campaigns = trends.campaigns
    dates = [printable(each.manifest.started)[:10] for each in campaigns]
    found: dict[str, dict[Key, Past]] = {each.folder: {} for each in campaigns}
    for case, many in trends.of_pairs.items():
        for trend in many:
            server, client = trend.name
            steps = {step.at: step for step in trend.steps}
            for at, campaign in enumerate(campaigns):
                if (server, client, case) in campaign.brief.keys and (past := _past(trend, steps, dates, at)):
                    found[campaign.folder][server, client, case] = past
    return found


def trends_of(campaigns: Sequence[SiteCampaign]) -> Trends:
    """The trends of all pairs of campaigns of one clock, in any order."""
    in_order = tuple(sorted(campaigns, key=lambda each: (each.manifest.started, each.manifest.id)))
    results = tuple(each.brief.measured() for each in in_order)
    measured = dict.fromkeys(case.name for each in campaigns for case in each.measurements)
    of_pairs = {case: pair_trends(results, case, GOODPUT) for case in measured}
    tests = dict.fromkeys(case.name for each in campaigns for case in each.manifest.test_cases if case.functional)
    images = [{name: facts.id for name, facts in each.manifest.images.items()} for each in in_order]
    of_tests = {name: outcome_trends([each.brief.tests.get(name, {}) for each in in_order], images) for name in tests}
    return Trends(in_order, results, of_pairs, of_tests)


def _past(trend: Trend, steps: Mapping[int, Step], dates: Sequence[str], at: int) -> Past | None:
    window = range(max(0, at + 1 - SHOWN), at + 1)
    means = {number: mean for number in window if (mean := trend.means[number]) is not None}
    if sum(trend.outcomes[number] in CONCLUSIVE or number in means for number in window) < 2:
        return None
    top = max(means.values(), default=0.0) or 1.0
    line, told = "", []
    for number in window:
        step = steps.get(number)
        if step and line:
            line += STEP
            told.append(f"{dates[number]}: {goodput(step.before)} → {goodput(step.after)} Mbit/s")
        if number in means:
            line += BLOCKS[round(means[number] / top * (len(BLOCKS) - 1))]
        else:
            line += FAILED if trend.outcomes[number] in CONCLUSIVE else ABSENT
    return Past(line, "; ".join(told))
