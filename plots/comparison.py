"""What changed between two campaigns, or differs between two test cases: all changes by rank, and a tile per pair."""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from quicsat.model.text import counted
from quicsat.model.units import PERCENT, percent
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import Drawing, Group, Panel, Plot, nonempty, room, sentences, single_panel
from quicsat.report.plot_request import PlotRequest
from quicsat.statistics import comparison
from quicsat.statistics.comparison import BETTER, CHANGED, WITHOUT_RESULT, WORSE, Change, Comparison, PairChange
from quicsat.statistics.significance import LEVEL

LISTED = 8
"""Changes of a kind that are named in the figure, the largest ones."""

_SIGNS = {
    Change.BROKEN: ("×*", -1.0), Change.PERHAPS_BROKEN: ("×", -1.0),
    Change.FIXED: ("✓*", 1.0), Change.PERHAPS_FIXED: ("✓", 1.0),
}  # fmt: skip


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing of two campaigns, or of one and two test cases."""
    if len(request.campaigns) == 2:
        first, second = request.campaigns
        changes = comparison.campaigns(first.results, second.results, request.measured(first.results))
        return nonempty(
            _drawings(changes, f"{first.label} → {second.label}", "campaigns", "goodput"),
            "no pair has numbers in both campaigns.",
        )
    cases = request.measured(request.campaigns[0].results) if len(request.campaigns) == 1 else ()
    if len(cases) != 2:
        return nonempty([], "it takes two campaigns, or two test cases of one.")
    changes = comparison.links(request.campaigns[0].results, *cases)
    title = f"{cases[0].abbreviation} → {cases[1].abbreviation}"
    return nonempty(_drawings(changes, title, "test cases", "efficiency"), "no pair has numbers in both test cases.")


def _drawings(changes: Comparison, title: str, sides: str, metric: str) -> list[Drawing]:
    """``sides``: what is compared, in the plural."""
    both = sorted((pair for pair in changes.pairs if pair.ratio is not None), key=_ratio)
    only_one = [pair for pair in changes.pairs if pair.change in CHANGED - WITHOUT_RESULT and pair.ratio is None]
    if not both and not only_one:
        return []
    significant = [pair for pair in both if _sure(pair)]
    rows = [(_ratio(pair), _name(pair) if _sure(pair) else "") for pair in both]
    facts = {"kind": "ranks", "metric": metric, "broken": [f"{_name(pair)}: {pair.change.value}" for pair in only_one]}
    histogram = Panel([ratio for ratio, _ in rows], {"kind": "histogram", "metric": metric})
    lost = len(changes.pairs) - len(both)
    rule = _rule(changes, len(significant))
    caption = sentences(
        f"The figure shows the n = {counted(len(both), 'pair')} with values in both {sides}, sorted by change. {rule}",
        f"Not shown: {lost} without a value in one of the {sides}; {len(only_one)} of these newly failed or were fixed"
        if lost else "",
        f"A loss of {percent(comparison.COARSEST)} might not have been found for {changes.blind} of the pairs"
        if changes.blind and changes.tests else "",
    )  # fmt: skip
    ranks = Drawing("", title, caption, ((histogram, Panel(rows, facts)),), (8.6, 4.6), share_y=True, widths=(1, 3.4))
    return [ranks, *_tiles(changes, title, sides, metric)]


def _rule(changes: Comparison, count: int) -> str:
    """How many changes are reported, and by which rule."""
    if not changes.tests:
        return "There are too few repetitions for any test, so no change can be significant"
    tests = "one test" if changes.tests == 1 else f"{changes.tests} tests"
    same = f". {counted(changes.identical, 'pair')} gave the same results to the bit" if changes.identical else ""
    return f"{count} of them changed significantly at the level {LEVEL:g}, corrected for {tests}{same}"


def _tiles(changes: Comparison, title: str, sides: str, metric: str) -> Iterator[Drawing]:
    """A drawing per test case."""
    for case in dict.fromkeys(pair.first.test_case for pair in changes.pairs):
        pairs = [pair for pair in changes.pairs if pair.first.test_case == case]
        servers = sorted({pair.first.server for pair in pairs})
        clients = sorted({pair.first.client for pair in pairs})
        numbers = [pair for pair in pairs if pair.ratio is not None]
        caption = sentences(
            f"Each tile shows the change of the geometric mean {metric} in per cent (n = "
            f"{counted(len(numbers), 'pair')} with "
            f"values in both {sides}). The colour scale ends at ±100 %. "
            f"Significant changes are bold and starred "
            f"({sum(map(_sure, numbers)) or 'none'} in this figure). × marks a new failure, ✓ a pair that no longer "
            f"fails, and – a pair that fails in both {sides}. An empty tile marks a pair that is missing from one of "
            f"the two {sides}",
        )
        facts = {"kind": "tiles", "servers": servers, "clients": clients}
        width = max(4.2, 1.8 + 0.46 * len(servers)) + room(clients)
        size = (width, max(3.4, 1.9 + 0.36 * len(clients)) + room(servers))
        several = len({pair.first.test_case for pair in changes.pairs}) > 1
        name = re.sub(r"[^A-Za-z0-9]+", "-", case)
        heading = f"{title}, {case}" if several else title
        yield Drawing(f"pairs-{name}", heading, caption, single_panel(Panel(pairs, facts)), size)


def _ratio(pair: PairChange) -> float:
    return pair.ratio if pair.ratio is not None else 0.0


def _sure(pair: PairChange) -> bool:
    return pair.change in WORSE | BETTER


def _name(pair: PairChange) -> str:
    return f"{pair.first.server}, {pair.first.client}, {pair.first.test_case}"


def draw(ax: Axes, panel: Panel) -> None:
    """One of three kinds of panels."""
    {"ranks": _draw_ranks, "histogram": _draw_histogram, "tiles": _draw_tiles}[panel.facts["kind"]](ax, panel)


def _draw_histogram(ax: Axes, panel: Panel) -> None:
    """How many pairs changed by how much, on the axis of the ranks beside it."""
    import seaborn
    from matplotlib.ticker import MaxNLocator

    ratios = [ratio / PERCENT for ratio in panel.rows]
    bins = min(40, max(5, round(2 * len(ratios) ** 0.5)))
    seaborn.histplot(y=ratios, bins=bins if len(set(ratios)) > 1 else 1, ax=ax, color=theme.SKY, edgecolor="white",
                     linewidth=0.4, alpha=1)  # fmt: skip
    ax.axhline(0, color=theme.BLACK, linewidth=0.8)
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.set(xlabel="pairs", ylabel=f"change of the geometric mean {panel.facts['metric']} [%]")
    ax.grid(axis="y", visible=False)


def _draw_tiles(ax: Axes, panel: Panel) -> None:
    """Per cent in colours from worse to better."""
    import seaborn

    facts = panel.facts
    ratios = np.full((len(facts["clients"]), len(facts["servers"])), np.nan)
    words = np.full(ratios.shape, "", dtype=object)
    for pair in panel.rows:
        place = facts["clients"].index(pair.first.client), facts["servers"].index(pair.first.server)
        if pair.ratio is not None:
            ratios[place] = max(-1.0, min(1.0, pair.ratio))
            words[place] = f"{round(pair.ratio / PERCENT):+d}{'*' if _sure(pair) else ''}".replace("+0", "0")
        elif pair.change not in WITHOUT_RESULT:
            words[place], ratios[place] = _SIGNS.get(pair.change, ("–", 0.0))
    seaborn.heatmap(
        ratios, ax=ax, annot=words, fmt="", annot_kws={"fontsize": 6.5, "color": theme.BLACK}, linewidths=1,
        cmap=theme.diverging(), vmin=-1.3, vmax=1.3, cbar=False, mask=np.isnan(ratios),
    )  # fmt: skip
    for text in ax.texts:
        if text.get_text().endswith("*"):
            text.set_fontweight("bold")
    ax.set_xticklabels(facts["servers"], rotation=60, ha="right", rotation_mode="anchor")
    ax.set_yticklabels(facts["clients"], rotation=0)
    ax.set(xlabel="server", ylabel="client")
    ax.grid(visible=False)
    ax.tick_params(length=0)


def _draw_ranks(ax: Axes, panel: Panel) -> None:
    """Grey points without, triangles with significance; the largest are named."""
    from matplotlib.ticker import MaxNLocator

    points = [(rank, ratio / PERCENT, bool(name)) for rank, (ratio, name) in enumerate(panel.rows, start=1)]
    kinds = (
        ("no change shown", "o", 2.5, theme.GREY, [(x, y) for x, y, sure in points if not sure]),
        ("worse", "v", 5, theme.VERMILION, [(x, y) for x, y, sure in points if sure and y < 0]),
        ("better", "^", 5, theme.BLUE, [(x, y) for x, y, sure in points if sure and y > 0]),
    )
    ax.axhline(0, color=theme.BLACK, linewidth=0.8)
    for words, mark, size, colour, shown in kinds:
        ax.plot([x for x, _ in shown], [y for _, y in shown], mark, color=colour, markersize=size, linestyle="none",
                label=f"{words} ({len(shown)})")  # fmt: skip
    _names(ax, panel.rows, panel.facts["broken"])
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.set_xlabel("pair and test case, by rank of the change")
    ax.margins(x=0.04, y=0.08)
    theme.legend_above(ax)


def _names(ax: Axes, rows: Sequence[tuple[float, str]], broken: Sequence[str]) -> None:
    """At the right of the axes: what got better, what broke or was mended, what got worse; the largest first."""
    named = sorted((ratio, f"{name}: {ratio / PERCENT:+.0f} %") for ratio, name in rows if name)
    better = [text for ratio, text in reversed(named) if ratio > 0]
    worse = [text for ratio, text in named if ratio < 0]
    blocks = (
        ("better", better, 1.0, "top"),
        ("without numbers", broken, 0.5, "center"),
        ("worse", worse, 0.0, "bottom"),
    )
    for title, texts, height, anchor in blocks:
        if texts:
            more = [f"and {len(texts) - LISTED} more"] if len(texts) > LISTED else []
            ax.text(1.02, height, "\n".join([f"{title}:", *texts[:LISTED], *more]), transform=ax.transAxes, va=anchor,
                    fontsize=6)  # fmt: skip


PLOT = Plot("comparison", "What changed", Group.CAMPAIGNS, "campaigns", table, draw)
