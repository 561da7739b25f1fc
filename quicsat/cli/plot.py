"""``./run.py plot``: draws figures of stored campaigns."""

from __future__ import annotations

from pathlib import Path

from quicsat.cli import console, stored_campaigns
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.foreign_inputs import CampaignsOptions
from quicsat.cli.output_files import check_place
from quicsat.cli.program import Program, flag, option
from quicsat.model.errors import InputError
from quicsat.model.stored_files import resolved
from quicsat.model.text import counted
from quicsat.report.plot_request import FORMATS, PlotRequest

GROUP = "Results", 3
SUMMARY = "Draw figures of campaigns."
DESCRIPTION = "Draw figures of campaigns, and print their file names."
EXAMPLES = (
    "plot results/latest --format svg pdf pgf",
    "plot results/latest -p cdf heatmap --metric completion_time",
    "plot results/latest -p offset --pair picoquic_quic-go   # time-offset figures of one pair",
    "plot logs_paper/picoquic_kwik/sat -p offset --link-rate 20Mbit/s   # runs of another runner",
)


class Options(CampaignsOptions, group="appearance"):
    """The options of the command."""

    plot: list[str] = option(
        "-p", "--plot", group="selection", nargs="+", metavar="NAME", default=[],
        help="Plots to draw (default: all that the results allow, of single pairs a limited number; "
        "example: cdf heatmap).",
    )  # fmt: skip
    pair: list[str] = stored_campaigns.PAIRS
    metric: str = option(
        "--metric", group="selection", metavar="NAME", default="",
        help="Metric for plots that show one value per run (default: depends on the plot; example: completion_time).",
    )  # fmt: skip
    over: str = option(
        "--over", group="selection", metavar="FACT", default="",
        help="Negotiated parameter on the horizontal axis of the plot `negotiated` (default: client.initial_max_data; "
        "example: client.max_ack_delay).",
    )  # fmt: skip
    objective: list[str] = stored_campaigns.OBJECTIVES
    without_failed: bool = flag("--without-failed", help="Omit failed runs instead of counting them as 0.")
    own_scale: bool = flag("--own-scale", help="Use a separate scale for each heatmap.")
    own_colours: bool = flag(
        "--own-colours",
        help="Colour each heatmap from its own lowest to its own highest value, as in Figure 4 of arXiv 2202.08228.",
    )
    overlay: bool = flag("--overlay", help="Overlay the time series of all pairs and test cases in one figure.")
    no_ideal: bool = flag("--no-ideal", help="Omit the line that shows the ideal transfer over the link.")
    no_title: bool = flag("--no-title", help="Omit the title, for a figure in a document that has its own.")
    no_caption: bool = flag("--no-caption", help="Omit the caption, for a figure in a document that has its own.")
    output: Path | None = option(
        "-o", "--output", group="output", type=Path, metavar="DIR",
        help="Directory for the figures (default: plots/ in the first campaign, or in the current directory if another "
        "runner made it; example: figures).",
    )  # fmt: skip
    format: list[str] = option(
        "--format", group="output", nargs="+", choices=FORMATS, default=["svg"], metavar="FORMAT",
        help=f"File formats: {', '.join(FORMATS)} (default: svg; example: svg pdf).",
    )  # fmt: skip


def run(options: Options, program: Program) -> int:
    """Draw, and print the names of the files."""
    campaigns = stored_campaigns.open_campaigns(options, program)
    given = options.directories
    first = next((each for each in given if resolved(each) == campaigns[0].directory), given[0])
    home = Path() if campaigns[0].foreign else first if first.is_dir() else first.parent
    target = options.output or home / "plots"
    if target.is_symlink():
        if options.output is None:
            raise InputError(f"{target}: is a symbolic link, which may lead anywhere. Name a directory with -o.")
        target = resolved(target)
    check_place(target, str(target))
    request = PlotRequest(
        campaigns=campaigns,
        target=target,
        plots=tuple(options.plot),
        formats=tuple(dict.fromkeys(options.format)),
        test_cases=tuple(options.test),
        pairs=stored_campaigns.pairs(options.pair, campaigns),
        without_failed=options.without_failed,
        own_scale=options.own_scale,
        own_colours=options.own_colours,
        overlaid=options.overlay,
        ideal=not options.no_ideal,
        title=not options.no_title,
        caption=not options.no_caption,
        metric=options.metric,
        over=options.over,
        objectives=stored_campaigns.objectives(options.objective),
    )
    gallery = stored_campaigns.draw(program, request)
    skipped = tuple(f"not drawn: {each}" for each in gallery.skipped)
    if not (gallery.files or gallery.refused):
        raise InputError("There is nothing to draw.", *gallery.warnings, *skipped)
    for line in (*gallery.warnings, *skipped):
        console.message(line)
    if gallery.unchanged:
        console.message(
            f"Kept {gallery.unchanged} of {counted(len(gallery.files), 'file')}, which still show the same."
        )
    stored_campaigns.show_files(gallery)
    return ExitStatus.SUCCESS
