"""The objects of a run in the order of their requests: when each was asked for, and when its bytes arrived."""

from collections.abc import Sequence

from quicsat.model.results import ObjectTimes, Pair, RunResult
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.model.workload import ObjectType
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import (
    WIDTH,
    Drawing,
    Group,
    Panel,
    Plot,
    each_case,
    nonempty,
    sentences,
    single_panel,
    slowest,
    stem,
)
from quicsat.report.object_tables import label_of, with_objects
from quicsat.report.plot_request import CampaignResults, PlotRequest

ROW = 0.045
"""Inches that an object takes."""


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per pair and test case with a workload: the repetition with the median completion time."""
    drawings = []
    for campaign, case in each_case(request):
        of_pairs: dict[Pair, list[RunResult]] = {}
        for run in sorted(with_objects(campaign.results.results, case), key=_end):
            of_pairs.setdefault((run.server, run.client), []).append(run)
        middles = {pair: mine[(len(mine) - 1) // 2] for pair, mine in of_pairs.items()}
        pairs, note = slowest(request, sorted(middles, key=lambda pair: (-_end(middles[pair]), pair)))
        for pair in pairs:
            about = f"The figure shows repetition {middles[pair].repetition}, which has the median completion time of "
            notes = f"{about}n = {len(of_pairs[pair])}, over {middles[pair].protocol.value}", note
            drawings.append(_drawing(request, campaign, case, middles[pair], notes))
    return nonempty(drawings, "no test case has a workload whose objects are known.")


def _end(run: RunResult) -> float:
    return max(each.finished for each in run.measurement.objects) if run.measurement else 0.0


def _drawing(
    request: PlotRequest, campaign: CampaignResults, case: TestCase, run: RunResult, notes: tuple[str, str]
) -> Drawing:
    found = run.measurement.objects if run.measurement else ()
    caption = sentences(
        notes[0], "Thin lines run from the request to the first byte, and bars from there to the last byte", notes[1]
    )
    title = (
        f"{run.server} serves {run.client}, {case.abbreviation}: {counted(len(found), 'object')} in {_end(run):.2f} s"
    )
    server, client = run.server.replace(":", "+"), run.client.replace(":", "+")
    name = stem(request, campaign, case.name, f"{server}_{client}")
    return Drawing(name, title, caption, single_panel(Panel(found)), (WIDTH, max(2.6, 1.6 + ROW * len(found))))


def _kind(found: ObjectTimes) -> str:
    return found.type.value if found.type else label_of((found.size, ""))


def draw(ax: Axes, panel: Panel) -> None:
    """A row per object, the first one on top; colour and hatch tell its type or size."""
    rows = list(enumerate(panel.rows, start=1))
    ax.hlines([row for row, _ in rows], [each.requested for _, each in rows], [each.first_byte for _, each in rows],
              color=theme.BLACK, linewidth=0.6)  # fmt: skip
    hatches = ("", "////", "....", "xxxx", "----", "\\\\\\\\")
    types = [each.value for each in ObjectType]
    for place, kind in enumerate(dict.fromkeys(map(_kind, panel.rows))):
        number = types.index(kind) if kind in types else place
        mine = [(row, each) for row, each in rows if _kind(each) == kind]
        ax.barh(
            [row for row, _ in mine], [each.finished - each.first_byte for _, each in mine],
            left=[each.first_byte for _, each in mine], height=0.8, color=theme.of_position(number).colour,
            hatch=hatches[number % len(hatches)], edgecolor="white", linewidth=0.2, label=kind,
        )  # fmt: skip
    ax.set(xlabel="time since the client's first packet [s]", ylabel="object [number]", xlim=(0, None))
    ax.set_ylim(len(rows) + 0.6, 0.4)
    ax.grid(axis="y", visible=False)
    theme.legend_above(ax, "", 6)


PLOT = Plot("waterfall", "Objects over time", Group.TIME, "results", table, draw)
