"""The options of commands that judge a campaign for a CI system, and what they write: JUnit, GitHub, a comment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import console
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.outcome_status import exit_status_for
from quicsat.cli.output_files import check_earlier, check_outputs, is_plain
from quicsat.cli.parser import Once
from quicsat.cli.program import CommandOptions, flag, option
from quicsat.model.clock import Clock
from quicsat.model.errors import InputError, MachineError, UserError
from quicsat.model.expectations import Expectations
from quicsat.model.names import VARIANT_SIGN
from quicsat.model.stored_files import resolved
from quicsat.model.whole_file import write_atomically

if TYPE_CHECKING:
    from quicsat.config.expectations import KnownNames
    from quicsat.model.results import Manifest, ResultSet
    from quicsat.model.test_case import TestCase
    from quicsat.report.plot_request import Draw
    from quicsat.statistics.judgement import JudgedCell, Judgement

SUMMARY = "GITHUB_STEP_SUMMARY"
"""Variable with the file to which GitHub Actions adds what a step writes for people."""
LARGEST_SUMMARY = 1024 * 1024
"""Bytes of all summaries of a step that GitHub shows."""
MOST_PICTURES = 8
"""Pictures of one comment; each takes about a second."""
REPORT = re.compile(rb"""(<\?xml[^>]*>\s*<testsuites name="quicsat"|### \S+ quicsat: )""")
"""How the reports begin."""
LONGEST_START = 200
"""Bytes of a report in which :data:`REPORT` is."""


@dataclass(frozen=True)
class CiRequest:
    """What :class:`CiOptions` ask for, read and checked before anything is measured."""

    expectations: Expectations = field(default_factory=Expectations)
    decides: bool = False
    """Whether the expectations decide the exit status."""
    baseline: ResultSet | None = None
    junit: Path | None = None
    comment: Path | None = None
    summary: Path | None = None
    """File for the step summary; None without ``--github``."""

    @property
    def wanted(self) -> bool:
        """Whether there is anything to judge or to write."""
        return self.decides or bool(self.junit or self.comment or self.summary)


# ---- options --------------------------------------------------------------------------------


class CiOptions(CommandOptions, group="continuous integration"):
    """What a CI system gets."""

    expect: Path | None = option(
        "--expect", type=Path, action=Once, metavar="FILE",
        help="YAML file with known failures, goodput floors and a baseline, which decide the exit status "
        "(default: every failed run is unexpected; example: quicsat.yml).",
    )  # fmt: skip
    junit: Path | None = option(
        "--junit", type=Path, action=Once, metavar="FILE",
        help="Also write a JUnit XML report with a test case per cell (default: no file; example: junit.xml).",
    )  # fmt: skip
    comment: Path | None = option(
        "--comment", type=Path, action=Once, metavar="FILE",
        help="Also write a Markdown comment for a pull request: the changed cells with reasons, and next to the file "
        "pictures of them as PNG (default: no file; example: comment/quicsat.md).",
    )  # fmt: skip
    github: bool = flag(
        "--github",
        help=f"Also write the comment to the step summary of GitHub Actions (${SUMMARY}), and print annotations.",
    )


def read_request(
    options: CiOptions,
    root: Path,
    implementations: Iterable[str],
    test_cases: Iterable[TestCase],
    campaign: Path | None,
    baseline: Path | None = None,
) -> CiRequest:
    """Read and check the files; raises InputError. From here on, GitHub takes no printed line for a command.

    ``implementations`` and ``test_cases``: those of the campaign, which an expectation may name besides known ones;
    ``campaign``: its directory, if the user named one; ``baseline``: the file that the command line names.
    """
    from quicsat.config.expectations import load_expectations

    expectations = Expectations()
    if options.expect:
        expectations = load_expectations(options.expect, _known_names(root, implementations, test_cases))
    baseline = _only_baseline(options.expect, expectations.baseline, baseline)
    summary = _summary() if options.github else None
    _check_outputs(options, campaign, baseline, summary)
    if summary:
        try:
            _append(summary, "")
        except MachineError as error:
            raise InputError(f"--github: {error} The variable {SUMMARY} names this file.") from error
    known = _read_baseline(baseline) if baseline else None
    if summary:
        console.stop_commands()
    return CiRequest(
        expectations,
        decides=options.expect is not None,
        baseline=known,
        junit=options.junit,
        comment=options.comment,
        summary=summary,
    )


def _only_baseline(expect: Path | None, expected: Path | None, named: Path | None) -> Path | None:
    """The baseline that the command line names, else that of the expectations; InputError if they name different ones.

    With a baseline on the command line, that of the expectations need not be there.
    """
    if named is None or expected is None or not (named.exists() and expected.exists()):
        return named or expected
    if not named.samefile(expected):
        raise InputError(f"{expect} names the baseline {expected}, and FILE is {named}. Remove one of the two.")
    return named


def _summary() -> Path:
    if not (name := os.environ.get(SUMMARY)):
        raise InputError(f"--github: the variable {SUMMARY} is not set, so this is no step of GitHub Actions.")
    return Path(name)


def _check_outputs(options: CiOptions, campaign: Path | None, baseline: Path | None, summary: Path | None) -> None:
    """Check all files that a command writes, here since the expectations name one of the inputs."""
    from quicsat.plan.select_names import split
    from quicsat.plan.select_test_cases import is_file

    given = vars(options)
    json: Path | None = given.get("json")
    check_outputs(
        [("-j", json), ("--junit", options.junit), ("--comment", options.comment)],
        [
            ("--expect", options.expect),
            ("FILE" if "file" in given else f"the key baseline of {options.expect}", baseline),
            ("--hosts", given.get("hosts")),
            ("--locked", given.get("locked")),
            (SUMMARY, summary),
            ("DIR", given.get("directory")),
            ("-l", given.get("log_dir")),
            *(("-t", Path(word)) for word in split(given.get("test", ())) if is_file(word)),
        ],
        campaign,
        exported=json,
    )
    for name, file in (("--junit", options.junit), ("--comment", options.comment)):
        check_earlier(name, file, "report of quicsat", _is_report)


def _is_report(file: Path) -> bool:
    """Whether a file is a report that a later one may replace."""
    try:
        with file.open("rb") as content:
            start = content.read(LONGEST_START)
    except OSError:
        return False
    return REPORT.match(start) is not None


def _known_names(root: Path, implementations: Iterable[str], test_cases: Iterable[TestCase]) -> KnownNames:
    from quicsat.config.expectations import KnownNames
    from quicsat.config.inventory import Inventory

    known = Inventory(root)
    variants = (
        f"{each.name}{VARIANT_SIGN}{variant.name}"
        for each in known.implementations.values()
        for variant in each.variants
    )
    labels = (case.labels for case in (*known.test_cases.values(), *known.on_request.values(), *test_cases))
    return KnownNames(
        frozenset((*known.implementations, *variants, *implementations)),
        frozenset().union(*labels),
        frozenset(name for each, files in known.workloads.items() for name in (each, files.abbreviation)),
    )


def _read_baseline(file: Path) -> ResultSet:
    from quicsat.results import baseline

    return console.warn(baseline.read(file))


def check_plan(request: CiRequest, clock: Clock, seed: int, *, report: bool = True) -> None:
    """Raise InputError before hours of measuring if the clock or the seed cannot be those of the baseline.

    ``report``: also write the fault into the reports that were asked for.
    """
    if request.baseline is None:
        return
    begun = request.baseline.manifest
    fault = ""
    if begun.clock is not clock:
        fault = f"The baseline used {begun.time}: use --clock {begun.clock}."
    elif clock is Clock.VIRTUAL and begun.seed != seed:
        fault = f"The baseline has another seed: use --seed {begun.seed}."
    if fault:
        refused = InputError(fault)
        if report:
            _refuse(request, refused)
        raise refused


def check_manifest(request: CiRequest, manifest: Manifest, *, report: bool = True) -> tuple[str, ...]:
    """How a campaign with this manifest differs from the baseline; raises InputError if it cannot be compared with it.

    All that it looks at, images too, is known before the first run. ``report``: as above.
    """
    from quicsat.statistics.conditions import check_fit

    if request.baseline is None:
        return ()
    try:
        return check_fit(request.baseline.manifest, manifest)
    except InputError as fault:
        if report:
            _refuse(request, fault)
        raise


# ---- at the end of a campaign -----------------------------------------------------------------


def conclude(request: CiRequest, results: ResultSet, place: Path, draw: Draw | None) -> ExitStatus | None:
    """Judge a campaign, and write what was asked for; the exit status if the expectations decide it.

    ``place``: its directory, or a file with its results. Raises InputError if the campaign cannot be compared with the
    baseline.
    """
    from quicsat.statistics.judgement import judge

    if not request.wanted:
        return None
    notes = check_manifest(request, results.manifest)
    judgement = judge(results, request.expectations, request.baseline, notes)
    report(request, judgement, results, place, draw)
    return exit_status_for(judgement) if request.decides else None


def report(request: CiRequest, judgement: Judgement, results: ResultSet, place: Path, draw: Draw | None) -> None:
    """Print the judgement of a campaign, and write what was asked for; ``place``: as above."""
    from quicsat.report import change_comment, github, junit

    _show(judgement, decides=request.decides)
    if request.junit:
        write_atomically(request.junit, junit.junit(results, judgement))
    pictures, missing = _pictures(request, judgement, results, place, draw)
    for note in missing:
        console.message(note)
    judgement = replace(judgement, notes=(*judgement.notes, *missing))
    where = "an artifact of this job" if request.summary else "the same directory"
    if request.comment:
        write_atomically(request.comment, change_comment.comment(results, judgement, pictures, where).encode())
    if request.summary:
        _append(request.summary, change_comment.comment(results, judgement, pictures, where))
        console.allow_commands(*github.of_judgement(judgement))


def _refuse(request: CiRequest, fault: InputError) -> None:
    """Write into all reports why a campaign cannot be compared, so that none of them keeps an earlier verdict."""
    from quicsat.report import change_comment, github, junit

    text = change_comment.refusal(fault.problems)
    # A directory that is missing is that of a campaign which has not begun, and has no earlier report.
    if request.junit and request.junit.parent.is_dir():
        write_atomically(request.junit, junit.refusal(fault.problems))
    if request.comment and request.comment.parent.is_dir():
        write_atomically(request.comment, text.encode())
    if request.summary:
        _append(request.summary, text)
        console.allow_commands(github.command("error", "quicsat", str(fault)))


def _show(judgement: Judgement, *, decides: bool) -> None:
    """Print what is not as expected."""
    from quicsat.report.cell_reasons import reasons

    if not decides:
        return
    console.show("")
    for cell in judgement.changed:
        sample = cell.sample
        console.show(f"{cell.case.name}, server {sample.server}, client {sample.client}: {cell.finding}")
        console.show("\n".join(f"  {line}" for line in (*cell.details, *reasons(cell))))
    groups = [line for each in judgement.groups for line in (each.text, *(f"  {detail}" for detail in each.details))]
    rest = (*judgement.behaviour, *judgement.builds, *judgement.notes, *judgement.open)
    for line in filter(None, (*groups, *rest, judgement.power, judgement.unfinished)):
        console.show(line)
    verdict = judgement.conclusion
    console.show(f"{verdict[0].upper()}{verdict[1:]}: {judgement.counts}.")


def _append(file: Path, text: str) -> None:
    try:
        with file.open("ab") as summary:
            if summary.tell() + len(text.encode()) <= LARGEST_SUMMARY:
                summary.write(text.encode())
    except OSError as error:
        raise MachineError(f"{file}: cannot be written: {error.strerror}.") from error


def _pictures(
    request: CiRequest, judgement: Judgement, results: ResultSet, place: Path, draw: Draw | None
) -> tuple[dict[tuple[str, str, str], str], list[str]]:
    """Draw the time-offset diagram of each changed cell next to the comment.

    Returns the files' names by cell, and a sentence for each diagram that cannot be drawn.
    """
    from quicsat.report.change_comment import MEMBERS
    from quicsat.report.plot_request import CampaignResults, PlotRequest

    if request.comment is None or draw is None or not is_plain(request.comment):
        return {}, []
    if not place.is_dir():
        return {}, [
            f"There are no time-offset diagrams, because {place} is a file: name the directory of the campaign."
        ]
    found, missing = dict[tuple[str, str, str], str](), list[str]()
    campaign = CampaignResults(place.name, results, resolved(place))
    wanted = PlotRequest(
        (campaign,), request.comment.absolute().parent, ("offset",), formats=("png",), baseline=request.baseline
    )
    if request.baseline is not None and (judgement.changed or judgement.groups):
        with suppress(UserError, OSError):  # the comment has the same numbers as text
            found.update((MEMBERS, file.name) for file in draw(replace(wanted, plots=("members",))).files[:1])
    for cell in judgement.changed[:MOST_PICTURES]:
        try:
            gallery = draw(replace(wanted, test_cases=(cell.case.name,), pairs=(_pair(cell),)))
            files, faults = gallery.files, (*gallery.warnings, *gallery.refused)
        except (UserError, OSError) as fault:
            files, faults = (), (str(fault),)
        server, client = _pair(cell)
        if files:
            found[server, client, cell.case.name] = files[0].name
        elif faults:
            why = " ".join(faults)
            missing.append(f"There is no time-offset diagram of {cell.case.name}, {server}, {client}: {why}")
    return found, missing


def _pair(cell: JudgedCell) -> tuple[str, str]:
    return cell.sample.server, cell.sample.client
