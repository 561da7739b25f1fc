"""What a plot is: a name, numbers picked from results or runs, and how they are drawn on axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from interop.model import TestCase
from interop.pictures import Campaign, Wish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FAR = 0.6
"""Share of the highest value that the lowest one must have for an axis not to begin at 0."""
WIDTH = 6.3
"""Inches: the text width of an A4 page."""


class NothingToDrawError(Exception):
    """The numbers for a plot are not there; the message is one sentence about why."""


@dataclass(frozen=True)
class Panel:
    """The numbers of one pair of axes."""

    columns: Mapping[str, Sequence[Any]]
    """Name -> values; columns of one panel are equally long."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What holds for all rows: scales, limits, labels."""


@dataclass(frozen=True)
class Drawing:
    """One picture: rows of panels, of which some may be left empty."""

    stem: str
    """Last part of the file's name, empty if the plot has one picture only."""
    title: str
    caption: str
    """One or more sentences: n, and what was left out."""
    panels: tuple[tuple[Panel | None, ...], ...]
    size: tuple[float, float] = (WIDTH, 4.0)
    """Width and height, inches."""
    share_y: bool = False
    widths: tuple[float, ...] = ()
    """Of the columns of panels, to each other; all alike if empty."""


@dataclass(frozen=True)
class Plot:
    """A kind of figure; ``plots/<name>.py`` has it as ``PLOT``."""

    name: str
    title: str
    of: str
    """``results``: one campaign; ``campaigns``: several; ``runs``: the series of runs."""
    table: Callable[[Wish], Sequence[Drawing]]
    """Picks the numbers; raises NothingToDrawError."""
    draw: Callable[[Axes, Panel], None]
    """Draws them and decides nothing."""


def one(panel: Panel) -> tuple[tuple[Panel, ...], ...]:
    """A picture of one panel."""
    return ((panel,),)


def sentences(*parts: str) -> str:
    """Parts that are not empty, as sentences."""
    return " ".join(part if part.endswith(".") else f"{part}." for part in parts if part)


def each_case(wish: Wish) -> Iterator[tuple[Campaign, TestCase]]:
    """Every wanted test case of every campaign that measures something."""
    for campaign in wish.campaigns:
        for case in wish.measured(campaign.results):
            yield campaign, case


def stem(wish: Wish, campaign: Campaign, *parts: str) -> str:
    """Last part of a file's name; names the campaign if there are several."""
    named = [campaign.label] if len(wish.campaigns) > 1 else []
    return "-".join(part for part in (*named, *parts) if part)


def found(drawings: Sequence[Drawing], otherwise: str) -> Sequence[Drawing]:
    """The drawings; NothingToDrawError if there is none."""
    if not drawings:
        raise NothingToDrawError(otherwise)
    return drawings


def beginning(values: Sequence[float]) -> float:
    """Where an axis of a distribution begins: at 0, or just below values that are all far from it."""
    lowest, highest = min(values), max(values)
    return 0.0 if lowest < FAR * highest else max(0.0, lowest - 0.3 * (highest - lowest) - 0.01 * highest)


def told_of_failures(count: int, *, without: bool) -> str:
    """What became of repetitions that failed, for captions."""
    if not count:
        return "none failed or timed out"
    if count == 1:
        return f"the one that failed or timed out {'is left out' if without else 'counts as 0'}"
    return f"the {count} that failed or timed out {'are left out' if without else 'count as 0'}"
