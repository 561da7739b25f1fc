"""Functional tests: servers by clients, a small matrix per test, a mark per pair."""

from collections.abc import Sequence

from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import Drawing, Group, Panel, Plot, per_campaign, room, sentences, stem
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.samples import EFFICIENCY, MARKS, PairOutcome, Sample, samples

PER_ROW = 4
SIGNS = {PairOutcome.SUCCEEDED: "✓", **MARKS}
COLOURS = {
    PairOutcome.SUCCEEDED: theme.GREEN, PairOutcome.FAILED: theme.VERMILION, PairOutcome.TIMEOUT: theme.PURPLE,
    PairOutcome.UNSUPPORTED: theme.GREY, PairOutcome.ERROR: theme.BLACK, PairOutcome.NOT_RUN: theme.PALE,
}  # fmt: skip


def _drawing(request: PlotRequest, campaign: CampaignResults) -> Drawing | None:
    results = campaign.results
    cases = {case: samples(results, case.name, EFFICIENCY) for case in request.cases(results) if case.functional}
    run = [
        case for case, many in cases.items() if any(sample.pair_outcome is not PairOutcome.NOT_RUN for sample in many)
    ]
    panels = [_panel(case, cases[case], number) for number, case in enumerate(run)]
    if not panels:
        return None
    across = min(PER_ROW, len(panels))
    rows = tuple(tuple(panels[start : start + across]) for start in range(0, len(panels), across))
    servers, clients = ({pair[place] for pair in results.pairs} for place in (0, 1))
    width = max(4.5, across * (0.4 + 0.2 * len(servers)) + 1.3)
    size = (width + room(clients), len(rows) * (1.2 + 0.2 * len(clients) + room(servers)) + 0.9)
    left_out = ", ".join(case.abbreviation for case in cases if case not in run)
    caption = sentences(
        f"The figure shows n = {counted(len(results.pairs), 'pair')} in each of {len(panels)} tests. ✓ means passed, "
        "T timed out, × failed, "
        "– unsupported, ! error, and · not run. The first repetition that did not pass determines the sign. Only ✓, T "
        "and × count",
        ", ".join(f"{case.abbreviation} {case.name}" for case in run),
        f"Not shown, because they were not run: {left_out}" if left_out else "",
    )
    return Drawing(stem(request, campaign), "Functional tests", caption, rows, size)


def _panel(case: TestCase, many: Sequence[Sample], number: int) -> Panel:
    servers = list(dict.fromkeys(sample.server for sample in many))
    clients = list(dict.fromkeys(sample.client for sample in many))[::-1]
    rows = [(servers.index(each.server), clients.index(each.client), each.pair_outcome) for each in many]
    pair_outcomes = [sample.pair_outcome for sample in many]
    conclusive = sum(map(pair_outcomes.count, (PairOutcome.SUCCEEDED, PairOutcome.FAILED, PairOutcome.TIMEOUT)))
    title = f"{case.abbreviation}: {pair_outcomes.count(PairOutcome.SUCCEEDED)} of {conclusive}"
    return Panel(rows, {"servers": servers, "clients": clients, "title": title, "left": number % PER_ROW == 0})


def draw(ax: Axes, panel: Panel) -> None:
    """Marks in colours; names of clients at the left of each row only."""
    facts = panel.facts
    for x, y, pair_outcome in panel.rows:
        ax.text(x, y, SIGNS[pair_outcome], color=COLOURS[pair_outcome], ha="center", va="center", fontsize=8,
                fontweight="bold")  # fmt: skip
    ax.set_xticks(range(len(facts["servers"])), facts["servers"], rotation=90)
    ax.set_yticks(range(len(facts["clients"])), facts["clients"] if facts["left"] else [])
    ax.set(
        xlim=(-0.5, len(facts["servers"]) - 0.5), ylim=(-0.5, len(facts["clients"]) - 0.5),
        title=facts["title"], xlabel="server", ylabel="client" if facts["left"] else "",
    )  # fmt: skip
    ax.tick_params(length=0)


PLOT = Plot(
    "outcomes", "Functional tests", Group.PAIRS, "results", per_campaign(_drawing, "there are no functional tests."),
    draw,
)  # fmt: skip
