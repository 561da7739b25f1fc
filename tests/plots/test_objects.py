"""Figures of workloads: their numbers are those of the objects."""

from matplotlib.collections import LineCollection

from quicsat.plots import objects, waterfall
from quicsat.plots.render import figure
from quicsat.report.object_tables import label_of
from tests.campaign_builder import PAGE, Shape, campaign
from tests.plots.drawn import column, panels, plot_request

CAMPAIGN = campaign(Shape(("quic-go", "picoquic"), ("aioquic",), (PAGE,), repetitions=3, failing=0))


def test_a_box_per_server_and_size() -> None:
    [drawing] = objects.PLOT.table(plot_request(CAMPAIGN))
    [panel] = panels(drawing)
    kinds = [label_of(kind) for kind in ((5000, "css"), (18_000, "html"), (20_000, "image"))]
    assert column(panel, 0) == [kind for kind in kinds for _ in range(2)]
    assert column(panel, 1) == ["quic-go", "picoquic"] * 3
    times = [
        each.duration
        for run in CAMPAIGN.results
        if run.server == "quic-go" and run.measurement
        for each in run.measurement.objects
        if each.size == 18_000
    ]
    assert column(panel, 2)[2][2] == sorted(times)[1]
    assert "n = 3 to 9 objects of 6 repetitions" in drawing.caption


def test_a_waterfall_per_pair_shows_the_median_run() -> None:
    second, first = waterfall.PLOT.table(plot_request(CAMPAIGN))
    assert (first.stem, second.stem) == ("sat+page-quic-go_aioquic", "sat+page-picoquic_aioquic")
    [panel] = panels(first)
    ends = {
        run.repetition: max(each.finished for each in run.measurement.objects)
        for run in CAMPAIGN.results
        if run.server == "quic-go" and run.measurement
    }
    assert max(column(panel, "finished")) == sorted(ends.values())[1]
    [ax] = figure(waterfall.PLOT, first).axes
    assert len(ax.patches) == 6
    [lines] = [each for each in ax.collections if isinstance(each, LineCollection)]
    assert len(lines.get_segments()) == 6
