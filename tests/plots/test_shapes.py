"""Figures that seaborn draws, groups, testbeds: their numbers exactly, their artists by count and place."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.collections import FillBetweenPolyCollection, LineCollection

from quicsat.model.emulated_link import ClientSide, ClientSideDirection, UniformLoss
from quicsat.model.implementation import Role
from quicsat.model.objective import MB, Objective
from quicsat.model.results import ResultSet, RunResult
from quicsat.plots import (
    cdf_pairs,
    comparison,
    data_rate,
    data_size,
    kde,
    packet_number,
    ridgeline,
    scatter_matrix,
    strip_plot,
    topology,
    two_case_scatter,
    violin,
    violin_pairs,
)
from quicsat.plots.base import DENSITY_FROM, NothingToDrawError, Plot, axis_start, pair_style
from quicsat.plots.time_series_base import overlay
from quicsat.report.plot_request import PlotRequest
from tests.campaign_builder import TERRESTRIAL
from tests.plots.drawn import axes, column, panel, panels, plot_request, texts
from tests.results_builder import SAT, SATLOSS, result_set, run_result, runs, virtual
from tests.runs_builder import campaign

RATES = {("a", "x"): 10e6, ("a", "y"): 9e6, ("b", "x"): 2e6, ("b", "y"): 1e6, ("c", "x"): 2e6, ("c", "z"): 1e6}


def results(repetitions: int = 5, factor: float = 1.0) -> list:  # type: ignore[type-arg]
    """Each pair of RATES in sat."""
    return [
        each
        for (server, client), rate in RATES.items()
        for each in runs(*(factor * (rate + 1e5 * number) for number in range(repetitions)), server=server,
                         client=client)
    ]  # fmt: skip


def some(**options: object):  # type: ignore[no-untyped-def]
    return result_set(results(**options), servers=("a", "b", "c"), clients=("x", "y", "z"))  # type: ignore[arg-type]


def test_violins_have_halves_and_few_values_are_points() -> None:
    shown = panel(violin.PLOT, plot_request(some(repetitions=DENSITY_FROM)))
    assert column(shown, 0) == ["a", "b", "c", "x", "y", "z"]
    assert column(shown, 1) == [Role.SERVER] * 3 + [Role.CLIENT] * 3
    assert [len(values) for values in column(shown, 2)] == [16, 16, 16, 24, 16, 8]
    halves = [each for each in axes(violin.PLOT, shown).collections if isinstance(each, FillBetweenPolyCollection)]
    assert len(halves) == 6
    few = axes(violin.PLOT, panel(violin.PLOT, plot_request(some(repetitions=1))))
    assert not [each for each in few.collections if isinstance(each, FillBetweenPolyCollection)]
    assert [len(line.get_xdata()) for line in few.get_lines()] == [2, 2, 2, 3, 2, 1]  # type: ignore[arg-type]


def test_a_half_ends_at_the_least_and_the_largest_value_on_its_side() -> None:
    [server, client] = axes(
        violin.PLOT, panel(violin.PLOT, plot_request(result_set(runs(*[2e6, 3e6, 4e6, 5e6, 6e6] * 2))))
    ).collections
    box = server.get_paths()[0].get_extents()
    assert (box.y0, box.y1) == pytest.approx((2, 6))
    assert box.x1 < 0.01
    assert client.get_paths()[0].get_extents().x0 > 0.5


def test_ridges_stand_on_their_rows_the_best_at_the_top() -> None:
    shown = panel(ridgeline.PLOT, plot_request(some()))
    assert column(shown, 1) == ["b", "c", "a"]
    ridges = [each for each in axes(ridgeline.PLOT, shown).collections if isinstance(each, FillBetweenPolyCollection)]
    boxes = [ridge.get_paths()[0].get_extents() for ridge in ridges]
    assert [round(box.y0, 6) for box in boxes] == [2, 1, 0]
    assert [box.height for box in boxes] == pytest.approx([ridgeline.OVERLAP] * 3)


def test_an_axis_begins_near_values_that_are_far_from_0() -> None:
    assert axis_start([1e6, 5e6, 9e6]) == 0
    assert axis_start([18.0, 19.0]) == pytest.approx(18 - 0.3 - 0.19)
    high = plot_request(result_set(runs(18e6, 18.5e6, 19e6, 18.2e6, 18.1e6)))
    ax = axes(violin.PLOT, panel(violin.PLOT, high))
    assert ax.get_ylim()[0] == pytest.approx(17.51)
    assert "The axis does not begin at 0." in violin.PLOT.table(high)[0].caption
    assert "The axes do not begin at 0." in ridgeline.PLOT.table(high)[0].caption


def test_equal_values_are_a_line() -> None:
    ax = axes(ridgeline.PLOT, panel(ridgeline.PLOT, plot_request(result_set(runs(*[2e6] * DENSITY_FROM)))))
    assert [type(each) for each in ax.collections] == [LineCollection]


@pytest.mark.parametrize("plot", [ridgeline.PLOT, violin.PLOT, violin_pairs.PLOT], ids=lambda plot: plot.name)
def test_few_values_have_no_density(plot: Plot) -> None:
    few = result_set(runs(*[1e6 + 1e5 * number for number in range(DENSITY_FROM - 1)]))
    drawn = axes(plot, panel(plot, plot_request(few))).collections
    assert not [each for each in drawn if isinstance(each, FillBetweenPolyCollection)]


def test_pairs_have_a_violin_each_the_best_at_the_top() -> None:
    shown = panel(violin_pairs.PLOT, plot_request(some(repetitions=10)))
    names = [name.partition(" (")[0] for name in column(shown, 0)]
    assert names == ["b, y", "c, z", "b, x", "c, x", "a, y", "a, x"]
    ax = axes(violin_pairs.PLOT, shown)
    assert len([each for each in ax.collections if isinstance(each, FillBetweenPolyCollection)]) == 6
    assert [label.get_text() for label in ax.get_yticklabels()] == column(shown, 0)


def test_more_pairs_than_can_be_told_apart_are_to_be_selected() -> None:
    many = [run for number in range(14) for run in runs(1e6, server=f"s{number}")]
    results = result_set(many, servers=tuple(f"s{number}" for number in range(14)))
    with pytest.raises(NothingToDrawError, match="--pair"):
        cdf_pairs.PLOT.table(plot_request(results))
    [drawing] = cdf_pairs.PLOT.table(plot_request(results.of_pairs(results.pairs[:2])))
    assert "n = 2 of 2 pairs" in drawing.caption


def test_kde_has_a_mark_per_implementation_role_and_test_case() -> None:
    shown = panel(kde.PLOT, plot_request(some()))
    assert [each.implementation for _, each in shown.rows] == ["a", "b", "c", "x", "y", "z"]
    assert shown.rows[0][1].mean == pytest.approx((10.2 + 9.2) / 2 / 20)
    ax = axes(kde.PLOT, shown)
    assert [line.get_xdata()[0] for line in ax.get_lines()] == [-0.1] * 3 + [0.1] * 3  # type: ignore[index]
    with pytest.raises(NothingToDrawError):
        kde.PLOT.table(plot_request(result_set(runs(1e6))))


def test_captions_tell_the_numbers_of_each_test_case() -> None:
    found = [*results(), *(replace(each, test_case="satloss") for each in results())]

    def asked(*more: RunResult) -> PlotRequest:
        servers, clients = ("a", "b", "c", "d"), ("x", "y", "z")
        return plot_request(result_set([*found, *more], servers=servers, clients=clients, test_cases=(SAT, SATLOSS)))

    assert "n = 3 servers and 3 clients in each of SAT and SATL." in kde.PLOT.table(asked())[0].caption
    assert "for n = 6 pairs in SAT and 6 in SATL. Marks" in scatter_matrix.PLOT.table(asked())[0].caption
    [drawing] = kde.PLOT.table(asked(run_result(1e6, server="d", client="x")))
    assert "n = 4 servers and 3 clients in SAT, and 3 servers and 3 clients in SATL." in drawing.caption


def test_strip_plot_tells_what_is_left_out_of_each_test_case() -> None:
    given = result_set([*runs(1e6), *runs(None, server="b")], servers=("a", "b", "picoquic"))
    assert strip_plot.PLOT.table(plot_request(given))[0].caption.endswith(
        "Not shown in SAT: 1 pair without a successful repetition, 1 pair that was not run."
    )


# ---- groups ---------------------------------------------------------------------------------


def test_the_link_that_loses_is_the_upright_axis_and_groups_have_numbers() -> None:
    found = [
        run_result(share * 20e6, server=server, test_case=case)
        for server, shares in (("a", (0.5, 0.4)), ("b", (0.48, 0.42)), ("c", (0.3, 0.02)), ("d", (0.31, 0.02)))
        for case, share in zip(("sat", "satloss"), shares, strict=True)
    ]
    given = result_set(found, servers=("a", "b", "c", "d"), test_cases=(SATLOSS, SAT), repetitions=1)
    [drawing] = two_case_scatter.PLOT.table(plot_request(given))
    shown = panel(two_case_scatter.PLOT, plot_request(given))
    assert (shown.facts["x"], shown.facts["y"], shown.facts["threshold"]) == ("SAT", "SATL", 0.1)
    assert list(shown.facts["groups"].labels) == [0, 0, 1, 1]
    assert shown.facts["groups"].centres == ((pytest.approx(0.49), pytest.approx(0.41)), (pytest.approx(0.305), 0.02))
    ax = axes(two_case_scatter.PLOT, shown)
    assert texts(ax) == ["1", "2"]
    [spokes] = [each for each in ax.collections if isinstance(each, LineCollection)]
    assert len(spokes.get_segments()) == 4
    assert "strong structure" in drawing.caption
    assert "shows the 10 % boundary between the clusters in arXiv 2202.08228." in drawing.caption
    assert "Not shown" not in drawing.caption
    more = result_set([*found, run_result(1e6, server="e")], servers=("a", "b", "c", "d", "e"),
                      test_cases=(SATLOSS, SAT), repetitions=1)  # fmt: skip
    told = "Not shown: 1 pair that lacks a successful repetition in at least one of the two test cases."
    assert told in two_case_scatter.PLOT.table(plot_request(more))[0].caption


def test_no_threshold_without_loss() -> None:
    given = result_set([*runs(5e6), *runs(9e6, test_case="terrestrial")], test_cases=(SAT, TERRESTRIAL))
    shown = panel(two_case_scatter.PLOT, plot_request(given))
    assert (shown.facts["x"], shown.facts["y"], shown.facts["threshold"]) == ("T", "SAT", 0.0)
    assert len(axes(two_case_scatter.PLOT, shown).get_lines()) == 1


# ---- testbed --------------------------------------------------------------------------------


def test_the_testbed_is_that_of_the_plan() -> None:
    measured = [run for server in "ab" for run in runs(5e6, server=server, test_case="satloss")]
    [drawing] = topology.PLOT.table(plot_request(result_set(measured, servers=("a", "b", "c"), test_cases=(SATLOSS,))))
    [[shown]] = drawing.panels
    assert shown.rows == [
        ("server to client", "20 Mbit/s, 300 ms, queue of 25 packets, 1 % loss"),
        ("client to server", "2 Mbit/s, 300 ms, queue of 25 packets, 1 % loss"),
    ]
    assert drawing.caption.startswith(
        "Each of the 2 pairs transfers 10 MiB n = 10 times; the time limit of each transfer is 6 min 0 s."
    )
    assert "server\none of 2" in texts(axes(topology.PLOT, shown))
    client_side = ClientSide(ClientSideDirection(0.001, UniformLoss(0.01)), ClientSideDirection(0.001))
    beside = replace(SATLOSS, link=replace(SATLOSS.emulated, client_side=client_side))
    [drawing] = topology.PLOT.table(plot_request(result_set(measured[:1], servers=("a",), test_cases=(beside,))))
    assert drawing.caption.endswith("Packets also pass another link: 1.0 ms and loss 1 % / none at the client's side.")


@pytest.mark.parametrize(("change", "clock"), [(lambda results: results, "real"), (virtual, "virtual")])
def test_the_testbed_names_the_clock(change: Callable[[ResultSet], ResultSet], clock: str) -> None:
    shown = panel(topology.PLOT, plot_request(change(result_set(runs(5e6)))))
    assert f"ns-3 in {clock} time, scenario asymmetric-p2p" in texts(axes(topology.PLOT, shown))


# ---- over runs ------------------------------------------------------------------------------


def test_objectives_are_stars_where_they_lie(tmp_path: Path) -> None:
    asked = (Objective(MB, 4.0), Objective(2 * MB, 5.0), Objective(50 * MB, 9.0))
    given = PlotRequest((campaign(tmp_path, size=2_100_000),), tmp_path, objectives=asked)
    stars = panel(data_size.PLOT, given).rows[-1]
    assert stars.role == "target"
    assert stars.x.tolist() == [4.0, 5.0]
    assert (stars.y * 1024**2).tolist() == pytest.approx([1e6, 2e6])


def test_the_steady_rate_begins_where_the_start_up_ends(tmp_path: Path) -> None:
    made = campaign(tmp_path, values={"startup_time": 0.5, "steady_rate": 900e3})
    [drawing] = data_rate.PLOT.table(PlotRequest((made,), tmp_path))
    [shown] = panels(drawing)
    assert shown.rows[-1].role == "steady"
    assert shown.rows[-1].y.tolist() == [0.9, 0.9]
    # The first byte arrives at 1.2 s; the axis is that of when it was sent.
    assert shown.facts["marks"] == [(pytest.approx(1.4), "a")]
    assert "At point a, start-up ends 0.5 s after the first byte; the steady rate is 0.90 Mbit/s" in drawing.caption


def test_packets_of_the_handshake_are_left_out(tmp_path: Path) -> None:
    [drawing] = packet_number.PLOT.table(PlotRequest((campaign(tmp_path),), tmp_path))
    assert "The figure omits 1 packet that was sent before the first response or request, or whose" in drawing.caption
    back = panels(drawing)[0].rows[-1]
    assert float(back.x.min()) == pytest.approx(0.6)
    assert int(back.y.min()) == 0


def test_overlaid_pairs_look_as_in_all_figures_of_their_campaign(tmp_path: Path) -> None:
    pairs = (("quic-go", "neqo"), ("quic-go", "quiche"), ("neqo", "neqo"))
    made = campaign(tmp_path, pairs, 2, 2_100_000, objectives=(Objective(MB, 4.0),))
    for chosen in (pairs, pairs[1:]):
        [drawing] = data_size.PLOT.table(PlotRequest((made,), tmp_path, pairs=chosen, overlaid=True))
        *curves, shared = panels(drawing)[0].rows
        assert shared.role == "target"
        assert [curve.style for curve in curves] == [pair_style(made.results, pair) for pair in chosen]
    assert overlay([], []) == []


# ---- what changed ---------------------------------------------------------------------------


def test_a_tile_per_pair_with_the_change_in_per_cent() -> None:
    fast, slow = [10e6 + 1e5 * number for number in range(10)], [5e6 + 5e4 * number for number in range(10)]
    names = ("a", "b", "c", "d")
    before = [*runs(*fast, server="a"), *runs(*fast, server="b"), *runs(*fast, server="c")]
    after = [*runs(*slow, server="a"), *runs(*fast, server="b"), *runs(None, None, server="c"), *runs(1e6, server="d")]
    given = plot_request(result_set(before, servers=names), result_set(after, servers=names))
    ranks, tiles = comparison.PLOT.table(given)
    histogram, by_rank = panels(ranks)
    assert histogram.rows == column(by_rank, 0) == [pytest.approx(-0.5), 0.0]
    bars = axes(comparison.PLOT, histogram).patches
    assert sorted(bar.get_width() for bar in bars if bar.get_width()) == [1, 1]  # type: ignore[attr-defined]
    assert texts(axes(comparison.PLOT, panels(tiles)[0])) == ["-50*", "0", "×"]
    assert "n = 2 pairs" in tiles.caption
    assert "Significant changes are bold and starred (1 in this figure)." in tiles.caption


def test_captions_of_virtual_campaigns_say_what_is_the_same_to_the_bit() -> None:
    pairs = {"picoquic": 5e6, "quinn": 4e6}
    first, second = (
        virtual(
            result_set(
                [
                    each
                    for name, rate in pairs.items()
                    for each in runs(*[rate * (factor if name == "quinn" else 1)] * 10, server=name)
                ],
                servers=tuple(pairs),
                repetitions=10,
            )
        )
        for factor in (1, 0.9)
    )
    ranks, tiles = comparison.PLOT.table(plot_request(first, second))
    assert "1 of them changed significantly" in ranks.caption
    assert "1 pair gave the same results to the bit" in ranks.caption
    assert "bold and starred (1 in this figure)." in tiles.caption
