"""The commands by group: name and one-line summary. The module ``quicsat.cli.NAME`` holds the rest of each.

Only the module of the command that runs is imported; docker and numpy take half a second, which `--help` should not.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, cast

from quicsat.cli.parser import Parser
from quicsat.cli.program import CommandOptions, Program
from quicsat.model.text import PROGRAM

DEFAULT = "run"
"""The command of a command line that begins with an option."""

GROUPS = {
    "Measure": {
        "run": "Measure servers with clients in the selected test cases (the default command).",
        "plan": "Show the runs, images, duration and disk space of a campaign without starting it.",
        "resume": "Continue a campaign that was interrupted.",
        "list": "List test cases and implementations.",
        "demo": "Prepare this machine, and measure three implementations in a few minutes.",
    },
    "Results": {
        "show": "Show the matrices of a campaign.",
        "tables": "Show statistics of campaigns as text, Markdown, CSV or LaTeX.",
        "plot": "Draw figures of campaigns.",
        "compare": "Compare two campaigns, or two test cases of one campaign.",
        "baseline": "Save the results of a campaign as a baseline, or check a campaign against one.",
        "analyse": "Analyse stored traces again, or the logs of QIR or QIR-SE.",
        "explain": "Explain a run in about ten lines, with the packets in which each event is visible.",
        "packets": "Decrypt packets of a run, and show them with all fields.",
    },
    "Publish": {
        "site": "Build a static website of campaigns.",
        "open": "Serve the newest website on this machine, and open it in a browser.",
        "export": "Write results in the JSON format of QIR or QIR-SE.",
    },
    "Maintain": {
        "images": "List, build, pull or check Docker images.",
        "setup": "Install what quicsat needs outside of Python, and start a Docker engine.",
        "doctor": "Check whether this machine is ready, and suggest a fix for each problem.",
        "clean": "Remove containers that a killed campaign left behind.",
        "merge": "Merge the shards of a campaign into one.",
        "prune": "Remove traces and logs of old campaigns to free disk space.",
        "worker": "Join a Dask cluster and run its campaigns on this Docker daemon.",
        "completion": "Print a script that lets bash, zsh or fish complete commands and names.",
        "help": "Show the help for a command, or the whole reference as Markdown.",
    },
}
"""Group → command → summary, in the order of `--help`."""

SUMMARIES = {name: summary for group in GROUPS.values() for name, summary in group.items()}


class Command(Protocol):
    """What the module of a command defines."""

    DESCRIPTION: str
    """A few sentences for the command's help."""
    EXAMPLES: tuple[str, ...]
    """Command lines without the program's name, with a comment after ``#``."""

    def add_options(self, parser: Parser) -> None:
        """Declare options and arguments."""

    Options: type[CommandOptions]
    """Annotates all options and arguments, by the names of their values."""

    def run(self, options: Any, program: Program) -> int:
        """Run the command and return its exit status; ``options``: an instance of ``Options``."""


def load(name: str) -> Command:
    """The module of a command in :data:`SUMMARIES`."""
    return cast(Command, import_module(f"quicsat.cli.{name}"))


def parser_of(name: str) -> Parser:
    """The parser of a command in :data:`SUMMARIES`."""
    command = load(name)
    parser = Parser(f"{PROGRAM} {name}", description=command.DESCRIPTION, examples=command.EXAMPLES,
                    known=tuple(SUMMARIES))  # fmt: skip
    command.add_options(parser)
    general = parser.add_argument_group("general")
    general.add_argument("-d", "--debug", action="store_true", help="Log details to standard error.")
    general.add_argument("-h", "--help", action="help", help="Show this help and exit.")
    return parser
