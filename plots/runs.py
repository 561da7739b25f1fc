"""Curves over time, what figures over runs show of a pair, and how they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from interop.pictures import Wish
from interop.repetitions import Pair, pairs
from interop.traces.columns import Floats, Integers
from interop.traces.series import StreamData
from plots import theme
from plots.base import Drawing, NothingToDrawError, Panel, one, sentences, stem

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# ---- curves ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """Something over time."""

    x: Floats
    """Seconds since the client's first packet."""
    y: Floats | Integers
    """In the unit of the axis."""
    role: str
    """Of ``ROLES``, or the name of an implementation; empty: its place among the curves."""
    label: str = ""
    points: bool = False
    """Points instead of a line."""


ROLES: Mapping[str, tuple[str, Any, str, float]] = {
    "other": (theme.PALE, "-", ".", 1.0),
    "first": (theme.FIRST, "-", ".", 2.0),
    "again": (theme.AGAIN, "--", "x", 4.0),
    "request": (theme.REQUEST, "-.", "^", 4.0),
    "back": (theme.REQUEST, "-.", "+", 2.5),
    "ideal": (theme.BLACK, ":", ".", 1.0),
    "steady": (theme.GREY, "--", ".", 1.0),
    "target": (theme.BLACK, "-", "*", 8.0),
}
"""Colour, dash, mark and size of marks."""


@dataclass(frozen=True)
class Picked:
    """What a figure shows of one pair."""

    curves: Sequence[Curve]
    note: str = ""
    """For the caption."""
    marks: Sequence[tuple[float, str]] = ()
    """Times with the letters that the note explains."""


Pick = Callable[[Pair, bool], Picked]
"""What to show of a pair; True if there is nothing else in the figure, else the little that can be told apart."""


def drawings(wish: Wish, pick: Pick, title: str, ylabel: str, **facts: Any) -> list[Drawing]:
    """A drawing per pair and test case, or one of all of them if they are to be overlaid."""
    found = list(pairs(wish))
    if not found:
        raise NothingToDrawError("no run of these pairs has stored series; run.py analyse makes them from its traces.")
    if wish.overlaid:
        many = [pick(pair, False) for pair in found]
        rows = overlay(found, [each.curves for each in many])
        caption = sentences(told_of_all(found), *dict.fromkeys(each.note for each in many))
        return [
            Drawing(
                overlaid(found), common(title, found), caption, one(panel(rows, ylabel=ylabel, **facts)), (6.6, 4.0)
            )
        ]
    made = []
    for pair in found:
        picked = pick(pair, True)
        name = stem(wish, pair.campaign, pair.folder)
        heading = f"{title}: server {pair.server}, client {pair.client}, {pair.case.abbreviation}"
        shown = panel(picked.curves, ylabel=ylabel, marks=picked.marks, **facts)
        made.append(Drawing(name, heading, sentences(told(pair), picked.note), one(shown), (6.6, 4.0)))
    return made


def overlay(found: Sequence[Pair], curves: Sequence[Sequence[Curve]]) -> list[Curve]:
    """The curves of several pairs in the colours of the servers, or of the clients or test cases if these differ.

    What is the same for all of them, by its label, is there once.
    """
    apart = _apart(found)
    rows, shared = list[Curve](), dict[str, Curve]()
    for pair, own in zip(found, curves, strict=True):
        rows += [
            replace(each, role=getattr(pair, apart) if apart in ("server", "client") else "", label=pair.name)
            for each in own
            if each.role not in ROLES
        ]
        shared.update({each.label: each for each in own if each.role in ROLES})
    return [*rows, *shared.values()]


def common(title: str, found: Sequence[Pair]) -> str:
    """The title with what all pairs have in common."""
    cases = {_case(pair) for pair in found}
    pairs_there = {f"server {pair.server}, client {pair.client}" for pair in found}
    told = [*(cases if len(cases) == 1 else ()), *(pairs_there if len(pairs_there) == 1 else ())]
    return f"{title}: {', '.join(told)}" if told else title


def overlaid(found: Sequence[Pair]) -> str:
    """For the name of a file: what all pairs have in common."""
    cases, pairs_there = ({each(pair) for pair in found} for each in (_case, _pair))
    return "-".join(["overlaid", *(cases if len(cases) == 1 else ()), *(pairs_there if len(pairs_there) == 1 else ())])


def _case(pair: Pair) -> str:
    return pair.case.abbreviation


def _pair(pair: Pair) -> str:
    return f"{pair.server}_{pair.client}".replace(":", "+")


def _apart(found: Sequence[Pair]) -> str:
    servers, clients = ({getattr(pair, role) for pair in found} for role in ("server", "client"))
    if len(servers) == len(clients) == 1 < len(found):
        return "test case"
    return "client" if len(servers) < len(found) == len(clients) else "server"


def told_of_all(found: Sequence[Pair]) -> str:
    """n and what the names mean, of several pairs in one figure."""
    counts = {len(pair.runs) for pair in found}
    n = f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
    chosen = "" if counts == {1} else ", of which the one with the median time to completion is shown"
    words = f"n = {n} {'repetition' if counts == {1} else 'repetitions'} of each{chosen}"
    return f"{words}. Server, client, test case; colours are those of the {_apart(found)}s"


def told(pair: Pair) -> str:
    """n, and what the colours mean."""
    failed = sum(not run.succeeded for run in pair.runs)
    number = pair.middle.repetition
    several = (
        f"n = {len(pair.runs)} repetitions, grey; in colour number {number}, whose time to completion is the median"
    )
    return sentences(
        several if len(pair.runs) > 1 else f"n = 1: repetition {number}",
        f"{failed} of them did not succeed" if failed else "",
        f"Left out: {pair.without} without series" if pair.without else "",
    )


def panel(curves: Sequence[Curve], **facts: Any) -> Panel:
    """A row per curve."""
    columns: dict[str, list[Any]] = {
        "x": [curve.x for curve in curves],
        "y": [curve.y for curve in curves],
        "role": [curve.role for curve in curves],
        "label": [curve.label for curve in curves],
        "points": [curve.points for curve in curves],
    }
    return Panel(columns, facts)


def draw(ax: Axes, shown: Panel) -> None:
    """Curves in their order; dense points become an image, so that files stay small."""
    facts, named = shown.facts, 0
    overlaid = list(dict.fromkeys(label for label, role in zip(shown.columns["label"], shown.columns["role"],
                                                               strict=True) if role not in ROLES))  # fmt: skip
    for x, y, role, label, points in zip(*(shown.columns[name] for name in ("x", "y", "role", "label", "points")),
                                         strict=True):  # fmt: skip
        if role in ROLES:
            colour, dash, mark, size = ROLES[role]
        else:
            style = theme.of_position(overlaid.index(label))
            colour = theme.of_implementation(role).colour if role else style.colour
            dash, mark, size = style.dash, style.mark, 2.0
        known = label or None
        named += bool(known)
        if points:
            ax.plot(x, y, mark, color=colour, markersize=size, linestyle="none", markeredgewidth=0.6, label=known,
                    rasterized=len(x) > 300)  # fmt: skip
        else:
            ax.plot(x, y, color=colour, linestyle=dash, linewidth=0.8 if role == "other" else 1.3, label=known)
    ax.set(xlabel="time since the client's first packet [s]", ylabel=facts["ylabel"])
    ax.set_xlim(left=0)
    if facts.get("from_zero", True):
        ax.set_ylim(bottom=0)
    if facts.get("whole"):
        from matplotlib.ticker import MaxNLocator

        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    for number, (time, letter) in enumerate(facts.get("marks", ())):
        ax.axvline(time, color=theme.VERMILION, linewidth=0.7)
        ax.annotate(letter, (time, 1.0), xycoords=("data", "axes fraction"), xytext=(2, -8 - 8 * number),
                    textcoords="offset points", color=theme.VERMILION, fontsize=7, fontweight="bold")  # fmt: skip
    if named and facts.get("legend", True):
        _legend(ax, named)


def _legend(ax: Axes, named: int) -> None:
    """Above the axes, all marks of one size, so that dots can be seen."""
    columns = next((each for each in (4, 3, 2) if named % each == 0 or named > 2 * each), 4)
    legend = ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns)
    legend.set_in_layout(True)
    for handle in legend.get_lines():
        handle.set_markersize(5)


def stacked(data: StreamData) -> Integers:
    """Offsets with the streams one after the other, by connection and number; the only stream is as it is."""
    offsets = data.offset.copy()
    base = 0
    for connection in np.unique(data.connection):
        here = data.connection == connection
        for stream in np.unique(data.stream[here]):
            mine = here & (data.stream == stream)
            offsets[mine] += base
            base += int((data.offset[mine] + data.length[mine]).max())
    return offsets
