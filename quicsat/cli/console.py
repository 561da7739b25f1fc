"""The only module that prints: results to standard output, progress and errors to standard error."""

from __future__ import annotations

import io
import os
import re
import secrets
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO, cast

from quicsat.model.product_files import as_installed
from quicsat.model.text import ESCAPE, PROGRAM, printable_lines, without_controls

if TYPE_CHECKING:
    from quicsat.model.results import ResultSet
    from quicsat.results.document import StoredResults

STANDARD_OUTPUT = "standard output"
"""File name in errors of standard output."""
USUAL_COLUMNS = 80
"""Of a terminal that does not tell its width."""
COMMAND = f": {PROGRAM} "
"""Before the words of a command with which a line ends."""
NO_BREAK = "\u00a0"
_NUMBER_AND_UNIT = re.compile(r"(?<=\d) (?=[^\W\d]|%)")
"""Spaces at which no line ends."""
_tokens: list[str] = []
"""What lets GitHub read workflow commands again; empty if it reads them."""


def open_closed_streams() -> None:
    """Open those of the three standard streams that are closed, before other files take their numbers.

    Nothing can be read then, and messages are lost. What is printed to standard output fails with an error (EBADF): it
    was to be the result.
    """
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest number that is free
    sys.stdin = sys.stdin or _stream(0, "r")
    sys.stdout = sys.stdout or _stream(1, "w")
    sys.stderr = sys.stderr or _stream(2, "w")


def _stream(number: int, mode: str) -> TextIO:
    return cast(TextIO, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def prepare() -> None:
    """Replace characters that the locale cannot encode, instead of failing on them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def show(text: str) -> None:
    """Print a result to standard output; if its reader has gone, the command goes on, and keeps its exit status.

    Control characters but those of colours are escaped: names of directories of others may have some. On a terminal,
    lines are wrapped between words.
    """
    _print(_wrapped(without_controls(text), width()))


def _print(text: str, *, flush: bool = False) -> None:
    with _named():
        print(text, flush=flush)


@contextmanager
def _named() -> Iterator[None]:
    """OSError names standard output if it takes no more; a reader that has gone is no error."""
    try:
        yield
    except BrokenPipeError:
        discard_output()
    except OSError as error:
        discard_output()  # what is still buffered would raise the same error again
        raise OSError(error.errno, error.strerror, STANDARD_OUTPUT) from error


def stop_commands() -> None:
    """Let GitHub take nothing for a workflow command from here on: logs and messages hold text of images."""
    _tokens.append(secrets.token_hex(16))
    _print(f"::stop-commands::{_tokens[-1]}", flush=True)


def allow_commands(*commands: str) -> None:
    """End what :func:`stop_commands` began, and print workflow commands; print no text of images afterwards."""
    lines = [*(f"::{token}::" for token in _tokens), *commands]
    _tokens.clear()
    for line in lines:
        _print(line, flush=True)


def message(text: str) -> None:
    """Print progress, a warning or an error to standard error, with control characters escaped: images supply some."""
    try:
        print(_wrapped(printable_lines(as_installed(text)), message_width()), file=sys.stderr, flush=True)
    except OSError:  # the work goes on; nothing is left that could be told
        _discard(sys.stderr)


def ask(question: str) -> bool:
    """Whether the person at the terminal answers yes; False if there is no terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    message(question)
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def warn(record: StoredResults) -> ResultSet:
    """The results of a campaign, after its warnings: what of it is left out."""
    for warning in record.warnings:
        message(warning)
    return record.result_set


def width() -> int | None:
    """Columns of the terminal; None if standard output is not a terminal."""
    return _columns(sys.stdout)


def message_width() -> int | None:
    """Columns of the terminal that shows messages; None if there is none."""
    return _columns(sys.stderr)


def _columns(stream: TextIO) -> int | None:
    if not stream.isatty():
        return None
    with suppress(ValueError):
        if (columns := int(os.environ.get("COLUMNS", ""))) > 0:
            return columns
    with suppress(OSError, ValueError):
        return os.get_terminal_size(stream.fileno()).columns or USUAL_COLUMNS
    return USUAL_COLUMNS


def _wrapped(text: str, columns: int | None) -> str:
    """Lines of at most so many characters, if they have spaces; coloured lines and commands to copy stay whole."""
    if columns is None:
        return text
    return "\n".join(_wrapped_line(line, columns) for line in text.split("\n"))


def _wrapped_line(line: str, columns: int) -> str:
    if len(line) <= columns or ESCAPE in line or _is_command(line):
        return line
    indent = line[: len(line) - len(line.lstrip())]
    text, sign, words = line.rpartition(COMMAND)
    if sign:  # half of a command is another one
        return f"{_wrapped_line(f'{text}:', columns)}\n{indent}{PROGRAM} {words}"
    kept = _NUMBER_AND_UNIT.sub(NO_BREAK, line)
    found = textwrap.fill(kept, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return found.replace(NO_BREAK, " ")


def _is_command(line: str) -> bool:
    """Whether a line is a command to copy; ``./run.py plan: …`` is a fault."""
    words = line.split(maxsplit=2)
    return len(words) > 1 and words[0] == PROGRAM and not words[1].endswith(":")


def colour() -> bool:
    """Whether to colour standard output: it is a capable terminal, and NO_COLOR is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def live() -> bool:
    """Whether messages go to a terminal on which a picture can be drawn again and again."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")


def flush() -> None:
    """Write what is still buffered; raises OSError if standard output takes no more, though it has a reader."""
    with _named():
        sys.stdout.flush()


def discard_output() -> None:
    """Send what is still buffered to /dev/null, after standard output took no more."""
    _discard(sys.stdout)


def _discard(stream: TextIO) -> None:
    with suppress(io.UnsupportedOperation):  # it is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
