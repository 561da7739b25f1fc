"""``./run.py list``: lists test cases, workloads and implementations, or tells all about some of them."""

from collections.abc import Collection

from quicsat.cli import console
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.program import CommandOptions, Program, option
from quicsat.config.inventory import Inventory
from quicsat.model.errors import InputError
from quicsat.plan.select_names import select
from quicsat.report import inventory_lists

TESTS, WORKLOADS, IMPLEMENTATIONS = "tests", "workloads", "implementations"
KINDS = (TESTS, WORKLOADS, IMPLEMENTATIONS)
GROUP = "Measure", 5
SUMMARY = "List test cases and implementations."
DESCRIPTION = (
    "List the test cases, families, workloads and implementations that -t, -s and -c accept, a line for each, or show "
    "all about those that you name."
)
EXAMPLES = ("list tests", "list satloss picoquic   # link, files and timeout; variants and images")


class Options(CommandOptions):
    """The options of the command."""

    entries: list[str] = option(
        nargs="*", metavar="NAME",
        help=f"A kind ({', '.join(KINDS)}), or names or abbreviations (default: all kinds; example: sat).",
    )  # fmt: skip


def run(options: Options, program: Program) -> int:
    """Print the lists, or the details."""
    known = Inventory(program.root)
    kinds = [name for name in options.entries if name in KINDS]
    if kinds == options.entries:
        groups = _groups(known, kinds or KINDS)
        console.show(inventory_lists.lines(groups, console.width()))
        return ExitStatus.SUCCESS
    entries = [entry for group in _groups(known, KINDS).values() for entry in group]
    found, problems = select(
        options.entries,
        {entry.name: entry for entry in entries},
        "test case",
        {short: entry.name for entry in entries for short in (entry.short, entry.name.removeprefix("+"))},
    )
    if problems:
        raise InputError(*problems)
    console.show(inventory_lists.details(found, console.width()))
    return ExitStatus.SUCCESS


def _groups(known: Inventory, kinds: Collection[str]) -> inventory_lists.Groups:
    groups: inventory_lists.Groups = {}
    if TESTS in kinds:
        groups |= inventory_lists.test_cases(known.test_cases, known.on_request)
    if WORKLOADS in kinds:
        groups |= inventory_lists.workloads(known.workloads.values())
    if IMPLEMENTATIONS in kinds:
        groups |= inventory_lists.implementations(known.implementations.values())
    return groups
