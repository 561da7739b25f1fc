"""``./run.py site``: builds a static website of campaigns, and serves it on this machine if asked to."""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from quicsat.cli import console
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.options import port
from quicsat.cli.program import CommandOptions, Program, flag, option
from quicsat.model import product_files
from quicsat.model.stored_files import resolved
from quicsat.model.text import counted, escaped
from quicsat.model.units import byte_size
from quicsat.site.serve import PORT

GROUP = "Publish", 1
SUMMARY = "Build a static website of campaigns."
DESCRIPTION = "Build a static website of campaigns. To publish the website, copy it to a web server."
EXAMPLES = ("site results -o site --serve", "site results/a results/b -o /var/www/quic --files")


class Options(CommandOptions, group="output"):
    """The options of the command."""

    directories: list[Path] = option(
        type=Path, nargs="*", metavar="DIR",
        help="Campaigns, or directories that contain campaigns (default: results; example: results/a results/b).",
    )  # fmt: skip
    output: Path | None = option(
        "-o", "--output", type=Path, metavar="SITE",
        help="Directory of the website, whose pages are replaced in one step (default: site; example: /var/www/quic).",
    )  # fmt: skip
    no_plots: bool = flag("--no-plots", help="Show only figures that are there, instead of drawing missing ones.")
    files: bool = flag("--files", help="Include traces, key logs, qlogs and complete logs.")
    serve: int | None = option(
        "--serve", nargs="?", parse=port, const=PORT, metavar="PORT",
        help="Serve the built website on this port of this machine, until you press Ctrl-C "
        f"(default: {PORT}; example: 8001).",
    )  # fmt: skip


def run(options: Options, program: Program) -> int:
    """Build the site, print a summary, and serve the site if asked to."""
    from quicsat.site import publish, serve

    target = options.output or program.root / "site"
    places = options.directories or [program.results]
    request = publish.SiteRequest(
        places,
        target,
        product_files.FILES,
        files=options.files,
        draw=None if options.no_plots or program.draw is None else partial(_draw, program),
        headings=program.figures(),
    )
    with nullcontext() if options.serve is None else serve.server(target, options.serve) as address:
        built = publish.build(request, console.message)
        console.show(
            f"{escaped(str(target))}: {counted(built.campaigns, 'campaign')}, {counted(built.pages, 'page')}, "
            + byte_size(built.size)
        )
        if address is not None:
            console.message(f"Serving the site at {address} until Ctrl-C")
            serve.wait()
    return ExitStatus.SUCCESS


def _draw(program: Program, directory: Path) -> Sequence[str]:
    """Draw the figures of a campaign that are missing or show something else; files of series that cannot be read."""
    from quicsat.cli import stored_campaigns
    from quicsat.report.plot_request import CampaignResults, PlotRequest
    from quicsat.results import store

    place = resolved(directory)
    target = place / "plots"
    if target.is_symlink():
        return (f"{target}: is a symbolic link, which may lead anywhere, so no figures are drawn there.",)
    console.message(f"{directory}: drawing figures")
    results = store.load(place).result_set
    campaign = CampaignResults(place.name, results, place, foreign=not results.manifest.tool_version)
    gallery = stored_campaigns.draw(program, PlotRequest((campaign,), target))
    return *gallery.warnings, *gallery.refused
