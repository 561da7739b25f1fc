"""Who yields to whom: the first flow's share of a link with two flows, a row per first and a column per second pair."""

from collections.abc import Iterable, Sequence
from statistics import fmean

from quicsat.model.names import FLOW_SIGN
from quicsat.model.text import counted
from quicsat.model.units import PERCENT
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import (
    MOST_ROWS,
    Drawing,
    Group,
    Panel,
    Plot,
    each_case,
    in_parts,
    nonempty,
    room,
    sentences,
    single_panel,
    stem,
)
from quicsat.report.flow_tables import flows_of, pair_of, with_flows
from quicsat.report.plot_request import PlotRequest

Cell = tuple[str, str]
"""First and second pair."""


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per campaign and link, with the shares of all repetitions of two flows that succeeded."""
    links: dict[tuple[str, str], dict[Cell, list[float]]] = {}
    for campaign, case in each_case(request):
        if case.flow_count != 2:
            continue
        name = case.abbreviation.partition(FLOW_SIGN)[0]
        cells = links.setdefault((stem(request, campaign, name), name), {})
        for run in with_flows(campaign.results.results, case):
            first, second = flows_of(run)
            if first.share is not None:
                cells.setdefault((pair_of(first), pair_of(second)), []).append(first.share)
    drawings = [
        _drawing(
            "-".join(filter(None, (file, part))), name, {cell: cells[cell] for row in rows.values() for cell in row}
        )
        for (file, name), cells in links.items()
        for part, rows in in_parts(_rows(cells), MOST_ROWS)
    ]
    return nonempty(drawings, "no run has two flows that receive at the same time.")


def _rows(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """The cells of each first pair."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell[0], []).append(cell)
    return found


def _drawing(file: str, name: str, cells: dict[Cell, list[float]]) -> Drawing:
    firsts, seconds = (list(dict.fromkeys(cell[place] for cell in cells)) for place in (0, 1))
    rows = [
        (firsts.index(first), seconds.index(second), fmean(shares),
         f"{min(shares) / PERCENT:.0f}–{max(shares) / PERCENT:.0f}")
        for (first, second), shares in cells.items()
    ]  # fmt: skip
    counts = {len(shares) for shares in cells.values()}
    few, most = min(counts), max(counts)
    caption = sentences(
        "Each square shows the share of the first flow in the bytes that arrive while both flows receive data: mean, "
        f"minimum and maximum of n = {'' if few == most else f'{few} to '}{counted(most, 'successful repetition')}",
        "50 % is fair. Below 50 %, the first flow gets less than the second",
    )
    size = (max(4.2, 2.6 + 0.75 * len(seconds)) + room(firsts), max(2.6, 1.9 + 0.36 * len(firsts)))
    panel = Panel(rows, {"firsts": firsts, "seconds": seconds})
    return Drawing(file, f"{name}: share of the first of two flows", caption, single_panel(panel), size)


def draw(ax: Axes, panel: Panel) -> None:
    """A coloured square per pair of flows, with its numbers."""
    import numpy as np

    facts = panel.facts
    values = np.full((len(facts["firsts"]), len(facts["seconds"])), np.nan)
    for row, column, share, _ in panel.rows:
        values[row, column] = share / PERCENT
    drawn = ax.imshow(values, cmap=theme.diverging(), vmin=0, vmax=100, aspect="auto")
    for row, column, share, text in panel.rows:
        colour = "white" if abs(share - 0.5) > 0.35 else theme.BLACK
        ax.text(column, row, f"{share / PERCENT:.0f}", ha="center", va="bottom", fontweight="bold", color=colour)
        ax.text(column, row + 0.05, text, ha="center", va="top", fontsize=5.5, color=colour)
    ax.set_xticks(range(len(facts["seconds"])), [name.replace("/", "/\n") for name in facts["seconds"]])
    ax.set_yticks(range(len(facts["firsts"])), facts["firsts"])
    ax.set(xlabel="second flow (server/client)", ylabel="first flow (server/client)")
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.figure.colorbar(drawn, ax=ax, shrink=0.8, aspect=20, label="share of the first flow [%]")


PLOT = Plot("fairness", "Who yields to whom", Group.PAIRS, "results", table, draw)
