"""Heatmap of one test case (Fig. 4 of arXiv 2202.08228): servers by clients, circles as large as the number."""

from collections.abc import Sequence
from math import sqrt
from textwrap import fill
from typing import NamedTuple

from quicsat.model.results import ResultSet
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import Drawing, Group, Panel, Plot, each_case, nonempty, room, sentences, single_panel, stem
from quicsat.plots.metric_axis import MetricAxis, metric_axis
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.results.summary import VIRTUAL_ONLY_MARK
from quicsat.statistics.samples import CONCLUSIVE, GOODPUT, MARKS, PairOutcome, Sample, samples

LABEL = 36
"""Characters of a line of the colour bar's label, which is as short as the smallest map."""


class Circle(NamedTuple):
    """A pair on the map; its circle has no area, and is not drawn, without a value."""

    x: int
    y: int
    value: float | None
    diameter: float
    mark: str
    successes: str
    """``7/10``; empty if all repetitions ended alike."""
    virtual_only: bool


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per test case; areas and colours share one scale over test cases unless the request has ``own_scale``.

    With ``own_colours``, colours go from the lowest to the highest value of each test case, as in the paper.
    A test case is left out if runs succeeded and none has a value.
    """
    drawings, number = [], metric_axis(request, GOODPUT)
    for campaign, case in each_case(request):
        many = samples(campaign.results, case.name, number.name)
        conclusive = [sample for sample in many if sample.pair_outcome in CONCLUSIVE]
        valued = any(sample.mean is not None for sample in many)
        if conclusive and (valued or not any(sample.succeeded for sample in conclusive)):
            drawings.append(_drawing(request, campaign, case, many))
    return nonempty(drawings, f"no pair has a result with a value for the {number.words}.")


def _drawing(request: PlotRequest, campaign: CampaignResults, case: TestCase, many: Sequence[Sample]) -> Drawing:
    number = metric_axis(request, GOODPUT)
    conclusive = [sample for sample in many if sample.pair_outcome in CONCLUSIVE]
    servers = list(dict.fromkeys(sample.server for sample in many if sample.server in {s.server for s in conclusive}))
    clients = list(dict.fromkeys(sample.client for sample in many if sample.client in {s.client for s in conclusive}))
    shown = [sample for sample in many if sample.server in servers and sample.client in clients]
    largest = (
        max((sample.mean or 0.0 for sample in shown), default=0.0)
        if request.own_scale
        else _largest(request, campaign.results)
    )
    rows = [
        Circle(
            servers.index(sample.server),
            len(clients) - 1 - clients.index(sample.client),
            sample.mean,
            0.9 * sqrt((sample.mean or 0.0) / largest) if largest else 0.0,
            MARKS.get(sample.pair_outcome, "" if sample.mean else "✓"),
            _count(sample),
            (sample.server, sample.client, case.name) in campaign.results.virtual_only,
        )
        for sample in shown
    ]
    means = [sample.mean for sample in shown if sample.mean is not None]
    colours = (min(means), max(means)) if request.own_colours and means else (0.0, largest)
    facts = {"servers": servers, "clients": clients[::-1], "colours": colours, "label": f"mean {number.label}",
             "size": number.size}  # fmt: skip
    width = max(4.0, 2.6 + 0.4 * len(servers)) + room(clients) + 0.7 * room(servers)
    size = (width, max(3.4, 2.4 + 0.36 * len(clients)) + room(servers))
    dagger = f"{VIRTUAL_ONLY_MARK} marks pairs that hold in virtual time only" if any(row[-1] for row in rows) else ""
    return Drawing(
        stem(request, campaign, request.metric, case.abbreviation),
        f"{case.abbreviation}: {number.words} per pair",
        sentences(_caption(many, shown, f"{_rounded(largest / number.size)} {number.unit}", request, number), dagger),
        single_panel(Panel(rows, facts)),
        size,
    )


def _largest(request: PlotRequest, results: ResultSet) -> float:
    """Highest mean of any pair in any wanted test case."""
    name = metric_axis(request, GOODPUT).name
    means = (sample.mean for case in request.measured(results) for sample in samples(results, case.name, name))
    return max((mean for mean in means if mean is not None), default=0.0)


def _count(sample: Sample) -> str:
    """``7/10`` where some repetitions succeeded and some did not."""
    mixed = sample.pair_outcome in (PairOutcome.TIMEOUT, PairOutcome.FAILED) and sample.succeeded
    return f"{sample.succeeded}/{sample.conclusive}" if mixed else ""


def _rounded(value: float) -> str:
    """Three digits, and all of those before the point: ``0.123``, ``21404``."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _caption(
    many: Sequence[Sample], shown: Sequence[Sample], largest: str, request: PlotRequest, number: MetricAxis
) -> str:
    values = sum(len(sample.values) for sample in shown)
    scale = "in this test case" if request.own_scale else "in any test case"
    names = {role: [getattr(sample, role) for sample in many] for role in ("server", "client")}
    lost = [
        f"{name} as {role}"
        for role, all_names in names.items()
        for name in dict.fromkeys(all_names)
        if name not in {getattr(sample, role) for sample in shown}
    ]
    both = f"Area and colour show the value relative to {largest}, the highest {scale}"
    area = (
        f"Area shows the value relative to {largest}, the highest {scale}; colour goes from the lowest to the highest"
    )
    return sentences(
        f"Each circle shows the mean {number.words} of a pair (n = "
        f"{counted(values, 'successful repetition')} of {counted(len(shown), 'pair')}"
        f"). {f'{area} in this test case' if request.own_colours else both}",
        "T means timed out, × failed, – unsupported, ! error, and · not run",
        "7/10 means that seven of ten repetitions succeeded" if any(map(_count, shown)) else "",
        f"Not shown, because there is no result: {', '.join(lost)}" if lost else "",
    )


def draw(ax: Axes, panel: Panel) -> None:
    """Circles, marks, names of servers above and of clients at the left, and a colour bar."""
    from matplotlib.collections import EllipseCollection

    facts = panel.facts
    circles = [circle for circle in panel.rows if circle.value is not None]
    diameters = [circle.diameter for circle in circles]
    drawn = EllipseCollection(
        diameters, diameters, [0.0] * len(circles), units="xy",
        offsets=[(circle.x, circle.y) for circle in circles] or [(-9, -9)], offset_transform=ax.transData,
        cmap=theme.sequential(), edgecolors=theme.GREY, linewidths=0.3,
    )  # fmt: skip
    drawn.set_array([circle.value / facts["size"] for circle in circles] or [0.0])
    lowest, highest = (value / facts["size"] for value in facts["colours"])
    drawn.set_clim(lowest, highest if highest > lowest else lowest + 1)
    ax.add_collection(drawn)
    for x, y, value, _, mark, successes, virtual_only in panel.rows:
        if virtual_only:
            ax.text(x + 0.36, y + 0.36, VIRTUAL_ONLY_MARK, ha="center", va="center", fontsize=7)
        colour = theme.FAILURE if mark in (MARKS[PairOutcome.TIMEOUT], MARKS[PairOutcome.FAILED]) else theme.GREY
        if mark and value is None:
            ax.text(x, y, mark, ha="center", va="center", color=colour, fontweight="bold", fontsize=8)
        elif mark:
            ax.text(x + 0.47, y - 0.48, f"{mark} {successes}", ha="right", va="bottom", color=colour, fontsize=4.5,
                    fontweight="bold")  # fmt: skip
    ax.set_xticks(range(len(facts["servers"])), facts["servers"], rotation=60, ha="left", rotation_mode="anchor")
    ax.set_yticks(range(len(facts["clients"])), facts["clients"])
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set(
        xlabel="server", ylabel="client", aspect="equal",
        xlim=(-0.5, len(facts["servers"]) - 0.5), ylim=(-0.5, len(facts["clients"]) - 0.5),
    )  # fmt: skip
    ax.tick_params(length=0)
    if circles:
        ax.figure.colorbar(drawn, ax=ax, shrink=0.8, aspect=25, label=fill(facts["label"], LABEL))


PLOT = Plot("heatmap", "Goodput per pair", Group.PAIRS, "results", table, draw)
