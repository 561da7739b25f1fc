"""``./run.py show``: shows the matrices of a stored campaign."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from interop.cli import campaign_report, console
from interop.cli import options as shared
from interop.cli.exit_status import exit_status_of

if TYPE_CHECKING:
    from interop.cli.parser import Parser

DESCRIPTION = "Show the matrices of a campaign. The exit status is that of the campaign."
EXAMPLES = ("show", "show results/a --markdown")


def add_options(parser: Parser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "directory", type=Path, nargs="?", metavar="DIR",
        help="Directory of the campaign (default: results/latest; example: results/a).",
    )  # fmt: skip
    shared.add_markdown(parser.add_argument_group("output"))


def run(options: argparse.Namespace) -> int:
    """Print the matrices."""
    from interop.results import store

    record = store.load(options.directory or options.root / "results" / "latest")
    for warning in record.warnings:
        console.message(warning)
    campaign_report.show_results(record.result_set, markdown=options.markdown)
    return exit_status_of(record.result_set)
