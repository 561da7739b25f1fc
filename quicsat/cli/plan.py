"""``./run.py plan``: shows what ``run`` or ``resume`` would do, and changes nothing."""

import copy
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quicsat.cli import console, new_campaign, select_runs
from quicsat.cli import options as shared
from quicsat.cli import resume as resume_command
from quicsat.cli.campaign_options import NewCampaignOptions
from quicsat.cli.commands import parser_of
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.program import Program, flag, option
from quicsat.cli.progress import earlier_campaigns
from quicsat.config import hosts
from quicsat.model.clock import Clock
from quicsat.model.errors import InputError
from quicsat.model.real_link import Host
from quicsat.model.results import ResultSet, Schedule
from quicsat.model.run import Run
from quicsat.model.text import counted
from quicsat.plan.limits import CampaignLimits
from quicsat.report import terminal_tables

GROUP = "Measure", 3
SUMMARY = "Show the runs, images, duration and disk space of a campaign without starting it."
DESCRIPTION = (
    "Show the runs, images, duration, end time and disk space of a campaign. This command does not start any runs or "
    "write any files. It accepts the same options as `run`, and checks the files that they name."
)
EXAMPLES = (
    "plan -s quic-go -c aioquic -t sat satloss",
    "plan -t SAT --deadline 06:00 --pause 18:00-23:00   # does it end in time?",
    "plan --resume results/latest                       # the remaining runs of a campaign",
    "plan --resume results/latest --retry failed        # and those that failed",
)
DETAILS = "--all lists the runs in their order, and the images."


class Options(NewCampaignOptions, resume_command.ContinueOptions, group="resumed campaign"):
    """The options of the command."""

    resume: Path | None = option(
        "--resume", type=Path, metavar="DIR",
        help="Show the remaining runs of this campaign instead of a new plan; accepts only the options of `resume` "
        "(default: none; example: results/latest).",
    )  # fmt: skip
    retry: list[str] = resume_command.RETRY
    all: bool = flag("--all", group="output", help="Also list the runs in their order, and the images.")


@dataclass(frozen=True)
class _Planned:
    """A new campaign, or what is left of one."""

    runs: Sequence[Run]
    note: str
    limits: CampaignLimits
    machines: Mapping[str, Host]
    schedule: Schedule
    clock: Clock
    place: Path
    """Directory for the results, or the one that will contain it."""
    results: ResultSet | None = None
    """What a campaign has measured before it is resumed."""


def run(options: Options, program: Program) -> int:
    """Show the plan."""
    from quicsat.cli import campaign_size, dry_run
    from quicsat.images.pull_or_build import Policy

    if options.cluster:
        from quicsat.execution.campaign_setup import check_dask

        check_dask()
    planned = _new(options, program) if options.resume is None else _resumed(options, program, options.resume)
    request = dry_run.DryRunRequest(
        daemon=shared.daemon(),
        root=program.root,
        place=planned.place,
        limits=planned.limits,
        past=earlier_campaigns(program.root, planned.clock, planned.results),
        testbeds=shared.most_testbeds(options, planned.schedule),
        clock=planned.clock,
        measures_here=not options.cluster and hosts.measures_here(planned.machines),
        policy=Policy(options.images),
        lock=options.locked,
        begun=planned.results.manifest if planned.results is not None else None,
        markdown=options.markdown,
        width=console.width(),
    )
    forecast = dry_run.describe(request, planned.runs)
    lines = [*terminal_tables.plan_summary(planned.runs), *filter(None, [planned.note]), *forecast.lines]
    if options.resume is None and campaign_size.unusual_size(options, program, planned.runs):
        lines.append(campaign_size.CONSENT)
    console.show("\n".join(lines if options.all else [*lines, DETAILS]))
    if options.all:
        console.show(f"\n{terminal_tables.plan(planned.runs, width=console.width(), markdown=options.markdown)}")
        console.show(f"\n{forecast.images}" if forecast.images else "")
    return ExitStatus.MACHINE if forecast.lacks_images else ExitStatus.SUCCESS


def _new(options: Options, program: Program) -> _Planned:
    if options.retry:
        raise InputError("--retry repeats runs of a campaign: add --resume DIR.")
    chosen = select_runs.select(options, program.root)
    selection, runs, seed = chosen
    new_campaign.check_files(_without_github(options), program.root, chosen, report=False)
    machines = shared.machines(options, selection.test_cases)
    lines = new_campaign.notes(options, program, selection)
    if options.shuffle and options.seed is None:
        lines.append(f"This is the order for --seed {seed}. Without --seed, each campaign draws its own seed.")
    schedule, place = shared.usual_schedule(options.clock), options.log_dir or program.results
    limits = shared.limits(options, os.environ, schedule, selection.test_cases)
    return _Planned(runs, "\n".join(lines), limits, machines, schedule, options.clock, place)


def _resumed(options: Options, program: Program, directory: Path) -> _Planned:
    from quicsat.execution.remaining_work import remaining_work

    if foreign := _not_of_resume(options):
        raise InputError(f"--resume: a campaign continues with its own options. Leave out {', '.join(foreign)}.")
    continued = resume_command.check(_without_github(options), program.root, directory, report=False)
    record = continued.stored
    results, runs = record.result_set, remaining_work(record, resume_command.outcomes(options)).runs
    manifest = results.manifest
    kept = (
        f"{manifest.planned_runs - len(runs)} of {counted(manifest.planned_runs, 'run')} of "
        f"{directory} {'is' if manifest.planned_runs == 1 else 'are'} finished"
    )
    note = f"{kept} and not repeated." if options.retry else f"{kept}."
    return _Planned(
        runs, note, continued.limits, continued.machines, manifest.schedule, manifest.clock, directory, results
    )


def _not_of_resume(options: Options) -> list[str]:
    """The options with another value than their default that ``resume`` does not take."""
    taken = {action.dest for action in parser_of("resume")._actions} | {"resume", "all"}
    others = (action for action in parser_of("plan")._actions if action.dest not in taken)
    return [each.option_strings[-1] for each in others if getattr(options, each.dest, each.default) != each.default]


def _without_github(options: Options) -> Options:
    """GitHub takes no command from a plan, and its summary gets nothing."""
    changed = copy.copy(options)
    changed.github = False
    return changed
