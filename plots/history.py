"""Goodput of every server over many campaigns, with steps, and with marks where its image changed."""

from collections.abc import Mapping, Sequence

from quicsat.model.moments import moment
from quicsat.model.text import counted
from quicsat.model.units import MBPS
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import Drawing, Group, Panel, Plot, nonempty, sentences, single_panel
from quicsat.report.plot_request import PlotRequest
from quicsat.statistics.history import Trend, TrendClass, count_classes, ordered, pair_trends, server_trends
from quicsat.statistics.samples import GOODPUT

DAY = 86400.0


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per test case, if there are several campaigns."""
    given = [campaign.results for campaign in request.campaigns]
    campaigns = ordered([each for each in given if moment(each.manifest.started)])
    if len(campaigns) < 2:
        return nonempty([], "one campaign has no history.")
    cases = {case.name: case for results in campaigns for case in request.measured(results)}
    dates = [begun.timestamp() for each in campaigns if (begun := moment(each.manifest.started))]
    drawings = []
    for case in cases.values():
        trends = [each for each in server_trends(campaigns, case.name, GOODPUT) if any(each.means)]
        if trends:
            pairs = count_classes(pair_trends(campaigns, case.name, GOODPUT))
            panel = Panel([_row(trend, dates) for trend in trends])
            title = f"{case.abbreviation}: goodput of the servers over {counted(len(campaigns), 'campaign')}"
            size = (7.0, max(3.6, 1.4 + 0.16 * len(trends)))
            drawings.append(Drawing(case.abbreviation, title, _caption(pairs), single_panel(panel), size))
    return nonempty(drawings, "no server has a goodput.")


def _row(trend: Trend, dates: Sequence[float]) -> tuple[str, list[object], list[object], list[object]]:
    """Server, and points, marks and steps at their dates."""
    return (
        trend.name[1],
        [(date, mean) for date, mean in zip(dates, trend.means, strict=True) if mean is not None],
        [(dates[mark], mean) for mark in trend.marks if (mean := trend.means[mark]) is not None],
        [(dates[step.at], step.before, step.after) for step in trend.steps],
    )


def _caption(pairs: Mapping[TrendClass, int]) -> str:
    counts = ", ".join(f"{count} {kind.value}" for kind, count in pairs.items())
    return sentences(
        "Each point is the mean over the clients with a successful repetition. A ring marks a change of the image, and "
        "an arrow marks a step, which is a lasting change of level (permutation test at 1 %)",
        f"There are n = {counted(sum(pairs.values()), 'pair')}: {counts}",
    )


def draw(ax: Axes, panel: Panel) -> None:
    """A line per server, rings and arrows."""
    for server, points, marks, steps in panel.rows:
        style = theme.of_implementation(server)
        ax.plot([date / DAY for date, _ in points], [mean / MBPS for _, mean in points], color=style.colour,
                linestyle=style.dash, marker=style.mark, markersize=3.5, linewidth=1, label=server)  # fmt: skip
        if marks:
            ax.plot([date / DAY for date, _ in marks], [mean / MBPS for _, mean in marks], "o", markersize=9,
                    markerfacecolor="none", markeredgecolor=theme.BLACK, linestyle="none")  # fmt: skip
        for date, before, after in steps:
            ax.annotate("", xy=(date / DAY, after / MBPS), xytext=(date / DAY, before / MBPS),
                        arrowprops={"arrowstyle": "-|>", "color": style.colour, "linewidth": 1.5})  # fmt: skip
    theme.dates(ax)
    ax.set(xlabel="start of the campaign (UTC)", ylabel="mean goodput [Mbit/s]")
    ax.set_ylim(bottom=0)
    ax.legend(title="server", loc="center left", bbox_to_anchor=(1.01, 0.5))


PLOT = Plot("history", "Goodput over many campaigns", Group.CAMPAIGNS, "campaigns", table, draw)
