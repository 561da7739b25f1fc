"""What a command is given: its options, typed, and apart from them what surrounds it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

from quicsat.model.text import quoted

if TYPE_CHECKING:
    from quicsat.report.plot_request import Draw

T = TypeVar("T")


class Option:
    """The declaration of an option or argument for argparse; the parser replaces it by the value."""

    def __init__(self, flags: tuple[str, ...], group: str, alone: str, settings: dict[str, Any]) -> None:
        self.flags, self.group, self.alone, self.settings = flags, group, alone, settings

    def __get__(self, *_: object) -> NoReturn:
        """Let argparse see that there is no value yet."""
        raise AttributeError


def option(
    *flags: str, group: str = "", parse: Callable[[str], object] | None = None, alone: str = "", **settings: Any
) -> Any:
    """Declare an option, or an argument if it has no ``flags``: the attribute of a class of :class:`CommandOptions`.

    ``group``: its heading in help, by default that of the class; ``parse``: reads its value, as of :func:`value_of`;
    ``alone``: a sentence that refuses a value behind an option that has none, for commands without arguments;
    ``settings``: those of ``argparse.ArgumentParser.add_argument``.
    """
    if parse is not None:
        settings["type"] = value_of(parse)
    return Option(flags, group, alone, settings)


def flag(*flags: str, **settings: Any) -> Any:
    """Declare an option without a value, see :func:`option`."""
    return option(*flags, action="store_true", **settings)


def value_of(parse: Callable[[str], T]) -> Callable[[str], T]:
    """A type for argparse from a parser whose ValueError messages follow the quoted value."""

    def parse_word(word: str) -> T:
        try:
            return parse(word)
        except ValueError as fault:
            message = f"{quoted(word)} {str(fault).removesuffix('.')}"
            raise argparse.ArgumentTypeError(message) from fault

    return parse_word


class CommandOptions:
    """The options of every command. A subclass declares further ones, below the heading ``group``.

    Options of its bases that a command does not have (``without``) keep their usual values.
    """

    declared: ClassVar[Mapping[str, tuple[str, Option]]] = {}
    """Name → heading and option: those of the bases as these are listed, then those of the class itself."""
    command: str
    debug: bool

    def __init_subclass__(cls, group: str = "", without: Collection[str] = ()) -> None:
        own = {name: (each.group or group if each.flags else "", each)
               for name, each in vars(cls).items() if isinstance(each, Option)}  # fmt: skip
        bases = {name: each for base in cls.__bases__ if issubclass(base, CommandOptions)
                 for name, each in base.declared.items() if name not in own}  # fmt: skip
        cls.declared = {name: each for name, each in (bases | own).items() if name not in without}
        for name in without:
            settings = bases[name][1].settings
            setattr(cls, name, settings.get("default", False if settings.get("action") == "store_true" else None))

    @staticmethod
    def hint(_option: str) -> str:
        """A sentence about an unknown option; empty if there is none better than the nearest name."""
        return ""


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
