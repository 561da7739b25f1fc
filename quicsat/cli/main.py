"""Entry point of the command line: finds the command, runs it, and turns errors into messages and exit statuses."""

from __future__ import annotations

import errno
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quicsat.cli import commands, console
from quicsat.cli.exit_status import SIGNAL, ExitStatus
from quicsat.cli.help import overview
from quicsat.cli.parser import Parser
from quicsat.cli.program import CommandOptions, Program
from quicsat.model.errors import HarnessFault, InputError, UserError
from quicsat.model.text import PROGRAM

if TYPE_CHECKING:
    from quicsat.report.plot_request import Draw


PRIVATE = "docker"
"""Library whose debug messages tell of the user's accounts at registries; urllib3 logs its requests."""
FAULTS_OF_NAMES = (errno.ENAMETOOLONG, errno.ELOOP)
"""Errors of the system for a path that no file can have."""
PYTHONS_LOOP = "Symlink loop"
"""How the error begins that ``Path.resolve`` raises for a loop of symbolic links, before Python 3.13."""


def main(
    root: Path,
    arguments: Sequence[str] | None = None,
    draw: Draw | None = None,
    figures: Callable[[], Mapping[str, str]] = dict,
) -> int:
    """Run the command line for the folder ``root``, see :func:`start`; the exit status. ``draw`` makes figures.

    ``figures`` names all kinds of figures, with the heading of each.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    console.prepare()
    status: int = ExitStatus.SUCCESS
    try:
        status = _run(root, words, draw, figures)
        console.flush()
    except UserError as error:
        console.message(str(error))
        return error.exit_status
    except HarnessFault as fault:
        console.message(f"{fault.reason} ({fault.code})")
        return ExitStatus.MACHINE
    except OSError as error:
        return _tell(error, words)
    except RuntimeError as error:
        if not str(error).startswith(PYTHONS_LOOP):
            raise
        console.message(f"{error}: remove the link, or choose another path.")
        return ExitStatus.USAGE
    except KeyboardInterrupt:
        console.message(f"Stopped by signal {signal.SIGINT.value}.")
        return SIGNAL + signal.SIGINT
    finally:
        console.allow_commands()
    return status


def _run(root: Path, words: Sequence[str], draw: Draw | None, figures: Callable[[], Mapping[str, str]]) -> int:
    if words[:1] in (["-h"], ["--help"]):
        console.show(overview())
        return ExitStatus.SUCCESS
    if words == ["--version"]:
        console.show(_version())
        return ExitStatus.SUCCESS
    try:
        options = parse(words)
    except SystemExit:
        console.flush()  # what the parser has printed is written, too, or raises OSError
        raise
    logging.basicConfig(level=logging.DEBUG if options.debug else logging.WARNING, format="%(name)s: %(message)s")
    logging.getLogger(PRIVATE).setLevel(logging.WARNING)
    _check_paths(options)
    with ExitStack() as closing:
        program = Program(root, tuple(sys.argv), draw, figures, closing)
        return commands.load(options.command).run(options, program)


def _check_paths(options: CommandOptions) -> None:
    """Raise InputError if no file can have one of the paths that the user named."""
    for path in _paths(options):
        try:
            path.stat()
        except OSError as error:
            if error.errno in FAULTS_OF_NAMES:
                raise InputError(_sentence(path, error)) from error


def _paths(options: CommandOptions) -> Iterator[Path]:
    for value in vars(options).values():
        yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, Path))


def _tell(error: OSError, words: Sequence[str]) -> int:
    """Print an error of the system that no command expected; the exit status."""
    if error.filename == console.STANDARD_OUTPUT:
        name = words[0] if words[:1] and words[0] in commands.SUMMARIES else "the command"
        console.message(f"standard output: the output of {name} is not complete: {error.strerror}.")
    elif error.filename is None:
        console.message(f"Reading or writing failed: {error.strerror or error}.")
    else:
        console.message(_sentence(error.filename, error))
    return ExitStatus.USAGE if error.errno in FAULTS_OF_NAMES else ExitStatus.MACHINE


def _sentence(path: object, error: OSError) -> str:
    return f"{path}: cannot be read or written: {error.strerror}."


def _version() -> str:
    """``quicsat 0.1.0 (d8a2457)``: the release, and the commit of a checkout."""
    from quicsat.config.tool_version import release, tool_version

    commit = tool_version()
    return f"quicsat {release()}" + (f" ({commit})" if commit != release() else "")


def parse(words: Sequence[str]) -> Any:
    """The ``Options`` of a command line's command; exits with status 2 and a message if they are wrong."""
    name, rest = commands.DEFAULT, list(words)
    if rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if name not in commands.SUMMARIES:
            Parser(PROGRAM, known=tuple(commands.SUMMARIES)).error(f"invalid choice: '{name}'")
    options = commands.load(name).Options()
    options.command = name
    return commands.parser_of(name).parse_args(rest, options)
