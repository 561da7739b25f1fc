"""Colours, marks and settings of all figures: safe for the colour-blind, and never colour alone.

Colours are those of Okabe and Ito (2008) without yellow, which vanishes on white paper. An implementation has the same
colour and mark in every figure, whichever others are there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from quicsat.model.names import base_name
from quicsat.plots.axes import Axes

if TYPE_CHECKING:
    from matplotlib.colors import LinearSegmentedColormap

BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000",
)  # fmt: skip
COLOURS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK)
MORE_COLOURS = ("#332288", "#44AA99", "#882255", "#117733", "#8C510A", "#999933", "#888888")
"""For implementations, when those have been used up: mostly of Tol's muted scheme (2021)."""
PAIR_COLOURS = (*COLOURS, *(colour for colour in MORE_COLOURS if colour not in ("#44AA99", "#117733")))
"""Of pairs, without two more kinds of green."""
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*")
VARIANT_MARKS = ("d", (4, 1, 0), (3, 1, 0), (6, 1, 0), (3, 1, 180), (4, 1, 45), (8, 1, 0))
"""Of variants, which no implementation has: stars of so many points, turned by so many degrees."""
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (3, 1, 1, 1, 1, 1)))
GREY = "#767676"
PALE = "#D9D9D9"
FAILURE = VERMILION
SERVER, CLIENT = ORANGE, BLUE
FIRST, AGAIN, REQUEST = BLUE, ORANGE, GREEN
"""Transmissions: the first one of a byte, a later one, and what the client asked."""

ORDER = (
    "quic-go", "aioquic", "picoquic", "quiche", "ngtcp2", "lsquic", "msquic", "mvfst", "xquic", "neqo", "kwik",
    "quicly", "quinn", "s2n-quic", "nginx", "haproxy", "chrome", "quant", "go-x-net", "openssl", "tquic", "nginx-tcp",
    "curl", "chromium", "noq", "openssl-newest", "webtransport-go", "deno", "netty", "qh3", "flupke",
)  # fmt: skip
"""Implementations of which each has a colour and mark of its own; new ones are added at the end."""

FAMILY_STYLES = {
    "Reno": (PURPLE, "^"),
    "NewReno": (BLUE, "v"),
    "CUBIC": (GREEN, "s"),
    "BBR": (ORANGE, "o"),
    "other": (SKY, "P"),
    "unknown": (GREY, "X"),
}
"""Congestion control algorithms, as ``quicsat.statistics.overview.family`` names them."""

SETTINGS: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "figure.titlesize": 10,
    "lines.linewidth": 1.2,
    "path.simplify": True,
    "agg.path.chunksize": 20000,
    "svg.fonttype": "none",
    "svg.hashsalt": "quicsat",
    "pdf.fonttype": 42,
    "pgf.rcfonts": False,
    "pgf.texsystem": "pdflatex",
}
CAPTION_SIZE = 6.5
LEGEND_LETTERS, HANDLE_LETTERS = 20, 9
"""Characters of a legend in an inch, and those that a sample of a line takes with its gaps."""
PNG_DPI = 150


@dataclass(frozen=True)
class Style:
    """How something is shown."""

    colour: str
    mark: Any
    dash: Any


def of_implementation(name: str) -> Style:
    """The same for a name everywhere; a variant has the colour of its implementation and a mark and dash of its own."""
    base = base_name(name)
    variant = name[len(base) + 1 :]
    number = ORDER.index(base) if base in ORDER else len(ORDER) + _hash(base)
    colours = COLOURS + MORE_COLOURS
    if not variant:
        return Style(colours[number % len(colours)], MARKS[number % len(MARKS)], DASHES[number % len(DASHES)])
    turn = _hash(variant)
    dash = DASHES[(number + 1 + turn % (len(DASHES) - 1)) % len(DASHES)]
    return Style(colours[number % len(colours)], VARIANT_MARKS[turn % len(VARIANT_MARKS)], dash)


def of_position(number: int) -> Style:
    """For test cases and other things that have an order but no name of their own."""
    return Style(COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)], DASHES[number % len(DASHES)])


def of_pair(server: int, client: int, servers: int, pairs: int) -> Style:
    """For a pair by the positions of both in a campaign with so many servers and pairs.

    While the colours last, each pair has its own; then those with the same server or client have different ones.
    """
    if pairs <= len(PAIR_COLOURS):
        colour = mark = dash = client * servers + server
    else:
        colour, mark = server + client, server + 2 * client
        dash = mark
    return Style(PAIR_COLOURS[colour % len(PAIR_COLOURS)], MARKS[mark % len(MARKS)], DASHES[dash % len(DASHES)])


def of_family(name: str) -> tuple[str, str]:
    """Colour and mark of a congestion control."""
    return FAMILY_STYLES[name]


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


def sequential() -> LinearSegmentedColormap:
    """Green's cube helix (2011) as Fig. 4 of the paper has it (start .2, -.3 rotations): brightness falls steadily."""
    from matplotlib.colors import LinearSegmentedColormap

    light = np.linspace(0.88, 0.18, 64)
    angle = 2 * np.pi * (0.2 / 3 + 1 - 0.3 * (1 - light))
    swing = 0.8 * light * (1 - light) / 2
    matrix = np.array([[-0.14861, 1.78277], [-0.29227, -0.90649], [1.97294, 0.0]])
    colours = light + swing * (matrix @ np.array([np.cos(angle), np.sin(angle)]))
    return LinearSegmentedColormap.from_list("helix", np.clip(colours.T, 0, 1))


def diverging() -> LinearSegmentedColormap:
    """From what is worse through nothing to what is better."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("worse-better", (VERMILION, "#FFFFFF", BLUE))


def box(percentiles: Sequence[float]) -> dict[str, Any]:
    """A box of ``Axes.bxp`` of five percentiles: ends of the whiskers, quartiles and median, in ascending order."""
    return dict(zip(("whislo", "q1", "med", "q3", "whishi"), percentiles, strict=True))


def logarithmic(ax: Axes, name: str) -> None:
    """Make the axis ``x`` or ``y`` logarithmic, with plain numbers: at 1, 2 and 5, and more within a decade.

    What is on the axis is drawn before.
    """
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    ax.set(**{f"{name}scale": "log"})
    axis = ax.xaxis if name == "x" else ax.yaxis
    low, high = axis.get_view_interval()
    ticks = LogLocator(subs=(1, 2, 5) if high > 10 * low else (1, 2, 3, 4, 5, 6, 8))
    axis.set_major_locator(ticks if high > 4 * low else MaxNLocator(6))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def legend_above(ax: Axes, title: str = "", most: int = 4, **options: Any) -> None:
    """Place the legend above the axes, in as many columns as its labels allow, with marks of one size.

    ``most``: columns at most.
    """
    handles = options.get("handles")
    labels = [each.get_label() for each in handles] if handles else ax.get_legend_handles_labels()[1]
    longest = max((len(each) for each in labels), default=0)
    width = ax.get_window_extent().width / ax.figure.dpi
    fitting = max(1, min(most, int(width * LEGEND_LETTERS) // (longest + HANDLE_LETTERS)))
    even = (each for each in range(fitting, 1, -1) if len(labels) % each == 0 or len(labels) > 2 * each)
    legend = ax.legend(
        title=title or None, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=next(even, fitting), **options
    )
    for line in legend.get_lines():
        line.set_markersize(5)


def dates(ax: Axes) -> None:
    """Days since 1970 as dates, with few words; the axis shows what was drawn before, and two hours at least."""
    from matplotlib.dates import HOURS_PER_DAY, AutoDateLocator, ConciseDateFormatter

    first, last = ax.dataLim.intervalx
    margin = max(0.04 * (last - first), 1 / HOURS_PER_DAY - (last - first) / 2)
    ax.set_xlim(first - margin, last + margin)
    locator = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
