"""``./run.py list``: lists test cases and implementations."""

from __future__ import annotations

from quicsat.cli import console
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.program import CommandOptions, Program, option
from quicsat.config.inventory import Inventory
from quicsat.report import terminal_tables

TESTS, IMPLEMENTATIONS = "tests", "implementations"
GROUP = "Measure", 5
SUMMARY = "List test cases and implementations."
DESCRIPTION = "List the test cases and implementations that -t, -s and -c accept."
EXAMPLES = ("list tests",)


class Options(CommandOptions):
    """The options of the command."""

    what: str | None = option(
        nargs="?", choices=(TESTS, IMPLEMENTATIONS), metavar="KIND",
        help=f"List only these: {TESTS} or {IMPLEMENTATIONS} (default: both; example: {TESTS}).",
    )  # fmt: skip


def run(options: Options, program: Program) -> int:
    """Print the lists."""
    known = Inventory(program.root)
    if options.what in (None, TESTS):
        console.show(terminal_tables.test_cases([*known.test_cases.values(), *known.on_request.values()]))
        console.show(terminal_tables.workloads(known.workloads.values()))
    if options.what in (None, IMPLEMENTATIONS):
        console.show(terminal_tables.implementations(known.implementations.values()))
    return ExitStatus.SUCCESS
