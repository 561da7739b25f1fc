"""Figures over runs: which repetition is the middle one, and curves that are exactly those of the series."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from quicsat.model.emulated_link import Profile
from quicsat.model.implementation import Protocol
from quicsat.model.objective import Objective
from quicsat.model.results import Measurement, ResultSet
from quicsat.model.run import RunKey
from quicsat.plots import (
    data_rate,
    data_size,
    discovery,
    drawn_before,
    objectives,
    offset,
    packet_number,
    packet_size,
    return_path,
    rtt,
    theme,
    transports,
)
from quicsat.plots.base import Drawing, NothingToDrawError, Plot
from quicsat.plots.discovery import draw, plots
from quicsat.plots.render import file_name
from quicsat.plots.time_series_base import stacked
from quicsat.report.pair_series import PairSeries, load_pairs
from quicsat.report.plot_request import Gallery, PlotRequest
from quicsat.traces.series import FILE_NAME, Samples, save
from tests.plots.drawn import axes, column, panel, panels, texts
from tests.runs_builder import campaign
from tests.series_builder import Transfer, series

PLOTS = (offset, packet_number, data_size, packet_size, data_rate, return_path, rtt)


@pytest.fixture(name="plot_request")
def _plot_request(tmp_path: Path) -> PlotRequest:
    """Three repetitions of one pair, at 1, 0.95 and 0.9 Mbit/s."""
    return PlotRequest((campaign(tmp_path),), tmp_path)


def only(plot_request: PlotRequest) -> PairSeries:
    [pair] = load_pairs(plot_request)
    return pair


def test_the_middle_run_is_the_second_fastest(plot_request: PlotRequest) -> None:
    pair = only(plot_request)
    assert pair.middle.repetition == 2
    assert [run.repetition for run in pair.others] == [1, 3]
    assert pair.without == 0


def test_of_an_even_number_it_is_one_of_the_two_in_the_middle(tmp_path: Path) -> None:
    pair = only(PlotRequest((campaign(tmp_path, repetitions=4),), tmp_path))
    assert pair.middle.repetition in (2, 3)


def test_a_run_without_series_is_told(plot_request: PlotRequest) -> None:
    directory = plot_request.campaigns[0].directory
    (directory / "quic-go_aioquic" / "sat" / "1" / FILE_NAME).unlink()
    assert only(plot_request).without == 1
    [drawing] = offset.PLOT.table(plot_request)
    assert "n = 2 repetitions: in colour repetition " in drawing.caption
    assert ", which has the median completion time, and the other in grey." in drawing.caption
    assert "Not shown: 1 without series" in drawing.caption


def test_a_damaged_file_costs_one_repetition_and_is_named(plot_request: PlotRequest) -> None:
    directory = plot_request.campaigns[0].directory
    damaged = directory / "quic-go_aioquic" / "sat" / "1" / FILE_NAME
    damaged.write_bytes(b"no parquet")
    gallery = draw(replace(plot_request, plots=("offset", "rtt")))
    assert len(gallery.files) == 2
    assert all("Not shown: 1 without series" in caption for _, _, caption in gallery.captions)
    [warning] = gallery.warnings
    assert str(damaged) in warning


def test_offset_tells_first_transmissions_from_others(plot_request: PlotRequest) -> None:
    shown = panel(offset.PLOT, plot_request)
    middle = only(plot_request).middle.series.sent
    assert column(shown, "role") == ["other", "other", "first", "again", "request", "ideal"]
    sizes = [len(x) for x in column(shown, "x")]
    assert sizes == [102, 102, 100, 2, 1, 2]
    assert shown.rows[2].x.tolist() == middle.time[:100].tolist()
    assert (shown.rows[2].y * 1024**2).tolist() == middle.offset[:100].tolist()
    assert [letter for _, letter in shown.facts["marks"]] == list("abcde")
    caption = offset.PLOT.table(plot_request)[0].caption
    assert "mark these moments: (a) request, at 600.0 ms; (b) first transmission, at 900.0 ms; (c) first" in caption
    times = [time for time, _ in shown.facts["marks"]]
    assert times == pytest.approx([0.6, 0.9, 1.2, float(middle.time.max()), float(middle.time.max()) + 0.3])


def test_ideal_line_has_the_rate_of_the_link(plot_request: PlotRequest) -> None:
    shown = panel(offset.PLOT, plot_request)
    assert shown.rows[-1].x.tolist() == pytest.approx([0.9, 0.9 + 8 * 100_000 / 20e6])
    without = panel(offset.PLOT, replace(plot_request, ideal=False))
    assert "ideal" not in column(without, "role")


def test_ideal_line_follows_the_profile_of_the_link(tmp_path: Path) -> None:
    """From 0.9 s on 100 kB: at 1 Mbit/s for 0.1 s, after an outage of 0.2 s at 4 Mbit/s."""
    made = campaign(tmp_path)
    [case] = made.results.manifest.test_cases
    profile = Profile("rates.csv", 60.0, (0.0, 1.0, 1.2, 1.4), rates=(1e6, 0.0, 4e6, 3e6))
    changing = replace(case, link=case.emulated.with_forward(profile=profile))
    manifest = replace(made.results.manifest, test_cases=(changing,))
    asked = PlotRequest((replace(made, results=replace(made.results, manifest=manifest)),), tmp_path)
    shown = panel(offset.PLOT, asked)
    assert shown.rows[-1].x.tolist() == pytest.approx([0.9, 1.0, 1.2, 1.2 + 0.7 / 4])
    assert (shown.rows[-1].y * 1024**2).tolist() == pytest.approx([0, 12_500, 12_500, 100_000])
    shown = panel(data_rate.PLOT, asked)
    [line] = [curve for curve in shown.rows if curve.label == "rate of the link"]
    *times, end = line.x.tolist()
    assert times == pytest.approx([0, 1, 1, 1.2, 1.2, 1.4, 1.4])
    assert end == pytest.approx(only(asked).middle.series.sent.time.max(), abs=0.1)
    assert line.y.tolist() == [1, 1, 0, 0, 4, 4, 3, 3]


def with_sending_times(results: ResultSet, times: tuple[float, ...]) -> ResultSet:
    """The same campaign; the n-th repetition has these times, later by n seconds."""
    told = [
        replace(each, measurement=Measurement({}, sending_times=tuple(time + each.repetition for time in times)))
        for each in results.results
    ]
    return replace(results, results=tuple(told))


def test_offset_shows_the_same_repetition_of_the_baseline(plot_request: PlotRequest) -> None:
    results = plot_request.campaigns[0].results
    shown = panel(offset.PLOT, replace(plot_request, baseline=with_sending_times(results, (0.5, 1.0, 3.0))))
    assert shown.rows[-1].label == "baseline"
    assert shown.rows[-1].x.tolist() == [2.5, 3.0, 5.0]
    assert (shown.rows[-1].y * 1024**2).tolist() == [0, 50_000, 100_000]


def test_offset_of_a_baseline_without_times_or_without_the_pair(plot_request: PlotRequest) -> None:
    results = plot_request.campaigns[0].results
    others = replace(results, results=())
    for before in (results, others):
        assert "baseline" not in column(panel(offset.PLOT, replace(plot_request, baseline=before)), "role")


def test_offset_artists(plot_request: PlotRequest) -> None:
    ax = axes(offset.PLOT, panel(offset.PLOT, plot_request))
    assert len(ax.get_lines()) == 6 + 5
    assert [text.get_text() for text in ax.texts] == list("abcde")
    legend = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [
        "first transmission", "retransmission", "request sent", "rate of the link",
    ]  # fmt: skip
    assert ax.get_ylabel() == "offset [MiB]"


def test_streams_are_stacked_in_their_order() -> None:
    data = series(Transfer(size=3000)).sent
    two = replace(data, stream=np.array([4, 0, 4]), offset=np.array([0, 0, 1000]))
    assert stacked(two).tolist() == [1000, 0, 2000]


def test_equal_streams_of_two_connections_are_stacked_too() -> None:
    data = series(Transfer(size=2000)).sent
    two = replace(data, connection=np.array([0, 1]), offset=np.array([0, 0]))
    assert stacked(two).tolist() == [0, 1000]


def test_data_ends_at_the_size_of_the_file(plot_request: PlotRequest) -> None:
    shown = panel(data_size.PLOT, plot_request)
    assert [float(y[-1]) * 1024**2 for y in column(shown, "y")] == pytest.approx([102e3, 102e3, 102e3, 100e3])
    assert "1.02 stream bytes" in data_size.PLOT.table(plot_request)[0].caption


def test_packets_of_both_directions(plot_request: PlotRequest) -> None:
    shown = panel(packet_number.PLOT, plot_request)
    assert column(shown, "role") == ["other", "other", "first", "back"]
    assert shown.rows[2].y.tolist() == list(range(102))


def test_overhead_of_packets(plot_request: PlotRequest) -> None:
    shown = panel(packet_size.PLOT, plot_request)
    assert set(shown.rows[2].y.tolist()) == {1040}
    assert set(shown.rows[3].y.tolist()) == {40}
    assert "packet 1040 ± 0, stream data 1000 ± 0, other data 40 ± 0. 3.8 % of all bytes are not stream data" in (
        packet_size.PLOT.table(plot_request)[0].caption
    )


def test_rate_is_that_of_the_sender(plot_request: PlotRequest) -> None:
    shown = panel(data_rate.PLOT, plot_request)
    assert column(shown, "role") == ["other", "other", "first", "again", "ideal"]
    assert float(shown.rows[2].y.max()) == pytest.approx(0.85, abs=0.02)
    assert shown.rows[-1].y.tolist() == [20.0, 20.0]


def test_round_trip_time_and_window(plot_request: PlotRequest) -> None:
    [drawing] = rtt.PLOT.table(plot_request)
    above, below = panels(drawing)
    assert set(np.round(above.rows[-1].y, 6).tolist()) == {600.0}
    assert column(above, "label")[-3:] == ["path", "spin bit", "delay of the link"]
    assert [set(np.round(above.rows[row].y, 6).tolist()) for row in (-3, -2)] == [{600.0}, {601.0}]
    assert column(below, "label")[-2:] == ["in flight", "congestion window"]


def test_transports_have_the_same_colours_in_all_panels(tmp_path: Path) -> None:
    pairs = campaign(tmp_path, repetitions=1), campaign(tmp_path / "other", repetitions=1)
    [drawing] = transports.PLOT.table(PlotRequest(pairs, tmp_path))
    shown = panels(drawing)
    assert all(column(each, "label") == column(shown[0], "label") for each in shown)
    assert [each.facts["ylabel"] for each in shown] == ["packet number", "RTT [ms]", "window [KiB]"]
    assert {role for each in shown for role in column(each, "role")} == {""}
    assert int(shown[0].rows[0].y[0]) == 0
    assert "Each pair has n = 1 repetition" in drawing.caption
    assert "There is no window" not in drawing.caption


def test_windows_of_tcp_and_quic_are_steps_until_the_last_packet(tmp_path: Path) -> None:
    made = campaign(tmp_path, (("nginx-tcp", "curl"), ("quic-go", "curl")), 1)
    save(series(Transfer(protocol=Protocol.TCP)), tmp_path / RunKey("nginx-tcp", "curl", "sat", 1).path)
    [drawing] = transports.PLOT.table(PlotRequest((made,), tmp_path))
    numbers, _, window = panels(drawing)
    assert [label.split(",")[0] for label in column(window, "label")] == ["nginx-tcp", "quic-go"]
    for sent, curve in zip(column(numbers, "x"), window.rows, strict=True):
        assert np.unique(curve.y).tolist() == pytest.approx([12_000 / 1024, 24_000 / 1024, 48_000 / 1024])
        assert np.all((np.diff(curve.x) == 0) | (np.diff(curve.y) == 0))
        assert curve.x[-1] == sent[-1]


def test_pictures_of_other_transports_have_other_names(tmp_path: Path) -> None:
    pairs = tuple((f"ngtcp2:variant-{number}", "picoquic") for number in range(8))
    record = campaign(tmp_path, pairs, 1)

    def stem(chosen: tuple[tuple[str, str], ...], cases: tuple[str, ...] = ()) -> str:
        [drawing] = transports.PLOT.table(PlotRequest((record,), tmp_path, test_cases=cases, pairs=chosen))
        return drawing.stem

    assert stem(()) == ""
    assert stem((), ("SAT",)) == "SAT"
    assert stem(pairs[:2], ("SAT",)) == "ngtcp2+variant-0_picoquic-ngtcp2+variant-1_picoquic-SAT"
    long, longer = stem(pairs[:6]), stem(pairs[:7])
    assert long != longer
    assert len(long) == len(longer) == transports.LONGEST_STEM + len("-01234567")


def test_the_names_of_many_pairs_fit_into_the_figure(tmp_path: Path) -> None:
    pairs = tuple((f"ngtcp2:variant-{number}", "picoquic") for number in range(8))
    [drawing] = data_size.PLOT.table(PlotRequest((campaign(tmp_path, pairs, 1),), tmp_path, overlaid=True))
    [shown] = panels(drawing)
    with rc_context(theme.SETTINGS):
        figure = Figure(figsize=drawing.size)
        FigureCanvasAgg(figure)
        ax = figure.add_subplot()
        data_size.PLOT.draw(ax, shown)
        figure.draw_without_rendering()
    legend = ax.get_legend()
    assert len(legend.get_texts()) == len(pairs)
    assert legend.get_window_extent().width < figure.bbox.width


def test_objectives_of_two_megabytes(tmp_path: Path) -> None:
    made = campaign(tmp_path, repetitions=1, size=2_100_000, objectives=(Objective(2_000_000, 3.0),))
    plot_request = PlotRequest((made,), tmp_path)
    shown = panel(objectives.PLOT, plot_request)
    assert shown.facts["title"] == "2 MB in 3 s: 0 of 1"
    [(_, _, time, margin)] = shown.rows
    assert (time, margin) == (pytest.approx(1.2 + 8 * 2e6 / 8e6, abs=0.6), pytest.approx(3 - time))
    assert [text.split("\n")[0][0] for text in texts(axes(objectives.PLOT, shown))] == ["×"]


def test_test_cases_without_objectives_have_no_tiles(plot_request: PlotRequest) -> None:
    with pytest.raises(NothingToDrawError):
        objectives.PLOT.table(plot_request)


@pytest.mark.parametrize("module", PLOTS)
def test_pairs_are_overlaid_in_one_figure(module: object, tmp_path: Path) -> None:
    made = campaign(tmp_path, (("quic-go", "aioquic"), ("picoquic:bbr", "aioquic")), repetitions=2)
    plot: Plot = module.PLOT  # type: ignore[attr-defined]
    [drawing] = plot.table(PlotRequest((made,), tmp_path, overlaid=True))
    assert drawing.stem == "overlaid-SAT"
    assert drawing.title.endswith(": SAT")
    shown = panels(drawing)[0]
    assert column(shown, "label") == ["quic-go, aioquic, SAT", "picoquic:bbr, aioquic, SAT"]
    lines = axes(plot, shown).get_lines()
    assert len({line.get_color() for line in lines}) == 2


def test_round_trip_times_that_alternate_have_a_median() -> None:
    times = np.linspace(1, 2, 10 * rtt.WINDOWS)
    alternating = np.where(np.arange(len(times)) % 3, 0.6, 0.625)
    shown = rtt.medians(Samples(times, alternating))
    assert len(shown) == rtt.WINDOWS
    assert set(shown.value) == {0.6}
    assert float(shown.time[0]) == pytest.approx(1 + 0.5 / rtt.WINDOWS)
    few = Samples(times[:5], alternating[:5])
    assert rtt.medians(few) is few


@pytest.mark.parametrize("module", PLOTS)
def test_a_pair_is_drawn_alone(module: object, tmp_path: Path) -> None:
    made = campaign(tmp_path, (("quic-go", "aioquic"), ("picoquic:bbr", "aioquic")), repetitions=2)
    plot: Plot = module.PLOT  # type: ignore[attr-defined]
    [drawing] = plot.table(PlotRequest((made,), tmp_path, pairs=(("picoquic:bbr", "aioquic"),)))
    assert drawing.stem == "picoquic+bbr_aioquic-SAT"
    with pytest.raises(NothingToDrawError):
        plot.table(PlotRequest((made,), tmp_path, pairs=(("kwik", "aioquic"),)))


def three_pairs(place: Path) -> PlotRequest:
    """Pairs whose servers are the slower the later they come."""
    made = campaign(place, [("a", "x"), ("b", "x"), ("c", "x")], repetitions=1)
    goodput = {"a": 3e6, "b": 2e6, "c": 1e6}
    results = tuple(
        replace(each, measurement=Measurement({"goodput": goodput[each.server]})) for each in made.results.results
    )
    return PlotRequest((replace(made, results=replace(made.results, results=results)),), place / "plots")


def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files instead of pictures."""

    def save(plot: Plot, drawing: Drawing, target: Path, formats: Sequence[str]) -> list[Path]:
        paths = [target / file_name(plot, drawing, form) for form in formats]
        for path in paths:
            path.touch()
        return paths

    monkeypatch.setattr(discovery, "save", save)


def drawn(gallery: Gallery, name: str) -> list[str]:
    """Its figures of one plot."""
    return [path.name for path in gallery.files if path.name.startswith(f"{name}-")]


def test_figures_over_time_are_drawn_by_default_and_the_slowest_pairs_come_panel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty(monkeypatch)
    gallery = draw(three_pairs(tmp_path))
    assert drawn(gallery, "offset") == ["offset-c_x-SAT.svg", "offset-b_x-SAT.svg", "offset-a_x-SAT.svg"]
    assert [path.name for path in gallery.files if path.name.startswith("transports")] == ["transports.svg"]
    kinds = {plot.name for plot in plots().values() if plot.of == "runs"}
    assert all(len(drawn(gallery, kind)) == 3 for kind in kinds)


def test_figures_of_single_pairs_are_bounded_unless_they_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty(monkeypatch)
    monkeypatch.setattr(discovery, "MOST_OF_PAIRS", 2)
    wanted = three_pairs(tmp_path)
    gallery = draw(wanted)
    assert drawn(gallery, "offset") == ["offset-c_x-SAT.svg", "offset-b_x-SAT.svg"]
    assert drawn(gallery, "rtt") == []
    [said] = [each for each in gallery.skipped if "offset" in each]
    assert said.startswith("offset (1 of 3), data-rate (3 of 3), ")
    assert len(drawn(draw(replace(wanted, plots=("offset",))), "offset")) == 3
    assert len(drawn(draw(replace(wanted, pairs=(("a", "x"),))), "rtt")) == 1
    monkeypatch.setattr(discovery, "MOST_SECONDS", 0.0)
    assert drawn(draw(wanted), "offset") == []


def test_figures_whose_numbers_have_not_changed_are_not_drawn_again(tmp_path: Path) -> None:
    wanted = replace(three_pairs(tmp_path), plots=("offset",), formats=("svg", "png"))
    before = {path: path.stat().st_mtime_ns for path in draw(wanted).files}
    assert draw(wanted).unchanged == len(before) == 6
    save(series(Transfer(size=90_000)), tmp_path / RunKey("b", "x", "sat", 1).path)  # analysed again
    (tmp_path / "plots" / "offset-c_x-SAT.png").write_bytes(b"")  # damaged
    gallery = draw(wanted)
    changed = {path.name for path in gallery.files if path.stat().st_mtime_ns != before[path]}
    assert changed == {"offset-b_x-SAT.svg", "offset-b_x-SAT.png", "offset-c_x-SAT.png"}
    assert gallery.unchanged == 3
    (tmp_path / "plots" / drawn_before.FILE_NAME).write_text("[damaged")
    assert draw(wanted).unchanged == 0


def test_one_picture_has_only_as_many_curves_as_can_be_told_apart(tmp_path: Path) -> None:
    many = [(f"s{number}", "x") for number in range(transports.MOST_CURVES + 1)]
    wanted = PlotRequest((campaign(tmp_path, many, repetitions=1),), tmp_path)
    [few] = transports.table(wanted)
    [all_of_them] = transports.table(replace(wanted, plots=("transports",)))
    assert [len(panels(each)[0].rows) for each in (few, all_of_them)] == [8, 9]
    assert "Of 9 pairs and test cases, these are the slowest pairs" in few.caption
