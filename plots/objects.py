"""Times of the objects of a workload by size and type: 5th, 25th, 50th, 75th and 95th percentile."""

from collections.abc import Sequence

import numpy as np

from quicsat.model.text import counted
from quicsat.plots import theme
from quicsat.plots.axes import Axes
from quicsat.plots.base import WIDTH, Drawing, Group, Panel, Plot, each_case, nonempty, sentences, single_panel, stem
from quicsat.report.object_tables import LEVELS, by_kind, label_of, with_objects
from quicsat.report.plot_request import PlotRequest


def table(request: PlotRequest) -> Sequence[Drawing]:
    """A drawing per test case with a workload: a box per server and size, the smallest objects at the left."""
    drawings = []
    for campaign, case in each_case(request):
        runs = with_objects(campaign.results.results, case)
        rows, counts = list[tuple[str, str, list[float]]](), set[int]()
        for kind in by_kind(runs):
            for server in dict.fromkeys(each.server for each in runs):
                found = by_kind(each for each in runs if each.server == server).get(kind, [])
                if found:
                    times = np.percentile([each.duration for each in found], LEVELS)
                    rows.append((label_of(kind), server, times.tolist()))
                    counts.add(len(found))
        if not rows:
            continue
        few, most = min(counts), max(counts)
        repetitions = f"{counted(len(runs), 'repetition')} of all pairs that succeeded"
        caption = sentences(
            f"Each box shows n = {few if few == most else f'{few} to {most}'} objects of {repetitions}. Whiskers show "
            "the 5th and 95th percentiles, boxes the 25th and 75th, and lines the medians"
        )
        title = f"Time per object, {case.abbreviation}"
        size = (max(WIDTH, 0.2 * len(rows) + 2), 4.0)
        drawings.append(Drawing(stem(request, campaign, case.name), title, caption, single_panel(Panel(rows)), size))
    return nonempty(drawings, "no test case has a workload whose objects are known.")


def draw(ax: Axes, panel: Panel) -> None:
    """Box-percentile plots on a logarithmic axis, in groups of one size."""
    from matplotlib.patches import Patch

    kinds, servers = (list(dict.fromkeys(row[place] for row in panel.rows)) for place in (0, 1))
    width = 0.8 / len(servers)
    drawn = ax.bxp(
        [theme.box(percentiles) for *_, percentiles in panel.rows],
        positions=[kinds.index(kind) + width * (servers.index(server) - (len(servers) - 1) / 2)
                   for kind, server, _ in panel.rows],
        widths=0.85 * width, showfliers=False, patch_artist=True, manage_ticks=False,
        medianprops={"color": theme.BLACK, "linewidth": 1.5},
    )  # fmt: skip
    hatches = ("", "//", "..", "xx", "\\\\", "--")
    for box, (_, server, _) in zip(drawn["boxes"], panel.rows, strict=True):
        place = servers.index(server)
        box.set(facecolor=theme.of_implementation(server).colour, alpha=0.6, hatch=hatches[place % len(hatches)])
    theme.logarithmic(ax, "y")
    ax.set_xticks(range(len(kinds)), [kind.replace(", ", "\n") for kind in kinds])
    ax.set(xlabel="objects", ylabel="time from request to last byte [s]")
    ax.grid(axis="x", visible=False)
    legend = [
        Patch(facecolor=theme.of_implementation(name).colour, alpha=0.6, hatch=hatches[i % len(hatches)], label=name)
        for i, name in enumerate(servers)
    ]
    theme.legend_above(ax, "server", 6, handles=legend)


PLOT = Plot("objects", "Time per object", Group.DISTRIBUTIONS, "results", table, draw)
