"""What a command is given: its options, typed, and apart from them what surrounds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quicsat.report.plot_request import Draw


class CommandOptions:
    """The options of every command; the parser sets the attributes that a class of options annotates."""

    command: str
    debug: bool


@dataclass(frozen=True)
class Program:
    """The checkout, the command line, and what a command uses besides its options."""

    root: Path
    """The user's folder: the checkout, or the working directory of the command ``quicsat``."""
    words: tuple[str, ...] = ()
    """The command line, with the name of the program."""
    draw: Draw | None = None
    """Makes figures; None where there are none."""
    figures: Callable[[], Mapping[str, str]] = dict
    """Names all kinds of figures, with the heading of each."""
    closing: ExitStack = field(default_factory=ExitStack)
    """What is closed when the command ends."""

    @property
    def results(self) -> Path:
        """The directory of all campaigns."""
        return self.root / "results"
