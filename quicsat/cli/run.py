"""``./run.py run``: measures the selected servers, clients and test cases; the default command."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import campaign_options, campaign_report, console, continuous_integration, other_runners, select_runs
from quicsat.cli import options as shared
from quicsat.cli.output_files import check_place
from quicsat.cli.program import Program
from quicsat.cli.progress import earlier_campaigns
from quicsat.cli.select_runs import ChosenRuns
from quicsat.model.clock import Clock
from quicsat.model.results import Schedule
from quicsat.plan.pairs import left_out

if TYPE_CHECKING:
    from quicsat.execution.campaign_config import NewCampaign

GROUP = "Measure", 1
SUMMARY = "Measure servers with clients in the selected test cases (the default command)."
DESCRIPTION = (
    "Measure each selected server with each selected client in each selected test case, and print the results. "
    "Press Ctrl-C to stop the campaign, and use `./run.py resume` to continue it."
)
EXAMPLES = (
    "-s quic-go -c aioquic -t sat                          # one server, one client, one link",
    "-s picoquic:bbr picoquic:cubic -c quic-go -t SAT      # two congestion control algorithms",
    "-s quic-go -c quic-go -t sat --repetitions 3 --parallel auto",
    "run -t SAT --seed 1 --shard 2/4 -l part-2             # a quarter of a campaign, see merge",
)


Options = campaign_options.NewCampaignOptions


def run(options: Options, program: Program) -> int:
    """Check all that needs no engine, measure, and print the results."""
    chosen = select_runs.select(options, program.root)
    return measure(options, program, chosen, check_files(options, program.root, chosen))


def check_files(
    options: Options, root: Path, chosen: ChosenRuns, *, report: bool = True
) -> continuous_integration.CiRequest:
    """Read the files that options name, and raise InputError if one cannot be read, or be written at the end.

    ``report``: also write what keeps the campaign from being compared into the reports that were asked for.
    """
    selection = chosen.selection
    if options.log_dir:
        from quicsat.results.store import check_campaign_directory

        check_campaign_directory(options.log_dir)
        check_place(options.log_dir, str(options.log_dir))
    if options.locked:
        from quicsat.images.build_recipes import own_images
        from quicsat.images.lock_file import check_lock

        check_lock(options.locked, root, selection.implementations, own_images(selection.test_cases, options.clock))
    names = (each.name for each in (*selection.servers, *selection.clients))
    request = continuous_integration.read_request(options, root, names, selection.test_cases, options.log_dir)
    other_runners.check_earlier_results(options.json)
    continuous_integration.check_plan(request, options.clock, chosen.seed, report=report)
    return request


def measure(options: Options, program: Program, chosen: ChosenRuns, request: continuous_integration.CiRequest) -> int:
    """Carry the runs out with an engine for itself, and print the results; only then are large libraries imported."""
    selection = chosen.selection
    limits = shared.limits(options, os.environ, Schedule(), selection.test_cases)
    machines = shared.machines(options, selection.test_cases)
    with shared.engine_for_itself(options, program):
        from quicsat.execution import campaign_config, run_campaign

        conditions = campaign_config.Conditions(
            shared.daemon(),
            machines,
            shared.cluster(options),
            shared.most_testbeds(options, shared.usual_schedule(options.clock)),
            limits,
            earlier_campaigns(program.root, options.clock),
            options.baseline,
        )
        new = _new(options, program, chosen, request)
        if lost := left_out(selection.servers, selection.clients, selection.test_cases):
            console.message(lost)
        with campaign_report.view(conditions.past, debug=options.debug) as observer:
            finished = run_campaign.run_campaign(new, conditions, observer)
        return campaign_report.conclude(finished, options, program, request)


def _new(
    options: Options, program: Program, chosen: ChosenRuns, request: continuous_integration.CiRequest
) -> NewCampaign:
    """What the options measure."""
    from quicsat.execution.campaign_config import ImageSource, NewCampaign
    from quicsat.execution.run_config import RunConfig, environment_parameters
    from quicsat.images.pull_or_build import Policy

    return NewCampaign(
        *chosen,
        shared.without_addresses(program.words),
        ImageSource(program.root, Policy(options.images), options.locked),
        results=program.results,
        directory=options.log_dir,
        run=RunConfig(
            qlog=not options.no_qlog,
            keep_files=options.save_files,
            parameters=environment_parameters(),
            clock=options.clock,
            cpu_cost=shared.cpu_cost(options),
            own_cpu_costs=options.clock is Clock.VIRTUAL and options.cpu_cost is None,
            amplitudes=shared.amplitudes(options),
            placebo=options.placebo,
        ),
        note=options.note,
        check_compliance=not options.skip_compliance_check,
        shuffle=options.shuffle,
        shard=options.shard or "",
        must_include=select_runs.must_include(options),
        check=partial(continuous_integration.check_manifest, request),
    )
