"""Distribution of the efficiency, or another number, of each pair in a test case: one line per pair."""

from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.plots import cdf
from quicsat.plots.base import (
    Drawing,
    Group,
    Panel,
    Plot,
    failures_in_words,
    pair_style,
    per_case,
    sentences,
    single_panel,
    stem,
)
from quicsat.plots.metric_axis import metric_axis
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.samples import EFFICIENCY, left_out, samples

MOST = 12
"""Pairs whose lines can be told apart."""


def _drawing(request: PlotRequest, campaign: CampaignResults, case: TestCase) -> Drawing | None:
    shown = metric_axis(request, EFFICIENCY)
    many = samples(campaign.results, case.name, shown.name)
    rows = [
        cdf.row(request, shown, f"{each.server}, {each.client}", [each], pair_style(campaign.results, each.pair))
        for each in many
        if shown.values(request, each)
    ]
    if not any(each.values for each in many) or len(rows) > MOST:
        return None
    failed = sum(each.failed for each in rows)
    caption = sentences(
        f"Each line shows the n repetitions of a pair (server, client), n = {sum(len(each.values) for each in rows)} "
        f"of {counted(len(rows), 'pair')} in total; {failures_in_words(failed, without=not shown.zeros(request))}",
        f"Not shown: {lost}" if (lost := left_out(many)) else "",
    )
    return Drawing(
        stem(request, campaign, request.metric, case.abbreviation),
        f"{case.abbreviation}: {shown.words} of each pair",
        caption,
        single_panel(Panel(rows, {**cdf.facts(request, shown), "whole": False})),
        (6.4, 3.6 + 0.12 * len(rows)),
    )


PLOT = Plot(
    "cdf-pairs", "Distribution of the efficiency of each pair", Group.DISTRIBUTIONS, "results",
    per_case(_drawing, f"no test case has results of 1 to {MOST} pairs. Select pairs with --pair."), cdf.draw,
)  # fmt: skip
