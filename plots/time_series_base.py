"""What all figures over time share: curves of a pair's runs, their captions, and how they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quicsat.model.arrays import Floats, Integers
from quicsat.model.names import pair_folder
from quicsat.model.text import counted
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import (
    NO_SERIES,
    Drawing,
    Group,
    NothingToDrawError,
    Panel,
    Plot,
    pair_style,
    sentences,
    single_panel,
    stem,
)
from quicsat.report.pair_series import PairSeries, load_pairs
from quicsat.report.plot_request import PlotRequest
from quicsat.traces.series import UNKNOWN, Packets, Samples, StreamData

# ---- curves ---------------------------------------------------------------------------------


FIRST_STYLE = theme.of_position(0)


@dataclass(frozen=True)
class Curve:
    """One quantity over time."""

    x: Floats
    """Seconds since the client's first packet."""
    y: Floats | Integers
    """In the unit of the axis."""
    role: str
    """A key of ``ROLES``; empty for the curve of one of several pairs or test cases, which ``style`` shows."""
    label: str = ""
    points: bool = False
    """Points instead of a line."""
    style: theme.Style = FIRST_STYLE

    @classmethod
    def of(cls, samples: Samples, unit: float, role: str, label: str = "") -> Curve:
        """A line through samples; ``unit``: that of the axis in SI base units."""
        return cls(samples.time, samples.value / unit, role, label)


ROLES: Mapping[str, tuple[str, Any, str, float]] = {
    "other": (theme.PALE, "-", ".", 1.0),
    "sample": (theme.SKY, "-", ".", 1.0),
    "first": (theme.FIRST, "-", ".", 2.0),
    "again": (theme.AGAIN, "--", "x", 4.0),
    "request": (theme.REQUEST, "-.", "^", 4.0),
    "back": (theme.REQUEST, "-.", "+", 2.5),
    "ideal": (theme.BLACK, ":", ".", 1.0),
    "steady": (theme.GREY, "--", ".", 1.0),
    "baseline": (theme.PURPLE, "-", ".", 1.0),
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


Pick = Callable[[PlotRequest, PairSeries, bool], Picked]
"""Selects the curves of a pair; the flag is False if the figure shows several pairs, with one curve for each."""


def over_time(name: str, title: str, ylabel: str, pick: Pick, **facts: Any) -> Plot:
    """A plot with a drawing per pair and test case, or a single one if the request overlays them."""
    return Plot(name, title, Group.TIME, "runs", lambda request: _drawings(request, pick, title, ylabel, facts), draw)


def _drawings(request: PlotRequest, pick: Pick, title: str, ylabel: str, facts: Mapping[str, Any]) -> Sequence[Drawing]:
    found = with_curves(load_pairs(request), lambda pair: pick(request, pair, not request.overlaid).curves)
    if request.overlaid:
        many = [pick(request, pair, False) for pair in found]
        rows = overlay(found, [each.curves for each in many])
        caption = sentences(pairs_caption(found), *dict.fromkeys(each.note for each in many))
        return [
            Drawing(
                overlay_stem(found),
                common_title(title, found),
                caption,
                single_panel(Panel(rows, {"ylabel": ylabel, **facts})),
                (6.6, 4.0),
            )
        ]
    made = []
    for pair in found:
        picked = pick(request, pair, True)
        name = stem(request, pair.campaign, pair.folder)
        heading = f"{title}: server {pair.server}, client {pair.client}, {pair.case.abbreviation}"
        shown = Panel(picked.curves, {"ylabel": ylabel, "marks": picked.marks, **facts})
        made.append(Drawing(name, heading, sentences(pair_caption(pair), picked.note), single_panel(shown), (6.6, 4.0)))
    return made


def with_curves(pairs: Iterable[PairSeries], curves: Callable[[PairSeries], Sequence[Curve]]) -> list[PairSeries]:
    """The pairs that have a curve to show; raises NothingToDrawError if there are none."""
    there = list(pairs)
    if not there:
        raise NothingToDrawError(NO_SERIES)
    found = [pair for pair in there if any(len(curve.x) for curve in curves(pair))]
    if not found:
        raise NothingToDrawError("the traces of these runs do not show it: that of the server is missing.")
    return found


def overlay(found: Sequence[PairSeries], curves: Sequence[Sequence[Curve]]) -> list[Curve]:
    """The curves of several pairs and test cases. Those that are the same for all, by their labels, appear once."""
    rows, shared = list[Curve](), dict[str, Curve]()
    for pair, style, own in zip(found, styles(found), curves, strict=True):
        rows += [replace(each, label=pair.name, style=style) for each in own if not each.role]
        shared.update({each.label: each for each in own if each.role})
    return [*rows, *shared.values()]


def styles(found: Sequence[PairSeries]) -> list[theme.Style]:
    """Of pairs as in all figures of their campaign, with the dash of the test case; of one pair, of each test case."""
    cases = list(dict.fromkeys(pair.case.name for pair in found))
    of_cases = [theme.of_position(cases.index(pair.case.name)) for pair in found]
    if len({_pair(pair) for pair in found}) == 1:
        return of_cases
    of_pairs = [pair_style(pair.campaign.results, (pair.server, pair.client)) for pair in found]
    if len(cases) == 1:
        return of_pairs
    return [replace(style, dash=of_case.dash) for style, of_case in zip(of_pairs, of_cases, strict=True)]


def common_title(title: str, found: Sequence[PairSeries]) -> str:
    """The title with what all pairs have in common."""
    cases = {_case(pair) for pair in found}
    pairs_there = {f"server {pair.server}, client {pair.client}" for pair in found}
    shared = [*(cases if len(cases) == 1 else ()), *(pairs_there if len(pairs_there) == 1 else ())]
    return f"{title}: {', '.join(shared)}" if shared else title


def overlay_stem(found: Sequence[PairSeries]) -> str:
    """The part of a file name that says what all pairs have in common."""
    cases, pairs_there = ({each(pair) for pair in found} for each in (_case, _pair))
    return "-".join(["overlaid", *(cases if len(cases) == 1 else ()), *(pairs_there if len(pairs_there) == 1 else ())])


def _case(pair: PairSeries) -> str:
    return pair.case.abbreviation


def _pair(pair: PairSeries) -> str:
    return pair_folder(pair.server, pair.client)


def pairs_caption(found: Sequence[PairSeries]) -> str:
    """The caption of several pairs in one figure: n, and the meaning of names."""
    return f"{repetitions_in_words(found)}. Labels name server, client and test case"


def repetitions_in_words(found: Sequence[PairSeries]) -> str:
    """n of several pairs, and which repetition the figure shows."""
    counts = {len(pair.runs) for pair in found}
    n = f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
    if counts == {1}:
        return f"Each pair has n = {n} repetition"
    return f"Each pair has n = {n} repetitions, of which the figure shows the one with the median completion time"


def pair_caption(pair: PairSeries) -> str:
    """The caption of one pair: n, and the meaning of the colours."""
    failed = sum(not run.succeeded for run in pair.runs)
    number = pair.middle.repetition
    several = (
        f"The figure shows n = {counted(len(pair.runs), 'repetition')}: in colour repetition {number}, "
        "which has the median "
        f"completion time, and the {'other' if len(pair.runs) == 2 else 'others'} in grey"
    )
    return sentences(
        several if len(pair.runs) > 1 else f"The figure shows repetition {number} (n = 1)",
        f"{failed} of them did not succeed" if failed else "",
        f"Not shown: {pair.without} without series" if pair.without else "",
    )


def draw(ax: Axes, shown: Panel) -> None:
    """Draw curves in their order; dense points are rasterised to keep files small."""
    facts, named = shown.facts, 0
    for curve in shown.rows:
        style = curve.style
        colour, dash, mark, size = ROLES.get(curve.role, (style.colour, style.dash, style.mark, 2.0))
        label = curve.label or None
        named += bool(label)
        if curve.points:
            ax.plot(curve.x, curve.y, mark, color=colour, markersize=size, linestyle="none", markeredgewidth=0.6,
                    label=label, rasterized=len(curve.x) > 300)  # fmt: skip
        else:
            width = 0.8 if curve.role == "other" else 1.3
            ax.plot(curve.x, curve.y, color=colour, linestyle=dash, linewidth=width, label=label)
    ax.set(xlabel=facts.get("xlabel", "time since the client's first packet [s]"), ylabel=facts["ylabel"])
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
        theme.legend_above(ax)


def packet_numbers(packets: Packets, since: Floats, role: str, label: str = "") -> Curve:
    """Readable numbers of packets relative to the first, from the earliest of the times ``since`` on.

    Packets before are of the handshake and numbered apart (RFC 9000, 12.3).
    """
    shown = (packets.number != UNKNOWN) & (packets.sent >= since.min(initial=np.inf))
    numbers = packets.number[shown]
    return Curve(packets.sent[shown], numbers - numbers.min(initial=numbers.max(initial=0)), role, label, points=True)


def stacked(data: StreamData) -> Integers:
    """Offsets (bytes) with streams stacked by connection and stream number; a single stream keeps its offsets."""
    offsets = data.offset.copy()
    base = 0
    for connection in np.unique(data.connection):
        here = data.connection == connection
        for stream in np.unique(data.stream[here]):
            mine = here & (data.stream == stream)
            offsets[mine] += base
            base += int((data.offset[mine] + data.length[mine]).max())
    return offsets
