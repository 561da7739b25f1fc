"""``./run.py gate``: measures two builds of an implementation on one machine, and judges them in two looks.

The first look measures all cells with few members. The second one measures the cells that are still open with new
members, which alone decide: chance had a part in what was left open. Both looks share the level of the tests. The runs
of both builds take turns, and the clock is virtual, so that the load of the machine changes neither.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
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
from quicsat.model.gate_directories import AGAIN, ALL, BASE, CHANGE
from quicsat.model.text import command_line, counted
from quicsat.plan.select_names import split

if TYPE_CHECKING:
    from quicsat.cli.continuous_integration import CiRequest
    from quicsat.execution.campaign_config import CampaignOutcome, Conditions, NewCampaign
    from quicsat.model.results import Manifest
    from quicsat.results.document import StoredResults
    from quicsat.statistics.comparison import Cell, Comparison
    from quicsat.statistics.judgement import Judgement

GROUP = "Measure", 2
SUMMARY = "Measure two builds of an implementation, and judge whether one is worse."
DESCRIPTION = (
    "Measure the image of an implementation that contains a change and its image without the change in virtual time, "
    "and judge what has become worse. Cells that the first repetitions leave open are measured again with more. The "
    "same command continues after an interruption."
)
EXAMPLES = ("gate -i quic-go -t sat -r quic-go=me/it:new --against me/it:main -l results/both",)
FIRST, SECOND = 5, 20
"""Members of the first look, and of both looks together, by default."""


class Options(NewCampaignOptions, group="continuous integration", without=("shard", "placebo", "json", "json_format")):
    """Those of ``run``, and the build without the change."""

    against: str = option(
        "--against", required=True, metavar="IMAGE",
        help="Image without the change, of the implementation that -i names (required; example: me/quic-go:main).",
    )  # fmt: skip
    second_look: int | None = option(
        "--second-look", parse=quantities.count, metavar="N",
        help="Measure cells that are open again, with the repetitions up to this number; 0 for no second look "
        f"(default: {SECOND}, or 0 if --repetitions is not less; example: 40).",
    )  # fmt: skip
    must_include: list[str] = option(
        "-i", "--must-include", group="selection", nargs="+", action="extend", default=[], metavar="NAME",
        help="The implementation under test: measure only pairs that contain it, as the server or as the client "
        "(required; example: quic-go).",
    )  # fmt: skip
    repetitions: int = option(
        "--repetitions", group="selection", parse=quantities.count, default=FIRST, metavar="N",
        help=f"Measure each pair and test case N times at the first look (default: {FIRST}; example: 10).",
    )  # fmt: skip
    clock: Clock = option(
        "--clock", group="clock", choices=tuple(Clock), type=Clock, default=Clock.VIRTUAL, metavar="CLOCK",
        help="Clock for endpoints and emulated links; a gate needs the virtual one (default: virtual; example: "
        "virtual).",
    )  # fmt: skip
    log_dir: Path | None = option(
        "-l", "--log-dir", group="output", type=Path, metavar="DIR",
        help="Directory for the campaigns of both builds; the same command continues those that it contains, "
        "with their seed (default: results/DATE; example: results/both).",
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
    return names[0]


def run(options: Options, program: Program) -> int:
    """Check all that needs no engine, measure both builds, and print and write the judgement."""
    first, second = shared.looks(options.repetitions, options.second_look, SECOND)
    gate = Gate(options, program)
    if options.seed is None:
        options.seed = gate.stored_seed
    builds = choose(options, program.root, first)
    request = replace(new_campaign.check_files(options, program.root, builds.change, begun=gate.begun), decides=True)
    if request.baseline is not None:
        raise InputError(f"gate measures the baseline itself: remove the key baseline from {options.expect}.")
    options.seed = builds.change.seed
    further = choose(options, program.root, second or first)  # now: what it reads may change meanwhile
    gate.campaigns(builds)  # before anything is measured: those that are stored have to fit
    with new_campaign.conditions(options, program, builds.change.selection) as how:
        new_campaign.confirm_size(options, program, [*builds.base.runs, *builds.change.runs])
        look = gate.first_look() or gate.measure(builds, "", how)
        if stopped := gate.stopped(look):
            return stopped
        request = replace(request, baseline=look[0].record.result_set)
        judgement, found = _judged(look, request, 1 + bool(second))
        cells = found.suspects(request.expectations.regression) if second and not found.worse else ()
        if cells:
            console.message(f"Second look at {counted(len(cells), 'cell')} that may be worse.")
            again = gate.measure(further.only(cells, first), AGAIN, how)
            if stopped := gate.stopped(again):
                return stopped
            judgement, found = _judged(look, request, 2, again)
        elif gate.has_second_look:
            raise InputError(
                f"{options.log_dir}: has a second look, for which these options do not ask. {new_campaign.ELSEWHERE}"
            )
    change = look[1]
    campaign_report.show_results(change.record.result_set, markdown=options.markdown)
    console.show(f"\nResults: {options.log_dir}")
    if found.worse:
        console.show(f"To check this in real time: {command_line('confirm', options.log_dir)}")
    continuous_integration.report(request, judgement, change.record.result_set, change.directory, program.draw)
    return exit_status_for(judgement)


class Gate:
    """A gate under way: its campaigns so far, which an earlier call of the command may have begun."""

    def __init__(self, options: Options, program: Program) -> None:
        """Raise InputError if a campaign in the directory cannot be read."""
        from quicsat.results import store

        self._options, self._program = options, program
        places = {} if options.log_dir is None else {name: options.log_dir / name for name in ALL}
        self.begun = any(each.is_dir() for each in places.values())
        """Whether the directory is that of a gate."""
        self._stored: dict[str, StoredResults] = {}
        for name, place in places.items():
            if store.is_campaign(place):
                self._stored[name] = store.load_to_continue(place)
            else:
                store.check_campaign_directory(place)
        self._known = {name: each.result_set.manifest for name, each in self._stored.items()}
        self._place_of_its_own: tuple[object, ...] = ()
        """Words that name the directory, if the command line does not."""

    @property
    def stored_seed(self) -> int | None:
        """That of the campaigns so far; None if there are none."""
        return next((each.seed for each in self._known.values()), None)

    @property
    def has_second_look(self) -> bool:
        """Whether an earlier call has begun it."""
        return any(name.endswith(AGAIN) for name in self._stored)

    def first_look(self) -> list[CampaignOutcome]:
        """As it is stored, if the second one is begun, which was chosen by its results; else empty."""
        from quicsat.execution.campaign_config import CampaignOutcome

        if not self.has_second_look or not {BASE, CHANGE} <= self._stored.keys():
            return []
        assert self._options.log_dir is not None
        return [CampaignOutcome(self._options.log_dir / name, self._stored[name], None) for name in (BASE, CHANGE)]

    def campaigns(self, builds: Builds, suffix: str = "") -> list[NewCampaign]:
        """Those of a look, the base first; raises InputError if one is stored with other runs or conditions."""
        options, place = self._options, self._options.log_dir
        found: list[NewCampaign] = []
        for build, chosen in zip((BASE, CHANGE), builds, strict=True):
            new = new_campaign.new_campaign(options, self._program, chosen, continuous_integration.CiRequest())
            name = f"{build}{suffix}"
            new = replace(
                new,
                directory=place and place / name,
                check_compliance=new.check_compliance and not suffix,  # the first look has told
                check=partial(_check_images, place, self._known.get(name, self._known.get(build))),
            )
            if place is not None and name in self._known:
                new_campaign.check_same(self._known[name], new, place)
            found.append(new)
        return found

    def measure(self, builds: Builds, suffix: str, how: Conditions) -> list[CampaignOutcome]:
        """The campaigns of a look, measured as far as they are not yet."""
        from quicsat.execution import run_campaign
        from quicsat.results.store import make_dated_directory

        if self._options.log_dir is None:
            self._options.log_dir = make_dated_directory(self._program.results)
            self._place_of_its_own = ("-l", self._options.log_dir)
        with campaign_report.view(how.past, debug=self._options.debug) as observer:
            look = run_campaign.run_builds(self.campaigns(builds, suffix), how, observer)
        self._known |= {each.directory.name: each.record.result_set.manifest for each in look}
        return look

    def stopped(self, look: Sequence[CampaignOutcome]) -> int:
        """Say that a campaign of a look was stopped, and how to continue; its exit status, 0 if none was."""
        from quicsat.execution.run_campaign import ANOTHER

        ended = sorted((each for each in look if each.stopped), key=lambda each: each.fault == ANOTHER)
        if not ended:
            return 0
        command = command_line(*self._program.words[1:], *self._place_of_its_own)
        console.message(f"{ended[0].stopped}\nTo continue: {command}")
        return campaign_report.status_of_stopped(ended[0])


def _check_images(place: Path | None, before: Manifest | None, now: Manifest) -> None:
    """Raise InputError if a tag has come to name another image than it did in the campaigns so far."""
    known = before.images if before is not None else {}
    if changed := [name for name, image in now.images.items() if name in known and known[name].id != image.id]:
        raise InputError(f"{place}: was measured with other images of {', '.join(changed)}. {new_campaign.ELSEWHERE}")


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
