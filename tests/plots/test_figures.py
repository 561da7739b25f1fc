"""Every figure over results: units on the axes, n in the caption, no labels that overlap, the same bytes each time."""

import re
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from quicsat.model.errors import InputError
from quicsat.model.results import ResultSet
from quicsat.plots import theme
from quicsat.plots.base import Drawing, Group, NothingToDrawError, Plot, pair_style
from quicsat.plots.discovery import draw, plots
from quicsat.plots.drawn_before import content_of
from quicsat.plots.render import figure, plain_texts
from quicsat.report.plot_request import PlotRequest
from tests.campaign_builder import LOSSES, NAMES, PAGE, SMALL, TERRESTRIAL, Shape, campaign
from tests.plots import requests
from tests.plots.drawn import plot_request
from tests.results_builder import SAT, SATLOSS, result_set, runs

OVER_RESULTS = [plot for plot in plots().values() if plot.of != "runs"]
OF_SHAPES = [plot for plot in plots().values() if plot.name not in requests.MAKE]
"""Those for which a synthetic campaign of measurements has all that they show."""
CASES = (TERRESTRIAL, SAT, SATLOSS, SMALL, PAGE, *LOSSES)
LONG = (
    "picoquic:bbr-without-pacing-and-hystart", "s2n-quic:cubic-initial-window-of-32", "quic-go:newreno-small-windows",
)  # fmt: skip
SHAPES = {
    "14 by 16": Shape(NAMES[:14], NAMES, (SAT, SATLOSS), repetitions=3),
    "3 by 3": Shape(NAMES[:3], NAMES[:3], CASES, repetitions=3),
    "failing": Shape(NAMES[:3], NAMES[:3], CASES, repetitions=3, failing=0.7),
    "one pair": Shape(NAMES[:1], NAMES[1:2], CASES, repetitions=1, failing=0),
    "long names": Shape(LONG, LONG, CASES, repetitions=10),
}
LARGEST = 24.0
"""Inches."""
COUNTS = {"pairs", "pair and test case", "object [number]", "packet number"}
NO_UNIT = {
    "server", "client", "date (UTC)", "test case", "pairs", "size of the files, test case, protocol",
    "start of the campaign (UTC)", "objects", "pair and test case, by rank of the change", "", "packet number",
    "release", "first flow (server/client)", "second flow (server/client)", "server, client",
    "client: initial max data",  # its ticks have units
}  # fmt: skip


@cache
def shaped(shape: str) -> ResultSet:
    """A synthetic campaign. It is immutable, so all tests share it."""
    return campaign(SHAPES[shape])


def drawings(plot: Plot, shape: str) -> list[Drawing]:
    """Of a synthetic campaign, or of two; none if it has nothing to show."""
    first = shaped(shape)
    several = [first, first] if plot.of == "campaigns" else [first]
    try:
        return list(plot.table(plot_request(*several)))
    except NothingToDrawError:
        return []


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("plot", OF_SHAPES, ids=lambda plot: plot.name)
def test_axes_captions_and_labels(plot: Plot, shape: str) -> None:
    found = drawings(plot, shape)
    assert found or shape != "3 by 3"
    for drawing in found[:1]:
        look_at(plot, drawing)


@pytest.mark.parametrize("pairs", [1, 3, 196])
@pytest.mark.parametrize("name", requests.MAKE)
def test_axes_captions_and_labels_of_other_campaigns(name: str, pairs: int, tmp_path: Path) -> None:
    plot = plots()[name]
    look_at(plot, plot.table(requests.MAKE[name](pairs, tmp_path))[0])


def look_at(plot: Plot, drawing: Drawing) -> None:
    """Check what a reader needs in each figure."""
    assert " at 0x" not in content_of(drawing)  # it says in each process the same
    assert re.search(r"\bn = \d", drawing.caption) or "repetitions of all pairs" in drawing.caption.lower()
    made = figure(plot, drawing)
    painted(made)
    for ax in made.axes:
        if not ax.axison:
            continue
        for label in (ax.get_xlabel(), ax.get_ylabel()):
            assert "[" in label or label in NO_UNIT
        assert ax.has_data() or ax.collections or ax.texts
        assert illegible(ax) == []
        for axis in (axis for axis in (ax.xaxis, ax.yaxis) if axis.get_scale() == "log"):
            assert len(ticks_inside(ax, [label for label in axis.get_ticklabels() if label.get_text()])) >= 3
    assert max(made.get_size_inches()) < LARGEST
    assert overlaps(made) == []
    assert cut(made) == []
    assert outside(made) == []


def illegible(ax: Axes) -> list[str]:
    """Tick labels that no reader wants: powers written as in a program, and parts of what can only be counted."""
    found = []
    for axis in (ax.xaxis, ax.yaxis):
        counts = axis.get_label_text().partition(",")[0] in COUNTS
        for tick in (label.get_text() for label in axis.get_ticklabels()):
            found += [tick] if re.search(r"\de[+-]?\d", tick) or (counts and "." in tick) else []
    return found


def outside(made: Figure) -> list[str]:
    """Titles, captions and labels of axes that reach beyond an edge of the figure."""
    texts = [*made.texts, *(text for ax in made.axes for text in (ax.title, ax.xaxis.label, ax.yaxis.label))]
    edge = made.bbox.padded(1)
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text()]
    return [text for text, box in boxes if box.x0 < edge.x0 or box.x1 > edge.x1 or box.y0 < edge.y0 or box.y1 > edge.y1]


def cut(made: Figure) -> list[str]:
    """First labels of legends that reach beyond the left or right edge of the figure."""
    found = []
    for legend in [*made.legends, *(ax.get_legend() for ax in made.axes)]:
        if legend is not None:
            box = legend.get_window_extent()
            if box.x0 < made.bbox.x0 or box.x1 > made.bbox.x1:
                found.append(legend.get_texts()[0].get_text() if legend.get_texts() else "")
    return found


def painted(made: Figure) -> None:
    """Give every text its place. The tests do not look at pixels, so this draws none."""
    FigureCanvasAgg(made)
    with plain_texts():
        made.draw_without_rendering()


def overlaps(made: Figure) -> list[tuple[str, str]]:
    """Pairs of tick labels of one axis, or of axis labels, titles and captions, whose boxes meet."""
    found = []
    for ax in made.axes:
        for axis in (ax.xaxis, ax.yaxis):
            labels = [label for label in axis.get_ticklabels() if label.get_visible() and label.get_text()]
            if not any(label.get_rotation() % 90 for label in labels):
                found += meeting(ticks_inside(ax, labels))
    titles = [text for text in made.texts if text.get_text()]
    for ax in made.axes:
        titles += [text for text in (ax.xaxis.label, ax.yaxis.label, ax.title) if text.get_text()]
    return found + meeting(titles)


def ticks_inside(ax: Axes, labels: list[Text]) -> list[Text]:
    """Those that are drawn: their ticks lie within the limits."""
    box = ax.get_window_extent().expanded(1.01, 1.01)
    inside = []
    for label in labels:
        extent = label.get_window_extent()
        x, y = (extent.x0 + extent.x1) / 2, (extent.y0 + extent.y1) / 2
        if box.x0 <= x <= box.x1 or box.y0 <= y <= box.y1:
            inside.append(label)
    return inside


def meeting(texts: list[Text]) -> list[tuple[str, str]]:
    boxes = [(text.get_text(), text.get_window_extent().padded(-0.5)) for text in texts]
    return [(a, b) for (a, box), (b, other) in combinations(boxes, 2) if box.overlaps(other) and a != b]


@pytest.mark.parametrize("plot", plots().values(), ids=lambda plot: plot.name)
def test_every_plot_has_a_heading(plot: Plot) -> None:
    assert plot.group in Group


PAIRS_SHOWN = ("cdf-pairs", "violin-pairs", "loss")


@pytest.mark.parametrize("name", PAIRS_SHOWN)
def test_a_pair_looks_the_same_in_all_figures_of_a_campaign(name: str) -> None:
    results, plot = shaped("3 by 3"), plots()[name]
    for pairs in ((), results.pairs[4:6], results.pairs[5:6]):
        chosen = results.of_pairs(pairs)
        for drawing in plot.table(plot_request(chosen)):
            [[panel]] = drawing.panels
            for row in panel.rows:
                [style] = [each for each in row if isinstance(each, theme.Style)]
                pair = tuple(row[0].partition(" (")[0].split(", "))
                assert style == pair_style(results, (pair[0], pair[1]))


def test_few_pairs_of_a_large_campaign_have_colours_of_their_own() -> None:
    results = shaped("14 by 16")
    chosen = tuple((name, NAMES[15 - number]) for number, name in enumerate(NAMES[:12]))
    selected = results.of_pairs(chosen)
    assert len({pair_style(selected, pair).colour for pair in chosen}) == 12


@pytest.mark.parametrize(("servers", "clients"), [(1, 12), (2, 6), (3, 3), (14, 16), (16, 14)])
def test_pairs_look_unlike_each_other(servers: int, clients: int) -> None:
    every = {
        (server, client): theme.of_pair(server, client, servers, servers * clients)
        for server in range(servers)
        for client in range(clients)
    }
    assert len({(style.colour, style.mark, style.dash) for style in every.values()}) == len(every)
    for server in range(servers):
        colours = [every[server, client].colour for client in range(min(clients, len(theme.PAIR_COLOURS)))]
        assert len({*colours}) == len(colours)


def test_titles_and_captions_may_be_left_out(tmp_path: Path) -> None:
    request = PlotRequest(plot_request(shaped("3 by 3")).campaigns, tmp_path, ("cdf",), ("svg",))
    whole, bare = (draw(replace(request, title=kept, caption=kept)) for kept in (True, False))
    assert whole.captions == bare.captions
    [file] = bare.files
    assert not any(text in file.read_text() for text in whole.captions[0][1:])


def test_the_check_for_cut_legends_finds_one() -> None:
    made = Figure(figsize=(3, 2))
    ax = made.subplots()
    for number in range(3):
        ax.plot([0, 1], label=f"a label of many words, number {number}")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    painted(made)
    assert cut(made) == ["a label of many words, number 0"]


def test_a_legend_of_long_labels_has_fewer_columns() -> None:
    """``SATL (n = 1000, 500 without success)`` three times is wider than the figure."""
    cases = tuple(replace(SATLOSS, name=name, abbreviation=f"SATL{name.upper()}") for name in ("a", "b", "c"))
    many = [run for case in cases for run in runs(*[1e6, None] * 500, test_case=case.name)]
    plot = plots()["cdf"]
    [drawing] = plot.table(plot_request(result_set(many, test_cases=cases)))
    made = figure(plot, drawing)
    painted(made)
    assert cut(made) == []
    legend = made.axes[0].get_legend()
    assert legend.get_texts()[0].get_text() == "SATLA (n = 1000, 500 without success)"


def test_the_check_for_overlaps_finds_one() -> None:
    made = Figure(figsize=(2, 2))
    ax = made.add_subplot()
    ax.set_xticks([0, 0.1, 0.2], ["a long label", "another long one", "a third"])
    painted(made)
    assert overlaps(made)


@pytest.mark.parametrize("plot", OVER_RESULTS, ids=lambda plot: plot.name)
@pytest.mark.parametrize("results", [result_set(), result_set(runs(None, None))], ids=["empty", "all timed out"])
def test_nothing_is_drawn_of_nothing(plot: Plot, results: ResultSet, tmp_path: Path) -> None:
    gallery = draw(PlotRequest(plot_request(results).campaigns, tmp_path, (plot.name,), ("png",)))
    if plot.name in ("heatmap", "topology") and results.results:
        assert len(gallery.files) == 1
    else:
        assert gallery.files == ()
        assert gallery.skipped[0].startswith(f"{plot.name}: ")


@pytest.mark.parametrize("form", ["svg", "png", "pdf", "pgf"])
def test_the_same_numbers_are_the_same_bytes(form: str, tmp_path: Path) -> None:
    campaigns = plot_request(shaped("3 by 3")).campaigns
    contents = []
    for name in ("a", "b"):
        made = draw(PlotRequest(campaigns, tmp_path / name, ("cdf", "violin"), (form,), ("SAT",)))
        assert len(made.files) == 2
        contents.append([path.read_bytes() for path in made.files])
    assert contents[0] == contents[1]


def test_plots_are_found_by_their_modules() -> None:
    files = {path.stem.replace("_", "-") for path in Path(theme.__file__).parent.glob("*.py")}
    assert set(plots()) == files - {
        "--init--",
        "axes",
        "base",
        "discovery",
        "drawn-before",
        "metric-axis",
        "render",
        "theme",
        "time-series-base",
    }


def test_a_wrong_name_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Did you mean heatmap"):
        draw(PlotRequest((), tmp_path, ("heatmaps",)))


def test_implementations_look_the_same_everywhere_and_unlike_each_other() -> None:
    styles = {name: theme.of_implementation(name) for name in theme.ORDER}
    assert len({(style.colour, style.mark) for style in styles.values()}) == len(theme.ORDER)
    assert theme.of_implementation("quic-go") == styles["quic-go"]
    variant = theme.of_implementation("picoquic:bbr")
    assert variant.colour == styles["picoquic"].colour
    assert variant.mark not in {style.mark for style in styles.values()}
    assert variant.dash != styles["picoquic"].dash
    assert theme.of_implementation("unheard-of") == theme.of_implementation("unheard-of")


def test_a_dollar_sign_is_no_formula(tmp_path: Path) -> None:
    shown = Drawing("", "$\\frac{", "n = 1 $x$", drawings(plots()["cdf"], "3 by 3")[0].panels)
    painted(figure(plots()["cdf"], shown))


def test_pgf_needs_no_latex_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    [file] = draw(PlotRequest(plot_request(shaped("3 by 3")).campaigns, tmp_path, ("cdf",), ("pgf",))).files
    text = file.read_text()
    assert r"\begin{pgfpicture}" in text
    assert r"efficiency [\%]" in text
