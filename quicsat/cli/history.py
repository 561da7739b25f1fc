"""``./run.py history``: measures releases of an implementation with fixed partners, and shows what each one changed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import campaign_report, campaign_size, console, new_campaign, resume, select_runs, stored_campaigns
from quicsat.cli import options as shared
from quicsat.cli.campaign_options import NewCampaignOptions
from quicsat.cli.exit_status import SIGNAL, ExitStatus
from quicsat.cli.output_files import check_earlier, check_place
from quicsat.cli.program import Program, option
from quicsat.cli.progress import earlier_campaigns
from quicsat.config import quantities
from quicsat.config.inventory import Inventory
from quicsat.config.releases import package_of, release_named
from quicsat.model.clock import Clock
from quicsat.model.errors import InputError, MachineError
from quicsat.model.names import RELEASE_SIGN, did_you_mean
from quicsat.model.results import Schedule
from quicsat.model.role import Role
from quicsat.model.stored_files import read_file, resolved
from quicsat.model.text import command_line, counted, quoted
from quicsat.model.units import MIB
from quicsat.plan.duration_estimate import Durations
from quicsat.plan.select_names import listed, split
from quicsat.report.plot_request import CampaignResults, PlotRequest

if TYPE_CHECKING:
    from quicsat.cli.select_runs import ChosenRuns
    from quicsat.model.implementation import Implementation
    from quicsat.model.results import ImageFacts

GROUP = "Measure", 6
SUMMARY = "Measure releases of an implementation, and show which one changed its performance."
DESCRIPTION = (
    "Build releases of an implementation, measure each with the same partners and members of an ensemble, and show "
    "goodput by release, with significant steps and what the changelog says about them. -s and -c name the partners: "
    "servers for the releases as clients, and clients for the releases as servers. The command states how long it "
    "takes before it starts. A release that cannot be built is left out. To continue after an interruption, repeat "
    "the command with the same directory (-l)."
)
EXAMPLES = (
    "history quic-go -s picoquic -c picoquic -t sat satloss -l results/quic-go",
    "history aioquic --since 2025-01-01 -t sat",
    "history quic-go --release v0.48.2 v0.54.1 -t sat --repetitions 20",
    "history quic-go --from results/quic-go           # show stored results again",
)
TESTS = ("sat", "satloss")
PARTNERS = ("quic-go", "picoquic", "quiche")
"""The first two that are not measured themselves are the partners by default."""
USUAL_PARTNERS = f"the first two of {', '.join(PARTNERS)} besides NAME"
MOST, MEMBERS = 8, 10
NEEDED = 2
"""Releases without which there is no history."""
PAGE = re.compile(rb"# [^\n]+\n\n\d{4}-\d\d-\d\d, [^\n]*: `[^\n]*`\n\n")
"""How the page begins."""
LARGEST_PAGE = 16 * MIB
"""Bytes of a page that is looked at."""
ASKED = 4
"""Number of requests to the registry at the same time."""


def _most(text: str) -> int:
    if (number := quantities.count(text)) < NEEDED:
        raise ValueError(f"is too few: a history needs {NEEDED}.")
    return number


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError("is no date; write for example 2025-01-31.") from None


class Options(NewCampaignOptions, resume.ContinueOptions, group="history", without=("pairs", "must_include", "shard")):
    """Those of ``run``, and which releases are measured."""

    name: str = option(metavar="NAME", help="Implementation whose releases are measured; example: quic-go.")
    server: list[str] = option(
        "-s", "--server", group="selection", nargs="+", action="extend", default=[], metavar="NAME",
        help=f"Servers with which the releases are measured as clients (default: {USUAL_PARTNERS}, unless -c names "
        "partners; example: picoquic).",
    )  # fmt: skip
    client: list[str] = option(
        "-c", "--client", group="selection", nargs="+", action="extend", default=[], metavar="NAME",
        help=f"Clients with which the releases are measured as servers (default: {USUAL_PARTNERS}, unless -s names "
        "partners; example: picoquic).",
    )  # fmt: skip
    test: list[str] = option(
        "-t", "--test", group="selection", nargs="+", action="extend", default=[], metavar="NAME",
        help="Test cases or families by name or abbreviation, or your own YAML files (default: sat and satloss; "
        "example: sat ./my-link.yaml).",
    )  # fmt: skip
    repetitions: int | None = option(
        "--repetitions", group="selection", parse=quantities.count, metavar="N",
        help=f"Members of the ensemble: measure each pair and test case N times (default: {MEMBERS}; example: 20).",
    )  # fmt: skip
    since: date | None = option(
        "--since", parse=_date, metavar="DATE",
        help="Measure the releases since this date (default: the newest ones; example: 2025-01-31).",
    )  # fmt: skip
    release: list[str] = option(
        "--release", nargs="+", action="extend", default=[], metavar="VERSION",
        help="Measure these releases (default: the newest ones; example: v0.48.2 v0.54.1).",
    )  # fmt: skip
    most: int | None = option(
        "--most", parse=_most, metavar="N",
        help=f"Measure only the newest N releases (default: {MOST}, or all since the date of --since; example: 20).",
    )  # fmt: skip
    stored: Path | None = option(
        "--from", type=Path, metavar="DIR",
        help="Measure nothing, and show the releases in this campaign (default: measure; example: results/quic-go).",
    )  # fmt: skip
    output: Path | None = option(
        "-o", "--output", type=Path, metavar="DIR",
        help="Directory for figures and the page (default: plots in the directory of the campaign; example: figures).",
    )  # fmt: skip
    clock: Clock = option(
        "--clock", group="clock", choices=tuple(Clock), type=Clock, default=Clock.VIRTUAL, metavar="CLOCK",
        help="Clock for endpoints and emulated links: virtual or real (default: virtual; example: real).",
    )  # fmt: skip
    log_dir: Path | None = option(
        "-l", "--log-dir", type=Path, metavar="DIR",
        help="Directory of the campaign; the same command continues it, with its seed (default: results/DATE; example: "
        "results/quic-go).",
    )  # fmt: skip


def run(options: Options, program: Program) -> int:
    """Measure, unless the results are stored, and show the history."""
    implementation = _implementation(options, program.root)
    if options.output is not None:
        _check_page(options.output, _page(options.output, implementation.name))
    if options.stored is not None:
        if options.release or options.since or options.most:
            raise InputError("--from shows all releases of a campaign: leave --release, --since and --most out.")
        _show(options, program, implementation, options.stored, {})
        return ExitStatus.SUCCESS
    from quicsat.results.store import JOURNAL, has

    faults: dict[str, str] = {}
    if options.log_dir is not None and has(options.log_dir, JOURNAL):
        status, directory = _continue(options, program, implementation, options.log_dir, faults)
    else:
        status, directory = _begin(options, program, implementation, faults)
    if status < SIGNAL:
        _show(options, program, implementation, directory, faults)
    return status


def _implementation(options: Options, root: Path) -> Implementation:
    known = Inventory(root).implementations
    name = options.name.casefold()
    if name not in known:
        able = [each.name for each in known.values() if each.releases]
        raise InputError(f"No implementation {quoted(options.name)}.{did_you_mean(name, known)} Known: {listed(able)}.")
    package_of(known[name])
    return known[name]


# ---- which releases ------------------------------------------------------------------------------


def releases_chosen(options: Options, implementation: Implementation) -> tuple[Implementation, ...]:
    """The oldest first; raises InputError if there is none, MachineError if the registry does not answer."""
    from quicsat.images.releases import buildable
    from quicsat.model.package import release_order

    if options.release and (options.since or options.most):
        raise InputError("--release names the releases: leave --since and --most out.")
    if options.release:
        named = {each.name: each for word in split(options.release) for each in [release_named(implementation, word)]}
        return _enough(implementation, sorted(named.values(), key=lambda each: release_order(each.release)))
    found = buildable(implementation)
    if options.since is not None:
        days = _dates(found)
        found = tuple(each for each in found if days.get(each.release, options.since) >= options.since)
        if unknown := [each.release for each in found if each.release not in days]:
            console.message(f"The registry states no date of {', '.join(unknown)}, which count as newer.")
    most = options.most or (MOST if options.since is None else len(found))
    return _enough(implementation, found[-most:], f" since {options.since}" if options.since else "")


def _enough(
    implementation: Implementation, found: Sequence[Implementation], since: str = ""
) -> tuple[Implementation, ...]:
    """Raise InputError if there are too few releases."""
    if len(found) < NEEDED:
        names = f": {found[0].release}" if found else ""
        count = counted(len(found), "release")
        raise InputError(f"{count} of {implementation.name}{since}{names}. A history needs {NEEDED}.")
    return tuple(found)


def pairs_of(options: Options, implementation: Implementation, releases: Sequence[Implementation]) -> list[str]:
    """``SERVER/CLIENT`` of each release in both roles, or in those for which there are partners."""
    usual = [each for each in PARTNERS if each != implementation.name][:2]
    named = bool(options.server or options.client)
    servers, clients = (split(words) if named else usual for words in (options.server, options.client))
    own = f"{implementation.name}{RELEASE_SIGN}"
    if mine := [each for each in (*servers, *clients) if each.casefold().startswith(own)]:
        raise InputError(f"{mine[0]}: is a release of what is measured. Name a partner without a release.")
    pairs = [
        *(f"{release.name}/{client}" for release in releases for client in clients if Role.SERVER in release.roles),
        *(f"{server}/{release.name}" for release in releases for server in servers if Role.CLIENT in release.roles),
    ]
    if not pairs:
        raise InputError(f"{implementation.name} has no role with these partners.")
    return list(map(str.casefold, pairs))


# ---- measure ---------------------------------------------------------------------------------------


def _begin(
    options: Options, program: Program, implementation: Implementation, faults: dict[str, str]
) -> tuple[int, Path]:
    """Build and measure; ``faults`` gets why releases are left out."""
    releases = releases_chosen(options, implementation)
    planned = pairs_of(options, implementation, releases)
    chosen = _select(options, program, planned)
    options.seed = chosen.seed
    new_campaign.check_files(options, program.root, chosen)
    cases = chosen.selection.test_cases
    limits = shared.limits(options, os.environ, Schedule(), cases)
    testbeds = shared.most_testbeds(options, shared.usual_schedule(options.clock)) or os.cpu_count() or 1
    durations = Durations(earlier_campaigns(program.root, options.clock))
    console.message(f"{counted(len(releases), 'release')}: {', '.join(each.release for each in releases)}.")
    for line in campaign_size.time_needed(chosen.runs, durations, limits, datetime.now().astimezone(), testbeds):
        console.message(line)
    new_campaign.confirm_size(options, program, chosen.runs)
    faults |= _build(options, program, releases)
    if len(releases) - len(faults) < NEEDED:
        raise MachineError(f"{len(faults)} of {len(releases)} releases cannot be built. A history needs {NEEDED}.")
    lost = {f"{implementation.name}{RELEASE_SIGN}{release}" for release in faults}
    chosen = _select(options, program, [pair for pair in planned if not lost & {*pair.split("/")}])
    request = new_campaign.check_files(options, program.root, chosen)
    with new_campaign.conditions(options, program, chosen.selection) as how:
        from quicsat.execution import run_campaign

        new = new_campaign.new_campaign(options, program, chosen, request)
        with campaign_report.view(how.past, debug=options.debug) as observer:
            finished = run_campaign.run_campaign(new, how, observer)
        return campaign_report.conclude(finished, options, program, request), finished.directory


def _select(options: Options, program: Program, pairs: list[str]) -> ChosenRuns:
    options.repetitions = MEMBERS if options.repetitions is None else options.repetitions
    options.test = options.test or [*TESTS]
    options.server, options.client, options.pairs = [], [], pairs
    return select_runs.select(options, program.root)


def _build(options: Options, program: Program, releases: Sequence[Implementation]) -> dict[str, str]:
    """Build the images that are missing; why, of each release that could not be built."""
    from quicsat.docker.daemon_images import DaemonImages
    from quicsat.docker.ssh_tunnel import connected
    from quicsat.images.pull_or_build import Images, Policy
    from quicsat.images.status import builders, get_all

    with connected(shared.daemon(), "history") as daemon:
        images = Images(DaemonImages(daemon), program.root, Policy(options.images), console.message)
        ways: dict[str, partial[ImageFacts]] = {each.release: partial(images.ensure, each) for each in releases}
        got = get_all(ways, builders(int(daemon.info["NCPU"]), int(daemon.info["MemTotal"])))
    faults = {each.name: each.fault.splitlines()[0] for each in got if each.fault}
    for release, fault in faults.items():
        console.message(f"{release} is left out. {fault}")
    return faults


def _continue(
    options: Options, program: Program, implementation: Implementation, directory: Path, faults: dict[str, str]
) -> tuple[int, Path]:
    """As the command resume does; raises InputError if the campaign was begun with other options."""
    from quicsat.statistics.releases import releases_planned

    continued = resume.check(options, program.root, directory)
    begun = continued.stored.result_set.manifest
    known = {each.name for each in begun.implementations}
    releases = releases_planned(begun, implementation.name)
    if not releases:
        raise InputError(f"{directory}: has no releases of {implementation.name}. Choose another directory with -l.")
    asked = releases_chosen(options, implementation) if options.release else ()
    faults |= {each.release: "the campaign was begun without it." for each in asked if each.name not in known}
    built = asked or [release_named(implementation, each) for each in releases]
    planned = pairs_of(options, implementation, [each for each in built if each.name in known])
    options.seed = begun.seed if options.seed is None else options.seed
    chosen = _select(options, program, planned)
    new = new_campaign.new_campaign(options, program, chosen, continued.request)
    new_campaign.check_same(begun, new, directory)
    with shared.engine_for_itself(options, program):
        return resume.measure(options, program, continued), directory


# ---- show ------------------------------------------------------------------------------------------


def _show(
    options: Options, program: Program, implementation: Implementation, directory: Path, faults: Mapping[str, str]
) -> None:
    """Print the tables, and write figures and page."""
    from quicsat.model.whole_file import make_directories, write_atomically
    from quicsat.report import release_tables
    from quicsat.report.table import render
    from quicsat.results.store import load
    from quicsat.statistics.releases import release_steps, releases_in

    name, results = implementation.name, console.warn(load(directory))
    campaign = CampaignResults(directory.name, results, resolved(directory))
    measured = releases_in(results, name)
    if len(measured) < NEEDED:
        raise InputError(f"{directory}: has {counted(len(measured), 'release')} of {name}. A history needs {NEEDED}.")
    wanted = tuple(options.test) if options.stored is not None else ()  # what was measured may have come from files
    stored_campaigns.check_tests(wanted, [results])
    cases = stored_campaigns.test_cases(results, wanted)
    found = release_steps(results, name, cases)
    releases = [replace(implementation, release=each) for each in measured]
    changed = {step.after for step in found if step.changes}
    tables = (
        release_tables.built(results, name, _dates(releases), faults),
        release_tables.goodput(results, name, cases),
        release_tables.steps(name, found, _explained([each for each in releases if each.release in changed])),
    )
    console.show("\n\n".join(render(each, "text", console.width()) for each in tables))
    target = options.output or directory / "plots"
    page = _page(target, name)
    _check_page(target, page)
    request = PlotRequest((campaign,), target, ("releases",), ("svg", "png"), test_cases=wanted)
    gallery = stored_campaigns.draw(program, request)
    files = gallery.files
    for line in (*gallery.warnings, *(f"not drawn: {each}" for each in gallery.skipped)):
        console.message(line)
    pictures = [f"![{each.stem}]({each.name})" for each in files if each.suffix == ".svg"]
    command = f"`{command_line(*results.manifest.command[1:])}`"
    parts = [f"# {name}", f"{results.manifest.started[:10]}, {results.manifest.time}: {command}", *pictures]
    make_directories(target)
    write_atomically(page, "\n\n".join([*parts, *(render(each, "markdown") for each in tables), ""]).encode())
    console.show("")
    stored_campaigns.show_files(gallery, page)


def _page(target: Path, name: str) -> Path:
    return target / f"history-{name}.md"


def _check_page(target: Path, page: Path) -> None:
    """Raise InputError if the page cannot be written, or would replace anything but an earlier one."""
    check_place(target, str(target))
    check_earlier("-o", page, "page of a history", _is_page)


def _is_page(file: Path) -> bool:
    try:
        return PAGE.match(read_file(resolved(file), LARGEST_PAGE)) is not None
    except OSError:
        return False


def _dates(releases: Sequence[Implementation]) -> dict[str, date]:
    """Those that the registry tells."""
    from quicsat.images.archives import released

    def ask(release: Implementation) -> date | None:
        try:
            return released(release.package, release.release) if release.package else None
        except MachineError:
            return None

    with ThreadPoolExecutor(ASKED) as pool:
        days = pool.map(ask, releases)
        return {release.release: day for release, day in zip(releases, days, strict=True) if day is not None}


def _explained(releases: Sequence[Implementation]) -> dict[str, str]:
    """What the changelogs of releases say, and where there is more."""
    from quicsat.images.changelogs import changes_in

    found = {release.release: changes_in(release) for release in releases}
    return {release: " ".join(filter(None, (each.text, each.link))) for release, each in found.items()}
