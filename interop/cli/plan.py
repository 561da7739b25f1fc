"""``./run.py plan``: shows what ``run`` or ``resume`` would do, and changes nothing."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from interop.cli import console, other_runners, select_runs
from interop.cli import options as shared
from interop.cli.exit_status import ExitStatus
from interop.cli.progress import earlier_campaigns
from interop.report import terminal_tables

if TYPE_CHECKING:
    from interop.cli.parser import Parser

DESCRIPTION = (
    "Show the runs, images, duration, end time and disk space of a campaign. This command does not start any runs or "
    "write any files. It accepts the same options as `run`."
)
EXAMPLES = (
    "plan -s quic-go -c aioquic -t sat satloss",
    "plan -t SAT --deadline 06:00 --pause 18:00-23:00   # does it end in time?",
    "plan --resume results/latest                       # the remaining runs of a campaign",
)


def add_options(parser: Parser) -> None:
    """Declare the options of the command."""
    shared.add_selection(parser)
    parser.add_argument_group("resumed campaign").add_argument(
        "--resume", type=Path, metavar="DIR",
        help="Show the remaining runs of this campaign instead of a new plan (default: none; example: results/latest).",
    )  # fmt: skip
    shared.add_clock(parser)
    shared.add_schedule(parser)
    other_runners.add_options(parser)


def run(options: argparse.Namespace) -> int:
    """Show the plan."""
    from interop.cli import dry_run

    runs, note, begun, clock = select_runs.planned(options)
    console.show(terminal_tables.plan(runs))
    if note:
        console.show(note)
    test_cases = tuple(dict.fromkeys(run.test_case for run in runs))
    limits, most = shared.limits(options, os.environ, begun, test_cases), shared.most_testbeds(options, begun)
    past = earlier_campaigns(options.root, clock)
    request = dry_run.DryRunRequest(shared.daemon_url(), options.root, limits, past, most, clock)
    console.show(dry_run.describe(request, runs))
    return ExitStatus.SUCCESS
