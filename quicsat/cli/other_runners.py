"""Options of the QUIC Interop Runner (QIR) and of QIR-SE: they keep their meaning, or name what to use instead.

docs/guide/coming-from-qir.md lists all of them.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from quicsat.cli.output_files import LARGEST_JSON
from quicsat.cli.program import CommandOptions, option
from quicsat.model.errors import InputError
from quicsat.model.results import ResultSet
from quicsat.model.stored_files import is_file, read_file, resolved
from quicsat.model.text import command_line
from quicsat.model.whole_file import may_replace

PROTOCOLS = ("quic", "webtransport")
SAVE_FILES = "it has no value; write -f alone. The results go to the file that you specify with -j"


class Refusal(argparse.Action):
    """An option that ends the program with a sentence, which names what to use instead."""

    def __init__(self, option_strings: Sequence[str], dest: str, sentence: str, **more: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, **more)
        self._sentence = sentence

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Refuse the option."""
        parser.error(f"{self.option_strings[-1]}: {self._sentence}")


RETRY_FAILED = option(
    "--retry-failed", action=Refusal, help="Refused; use `resume DIR --retry`.",
    sentence="to repeat runs of a campaign that did not succeed, use: ./run.py resume DIR --retry failed timeout "
    "unsupported",
)  # fmt: skip
"""The option of QIR-SE that is refused."""


class OtherRunnerOptions(CommandOptions, group="options of QIR and QIR-SE"):
    """What either runner has and ``run`` has not."""

    protocol: str = option(
        "-p", "--protocol", choices=PROTOCOLS, default=PROTOCOLS[0], metavar="PROTOCOL",
        help="Select tests of this protocol: quic, or webtransport, which only some implementations support "
        "(default: quic; example: webtransport).",
    )  # fmt: skip
    no_auto_unsupported: list[str] = option(
        "-n", "--no-auto-unsupported", nargs="+", action="extend", default=[], metavar="NAME",
        help="Accepted, but has no effect: quicsat never marks a test case as unsupported because all of its runs "
        "failed (default: none; example: quic-go).",
    )  # fmt: skip
    retry_failed: None = RETRY_FAILED


def check_earlier_results(file: Path | None, results_of_user: Path, continued: Path | None = None) -> None:
    """Raise InputError if writing results to ``file`` at the end would replace anything but those that may be replaced.

    These are results of a finished campaign, and of ``continued``, the directory of the campaign that is resumed.
    ``results_of_user``: where campaigns are.
    QIR-SE continues a campaign that is not finished, QIR replaces the file.
    """
    if file is None or (found := earlier_export("-j", file, results_of_user, continued)) is None:
        return
    directory, results = found
    is_continued = continued is not None and directory == continued.resolve()
    if not is_continued and results.finished is None:
        raise InputError(
            f"{file}: holds the results of a campaign that is not finished. To continue it: "
            f"{command_line('resume', directory, '-j', file)}\nTo start another campaign, choose another file."
        )


def earlier_export(name: str, file: Path, *known: Path | None) -> tuple[Path, ResultSet] | None:
    """The place and the results of the campaign whose export ``file`` contains; None if nothing is lost with the file.

    Raises InputError if the file contains what only it may have: anything else, or the results of a campaign that is no
    longer there. ``name``: the option or command that would replace it. Others may have written the file, so only
    campaigns below its directory and below ``known`` ones are read.
    """
    from quicsat.results import store

    if may_replace(file, lambda _: False):
        return None
    target = resolved(file)
    document = _results_in(target)
    if document is not None and (found := _campaign(target, str(document["log_dir"]), known)) is not None:
        return found
    if target.name == store.DOCUMENT and is_file(target.with_name(store.JOURNAL)):
        return None  # the journal has the same results
    if document is None:
        raise InputError(f"{file}: exists, and does not hold results that {name} can replace. Choose another file.")
    raise InputError(
        f"{file}: holds the results of another runner, or of a campaign that was removed. Choose another file."
    )


def _campaign(file: Path, log_dir: str, known: Sequence[Path | None]) -> tuple[Path, ResultSet] | None:
    """The place and the results of the campaign to which ``log_dir`` leads from ``file``, if it is still there.

    It must be below the directory of ``file`` or one of ``known``.
    """
    from quicsat.results import store

    beside = file.parent
    try:
        place = (beside if log_dir == beside.name else beside / log_dir).resolve()
        if not any(place.is_relative_to(resolved(each)) for each in (beside, *filter(None, known))):
            return None
        return place, store.load(place).result_set
    except (InputError, OSError, ValueError, RuntimeError):  # no such name or campaign, or links lead in a circle
        return None


def _results_in(file: Path) -> dict[str, Any] | None:
    """The document in ``file`` if it is one of QIR or QIR-SE."""
    try:
        document = json.loads(read_file(file, LARGEST_JSON))
    except (OSError, ValueError, RecursionError):
        return None
    known = isinstance(document, dict) and {"log_dir", "servers", "clients"} <= document.keys()
    return document if known else None
