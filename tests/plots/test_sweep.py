"""Families as lines and maps: axes, means with intervals, what failed, and file names."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from quicsat.model.family import Family, SweptValue
from quicsat.model.outcomes import Outcome
from quicsat.model.test_case import TestCase
from quicsat.plots.base import NothingToDrawError
from quicsat.plots.sweep import PLOT, Axis
from tests.plots.drawn import axes, column, panel, panels, plot_request, texts
from tests.results_builder import SAT, result_set, run_result, runs


def loss(percent: str) -> SweptValue:
    return SweptValue("loss", f"{percent} %", float(percent) / 100, "%", 0.01)


def delay(number: str, unit: str, size: float) -> SweptValue:
    return SweptValue("delay", f"{number} {unit}", float(number) * size, unit, size)


def member(name: str, *values: SweptValue) -> TestCase:
    return replace(SAT, name=name, abbreviation=name.upper(), family=Family("lossy", "LOS", values))


LINE = tuple(member(f"los-{number}", loss(number)) for number in ("5", "0", "0.1"))
LINE_RESULTS = result_set(
    [
        *runs(8e6, 2e6, server="a", client="x", test_case="los-0"),
        *runs(2e6, server="a", client="x", test_case="los-0.1"),
        *runs(1e6, None, server="a", client="x", test_case="los-5"),
        *runs(9e6, server="b", client="x", test_case="los-0"),
        run_result(None, server="c", client="x", test_case="los-0", outcome=Outcome.FAILED),
    ],
    servers=("a", "b", "c"),
    clients=("x",),
    test_cases=(SAT, *LINE),
)
GRID = tuple(
    member(f"g-{d.text}-{p.text}".replace(" ", ""), d, p)
    for d in (delay("15", "ms", 1e-3), delay("0.3", "s", 1.0))
    for p in (loss("0"), loss("1"))
)
GRID_RESULTS = result_set(
    [
        *runs(4e6, 1e6, server="a", client="x", test_case=GRID[0].name),
        *runs(3e6, None, server="a", client="x", test_case=GRID[2].name),
        *runs(None, server="a", client="x", test_case=GRID[3].name),
    ],
    servers=("a",),
    clients=("x",),
    test_cases=GRID,
)


def test_a_line_for_each_pair() -> None:
    shown = panel(PLOT, plot_request(LINE_RESULTS))
    assert column(shown, 0) == ["a, x", "b, x"]
    [first, second] = column(shown, 1)
    assert [place for place, _ in first] == pytest.approx([0, 0.1, 5])
    assert [mean.value for _, mean in first] == pytest.approx([4e6, 2e6, 1e6])
    low, high = first[0][1].ends
    assert low < 4e6 < high
    assert first[1][1].ends is None
    assert [place for place, _ in second] == [0]
    assert (shown.facts["x"], shown.facts["y"]) == ("loss [%]", "goodput [Mbit/s]")
    assert shown.facts["texts"] == ["0", "0.1", "5"]
    assert shown.facts["logarithmic"]


def test_caption_and_file_of_lines() -> None:
    [drawing] = PLOT.table(plot_request(LINE_RESULTS))
    assert drawing.stem == "LOS"
    assert "n = 5 successful repetitions of 2 pairs. 1 failed or timed out and is not shown" in drawing.caption
    assert "of a pair (server, client), with its 95 % interval over repetitions" in drawing.caption


def test_one_repetition_has_no_interval_in_the_caption() -> None:
    once = replace(LINE_RESULTS, results=tuple(run for run in LINE_RESULTS.results if run.repetition == 1))
    [drawing] = PLOT.table(plot_request(once))
    assert "of a pair (server, client). " in drawing.caption
    assert "interval" not in drawing.caption


def test_lines_are_drawn_with_their_intervals() -> None:
    ax = axes(PLOT, panel(PLOT, plot_request(LINE_RESULTS)))
    marked = [line for line in ax.lines if line.get_marker() not in ("None", "", None)]
    assert [np.asarray(line.get_ydata()).tolist() for line in marked] == [pytest.approx([4, 2, 1]), pytest.approx([9])]
    [interval] = [line for line in ax.lines if line not in marked]
    assert np.asarray(interval.get_xdata()).tolist() == [0, 0]
    assert ax.get_xscale() == "symlog"
    legend = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["a, x", "b, x"]


def test_a_map_for_each_pair() -> None:
    shown = panel(PLOT, plot_request(GRID_RESULTS))
    assert (shown.facts["columns"], shown.facts["rows"]) == (["0.015", "0.3"], ["1", "0"])
    assert (shown.facts["x"], shown.facts["y"]) == ("delay [s]", "loss [%]")
    assert shown.rows == [
        (0, 1, pytest.approx(2e6), ""), (0, 0, None, "·"), (1, 1, pytest.approx(3e6), "T"), (1, 0, None, "T"),
    ]  # fmt: skip


def test_a_map_shows_every_number() -> None:
    ax = axes(PLOT, panel(PLOT, plot_request(GRID_RESULTS)))
    assert texts(ax) == ["2", "·", "3T", "T"]
    assert len(ax.images) == 1
    assert not any(isinstance(each, LineCollection) for each in ax.collections)


def test_words_and_further_keys() -> None:
    cases = [
        member(f"m-{word}-{rate}-{percent}", SweptValue("pep", word), SweptValue("rate", f"{rate} Mbit/s", rate * 1e6,
               "Mbit/s", 1e6), loss(percent))
        for word in ("none", "A") for rate in (1, 2) for percent in ("0", "1")
    ]  # fmt: skip
    found = result_set([run for case in cases for run in runs(1e6, server="a", client="x", test_case=case.name)],
                       servers=("a",), clients=("x",), test_cases=tuple(cases))  # fmt: skip
    drawings = PLOT.table(plot_request(found))
    assert [drawing.stem for drawing in drawings] == ["LOS-loss0pct", "LOS-loss1pct"]
    assert drawings[1].title == "LOS: goodput against pep and rate, loss 1 %"
    shown = panels(drawings[0])[0]
    assert (shown.facts["columns"], shown.facts["x"]) == (["none", "A"], "pep")


@pytest.mark.parametrize(
    ("key", "units", "label"),
    [("forward queue", ("", ""), "forward queue [packets]"), ("queue limit", ("", ""), "queue limit [packets]"),
     ("queue", ("KiB", "KiB"), "queue [KiB]"), ("queue", ("", "KiB"), "queue"), ("queues", ("", ""), "queues")],
)  # fmt: skip
def test_numbers_without_a_unit_are_packets_for_queues(key: str, units: tuple[str, str], label: str) -> None:
    values = [SweptValue(key, str(number), float(number), unit) for number, unit in zip((25, 100), units, strict=True)]
    assert Axis(key, tuple(values)).label == label


def test_selection_by_family_and_member() -> None:
    assert PLOT.table(plot_request(LINE_RESULTS, test_cases=("LOSSY",)))[0].stem == "LOS"
    two = plot_request(LINE_RESULTS, test_cases=("los-0", "los-5"))
    assert panel(PLOT, two).facts["texts"] == ["0", "5"]
    for wanted in (("los-0",), ("sat",)):
        with pytest.raises(NothingToDrawError):
            PLOT.table(plot_request(LINE_RESULTS, test_cases=wanted))
