"""Figures of another number than their own: its words, its unit, and what failures mean for it."""

from dataclasses import replace

import pytest

from quicsat.model.errors import InputError
from quicsat.model.results import Measurement, ResultSet
from quicsat.plots import box, by_date, cdf, heatmap, strip_plot
from quicsat.plots.base import Plot
from quicsat.plots.metric_axis import metric_axis
from tests.plots.drawn import axes, column, panel, plot_request
from tests.results_builder import result_set, runs


def timed() -> ResultSet:
    """Two repetitions that took 8 and 10 s, and one that failed."""
    first, second, failed = runs(1e6, 2e6, None)
    numbers = [Measurement({"goodput": 1e6, "completion_time": time}) for time in (10.0, 8.0)]
    return result_set([replace(first, measurement=numbers[0]), replace(second, measurement=numbers[1]), failed])


def test_words_units_and_failures() -> None:
    usual = plot_request(timed())
    goodput, share = metric_axis(usual, "goodput"), metric_axis(usual, "loss_forward")
    assert (goodput.label, goodput.size, goodput.zeros(usual)) == ("goodput [Mbit/s]", 1e6, True)
    assert not goodput.zeros(plot_request(timed(), without_failed=True))
    assert (share.unit, share.size, share.zeros(usual)) == ("%", 0.01, False)
    assert metric_axis(usual, "sent_per_useful_byte").unit == "1"
    own = [metric_axis(usual, name) for name in ("server_cpu_per_mib", "client_memory_peak")]
    assert own[0].label == "CPU time of the server per MiB of the files [ms]"
    assert [(each.unit, each.size) for each in own] == [("ms", 1e-3), ("MiB", 1024**2)]
    with pytest.raises(InputError, match="Did you mean completion_time"):
        metric_axis(plot_request(timed(), metric="completion_tim"), "goodput")


@pytest.mark.parametrize(
    ("plot", "label"),
    [
        (cdf.PLOT, "completion time [s]"),
        (box.PLOT, "completion time [s]"),
        (heatmap.PLOT, "mean completion time [s]"),
        (strip_plot.PLOT, "mean completion time [s]"),
        (by_date.PLOT, "completion time [s]"),
    ],
)
def test_figures_of_another_number(plot: Plot, label: str) -> None:
    asked = plot_request(timed(), metric="completion_time")
    [drawing] = plot.table(asked)
    assert drawing.stem.startswith("completion_time")
    assert "ompletion time" in drawing.title
    shown = panel(plot, asked)
    assert shown.facts["label"] == label
    ax = axes(plot, shown)
    assert label in (ax.get_xlabel(), ax.get_ylabel()) or plot.name == "heatmap"


def test_a_time_that_never_came_is_not_0() -> None:
    asked = plot_request(timed(), metric="completion_time")
    shown = panel(cdf.PLOT, asked)
    assert column(shown, 1) == [[8.0, 10.0]]
    assert "the one that failed or timed out is not shown" in cdf.PLOT.table(asked)[0].caption
    ends = [line.get_xdata()[-1] for line in axes(cdf.PLOT, shown).get_lines()]  # type: ignore[index]
    assert ends == [pytest.approx(10.2)]
