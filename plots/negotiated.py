"""A metric against a negotiated fact, such as goodput against the flow-control window: a point per pair and value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from quicsat.model.negotiated import UNITS, fact_in_words
from quicsat.model.results import RunResult
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.model.units import KIB
from quicsat.plots import theme
from quicsat.plots.base import Drawing, Group, Panel, Plot, per_case, sentences, single_panel, stem
from quicsat.plots.metric_axis import metric_axis
from quicsat.plots.sweep import draw_intervals
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.facts import check_fact, fact_of
from quicsat.statistics.intervals import Mean, of_repetitions
from quicsat.statistics.samples import GOODPUT, value_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

USUAL = "client.initial_max_data"
FEW = 8
"""Pairs that have a colour and an entry of the legend each, and values that have a tick each."""
WIDE = 10
"""Numbers whose largest is more than this multiple of the smallest have a logarithmic axis."""


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per test case whose runs differ in the fact."""
    check_fact(request.over or USUAL)
    return per_case(_drawing, f"no test case has runs over QUIC that differ in {request.over or USUAL}.")(request)


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
            groups.setdefault(_base(result), {}).setdefault(found, []).append(value)
    values = {found for mine in groups.values() for found in mine}
    if len(values) < 2:
        return None
    axis = _axis(values, fact)
    rows: list[tuple[str, list[tuple[float, Mean]]]] = []
    for pair, mine in groups.items():
        means = ((axis["places"][found], of_repetitions(each)) for found, each in mine.items())
        rows.append((", ".join(pair), sorted((place, mean) for place, mean in means if mean is not None)))
    runs = sum(len(each) for mine in groups.values() for each in mine.values())
    caption = sentences(
        f"The figure shows the mean {number.words} of each server and client over all of their variants, for n = "
        f"{counted(runs, 'successful repetition')}",
        f"Not shown: {without} without a readable handshake" if without else "",
    )
    return Drawing(
        stem(request, campaign, request.metric, request.over.replace(".", "-"), case.abbreviation),
        f"{case.abbreviation}: {number.words} against {fact_in_words(fact).partition(' [')[0]}",
        caption,
        single_panel(Panel(rows, {**axis, "y": number.label, "size": number.size})),
    )


def _axis(values: set[int | str], fact: str) -> dict[str, Any]:
    """Label of the axis, and where on it each value is: bytes in KiB, words side by side."""
    label, unit = fact_in_words(fact), UNITS.get(fact.partition(".")[2], "")
    numbers = [value for value in values if isinstance(value, int)]
    if len(numbers) < len(values):
        words = sorted(map(str, values))
        return {"x": label, "texts": words, "places": {word: float(place) for place, word in enumerate(words)},
                "logarithmic": False}  # fmt: skip
    size = KIB if unit == "B" else 1
    ordered = sorted(numbers)
    return {
        "x": label.replace("[B]", "[KiB]"),
        "texts": [f"{value / size:.4g}" for value in ordered],
        "places": {value: value / size for value in ordered},
        "logarithmic": ordered[0] > 0 and ordered[-1] > WIDE * ordered[0],
    }


def _base(result: RunResult) -> tuple[str, str]:
    """Server and client without the names of variants."""
    return result.server.partition(":")[0], result.client.partition(":")[0]


def draw(ax: Axes, panel: Panel) -> None:
    """Lines through the means, with intervals where there are repetitions."""
    from matplotlib.ticker import FixedLocator, NullLocator

    facts, few = panel.facts, len(panel.rows) <= FEW
    for number, (pair, points) in enumerate(panel.rows):
        style = theme.of_position(number)
        colour = style.colour if few else theme.GREY
        ys = [mean.value / facts["size"] for _, mean in points]
        ax.plot([place for place, _ in points], ys, color=colour, linestyle=style.dash, marker=style.mark, markersize=4,
                label=pair)  # fmt: skip
        if few:
            draw_intervals(ax, points, facts["size"], colour)
    if facts["logarithmic"]:
        ax.set_xscale("log")
    if len(facts["texts"]) <= FEW:
        ax.xaxis.set_major_locator(FixedLocator(list(facts["places"].values())))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xticklabels(facts["texts"])
    ax.set(xlabel=facts["x"], ylabel=f"mean {facts['y']}")
    ax.set_ylim(bottom=0)
    if few:
        ax.legend(title="server, client")


PLOT = Plot("negotiated", "Negotiated parameters", Group.PAIRS, "results", table, draw)
