"""Goodput, or another metric, by date and by time of day, to show daily patterns of shared real links."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from quicsat.model.moments import moment
from quicsat.model.results import RunResult
from quicsat.model.text import counted
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import Drawing, Group, Panel, Plot, nonempty, sentences
from quicsat.plots.metric_axis import metric_axis
from quicsat.report.plot_request import PlotRequest
from quicsat.statistics.samples import GOODPUT, value_of

DAY, HOUR = 86400.0, 3600.0
BINS = 24
MANY = 300
"""Points of a test case from which on they are paler, and no longer vectors."""
FEWEST = 3
"""Repetitions in a stretch of the trend."""


def table(request: PlotRequest) -> Sequence[Drawing]:
    """One drawing over all campaigns: date at the left, hour of the day (UTC) at the right, on one scale."""
    rows = sorted(_rows(request))
    if not rows:
        return nonempty([], "no repetition has such a number and a date.")
    cases = list(dict.fromkeys(case for campaign in request.campaigns for case in
                               (each.abbreviation for each in request.measured(campaign.results))))  # fmt: skip
    first, last = rows[0][0], rows[-1][0]
    shown = metric_axis(request, GOODPUT)
    facts = {"label": shown.label, "size": shown.size, "cases": cases}
    panels = (
        _panel(rows, facts, lambda time: time, (first, max(last, first + 60)), "date"),
        _panel(rows, facts, lambda time: time % DAY / HOUR, (0.0, 24.0), "hour"),
    )
    several = "one campaign" if len(request.campaigns) == 1 else f"{len(request.campaigns)} campaigns"
    caption = sentences(
        f"The figure shows the n = {counted(len(rows), 'successful repetition')} of all pairs from "
        f"{several} at their start times "
        f"(UTC). Lines connect the medians of periods with at least {FEWEST} repetitions",
        f"Not shown: {lost} that did not succeed" if (lost := _lost(request)) else "",
    )
    title = f"{shown.words[0].upper()}{shown.words[1:]} over date and time of day"
    return [Drawing(request.metric, title, caption, (panels,), (7.2, 3.8), share_y=True)]


def _rows(request: PlotRequest) -> Iterator[tuple[float, str, float]]:
    shown = metric_axis(request, GOODPUT)
    for campaign in request.campaigns:
        names = {case.name: case.abbreviation for case in request.measured(campaign.results)}
        for result in campaign.results.results:
            value, time = value_of(result, shown.name), _moment(result)
            if result.test_case in names and value is not None and time is not None:
                yield time, names[result.test_case], value


def _lost(request: PlotRequest) -> int:
    shown = metric_axis(request, GOODPUT)
    names = [{case.name for case in request.measured(campaign.results)} for campaign in request.campaigns]
    return sum(
        value_of(result, shown.name) is None
        for campaign, wanted in zip(request.campaigns, names, strict=True)
        for result in campaign.results.results
        if result.test_case in wanted
    )


def _moment(result: RunResult) -> float | None:
    """Seconds since 1970."""
    found = moment(result.evidence.started)
    return None if found is None else found.timestamp()


def _panel(rows: Sequence[tuple[float, str, float]], facts: Mapping[str, Any], place: Callable[[float], float],
           span: tuple[float, float], kind: str) -> Panel:  # fmt: skip
    """A row per test case: its name, its points and its trend."""
    found = []
    for case in facts["cases"]:
        if points := [(place(time), value) for time, name, value in rows if name == case]:
            found.append((case, points, _trend(points, span)))
    return Panel(found, {**facts, "kind": kind})


def _trend(points: Sequence[tuple[float, float]], span: tuple[float, float]) -> list[tuple[float, float]]:
    """Middle and median of each stretch that has enough repetitions."""
    edges = np.linspace(*span, BINS + 1)
    found_in = np.clip(np.searchsorted(edges, [x for x, _ in points], "right") - 1, 0, BINS - 1)
    values = np.array([y for _, y in points])
    return [
        (float((edges[number] + edges[number + 1]) / 2), float(np.median(values[found_in == number])))
        for number in range(BINS)
        if int((found_in == number).sum()) >= FEWEST
    ]


def draw(ax: Axes, panel: Panel) -> None:
    """Small points and a line per test case."""
    facts, size = panel.facts, panel.facts["size"]
    by_date = facts["kind"] == "date"
    scale = DAY if by_date else 1.0
    for case, points, trend in panel.rows:
        style = theme.of_position(facts["cases"].index(case))
        ax.plot([x / scale for x, _ in points], [y / size for _, y in points], style.mark, color=style.colour,
                markersize=2, alpha=min(0.35, MANY / len(points)), linestyle="none", rasterized=len(points) > MANY,
                label=None if trend else case)  # fmt: skip
        if trend:
            ax.plot([x / scale for x, _ in trend], [y / size for _, y in trend], color=style.colour,
                    linestyle=style.dash, marker=style.mark, markersize=3.5, linewidth=1.5, label=case)  # fmt: skip
    if by_date:
        theme.dates(ax)
        ax.set(xlabel="date (UTC)", ylabel=facts["label"])
        theme.legend_above(ax)
    else:
        ax.set_xticks(range(0, 25, 4))
        ax.set(xlabel="time of day [h, UTC]", xlim=(0, 24))
    ax.set_ylim(bottom=0)


PLOT = Plot("by-date", "Goodput over date and time of day", Group.CAMPAIGNS, "campaigns", table, draw)
