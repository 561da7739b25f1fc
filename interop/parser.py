"""A parser of options that tells the nearest known word with each word that it does not know."""

from __future__ import annotations

import argparse
import re
from typing import Any, ClassVar, NoReturn

from interop.names import did_you_mean, printable

USAGE = 2
"""Exit status after a wrong option."""


class Parser(argparse.ArgumentParser):
    """Tells the nearest known word with each word that it does not know."""

    known: ClassVar[set[str]] = set()
    """Commands, options and choices of all commands."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)

    def add_argument(self, *flags: Any, **options: Any) -> argparse.Action:
        """As always, and remember the words."""
        action = super().add_argument(*flags, **options)
        self.known.update(action.option_strings, map(str, action.choices or ()))
        return action

    def error(self, message: str) -> NoReturn:
        """One message and exit status 2."""
        wrong = re.findall(r"unrecognized arguments: (\S+)|invalid choice: '([^']*)'", message)
        hints = "".join(did_you_mean(first or second, self.known - {first}) for first, second in wrong)
        self.exit(USAGE, f"{self.prog}: {printable(message)}.{hints} See {self.prog} --help.\n")
