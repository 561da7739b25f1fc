"""``./run.py gate``: measures two builds of an implementation on one machine, and judges them in two looks.

The first look measures all cells with few members. The second one measures the cells that are still open with new
members, which alone decide: chance had a part in what was left open. Both looks share the level of the tests. The runs
of both builds take turns, and the clock is virtual, so that the load of the machine changes neither.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from quicsat.cli import campaign_report, console, continuous_integration, new_campaign, select_runs
from quicsat.cli import options as shared
from quicsat.cli.campaign_options import NewCampaignOptions
from quicsat.cli.outcome_status import exit_status_for
from quicsat.cli.program import Program, option
from quicsat.cli.select_runs import ChosenRuns
from quicsat.config import quantities
from quicsat.model.clock import Clock
from quicsat.model.errors import InputError
from quicsat.model.gate_directories import AGAIN, BASE, CHANGE
from quicsat.model.text import command_line, counted
from quicsat.plan.select_names import split

if TYPE_CHECKING:
    from quicsat.cli.continuous_integration import CiRequest
    from quicsat.execution.campaign_config import CampaignOutcome, Conditions
    from quicsat.statistics.comparison import Cell, Comparison
    from quicsat.statistics.judgement import Judgement

GROUP = "Measure", 2
SUMMARY = "Measure two builds of an implementation, and judge whether one is worse."
DESCRIPTION = (
    "Measure the image of an implementation that contains a change and its image without the change in virtual time, "
    "and judge what has become worse. Cells that the first repetitions leave open are measured again with more."
)
EXAMPLES = ("gate --clock virtual -i quic-go -t sat -r quic-go=me/it:new --against me/it:main -l results/both",)
FIRST, SECOND = 5, 20
"""Members of the first look, and of both looks together, by default."""


class Options(NewCampaignOptions, group="continuous integration", without=("shard", "placebo", "json", "json_format")):
    """Those of ``run``, and the build without the change."""

    against: str = option(
        "--against", required=True, metavar="IMAGE",
        help="Image without the change, of the implementation that -i names (required; example: me/quic-go:main).",
    )  # fmt: skip
    second_look: int = option(
        "--second-look", parse=quantities.count, default=SECOND, metavar="N",
        help="Measure cells that are open again, with the repetitions up to this number; 0 for no second look "
        f"(default: {SECOND}; example: 40).",
    )  # fmt: skip


class Builds(NamedTuple):
    """What is measured of both builds."""

    base: ChosenRuns
    change: ChosenRuns

    def only(self, cells: Collection[Cell], first: int) -> Builds:
        """The runs of these cells, of members after the ``first`` ones."""
        return Builds(*(_only(chosen, cells, first) for chosen in self))


def _only(chosen: ChosenRuns, cells: Collection[Cell], first: int) -> ChosenRuns:
    runs = tuple(run for run in chosen.runs if run.key[:3] in cells and run.repetition > first)
    selection = replace(
        chosen.selection,
        servers=tuple(dict.fromkeys(run.server for run in runs)),
        clients=tuple(dict.fromkeys(run.client for run in runs)),
        test_cases=tuple(dict.fromkeys(run.test_case for run in runs)),
    )
    return ChosenRuns(selection, runs, chosen.seed)


def choose(options: Options, root: Path, members: int) -> Builds:
    """The runs of both builds with so many members; raises InputError, also if options do not go together."""
    name, change, base = _under_test(options), copy.copy(options), copy.copy(options)
    change.repetitions = base.repetitions = members
    chosen = select_runs.select(change, root)
    kept = [word for word in split(options.replace) if word.partition("=")[0].strip() != name]
    base.seed, base.replace = chosen.seed, [*kept, f"{name}={options.against}"]
    return Builds(select_runs.select(base, root), chosen)


def _under_test(options: Options) -> str:
    names = select_runs.must_include(options)
    if len(names) != 1:
        raise InputError("gate: name the one implementation under test with -i.")
    if options.clock is not Clock.VIRTUAL:
        raise InputError("gate needs --clock virtual: in real time, the machine changes between the two builds.")
    if options.log_dir is None:
        raise InputError("gate makes several campaigns: name a directory for them with -l.")
    return names[0]


def run(options: Options, program: Program) -> int:
    """Check all that needs no engine, measure both builds, and print and write the judgement."""
    first, second = shared.looks(FIRST if options.repetitions is None else options.repetitions, options.second_look)
    builds = choose(options, program.root, first)
    request = replace(new_campaign.check_files(options, program.root, builds.change), decides=True)
    if request.baseline is not None:
        raise InputError(f"gate measures the baseline itself: remove the key baseline from {options.expect}.")
    options.seed = builds.change.seed
    further = choose(options, program.root, second or first)  # now: what it reads may change meanwhile
    with new_campaign.conditions(options, program, builds.change.selection) as how:
        new_campaign.confirm_size(options, program, [*builds.base.runs, *builds.change.runs])
        look = _look(builds, "", (options, program, how))
        if stopped := _stopped(look):
            return stopped
        request = replace(request, baseline=look[0].record.result_set)
        judgement, found = _judged(look, request, 1 + bool(second))
        cells = found.suspects(request.expectations.regression)
        if second and cells and not found.worse:
            console.message(f"Second look at {counted(len(cells), 'cell')} that may be worse.")
            more = further.only(cells, first)
            again = _look(more, AGAIN, (options, program, how))
            if stopped := _stopped(again):
                return stopped
            judgement, found = _judged(look, request, 2, again)
    change = look[1]
    campaign_report.show_results(change.record.result_set, markdown=options.markdown)
    console.show(f"\nResults: {options.log_dir}")
    if found.worse:
        console.show(f"To check this in real time: {command_line('confirm', options.log_dir)}")
    continuous_integration.report(request, judgement, change.record.result_set, change.directory, program.draw)
    return exit_status_for(judgement)


def _look(builds: Builds, suffix: str, given: tuple[Options, Program, Conditions]) -> list[CampaignOutcome]:
    """The campaigns of both builds, the base first."""
    from quicsat.execution import run_campaign

    options, program, how = given
    new = [new_campaign.new_campaign(options, program, chosen, continuous_integration.CiRequest()) for chosen in builds]
    new = [
        replace(
            each,
            directory=options.log_dir and options.log_dir / f"{name}{suffix}",
            check_compliance=each.check_compliance and not suffix,  # the first look has told
        )
        for name, each in zip((BASE, CHANGE), new, strict=True)
    ]
    with campaign_report.view(how.past, debug=options.debug) as observer:
        return run_campaign.run_builds(new, how, observer)


def _stopped(look: Sequence[CampaignOutcome]) -> int:
    """Say that a campaign of a look was stopped; its exit status, 0 if none was."""
    from quicsat.execution.run_campaign import ANOTHER

    ended = sorted((each for each in look if each.stopped), key=lambda each: each.fault == ANOTHER)
    if not ended:
        return 0
    first = ended[0]
    console.message(f"{first.stopped}\nThe campaigns so far: {first.directory.parent}")
    return campaign_report.status_of_stopped(first)


def _judged(
    look: Sequence[CampaignOutcome], request: CiRequest, number: int, again: Sequence[CampaignOutcome] = ()
) -> tuple[Judgement, Comparison]:
    """The judgement after the first look, or after both, and the comparison behind it; ``number``: of looks planned."""
    from quicsat.statistics import comparison
    from quicsat.statistics.judgement import judge

    loss = request.expectations.regression
    first, *second = (
        comparison.campaigns(base.record.result_set, change.record.result_set,
                             base.record.result_set.manifest.test_cases, loss, number, by_case=True)
        for base, change in (look, *([again] if again else []))
    )  # fmt: skip
    found = first.decided_by(second[0]) if second else first
    results = look[1].record.result_set
    notes = continuous_integration.check_manifest(request, results.manifest)
    return judge(results, request.expectations, request.baseline, notes, found), found
