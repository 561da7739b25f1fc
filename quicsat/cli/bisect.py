"""``./run.py bisect``: finds the release, or the commit of a checkout, with which a metric or an outcome changed.

Each build is a campaign in virtual time, in a directory of its own with the name of the build, so that the same
command continues where it was stopped, and another range uses what is known.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import bisect_builds, console, gate, select_runs
from quicsat.cli import options as shared
from quicsat.cli.bisect_builds import Candidates, Measurements, Plan
from quicsat.cli.campaign_options import ImageOptions, NewCampaignOptions
from quicsat.cli.campaign_size import time_needed
from quicsat.cli.commands import parser_of
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.output_files import check_place
from quicsat.cli.program import Program, option
from quicsat.cli.progress import earlier_campaigns
from quicsat.cli.select_runs import ChosenRuns
from quicsat.config import quantities
from quicsat.config.inventory import Inventory
from quicsat.model.clock import Clock
from quicsat.model.errors import InputError
from quicsat.model.implementation import Role
from quicsat.model.names import RELEASE_SIGN, base_name, did_you_mean, folder_name
from quicsat.model.stored_files import resolved
from quicsat.model.text import command_line, counted, quoted

if TYPE_CHECKING:
    from quicsat.model.results import ResultSet
    from quicsat.statistics.bisection import Bisected

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
PARTNERS = "picoquic", "quic-go"
"""The implementation on the other side, by default: the first one that is not under test."""
MOST_NAMED = 3
"""Test cases in the name of the default directory."""


class Options(shared.SelectionOptions, ImageOptions, shared.ScheduleOptions, shared.WaitOptions, group="output"):
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
        help=f"Implementations to measure as servers (default: NAME and {PARTNERS[0]}; example: quic-go).",
    )  # fmt: skip
    client: list[str] = option(
        "-c", "--client", group="selection", nargs="+", action="extend", default=[], metavar="NAME",
        help=f"Implementations to measure as clients (default: NAME and {PARTNERS[0]}; example: quic-go).",
    )  # fmt: skip
    test: list[str] = option(
        "-t", "--test", group="selection", nargs="+", action="extend", default=[], metavar="NAME",
        help="Test cases in which something has changed, by name or abbreviation, or your own YAML files (required; "
        "example: sat).",
    )  # fmt: skip
    repetitions: int | None = option(
        "--repetitions", group="selection", parse=quantities.count, metavar="N",
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
        help="Shell command that builds the image of a commit in a working tree of its own (for --checkout; example: "
        '"docker build -t my-quic:bisect .").',
    )  # fmt: skip
    image: str = option(
        "--image", group="bisection", default="", metavar="IMAGE",
        help="Image that the build command makes (default: the one that it names with -t; example: my-quic:bisect).",
    )  # fmt: skip
    second_look: int = option(
        "--second-look", group="bisection", parse=quantities.count, default=gate.SECOND, metavar="N",
        help="Measure builds that the first repetitions do not decide again, with the repetitions up to this number; 0 "
        f"for no second look (default: {gate.SECOND}; example: 40).",
    )  # fmt: skip
    log_dir: Path | None = option(
        "-l", "--log-dir", type=Path, metavar="DIR",
        help="Directory for the campaigns of all builds, which may contain some of them (default: results/bisect-NAME-"
        "TEST; example: results/slower).",
    )  # fmt: skip
    format: str = shared.FORMAT


def run(options: Options, program: Program) -> int:
    """Check all that needs no engine, measure, and print the answer."""
    from quicsat.docker.daemon_images import DaemonImages
    from quicsat.docker.ssh_tunnel import connected
    from quicsat.images.commits import builds_alone

    _check(options)
    plan = _plan(options, program)
    builds = _builds(options, program, plan)
    chosen = plan.choose(program.root, bisect_builds.ANY, 0)
    check_place(plan.place, str(plan.place))
    console.message(_size(plan, program, chosen, builds.count))
    with (
        connected(shared.daemon(), "bisect") as daemon,
        bisect_builds.directory(plan.place) as place,
        builds_alone(place, console.message) as held,
    ):
        return _search(options, bisect_builds.Measurements(plan, program, builds, (DaemonImages(daemon), held)))


def _search(options: Options, bench: Measurements) -> int:
    from quicsat.statistics.bisection import Bisection, BisectionAnswer

    plan = bench.plan
    search = Bisection(bench.builds.count, bench.measure, plan.name, 1 + bool(plan.looks[1]), bench.tell)
    try:
        found = search.search()
    except bisect_builds.Stopped as stopped:
        console.message(f"{stopped}\nTo continue: {command_line(*bench.words)}")
        return stopped.status
    _report(options, bench, found)
    return ExitStatus.SUCCESS if found.answer is BisectionAnswer.STEP else ExitStatus.UNDECIDED


# ---- what is measured -------------------------------------------------------------------------


def _check(options: Options) -> None:
    if options.must_include or options.shard or options.locked:
        raise InputError("bisect has neither --must-include nor --shard nor --locked: NAME is under test in all pairs.")
    if not options.test:
        raise InputError("Name the test cases in which something has changed with -t, for example -t sat.")
    if bool(options.checkout) != bool(options.build) or (options.image and not options.build):
        raise InputError("A range of commits needs --checkout and --build; a range of releases needs neither of them.")


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
    plan = Plan(full, options.name, resolved(options.log_dir or program.results / name), _looks(options))
    full.seed = bisect_builds.stored_seed(plan.place) if options.seed is None else options.seed
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


def _looks(options: Options) -> tuple[int, int]:
    first = options.repetitions or FIRST
    return first, options.second_look if options.second_look > first else 0


def _size(plan: Plan, program: Program, chosen: ChosenRuns, count: int) -> str:
    """How much is measured in a range of so many builds after the first one, and how long that takes."""
    from quicsat.plan.duration_estimate import Durations
    from quicsat.plan.limits import CampaignLimits
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
    console.show(f"\nResults: {bench.plan.place}")


def _show_evidence(bench: Measurements, found: Bisected, results: Mapping[int, ResultSet]) -> None:
    """Print the comparison of the builds on both sides of the step, and how to see more."""
    from quicsat.report import campaign_tables
    from quicsat.report.table import render
    from quicsat.statistics import comparison

    before, after = (results[place] for place in (found.before, found.after))
    places = [bench.directory(place, found.look) for place in (found.before, found.after)]
    first, last = (bench.named[place].label for place in (found.before, found.after))
    both = comparison.campaigns(before, after, before.manifest.test_cases)
    console.show("\n" + render(campaign_tables.comparison(both, first, last), "text", console.width()))
    console.show(f"\nTo see this again: {command_line('compare', *places)}")
    claim = found.claim
    assert claim is not None
    server, client, case = claim.cells[0]
    runs = [each for each in after.results if each.key[:3] == (server, client, case)]
    if runs:
        console.show(f"To see a run: {command_line('explain', places[1] / runs[0].key.path)}")
    if any(case.functional for case in after.manifest.test_cases):
        return
    console.show(f"To check it in real time: {command_line('confirm', *places)}")
