"""What changed between two campaigns, or differs between two test cases: each change, the sure ones named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from interop.pictures import Wish
from interop.statistics import comparison
from interop.statistics.comparison import BETTER, WORSE, Comparison, PairChange
from interop.units import PERCENT
from plots import theme
from plots.base import Drawing, Panel, Plot, found, one, sentences

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LISTED = 8
"""Changes of a kind that are named in the figure, the largest ones."""


def table(wish: Wish) -> Sequence[Drawing]:
    """A drawing of two campaigns, or of one and two test cases."""
    if len(wish.campaigns) == 2:
        first, second = wish.campaigns
        changes = comparison.campaigns(first.results, second.results, wish.measured(first.results))
        return found(_drawings(changes, f"{first.label} → {second.label}", "goodput"), "no pair has numbers in both.")
    cases = wish.measured(wish.campaigns[0].results) if len(wish.campaigns) == 1 else ()
    if len(cases) != 2:
        return found([], "it takes two campaigns, or two test cases of one.")
    changes = comparison.links(wish.campaigns[0].results, *cases)
    title = f"{cases[0].abbreviation} → {cases[1].abbreviation}"
    return found(_drawings(changes, title, "efficiency"), "no pair has numbers in both.")


def _drawings(changes: Comparison, title: str, metric: str) -> list[Drawing]:
    both = sorted((pair for pair in changes.pairs if pair.ratio is not None), key=_ratio)
    told = [pair for pair in changes.pairs if pair.change in WORSE | BETTER and pair.ratio is None]
    if not both and not told:
        return []
    significant = [pair for pair in both if _sure(pair)]
    columns: dict[str, list[object]] = {
        "rank": list(range(len(both))),
        "ratio": [_ratio(pair) for pair in both],
        "change": [pair.change.value if _sure(pair) else "" for pair in both],
        "name": [_name(pair) if _sure(pair) else "" for pair in both],
    }
    facts = {"metric": metric, "broken": [f"{_name(pair)}: {pair.change.value}" for pair in told]}
    lost = len(changes.pairs) - len(both)
    caption = sentences(
        f"n = {len(both)} pairs with numbers in both, in the order of their change; {len(significant)} changes are "
        f"significant at {comparison.LEVEL:g} after correction for {changes.tests} tests",
        f"Left out: {lost} pairs without numbers in one of them, of which {len(told)} failed newly or were fixed"
        if lost else "",
        f"In {changes.blind} pairs no change could be significant: too few repetitions" if changes.blind else "",
    )  # fmt: skip
    return [Drawing("", title, caption, one(Panel(columns, facts)), (8.0, 4.6))]


def _ratio(pair: PairChange) -> float:
    return pair.ratio if pair.ratio is not None else 0.0


def _sure(pair: PairChange) -> bool:
    return pair.change in WORSE | BETTER


def _name(pair: PairChange) -> str:
    return f"{pair.first.server}, {pair.first.client}, {pair.first.test_case}"


def draw(ax: Axes, panel: Panel) -> None:
    """Grey points without, triangles with significance; the largest are named."""
    columns, facts = panel.columns, panel.facts
    plain = [row for row, change in enumerate(columns["change"]) if not change]
    ax.axhline(0, color=theme.BLACK, linewidth=0.8)
    ax.plot([columns["rank"][row] for row in plain], [columns["ratio"][row] / PERCENT for row in plain], "o",
            color=theme.GREY, markersize=2.5, linestyle="none", label=f"no change shown ({len(plain)})")  # fmt: skip
    for sign, mark, colour, words in ((-1, "v", theme.VERMILION, "worse"), (1, "^", theme.BLUE, "better")):
        rows = [row for row, change in enumerate(columns["change"]) if change and columns["ratio"][row] * sign > 0]
        ax.plot([columns["rank"][row] for row in rows], [columns["ratio"][row] / PERCENT for row in rows], mark,
                color=colour, markersize=5, linestyle="none", label=f"{words} ({len(rows)})")  # fmt: skip
    _names(ax, columns, facts["broken"])
    ax.set(xlabel="pair and test case, by rank of the change", ylabel=f"change of the mean {facts['metric']} [%]")
    ax.margins(x=0.04, y=0.08)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)


def _names(ax: Axes, columns: Mapping[str, Sequence[Any]], broken: Sequence[str]) -> None:
    """At the right of the axes: what got better, what broke or was mended, what got worse; the largest first."""
    named = sorted(
        (ratio, f"{name}: {ratio / PERCENT:+.0f} %")
        for ratio, name in zip(columns["ratio"], columns["name"], strict=True)
        if name
    )
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


PLOT = Plot("comparison", "What changed", "campaigns", table, draw)
