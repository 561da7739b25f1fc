"""Checks the options of a new campaign before it needs an engine, and prepares the campaign."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import console, continuous_integration, other_runners, select_runs
from quicsat.cli import options as shared
from quicsat.cli.continuous_integration import CiRequest
from quicsat.cli.output_files import check_place
from quicsat.cli.program import Program
from quicsat.cli.progress import earlier_campaigns
from quicsat.cli.select_runs import ChosenRuns
from quicsat.config.inventory import Inventory
from quicsat.model.clock import Clock
from quicsat.model.errors import InputError
from quicsat.model.results import Schedule
from quicsat.model.run import Run
from quicsat.plan.pairs import left_out

ELSEWHERE = "Choose another place with -l."
"""What to do if a directory contains something else than what is to be continued."""

if TYPE_CHECKING:
    from quicsat.cli.campaign_options import NewCampaignOptions
    from quicsat.execution.campaign_config import Conditions, NewCampaign
    from quicsat.model.results import Manifest
    from quicsat.plan.selection import Selection


def check_files(
    options: NewCampaignOptions, root: Path, chosen: ChosenRuns, *, report: bool = True, begun: bool = False
) -> CiRequest:
    """Read the files that options name, and raise InputError if one cannot be read, or be written at the end.

    ``report``: also write what keeps the campaign from being compared into the reports that were asked for;
    ``begun``: the directory contains what is continued.
    """
    selection = chosen.selection
    if options.log_dir:
        from quicsat.results.store import check_campaign_directory

        if not begun:
            check_campaign_directory(options.log_dir)
        check_place(options.log_dir, str(options.log_dir))
    if options.locked:
        from quicsat.images.build_recipes import own_images
        from quicsat.images.lock_file import check_lock

        check_lock(options.locked, root, selection.implementations, own_images(selection.test_cases, options.clock))
    names = (each.name for each in (*selection.servers, *selection.clients))
    request = continuous_integration.read_request(options, root, names, selection.test_cases, options.log_dir)
    other_runners.check_earlier_results(options.json, root / "results")
    continuous_integration.check_plan(request, options.clock, chosen.seed, report=report)
    return request


def confirm_size(options: NewCampaignOptions, program: Program, runs: Sequence[Run]) -> None:
    """Let a campaign of unusual size start only with consent, see :mod:`quicsat.cli.campaign_size`."""
    if not options.yes:
        from quicsat.cli import campaign_size

        campaign_size.confirm(options, program, runs)


def notes(options: NewCampaignOptions, program: Program, selection: Selection) -> list[str]:
    """What of the selection has no runs, and marks that no pair gets; neither is a fault."""
    lost = "" if options.pairs else left_out(selection.servers, selection.clients, selection.test_cases)
    virtual = options.clock is Clock.VIRTUAL
    marks = Inventory(program.root).unknown_marks(selection.servers, selection.test_cases) if virtual else []
    return [*filter(None, [lost]), *marks]


@contextmanager
def conditions(options: NewCampaignOptions, program: Program, selection: Selection) -> Iterator[Conditions]:
    """How the runs are made, with an engine for itself; only then are large libraries imported.

    Raises InputError if hosts are missing or options exclude each other, LockedError if the engine is in use.
    """
    limits = shared.limits(options, os.environ, Schedule(), selection.test_cases)
    machines = shared.machines(options, selection.test_cases)
    for note in notes(options, program, selection):
        console.message(note)
    with shared.engine_for_itself(options, program):
        from quicsat.execution import campaign_config

        yield campaign_config.Conditions(
            shared.daemon(),
            machines,
            shared.cluster(options),
            shared.most_testbeds(options, shared.usual_schedule(options.clock)),
            limits,
            earlier_campaigns(program.root, options.clock),
            program.root,
            options.baseline,
            wait=options.wait,
        )


def new_campaign(options: NewCampaignOptions, program: Program, chosen: ChosenRuns, request: CiRequest) -> NewCampaign:
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
            cpu_cost_factor=shared.cpu_cost_factor(options),
            amplitudes=shared.amplitudes(options),
            placebo=options.placebo,
        ),
        note=options.note,
        check_compliance=not options.skip_compliance_check,
        shuffle=options.shuffle,
        shard=options.shard or "",
        must_include=select_runs.must_include(options),
        pairs=select_runs.pairs(options),
        check=partial(continuous_integration.check_manifest, request),
    )


def check_same(begun: Manifest, new: NewCampaign, place: Path, under_test: Iterable[str] = ()) -> None:
    """Raise InputError if a campaign was begun with other runs, or in other conditions, than are planned now."""
    from quicsat.statistics.conditions import differences, matching

    planned = new.manifest(begun.id, begun.images, begun.schedule)
    cases = matching(begun.test_cases, planned.test_cases)
    faults = (
        *differences(begun, planned, cases, under_test, ("stored campaign", "command")).faults,
        *_other_parameters(begun, planned),
    )
    if faults or _plan(begun) != _plan(planned):
        raise InputError(f"{place}: was measured with other runs or options. {ELSEWHERE}", *faults)


def _other_parameters(begun: Manifest, planned: Manifest) -> Iterator[str]:
    before, now = ({name: text for name, text in (each.parameters or {}).items() if text} for each in (begun, planned))
    if begun.parameters is not None and before != now:
        names = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
        yield f"The environment has another value of {', '.join(names)} than in the stored campaign."


def _plan(manifest: Manifest) -> tuple[object, ...]:
    """What tells the runs of a campaign from those of another one in the same conditions."""
    names = (manifest.servers, manifest.clients, manifest.pairs, [case.name for case in manifest.test_cases])
    replaced = {each.name: each.image for each in manifest.implementations if each.replaced}
    return manifest.seed, manifest.planned_runs, replaced, *map(frozenset, names)
