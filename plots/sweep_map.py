"""A metric over the one swept key of a family as a map: a row per pair, a column per value; ``sweep`` draws lines."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from quicsat.model.family import Family, SweptValue
from quicsat.model.results import Pair
from quicsat.model.test_case import TestCase
from quicsat.plots.base import (
    MOST_ROWS,
    Drawing,
    Group,
    Panel,
    Plot,
    in_parts,
    nonempty,
    room,
    sentences,
    single_panel,
    stem,
)
from quicsat.plots.metric_axis import metric_axis
from quicsat.plots.sweep import Axis, axes_of, draw_map, map_cell, numbers_in_words, pairs_of, swept_value
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.intervals import of_repetitions
from quicsat.statistics.overview import by_family
from quicsat.statistics.samples import GOODPUT, Sample

Samples = Mapping[tuple[SweptValue, ...], Sample]
"""Of a pair, by the values of the axis."""


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per family with one swept key; colours share one scale unless the request has ``own_scale``."""
    found = [
        (campaign, cases, axes[0])
        for campaign in request.campaigns
        for cases in by_family(request.measured(campaign.results)).values()
        if len(axes := [axis for axis in axes_of(cases) if len(axis.values) > 1]) == 1
    ]
    highest = max((mean for each in found for mean in _means(request, *each)), default=0.0)
    drawings = [
        drawing
        for campaign, cases, axis in found
        for drawing in _pictures(request, campaign, cases, axis, 0.0 if request.own_scale else highest)
    ]
    return nonempty(drawings, "no family with one swept key has a successful run.")


def _means(request: PlotRequest, campaign: CampaignResults, cases: Sequence[TestCase], axis: Axis) -> Iterator[float]:
    pairs = pairs_of(request, campaign, {(swept_value(case, axis.key),): case for case in cases})
    for mine in pairs.values():
        yield from (mean.value for each in mine.values() if (mean := of_repetitions(each.values)))


def _pictures(
    request: PlotRequest, campaign: CampaignResults, cases: Sequence[TestCase], axis: Axis, highest: float
) -> Iterator[Drawing]:
    pairs = pairs_of(request, campaign, {(swept_value(case, axis.key),): case for case in cases})
    own = max(_means(request, campaign, cases, axis), default=0.0)
    family = next(case.family for case in cases if case.family)
    for part, some in in_parts(pairs, MOST_ROWS) if own else ():
        name = stem(request, campaign, request.metric, family.abbreviation, part)
        yield _drawing(request, name, family, axis, some, highest or own)


def _drawing(
    request: PlotRequest, name: str, family: Family, axis: Axis, pairs: Mapping[Pair, Samples], highest: float
) -> Drawing:
    number = metric_axis(request, GOODPUT)
    rows = [
        map_cell(axis.values.index(key[0]), row, sample)
        for row, mine in enumerate(pairs.values())
        for key, sample in mine.items()
    ]
    facts: dict[str, Any] = {
        "columns": axis.texts(), "rows": [", ".join(pair) for pair in pairs], "x": axis.label,
        "y": "server, client", "highest": highest, "size": number.size, "label": f"mean {number.label}",
        "left": True, "last": True, "title": "",
    }  # fmt: skip
    scale = "in this sweep" if request.own_scale else "in any sweep"
    return Drawing(
        name,
        f"{family.abbreviation}: {number.words} by {axis.key}",
        sentences(
            f"Each cell shows the mean {number.words} of a pair. Lighter colours mean lower values; the scale is "
            f"relative to the highest value {scale}",
            numbers_in_words(pairs),
            "T means that at least one repetition timed out, and × that at least one failed",
        ),
        single_panel(Panel(rows, facts)),
        (2.6 + 0.55 * len(axis.values) + room(facts["rows"]), max(2.4, 1.5 + 0.32 * len(pairs))),
    )


PLOT = Plot("sweep-map", "Sweeps as maps", Group.PAIRS, "results", table, draw_map)
