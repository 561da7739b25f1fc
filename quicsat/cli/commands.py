"""The commands by group: name and one-line summary. The module ``quicsat.cli.NAME`` holds the rest of each.

Only the module of the command that runs is imported: all of them take four times as long as `--help`.
"""

from __future__ import annotations

import re
from ast import literal_eval
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Protocol, cast

from quicsat import cli
from quicsat.cli.parser import Parser
from quicsat.cli.program import CommandOptions, Program
from quicsat.model.text import PROGRAM

if TYPE_CHECKING:
    from importlib.abc import SourceLoader

DEFAULT = "run"
"""The command of a command line that begins with an option."""
GENERAL = "general"
"""Title of the options of every command."""
HEAD = re.compile(r'^GROUP = (".+)\nSUMMARY = (".+)$', re.MULTILINE)
"""The lines with which the source of a module says that it is a command."""


class Command(Protocol):
    """What the module of a command defines."""

    GROUP: tuple[str, int]
    """A heading of :data:`GROUPS`, and the place of the command below it."""
    SUMMARY: str
    """A sentence on one line, which follows ``GROUP``."""
    DESCRIPTION: str
    """A few sentences for the command's help."""
    EXAMPLES: tuple[str, ...]
    """Command lines without the program's name, with a comment after ``#``."""
    Options: type[CommandOptions]
    """Declares options and arguments, by the names of their values."""

    def run(self, options: Any, program: Program) -> int:
        """Run the command and return its exit status; ``options``: an instance of ``Options``."""


def _groups(*titles: str) -> dict[str, dict[str, str]]:
    heads = {name: head for _, name, _ in iter_modules(cli.__path__) if (head := HEAD.search(_source(name)))}
    places = sorted((literal_eval(head[1]), name) for name, head in heads.items())
    return {
        title: {name: literal_eval(heads[name][2]) for (group, _), name in places if group == title} for title in titles
    }


def _source(name: str) -> str:
    """The source of a module, which is not imported."""
    found = find_spec(f"{cli.__name__}.{name}")
    return (found and cast("SourceLoader", found.loader).get_source(found.name)) or ""


GROUPS = _groups("Measure", "Results", "Publish", "Maintain")
"""Group → command → summary, in the order of `--help`."""

SUMMARIES = {name: summary for group in GROUPS.values() for name, summary in group.items()}


def load(name: str) -> Command:
    """The module of a command in :data:`SUMMARIES`."""
    return cast(Command, import_module(f"quicsat.cli.{name}"))


def parser_of(name: str) -> Parser:
    """The parser of a command in :data:`SUMMARIES`."""
    command = load(name)
    parser = Parser(f"{PROGRAM} {name}", description=command.DESCRIPTION, examples=command.EXAMPLES,
                    known=tuple(SUMMARIES))  # fmt: skip
    parser.declare(command.Options)
    general = parser.add_argument_group(GENERAL)
    general.add_argument("-d", "--debug", action="store_true", help="Log details to standard error.")
    general.add_argument("-h", "--help", action="help", help="Show this help and exit.")
    return parser
