"""The option parser: grouped help, hints for mistyped words, options before or after arguments."""

import argparse
import re
import sys
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

from quicsat.cli import console
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.program import CommandOptions
from quicsat.model.names import did_you_mean, likely
from quicsat.model.product_files import as_installed
from quicsat.model.text import command_line, escaped

MOST_COLUMNS = 100
"""Width of help on wide terminals."""
HELP_COLUMN = 30
NEGATIVE = re.compile(r"-\.?[0-9]")
"""How a word begins that is a negative value, ``-3s``, and no option; argparse takes only plain numbers for values."""
WITH_A_VALUE = re.compile(r"argument (\S+): ignored explicit argument .*", re.DOTALL)
"""What argparse says if an option without a value has one: ``--github=1``."""
SEE_STATUSES = "./run.py --help lists the exit statuses."


class Parser(argparse.ArgumentParser):
    """The parser of one command.

    An option that takes several values, or an optional one, ends before a word that is a path, if the command has
    arguments: ``tables --table accesses results/latest`` names a table and a directory.
    """

    def __init__(self, prog: str, *, description: str = "", examples: Sequence[str] = (), known: Sequence[str] = ()):
        """``known``: words besides options and choices that a mistyped word may have meant."""
        lines = "".join(f"{_example(prog.split()[0], line)}\n" for line in examples)
        super().__init__(
            prog=prog,
            description=description,
            epilog=f"examples:\n{lines}\n{SEE_STATUSES}" if lines else SEE_STATUSES,
            formatter_class=Formatter,
            allow_abbrev=False,
            add_help=False,
        )
        self._positionals.title = "arguments"
        self._negative_number_matcher = NEGATIVE
        self._known = known
        self._bare = dict[str, str]()
        self._hint = CommandOptions.hint

    def declare(self, options: type[CommandOptions]) -> None:
        """Add arguments, and options by group, in the order in which the groups come first."""
        for group in dict.fromkeys(["", *(group for group, _ in options.declared.values())]):
            place = self.add_argument_group(group) if group else self
            for name, each in ((name, each) for name, (title, each) in options.declared.items() if title == group):
                if each.flags:
                    place.add_argument(*each.flags, dest=name, **each.settings)
                else:
                    place.add_argument(name, **each.settings)
                self._bare |= dict.fromkeys(each.flags, each.alone) if each.alone else {}
        self._hint = options.hint

    def format_usage(self) -> str:
        """``usage: ./run.py tables [OPTIONS] DIR...``, with required options and arguments."""
        return as_installed(f"usage: {usage(self)}\n")

    def format_help(self) -> str:
        """As always, with the short usage."""
        self.usage = usage(self).replace("%", "%%")
        return as_installed(super().format_help())

    def print_help(self, _file: object = None) -> None:
        """To standard output; raises OSError if that takes no more, which argparse ignores."""
        console.show(self.format_help().removesuffix("\n"))
        console.flush()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As always, after arguments are moved before options."""
        words = list(sys.argv[1:] if args is None else args)
        for flag, word in pairwise(words):
            if flag in self._bare and not word.startswith("-"):
                self.error(f"argument {flag}: {self._bare[flag]}")
        arguments_of = [action for action in self._actions if not action.option_strings]
        if arguments_of:
            arguments, options = self._divided(words, bare=False)
            if not arguments and any(action.nargs in (None, "+") for action in arguments_of):
                arguments, options = self._divided(words, bare=True)
            typed = {word: index for index, word in enumerate(words)}
            found, unknown = super().parse_known_args([*arguments, *options], namespace)
            return found, sorted(unknown, key=lambda word: typed.get(word, len(words)))
        return super().parse_known_args(words, namespace)

    def _divided(self, words: Sequence[str], *, bare: bool) -> tuple[list[str], list[str]]:
        """Arguments, and options with their values; ``bare``: an existing file is a path without a slash, too."""
        options = {flag: action for action in self._actions for flag in action.option_strings}
        paths = any(action.type is Path for action in self._actions if not action.option_strings)
        arguments, rest = list[str](), list[str]()
        action: argparse.Action | None = None
        taken = 0
        for index, word in enumerate(words):
            if word == "--":
                return [*arguments, *rest, *words[index:]], []
            if word.startswith("-") and len(word) > 1 and not NEGATIVE.match(word):
                single = word[:2] != "--" and options.get(word[:2])  # -mj FILE: flags, and an option with a value
                last = word if not single or single.nargs != 0 else f"-{word[-1]}"
                action, taken = options.get(last), 0
                rest.append(word)
            elif action is not None and _takes(action, taken, word, bare=bare, paths=paths):
                taken += 1
                rest.append(word)
            else:
                action = None
                arguments.append(word)
        return arguments, rest

    def error(self, message: str) -> NoReturn:
        """Print one message with a hint, and exit with status 2."""
        known = {*self._known}
        for action in self._actions:
            known.update(action.option_strings, map(str, action.choices or ()))
        if given := WITH_A_VALUE.fullmatch(message):
            flag = given[1].partition("/")[0]
            message = f"argument {given[1]}: {self._bare.get(flag, f'it has no value; write {flag} alone')}"
        wrong = re.findall(r"unrecognized arguments: (\S+)|invalid choice: '([^']*)'", message)
        hints = "".join(
            f" {first} is a command; write it first: {command_line(first)}."
            if first in self._known
            else self._hint(first.partition("=")[0])
            or did_you_mean(first or second, known)
            or (likely(second, self._choices(message)) if second else "")
            for first, second in wrong
        )
        fault = escaped(message) if message.endswith("?") else f"{escaped(message)}."
        console.message(f"{self.prog}: {fault}{hints} See {self.prog} --help.")
        self.exit(ExitStatus.USAGE)

    def _choices(self, message: str) -> list[str]:
        """What the option or argument of a fault may be."""
        names = {"/".join(each.option_strings) or str(each.metavar): each for each in self._actions}
        action = names.get(message.removeprefix("argument ").partition(":")[0])
        return list(map(str, (action and action.choices) or ()))


class Once(argparse.Action):
    """An option with a file that is refused if it is repeated, since only the last file would count."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, value: object, option: str | None = None
    ) -> None:
        """Store the value."""
        if getattr(namespace, self.dest) is not None:
            parser.error(f"argument {option}: is given more than once; name one file")
        setattr(namespace, self.dest, value)


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help with short forms: ``-s, --server NAME...``."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=HELP_COLUMN, width=_columns() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap a description; examples keep their lines."""
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return "\n".join(f"{indent}{line}" for line in self._split_lines(text, width - len(indent)))

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Wrap a text; names and paths keep their hyphens within a line, so that they can be copied."""
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        return invocation(action)


def _example(program: str, line: str) -> str:
    """A command line, below its comment if both do not fit on one line of the terminal."""
    whole = f"  {program} {line}"
    command, *comment = re.split(r"\s+# ", whole, maxsplit=1)
    return f"  # {comment[0]}\n{command}" if comment and len(whole) > _columns() else whole


def _columns() -> int:
    return min(console.width() or MOST_COLUMNS, MOST_COLUMNS)


def invocation(action: argparse.Action) -> str:
    """An option with its value as help shows it, ``-s, --server NAME...``, or the name of an argument."""
    value = "" if action.nargs == 0 else _value(action)
    return f"{', '.join(action.option_strings)} {value}".strip()


def usage(parser: argparse.ArgumentParser) -> str:
    """The command line in short: the program, ``[OPTIONS]``, required options, and arguments."""
    required = [f"{action.option_strings[0]} {_value(action)}" for action in _shown(parser, options=True)
                if action.required]  # fmt: skip
    arguments = [_value(action) for action in _shown(parser, options=False)]
    return " ".join([parser.prog, "[OPTIONS]", *required, *arguments])


def _shown(parser: argparse.ArgumentParser, *, options: bool) -> list[argparse.Action]:
    """Options, or arguments, that help shows."""
    actions = parser._actions  # argparse has no public list of them
    return [each for each in actions if bool(each.option_strings) is options and each.help != argparse.SUPPRESS]


def _value(action: argparse.Action) -> str:
    """``NAME``, ``NAME...``, ``[NAME]`` or ``[NAME...]``; choices without a name are listed."""
    name = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    shown = f"{name}..." if action.nargs in ("+", "*") else str(name)
    return f"[{shown}]" if action.nargs in ("?", "*") else shown


def _takes(action: argparse.Action, taken: int, word: str, *, bare: bool, paths: bool) -> bool:
    """Whether an option that has ``taken`` values takes this one, too; also an invalid one, if it is no path.

    ``paths``: whether the arguments of the command are paths.
    """
    if action.nargs == 0 or (action.nargs in (None, "?") and taken):
        return False
    if action.nargs is None or (action.nargs == "+" and not taken):
        return True
    if action.nargs == "+" and (action.type is Path or not paths):
        return True
    if "/" in word:
        return False
    return not _exists(word) or (_fits(action, word) and not bare)


def _exists(word: str) -> bool:
    try:
        return Path(word).exists()
    except OSError:  # the name is too long for a file
        return False


def _fits(action: argparse.Action, word: str) -> bool:
    """Whether an option may have this value."""
    try:
        value = action.type(word) if callable(action.type) else word
    except (ValueError, argparse.ArgumentTypeError):
        return False
    return action.choices is None or value in action.choices
