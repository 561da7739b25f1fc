"""``./run.py resume``: continues an interrupted campaign with the same plan, seeds, images and options."""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from interop.cli import campaign_report, console
from interop.cli import options as shared
from interop.cli.export import check_target
from interop.cli.progress import earlier_campaigns, reporter
from interop.config import hosts
from interop.model.outcomes import Outcome

if TYPE_CHECKING:
    from interop.cli.parser import Parser

DESCRIPTION = (
    "Continue a campaign with its original plan, seeds, images and options. Keeps finished runs, and repeats runs that "
    "ended in an infrastructure error."
)
EXAMPLES = (
    "resume                                   # the newest campaign",
    "resume results/a --retry failed timeout  # also repeat failures and timeouts",
)
RETRY = [
    outcome.value for outcome in (Outcome.FAILED, Outcome.TIMEOUT, Outcome.UNSUPPORTED, Outcome.SKIPPED, Outcome.ERROR)
]


def add_options(parser: Parser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "directory", type=Path, nargs="?", metavar="DIR",
        help="Directory of the campaign (default: results/latest; example: results/a).",
    )  # fmt: skip
    parser.add_argument_group("selection").add_argument(
        "--retry", nargs="+", action="extend", default=[], choices=RETRY, metavar="OUTCOME",
        help=f"Also repeat runs with these outcomes: {', '.join(RETRY)} (default: error; example: failed timeout).",
    )  # fmt: skip
    shared.add_schedule(parser)
    shared.add_machines(parser)
    shared.add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Run what is left, and print the results."""
    from interop.execution import run_campaign
    from interop.execution.campaign_config import CampaignConfig
    from interop.images import pull_or_build as images
    from interop.results import store

    check_target(options.json)
    directory = options.directory or options.root / "results" / "latest"
    begun = store.load(directory).result_set.manifest
    past = earlier_campaigns(options.root, begun.clock)
    config = CampaignConfig(
        shared.daemon_url(),
        options.root,
        options.root / "results",
        None,
        images.Policy.LOCAL,
        0,
        (),
        testbeds=shared.most_testbeds(options, begun.schedule),
        limits=shared.limits(options, os.environ, begun.schedule),
        past=past,
        cluster=shared.cluster(options),
        hosts=hosts.hosts_of(begun.test_cases, hosts.known(options.hosts), options.hosts),
    )
    retry = [Outcome(word) for word in options.retry]
    progress = partial(reporter, past=past)
    return campaign_report.conclude(
        run_campaign.resume_campaign(directory, retry, config, console.message, progress), options
    )
