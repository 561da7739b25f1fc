"""``./run.py show``: shows the matrices of a stored campaign."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import campaign_report, console
from quicsat.cli import options as shared
from quicsat.cli.outcome_status import exit_status_of
from quicsat.cli.program import CommandOptions, Program

if TYPE_CHECKING:
    from quicsat.cli.parser import Parser

DESCRIPTION = "Show the matrices of a campaign. The exit status is the same as the exit status of the campaign."
EXAMPLES = ("show", "show results/a --markdown")


class Options(CommandOptions):
    """The options of the command."""

    directory: Path | None
    negotiated: bool
    markdown: bool


def add_options(parser: Parser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "directory", type=Path, nargs="?", metavar="DIR",
        help="Directory of the campaign (default: results/latest; example: results/a).",
    )  # fmt: skip
    group = parser.add_argument_group("output")
    group.add_argument(
        "--negotiated", action="store_true",
        help="Also show what the endpoints negotiated: version, cipher and transport parameters.",
    )  # fmt: skip
    shared.add_markdown(group)


def run(options: Options, program: Program) -> int:
    """Print the matrices."""
    from quicsat.results import store

    results = console.warn(store.load(options.directory or program.results / "latest"))
    campaign_report.show_results(results, markdown=options.markdown)
    if options.negotiated:
        from quicsat.report import negotiated_tables
        from quicsat.report.table import render

        table = negotiated_tables.negotiated(results, results.manifest.test_cases)
        console.show(render(table, "markdown" if options.markdown else "text", console.width()))
    return exit_status_of(results)
