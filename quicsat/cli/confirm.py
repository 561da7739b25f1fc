"""``./run.py confirm``: checks in real time what a comparison of two campaigns in virtual time has found.

Both builds run in blocks: with one seed, one after the other, in random order. After each look of
:mod:`quicsat.statistics.confirmation`, only the cells of claims without an answer are measured further. The runs
of a look are a campaign of their own, so that the same command goes on where it was stopped.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import campaign_report, console, stored_campaigns
from quicsat.cli import options as shared
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.new_campaign import ELSEWHERE, check_same
from quicsat.cli.output_files import check_place
from quicsat.cli.program import CommandOptions, Program, option
from quicsat.cli.progress import earlier_campaigns
from quicsat.config import quantities
from quicsat.model.clock import Clock
from quicsat.model.emulated_link import REAL_TIME_RATE
from quicsat.model.errors import InputError
from quicsat.model.gate_directories import ALL, BASE
from quicsat.model.names import VARIANT_SIGN
from quicsat.model.outcomes import Outcome
from quicsat.model.run_key import RunKey
from quicsat.model.stored_files import resolved
from quicsat.model.text import command_line, counted
from quicsat.plan.limits import CampaignLimits
from quicsat.plan.order import in_blocks

if TYPE_CHECKING:
    from quicsat.execution.campaign_config import NewCampaign
    from quicsat.model.implementation import Implementation
    from quicsat.model.results import ImageFacts, Manifest, ResultSet
    from quicsat.model.run import Run
    from quicsat.statistics.comparison import Cell, Comparison
    from quicsat.statistics.confirmation import Claim, Confirmation

GROUP = "Measure", 3
SUMMARY = "Check in real time what two campaigns in virtual time have found."
DESCRIPTION = (
    "Measure the pairs that became slower or faster, or fail, between two campaigns in virtual time again in real "
    "time: both builds in turn, in random order, until each finding is confirmed or not, or time is up. The same "
    "command continues after an interruption."
)
EXAMPLES = (
    "confirm results/before results/after",
    "confirm results/both                       # the directory of a gate",
    "confirm results/both --pair quic-go_quinn  # only this pair, significant or not",
)
RUNTIME = 3600.0
"""Seconds that the command takes at most, by default."""
SUFFIX = "-confirm"
"""Of the default directory."""
CONTINUE = "To continue the gate, repeat its command."


class Options(CommandOptions, group="output"):
    """The options of the command."""

    directories: list[Path] = option(
        type=Path, nargs="+", metavar="DIR",
        help="Campaigns before and after the change, in virtual time; or the directory of a gate; example: "
        "results/both.",
    )  # fmt: skip
    pair: list[str] = option(
        "--pair", group="selection", nargs="+", action="extend", default=[], metavar="SERVER_CLIENT",
        help="Check these pairs instead, whether they changed significantly or not "
        "(default: all findings; example: quic-go_quinn).",
    )  # fmt: skip
    test: list[str] = option(
        "-t", "--test", group="selection", nargs="+", action="extend", default=[], metavar="NAME",
        help="Check only changes in these test cases (default: all; example: sat).",
    )  # fmt: skip
    seed: int | None = option(
        "--seed", group="schedule", parse=quantities.count, metavar="N",
        help="Seed for the random losses on links, and for the order of the runs "
        "(default: that of the check in the directory, or a random seed; example: 7).",
    )  # fmt: skip
    max_runtime: float = option(
        "--max-runtime", group="schedule", parse=quantities.within(quantities.duration, "1 s", "8760 h"),
        default=RUNTIME, metavar="DURATION",
        help="Do not start runs that are unlikely to end within this time from now "
        '(default: 1 h; example: "20 min").',
    )  # fmt: skip
    log_dir: Path | None = option(
        "-l", "--log-dir", type=Path, metavar="DIR",
        help=f"Directory for the campaigns in real time (default: the last DIR with {SUFFIX}; example: results/real).",
    )  # fmt: skip
    format: str = shared.FORMAT


@dataclass(frozen=True)
class TwoBuilds:
    """The implementations and images of two campaigns, and those of them that differ."""

    before: ResultSet
    after: ResultSet

    @cached_property
    def changed(self) -> frozenset[str]:
        """Names of implementations whose image or parameters differ."""
        from quicsat.statistics.conditions import settings

        known = self._known(self.before)
        return frozenset(
            name
            for name, each in self._known(self.after).items()
            if name in known and (self._id(self.before, name), settings(known[name]))
            != (self._id(self.after, name), settings(each))
        )  # fmt: skip

    def base_of(self, name: str) -> str:
        """The name that an implementation has in the base: ``quic-go:base``, or its own if it has not changed."""
        return f"{name}{'.' if VARIANT_SIGN in name else VARIANT_SIGN}{BASE}" if name in self.changed else name

    def both(self, name: str) -> dict[str, tuple[Implementation, ImageFacts]]:
        """An implementation with its image, as it is in the base and with the change, by these names."""
        return {
            own: (replace(self._known(of)[name], name=own), of.manifest.images[name])
            for own, of in ((self.base_of(name), self.before), (name, self.after))
        }

    @staticmethod
    def _known(results: ResultSet) -> dict[str, Implementation]:
        return {each.name: each for each in results.manifest.implementations}

    @staticmethod
    def _id(results: ResultSet, name: str) -> str | None:
        image = results.manifest.images.get(name)
        return image.id if image is not None else None


def run(options: Options, program: Program) -> int:
    """Check all that needs no engine, measure, and print the answers."""
    from quicsat.execution import lock
    from quicsat.report.confirmation_table import confirmation_table
    from quicsat.report.table import render
    from quicsat.statistics.confirmation import LOOKS

    builds, found, unfinished = _campaigns(options)
    claims = _claims(options, builds, found, unfinished)
    _check(builds, claims)
    for line in unfinished:
        console.message(line)
    check, cells = RealTimeCheck(options, program, builds, claims), len(_cells(claims))
    check_place(check.place, str(check.place))
    for server, client, test_case in sorted(builds.after.virtual_only & {*_cells(claims)}):
        console.message(
            f"{test_case}, server {server}, client {client}: real time is known to differ from virtual time."
        )
    console.message(
        f"{counted(len(claims), 'change')} in {counted(cells, 'cell')}: at most {LOOKS[-1]} blocks of "
        f"{counted(2 * cells, 'run')}."
    )
    with lock.early(program.words[1:], os.environ):
        stopped = check.measure()
    answers = check.answers()
    console.show(render(confirmation_table(answers), options.format, console.width()))
    if options.format == "text":
        console.show(f"\nResults: {check.place}")
    return stopped or _status(answers, errors=check.errors)


def _status(answers: Sequence[Confirmation], *, errors: bool) -> ExitStatus:
    """The exit status of a check that nothing stopped."""
    from quicsat.statistics.confirmation import Answer

    worse = {each.answer for each in answers if each.claim.worse}
    if errors:
        return ExitStatus.MACHINE
    if Answer.CONFIRMED in worse:
        return ExitStatus.FAILURE
    return ExitStatus.UNDECIDED if Answer.OPEN in worse else ExitStatus.SUCCESS


# ---- what is checked ------------------------------------------------------------------------


def _campaigns(options: Options) -> tuple[TwoBuilds, Comparison, tuple[str, ...]]:
    """Both campaigns, how they differ, and what of them is unfinished; raises InputError if they are not such."""
    from quicsat.results import store
    from quicsat.statistics import comparison

    if len(options.directories) > 2:
        raise InputError("Pass two campaigns, or the directory of a gate.")
    [first, *others] = options.directories
    of_gate = [] if others else [first / name for name in ALL if store.is_campaign(first / name)]
    if not others and not of_gate:
        raise InputError(f"{first}: is no directory of a gate. Pass the campaigns before and after the change.")
    if len(of_gate) % 2:
        raise InputError(f"{first}: the gate is unfinished. {CONTINUE}")
    places = list(zip(of_gate[::2], of_gate[1::2], strict=True)) or [(first, others[0])]
    looks = [(console.warn(store.load(before)), console.warn(store.load(after))) for before, after in places]
    for place, results in zip(places[0], looks[0], strict=True):
        if results.manifest.clock is not Clock.VIRTUAL:
            raise InputError(f"{place}: ran in real time, so that real time has nothing to add.")
    found, *again = (
        comparison.campaigns(before, after, before.manifest.test_cases, looks=len(looks), by_case=bool(of_gate))
        for before, after in looks
    )
    if found.unlike:
        raise InputError(*found.unlike)
    unfinished = tuple(
        f"{place}: {words} " + (CONTINUE if of_gate else f"To continue: {command_line('resume', place)}")
        for place, results in zip(chain(*places), chain(*looks), strict=True)
        if (words := comparison.progress(results))
    )
    return TwoBuilds(*looks[0]), found.decided_by(again[0]) if again else found, unfinished


def _claims(options: Options, builds: TwoBuilds, found: Comparison, unfinished: Sequence[str]) -> list[Claim]:
    """The findings, or what is asked for; raises InputError if there is nothing to check, or not yet."""
    from quicsat.statistics import confirmation
    from quicsat.statistics.comparison import cell_of

    stored_campaigns.check_tests(options.test, [builds.after])
    names = {case.name for case in stored_campaigns.test_cases(builds.after, options.test)}
    if options.pair:
        cells = [
            cell_of(each.second)
            for each in found.pairs
            if each.second.test_case in names and each.second.outcomes and each.first.outcomes
        ]
        wanted = stored_campaigns.pairs_of(options.pair, dict.fromkeys(cell[:2] for cell in cells))
        return confirmation.claims_about(found, [cell for cell in cells if cell[:2] in wanted])
    claims = [
        replace(claim, cells=chosen)
        for claim in confirmation.claims(found, builds.changed)
        if (chosen := tuple(cell for cell in claim.cells if cell[2] in names))
    ]
    if not claims and unfinished:
        raise InputError(*unfinished)
    if not claims:
        raise InputError("Nothing changed significantly between these campaigns: name pairs to check with --pair.")
    return claims


def _cells(claims: Sequence[Claim]) -> list[Cell]:
    return list(dict.fromkeys(cell for claim in claims for cell in claim.cells))


def _check(builds: TwoBuilds, claims: Sequence[Claim]) -> None:
    """Raise InputError with what keeps the cells of claims from being measured in real time."""
    problems, ends = list[str](), {name for cell in _cells(claims) for name in cell[:2]}
    cases = [case for case in builds.after.manifest.test_cases if case.name in {cell[2] for cell in _cells(claims)}]
    if same := [cell for cell in _cells(claims) if not {*cell[:2]} & builds.changed]:
        problems.append(
            f"Both campaigns used the same images and parameters of {' and '.join(sorted({*same[0][:2]}))}: "
            "there are no two builds to measure."
        )
    for name in sorted(ends):
        if any(name not in each.manifest.images for each in (builds.before, builds.after)):
            problems.append(f"The campaigns do not contain the image of {name}: measure them again.")
        if builds.base_of(name) != name and builds.base_of(name) in ends:
            problems.append(f"{name} and {builds.base_of(name)} are both under test: name one of them with --pair.")
    for case in cases:
        if case.emulated.highest_rate > REAL_TIME_RATE:
            problems.append(f"The link of {case.name} is too fast for real time: name other test cases with -t.")
        if any({flow.server, flow.client} & builds.changed for flow in case.flows):
            problems.append(f"A build under test is a further flow of {case.name}: name other test cases with -t.")
    if problems:
        raise InputError(*problems)


# ---- measurement ----------------------------------------------------------------------------


class RealTimeCheck:
    """A check under way: its looks so far."""

    def __init__(self, options: Options, program: Program, builds: TwoBuilds, claims: Sequence[Claim]) -> None:
        last = resolved(options.directories[-1])
        self.place = options.log_dir or last.with_name(f"{last.name}{SUFFIX}")
        self._program = program
        self._builds = builds
        self._claims = claims
        self._seed = self._stored_seed() if options.seed is None else options.seed
        self._end = time.monotonic() + options.max_runtime
        self._debug = options.debug
        self._looks: list[ResultSet] = []

    def _stored_seed(self) -> int:
        """That of the first look, if it was begun; else a random one."""
        from quicsat.results import store

        first = self.place / _name(0)
        return store.load(first).result_set.manifest.seed if store.is_campaign(first) else secrets.randbelow(2**31)

    def measure(self) -> int:
        """Measure until each claim has an answer; the exit status of what stopped it earlier, else 0."""
        from quicsat.statistics.confirmation import LOOKS, Answer

        for look, blocks in enumerate(LOOKS):
            cells = _cells([each.claim for each in self.answers() if each.answer is Answer.OPEN])
            if not cells:
                break
            outcome = self._measured(look, self._plan(cells, LOOKS[look - 1] if look else 0, blocks))
            if isinstance(outcome, int):
                return outcome
            self._looks.append(outcome)
        return ExitStatus.SUCCESS

    def answers(self) -> list[Confirmation]:
        """As of the last look."""
        from quicsat.statistics import confirmation

        results = [result for each in self._looks for result in each.results]
        if not results:
            return confirmation.answers(self._claims, lambda _claim, _blocks: (), 0)
        together = replace(self._looks[0], results=tuple(results))
        pairs_of = partial(confirmation.measured, together, self._builds.base_of)
        return confirmation.answers(self._claims, pairs_of, len(self._looks))

    @property
    def errors(self) -> bool:
        """Whether runs have no valid result."""
        return any(each.verdict.outcome is Outcome.ERROR for look in self._looks for each in look.results)

    def _plan(self, cells: Sequence[Cell], done: int, blocks: int) -> tuple[Run, ...]:
        """The runs of both builds in these cells, in the blocks that follow those that are done."""
        from quicsat.plan.make_plan import make_plan

        servers, clients = (
            [each for name in sorted({cell[place] for cell in cells}) for each, _ in self._builds.both(name).values()]
            for place in (0, 1)
        )
        manifest = self._builds.after.manifest
        cases = [case for case in manifest.test_cases if case.name in {cell[2] for cell in cells}]
        plan = make_plan(servers, clients, cases, repetitions=blocks, seed=self._seed, others=manifest.implementations)
        known, base_of = {run.key: run for run in plan}, self._builds.base_of
        keys = [RunKey(*cell, number) for cell in cells for number in range(done + 1, blocks + 1)]
        bases = (RunKey(base_of(key.server), base_of(key.client), *key[2:]) for key in keys)
        return in_blocks([(known[base], known[key]) for base, key in zip(bases, keys, strict=True)], self._seed)

    def _measured(self, look: int, runs: tuple[Run, ...]) -> ResultSet | int:
        """The results of a look, measured as far as they are not yet; the exit status if something stopped it."""
        from quicsat.execution import campaign_config, remaining_work, run_campaign
        from quicsat.results import store

        place, new = self.place / _name(look), self._campaign(look, runs)
        begun = store.load_to_continue(place) if store.is_campaign(place) else None
        if begun is not None:
            self._check_fit(begun.result_set.manifest, new)
            if not remaining_work.remaining_work(begun, (), runs).runs:
                return begun.result_set
        left = self._end - time.monotonic()
        if left <= 0:
            return self._stopped("Time is up.", ExitStatus.TIME_UP)
        past = earlier_campaigns(self._program.root, Clock.REAL, self._looks[-1] if self._looks else None)
        limits = CampaignLimits(most_seconds=left)
        conditions = campaign_config.Conditions(shared.daemon(), limits=limits, past=past)
        with campaign_report.view(past, debug=self._debug) as observer:
            if begun is None:
                outcome = run_campaign.run_campaign(new, conditions, observer)
            else:
                outcome = run_campaign.resume_campaign(place, (), conditions, observer, runs)
        if outcome.stopped:
            return self._stopped(outcome.stopped, campaign_report.status_of_stopped(outcome))
        return outcome.record.result_set

    def _campaign(self, look: int, runs: tuple[Run, ...]) -> NewCampaign:
        from quicsat.execution.campaign_config import ImageSource, NewCampaign
        from quicsat.execution.run_config import RunConfig, environment_parameters
        from quicsat.images.pull_or_build import Policy
        from quicsat.plan.selection import Selection

        manifest = self._builds.after.manifest
        names = {end.name for run in runs for end, _ in run.ends}
        known = {name for cell in _cells(self._claims) for name in cell[:2]}
        pinned = {own: image for name in known for own, (_, image) in self._builds.both(name).items() if own in names}
        parameters = environment_parameters() if manifest.parameters is None else manifest.parameters
        return NewCampaign(
            Selection(
                tuple(dict.fromkeys(run.server for run in runs)),
                tuple(dict.fromkeys(run.client for run in runs)),
                tuple(dict.fromkeys(run.test_case for run in runs)),
                tuple(dict.fromkeys(end for run in runs for end, _ in run.ends)),
            ),
            runs,
            self._seed,
            self._program.words,
            ImageSource(self._program.root, Policy.AUTO, pinned=pinned),
            results=self._program.results,
            directory=self.place / _name(look),
            run=RunConfig(qlog=manifest.options.get("qlog", True), parameters=parameters),
            check_compliance=False,
            pairs=tuple(dict.fromkeys(f"{run.server.name}/{run.client.name}" for run in runs)),
        )

    def _check_fit(self, begun: Manifest, new: NewCampaign) -> None:
        """Raise InputError if a look was begun with other builds, runs or options."""
        pinned = {name: image.id for name, image in new.images.pinned.items()}
        if {name: image.id for name, image in begun.images.items() if name in pinned} != pinned:
            raise InputError(f"{self.place}: contains the check of other builds. {ELSEWHERE}")
        check_same(begun, new, self.place)

    def _stopped(self, why: str, status: int) -> int:
        console.message(f"{why}\nTo continue: {command_line(*self._program.words[1:])}")
        return status


def _name(look: int) -> str:
    return f"look-{look + 1}"
