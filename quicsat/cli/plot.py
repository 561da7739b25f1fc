"""``./run.py plot``: draws figures of stored campaigns."""

from __future__ import annotations

import argparse
from pathlib import Path

from quicsat.cli import console, stored_campaigns
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.foreign_inputs import CampaignsOptions
from quicsat.cli.output_files import check_place
from quicsat.cli.program import Program
from quicsat.model.errors import InputError
from quicsat.model.stored_files import resolved
from quicsat.model.text import counted
from quicsat.report.plot_request import FORMATS, PlotRequest

DESCRIPTION = "Draw figures of campaigns, and print their file names."
EXAMPLES = (
    "plot results/latest --format svg pdf pgf",
    "plot results/latest -p cdf heatmap --metric completion_time",
    "plot results/latest -p offset --pair picoquic_quic-go   # time-offset figures of one pair",
    "plot logs_paper/picoquic_kwik/sat -p offset --link-rate 20Mbit/s   # runs of another runner",
)


class Options(CampaignsOptions):
    """The options of the command."""

    plot: list[str]
    pair: list[str]
    metric: str
    over: str
    objective: list[str]
    without_failed: bool
    own_scale: bool
    own_colours: bool
    overlay: bool
    no_ideal: bool
    output: Path | None
    format: list[str]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    group = stored_campaigns.add_directories(parser)
    group.add_argument(
        "-p", "--plot", nargs="+", metavar="NAME", default=[],
        help="Plots to draw (default: all that the results allow, of single pairs a limited number; "
        "example: cdf heatmap).",
    )  # fmt: skip
    stored_campaigns.add_pairs(group)
    group.add_argument(
        "--metric", metavar="NAME", default="",
        help="Metric for plots that show one value per run (default: depends on the plot; example: completion_time).",
    )  # fmt: skip
    group.add_argument(
        "--over", metavar="FACT", default="",
        help="Negotiated parameter on the horizontal axis of the plot `negotiated` (default: client.initial_max_data; "
        "example: client.max_ack_delay).",
    )  # fmt: skip
    stored_campaigns.add_objectives(group)
    group = parser.add_argument_group("appearance")
    group.add_argument("--without-failed", action="store_true", help="Omit failed runs instead of counting them as 0.")
    group.add_argument("--own-scale", action="store_true", help="Use a separate scale for each heatmap.")
    group.add_argument(
        "--own-colours", action="store_true",
        help="Colour each heatmap from its own lowest to its own highest value, as in Figure 4 of arXiv 2202.08228.",
    )  # fmt: skip
    group.add_argument(
        "--overlay", action="store_true", help="Overlay the time series of all pairs and test cases in one figure."
    )
    group.add_argument(
        "--no-ideal", action="store_true", help="Omit the line that shows the ideal transfer over the link."
    )
    group = parser.add_argument_group("output")
    group.add_argument(
        "-o", "--output", type=Path, metavar="DIR",
        help="Directory for the figures (default: plots/ in the first campaign, or in the current directory if another "
        "runner made it; example: figures).",
    )  # fmt: skip
    group.add_argument(
        "--format", nargs="+", choices=FORMATS, default=["svg"], metavar="FORMAT",
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
        metric=options.metric,
        over=options.over,
        objectives=stored_campaigns.objectives(options.objective),
    )
    gallery = stored_campaigns.draw(program, request)
    skipped = tuple(f"not drawn: {each}" for each in gallery.skipped)
    if not gallery.files:
        raise InputError("There is nothing to draw.", *gallery.warnings, *skipped)
    for line in (*gallery.warnings, *skipped):
        console.message(line)
    if gallery.unchanged:
        console.message(
            f"Kept {gallery.unchanged} of {counted(len(gallery.files), 'file')}, which still show the same."
        )
    console.show("\n".join(map(str, gallery.files)))
    return ExitStatus.SUCCESS
