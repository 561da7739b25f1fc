"""What real links themselves did over time: round-trip time and TCP goodput of the bare link at each measurement."""

from collections.abc import Sequence
from statistics import median

from quicsat.model.moments import moment
from quicsat.model.real_link import Baseline, RealLink
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.model.units import MBPS, MS
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import Drawing, Group, Panel, Plot, nonempty, sentences
from quicsat.report.plot_request import PlotRequest
from quicsat.report.run_tables import baselines_of

DAY = 86400.0
RATES = {"forward": "goodput", "return": "return_goodput"}
"""Directions -> fields of a baseline."""


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per real link, over all campaigns: round-trip times above, TCP goodput below if it was measured."""
    cases = {
        case.name: case
        for campaign in request.campaigns
        for case in request.cases(campaign.results)
        if isinstance(case.link, RealLink)
    }
    drawings = [drawing for case in cases.values() if (drawing := _drawing(request, case))]
    return nonempty(drawings, "no run over a real link has a baseline.")


def _drawing(request: PlotRequest, case: TestCase) -> Drawing | None:
    results = [each for campaign in request.campaigns for each in campaign.results.results]
    looks = [
        (time, each)
        for each in baselines_of(each for each in results if each.test_case == case.name)
        if (time := _moment(each)) is not None
    ]
    if not looks:
        return None
    rates = [(direction, time, rate / MBPS, rate / MBPS, rate / MBPS) for time, each in looks
             for direction, name in RATES.items() if (rate := getattr(each, name)) is not None]  # fmt: skip
    trips = [("", time, median(came) / MS, min(came) / MS, max(came) / MS) for time, each in looks
             if (came := [one for one in each.round_trips if one is not None])]  # fmt: skip
    panels = [(Panel(trips, {"label": "RTT [ms]"}),)]
    panels += [(Panel(rates, {"label": "TCP goodput [Mbit/s]"}),)] if rates else []
    lost = sum(each is None for _, baseline in looks for each in baseline.round_trips)
    sent = sum(len(baseline.round_trips) for _, baseline in looks)
    caption = sentences(
        f"The figure shows n = {counted(len(looks), 'measurement')} of the bare link, while no endpoint "
        "used it. Points show the "
        "median of each series of round trips, and bars the lowest and the highest",
        f"{lost} of {counted(sent, 'packet was', 'packets were')} lost",
        "Squares and triangles show the goodput of one TCP connection (iperf3) in each direction" if rates else "",
    )
    title = f"{case.abbreviation}: baseline of the link over time"
    return Drawing(case.abbreviation, title, caption, tuple(panels), (6.6, 2.0 + 2.2 * len(panels)))


def _moment(baseline: Baseline) -> float | None:
    """Seconds since 1970."""
    taken = moment(baseline.taken)
    return None if taken is None else taken.timestamp()


def draw(ax: Axes, panel: Panel) -> None:
    """Points with their ranges, a kind of mark per direction."""
    names = list(dict.fromkeys(direction for direction, *_ in panel.rows))
    for number, name in enumerate(names):
        style = theme.of_position(number)
        time, value, low, high = zip(*(row for direction, *row in panel.rows if direction == name), strict=True)
        ax.vlines([each / DAY for each in time], low, high, color=style.colour, linewidth=0.6, alpha=0.6)
        ax.plot([each / DAY for each in time], value, marker="s^"[number] if name else "o", markersize=3,
                linestyle="none", color=style.colour, label=name or None)  # fmt: skip
    theme.dates(ax)
    ax.set(xlabel="date (UTC)", ylabel=panel.facts["label"])
    ax.set_ylim(bottom=0)
    if any(names):
        theme.legend_above(ax)


PLOT = Plot("baseline", "Baseline of real links", Group.CAMPAIGNS, "campaigns", table, draw)
