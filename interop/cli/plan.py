"""``./run.py plan``: shows what ``run`` or ``resume`` would do, and changes nothing."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from interop.cli import console, continuous_integration, select_runs
from interop.cli import options as shared
from interop.cli import run as run_command
from interop.cli.exit_status import ExitStatus
from interop.cli.progress import earlier_campaigns
from interop.config import hosts
from interop.model.clock import Clock
from interop.model.results import ResultSet, Schedule
from interop.model.run import Run
from interop.plan.selection import left_out
from interop.report import terminal_tables

if TYPE_CHECKING:
    from interop.cli.parser import Parser

DESCRIPTION = (
    "Show the runs, images, duration, end time and disk space of a campaign. This command does not start any runs or "
    "write any files. It accepts the same options as `run`, and checks the files that they name."
)
EXAMPLES = (
    "plan -s quic-go -c aioquic -t sat satloss",
    "plan -t SAT --deadline 06:00 --pause 18:00-23:00   # does it end in time?",
    "plan --resume results/latest                       # the remaining runs of a campaign",
)


def add_options(parser: Parser) -> None:
    """Declare the options of the command."""
    run_command.add_options(parser)
    parser.add_argument_group("resumed campaign").add_argument(
        "--resume", type=Path, metavar="DIR",
        help="Show the remaining runs of this campaign instead of a new plan (default: none; example: results/latest).",
    )  # fmt: skip


@dataclass(frozen=True)
class _Planned:
    """A new campaign, or what is left of one."""

    runs: Sequence[Run]
    note: str
    schedule: Schedule
    clock: Clock
    place: Path
    """Directory for the results, or the one that will contain it."""
    results: ResultSet | None = None
    """What a campaign has measured before it is resumed."""


def run(options: argparse.Namespace) -> int:
    """Show the plan."""
    from interop.cli import dry_run

    planned = _new(options) if options.resume is None else _resumed(options.resume)
    test_cases = tuple(dict.fromkeys(run.test_case for run in planned.runs))
    request = dry_run.DryRunRequest(
        url=shared.daemon_url(),
        root=options.root,
        place=planned.place,
        limits=shared.limits(options, os.environ, planned.schedule, test_cases),
        past=earlier_campaigns(options.root, planned.clock, planned.results),
        testbeds=shared.most_testbeds(options, planned.schedule),
        clock=planned.clock,
        markdown=options.markdown,
    )
    console.show(terminal_tables.plan(planned.runs, markdown=options.markdown))
    if planned.note:
        console.show(planned.note)
    console.show(dry_run.describe(request, planned.runs))
    return ExitStatus.SUCCESS


def _new(options: argparse.Namespace) -> _Planned:
    selection, runs, seed = select_runs.select(options)
    # GitHub takes no command from a plan, and its summary gets nothing.
    request = run_command.check_files(argparse.Namespace(**{**vars(options), "github": False}), selection)
    continuous_integration.check_plan(request, options.clock, seed, report=False)
    hosts.hosts_of(selection.test_cases, hosts.known(options.hosts), options.hosts)
    lines = [left_out(selection.servers, selection.clients, selection.test_cases)]
    if options.shuffle and options.seed is None:
        lines.append(f"This is the order for --seed {seed}. Without --seed, each campaign draws its own seed.")
    schedule, place = shared.usual_schedule(options.clock), options.log_dir or options.root / "results"
    return _Planned(runs, "\n".join(filter(None, lines)), schedule, options.clock, place)


def _resumed(directory: Path) -> _Planned:
    from interop.execution.remaining_work import remaining_work
    from interop.results import store

    record = store.load(directory)
    results, runs = record.result_set, remaining_work(record, ()).runs
    manifest = results.manifest
    note = f"{manifest.planned_runs - len(runs)} of {manifest.planned_runs} runs of {directory} are finished."
    return _Planned(runs, note, manifest.schedule, manifest.clock, directory, results)
