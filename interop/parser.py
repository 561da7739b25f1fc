"""A parser of options: it tells the nearest known word with each unknown one, and options leave paths to arguments."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from interop.names import did_you_mean, printable

USAGE = 2
"""Exit status after a wrong option."""


class Parser(argparse.ArgumentParser):
    """Tells the nearest known word with each word that it does not know.

    An option that takes several words, or perhaps one, ends before a word that is a path, if the command has arguments:
    ``tables --table accesses results/latest`` names a table and a directory, as the other order does.
    """

    known: ClassVar[set[str]] = set()
    """Commands, options and choices of all commands."""

    def __init__(self, **options: Any) -> None:
        self._declared = list[argparse.Action]()
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)

    def add_argument(self, *flags: Any, **options: Any) -> argparse.Action:
        """As always, and remember the words."""
        action = super().add_argument(*flags, **options)
        self._declared.append(action)
        self.known.update(action.option_strings, map(str, action.choices or ()))
        return action

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As always, once arguments stand before options."""
        words = list(sys.argv[1:] if args is None else args)
        if any(not action.option_strings for action in self._declared):
            arguments, options = self._divided(words, bare=False)
            if not arguments and any(not each.option_strings and each.nargs in (None, "+") for each in self._declared):
                arguments, options = self._divided(words, bare=True)
            words = [*arguments, *options]
        return super().parse_known_args(words, namespace)

    def _divided(self, words: Sequence[str], *, bare: bool) -> tuple[list[str], list[str]]:
        """Arguments, and options with their values; ``bare``: what is there counts as a path without a slash, too."""
        options = {flag: action for action in self._declared for flag in action.option_strings}
        arguments, rest = list[str](), list[str]()
        action: argparse.Action | None = None
        taken = 0
        for index, word in enumerate(words):
            if word == "--":
                return [*arguments, *rest, *words[index:]], []
            if word.startswith("-") and len(word) > 1:
                single = word[:2] != "--" and options.get(word[:2])  # -mj FILE: flags, and an option with a value
                last = word if not single or single.nargs != 0 else f"-{word[-1]}"
                action, taken = options.get(last), 0
                rest.append(word)
            elif action is not None and _takes(action, taken, word, bare=bare):
                taken += 1
                rest.append(word)
            else:
                action = None
                arguments.append(word)
        return arguments, rest

    def error(self, message: str) -> NoReturn:
        """One message and exit status 2."""
        wrong = re.findall(r"unrecognized arguments: (\S+)|invalid choice: '([^']*)'", message)
        hints = "".join(did_you_mean(first or second, self.known - {first}) for first, second in wrong)
        self.exit(USAGE, f"{self.prog}: {printable(message)}.{hints} See {self.prog} --help.\n")


def _takes(action: argparse.Action, taken: int, word: str, *, bare: bool) -> bool:
    """Whether an option that has ``taken`` words takes this one, too; also one that does not fit, if it is no path."""
    if action.nargs == 0 or (action.nargs in (None, "?") and taken):
        return False
    if action.nargs is None or (action.nargs == "+" and not taken):
        return True
    if "/" in word:
        return False
    return not Path(word).exists() or (_fits(action, word) and not bare)


def _fits(action: argparse.Action, word: str) -> bool:
    """Whether an option may have this word."""
    try:
        value = action.type(word) if callable(action.type) else word
    except (ValueError, argparse.ArgumentTypeError):
        return False
    return action.choices is None or value in action.choices
