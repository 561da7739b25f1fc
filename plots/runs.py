"""Runs of a pair with their stored series, and curves over time: what all figures over runs are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from interop.errors import InputError
from interop.model import Outcome, TestCase
from interop.pictures import Campaign, Wish
from interop.traces.columns import Floats, Integers
from interop.traces.series import Series, SeriesError, StreamData, load
from plots import theme
from plots.base import Drawing, NothingToDrawError, Panel, measured, one, sentences, stem

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Run:
    """A repetition with its series."""

    repetition: int
    series: Series
    succeeded: bool

    @property
    def completion(self) -> float:
        """When the last byte of a response arrived, seconds since the client's first packet; infinite if none did."""
        last = self.series.requests.last_byte
        known = last[np.isfinite(last)]
        return float(known.max()) if len(known) else float("inf")


@dataclass(frozen=True)
class Pair:
    """All repetitions of a pair in a test case that have series."""

    campaign: Campaign
    case: TestCase
    server: str
    client: str
    runs: tuple[Run, ...]
    without: int
    """Repetitions that have none."""

    @property
    def middle(self) -> Run:
        """The run whose time to completion is nearest to the median; of runs that are as near, the first."""
        times = [run.completion for run in self.runs if run.succeeded and isfinite(run.completion)]
        if not times:
            return self.runs[0]
        wanted = median(times)
        return min((run for run in self.runs if run.succeeded), key=lambda run: abs(run.completion - wanted))

    @property
    def others(self) -> tuple[Run, ...]:
        """All but the middle one."""
        chosen = self.middle
        return tuple(run for run in self.runs if run is not chosen)

    @property
    def name(self) -> str:
        """For legends."""
        return f"{self.server}, {self.client}, {self.case.abbreviation}"

    @property
    def folder(self) -> str:
        """For file names: ``quic-go_picoquic+bbr-SAT``."""
        return f"{self.server}_{self.client}-{self.case.abbreviation}".replace(":", "+")


def pairs(wish: Wish) -> Iterator[Pair]:
    """Every wanted pair in every wanted test case that has series; raises InputError for a damaged file."""
    for campaign in wish.campaigns:
        if campaign.directory is None:
            continue
        manifest = campaign.results.manifest
        folders = {name: name.replace(":", "+") for name in (*manifest.servers, *manifest.clients)}
        for case in measured(wish, campaign.results):
            wanted = wish.pairs or [(server, client) for client in manifest.clients for server in manifest.servers]
            for server, client in wanted:
                mine = [each for each in campaign.results.results
                        if (each.server, each.client, each.test_case) == (server, client, case.name)]  # fmt: skip
                place = campaign.directory / f"{folders.get(server, server)}_{folders.get(client, client)}" / case.name
                found = [
                    Run(each.repetition, series, each.verdict.outcome is Outcome.SUCCEEDED)
                    for each in sorted(mine, key=lambda each: each.repetition)
                    if each.verdict.outcome is not Outcome.ERROR
                    and (series := _load(place / str(each.repetition))) is not None
                ]
                if found:
                    yield Pair(campaign, case, server, client, tuple(found), len(mine) - len(found))


def _load(directory: Path) -> Series | None:
    try:
        return load(directory)
    except SeriesError as error:
        raise InputError(str(error)) from error


# ---- curves ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """Something over time."""

    x: Floats
    """Seconds since the client's first packet."""
    y: Floats | Integers
    """In the unit of the axis."""
    role: str
    """Of ``ROLES``, or the name of a server."""
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
        rows = [curve for pair in found for curve in pick(pair, False).curves]
        n = ", ".join(f"{len(pair.runs)} in {pair.name}" for pair in found)
        caption = sentences(f"The repetition with the median time to completion of n = {n}. Server, client, test case")
        return [Drawing("overlaid", title, caption, one(panel(rows, ylabel=ylabel, **facts)), (6.6, 4.0))]
    made = []
    for pair in found:
        picked = pick(pair, True)
        name = stem(wish, pair.campaign, pair.folder)
        heading = f"{title}: server {pair.server}, client {pair.client}, {pair.case.abbreviation}"
        shown = panel(picked.curves, ylabel=ylabel, marks=picked.marks, **facts)
        made.append(Drawing(name, heading, sentences(told(pair), picked.note), one(shown), (6.6, 4.0)))
    return made


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
    overlaid = [label for label in dict.fromkeys(shown.columns["label"]) if label]
    distinct = len(set(shown.columns["role"])) == len(shown.columns["role"])
    for x, y, role, label, points in zip(*(shown.columns[name] for name in ("x", "y", "role", "label", "points")),
                                         strict=True):  # fmt: skip
        if role in ROLES:
            colour, dash, mark, size = ROLES[role]
        else:
            style = theme.of_position(overlaid.index(label))
            colour = theme.of_implementation(role).colour if distinct else style.colour
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
    ax.set_ylim(bottom=0)
    if facts.get("whole"):
        from matplotlib.ticker import MaxNLocator

        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    for number, (time, letter) in enumerate(facts.get("marks", ())):
        ax.axvline(time, color=theme.VERMILION, linewidth=0.7)
        ax.annotate(letter, (time, 1.0), xycoords=("data", "axes fraction"), xytext=(2, -8 - 8 * number),
                    textcoords="offset points", color=theme.VERMILION, fontsize=7, fontweight="bold")  # fmt: skip
    if named:
        legend = ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2 if named > 4 else 4, markerscale=2)
        legend.set_in_layout(True)


def stacked(data: StreamData) -> Integers:
    """Offsets with the streams one after the other, in the order of their numbers; the only stream is as it is."""
    offsets = data.offset.copy()
    base = 0
    for stream in np.unique(data.stream):
        mine = data.stream == stream
        offsets[mine] += base
        base += int((data.offset[mine] + data.length[mine]).max())
    return offsets
