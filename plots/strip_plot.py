"""Strip plot: per test case a point for the mean goodput (or another metric) of every pair, marked by its server."""

from collections.abc import Sequence

from quicsat.model.test_case import constant_rate
from quicsat.model.text import counted
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import WIDTH, Drawing, Group, Panel, Plot, per_campaign, sentences, single_panel, stem
from quicsat.plots.metric_axis import metric_axis
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.samples import GOODPUT, samples, without_number

HALF = 0.42
"""Of the width of a test case's column."""


def _drawing(request: PlotRequest, campaign: CampaignResults) -> Drawing | None:
    shown = metric_axis(request, GOODPUT)
    rows = list[tuple[str, float, float]]()
    cases, rates, lost = list[str](), list[float | None](), list[str]()
    for case in request.measured(campaign.results):
        many = samples(campaign.results, case.name, shown.name)
        pairs = sorted((sample.mean, sample.server) for sample in many if sample.mean is not None)
        lost += [f"Not shown in {case.abbreviation}: {reasons}"] if (reasons := without_number(many)) else []
        if pairs:
            shifts = spread([mean for mean, _ in pairs])
            rows += [(server, len(cases) + shift, mean) for (mean, server), shift in zip(pairs, shifts, strict=True)]
            cases.append(f"{case.abbreviation}\nn = {len(pairs)}")
            rates.append(constant_rate(case.link) if shown.name == GOODPUT else None)
    if not cases:
        return None
    caption = sentences(
        "Each point is the mean of a pair's successful repetitions (n = "
        f"{counted(len(rows), 'pair')} in all test cases)",
        "Dashed lines show the rate of the link" if any(rates) else "",
        *lost,
    )
    facts = {"cases": cases, "rates": rates, "label": f"mean {shown.label}", "size": shown.size}
    size = (max(WIDTH, 1.5 * len(cases) + 1.5), 4.2)
    return Drawing(
        stem(request, campaign, request.metric),
        f"Mean {shown.words} of every pair",
        caption,
        single_panel(Panel(rows, facts)),
        size,
    )


def spread(values: Sequence[float], step: float = 0.05) -> list[float]:
    """Shifts (-HALF..HALF) so that ascending values that lie close together stand side by side.

    Values are close if they lie in the same of 45 equal classes between 0 and the largest.
    """
    size = max(values, default=0.0) / 45 or 1.0
    groups: dict[int, list[int]] = {}
    for number, value in enumerate(values):
        groups.setdefault(int(value / size), []).append(number)
    shifts = [0.0] * len(values)
    for members in groups.values():
        width = min(step, 2 * HALF / max(1, len(members) - 1))
        for rank, number in enumerate(members):
            shifts[number] = (rank - (len(members) - 1) / 2) * width
    return shifts


def draw(ax: Axes, panel: Panel) -> None:
    """Points, the legend of servers at the right, the links' rates."""
    facts, size = panel.facts, panel.facts["size"]
    for server in sorted({server for server, *_ in panel.rows}):
        style = theme.of_implementation(server)
        ax.scatter(
            [x for name, x, _ in panel.rows if name == server],
            [value / size for name, _, value in panel.rows if name == server],
            s=16, c=style.colour, marker=style.mark, label=server, linewidths=0.3, edgecolors="white",
        )  # fmt: skip
    for place, rate in enumerate(facts["rates"]):
        if rate:
            ax.hlines(rate / size, place - HALF, place + HALF, color=theme.VERMILION, linestyle="--")
    ax.set_xticks(range(len(facts["cases"])), facts["cases"])
    ax.set(xlabel="test case", ylabel=facts["label"], xlim=(-0.5, len(facts["cases"]) - 0.5))
    ax.set_ylim(bottom=0)
    ax.grid(axis="x", visible=False)
    ax.legend(title="server", loc="center left", bbox_to_anchor=(1.01, 0.5))


PLOT = Plot(
    "strip-plot", "Mean goodput of every pair", Group.DISTRIBUTIONS, "results",
    per_campaign(_drawing, "no pair has such a number."), draw,
)  # fmt: skip
