"""``./run.py compare``: compares two campaigns, or two test cases of one campaign."""

from __future__ import annotations

import argparse
from pathlib import Path

from interop.cli import console, stored_campaigns
from interop.cli import options as shared
from interop.cli.exit_status import ExitStatus
from interop.model.errors import InputError
from interop.report.plot_request import PlotRequest
from interop.statistics.samples import find

DESCRIPTION = (
    "Show which pairs became significantly slower or faster, broke, or were fixed between two campaigns. With two test "
    "cases of one campaign, show how pairs differ between them. The exit status is 1 if something became significantly "
    "worse, and 5 if something may be worse that the results cannot show. In virtual time, runs with the same seed are "
    "reproducible, so one repetition is enough to find a change in goodput of 1 %."
)
EXAMPLES = (
    "compare results/before results/after",
    "compare results/latest -t SAT SATL      # two test cases of one campaign",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    group = stored_campaigns.add_directories(parser)
    group.add_argument("--all", action="store_true", help="Also list pairs without a significant change.")
    group = parser.add_argument_group("output")
    shared.add_text_format(group)
    group.add_argument(
        "--plot", type=Path, metavar="DIR",
        help="Also draw the comparison and save it in this directory (default: no figure; example: figures).",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Print the comparison."""
    from interop.report import campaign_tables
    from interop.report.table import Unit, render
    from interop.statistics import comparison

    if len(options.directories) > 2:
        raise InputError("Pass two campaigns. For more, see ./run.py tables --table history.")
    opened = stored_campaigns.open_campaigns(options)
    first, second = opened[0], opened[-1]
    status = ExitStatus.SUCCESS
    if len(opened) == 1:
        names = stored_campaigns.two_test_cases(options.test)
        cases = [find(first.results, name) for name in names]
        found = comparison.links(first.results, *(case for case in cases if case is not None))
        table = campaign_tables.comparison(found, *names, Unit.SHARE, everything=options.all)
    else:
        chosen = stored_campaigns.test_cases(first.results, options.test)
        if not {case.name for case in chosen} & {case.name for case in second.results.manifest.test_cases}:
            raise InputError(f"{first.label} and {second.label} have no test case in common to compare.")
        found = comparison.campaigns(first.results, second.results, chosen)
        table = campaign_tables.comparison(found, first.label, second.label, everything=options.all)
        if found.worse or found.undecided:
            status = ExitStatus.FAILURE if found.worse else ExitStatus.UNDECIDED
    console.show(render(table, options.format, console.width()))
    if options.plot is not None:
        request = PlotRequest(opened, options.plot, ("comparison",), test_cases=tuple(options.test))
        console.show("\n" + "\n".join(map(str, stored_campaigns.draw(options, request).files)))
    return status
