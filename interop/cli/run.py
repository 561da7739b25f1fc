"""``./run.py run``: measures the selected servers, clients and test cases; the default command."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from interop.cli import campaign_report, console, select_runs
from interop.cli import options as shared
from interop.cli.export import check_target
from interop.cli.progress import earlier_campaigns, reporter
from interop.config import hosts
from interop.model.results import Schedule
from interop.plan import selection as plan

if TYPE_CHECKING:
    from interop.cli.parser import Parser

DESCRIPTION = (
    "Measure each selected server with each selected client over each selected test case, and print the results. "
    "Press Ctrl-C to stop; `./run.py resume` continues."
)
EXAMPLES = (
    "-s quic-go -c aioquic -t sat                          # one server, one client, one link",
    "-s picoquic:bbr picoquic:cubic -c quic-go -t SAT      # two congestion control algorithms",
    "-s quic-go -c quic-go -t sat --repetitions 3 --parallel auto",
    "run -t SAT --seed 1 --shard 2/4 -l part-2             # a quarter of a campaign, see merge",
)


def add_options(parser: Parser) -> None:
    """Declare the options of the command."""
    shared.add_selection(parser)
    group = parser.add_argument_group("images and endpoints")
    group.add_argument(
        "--images", choices=("auto", "local", "pull", "build"), default="auto", metavar="SOURCE",
        help="Source of images: auto, local (no network), pull or build (default: auto; example: local).",
    )  # fmt: skip
    group.add_argument(
        "--skip-compliance-check", action="store_true",
        help="Do not check whether images follow the endpoint contract.",
    )  # fmt: skip
    group.add_argument("--no-qlog", action="store_true", help="Do not request qlogs, which slow some endpoints down.")
    shared.add_clock(parser)
    shared.add_schedule(parser)
    group = shared.add_machines(parser)
    group.add_argument(
        "--baseline", type=float, default=0.0, metavar="SECONDS",
        help="First measure the TCP throughput of real links with iperf3 for this many seconds "
        "(default: 0, not at all; example: 10).",
    )  # fmt: skip
    parser.rename("--bare-link", "--baseline")
    group = shared.add_output(parser)
    group.add_argument(
        "-l", "--log-dir", type=Path, metavar="DIR",
        help="Directory of the campaign; must be empty or not exist (default: results/DATE; example: results/a).",
    )  # fmt: skip
    group.add_argument(
        "-f", "--save-files", action="store_true", help="Keep the transferred files of runs that do not succeed."
    )


def run(options: argparse.Namespace) -> int:
    """Measure, and print the results."""
    from interop.execution import run_campaign
    from interop.execution.campaign_config import CampaignConfig
    from interop.execution.run_config import RunConfig, environment_parameters
    from interop.images import pull_or_build as images

    selection, runs, seed = select_runs.select(options)
    check_target(options.json)
    past = earlier_campaigns(options.root, options.clock)
    config = CampaignConfig(
        hosts=hosts.hosts_of(selection.test_cases, hosts.known(options.hosts), options.hosts),
        bare_link=options.baseline,
        url=shared.daemon_url(),
        root=options.root,
        results=options.root / "results",
        directory=options.log_dir,
        policy=images.Policy(options.images),
        seed=seed,
        command=shared.without_addresses(options.words),
        check_compliance=not options.skip_compliance_check,
        run=RunConfig(
            not options.no_qlog, options.save_files, environment_parameters(), options.clock, shared.cpu_cost(options)
        ),
        testbeds=shared.most_testbeds(options, shared.usual_schedule(options.clock)),
        shuffle=options.shuffle,
        shard=options.shard or "",
        limits=shared.limits(options, os.environ, Schedule()),
        past=past,
        cluster=shared.cluster(options),
    )
    if lost := plan.left_out(selection.servers, selection.clients):
        console.message(lost)
    finished = run_campaign.run_campaign(selection, runs, config, console.message, reporter(runs, past))
    return campaign_report.conclude(finished, options)
