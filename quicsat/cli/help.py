"""``./run.py help``: the overview of all commands, the help of one, or the whole reference as Markdown."""

import textwrap

from quicsat.cli import commands, console, reference
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.program import CommandOptions, Program, flag, option
from quicsat.model.text import PROGRAM

GROUP = "Maintain", 9
SUMMARY = "Show the help for a command, or the whole reference as Markdown."
DESCRIPTION = "Show an overview of all commands, the help for one command, or the reference for all commands."
EXAMPLES = ("help plot", "help --markdown > cli.md   # the reference page")

OVERVIEW = """\
usage: {program} [COMMAND] [OPTIONS]

Measure QUIC implementations over satellite links.
Options of a command: {program} COMMAND --help; version: {program} --version

{groups}

Example, one server, one client, one link: {program} -s quic-go -c aioquic -t sat
Exit status: 0 success, 1 a run failed, 2 wrong option or file, 3 infrastructure
error, 4 time up, 75 another campaign is running, 128 + n signal n."""


class Options(CommandOptions, group="output"):
    """The options of the command."""

    name: str | None = option(
        nargs="?", metavar="COMMAND", choices=commands.SUMMARIES, help="Command to explain; example: plot."
    )
    markdown: bool = flag("--markdown", help="Print the reference of all commands as Markdown.")


def run(options: Options, program: Program) -> int:
    """Print the help that was asked for."""
    if options.markdown:
        console.show(reference.markdown().removesuffix("\n"))
    elif options.name:
        console.show(commands.parser_of(options.name).format_help().removesuffix("\n"))
    else:
        console.show(overview())
    return ExitStatus.SUCCESS


def _line(text: str) -> str:
    """A command with its summary, which is wrapped on a narrow terminal."""
    columns = console.width()
    return textwrap.fill(text, columns, subsequent_indent=" " * 13) if columns else text


def overview() -> str:
    """All commands by group; fits on one screen."""
    groups = [
        f"{title}:\n" + "\n".join(_line(f"  {name:10} {summary}") for name, summary in group.items())
        for title, group in commands.GROUPS.items()
    ]
    return OVERVIEW.format(program=PROGRAM, groups="\n\n".join(groups))
