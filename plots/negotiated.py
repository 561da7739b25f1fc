"""A metric against a negotiated fact, such as goodput against the flow-control window: a point per pair and value."""

from collections.abc import Sequence
from math import log
from textwrap import fill
from typing import Any

from quicsat.model.names import VARIANT_SIGN
from quicsat.model.negotiated import UNITS, fact_in_words
from quicsat.model.results import Pair
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.model.units import KIB, MIB, byte_size
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import (
    FEW,
    OF_MANY,
    Drawing,
    Group,
    Panel,
    Plot,
    pair_style,
    per_case,
    sentences,
    single_panel,
    spread_of,
    stem,
)
from quicsat.plots.metric_axis import metric_axis
from quicsat.plots.sweep import draw_lines, values_of
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.facts import check_fact, fact_of
from quicsat.statistics.intervals import Mean, of_repetitions
from quicsat.statistics.samples import GOODPUT, value_of

USUAL = "client.initial_max_data"
CLOSE = 0.12
"""A value that is nearer to the one before, as a share of the axis, has no tick."""
NO_LIMIT = 2**40
BEYOND = 4
"""Values from ``NO_LIMIT`` on, such as QUIC's largest integer, limit nothing: at so many times the largest limit."""
LETTERS = 16
"""Of a line below a tick."""
WIDE = 10
"""Numbers whose largest is more than this multiple of the smallest have a logarithmic axis."""


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per test case whose runs differ in the fact."""
    check_fact(request.over or USUAL)
    return per_case(_drawing, f"no test case has runs that differ in {request.over or USUAL}.")(request)


def _drawing(request: PlotRequest, campaign: CampaignResults, case: TestCase) -> Drawing | None:
    fact, number = request.over or USUAL, metric_axis(request, GOODPUT)
    groups: dict[tuple[str, str], dict[int | str, list[float]]] = {}
    without = 0
    for result in campaign.results.results:
        value, found = value_of(result, number.name), fact_of(result, fact)
        if result.test_case != case.name or value is None:
            continue
        if found is None:
            without += 1
        else:
            groups.setdefault(_base(result.server, result.client), {}).setdefault(found, []).append(value)
    values = {found for mine in groups.values() for found in mine}
    if len(values) < 2:
        return None
    axis = _axis(values, fact)
    rows: list[tuple[str, list[tuple[float, Mean]], theme.Style]] = []
    for pair, mine in groups.items():
        means = ((axis["places"][found], of_repetitions(each)) for found, each in mine.items())
        points = sorted((place, mean) for place, mean in means if mean is not None)
        first = next(each for each in campaign.results.planned if _base(*each) == pair)
        rows.append((", ".join(pair), points, pair_style(campaign.results, first)))
    runs = sum(len(each) for mine in groups.values() for each in mine.values())
    caption = sentences(
        f"The figure shows the mean {number.words} of each server and client over all of their variants, for n = "
        f"{counted(runs, 'successful repetition')}",
        OF_MANY if len(rows) > FEW else "",
        f"Not shown: {without} without a readable handshake" if without else "",
    )
    return Drawing(
        stem(request, campaign, request.metric, request.over.replace(".", "-"), case.abbreviation),
        f"{case.abbreviation}: {number.words} against {fact_in_words(fact).partition(' [')[0]}",
        caption,
        single_panel(Panel(rows, {**axis, "all": spread_of(values_of(rows)), "y": number.label, "size": number.size})),
    )


def _axis(values: set[int | str], fact: str) -> dict[str, Any]:
    """Label of the axis, and where on it each value is; bytes have their units at the ticks, words are side by side."""
    label, unit = fact_in_words(fact), UNITS.get(fact.partition(".")[2], "")
    numbers = [value for value in values if isinstance(value, int)]
    if len(numbers) < len(values):
        words = {word: float(place) for place, word in enumerate(sorted(map(str, values)))}
        ticks = {place: fill(word, LETTERS) for word, place in words.items()}
        return {"x": label, "ticks": ticks, "places": words, "logarithmic": False}
    ordered = sorted(numbers)
    limits = [value for value in ordered if value < NO_LIMIT]
    beyond = BEYOND * limits[-1] if limits else 1
    places = {value: float(value if value < NO_LIMIT else beyond) for value in ordered}
    logarithmic = ordered[0] > 0 and places[ordered[-1]] > WIDE * ordered[0]
    apart = [log(places[value]) if logarithmic else places[value] for value in ordered]
    ticks = {places[ordered[0]]: _tick(ordered[0], unit)}
    last = apart[0]
    for value, place in zip(ordered, apart, strict=True):
        if place - last > CLOSE * (apart[-1] - apart[0]):
            ticks[places[value]], last = _tick(value, unit), place
    return {"x": label.replace(" [B]", ""), "ticks": ticks, "places": places, "logarithmic": logarithmic}


def _tick(value: int, unit: str) -> str:
    """``24 MiB``, and ``1472 B`` where another unit would need a fraction."""
    if value >= NO_LIMIT:
        return "no limit"
    if unit != "B":
        return str(value)
    return f"{value} B" if value % KIB and value < MIB else byte_size(value)


def _base(server: str, client: str) -> Pair:
    """Both without the names of variants."""
    return server.partition(VARIANT_SIGN)[0], client.partition(VARIANT_SIGN)[0]


def draw(ax: Axes, panel: Panel) -> None:
    """Lines through the means, with intervals where there are repetitions."""
    if panel.facts["logarithmic"]:
        ax.set_xscale("log")
    draw_lines(ax, panel, panel.facts["ticks"])


PLOT = Plot("negotiated", "Negotiated parameters", Group.PAIRS, "results", table, draw)
