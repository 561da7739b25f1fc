"""``./run.py bisect``: finds the release, or the commit of a checkout, with which a metric or an outcome changed.

Each build is a campaign in virtual time, in a directory of its own with the name of the build, so that the same
command continues where it was stopped, and another range uses what is known.
"""

from __future__ import annotations

import copy
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import bisect_builds, campaign_report, console, new_campaign, select_runs
from quicsat.cli import options as shared
from quicsat.cli.bisect_builds import OWN, Candidates
from quicsat.cli.campaign_options import ImageOptions, NewCampaignOptions
from quicsat.cli.campaign_size import time_needed
from quicsat.cli.commands import parser_of
from quicsat.cli.continuous_integration import CiRequest
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.output_files import check_place
from quicsat.cli.program import Program, option
from quicsat.cli.progress import earlier_campaigns
from quicsat.cli.select_runs import ChosenRuns
from quicsat.config import quantities
from quicsat.config.inventory import Inventory
from quicsat.config.yaml_fields import display_path
from quicsat.model.clock import Clock
from quicsat.model.errors import InputError, MachineError
from quicsat.model.gate_directories import AGAIN
from quicsat.model.implementation import Role
from quicsat.model.names import IMAGE_RULE, RELEASE_SIGN, base_name, did_you_mean, folder_name, is_image
from quicsat.model.stored_files import resolved
from quicsat.model.text import command_line, counted, quoted
from quicsat.model.whole_file import cannot_write, make_directories
from quicsat.plan.duration_estimate import Durations
from quicsat.plan.limits import CampaignLimits
from quicsat.plan.select_names import split
from quicsat.results import store

if TYPE_CHECKING:
    from quicsat.docker.daemon_images import DaemonImages
    from quicsat.execution.campaign_config import CampaignOutcome, Conditions, NewCampaign
    from quicsat.model.results import ImageFacts, ResultSet
    from quicsat.statistics.bisection import Bisected, Judged

GROUP = "Measure", 4
SUMMARY = "Find the release or commit that made an implementation slower or broke it."
DESCRIPTION = (
    "Find the release, or with --checkout the commit, with which a metric or an outcome changed: build and measure "
    "both ends of a range in virtual time, then always the one in the middle of what is left. What cannot be built is "
    "skipped. The same command continues after an interruption. The exit status is 5 if there is no answer."
)
EXAMPLES = (
    "bisect quic-go v0.48.2..v0.65.0 -t sat",
    'bisect my-quic v1.0..main --checkout ~/my-quic --build "docker build -t my-quic:bisect ." -t sat',
)
FIRST = 6
"""Members of the first look, by default: so few that the change of a single cell can be significant."""
SECOND = 20
"""Members of both looks together, by default."""
PARTNERS = "picoquic", "quic-go"
"""The implementation on the other side, by default: the first one that is not under test."""
USUAL_ENDS = (
    f"default: NAME and {PARTNERS[0]}, or {PARTNERS[1]} with {PARTNERS[0]} itself; all if the other side or --pairs is "
    "given"
)
"""Of help."""
ANY = f"{OWN}/any:any"
"""Stands for an image before one is built."""
MOST_NAMED = 3
"""Test cases in the name of the default directory."""


class Options(
    shared.SelectionOptions, ImageOptions, shared.ScheduleOptions, shared.WaitOptions, group="output",
    without=("must_include", "shard", "locked"),
):  # fmt: skip
    """What is measured of each build, and which builds there are."""

    name: str = option(
        metavar="NAME", help="Implementation, or variant of one, whose builds are measured; example: quic-go."
    )
    range: str = option(
        metavar="FIRST..LAST",
        help="The first release or commit, which has not changed yet, and the last one, which has; example: "
        "v0.48.2..v0.65.0.",
    )
    server: list[str] = option(
        "-s", "--server", group="selection", nargs="+", action="extend", default=[], metavar="NAME",
        help=f"Implementations to measure as servers ({USUAL_ENDS}; example: quic-go).",
    )  # fmt: skip
    client: list[str] = option(
        "-c", "--client", group="selection", nargs="+", action="extend", default=[], metavar="NAME",
        help=f"Implementations to measure as clients ({USUAL_ENDS}; example: quic-go).",
    )  # fmt: skip
    test: list[str] = option(
        "-t", "--test", group="selection", nargs="+", action="extend", default=[], metavar="NAME",
        help="Test cases in which something has changed, by name or abbreviation, or your own YAML files (required; "
        "example: sat).",
    )  # fmt: skip
    repetitions: int = option(
        "--repetitions", group="selection", parse=quantities.count, default=FIRST, metavar="N",
        help=f"Measure each pair and test case N times at the first look (default: {FIRST}; example: 10).",
    )  # fmt: skip
    seed: int | None = option(
        "--seed", group=shared.ORDER, parse=quantities.count, metavar="N",
        help="Seed for all random values (default: that of the campaigns in the directory, or a random seed; "
        "example: 7).",
    )  # fmt: skip
    checkout: Path | None = option(
        "--checkout", group="bisection", type=Path, metavar="DIR",
        help="Checkout of a git repository with the commits of the range, whose files stay as they are (default: "
        "the range is of releases in the package registry; example: ~/my-quic).",
    )  # fmt: skip
    build: str = option(
        "--build", group="bisection", default="", metavar="COMMAND",
        help="Shell command that builds the image of a commit in a working tree of its own (required with --checkout; "
        'example: "docker build -t my-quic:bisect .").',
    )  # fmt: skip
    image: str = option(
        "--image", group="bisection", default="", metavar="IMAGE",
        help="Image that the build command makes (default: the one that it names with -t; example: my-quic:bisect).",
    )  # fmt: skip
    second_look: int | None = option(
        "--second-look", group="bisection", parse=quantities.count, metavar="N",
        help="Measure builds that the first repetitions do not decide again, with the repetitions up to this number; 0 "
        f"for no second look (default: {SECOND}, or 0 if --repetitions is not less; example: 40).",
    )  # fmt: skip
    log_dir: Path | None = option(
        "-l", "--log-dir", type=Path, metavar="DIR",
        help="Directory for the campaigns of all builds, which may contain some of them (default: results/bisect-NAME-"
        "TEST; example: results/slower).",
    )  # fmt: skip
    format: str = shared.FORMAT


class NotMeasuredError(Exception):
    """The user, the end of the time or the machine stopped the measurement of a build."""

    def __init__(self, why: str, status: int) -> None:
        super().__init__(why)
        self.status = status


def run(options: Options, program: Program) -> int:
    """Check all that needs no engine, measure, and print the answer."""
    from quicsat.docker.daemon_images import DaemonImages
    from quicsat.docker.ssh_tunnel import connected
    from quicsat.images.commits import builds_alone

    _check(options)
    plan = _plan(options, program)
    builds = _builds(options, program, plan)
    chosen = plan.choose(program.root, ANY, 0)
    check_place(plan.place, str(plan.place))
    console.message(_size(plan, program, chosen, builds.count))
    with (
        connected(shared.daemon(), "bisect") as daemon,
        _directory(plan.place) as place,
        builds_alone(place, console.message) as held,
    ):
        return _search(options, Measurements(plan, program, builds, (DaemonImages(daemon), held)))


def _search(options: Options, bench: Measurements) -> int:
    from quicsat.statistics.bisection import Bisection, BisectionAnswer

    plan = bench.plan
    search = Bisection(bench.builds.count, bench.measure, plan.name, 1 + bool(plan.looks[1]), bench.tell)
    try:
        found = search.search()
    except NotMeasuredError as stopped:
        console.message(f"{stopped}\nTo continue: {command_line(*bench.words)}")
        return stopped.status
    _report(options, bench, found)
    return ExitStatus.SUCCESS if found.answer is BisectionAnswer.STEP else ExitStatus.UNDECIDED


# ---- what is measured -------------------------------------------------------------------------


def _check(options: Options) -> None:
    if not options.test:
        raise InputError("Name the test cases in which something has changed with -t, for example -t sat.")
    if bool(options.checkout) != bool(options.build) or (options.image and not options.build):
        raise InputError("A range of commits needs --checkout and --build; a range of releases needs neither of them.")
    if options.image and not is_image(options.image):
        raise InputError(f"--image: {quoted(options.image)} is no image reference, which is {IMAGE_RULE}.")
    if any(word.partition("=")[0].strip().casefold() == base_name(options.name) for word in split(options.replace)):
        raise InputError(f"-r: the images of {base_name(options.name)} are those of the range. Leave it out.")


def _builds(options: Options, program: Program, plan: Plan) -> Candidates:
    """The releases or commits of the range; raises InputError."""
    from quicsat.images.commits import Repository, image_of
    from quicsat.images.pull_or_build import Policy

    if options.checkout is None:
        known = Inventory(program.root).implementations[plan.base]
        found = bisect_builds.releases_between(known, options.range)
        return bisect_builds.ReleaseBuilds(found, program.root, Policy(options.images))
    image = options.image or image_of(options.build)
    repository = Repository(resolved(options.checkout))
    return bisect_builds.CommitBuilds(repository, repository.commits(options.range), options.build, image, plan.base)


def _plan(options: Options, program: Program) -> Plan:
    """The plan, with the options of ``run`` for each build; raises InputError."""
    full = NewCampaignOptions()
    parser_of("run").parse_args([], full)
    vars(full).update(vars(options))
    full.clock, full.must_include = Clock.VIRTUAL, [options.name]
    full.server, full.client = _ends(options, program)
    cases = select_runs.select(full, program.root).selection.test_cases
    name = "-".join(["bisect", folder_name(options.name), *(case.name for case in cases[:MOST_NAMED])])
    plan = Plan(
        full,
        options.name,
        resolved(options.log_dir or program.results / name),
        shared.looks(options.repetitions, options.second_look, SECOND),
    )
    full.seed = _stored_seed(plan.place) if options.seed is None else options.seed
    return plan


def _ends(options: Options, program: Program) -> tuple[list[str], list[str]]:
    """Servers and clients; by default those of one partner and of the implementation under test, in its roles."""
    known = Inventory(program.root).implementations
    base = base_name(options.name)
    if RELEASE_SIGN in options.name:
        raise InputError(f"{options.name}: name the implementation alone, and its releases as FIRST..LAST.")
    if base not in known:
        raise InputError(f"No implementation {quoted(base)}.{did_you_mean(base, known)}")
    if options.server or options.client or options.pairs:
        return options.server, options.client
    partner = next(name for name in PARTNERS if name != base)
    servers, clients = (
        [partner, *([options.name] if role in known[base].roles else [])] for role in (Role.SERVER, Role.CLIENT)
    )
    return servers, clients


def _size(plan: Plan, program: Program, chosen: ChosenRuns, count: int) -> str:
    """How much is measured in a range of so many builds after the first one, and how long that takes."""
    from quicsat.statistics.bisection import middles

    most = middles(count)
    runs = list(chosen.runs) * (most + 2)
    durations = Durations(earlier_campaigns(program.root, Clock.VIRTUAL))
    testbeds = shared.most_testbeds(plan.options, shared.usual_schedule(Clock.VIRTUAL)) or os.cpu_count()
    duration = next(time_needed(runs, durations, CampaignLimits(), datetime.now(UTC), testbeds))
    return (
        f"{counted(count, 'build')} after the first: {counted(1 + most, 'measurement')}, the first one of both ends, "
        f"with {counted(len(chosen.runs), 'run')} of each build, if all are decided at the first look. {duration}"
    )


@dataclass(frozen=True)
class Plan:
    """What is measured of each build."""

    options: NewCampaignOptions
    name: str
    """Of the implementation under test, or of a variant of it."""
    place: Path
    """The directory of all campaigns."""
    looks: tuple[int, int]
    """Members of the first look, and of both; the second number is 0 if there is no second look."""

    @property
    def base(self) -> str:
        """Name of the implementation, without that of a variant."""
        return base_name(self.name)

    def choose(self, root: Path, image: str, look: int) -> ChosenRuns:
        """The runs of a look with an image under test; raises InputError."""
        options = copy.copy(self.options)
        options.replace = [*options.replace, f"{self.base}={image}"]
        options.repetitions = self.looks[look]
        chosen = select_runs.select(options, root)
        return chosen._replace(runs=tuple(run for run in chosen.runs if not look or run.repetition > self.looks[0]))


@contextmanager
def _directory(place: Path) -> Iterator[Path]:
    """The directory of all campaigns, made if it is missing; raises InputError if it is a campaign itself."""
    try:
        make_directories(place)
    except OSError as error:
        raise cannot_write(place, error) from error
    if store.is_campaign(place):
        raise InputError(f"{place}: is a campaign. Choose a directory for several campaigns with -l.")
    yield place


def _stored_seed(place: Path) -> int:
    """That of the campaigns in the directory; else a random one."""
    begun = store.newest(place, 1)
    return begun[0].manifest.seed if begun else secrets.randbelow(2**31)


# ---- measurement ----------------------------------------------------------------------------


class Measurements:
    """The measurements of a bisection: those that are stored, and those that it makes."""

    def __init__(self, plan: Plan, program: Program, builds: Candidates, engine: tuple[DaemonImages, int]) -> None:
        """``engine``: the images of the daemon, and the descriptor of the lock for builds."""
        self.plan = plan
        self.builds = builds
        self.named = list(builds.named)
        self._program = program
        self._engine = engine
        self._results: dict[tuple[int, int], ResultSet | None] = {}
        self._same = dict[int, int]()
        """Builds that have the image of another one, which stands for them."""
        runtime = plan.options.max_runtime
        self._end = None if runtime is None else time.monotonic() + runtime

    @property
    def words(self) -> tuple[str, ...]:
        """Of the command line."""
        return self._program.words[1:]

    def measure(self, place: int, look: int) -> ResultSet | None:
        """The results of a build in a look, measured as far as they are not stored; None if it cannot be built.

        Raises :class:`NotMeasuredError`; :class:`MachineError` if an end of the range cannot be built.
        """
        place = self._same.get(place, place)
        if (place, look) not in self._results:
            found = self._measured(place, look)
            if found is None and place in (0, self.builds.count):
                named = self.named[place]
                raise MachineError(f"{named.label}: an end of the range has to be built: {named.note}")
            self._results[place, look] = found
        return self._results[place, look]

    def known(self, place: int, look: int) -> ResultSet | None:
        """The results of a build in a look, if it has been measured."""
        return self._results.get((self._same.get(place, place), look))

    def directory(self, place: int, look: int) -> Path:
        """Of the campaign with these results."""
        return self.plan.place / f"{self.named[self._same.get(place, place)].label}{AGAIN if look else ''}"

    def tell(self, judged: Judged, left: int) -> None:
        """Print what a build is like."""
        console.message(f"{self.named[judged.place].label}: {judged.side}; {counted(left, 'candidate')} left.")

    def _measured(self, place: int, look: int) -> ResultSet | None:
        from quicsat.execution import remaining_work, run_campaign

        where = self.directory(place, look)
        begun = store.load_to_continue(where) if store.is_campaign(where) else None
        if begun is None:
            image = self._image(place)
            if isinstance(image, str):
                self.named[place] = replace(self.named[place], note=image)
                return None
            if (twin := self._twin(image, look)) is not None:
                self._same[place] = twin
                return self.measure(twin, look)
            reference = image.reference
        else:
            reference = begun.result_set.manifest.images[self.plan.base].reference
        new = self._campaign(place, look, reference)
        if begun is not None:
            stored = begun.result_set.manifest
            if stored.note != new.note:
                raise InputError(f"{where}: was measured with another build. {new_campaign.ELSEWHERE}")
            new_campaign.check_same(stored, new, where, [self.plan.base])
            if not remaining_work.remaining_work(begun, (), new.runs).runs:
                return begun.result_set
        with self._conditions(new) as how:
            console.message(f"Measuring {self.named[place].words}{', with further members' if look else ''}")
            with campaign_report.view(how.past, debug=self.plan.options.debug) as observer:
                if begun is None:
                    return _results(run_campaign.run_campaign(new, how, observer))
                return _results(run_campaign.resume_campaign(where, (), how, observer, new.runs))

    def _image(self, place: int) -> ImageFacts | str:
        """That of an earlier look, else a new one; or why there is none."""
        images, held = self._engine
        if (known := self.known(place, 0)) is not None:
            facts = known.manifest.images[self.plan.base]
            found = images.find(facts.reference)
            if found is not None and found.id == facts.id:
                return found
        return self.builds.build(place, self.plan.place, images, held)

    def _twin(self, image: ImageFacts, look: int) -> int | None:
        """A build that was measured with the same image."""
        for (place, number), results in self._results.items():
            if number == look and results is not None and results.manifest.images[self.plan.base].id == image.id:
                return place
        return None

    def _campaign(self, place: int, look: int, image: str) -> NewCampaign:
        chosen = self.plan.choose(self._program.root, image, look)
        new = new_campaign.new_campaign(self.plan.options, self._program, chosen, CiRequest())
        return replace(
            new,
            directory=self.directory(place, look),
            note=self.builds.note(place),
            check_compliance=new.check_compliance and not look,  # the first look has told
        )

    @contextmanager
    def _conditions(self, new: NewCampaign) -> Iterator[Conditions]:
        """With the time that is left; others may use the engine between two measurements."""
        with new_campaign.conditions(self.plan.options, self._program, new.selection) as how:
            if self._end is None:
                yield how
                return
            left = self._end - time.monotonic()
            if left <= 0:
                raise NotMeasuredError("Time is up.", ExitStatus.TIME_UP)
            yield replace(how, limits=replace(how.limits, most_seconds=left))


def _results(outcome: CampaignOutcome) -> ResultSet:
    """Those of a campaign that was not stopped; raises NotMeasuredError."""
    if outcome.stopped:
        raise NotMeasuredError(outcome.stopped, campaign_report.status_of_stopped(outcome))
    return outcome.record.result_set


# ---- what is shown ----------------------------------------------------------------------------


def _report(options: Options, bench: Measurements, found: Bisected) -> None:
    from quicsat.report.bisection_table import answer_in_words, bisection_table
    from quicsat.report.table import render
    from quicsat.statistics.bisection import BisectionAnswer

    results = {each.place: results for each in found.judged if (results := bench.known(each.place, found.look))}
    table = bisection_table(found, bench.named, results)
    if found.judged:
        console.show(render(table, options.format, console.width()))
    if options.format != "text":
        return
    console.show("\n" + answer_in_words(found, bench.named))
    if found.answer is BisectionAnswer.STEP:
        _show_evidence(bench, found, results)
    console.show(f"\nResults: {display_path(bench.plan.place)}")


def _show_evidence(bench: Measurements, found: Bisected, results: Mapping[int, ResultSet]) -> None:
    """Print the comparison of the builds on both sides of the step, and how to see more."""
    from quicsat.report import campaign_tables
    from quicsat.report.table import render
    from quicsat.statistics import comparison

    before, after = (results[place] for place in (found.before, found.after))
    places = [display_path(bench.directory(place, found.look)) for place in (found.before, found.after)]
    first, last = (bench.named[place].label for place in (found.before, found.after))
    both = comparison.campaigns(before, after, before.manifest.test_cases)
    console.show("\n" + render(campaign_tables.comparison(both, first, last), "text", console.width()))
    console.show(f"\nTo see this again: {command_line('compare', *places)}")
    claim = found.claim
    assert claim is not None
    server, client, case = claim.cells[0]
    runs = [each for each in after.results if each.key[:3] == (server, client, case)]
    if runs:
        console.show(f"To see a run: {command_line('explain', f'{places[1]}/{runs[0].key}')}")
    if any(case.functional for case in after.manifest.test_cases):
        return
    console.show(f"To check it in real time: {command_line('confirm', *places)}")
