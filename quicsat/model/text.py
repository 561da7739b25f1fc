"""Makes text from outside safe to show: output of containers, fields of packets, names of files, words of a user.

Such text may contain terminal escape sequences, control and direction characters, lone surrogates, or be very long.
No other module filters characters. Every function here returns text that is printable in the sense of
:meth:`str.isprintable` (apart from line breaks in :func:`printable_lines`) and that UTF-8 can encode.
HTML, Markdown and LaTeX need their own escaping in addition.

* :func:`printable` and :func:`printable_lines` are for text that people read: they drop what is not printable.
* :func:`escaped` and :func:`quoted` are for names and paths: they write what is not printable as a backslash escape,
  so that two different names stay different.
"""

import re
import shlex
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

ESCAPE = "\x1b"
"""Begins the sequences that control a terminal (ECMA-48)."""
PROGRAM = "quicsat" if Path(sys.argv[0]).name == "quicsat" else "./run.py"
"""How the user has started this program."""
LONGEST = 1000
"""Default bound of :func:`printable`, characters."""
LONGEST_QUOTED = 60
"""Bound of :func:`quoted`, characters."""
LONGEST_WORD = 30
"""Longer ones are cut within, characters."""
_LONGEST_INDENT = 80

_ESCAPES = re.compile(
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # strings: titles, links, clipboard
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # control sequences: colours, cursor
    r"|\x1b[ -/]*[0-~]?"
)
"""Escape sequences of ECMA-48, with 7-bit and 8-bit introducers; a sequence that does not end takes the rest."""
_CONTROLS = re.compile(
    r"\x1b(?!\[[0-9;]{0,20}m)|\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]"
    r"|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
_BREAKS = re.compile(r"[\t-\r\x85\u2028\u2029]+")


def printable(text: str, longest: int | None = LONGEST) -> str:
    """``text`` on one line: ``"\\x1b[31mred\\x1b[0m\\n\\u202ex"`` -> ``"red x"``.

    Escape sequences go as a whole. Each series of tabs and line breaks becomes one space, as does every other kind of
    space. All other characters that are not printable go: controls, direction and other format characters, lone
    surrogates, private and unassigned ones. White space at both ends goes. What is longer than ``longest`` characters
    is cut before the word that does not fit, and ends with ``…``; None does not cut.
    """
    if not (text.isascii() and text.isprintable()):
        text = _BREAKS.sub(" ", _ESCAPES.sub("", text))
        text = "".join(filter(None, map(_printable_character, text)))
    return _cut(text.strip(), longest)


def printable_lines(text: str, longest: int | None = None) -> str:
    """``text`` with :func:`printable` applied to each line; lines keep their indentation, tabs become spaces.

    Lines end with LF or CR LF. ``longest`` bounds each line, without its indentation.
    """
    return "\n".join(_printable_line(line, longest) for line in text.split("\n"))


def escaped(text: str, longest: int | None = None) -> str:
    """``text`` with a backslash escape for each character that is not printable: ``"a\\x1b"`` -> ``r"a\\x1b"``.

    It is cut to ``longest`` characters before that.
    """
    cut = _cut(text, longest)
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in cut)


def quoted(text: str) -> str:
    """``text`` as :func:`escaped` writes it, cut to 60 characters, in double quotes."""
    return f'"{escaped(text, LONGEST_QUOTED)}"'


def without_controls(text: str) -> str:
    """Lines for a terminal with their colours; all other control and direction characters are :func:`escaped`."""
    return _CONTROLS.sub(lambda found: escaped(found[0]), text)


def counted(count: int, noun: str, plural: str = "") -> str:
    """``count`` with its noun, whose ``plural`` has an s by default: ``"1 run"``, ``"2 runs"``."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def numbered(noun: str, numbers: Collection[int]) -> str:
    """``Repetition 7`` or ``Repetitions 1-3, 5``."""
    return f"{noun}{'s' if len(numbers) > 1 else ''} {ranges(numbers)}"


def ranges(numbers: Iterable[int]) -> str:
    """``[1, 2, 3, 5]`` -> ``1-3, 5``."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def first_few(items: Iterable[Any], most: int, show: Callable[[Any], str] = str) -> str:
    """``a/1, a/2 and 3 more``: names at most so many of the items, as ``show`` writes them."""
    every = list(items)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return f"{', '.join(map(show, every[:most]))}{more}"


def command_line(*words: object) -> str:
    """A call of the program that can be copied to a shell: ``./run.py show 'results/my campaign'``.

    Words with characters that are not printable are quoted with escapes: ``$'a\\x1b'``.
    """
    return " ".join(map(_shell_word, (PROGRAM, *map(str, words))))


def _shell_word(word: str) -> str:
    return shlex.quote(word) if word.isprintable() else f"$'{''.join(map(_in_shell_quotes, word))}'"


def _in_shell_quotes(character: str) -> str:
    if character.isprintable():
        return f"\\{character}" if character in "\\'" else character
    from_name_of_file = "\udc80" <= character <= "\udcff"
    content = character.encode("utf-8", "surrogateescape" if from_name_of_file else "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in content)


def _printable_character(character: str) -> str:
    if character.isprintable():
        return character
    return " " if unicodedata.category(character) == "Zs" else ""


def _printable_line(line: str, longest: int | None) -> str:
    if line.isascii() and line.isprintable() and (longest is None or len(line) <= longest):
        return line.rstrip()
    line = _ESCAPES.sub("", line)
    indent = line[: len(line) - len(line.lstrip(" \t"))].expandtabs(4)[:_LONGEST_INDENT]
    return (indent + printable(line, longest)).rstrip()


def _cut(text: str, longest: int | None) -> str:
    if longest is None or len(text) <= longest:
        return text
    words, space, rest = text[: longest - 1].rpartition(" ")
    return f"{words} …" if space and len(rest) < LONGEST_WORD else f"{text[: longest - 1]}…"
