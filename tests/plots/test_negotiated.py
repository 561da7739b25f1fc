"""A metric over a negotiated fact: values side by side, variants put together, and runs without a handshake."""

from dataclasses import replace

import numpy as np
import pytest

from quicsat.model.errors import InputError
from quicsat.model.negotiated import Negotiated
from quicsat.model.results import Measurement, RunResult
from quicsat.plots.base import NothingToDrawError
from quicsat.plots.negotiated import PLOT
from tests.plots.drawn import axes, column, panel, plot_request
from tests.results_builder import SAT, result_set, run_result


def run(client: str, repetition: int, rate: float, window: int | None, cipher: int = 0x1301) -> RunResult:
    found = run_result(rate, server="a", client=client, repetition=repetition)
    facts = None if window is None else Negotiated(1, cipher, "h3", client={"initial_max_data": window}, server={})
    return replace(found, measurement=Measurement({"goodput": rate}, negotiated=facts))


RESULTS = result_set(
    [
        run("x:small", 1, 1e6, 65536), run("x:small", 2, 4e6, 65536), run("x", 1, 9e6, 16 * 2**20, 0x1303),
        run("y", 1, 5e6, 2**20), run("y", 2, 5e6, None),
    ],
    servers=("a",), clients=("x", "x:small", "y"), test_cases=(SAT,),
)  # fmt: skip


def test_variants_are_put_together_and_bytes_have_units() -> None:
    shown = panel(PLOT, plot_request(RESULTS))
    assert column(shown, 0) == ["a, x", "a, y"]
    first, second = column(shown, 1)
    assert [place for place, _ in first] == [65536, 16 * 2**20]
    assert [mean.value for _, mean in first] == pytest.approx([2e6, 9e6])
    assert [place for place, _ in second] == [2**20]
    assert (shown.facts["x"], shown.facts["logarithmic"]) == ("client: initial max data", True)
    assert list(shown.facts["ticks"].values()) == ["64 KiB", "1 MiB", "16 MiB"]
    [drawing] = PLOT.table(plot_request(RESULTS))
    assert "n = 4 successful repetitions. Not shown: 1 without a readable handshake." in drawing.caption
    assert drawing.title == "SAT: goodput against client: initial max data"


def test_words_stand_side_by_side() -> None:
    shown = panel(PLOT, plot_request(RESULTS, over="cipher"))
    assert shown.facts["ticks"] == {0.0: "AES-128-GCM", 1.0: "ChaCha20-\nPoly1305"}
    assert [place for place, _ in column(shown, 1)[0]] == [0, 1]
    [drawing] = PLOT.table(plot_request(RESULTS, over="cipher"))
    assert (drawing.stem, drawing.title) == ("cipher-SAT", "SAT: goodput against cipher")


def test_a_value_that_limits_nothing_does_not_stretch_the_axis() -> None:
    many = [run("x", number, 1e6, size) for number, size in enumerate((2**20, 2**24, 2**62 - 1), start=1)]
    shown = panel(PLOT, plot_request(result_set(many, servers=("a",), clients=("x",), test_cases=(SAT,))))
    assert list(shown.facts["ticks"].values()) == ["1 MiB", "16 MiB", "no limit"]
    assert [place for place, _ in column(shown, 1)[0]] == [2**20, 2**24, 2**26]


def test_values_that_are_close_share_a_tick() -> None:
    sizes = (1472, 65536, 65536 + 1472, 24 * 2**20)
    many = [run("x", number, 1e6 * number, size) for number, size in enumerate(sizes, start=1)]
    results = result_set(many, servers=("a",), clients=("x",), test_cases=(SAT,))
    shown = panel(PLOT, plot_request(results))
    assert list(shown.facts["ticks"].values()) == ["1472 B", "64 KiB", "24 MiB"]
    assert [place for place, _ in column(shown, 1)[0]] == [*map(float, sizes)]


def test_drawn() -> None:
    ax = axes(PLOT, panel(PLOT, plot_request(RESULTS)))
    assert ax.get_xscale() == "log"
    marked = [line for line in ax.lines if line.get_marker() not in ("None", "", None)]
    assert [np.asarray(line.get_ydata()).tolist() for line in marked] == [pytest.approx([2, 9]), pytest.approx([5])]
    assert len(ax.lines) == 3


def test_nothing_to_draw_and_unknown_facts() -> None:
    with pytest.raises(NothingToDrawError, match="that differ in alpn"):
        PLOT.table(plot_request(RESULTS, over="alpn"))
    with pytest.raises(InputError, match="Did you mean"):
        PLOT.table(plot_request(RESULTS, over="client.initial_max_dat"))
