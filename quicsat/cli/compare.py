"""``./run.py compare``: compares two campaigns, or two test cases of one campaign."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import console, stored_campaigns
from quicsat.cli import options as shared
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.foreign_inputs import CampaignsOptions
from quicsat.cli.outcome_status import exit_status_for
from quicsat.cli.output_files import check_json, check_place
from quicsat.cli.program import Program, flag, option
from quicsat.model.clock import Clock
from quicsat.model.errors import InputError
from quicsat.model.stored_files import resolved, status
from quicsat.model.text import command_line
from quicsat.report.plot_request import PlotRequest
from quicsat.statistics.samples import find

if TYPE_CHECKING:
    from quicsat.model.results import ResultSet
    from quicsat.model.test_case import TestCase
    from quicsat.report.plot_request import CampaignResults
    from quicsat.statistics.comparison import Comparison

GROUP = "Results", 4
SUMMARY = "Compare two campaigns, or two test cases of one campaign."
DESCRIPTION = (
    "Show which pairs became significantly slower or faster, broke, or were fixed between two campaigns. With two test "
    "cases of one campaign, compare their efficiency. The exit status is 1 if something became significantly "
    "worse or the second campaign is unfinished, 2 if their conditions differ, 3 if one of its runs ended in an error, "
    "and 5 if something may be worse that the results cannot show. The table states which loss would have been found."
)
EXAMPLES = (
    "compare results/before results/after",
    "compare --previous results/latest       # with the campaign before it",
    "compare results/latest -t SAT SATL      # two test cases of one campaign",
    "compare results/a results/b -t SAT MINE # SAT of the first with MINE of the second",
)
SECOND_IS_MISSING = (
    "A second campaign is missing: name it, or add --previous, or name two test cases of this campaign with -t."
)


class Options(CampaignsOptions, group="output"):
    """The options of the command."""

    previous: bool = flag(
        "--previous", group="selection",
        help="Compare DIR with the newest earlier campaign in the same folder that used the same clock and has nearly "
        "all of its cells, which leaves out campaigns that were killed early.",
    )  # fmt: skip
    placebo: Path | None = option(
        "--placebo", type=Path, metavar="DIR", group="selection",
        help="Placebo campaign of the first one, which shows for each pair whether members with the same seed are "
        "alike (default: none; example: results/placebo).",
    )  # fmt: skip
    all: bool = flag("--all", group="selection", help="Also list pairs without a significant change.")
    format: str = shared.FORMAT
    json: Path | None = option(
        "-j", "--json", type=Path, metavar="FILE",
        help="Also write what changed to this file, as JSON (default: no file; example: changes.json).",
    )  # fmt: skip
    plot: Path | None = option(
        "--plot", type=Path, metavar="DIR",
        help="Also draw the comparison and save it in this directory (default: no figure; example: figures).",
    )  # fmt: skip


def run(options: Options, program: Program) -> int:
    """Print the comparison."""
    from quicsat.report import campaign_tables
    from quicsat.report.comparison_lines import KEYS
    from quicsat.report.table import Unit, render
    from quicsat.statistics import comparison

    if len(options.directories) > (1 if options.previous else 2):
        raise InputError(
            "Pass one campaign with --previous, or two campaigns. For more, see ./run.py tables --table history."
        )
    if len(options.directories) == 1 and not options.previous and not options.test:
        raise InputError(SECOND_IS_MISSING)
    check_json(options.json, "comparison", KEYS, options.directories)
    if options.plot is not None:
        check_place(options.plot, str(options.plot))
    passed_over = list[str]()
    if options.previous and not _find_previous(options, passed_over):
        return _without_previous(options, passed_over)
    opened = stored_campaigns.open_campaigns(options, program)
    if len(opened) < len(options.directories):
        raise InputError("There is no second campaign to compare.")
    first, second = opened[0], opened[-1]
    if two := _two_cases(options, first.results, second.results):
        found = comparison.links(first.results, *two, second.results)
        table = campaign_tables.comparison(found, options.test[0], options.test[1], Unit.SHARE, everything=options.all)
        table = replace(table, title=f"{table.title}: efficiency, the share of the link")
    else:
        chosen = stored_campaigns.test_cases(first.results, options.test)
        if not {case.name for case in chosen} & {case.name for case in second.results.manifest.test_cases}:
            raise InputError(f"{first.label} and {second.label} have no test case in common to compare.")
        before = stored_campaigns.with_placebo(first.results, options.placebo)
        found = comparison.campaigns(before, second.results, chosen)
        table = campaign_tables.comparison(found, first.label, second.label, everything=options.all)
    status = exit_status_for(found)
    console.show(render(table, options.format, console.width()))
    decides = status is ExitStatus.FAILURE and found.worse and options.format == "text" and not two
    if decides and first.results.manifest.clock is Clock.VIRTUAL:
        console.show(f"\nTo check this in real time: {command_line('confirm', *options.directories)}")
    _write(options, found, first, second, passed_over)
    if options.plot is not None:
        request = PlotRequest(opened, options.plot, ("comparison",), test_cases=tuple(options.test))
        console.show("")
        stored_campaigns.show_files(stored_campaigns.draw(program, request))
    return status


def _two_cases(options: Options, first: ResultSet, second: ResultSet) -> tuple[TestCase, TestCase] | None:
    """The test cases of ``-t`` if one is compared with the other one: of one campaign, or if two share none of them."""
    shared_cases = {case.name for case in stored_campaigns.test_cases(first, options.test)} & {
        case.name for case in stored_campaigns.test_cases(second, options.test)
    }
    if first is not second and (shared_cases or len(options.test) != 2):
        return None
    names = stored_campaigns.two_test_cases(options.test)
    cases = [find(results, name) for results, name in zip((first, second), names, strict=True)]
    return (cases[0], cases[1]) if cases[0] is not None and cases[1] is not None else None


def _write(
    options: Options, found: Comparison, first: CampaignResults, second: CampaignResults, passed_over: list[str]
) -> None:
    from quicsat.report.comparison_lines import document

    if options.json is not None:
        place = str(options.directories[0])
        _put(options.json, document(found, first.results, second.results, place, passed_over))


def _put(file: Path, content: object) -> None:
    from quicsat.model.whole_file import write_atomically

    write_atomically(file, json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")


def _find_previous(options: Options, passed_over: list[str]) -> bool:
    """Put the campaign to compare with in front of the directories; whether there is one.

    ``passed_over`` gets those newer ones that did not end, in words.
    """
    from quicsat.report.comparison_lines import incomplete
    from quicsat.results import store
    from quicsat.statistics.previous import conclusive_cells, most_alike

    [directory] = options.directories
    after = store.load(directory).result_set
    earlier = list(_earlier(directory, after))
    at = most_alike(conclusive_cells(after), [conclusive_cells(each) for _, each in earlier])
    for _, each in earlier[:at]:
        if each.lacking:
            passed_over.append(incomplete(each))
            console.message(f"The campaign of {passed_over[-1]} is incomplete.")
    if at is not None:
        options.directories.insert(0, earlier[at][0])
    return at is not None


def _earlier(directory: Path, after: ResultSet) -> Iterator[tuple[Path, ResultSet]]:
    """The campaigns of the same clock beside one that began before it, the newest first, and not more than needed."""
    from quicsat.results import store
    from quicsat.statistics.previous import LOOKED_BACK

    found: list[tuple[Path, ResultSet]] = []
    here = resolved(directory)
    for place in sorted(store.campaigns_in(here.parent), key=_changed, reverse=True):
        if place == here or len(found) >= LOOKED_BACK:
            continue
        try:
            results = store.load(place).result_set
        except InputError as error:
            for problem in error.problems:
                console.message(f"{problem} It is left out.")
            continue
        if results.manifest.time == after.manifest.time and results.manifest.started < after.manifest.started:
            found.append((place, results))
    found.sort(key=lambda each: each[1].manifest.started, reverse=True)
    yield from found


def _changed(place: Path) -> float:
    """When the results in a directory were written; 0 if there are none."""
    from quicsat.results import store

    states = (status(place / name) for name in (store.JOURNAL, store.DOCUMENT))
    return max((state.st_mtime for state in states if state is not None), default=0.0)


def _without_previous(options: Options, passed_over: list[str]) -> int:
    from quicsat.report.comparison_lines import document
    from quicsat.results import store

    [directory] = options.directories
    results = console.warn(store.load(directory))
    if options.json is not None:
        _put(options.json, document(None, None, results, "", passed_over))
    console.message(f"{directory}: there is no earlier campaign beside it with the same clock and cells.")
    return ExitStatus.UNDECIDED
